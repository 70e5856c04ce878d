"""From pairs to ids and back: what sequence to sequence learns of its texts before training."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from recurra.config import Seq2SeqData
from recurra.data.normal import Normal
from recurra.errors import DataError
from recurra.frozen import NamedTuple
from recurra.named import did_you_mean
from recurra.reading.pair_columns import place_of
from recurra.reading.pairs import pairs
from recurra.reading.pieces import over_pieces
from recurra.text import END, START, UNKNOWN, Tokenizer, Vocabulary, load_tokenizer, tokenizer
from recurra.text.json_file import read_json, write_json

if TYPE_CHECKING:
    from recurra.config import Text, Vec2SeqData
    from recurra.reading.pairs import Pair

SEPARATOR = "<sep>"
SPECIALS = (UNKNOWN, START, END, SEPARATOR)
"""The first ids of both vocabularies, in this order. The features of the source are special too, and come next."""

SHOWN, MOST_NAMED = 3, 40
"""So many features of a question, and of training, are named where none of the question's is known."""

Ids: TypeAlias = NDArray[np.int32]


class Side(NamedTuple):
    """How the texts of one side become ids."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    lowercase: bool = False

    def split(self, text: str) -> list[str]:
        """The tokens of a text."""
        return self.tokenizer.split(text.lower() if self.lowercase else text)

    def recut(self, ids: Ids, seed: int) -> Ids:
        """The ids of the same text, its subwords cut anew; what is special or unknown stays where it is."""
        from recurra.text import Subwords

        if not isinstance(self.tokenizer, Subwords) or not self.tokenizer.dropout:
            return ids
        specials = len(self.vocabulary.specials)
        ends = [0, *(np.flatnonzero(np.diff(ids < specials)) + 1).tolist(), len(ids)]
        parts = []
        for start, end in itertools.pairwise(ends):
            part = ids[start:end]
            if len(part) and part[0] >= specials:
                pieces = self.tokenizer.recut(self.vocabulary.tokens_of(part), seed=seed + start)
                part = self.vocabulary.ids(pieces)
            parts.append(part)
        return np.concatenate(parts) if parts else ids


@final
class PairTexts:
    """Tokenizers and vocabularies of both sides, or the scale of frames in place of the source's; it never changes.

    The source is its features, then its texts with <sep> between them, then </s>:

        ⟨V⟩ ⟨PST⟩ w a l k </s>

    The target is its tokens and </s>. With data.joint both sides are the same.
    """

    def __init__(self, source: Side | None, target: Side, frames: Normal | None = None) -> None:
        self.source = source
        self.target = target
        self.frames = frames
        self._copied = _copies(source, target)

    @classmethod
    def of(cls, data: Seq2SeqData, *, points: bool = False, base: PairTexts | None = None) -> PairTexts:
        """What the training files hold; columns and tokens are named. What points at the source writes nothing else.

        Of a base, which another run has learned, tokenizers, tokens and scales stay as they are.
        """
        files = data.files("train")
        kept_source, kept_target = (None, None) if base is None else (base.source, base.target)
        if points:
            target = Side(tokenizer("symbols"), Vocabulary.counted({}, specials=SPECIALS))
        if data.frames is not None:
            if not points:
                texts = partial(_targets, data)
                target = learned_side("target", data.target, files, (), texts, data.format, kept_target)
            return cls(None, target, _scale(data, None if base is None else base.frames))
        marked = _marked(data)
        if data.joint:
            kept = kept_source if base is not None and base.joint else None
            both = learned_side("source", data.source, files, marked, partial(_both, data), data.format, kept)
            return cls(both, both)
        source = learned_side("source", data.source, files, marked, partial(_sources, data), data.format, kept_source)
        if not points:
            target = learned_side("target", data.target, files, (), partial(_targets, data), data.format, kept_target)
        return cls(source, target)

    @property
    def joint(self) -> bool:
        """Whether both sides have one vocabulary."""
        return self.source is self.target

    def save(self, folder: Path) -> None:
        """Write what `load` reads."""
        sides = {"": self.target} if self.joint else {"source": self.source, "target": self.target}
        lowercase = {}
        for name, side in sides.items():
            if side is not None:
                side.tokenizer.save(folder / _file("tokenizer", name))
                side.vocabulary.save(folder / _file("vocabulary", name))
                lowercase[name or "joint"] = side.lowercase
        write_json(folder / "texts.json", {"lowercase": lowercase})
        scales = {} if self.frames is None else {"frames": self.frames.to_json()}
        (folder / "scales.json").write_text(json.dumps(scales), "utf-8")

    @classmethod
    def load(cls, folder: Path, data: Seq2SeqData | Vec2SeqData) -> PairTexts:
        """What `save` wrote."""
        path = folder / "texts.json"
        found = read_json(path)
        lowercase = found.get("lowercase") if isinstance(found, dict) else None
        known = ({"joint"}, {"source", "target"}, {"target"})
        if not isinstance(lowercase, dict) or {*lowercase} not in known:
            raise DataError(f"{path} must say for both sides whether text is lower-cased. The file may be damaged.")
        sides = {}
        for name, lower in lowercase.items():
            suffix = "" if name == "joint" else name
            vocabulary = Vocabulary.load(folder / _file("vocabulary", suffix))
            if vocabulary.specials[: len(SPECIALS)] != SPECIALS:
                raise DataError(
                    f"{folder / _file('vocabulary', suffix)}: the special tokens must begin with {SPECIALS}. The "
                    "file may be damaged."
                )
            text = data.target if name == "target" or not isinstance(data, Seq2SeqData) else data.source
            cut = load_tokenizer(folder / _file("tokenizer", suffix), text.tokens)
            sides[name] = Side(cut, vocabulary, bool(lower))
        if "joint" in sides:
            return cls(sides["joint"], sides["joint"])
        return cls(sides.get("source"), sides["target"], Normal.load_all(folder / "scales.json").get("frames"))

    def source_tokens(self, pair: Pair) -> list[str]:
        """What the source is cut into, with all that is put around it."""
        side = self._reads()
        tokens = [feature_token(name) for name in pair.features]
        for number, text in enumerate(pair.source):
            tokens += [SEPARATOR] * (number > 0) + side.split(text)
        return [*tokens, END]

    def source_ids(self, pair: Pair) -> Ids:
        """The ids of `source_tokens`."""
        side = self._reads()
        vocabulary = side.vocabulary
        features = [self._special(feature_token(name)) for name in pair.features]
        parts = [np.array(features, np.int32)]
        for number, text in enumerate(pair.source):
            parts += [np.array([vocabulary.id(SEPARATOR)] * (number > 0), np.int32), vocabulary.ids(side.split(text))]
        return np.concatenate([*parts, np.array([vocabulary.id(END)], np.int32)])

    def unknown_in(self, pair: Pair) -> list[str]:
        """The features and tokens of a source that `source_ids` reads as <unk>, each once."""
        vocabulary, split = self._reads().vocabulary, self._reads().split
        features = [name for name in pair.features if feature_token(name) not in vocabulary.specials]
        tokens = vocabulary.unknown_among(token for text in pair.source for token in split(text))
        return list(dict.fromkeys([*features, *tokens]))

    def source_frames(self, pair: Pair) -> NDArray[np.float32]:
        """The frames of a pair, (S, F), scaled so that each column has mean 0 and spread 1 in training."""
        assert self.frames is not None, "there are frames only where the data has them"
        if pair.frames is None or len(pair.frames) == 0:
            return np.zeros((0, len(self.frames.mean)), np.float32)
        return self.frames.scaled(pair.frames).astype(np.float32)

    def checked(self, found: Iterable[Pair], files: Sequence[str | Path]) -> Iterator[Pair]:
        """The pairs of these files, where frames have as many numbers a step as in training."""
        for pair in found:
            if self.frames is not None and pair.frames is not None:
                self.frames.check(pair.frames, place_of(files[pair.file], pair.line))
            yield pair

    def with_known_features(self, questions: Iterable[Pair], file: str | Path) -> Iterator[Pair]:
        """The questions; one whose features are all new means another column or language, and has no answer."""
        specials = () if self.source is None else self.source.vocabulary.specials[len(SPECIALS) :]
        for pair in questions:
            if pair.features and not {*map(feature_token, pair.features)} & {*specials}:
                named = " or ".join(map(repr, pair.features[:SHOWN]))
                near = did_you_mean(pair.features[0], [token[1:-1] for token in specials[:MOST_NAMED]])
                raise DataError(
                    f"{place_of(file, pair.line)}: the training data has no feature {named}. {near} "
                    "Check that this is the right column."
                )
            yield pair

    def target_tokens(self, text: str) -> list[str]:
        """What a target is cut into, and </s>."""
        return [*self.target.split(text), END]

    def target_ids(self, text: str) -> Ids:
        """The ids of `target_tokens`."""
        vocabulary = self.target.vocabulary
        return np.append(vocabulary.ids(self.target.split(text)), np.int32(vocabulary.id(END)))

    def turned(self, ids: Ids) -> Ids:
        """The ids of a target in the opposite order, its end still at the end.

        Of "a b c </s>" those of "c b a </s>"; turned twice, they are what they were.
        """
        return np.concatenate([ids[-2::-1], ids[-1:]])

    def recut(self, ids: Ids, side: Literal["source", "target"], seed: int) -> Ids:
        """The ids of the same text, its subwords cut anew with their dropout; other tokens stay as they are."""
        return (self._reads() if side == "source" else self.target).recut(ids, seed)

    def copied(self, source_ids: Ids) -> Ids:
        """For each id of the source the one by which the target writes the same token; <unk> where it cannot.

        </s> is </s>; features and <sep> are never written.
        """
        found: Ids = self._copied[source_ids]
        return found

    def too_long(self, source: Sized, target: Sized, data: Seq2SeqData) -> bool:
        """Whether one side, as ids or frames, has more than data.max_length elements; </s> is not counted."""
        if data.max_length is None:
            return False
        return len(source) - (self.source is not None) > data.max_length or len(target) - 1 > data.max_length

    def _reads(self) -> Side:
        assert self.source is not None, "with data.frames the source has no tokens"
        return self.source

    def _special(self, token: str) -> int:
        vocabulary = self._reads().vocabulary
        number = vocabulary.get(token, 0)
        return number if number < len(vocabulary.specials) else vocabulary.id(UNKNOWN)


def feature_token(name: str) -> str:
    """How a feature is written among the tokens; a special, so no text can produce it.

    >>> feature_token("PST")
    '⟨PST⟩'
    """
    return f"⟨{name}⟩"


def _file(what: str, side: str) -> str:
    return f"{what}.{side}.json" if side else f"{what}.json"


def _scale(data: Seq2SeqData, base: Normal | None = None) -> Normal:
    """Mean and spread of each column of the frames in training, or those of a base with as many columns."""
    files, scale = data.files("train"), Normal.counted()
    for pair in pairs(files, data):
        assert pair.frames is not None
        scale.add(pair.frames, place_of(files[pair.file], pair.line))
    return scale.finished().or_kept(base)


def _marked(data: Seq2SeqData) -> tuple[str, ...]:
    """The features of the training files as special tokens, the most frequent first."""
    if not data.features:
        return ()
    features = Counter(name for pair in pairs(data.files("train"), data) for name in pair.features)
    return tuple(feature_token(name) for name in sorted(features, key=lambda name: (-features[name], name)))


def _sources(data: Seq2SeqData, files: Sequence[str]) -> Iterator[str]:
    return (text for pair in pairs(files, data) for text in pair.source)


def _targets(data: Seq2SeqData, files: Sequence[str]) -> Iterator[str]:
    return (pair.target or "" for pair in pairs(files, data))


def _both(data: Seq2SeqData, files: Sequence[str]) -> Iterator[str]:
    return itertools.chain(_sources(data, files), _targets(data, files))


def _counted(
    cut: Tokenizer, lowercase: bool, texts: Callable[[Sequence[str]], Iterable[str]], files: Sequence[str]
) -> Counter[str]:
    """The tokens of the texts of some files."""
    counts: Counter[str] = Counter()
    for text in texts(files):
        counts.update(cut.split(text.lower() if lowercase else text))
    return counts


def learned_side(
    side: str,
    settings: Text,
    files: Sequence[str],
    features: Sequence[str],
    texts: Callable[[Sequence[str]], Iterable[str]],
    format: str | Mapping[str, object] | None,
    base: Side | None = None,
) -> Side:
    """The tokenizer and the vocabulary of one side, or of both; `texts` are those of some files.

    Those of a base that is cut the same way are kept.
    """
    from recurra.text import Subwords

    cut = tokenizer(settings.tokens)
    base = base if base is not None and base.tokenizer.name == cut.name else None
    if base is None:
        cut = cut.trained(text.lower() if settings.lowercase else text for text in texts(files))
    else:
        cut = base.tokenizer
    counts: Counter[str] = Counter()
    for found in over_pieces(files, format, partial(_counted, cut, settings.lowercase, texts)):
        counts.update(found)
    most_frequent = counts.most_common(1)
    if isinstance(cut, Subwords) and settings.min_count == 1:
        for piece in cut.pieces:  # dropout can cut a text into pieces that it has not otherwise
            counts[piece] = max(1, counts[piece])
    learn = Vocabulary.counted if base is None else base.vocabulary.extended
    vocabulary = learn(
        counts, specials=(*SPECIALS, *features), min_count=settings.min_count, max_size=settings.max_size
    )
    if most_frequent and len(vocabulary) == len(vocabulary.specials):
        [(token, count)] = most_frequent
        raise DataError(
            f"no token of the {side} in {', '.join(files)} would be in the vocabulary: the most frequent, {token!r}, "
            f"occurs {count:,} times, but data.{side}.min_count = {settings.min_count} and data.{side}.max_size = "
            f"{'none' if settings.max_size is None else settings.max_size}."
        )
    return Side(cut, vocabulary, settings.lowercase)


def _copies(source: Side | None, target: Side) -> Ids:
    if source is None:
        return np.zeros(0, np.int32)
    table = target.vocabulary.ids(source.vocabulary.tokens)  # specials are unknown to it
    table[source.vocabulary.id(END)] = target.vocabulary.id(END)
    return table
