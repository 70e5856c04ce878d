"""Words as what language models of characters have read by then (Akbik et al. 2018).

A sentence is read as characters, its words set apart by blanks, from a line end on. Of its T characters c_1 … c_T:

    forward language model:   h→_t after c_1 … c_t     a word of characters s … e is  h→_e, after its last character
    backward language model:  h←_t after c_T … c_t     and                            h←_s, before its first one
    features of the word      [h→_e; h←_s]             with both; h: the output of the model's last layer

The language models stay as they are, so features are computed once and kept, in float16.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recurra.data.batches import in_order_of_length
from recurra.data.store import Encoded, Rows
from recurra.models.language_model import NextToken
from recurra.models.rows import padded
from recurra.padding import Padded

AT_ONCE = 1 << 14
"""Characters of sentences that are read together, padding counted."""

EXAMPLES = 256
"""Examples whose features are computed one after the other before any of them is given out."""

KEPT = "kept.json"


class CharacterReader(NamedTuple):
    """A trained language model of characters that reads sentences."""

    model: NextToken
    ids: Callable[[str], NDArray[np.int32]]  # of the characters of a text
    end: int  # of the line end, which is read first
    lowercase: bool
    backward: bool
    save: Callable[[Path], None]  # all that it takes to make this again
    mark: str  # the same for the same weights

    @property
    def size(self) -> int:
        """H, the numbers of a word."""
        return self.model.stack.output_size

    @torch.no_grad()
    def read(self, sentences: Sequence[Sequence[str]]) -> list[NDArray[np.float16]]:
        """(T, H) for the T words of each sentence."""
        texts, places = zip(*map(self._laid_out, sentences), strict=True) if sentences else ((), ())
        found: list[Any] = [None] * len(sentences)
        device = next(self.model.parameters()).device
        lengths = np.array([len(text) for text in texts], np.int64)
        for numbers in in_order_of_length(lengths, tokens=AT_ONCE):
            read = padded(Rows([{"ids": texts[number]} for number in numbers]), "ids", np.int64)
            outputs, _ = self.model(Padded(read.values.to(device), read.lengths))
            for row, number in enumerate(numbers):
                words = torch.from_numpy(places[number]).to(device)
                found[number] = outputs.values[row, words].half().cpu().numpy()
        return found

    def _laid_out(self, words: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The characters in the order in which they are read, and at which of them each word is known."""
        words = [word.lower() for word in words] if self.lowercase else words
        widths = np.array([len(word) for word in words], np.int64)
        starts = np.cumsum(widths + 1) - widths - 1
        text = " ".join(words)
        if self.backward:
            text, known = text[::-1], len(text) - starts
        else:
            known = starts + widths
        return np.concatenate([[self.end], self.ids(text)]).astype(np.int32), known


class CharacterFeatures:
    """The features of words by one language model, or by two that read in opposite directions.

    Encoded examples hold them, if `kept`; otherwise they hold their words, and features are computed for each batch.
    """

    def __init__(self, readers: Sequence[CharacterReader], *, kept: bool = True) -> None:
        self.readers = tuple(readers)
        self.size = sum(reader.size for reader in readers)
        self.kept = kept

    def within(self, gigabytes: float, words: int) -> CharacterFeatures:
        """The same, kept only if those of so many words take no more disk than that."""
        return CharacterFeatures(self.readers, kept=2 * words * self.size <= gigabytes * 1e9)

    def of(self, sentences: Sequence[Sequence[str]]) -> list[NDArray[np.float16]]:
        """(T, F) for the words of each sentence."""
        parts = [reader.read(sentences) for reader in self.readers]
        return [np.concatenate(each, axis=1) for each in zip(*parts, strict=True)]

    def added(self, examples: Iterable[tuple[Encoded, Sequence[Sequence[str]]]]) -> Iterator[Encoded]:
        """Encoded examples with the features of their sentences, one after another, computed for many at once."""
        left = iter(examples)
        while some := list(itertools.islice(left, EXAMPLES)):
            if not self.kept:
                yield from ({**row, **as_code_points(sentences)} for row, sentences in some)
                continue
            found = iter(self.of([sentence for _, sentences in some for sentence in sentences]))
            for row, sentences in some:
                yield {**row, "features": np.concatenate([next(found) for _ in sentences])}

    def batched(self, rows: Rows) -> Tensor:
        """(B, T, F): the features of encoded examples."""
        if not self.kept:
            each = [sentences_in(row) for row in rows]
            found = iter(self.of([sentence for sentences in each for sentence in sentences]))
            rows = Rows({"features": np.concatenate([next(found) for _ in sentences])} for sentences in each)
        return padded(rows, "features", np.float16).values

    def save(self, folder: Path) -> None:
        """Write the language models to folders of their own."""
        for number, reader in enumerate(self.readers):
            reader.save(folder / str(number))
        (folder / KEPT).write_text(json.dumps(self.kept), "utf-8")


def as_code_points(sentences: Sequence[Sequence[str]]) -> Encoded:
    """Words as numbers, from which `sentences_in` makes them again."""
    words = [word for sentence in sentences for word in sentence]
    text = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), "<u4")
    widths, lengths = ([len(each) for each in some] for some in (words, sentences))
    return {"text": text, "text_widths": np.array(widths, np.int64), "text_lengths": np.array(lengths, np.int64)}


def sentences_in(row: Encoded) -> list[list[str]]:
    """The sentences that `as_code_points` made numbers of.

    >>> sentences_in(as_code_points([["tea", "", "ış"], []]))
    [['tea', '', 'ış'], []]
    """
    whole = row["text"].astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    ends = np.cumsum(row["text_widths"]).tolist()
    words = iter([whole[first:last] for first, last in zip([0, *ends], ends, strict=False)])
    return [list(itertools.islice(words, length)) for length in row["text_lengths"].tolist()]
