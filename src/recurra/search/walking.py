"""The way of a search on a device: some steps at a time, rows that are over left behind, nothing read in between."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from recurra.padding import longest
from recurra.search.graphs import Graphs, Track, Walk, rounded
from recurra.search.rules import Ids
from recurra.search.trees import leaves, mapped

STRETCH = 10
"""Steps after which it is looked which sentences are over."""

State = TypeVar("State")
Given = TypeVar("Given")


class Search(Walk[State, Given], Protocol[State, Given]):
    """A walk that can be divided by sentences."""

    @property
    def length(self) -> int:
        """The most steps that any sentence has."""

    @property
    def least(self) -> int:
        """No sentence is over before so many steps, unless the rules have left it nothing."""

    def selected(self, state: State, given: Given, rows: Tensor) -> tuple[State, Given]:
        """The same with some sentences only, in new tensors."""

    def take(self, state: State, rows: Ids, sentences: Ids, written: int) -> None:
        """Keeps the answers of sentences that are over after so many steps; they stand in these rows."""


def walked(search: Search[State, Given], state: State, given: Given, sentences: Ids, graphs: Graphs | None) -> None:
    """Goes on until every sentence is over. Of row n, sentences[n] is the number, or -1 where it is none.

    When less than half of the rows go on, the others are left behind.
    """
    device = leaves(state)[0].device
    with (
        # Tensors that recorded steps keep are written to by later searches, which inference mode would forbid.
        torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext(),
        torch.no_grad(),
        torch.cuda.device(device) if device.type == "cuda" else nullcontext(),
        nullcontext() if graphs is None else graphs.lock,
    ):
        _walked(search, state, given, sentences, graphs)


def _walked(search: Search[State, Given], state: State, given: Given, sentences: Ids, graphs: Graphs | None) -> None:
    track, written = Track(search, state, given, graphs), 0
    while True:
        track.go()
        written += stretch_of(search.length)
        if written < min(search.least, search.length):
            continue
        is_alive = np.zeros(len(sentences), np.bool_) if written >= search.length else track.alive()
        staying = np.nonzero(is_alive)[0]
        size = rounded(len(staying)) if len(staying) else 0
        if 2 * size > len(sentences):
            continue
        leaving = np.nonzero(~is_alive & (sentences >= 0))[0]
        if len(leaving):
            search.take(track.state, leaving, sentences[leaving], written)
        if not size:
            return
        # Rows that are over fill the batch up.
        rows = np.concatenate([staying, np.nonzero(~is_alive)[0][: size - len(staying)]])
        sentences = np.where(is_alive[rows], sentences[rows], -1)
        here = torch.from_numpy(rows).to(leaves(track.state)[0].device)
        state, given = search.selected(track.state, track.given, here)
        track = Track(search, state, given, graphs)


def stretch_of(length: int) -> int:
    """Steps that are done at once."""
    return min(STRETCH, length)


def columns_of(length: int) -> int:
    """Steps for which there is room: all that are done, and few different numbers of them."""
    each = stretch_of(length)
    return each * rounded(-(-length // each))


def first_rows(rows: int) -> Ids:
    """The numbers of sentences, and -1 for each row that only fills the batch up to a size of which there are few."""
    return np.concatenate([np.arange(rows), np.full(rounded(rows) - rows, -1)])


def alive_of(numbers: Ids, device: torch.device) -> Tensor:
    """(B,): true for each row that is a sentence."""
    if len(numbers) and numbers[-1] >= 0:
        return torch.ones(len(numbers), dtype=torch.bool, device=device)
    return on(device, torch.from_numpy(numbers >= 0))


def select_first(numbers: Ids, device: torch.device, each: int = 1) -> Tensor:
    """Which row of a batch each of the first rows begins as: its own, `each` times; the first where it is none."""
    return torch.from_numpy(np.repeat(np.maximum(numbers, 0), each)).to(device)


def on(device: torch.device, tree: Any) -> Any:
    """Made on the host, brought to a device without waiting for it; float64 as the longest numbers that it has."""
    exact = longest(device)
    return mapped(
        tree, lambda leaf: leaf.to(device, exact if leaf.dtype == torch.float64 else leaf.dtype, non_blocking=True)
    )
