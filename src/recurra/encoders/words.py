"""Words as vectors: one that is looked up, and one that is read off the spelling."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from recurra.cells import Spec
from recurra.padding import Padded
from recurra.stacks.recurrent import Recurrent


class Spellings(NamedTuple):
    """The distinct words of a batch, spelt out, and which of them stands where."""

    characters: Padded | Tensor  # (N, W): a row per distinct word; or (N, E): their vectors, where these are known
    rows: Tensor  # (B, T): where each word is spelt
    words: Tensor | None = None  # (N,): the number of each distinct word


@final
class Spelling(nn.Module):
    """A word's vector from its characters: both ends of a bidirectional recurrent network, [h→_W; h←_1]."""

    def __init__(self, cell: Spec, characters: int, *, embedding: int, hidden: int, layers: int, engine: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, embedding)
        nn.init.normal_(self.embedding.weight, std=embedding**-0.5)
        self.recurrent = Recurrent(cell, embedding, hidden, layers=layers, bidirectional=True, engine=engine)
        self.output_size = 2 * hidden

    def forward(self, characters: Padded) -> Tensor:
        """(N, W) to (N, 2H)."""
        if self.recurrent.looks_up():
            _, states = self.recurrent.look_up(self.recurrent.project(self.embedding.weight), characters, outputs=False)
            return torch.cat([state[0] for state in states[0]], dim=-1)
        is_grouped = characters.values.device.type == "cpu" and not torch.compiler.is_compiling()
        groups = of_like_length(characters.lengths) if is_grouped else []
        if len(groups) < 2:
            return self._read(characters)
        parts = [
            self._read(Padded(characters.values[rows, :longest], characters.lengths[rows])) for rows, longest in groups
        ]
        return torch.cat(parts)[torch.cat([rows for rows, _ in groups]).argsort()]

    def _read(self, characters: Padded) -> Tensor:
        _, states = self.recurrent(Padded(self.embedding(characters.values), characters.lengths))
        forward, backward = states[-1]
        return torch.cat([forward[0], backward[0]], dim=-1)


WIDEST = (4, 7, 11)
"""Words up to so many characters are read together. A few long words would make all others as long as themselves:
with the words of English text, reading them in four groups takes about half the time."""


WORTH_A_GROUP = 128
"""Padded characters that must be saved for each group: to begin one takes about as long as to read so many."""


def of_like_length(lengths: Tensor, worth: int = WORTH_A_GROUP) -> list[tuple[Tensor, int]]:
    """The rows in groups of like length, each with its longest; a few words are one group.

    >>> few = torch.tensor([3, 12, 1, 9, 4])
    >>> [(rows.tolist(), longest) for rows, longest in of_like_length(few, worth=1)]
    [([0, 2, 4], 4), ([3], 9), ([1], 12)]
    >>> [(rows.tolist(), longest) for rows, longest in of_like_length(few)]
    [([0, 1, 2, 3, 4], 12)]
    """
    known = lengths.tolist()
    found: list[list[int]] = [[] for _ in range(len(WIDEST) + 1)]
    for row, length in enumerate(known):
        found[bisect_left(WIDEST, length)].append(row)
    groups = [(rows, max(known[row] for row in rows)) for rows in found if rows]
    longest = max(known, default=0)
    saved = sum(len(rows) * (longest - own) for rows, own in groups)
    if len(groups) > 1 and saved < worth * (len(groups) - 1):
        groups = [(list(range(len(known))), longest)]
    return [(torch.tensor(rows), own) for rows, own in groups]


@final
class ReadWords(nn.Module):
    """[word vector; spelling; features], any of which may be left out; features are given, or W features + b.

    In training, a share `word_dropout` of the words is looked up as unknown, so that the unknown word's vector and the
    spelling learn to stand alone. A frozen table holds vectors from elsewhere, zeros for other words, and stays so.
    """

    def __init__(
        self,
        words: int,
        *,
        unknown: int,
        embedding: int,
        word_dropout: float,
        spelling: Spelling | None,
        frozen: bool = False,
        features: int = 0,
        features_layer: int = 0,
    ) -> None:
        super().__init__()
        self.unknown = unknown
        self.word_dropout = word_dropout
        self.embedding = nn.Embedding(words, embedding) if embedding else None
        if self.embedding is not None:
            nn.init.normal_(self.embedding.weight, std=embedding**-0.5)
        self.frozen = frozen
        if frozen and self.embedding is not None:  # `put` gives vectors to the words that have one
            nn.init.zeros_(self.embedding.weight)
            self.embedding.weight.requires_grad_(False)
        self.spelling = spelling
        self.features = nn.Linear(features, features_layer) if features and features_layer else None
        self.output_size = embedding + (spelling.output_size if spelling is not None else 0)
        self.output_size += features if self.features is None else features_layer
        self.reads_words_alone = features == 0  # and nothing of the sentence around them

    def forward(self, words: Padded, spellings: Spellings | None, features: Tensor | None = None) -> Padded:
        """(B, T) word ids, their spellings and features (B, T, F) to (B, T, E)."""
        parts = []
        if self.embedding is not None:
            ids = words.values
            if self.training and self.word_dropout:
                ids = ids.masked_fill(torch.rand(ids.shape, device=ids.device) < self.word_dropout, self.unknown)
            parts.append(self.embedding(ids))
        if self.spelling is not None:
            assert spellings is not None, "the batch was made without spellings"
            spelt = spellings.characters
            vectors: Tensor = spelt if isinstance(spelt, Tensor) else self.spelling(spelt)
            parts.append(nn.functional.embedding(spellings.rows, vectors))
        if features is not None:
            weight = next(self.parameters(), None)
            given = features.float() if weight is None else features.to(weight.dtype)
            parts.append(given if self.features is None else self.features(given))
        return Padded(parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1), words.lengths)

    def table(self, spellings: Spellings) -> Tensor | None:
        """(N, E): the distinct words of a batch, each once; None where they depend on more than word and spelling."""
        if self.spelling is None or spellings.words is None or not self.reads_words_alone or self.training:
            return None
        spelt = self.spelling(spellings.characters)
        return spelt if self.embedding is None else torch.cat([self.embedding(spellings.words), spelt], dim=-1)

    @torch.no_grad()
    def put(self, ids: NDArray[Any], vectors: NDArray[np.float32]) -> None:
        """Vectors learned elsewhere, scaled to the length that random ones have."""
        assert self.embedding is not None
        given = torch.from_numpy(vectors)
        length = given.norm(dim=1).mean().clamp_min(1e-12)
        self.embedding.weight[torch.from_numpy(ids).long()] = (given / length).to(self.embedding.weight)
