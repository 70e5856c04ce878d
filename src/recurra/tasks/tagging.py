"""Tagging: a label (or a number) for every element of a sequence, and perhaps one for the whole."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from recurra.config import TaggingData, TaggingSettings
from recurra.config.in_words import cell_in_words, layers_in_words, output_in_words
from recurra.data.batches import in_order_of_length
from recurra.data.conllu_file import ConlluSentence, conllu_sentences
from recurra.data.files import extension
from recurra.data.formats import CoNLLU, reader
from recurra.data.formats.conllu import conllu_of
from recurra.data.normal import Counted as Measured
from recurra.data.normal import Normal
from recurra.data.store import Encoded, Rows
from recurra.errors import ConfigError, DataError
from recurra.heads import UNLABELLED
from recurra.metrics.spans import converted, found_scheme, scheme_of
from recurra.named import did_you_mean
from recurra.reading.offsets import detail_of, spans_in, written_in
from recurra.reading.pieces import over_pieces
from recurra.reading.raw_text import RawText, learns_raw_text
from recurra.reading.samples import typed
from recurra.reading.schema import Schema
from recurra.reading.sentences import (
    Sentence,
    cut_of,
    cut_sentence,
    fitting_crf,
    found_schemes,
    matrix,
    names,
    sentences,
    with_columns,
    words_of,
)
from recurra.reading.tables import task_rows, with_columns_of_format
from recurra.reading.word_vectors import word_vectors
from recurra.scoring.counted import Counted
from recurra.scoring.raw_parts import as_written, code_points, found_alike, parted, text_of
from recurra.scoring.raw_scores import raw_scores
from recurra.scoring.tag_scores import Column, Labels, Values, numbered, tag_scores
from recurra.sequences.tagged_text import Columns, Spelt, TaggedText
from recurra.settings import Part, SettingError, name_of
from recurra.tasks.language_model import FEATURES, NO_FEATURES, features_marks, features_of, saved_features
from recurra.tasks.task import (
    START,
    AnswerKind,
    Asked,
    Axes,
    Judgement,
    Loss,
    Moment,
    Prediction,
    Purpose,
    Recurring,
    Task,
    Viewer,
)
from recurra.text.code_points import CodePoints
from recurra.text.edit_rules import applied, rule_of
from recurra.text.json_file import read_json, write_json
from recurra.text.key_values import column_and_key
from recurra.text.vocabulary import UNKNOWN, Vocabulary
from recurra.text.written import Written
from recurra.views.purpose import SERIES
from recurra.views.viewer import MATTERED

if TYPE_CHECKING:
    from recurra.analysis.anatomy import Anatomy
    from recurra.analysis.gates import Stack
    from recurra.analysis.saliency import Probe
    from recurra.config.tagging import TaggingData, TaggingModel
    from recurra.models.character_features import CharacterFeatures
    from recurra.models.tagged import TaggerOutput
    from recurra.models.tagger import Tagger, TaggerBatch
    from recurra.predictors.predictor import Predictor
    from recurra.views.view import View


COMBINATIONS = "combinations.json"
"""Where a run keeps the combinations of tags that are chosen as one."""

MOST_TAGS_OF_A_CRF = 100
"""With more, a softmax is the usual head: a CRF's time and memory grow with the square of the number of tags."""

MOST_TAGS_OF_SPANS = 1000
"""The same for tags that mark spans, where a CRF rules out what the scheme forbids."""


SCORED_TOGETHER = 8192
"""Words of raw text that are tagged together to be scored."""


class _Tally(NamedTuple):
    """What is counted of some sentences."""

    forms: Counter[str]
    tags: list[Counter[Any]]
    labels: Counter[str]
    combinations: Counter[tuple[str, ...]]
    frames: Measured
    values: Measured
    seen: Counter[str]  # of sentences

    @classmethod
    def of(cls, data: TaggingData, together: Sequence[int], files: Sequence[str]) -> Self:
        """Those of some files; the combinations are of the tags in these places."""
        tags: list[Counter[Any]] = [Counter() for _ in data.tags or ()]
        edits = [name in (data.edits or ()) for name in data.tags or ()]
        tally = cls(Counter(), tags, Counter(), Counter(), Normal.counted(), Normal.counted(), Counter())
        for sentence in sentences(files, data) if files else ():
            tally.seen["sentences"] += 1
            tally.forms.update(sentence.tokens)
            for counter, column, is_edit in zip(tags, sentence.tags, edits, strict=True):
                counter.update(zip(sentence.tokens, column, strict=True) if is_edit else column)
            if together:
                tally.combinations.update(zip(*(sentence.tags[place] for place in together), strict=True))
            if sentence.label is not None:
                tally.labels[sentence.label] += 1
            place = f"{files[sentence.file]}:{sentence.line}"
            if sentence.frames is not None:
                tally.frames.add(sentence.frames, place)
            if sentence.values is not None:
                tally.values.add(sentence.values, place)
        return tally

    def join(self, other: Self, place: str) -> None:
        """Count in what was counted of the sentences that follow."""
        self.forms.update(other.forms)
        self.labels.update(other.labels)
        self.combinations.update(other.combinations)
        self.seen.update(other.seen)
        for mine, its in zip(self.tags, other.tags, strict=True):
            mine.update(its)
        self.frames.join(other.frames, place)
        self.values.join(other.values, place)


class Tagging(Task[Sentence, "TaggerBatch", "TaggerOutput"]):
    """Sequence tagging: part of speech, names, slots and intent, or a number for each frame."""

    Settings: ClassVar[type] = TaggingSettings
    name: ClassVar[str] = "tagging"
    reads_apart: ClassVar[bool] = True

    def __init__(
        self,
        settings: TaggingSettings,
        words: Vocabulary,
        characters: Vocabulary,
        tags: Sequence[Vocabulary],
        labels: Vocabulary | None,
        frames: Normal | None,
        values: Normal | None,
        features: CharacterFeatures | None = None,
        raw: RawText | None = None,
        combinations: Sequence[Sequence[int]] = (),
    ) -> None:
        self.features = features
        self.combinations = combinations
        names = settings.data.tags or ()
        self.edits = tuple(name in (settings.data.edits or ()) for name in names)
        check_columns(settings.model, names, settings.data.edits or ())
        self.chosen_heads = {} if settings.model.head != "auto" else _chosen_heads(settings, tags)
        settings = with_heads(settings, self.chosen_heads)
        self.settings = settings
        self.words = words
        self.characters = characters
        self.tags = tuple(tags)
        self.labels = labels
        self.frames = frames
        self.values = values
        self.raw = raw
        self._code_points = CodePoints(characters)
        self._of_spans = [
            not is_edit and found_scheme([each.tokens]) is not None
            for each, is_edit in zip(self.tags, self.edits, strict=True)
        ]
        # A task of one's own may have another [decoding] in place of this task's.
        self._scheme: str | None = getattr(settings.decoding, "scheme", None)
        if self._scheme is not None and not any(self._of_spans):
            raise SettingError(
                f"decoding.scheme = '{self._scheme}' writes tags of spans, such as B-person and I-person, "
                "but no column of this run has such tags: leave it out.",
                ("decoding", "scheme"),
            )
        self._tag_ids = [{tag: number for number, tag in enumerate(each)} for each in self.tags]

    @classmethod
    def resolved(cls, settings: TaggingSettings) -> TaggingSettings:
        data = with_columns_of_format(settings.data)
        path = data.files("train")[0]
        first = next(task_rows(path, data, *names(data)))
        data = with_columns(data, first, path)
        data = dataclasses.replace(data, raw=learns_raw_text(data), cut=cut_of(data))
        settings = dataclasses.replace(settings, data=data)
        return with_head(settings, fitting_crf(data)) if settings.model.head == "crf" and data.tags else settings

    @classmethod
    def encoding(cls, settings: TaggingSettings) -> object:
        found = {"features": features_marks(settings), "raw": settings.evaluation.raw}
        return found if any(found.values()) else None

    @classmethod
    def prepared(cls, settings: TaggingSettings) -> Self:
        return cls._learned(settings, None)

    @classmethod
    def prepared_from(cls, settings: TaggingSettings, base: Self) -> Self:
        return cls._learned(settings, base)

    @classmethod
    def _learned(cls, settings: TaggingSettings, base: Self | None) -> Self:
        """What one look at the training data tells; what a base, from which training starts, has learned is kept."""
        data = settings.data
        check_columns(settings.model, data.tags or (), data.edits or ())
        edits = [name in (data.edits or ()) for name in data.tags or ()]
        together = _places(data.tags or (), settings.model.together)
        tally = _Tally.of(data, together, [])
        for part in over_pieces(data.files("train"), data.format, partial(_Tally.of, data, together)):
            tally.join(part, ", ".join(data.files("train")))
        forms, tags, labels, combinations, frames, values, seen = tally
        if not seen:
            raise DataError(f"{', '.join(data.files('train'))} contains no sentences to train on.")
        words: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        for form, count in forms.items():
            words[form.lower() if data.lowercase else form] += count
            for character in form:
                characters[character] += count
        tags = [rules_of(counter) if is_edit else counter for counter, is_edit in zip(tags, edits, strict=True)]
        for name, counter in zip(data.tags or (), tags, strict=True):
            del counter[""]  # unlabelled
            if not counter:
                raise DataError(
                    f"the column '{name}' of {', '.join(data.files('train'))} is empty: there are no tags to learn."
                )
        kept: dict[str, Vocabulary] = {}  # by the names of the columns
        if base is not None:
            names_there, edits_there = base.settings.data.tags or (), base.edits
            columns = zip(names_there, base.tags, edits_there, strict=True)
            wanted = dict(zip(data.tags or (), edits, strict=True))
            kept = {name: each for name, each, is_edit in columns if wanted.get(name) == is_edit}
        tag_sets = [
            kept[name].extended(counter) if name in kept else Vocabulary.counted(counter, specials=())
            for name, counter in zip(data.tags or (), tags, strict=True)
        ]
        places = [tag_sets[place] for place in together]
        found = _numbered(places, combinations)
        wanted_together = settings.model.together
        if base is not None and base.settings.model.together == wanted_together and kept.keys() >= {*wanted_together}:
            named = [base.tags[place] for place in _places(base.settings.data.tags or (), base.settings.model.together)]
            old = [[each.tokens[tag] for each, tag in zip(named, row, strict=True)] for row in base.combinations]
            first = [[each.id(tag) for each, tag in zip(places, row, strict=True)] for row in old]
            found = [*first, *(row for row in found if row not in first)]
        spelt = Vocabulary() if base is None else base.characters
        known = Vocabulary() if base is None else base.words
        whole = Vocabulary(specials=()) if base is None or base.labels is None else base.labels
        frames_there, values_there = (None, None) if base is None else (base.frames, base.values)
        return cls(
            settings,
            known.extended(words, min_count=data.min_count, max_size=data.max_words),
            spelt.extended(characters),
            tag_sets,
            whole.extended(labels) if data.label is not None else None,
            frames.finished().or_kept(frames_there) if data.frames is not None else None,
            values.finished().or_kept(values_there) if data.values else None,
            features_of(settings, forms.total()),
            RawText.counted(_written(sentences(data.files("train"), data)), None if base is None else base.raw)
            if data.raw
            else None,
            found,
        )

    def noticed_in_training(self, rows: Any) -> str | None:
        said = [self._noticed_of_head(), self._noticed_of_scheme(), self._noticed_of_raw_text()]
        return "; ".join(each for each in said if each is not None) or None

    def _noticed_of_scheme(self) -> str | None:
        wanted = self.settings.data.scheme
        if wanted is None:
            return None
        found = found_schemes(self.settings.data)
        if not found:
            return f"data.scheme = {wanted} changed nothing: no column has tags of spans"
        said = ", ".join(f"'{name}' is written in {scheme.upper()}" for name, scheme in found)
        return f"{said}; trained in {wanted.upper()}"

    def _noticed_of_raw_text(self) -> str | None:
        if self.raw is None or self.raw.is_marked:
            return None
        return (
            "no token of the training data has SpaceAfter=No, so raw text will be cut at blanks alone "
            "(data.raw = false leaves the splitter out)"
        )

    def _noticed_of_head(self) -> str | None:
        if not self.chosen_heads:
            return None
        counts = dict(zip(self.settings.data.tags or (), map(len, self.tags), strict=True))
        by_head: dict[str, list[str]] = {}
        for name, head in self.chosen_heads.items():
            by_head.setdefault(name_of(head), []).append(name)
        if len(counts) == 1:
            [(name, count)] = counts.items()
            if "softmax" not in by_head or self.edits[0]:
                return None
            return (
                f"the column '{name}' has {count:,} tags: a softmax head is used, because a CRF "
                f"would learn {count**2:,} transitions between them (model.head = crf trains it all the same)"
            )
        said = (f"{head} for {', '.join(f'{name} ({counts[name]:,})' for name in of)}" for head, of in by_head.items())
        return f"heads by the number of tags: {'; '.join(said)} (model.heads sets them)"

    def save(self, folder: Path) -> None:
        self.words.save(folder / "vocabulary.words.json")
        self.characters.save(folder / "vocabulary.characters.json")
        for number, tags in enumerate(self.tags):
            tags.save(folder / f"vocabulary.tags{number}.json")
        if self.labels is not None:
            self.labels.save(folder / "vocabulary.labels.json")
        if self.features is not None:
            self.features.save(folder / FEATURES)
        if self.raw is not None:
            self.raw.save(folder)
        if self.combinations:
            write_json(folder / COMBINATIONS, list(map(list, self.combinations)))
        scales = {name: scale.to_json() for name in ("frames", "values") if (scale := getattr(self, name)) is not None}
        (folder / "scales.json").write_text(json.dumps(scales), "utf-8")

    @classmethod
    def load(cls, settings: TaggingSettings, folder: Path) -> Self:
        scales = Normal.load_all(folder / "scales.json")
        # Runs of versions that knew no edits learned lemmas as whole words.
        data = dataclasses.replace(settings.data, edits=settings.data.edits or [])
        settings = dataclasses.replace(settings, data=data)
        return cls(
            settings,
            Vocabulary.load(folder / "vocabulary.words.json"),
            Vocabulary.load(folder / "vocabulary.characters.json"),
            [Vocabulary.load(folder / f"vocabulary.tags{number}.json") for number in range(len(data.tags or ()))],
            Vocabulary.load(folder / "vocabulary.labels.json") if data.label is not None else None,
            scales.get("frames"),
            scales.get("values"),
            saved_features(settings, folder),
            RawText.load(folder) if data.raw else None,
            _loaded_combinations(folder / COMBINATIONS) if settings.model.together else (),
        )

    def read(self, files: Sequence[str | Path]) -> Iterator[Sentence]:
        return sentences(files, self.settings.data)

    def questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Sentence]:
        data = self.settings.data
        if file is not None and extension(file) not in ("txt", "text", ""):
            wanted = dataclasses.replace(
                data, tags=[], edits=[], values=None, label=None, empty="keep", format=self._format_of(file)
            )
            yield from sentences([file], wanted)
            return
        for number, line in enumerate(lines, 1):
            place = f"{file or 'input'}:{number}"
            if data.frames is None:
                if isinstance(line, str):
                    yield cut_sentence(line, data, 0, number)
                else:
                    words = words_of(list(line), place, "tokens")
                    yield Sentence(words, None, (), None, None, 0, number)
                continue
            try:
                frames = json.loads(line) if isinstance(line, str) else line
            except (json.JSONDecodeError, RecursionError) as error:
                raise DataError(f"{place}: each line must be a JSON list of lists of numbers (frames).") from error
            yield Sentence((), matrix(frames, place, "frames", np.float64), (), None, None, 0, number)

    @property
    def cuts_text(self) -> bool:
        return self.raw is not None

    def cut(self, model: Any, pieces: Iterable[str]) -> Iterator[Sentence]:
        if self.raw is None or model.splitter is None:
            raise ConfigError(
                "this run has not learned to find tokens and sentences in raw text. Train it on CoNLL-U with "
                "data.raw = true, or give one sentence a line, its words separated by blanks, without --raw."
            )
        return self.raw.sentences(pieces, model.splitter.ends)

    def _format_of(self, file: str | Path) -> Part | None:
        """A file like those of training is read like them; another by its ending."""
        data = self.settings.data
        return data.format if extension(file) == extension(data.files("train")[0]) else None

    def schema(self) -> Schema:
        return Schema("text" if self.settings.data.frames is None else "frames")

    def sent(self, example: Sentence) -> object:
        return " ".join(example.tokens) if example.frames is None else typed(example.frames)

    def encode(self, example: Sentence) -> Encoded:
        if self.features is None:
            return self._encoded(example)
        [encoded] = self.encode_all([example])
        return encoded

    def encode_all(self, examples: Iterable[Sentence]) -> Iterator[Encoded]:
        if self.features is None:
            return super().encode_all(examples)
        return self.features.added((self._encoded(example), [example.tokens]) for example in examples)

    def _encoded(self, example: Sentence) -> dict[str, NDArray[Any]]:
        encoded: dict[str, NDArray[Any]] = {"place": np.array([example.file, example.line], np.int64)}
        if example.frames is not None and self.frames is not None and len(example.frames) == 0:
            encoded["frames"] = np.zeros((0, len(self.frames.mean)), np.float32)
        elif example.frames is not None:
            if self.frames is None or example.frames.shape[1] != len(self.frames.mean):
                size = "words" if self.frames is None else f"frames of {len(self.frames.mean)} numbers"
                raise DataError(
                    f"line {example.line}: found frames of {example.frames.shape[1]} numbers, but the model "
                    f"expects {size}."
                )
            encoded["frames"] = self.frames.scaled(example.frames).astype(np.float32)
        else:
            lower = self.settings.data.lowercase
            encoded["words"] = self.words.ids(map(str.lower, example.tokens) if lower else example.tokens)
            encoded["characters"], encoded["widths"] = self._code_points.spelt(example.tokens)
        for number, ids in enumerate(self._tag_ids):
            if number < len(example.tags):
                tags: Iterable[str] = example.tags[number]
                if self.edits[number]:
                    tags = map(rule_or_none, example.tokens, tags)
                encoded[f"tags{number}"] = np.array([ids.get(tag, UNLABELLED) for tag in tags], np.int32)
            else:
                encoded[f"tags{number}"] = np.full(len(example), UNLABELLED, np.int32)
        if self.labels is not None:
            label = UNLABELLED if example.label is None else self.labels.get(example.label, UNLABELLED)
            encoded["label"] = np.array([label], np.int32)
        if self.values is not None:
            shape = (len(example), len(self.values.mean))
            is_known = example.values is not None and len(example) > 0
            values = self.values.scaled(example.values) if is_known else np.full(shape, np.nan)  # type: ignore[arg-type]
            encoded["values"] = values.astype(np.float32)
        if self.raw is not None and example.written is not None and example.tags:
            encoded["written"], encoded["written_ends"] = self.raw.encoded(example.written)
            if self.settings.evaluation.raw:
                encoded["written_text"] = code_points(example.written.in_text)
        return encoded

    def check(self) -> None:
        if self.settings.evaluation.raw and self.raw is None:
            raise SettingError(
                "evaluation.raw = true needs a run that finds tokens and sentences in raw text: train it on CoNLL-U "
                "with data.raw = true.",
                ("evaluation", "raw"),
            )

    def chosen(self, store: Any, numbers: NDArray[np.int64]) -> Sequence[Encoded]:
        rows = super().chosen(store, numbers)
        return rows if self.raw is None else Rows(rows, self.raw.windows(store, numbers))

    def not_in_vocabulary(self, example: Sentence) -> list[str]:
        return self._unknown_symbols(example.tokens)

    def _unknown_symbols(self, words: Sequence[str]) -> list[str]:
        """What the network reads as unknown, of characters where it reads them, else of words."""
        if self.spells:
            return self.characters.unknown_among("".join(words))
        if self.features is not None:  # a word that has no vector is read by its characters all the same
            return []
        return self.words.unknown_among(map(str.lower, words) if self.settings.data.lowercase else words)

    def lengths(self, rows: Any) -> NDArray[np.int64]:
        found: NDArray[np.int64] = rows.lengths("words" if self.frames is None else "frames")
        return found

    @property
    def spells(self) -> bool:
        """Whether words are read by their characters; frames of numbers have none."""
        return self.frames is None and self.settings.model.characters.cell != "none"

    def batch(self, rows: Sequence[Encoded]) -> TaggerBatch:
        from recurra.models.tagger import batched

        return batched(rows, columns=len(self.tags), spelling=self.spells, features=self.features)

    @property
    def draws_in_batch(self) -> bool:
        return False

    def build(self) -> Tagger:
        from recurra.models.tagger import Tagger, Together

        model = self.settings.model
        together = _places(self.settings.data.tags or (), model.together)
        return Tagger(
            model,
            words=len(self.words),
            unknown=self.words.id(UNKNOWN),
            characters=len(self.characters),
            tags=[vocabulary.tokens for vocabulary in self.tags],
            heads=self.heads(),
            loss_weights=[float(of_column(model.loss_weights, name, 1.0)) for name in self.settings.data.tags or ()],
            labels=self.labels.tokens if self.labels is not None else None,
            frame_size=len(self.frames.mean) if self.frames is not None else None,
            value_size=len(self.values.mean) if self.values is not None else None,
            features=0 if self.features is None else self.features.size,
            alphabet=len(self.raw.alphabet) if self.raw is not None else None,
            together=Together(tuple(together), self.combinations) if together else None,
        )

    def heads(self) -> list[Part]:
        """The head of each column."""
        model = self.settings.model
        return [of_column(model.heads, name, model.head) for name in self.settings.data.tags or ()]

    def initialise(self, model: Any) -> str | None:
        path = self.settings.data.vectors
        if path is None:
            return None
        if model.read_words.embedding is None:
            raise SettingError("data.vectors needs word embeddings: set model.embedding above 0.", ("data", "vectors"))
        vectors = word_vectors(path, self.words, self.settings.model.embedding)
        model.read_words.put(vectors.ids, vectors.values)
        return vectors.said

    def axes(self) -> Mapping[str, Axes]:
        found: dict[str, Axes] = {
            "read_words.embedding.weight": (self.words.tokens, None),
            "read_words.spelling.embedding.weight": (self.characters.tokens, None),
        }
        for number, tags in enumerate(self.tags):
            head = f"heads.{number}"
            found |= {f"{head}.readout.weight": (tags.tokens, None), f"{head}.readout.bias": (tags.tokens,)}
            found |= {f"{head}.transitions": (tags.tokens, tags.tokens)}
            found |= {f"{head}.start": (tags.tokens,), f"{head}.end": (tags.tokens,)}
        if self.labels is not None:
            found |= {"label.weight": (self.labels.tokens, None), "label.bias": (self.labels.tokens,)}
        if self.raw is not None:
            found["splitter.embedding.weight"] = (self.raw.alphabet.vocabulary.tokens, None)
        return found

    def loss(self, model: Any, batch: TaggerBatch, moment: Moment = START) -> Loss:
        return Loss(*model.loss(batch))

    def recurring(self, batch: TaggerBatch) -> Recurring:
        from recurra.models.tagger import recurring_sentences

        return Recurring(recurring_sentences(batch), batch.known.labels)

    def predict(self, model: Any, batch: TaggerBatch, *, detail: bool = False) -> list[TaggerOutput]:
        found: list[TaggerOutput] = model.predict(batch, detail=detail)
        return found

    def predictor(self) -> Predictor[TaggerOutput]:
        from recurra.predictors.tagging import TaggingPredictor

        if self.features is not None:
            raise ConfigError(NO_FEATURES)
        if self.settings.model.together:
            raise ConfigError(
                "taggers that choose the tags of several columns as one (model.together) cannot be exported yet: train "
                "one without that setting."
            )
        return TaggingPredictor(
            words=len(self.words),
            characters=len(self.characters) if self.spells else None,
            frame_size=None if self.frames is None else len(self.frames.mean),
            columns=len(self.tags),
        )

    def offline(self) -> Mapping[str, Any]:
        from recurra.predictors import offline

        if self.frames is not None or self.values is not None or self.labels is not None or any(self.edits):
            raise offline.not_yet("a tagger of series, values, lemmas or labels of whole sentences")
        if self._scheme is not None:
            raise offline.not_yet("a tagger that writes another scheme than it has learned (decoding.scheme)")
        return offline.tagging(
            self.words,
            self.characters if self.spells else None,
            list(zip(self.settings.data.tags or (), self.tags, strict=True)),
            lowercase=self.settings.data.lowercase,
        )

    def to_combine(self, model: Any, batch: TaggerBatch) -> list[TaggerOutput]:
        found: list[TaggerOutput] = model.predict(batch, shares=True)
        return found

    def combined(self, example: Sentence, outputs: Sequence[TaggerOutput]) -> TaggerOutput:
        from recurra.models.tagged import combined

        if self.settings.evaluation.raw:
            raise ConfigError("evaluation.raw = true scores one run, not an ensemble: name one of them.")
        return combined(outputs)

    def units(self) -> object:
        labels = None if self.labels is None else self.labels.tokens
        scale = None if self.values is None else self.values.to_json()
        return self.settings.data.tags, [vocabulary.tokens for vocabulary in self.tags], labels, scale

    def outputs(self, model: Any, rows: Sequence[Encoded], *, device: str) -> list[Any] | None:
        """Where raw text is scored, what was found in the text of all rows, each with the part that begins in it."""
        if not self.settings.evaluation.raw:
            return None
        if any("written_text" not in row for row in rows):
            raise DataError("evaluation.raw = true needs CoNLL-U, which says how its sentences are written.")
        from recurra.padding import fitted

        parts = [text_of(row["written_text"]) for row in rows]
        found = list(self.cut(model, parts))
        encoded = [self.encode(sentence) for sentence in found]
        outputs: list[Any] = [None] * len(found)
        for numbers in in_order_of_length(self.lengths(Rows.of(encoded)), tokens=SCORED_TOGETHER):
            batch = fitted(self.batch([encoded[number] for number in numbers]), model)
            for number, output in zip(numbers, self.predict(model, batch), strict=True):
                outputs[number] = output
        tags = [
            [self._said(column, sentence, output) for column in range(len(self.tags))]
            for sentence, output in zip(found, outputs, strict=True)
        ]
        return parted(list(map(len, parts)), found, tags, columns=len(self.tags))

    def scores_of_parts(self, model: Any, examples: Sequence[Sentence]) -> Mapping[str, float]:
        """What the splitter finds in the raw text of validation data: it learns from other errors than the tagger."""
        if self.raw is None or not examples or any(example.written is None for example in examples):
            return {}
        found = self.cut(model, (example.written.in_text for example in examples if example.written is not None))
        return {"splitter": found_alike(examples, list(found))}

    def answer(self, example: Sentence, output: TaggerOutput) -> Prediction:
        detail: dict[str, Any] = {"tokens": list(example.tokens)}
        parts = []
        if example.written is not None:
            detail |= detail_of(example.written)
        for number, column in enumerate(self.settings.data.tags or ()):
            tags = self._said(number, example, output)
            detail[column] = said = self._in_scheme(number, tags)
            parts.append(" ".join(said))
            if example.written is not None and scheme_of(self.tags[number].tokens) is not None:
                detail["spans"] = [*detail.get("spans", ()), *spans_in(example.written, tags)]
        if output.values is not None and self.values is not None:
            values = self.values.unscaled(output.values)
            detail["values"] = values.tolist()
            parts.append(" ".join(",".join(f"{number:.6g}" for number in step) for step in values))
        if self.labels is not None and output.label is not None:
            detail["label"] = self.labels.tokens[output.label]
            parts.append(detail["label"])
        if output.probabilities is not None:
            detail["probabilities"] = [[round(float(p), 6) for p in column] for column in output.probabilities]
        if output.label_probability is not None:
            detail["label_probability"] = round(output.label_probability, 6)
        return Prediction(" ".join(example.tokens), "\t".join(parts), output.score, example.line, detail)

    def printed(self, answer: Prediction, format: str, number: int) -> str:
        _check_format(format)
        if self.frames is not None:
            raise ConfigError(f"--format {format} writes words, but this run tags frames of numbers: use --json.")
        if format == "conll":
            return self._in_conll(answer)
        written = written_in(answer.detail)
        bare = conllu_of(written, answer.detail["tokens"], {}, number, document=number == 1 and written.opens)
        return self._with_answer(ConlluSentence(tuple(bare.split("\n")), 1), answer).removesuffix("\n")

    def printed_file(self, file: str | Path | None, answers: Iterable[Prediction], format: str) -> Iterator[str]:
        _check_format(format)
        if format == "conll" or file is None or reader(file, self._format_of(file)).__class__ is not CoNLLU:
            asked = (answer for answer in answers if self.frames is not None or answer.detail["tokens"])
            return super().printed_file(file, asked, format)
        return map(self._with_answer, conllu_sentences(file), answers)

    def printed_raw(
        self, model: Any, pieces: Iterable[str], format: str, told: Callable[[int, Sequence[str]], None]
    ) -> Iterator[str] | None:
        """Where each word can be read by itself, without an object for each; the same text as otherwise."""
        _check_format(format)
        from recurra.models.tagger import Tagger
        from recurra.models.word_table import WordTable

        columns = Columns.of(self.settings.data.tags or (), [each.tokens for each in self.tags], self.edits)
        if format != "conllu" or self._scheme is not None:
            return None
        if columns is None or self.raw is None or type(model) is not Tagger or not WordTable.can_hold(model):
            return None
        assert model.splitter is not None, "where raw text is learned, there is one"
        text = TaggedText(columns, lambda: WordTable(model), self._spelt)

        def tell(number: int, words: Sequence[str]) -> None:
            if unknown := self._unknown_symbols(words):
                told(number, unknown)

        return text.written(self.raw.cuts(pieces, model.splitter.ends), tell)

    def _spelt(self, forms: Sequence[str]) -> Spelt:
        words = self.words.ids(map(str.lower, forms) if self.settings.data.lowercase else forms)
        return Spelt(words, *self._code_points.spelt(forms))

    def _with_answer(self, sentence: ConlluSentence, answer: Prediction) -> str:
        """A sentence of CoNLL-U with the columns that were predicted; all else stays."""
        columns = {name: answer.detail[name] for name in self.settings.data.tags or ()}
        return sentence.with_columns(columns, {"label": answer.detail["label"]} if self.labels is not None else {})

    def _in_conll(self, answer: Prediction) -> str:
        """A word and its tags a line, as data.format = "conll" reads them; an empty line comes after it."""
        for what, is_said in (
            ("the label of a whole sentence", self.labels is not None),
            ("numbers of words (data.values)", self.values is not None),
        ):
            if is_said:
                raise ConfigError(f"--format conll has no place for {what}, which this run also predicts: use --json.")
        columns = (answer.detail[name] for name in self.settings.data.tags or ())
        rows = zip(answer.detail["tokens"], *columns, strict=True)
        return "".join("\t".join(cell or "_" for cell in row) + "\n" for row in rows)

    def _in_scheme(self, column: int, tags: Sequence[str]) -> list[str]:
        """Tags of a column as decoding.scheme wants them written."""
        if self._scheme is None or not self._of_spans[column]:
            return list(tags)
        return converted(tags, self._scheme)

    @property
    def unused_in_scores(self) -> Collection[str]:
        return ("scheme",)  # tags are scored as they were learned, and spans are the same in all schemes

    @property
    def unused_decoding(self) -> Collection[str]:
        return () if any(self._of_spans) else ("scheme",)

    def _said(self, column: int, example: Sentence, output: TaggerOutput) -> list[str]:
        """What an output says in one column: tags, or what their rules make of the words."""
        tokens = self.tags[column].tokens
        tags = [tokens[number] for number in output.tags[column].tolist()]
        return list(map(applied, tags, example.tokens)) if self.edits[column] else tags

    def counted(self, examples: Sequence[Sentence], outputs: Sequence[Any]) -> Counted:
        if self.settings.evaluation.raw:
            items = [(example.file, example.line) for example in examples]
            return raw_scores(items, as_written(examples), outputs, self.settings.data.tags or ())
        lengths = [len(example) for example in examples]
        unknown = None if self.frames is not None else self._unknown(examples)
        columns = []
        for number, (name, vocabulary) in enumerate(zip(self.settings.data.tags or (), self.tags, strict=True)):
            wanted = (example.tags[number] for example in examples)
            if self.edits[number]:
                words: dict[str, int] = {}
                gold = numbered(wanted, words)
                found = numbered(map(partial(self._said, number), examples, outputs), words)
                columns.append(Column(name, list(words), gold, found, False, unknown, is_open=True))
                continue
            labels = {tag: place for place, tag in enumerate(vocabulary.tokens)}
            gold = numbered(wanted, labels)
            found = np.concatenate([output.tags[number] for output in outputs])
            columns.append(Column(name, list(labels), gold, found, scheme_of(vocabulary.tokens) is not None, unknown))
        columns = self._with_whole_cells(columns)
        values = labels_of_all = None
        if self.values is not None:
            values = Values(*zip(*map(self._known_values, examples, outputs), strict=True))
        if self.labels is not None:
            said = [self.labels.tokens[output.label or 0] for output in outputs]
            labels_of_all = Labels([example.label or "" for example in examples], said)
        items = [(example.file, example.line) for example in examples]
        return tag_scores(items, lengths, columns, values, labels_of_all)

    def _with_whole_cells(self, columns: Sequence[Column]) -> list[Column]:
        """The columns; before several keys of one, as feats:Case, the cell as a whole: right where every key is."""
        keys: dict[str, list[Column]] = {}
        for each in columns:
            column, key = column_and_key(each.name)
            if key is not None:
                keys.setdefault(column, []).append(each)
        several = {column: parts for column, parts in keys.items() if len(parts) > 1}
        found: list[Column] = []
        for each in columns:
            column, _ = column_and_key(each.name)
            parts = several.get(column, ())
            if parts and each is parts[0]:
                is_known = np.all([part.gold >= 0 for part in parts], axis=0)
                is_right = np.all([part.gold == part.found for part in parts], axis=0)
                gold, said = np.where(is_known, 0, -1), np.where(is_right, 0, 1)
                found.append(Column(column, ["right", "wrong"], gold, said, False, each.unknown, is_open=True))
            found.append(each._replace(is_part=bool(parts)) if column != each.name else each)
        return found

    def _known_values(self, example: Sentence, output: TaggerOutput) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The numbers of an example that are known, and what was said of them."""
        if example.values is None or output.values is None or self.values is None:
            return np.zeros(0), np.zeros(0)
        is_known = ~np.isnan(example.values)
        return example.values[is_known], self.values.unscaled(output.values)[is_known]

    # Views

    def steps(self, example: Sentence) -> list[str]:
        return super().steps(example) if self.frames is not None else list(example.tokens)

    def stacks(self, model: Any) -> dict[str, Stack]:
        return {} if model.recurrent is None else {"recurrent": model.recurrent}

    def viewers(self) -> dict[str, Viewer]:
        saliency = Viewer(self.contributions, longest=30, work=lambda n: n * n, title=MATTERED)
        return {"saliency": saliency, **super().viewers()}

    def contributions(self, asked: Asked) -> View:
        """What speaks for the answer. (torch)"""
        from recurra.analysis.saliency import contributions

        return contributions(self.probe(asked))

    def probe(self, asked: Asked) -> Probe:
        """What speaks for each tag. (torch)"""
        if not self.tags:
            raise ConfigError(f"saliency needs predicted tags, but {asked.run} predicts none.")
        batch = self.copies(asked)
        [output] = self.predict(asked.model, batch(1))
        names = self._said(0, asked.example, output)
        model: Any = asked.model
        return model.probe(batch, self.steps(asked.example), output.tags[0], names)

    def anatomy(self, model: Any) -> Anatomy:
        from recurra.analysis.anatomy import UnrolledLevel

        chained = "crf" if "crf" in map(name_of, self.heads()) else ""
        found = super().anatomy(model)._replace(chained=chained)
        return found if self.stacks(model) else found._replace(reader=[UnrolledLevel(self.settings.model.encoder)])

    def judge(self, examples: Sequence[Sentence]) -> Callable[[Sentence, Prediction], Judgement | None]:
        return self._verdict

    def _verdict(self, example: Sentence, answer: Prediction) -> Judgement | None:
        """None where numbers are wanted, or not all of the answer is known."""
        if self.values is not None or not all(all(tags) for tags in example.tags):
            return None
        if self.labels is not None and not example.label:
            return None
        wrong = []
        for number, (column, gold) in enumerate(zip(self.settings.data.tags or (), example.tags, strict=True)):
            tags = self._in_scheme(number, gold)
            pairs = zip(example.tokens or self.steps(example), tags, answer.detail[column], strict=True)
            wrong += [f"{token} is {tag}" for token, tag, said in pairs if tag != said]
        if self.labels is not None and answer.detail["label"] != example.label:
            wrong.append(f"{example.label} is right")
        return Judgement(not wrong, ", ".join(wrong))

    def answer_kind(self) -> AnswerKind:
        return "tags"

    def purpose(self) -> Purpose:
        if self.frames is None:
            return Purpose("gives each token of a sentence its tag", rows="sentences")
        kind = extension(self.settings.data.files("train")[0])
        return SERIES._replace(does="gives each step of a series its tag", asked=f"input.{kind}")

    def _unknown(self, examples: Sequence[Sentence]) -> NDArray[np.bool_]:
        """(T,): which words of all examples have no vector of their own."""
        tokens = [token for example in examples for token in example.tokens]
        unknown = {
            token for token in {*tokens} if (token.lower() if self.settings.data.lowercase else token) not in self.words
        }
        return np.fromiter((token in unknown for token in tokens), bool, len(tokens))

    def described(self) -> str:
        model = self.settings.model
        parts = []
        if self.frames is not None:
            parts.append(f"frames of {len(self.frames.mean)} numbers")
        else:
            parts += [f"{len(self.words):,} word embeddings of size {model.embedding}"] if model.embedding else []
            if self.spells:
                spelling = cell_in_words(model.characters.cell, bidirectional=True)
                parts.append(layers_in_words(f"character {spelling}", model.characters.hidden))
            if self.features is not None:
                sizes = " + ".join(str(reader.size) for reader in self.features.readers)
                parts.append(f"features of character language models {sizes}")
        if model.encoder == "rnn":
            cell = cell_in_words(model.cell, bidirectional=model.bidirectional, direction=model.direction)
            parts.append(layers_in_words(cell, model.hidden, model.layers, model.mix))
        elif model.encoder == "cnn":
            own = model.convolution
            parts.append(layers_in_words("CNN", len(own.widths) * own.filters, own.layers))
        else:
            name = f"{'' if model.bidirectional else 'causal '}Transformer"
            parts.append(layers_in_words(name, model.widths[0], len(model.widths)))
        columns = self.settings.data.tags or ()
        kinds = ["edits" if is_edit else "tags" for is_edit in self.edits]
        parts += [
            f"{output_in_words(head)} over {len(vocabulary)} {kind}{f' ({column})' if len(columns) > 1 else ''}"
            for head, column, vocabulary, kind in zip(self.heads(), columns, self.tags, kinds, strict=True)
        ]
        if self.combinations:
            parts.append(f"{len(self.combinations):,} combinations of {', '.join(model.together)}")
        parts += [f"{len(self.values.mean)} numbers per step"] if self.values is not None else []
        parts += [f"{len(self.labels)} sequence labels"] if self.labels is not None else []
        if self.raw is not None:
            splitter = model.splitter
            cell = cell_in_words(splitter.cell, bidirectional=True)
            parts.append(layers_in_words(f"for raw text a character {cell}", splitter.hidden, splitter.layers))
        return ", ".join(parts)


def _check_format(format: str) -> None:
    if format not in ("conllu", "conll"):
        raise ConfigError(f"--format {format} is not known: tagging writes conllu or conll.")


def of_column(table: Mapping[str, Any], name: str, usual: Any) -> Any:
    """What a table of settings says of a column; of feats:Case also by the name feats alone."""
    return table.get(name, table.get(column_and_key(name)[0], usual))


def check_columns(model: TaggingModel, names: Sequence[str], edits: Sequence[str] = ()) -> None:
    """Refuse heads and weights of columns that are not learned, and columns that cannot be chosen as one."""
    check_together(model, names, edits)
    known = dict.fromkeys([*names, *(column_and_key(name)[0] for name in names)])
    for setting in ("heads", "loss_weights"):
        for name in getattr(model, setting):
            if name not in known:
                raise SettingError(
                    f"model.{setting}: '{name}' is not one of data.tags. {did_you_mean(name, known)}",
                    ("model", setting, name),
                )


def check_together(model: TaggingModel, names: Sequence[str], edits: Sequence[str]) -> None:
    """Refuse columns that cannot be chosen as one."""
    where = ("model", "together")
    for name in model.together:
        if name not in names:
            raise SettingError(f"model.together: '{name}' is not one of data.tags. {did_you_mean(name, names)}", where)
        if name in edits:
            raise SettingError(
                f"model.together: '{name}' is learned as edits of words (data.edits), which are not chosen with tags. "
                "Leave it out.",
                where,
            )
        head = of_column(model.heads, name, model.head)
        if name_of(head) not in ("auto", "softmax"):
            raise SettingError(
                f"model.together: columns that are chosen as one have softmax heads, but '{name}' has "
                f"'{name_of(head)}'. Leave it out, or set its head to softmax.",
                where,
            )
    if len(set(model.together)) == 1 or len(set(model.together)) < len(model.together):
        raise SettingError("model.together needs two or more different columns.", where)


def _raw_text(data: TaggingData, base: Tagging | None) -> RawText | None:
    """What the training data tells of running text, beside what a base has learned of it."""
    if not data.raw:
        return None
    return RawText.counted(_written(sentences(data.files("train"), data)), None if base is None else base.raw)


def _places(names: Sequence[str], together: Sequence[str]) -> list[int]:
    """Which of the columns are chosen as one."""
    return [number for number, name in enumerate(names) if name in together]


def _numbered(tags: Sequence[Vocabulary], combinations: Counter[tuple[str, ...]]) -> list[list[int]]:
    """Combinations of tags by the numbers of tags, the most frequent first; those with an unknown tag are left out."""
    ids = [{tag: number for number, tag in enumerate(each)} for each in tags]
    ranked = sorted(combinations.items(), key=lambda item: (-item[1], item[0]))
    return [
        [known[tag] for known, tag in zip(ids, combination, strict=True)]
        for combination, _ in ranked
        if all(combination)
    ]


def _loaded_combinations(path: Path) -> list[list[int]]:
    found = read_json(path)
    if not isinstance(found, list) or not found:
        raise DataError(f"{path} must hold a list of combinations of tags.")
    return found


def _chosen_heads(settings: TaggingSettings, tags: Sequence[Vocabulary]) -> dict[str, Part]:
    """The head of each column that has none, where it is to be chosen."""
    data, found = settings.data, dict[str, Part]()
    for name, vocabulary in zip(data.tags or (), tags, strict=True):
        if of_column(settings.model.heads, name, None) is not None:
            continue
        most = MOST_TAGS_OF_A_CRF if scheme_of(vocabulary.tokens) is None else MOST_TAGS_OF_SPANS
        # Neighbours tell little about edits, and the keys of a column are many.
        is_crf = len(vocabulary) <= most and name not in (data.edits or ()) and column_and_key(name)[1] is None
        is_crf = is_crf and name not in settings.model.together
        found[name] = fitting_crf(data, name) if is_crf else "softmax"
    return found


def with_heads(settings: TaggingSettings, chosen: Mapping[str, Part]) -> TaggingSettings:
    """The settings with the heads that were chosen: as model.head where it is one, else each by its column."""
    if not chosen:
        return settings
    first, *others = chosen.values()
    if all(other == first for other in others):
        return with_head(settings, first)
    heads = {**settings.model.heads, **chosen}
    return dataclasses.replace(settings, model=dataclasses.replace(settings.model, heads=heads))


def with_head(settings: TaggingSettings, head: Part) -> TaggingSettings:
    return dataclasses.replace(settings, model=dataclasses.replace(settings.model, head=head))


def _written(found: Iterable[Sentence]) -> Iterator[tuple[Written, tuple[str, ...]]]:
    """Sentences as they stand in their text, and their words."""
    return ((sentence.written, sentence.tokens) for sentence in found if sentence.written is not None)


def rule_or_none(form: str, lemma: str) -> str:
    """The rule that makes a lemma of a form; "" where the lemma is not known."""
    return rule_of(form, lemma) if lemma else ""


def rules_of(counted: Counter[tuple[str, str]]) -> Counter[str]:
    """How often each rule makes a lemma of a form."""
    rules: Counter[str] = Counter()
    for (form, lemma), count in counted.items():
        rules[rule_or_none(form, lemma)] += count
    return rules
