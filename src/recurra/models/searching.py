"""From a trained network to sequences: the searches that [decoding] names."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.analysis.exposure import Exposed
from recurra.config import Seq2SeqDecoding
from recurra.data.extents import Extents
from recurra.encoders.memory import missing_places
from recurra.errors import ConfigError
from recurra.models.ctc import Transcriber
from recurra.models.seq2seq import PairBatch, SequenceToSequence
from recurra.padding import Grid, Padded, exact
from recurra.search.beaming import follow_beam
from recurra.search.decoding import SearchTokens, bounds, by_score, numbers_of_rows, searched_on_host
from recurra.search.ensemble import together
from recurra.search.following import follow
from recurra.search.graphs import Graphs, Marks, graphs_of, marks_of
from recurra.search.sampling import Filter
from recurra.search.search import Hypothesis, Step
from recurra.search.tree import Tree

PLACES = 8
"""On a device, memories have a multiple of so many places: recorded steps are replayed for all batches of a shape."""


class Searchable(Protocol):
    """What a search asks of a network, or of several that are one."""

    def start(self, batch: PairBatch, *, multiple: int = 1) -> tuple[Tensor, Any, Any]: ...
    def stepping(self, extra: int = 0) -> Step[Any, Any]: ...
    def weights(self, moving: Any) -> Tensor | None: ...
    def extents(self, source: Padded | Grid) -> Extents: ...
    def token_log_likelihoods(self, batch: PairBatch) -> Tensor: ...


class Ensemble(nn.Module):
    """Several networks that write together: p is the mean of theirs."""

    def __init__(self, members: Sequence[SequenceToSequence | Transcriber]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def start(self, batch: PairBatch, *, multiple: int = 1) -> tuple[Tensor, Any, Any]:
        """What a search begins with."""
        started = [member.start(batch, multiple=multiple) for member in self._members()]
        return started[0][0], tuple(each[1] for each in started), tuple(each[2] for each in started)

    def stepping(self, extra: int = 0) -> Step[Any, Any]:
        """A step whose log p is that of the mean probability of what may come next."""
        return together([member.stepping(extra) for member in self._members()])

    def weights(self, moving: Any) -> Tensor | None:
        """Where the members have looked, on average."""
        seen = [member.weights(each) for member, each in zip(self._members(), moving, strict=True)]
        known = [each for each in seen if each is not None]
        return torch.stack(known).mean(0) if known else None

    def extents(self, source: Padded | Grid) -> Extents:
        """How many places there are to look at in each source, which must be as many for all members."""
        found = [member.extents(source) for member in self._members()]
        if any(other != found[0] for other in found):
            raise ConfigError(
                "these runs divide a source into different numbers of places (model.encoder or model.image), so the "
                "attention of an ensemble cannot be averaged: use runs with the same encoder, or one run."
            )
        return found[0]

    def token_log_likelihoods(self, batch: PairBatch) -> Tensor:
        """log of the mean probability of each token of the targets."""
        each = torch.stack([member.token_log_likelihoods(batch) for member in self._members()])
        return each.logsumexp(0) - math.log(len(each))

    def _members(self) -> list[SequenceToSequence | Transcriber]:
        return list(self.members)  # type: ignore[arg-type]  # a ModuleList of them


def searched(
    model: Searchable,
    batch: PairBatch,
    decoding: Seq2SeqDecoding,
    words: SearchTokens,
    *,
    watch: bool = False,
    draws: Sequence[int] | None = None,
    record: list[Tree] | None = None,
    on_device: bool | None = None,
    graphs: Graphs | None = None,
) -> list[list[Hypothesis]]:
    """Hypotheses for each source, best first; with watch, and attention, where each token looked.

    Sources that are equal are drawn alike, but where `draws` says which of their draws each is. A beam writes its way
    down in `record`. The search runs where the model is, without waiting for the device at each step, if that is a GPU
    and `why_on_host` has no objection, or where `on_device` says so; there, steps are recorded in `graphs`.
    """
    if decoding.search == "path":
        if not isinstance(model, Transcriber):
            raise ConfigError(
                "decoding.search = 'path' takes the most probable alignment of one model, but there are several: use "
                "'greedy' or 'beam'."
            )
        return model.best_paths(batch, decoding.length_penalty)
    on_device = batch.source.values.is_cuda if on_device is None else on_device
    on_device = on_device and why_on_host(decoding, words, record) is None
    multiple = PLACES if on_device else 1
    tokens, moving, fixed = model.start(batch, multiple=multiple)
    lengths, rules = bounds(
        decoding,
        words,
        rows=len(tokens),
        source_lengths=batch.source.lengths.tolist() if isinstance(batch.source, Padded) else None,
        elements=None if batch.copied is None else (batch.copied >= words.specials).sum(1).tolist(),
    )
    seen = model.weights if watch or decoding.coverage_penalty else None
    every: dict[str, Any] = {
        "length": lengths,
        "ends": [words.end],
        "rules": rules,
        "length_penalty": decoding.length_penalty,
        "watch": seen,
        "coverage_penalty": decoding.coverage_penalty,
        "places": real_places(model.extents(batch.source), multiple) if decoding.coverage_penalty else None,
    }
    if on_device:
        stepping = partial(model.stepping, batch.extra)
        return searched_on_device(model, batch, decoding, draws, graphs, (stepping, tokens, moving, fixed), every)
    numbers = numbers_of(batch, draws) if decoding.search == "sampling" else []
    begun = (model.stepping(batch.extra), tokens, moving, fixed)
    return searched_on_host(begun, decoding, every, numbers=numbers, record=record)


@torch.no_grad()
def run_free(model: Searchable, batch: PairBatch) -> list[Exposed]:
    """What each target costs where the right tokens are read, and where the most probable ones are."""
    assert batch.target is not None, "there is something to compare with"
    (tokens, moving, fixed), step = model.start(batch), model.stepping(batch.extra)
    led, own, led_state, own_state = tokens, tokens, moving, moving
    found = []
    for right in batch.target.values.unbind(1):
        forced, led_state = step(led, led_state, fixed)
        free, own_state = step(own, own_state, fixed)
        led, own = right, free.argmax(1)
        log_ps = [exact(each.gather(1, right.unsqueeze(1)).squeeze(1)) for each in (forced, free)]
        rights = [exact(each.argmax(1) == right) for each in (forced, free)]
        found.append(torch.stack([-log_ps[0], -log_ps[1], torch.ones_like(log_ps[0]), *rights]))
    numbers = torch.stack(found, dim=2).cpu().numpy()  # (5, B, T)
    return [Exposed(*numbers[:, row, :length]) for row, length in enumerate(batch.target.lengths.tolist())]


def why_on_host(decoding: Seq2SeqDecoding, words: SearchTokens, record: list[Tree] | None = None) -> str | None:
    """Why a search is kept by the host, which waits for the device at each step; None where it need not be."""
    if decoding.search not in ("beam", "greedy", "sampling"):
        return f"decoding.search = '{decoding.search}' runs on the host"
    if words.forced:
        return "decoding.forced divides a beam by how many forced tokens its hypotheses have, which is done on the host"
    return None if record is None else "the tree of a beam is recorded on the host"


def searched_on_device(
    model: Searchable,
    batch: PairBatch,
    decoding: Seq2SeqDecoding,
    draws: Sequence[int] | None,
    graphs: Graphs | None,
    begun: tuple[Callable[[], Step[Any, Any]], Tensor, Any, Any],
    every: dict[str, Any],
) -> list[list[Hypothesis]]:
    """Hypotheses for each source, as `searched` has them, from a search that does not wait for the device."""
    marks = marks_of(model) if isinstance(model, nn.Module) else Marks("it is no module", None)
    if marks.refusal is not None:
        graphs = None
    elif graphs is None and begun[1].is_cuda:
        graphs = graphs_of(model)  # type: ignore[arg-type]  # marks say that it is a module
    every = {**every, "graphs": graphs, "marks": (marks.key, batch.extra)}
    if decoding.search == "beam":
        return follow_beam(*begun, width=decoding.width, best=decoding.best, **every)
    if decoding.search == "greedy":
        return [[each] for each in follow(*begun, **every)]
    keep = Filter(temperature=decoding.temperature, top_k=decoding.top_k, top_p=decoding.top_p)
    seeds, numbers = range(decoding.seed, decoding.seed + decoding.best), numbers_of(batch, draws)
    return by_score([follow(*begun, keep=keep, seed=seed, numbers=numbers, **every) for seed in seeds])


def numbers_of(batch: PairBatch, draws: Sequence[int] | None = None) -> list[int]:
    """A number for each source, made from what it holds, and from which of its draws it is: it is answered alike
    wherever it stands."""
    values = batch.source.values.cpu().numpy()
    if isinstance(batch.source, Grid):
        sizes = batch.source.sizes.tolist()
        real = [row[:, :rows, :columns] for row, (rows, columns) in zip(values, sizes, strict=True)]
    else:
        real = [row[:length] for row, length in zip(values, batch.source.lengths.tolist(), strict=True)]
    found = numbers_of_rows(real)
    return found if draws is None else [*map(operator.add, found, draws)]


def real_places(extents: Extents, multiple: int = 1) -> Tensor:
    """(B, S): which places of the memories there are, with as many empty ones behind as `start` has put there.

    >>> real_places(Extents([(2, 1), (1, 2)], 2)).int().tolist()
    [[1, 0, 1, 0], [1, 1, 0, 0]]
    """
    rows = max((rows for rows, _ in extents.each), default=0)
    columns = extents.columns or max((columns for _, columns in extents.each), default=0)
    each = [Grid(torch.empty(1, 0, rows, columns), torch.tensor([extent])).mask.flatten(1) for extent in extents.each]
    found = torch.cat(each) if each else torch.ones(0, rows * columns, dtype=torch.bool)
    missing = 0 if extents.columns is not None else missing_places(columns, multiple)
    return functional.pad(found, (0, missing))
