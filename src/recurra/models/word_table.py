"""Words that are read once, however often they occur: what a tagger makes of a word before it sees the others."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recurra.data.batches import in_order_of_length
from recurra.data.store import Flat
from recurra.encoders.words import Spellings
from recurra.heads.crf import CRF
from recurra.models.tagger import Tagger
from recurra.padding import Padded

TOKENS = 8192
"""Words that are tagged together."""


class WordTable:
    """Distinct words as a tagger's network reads them, W x + b, and the tags of sentences of these words.

    Only for taggers that `can_hold` says of: a word is its vector and its spelling, and one layer reads a sentence.
    """

    def __init__(self, model: Tagger) -> None:
        self.model = model
        self.rows: tuple[Tensor, ...] | None = None  # (N, ·) of each direction

    @staticmethod
    def can_hold(model: Tagger) -> bool:
        """Whether words can be read one by one, here and now."""
        with torch.no_grad():
            return (
                not model.training
                and model.read_words is not None
                and model.read_words.spelling is not None
                and model.read_words.reads_words_alone
                and model.recurrent is not None
                and model.recurrent.looks_up()
                and model.non_local is None
                and model.value is None
                and model.label is None
            )

    def __len__(self) -> int:
        return 0 if self.rows is None else len(self.rows[0])

    @torch.no_grad()
    def add(self, words: NDArray[np.int32], characters: NDArray[np.int32], widths: NDArray[np.int32]) -> None:
        """Read more words: their numbers, (n,), and their characters, one after another, so many of each."""
        lengths = widths.astype(np.int64)
        spelt = Padded(torch.from_numpy(Flat(characters, lengths).padded(np.int64)), torch.from_numpy(lengths))
        spellings = Spellings(spelt, torch.zeros(0, 0, dtype=torch.long), torch.from_numpy(words.astype(np.int64)))
        assert self.model.read_words is not None
        assert self.model.recurrent is not None
        table = self.model.read_words.table(spellings)
        assert table is not None, "`can_hold` has said so"
        more = self.model.recurrent.project(table)
        self.rows = more if self.rows is None else tuple(map(torch.cat, zip(self.rows, more, strict=True)))

    @torch.no_grad()
    def tags(self, words: NDArray[np.int64], lengths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The tags of each column, (N,), of sentences one after another: rows of the table, (N,), and their lengths."""
        model, heads = self.model, self.model.heads
        assert self.rows is not None
        assert model.recurrent is not None
        ends = np.cumsum(lengths)
        found = [np.zeros(len(words), np.int64) for _ in heads]
        is_chained = any(isinstance(head, CRF) for head in heads)
        for numbers in in_order_of_length(lengths, tokens=TOKENS):
            own = lengths[numbers]
            # Where the words of these sentences stand among all.
            places = np.repeat(ends[numbers] - np.cumsum(own), own) + np.arange(int(own.sum()))
            index = torch.from_numpy(Flat(words[places], own).padded(np.int64))
            rows = Padded(index, torch.from_numpy(own))
            features = model.recurrent.look_up(self.rows, rows)[0]
            assert features is not None
            if is_chained:
                tags = [column[features.mask] for column in model.best(features)[0]]
            else:  # without padding
                tags = [column[0] for column in model.best(Padded.full(features.values[features.mask].unsqueeze(0)))[0]]
            for column, some in zip(found, tags, strict=True):
                column[places] = some.numpy()
        return found
