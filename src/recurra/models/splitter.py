"""The splitter: where tokens and sentences end in running text."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from recurra.config.tagging import SplitterModel
from recurra.data.store import Flat
from recurra.encoders.dropout import LockedDropout
from recurra.heads import UNLABELLED
from recurra.padding import Padded, coarser, widened
from recurra.stacks.recurrent import Recurrent

LABELS = 5
"""What a step may be: INSIDE, TOKEN, SEVERAL, SENTENCE, SEVERAL_AND_SENTENCE."""

WINDOW, MARGIN = 1024, 64
"""Steps that are read together, and how many at each end only serve as context for the others."""

ROWS = 24
"""Windows in a batch: their outputs take so little memory that the same is used for the next."""


class TextWindows(NamedTuple):
    """Stretches of running text to learn from."""

    steps: Padded  # (B, T)
    ends: Tensor  # (B, T): INSIDE, …; UNLABELLED beyond a row's length
    weight: Tensor  # (): of each step in the loss

    @classmethod
    def of(cls, written: Flat, ends: Flat, *, total: float) -> TextWindows:
        """Windows that lie one after the other, and what all their steps weigh together."""
        lengths = torch.from_numpy(written.lengths)
        steps = Padded(torch.from_numpy(written.padded(np.int64)), lengths)
        weight = torch.tensor(total / max(len(written.values), 1))
        return cls(steps, torch.from_numpy(ends.padded(np.int64, UNLABELLED)), weight)

    def recurring(self) -> TextWindows:
        """The windows with empty rows and steps, of a size that occurs again."""
        B, T = coarser(len(self.steps.lengths), parts=2), coarser(self.steps.values.shape[1])
        return TextWindows(self.steps.widened(B, T), widened(self.ends, B, T, fill=UNLABELLED), self.weight)


class Splitter(nn.Module):
    """Where tokens and sentences end, by the characters on both sides.

    x_t = E c_t
    h   = Recurrent(x), forwards and backwards
    p_t = softmax(W h_t + b)        over INSIDE, TOKEN, SEVERAL, SENTENCE, SEVERAL_AND_SENTENCE
    """

    def __init__(self, settings: SplitterModel, characters: int, engine: str = "auto") -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, settings.embedding)
        nn.init.normal_(self.embedding.weight, std=settings.embedding**-0.5)
        self.drop = LockedDropout(settings.dropout)
        self.recurrent = Recurrent(
            settings.cell,
            settings.embedding,
            settings.hidden,
            layers=settings.layers,
            bidirectional=True,
            dropout=settings.dropout,
            locked=True,
            engine=engine,
        )
        self.readout = nn.Linear(self.recurrent.output_size, LABELS)

    def scores(self, steps: Padded) -> Tensor:
        """(B, T) to (B, T, LABELS)."""
        if not self.training and self.recurrent.looks_up():
            outputs, _ = self.recurrent.look_up(self.recurrent.project(self.embedding.weight), steps)
            assert outputs is not None
        else:
            x = Padded(self.embedding(steps.values), steps.lengths)
            outputs, _ = self.recurrent(self.drop(x))
        found: Tensor = self.readout(self.drop(outputs).values)
        return found

    def loss(self, windows: TextWindows) -> Tensor:
        """−weight · log p of all labels, summed."""
        scores, ends = self.scores(windows.steps).flatten(0, 1), windows.ends.flatten()
        return windows.weight * functional.cross_entropy(scores, ends, ignore_index=UNLABELLED, reduction="sum")

    @torch.no_grad()
    def ends(self, ids: NDArray[np.int32]) -> NDArray[np.int8]:
        """(N,): the label of each step of a text of any length, which is read in windows that overlap."""
        stride = WINDOW - 2 * MARGIN
        starts = [0, *range(stride, max(len(ids) - 2 * MARGIN, 1), stride)]
        found = np.zeros(len(ids), np.int8)
        device = self.readout.weight.device
        for first in range(0, len(starts), ROWS):
            some = starts[first : first + ROWS]
            lengths = np.array([min(WINDOW, len(ids) - start) for start in some], np.int64)
            steps = np.zeros((len(some), int(lengths.max(initial=0))), np.int64)
            for row, (start, length) in enumerate(zip(some, lengths.tolist(), strict=True)):
                steps[row, :length] = ids[start : start + length]
            scores = self.scores(Padded(torch.from_numpy(steps).to(device), torch.from_numpy(lengths)))
            labels = scores.argmax(2).to(torch.int8).cpu().numpy()
            for row, (start, length) in enumerate(zip(some, lengths.tolist(), strict=True)):
                skipped = MARGIN if start else 0
                found[start + skipped : start + length] = labels[row, skipped:length]
        return found
