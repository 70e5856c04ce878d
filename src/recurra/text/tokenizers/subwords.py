"""Text as pieces of words, learnt from text."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self, final

from recurra.errors import ConfigError, DataError
from recurra.named import choose
from recurra.text.surrogates import has_surrogate
from recurra.text.tokenizers.subword_training import MARK, UNSEEN, library, said_in_words, train
from recurra.text.tokenizers.tokenizer import Tokenizer
from recurra.text.vocabulary import UNKNOWN, Vocabulary

if TYPE_CHECKING:
    import tokenizers

_BEFORE_MARK = re.compile(f"(?<!^)(?={MARK})")
_KINDS = {"BPE": "bpe", "Unigram": "unigram"}


@final
class Subwords(Tokenizer):
    """Pieces of words, learnt from texts: byte-pair merges (Sennrich et al. 2016) or a unigram model (Kudo 2018).

    A blank is written ▁ and belongs to the piece that follows it. How many blanks there were is forgotten.

    >>> pieces = Subwords(kind="bpe", size=14).trained(["low lower lowest", "slow  slower"])
    >>> pieces.split("lowest flow")
    ['▁low', 'e', 's', 't', '▁', 'f', 'low']
    >>> pieces.join(['▁low', 'e', 's', 't', '▁', 'f', 'low'])
    'lowest flow'

    Subwords(...) is a wish; `trained` fulfils it, and before that nothing can be split. `size` is the number of pieces
    wished for, one of them for all that is unknown; once trained, of those there are. Characters that were not in the
    training texts are pieces of their own, and unknown to the vocabulary.

    The same texts give the same pieces, in the same order, on every run.

    The library's unigram trainer looks for pieces in the list of different words, each once, so that it may cut short
    common words: at size 4000, the English of Multi30k is 572,262 pieces by unigram and 407,069 by bpe.

    `dropout` is the chance that a merge is passed over (Provilkov et al. 2020), when `split` is given a seed.
    """

    def __init__(self, *, kind: Literal["bpe", "unigram"] = "bpe", size: int = 8000, dropout: float = 0.0) -> None:
        choose(("bpe", "unigram"), kind, "kind")
        self.kind: Literal["bpe", "unigram"] = kind
        self.size = size
        self.dropout = dropout
        self._core: tokenizers.Tokenizer | None = None
        self._merges: dict[tuple[str, str], int] = {}
        if size < 2:
            raise ConfigError(f"the size of subwords must be at least 2, but is {size}.")
        if not 0 <= dropout <= 1:
            raise ConfigError(f"the dropout of subwords must be a probability between 0 and 1, but is {dropout}.")
        if dropout and kind != "bpe":
            raise ConfigError("the dropout of subwords works only with kind = 'bpe'. Leave it out, or set that kind.")

    def trained(self, texts: Iterable[str]) -> Self:
        """The subwords learnt from the texts; what was learnt before is not used.

        It runs on one thread, unless the environment sets TOKENIZERS_PARALLELISM.
        """
        return self._with(train(map(normalised, texts), kind=self.kind, size=self.size), self.dropout)

    def split(self, text: str, *, seed: int | None = None) -> list[str]:
        """The pieces of a text; with a seed, and dropout, one of the many ways to cut it."""
        core, text = self._ready(), normalised(text)
        if seed is not None and self.dropout:
            return self.recut((MARK + word for word in text.split()), seed=seed)
        cut = core.encode(text, add_special_tokens=False)
        pieces: list[str] = cut.tokens
        if UNSEEN not in pieces:
            return pieces
        # The library says only that a piece is unknown; the text still has its letters.
        return [
            text[start:end] if piece == UNSEEN else piece
            for piece, (start, end) in zip(pieces, cut.offsets, strict=True)
        ]

    def recut(self, pieces: Iterable[str], *, seed: int) -> list[str]:
        """The letters of some pieces, which may begin inside a word, cut anew with dropout.

        >>> low = Subwords(size=14, dropout=0.5).trained(["low lower lowest", "slow  slower"])
        >>> low.recut(["low", "▁low"], seed=3)
        ['l', 'o', 'w', '▁', 'lo', 'w']
        """
        chance = random.Random(seed)
        words = _BEFORE_MARK.split("".join(pieces))
        return [piece for word in words for piece in merged(word, self._merges, self.dropout, chance)]

    def join(self, tokens: Iterable[str]) -> str:
        return "".join(tokens).replace(MARK, " ").strip(" ")

    @property
    def pieces(self) -> tuple[str, ...]:
        """The pieces that were learnt."""
        ids = self._ready().get_vocab(with_added_tokens=False)
        return tuple(piece for piece in sorted(ids, key=ids.__getitem__) if piece != UNSEEN)

    def vocabulary(self, *, specials: Sequence[str] = (UNKNOWN,)) -> Vocabulary:
        """The vocabulary of all pieces; a piece spelt like a special is left out, and so unknown.

        >>> Subwords(size=4).trained(["ab ab"]).vocabulary(specials=("<unk>", "</s>")).tokens
        ('<unk>', '</s>', 'a', 'b', '▁')
        """
        return Vocabulary((piece for piece in self.pieces if piece not in specials), specials=specials)

    def to_json(self) -> dict[str, object]:
        """The JSON of the `tokenizers` library, which other programs read too; before training, name and options."""
        if self._core is None:
            return super().to_json()
        value: dict[str, object] = json.loads(self._core.to_str())
        if self.dropout:
            value["model"] = {**_model_of(value), "dropout": self.dropout}
        return value

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The subwords that `to_json` wrote."""
        if not isinstance(value, Mapping) or "model" not in value:
            return super().from_json(value)
        model = _model_of(value)
        kind = _KINDS.get(str(model.get("type")))
        before, dropout = value.get("pre_tokenizer"), model.get("dropout") or 0.0
        if kind is None:
            raise DataError(f"the type of subwords must be BPE or Unigram, but is {model.get('type')!r}.")
        if not isinstance(before, Mapping) or (before.get("type"), before.get("replacement")) != ("Metaspace", MARK):
            raise DataError(
                f"these subwords do not mark spaces with {MARK} (pre_tokenizer Metaspace); train them again."
            )
        if model.get("byte_fallback") or UNSEEN not in (model.get("unk_token"), _unknown_of(model)):
            raise DataError(f"these subwords have no {UNSEEN} token for unknown characters; train them again.")
        if not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
            raise DataError(f"the dropout of these subwords must be between 0 and 1, but is {dropout!r}.")
        # The library would drop merges at every call and without a seed; here that is done by split.
        plain = json.dumps({**value, "model": {**model, "dropout": None}} if kind == "bpe" else value)
        with said_in_words("these subwords cannot be loaded"):
            core = library().Tokenizer.from_str(plain)
        core.no_truncation()
        core.no_padding()
        return cls(kind="bpe" if kind == "bpe" else "unigram")._with(core, float(dropout))

    def __repr__(self) -> str:
        return super().__repr__() + ("" if self._core is not None else ", not trained")

    def _with(self, core: tokenizers.Tokenizer, dropout: float) -> Self:
        fulfilled = type(self)(kind=self.kind, size=core.get_vocab_size(with_added_tokens=False), dropout=dropout)
        fulfilled._core = core
        if dropout:
            merges = _model_of(json.loads(core.to_str()))["merges"]
            fulfilled._merges = {(left, right): rank for rank, (left, right) in enumerate(merges)}
        return fulfilled

    def _ready(self) -> tokenizers.Tokenizer:
        if self._core is None:
            raise ConfigError("these subwords are not trained yet: call trained(texts), or load trained ones.")
        return self._core


def normalised(text: str) -> str:
    """The text with one blank for each run of white space (and of ▁), and none at the ends.

    >>> normalised("  a \\t b▁c ")
    'a b c'
    """
    if has_surrogate(text):
        raise DataError(f"{text[:60]!r} is not valid Unicode: it contains a lone surrogate.")
    return " ".join(text.replace(MARK, " ").split())


def merged(word: str, merges: Mapping[tuple[str, str], int], dropout: float, chance: random.Random) -> list[str]:
    """The pieces of a word: again and again the earliest merge of those that are not passed over.

    >>> merged("abab", {("a", "b"): 0, ("ab", "ab"): 1}, 0.0, random.Random(0))
    ['abab']
    """
    pieces = list(word)
    while True:
        pairs = enumerate(pairwise(pieces))
        ranks = [(merges[pair], place) for place, pair in pairs if pair in merges and chance.random() >= dropout]
        if not ranks:
            return pieces
        _, place = min(ranks)
        pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]


def _model_of(value: Mapping[str, object]) -> dict[str, Any]:
    model = value["model"]
    if not isinstance(model, dict):
        raise DataError(f"the model of subwords must be a JSON object, but is a {type(model).__name__}.")
    return model


def _unknown_of(model: Mapping[str, Any]) -> object:
    """The unknown piece of a unigram model, which is given by its place in the list of (piece, score)."""
    try:
        return model["vocab"][model["unk_id"]][0]
    except (KeyError, IndexError, TypeError):
        return None
