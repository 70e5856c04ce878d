"""How likely a long text is, read as a whole with its state carried on or in windows; or the last word of passages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recurra.analysis.exposure import Exposed
from recurra.data.batches import in_order_of_length
from recurra.heads import UNLABELLED
from recurra.models.language_model import SCORES, NextToken, TextBatch, lines_batched
from recurra.models.text_cache import TextCache
from recurra.padding import Padded, exact, fitted

LONGEST = 512
"""Steps that are read at once."""

TOKENS = 1 << 15
"""Tokens that are read at once."""


class Likelihood(NamedTuple):
    """Nats over so many predictions."""

    nats: float
    predicted: int
    each: Tensor  # (predicted,): log p of each, in float64


@torch.no_grad()
def carried(model: NextToken, tokens: Tensor, *, streams: int, ahead: int) -> Likelihood:
    """Every token (N,) but the first, given all before it.

    The text is read in `streams` parts side by side. Each but the first begins with the state after the `ahead` tokens
    before it, so the figure is that of one stream, but for what is remembered over more than `ahead` tokens. A text
    that is too short for so many streams of at least `ahead` tokens has fewer.
    """
    count = len(tokens) - 1
    streams = max(1, min(streams, count // ahead))
    length = -(-count // streams)
    streams = -(-count // length)
    states = model.start(streams)
    if streams > 1:
        starts = length * torch.arange(streams, device=tokens.device)
        before = tokens[(starts.unsqueeze(1) - ahead + torch.arange(ahead, device=tokens.device)).clamp_min(0)]
        is_read = (torch.arange(streams) > 0).long()  # nothing is before the first
        for first in range(0, ahead, LONGEST):
            some = before[:, first : first + LONGEST]
            _, states = model(Padded(some, is_read * some.shape[1]), states)
    total = exact(torch.zeros((), device=tokens.device))
    steps = max(16, min(LONGEST, SCORES // (streams * model.output.scores_each)))
    padded = torch.cat([tokens, tokens.new_zeros(streams * length - count)])
    inputs, targets = padded[:-1].view(streams, length), padded[1:].view(streams, length).clone()
    lengths = torch.full((streams,), length)
    lengths[-1] = count - length * (streams - 1)
    targets[-1, int(lengths[-1]) :] = UNLABELLED
    found = []
    for first in range(0, length, steps):
        part = Padded(inputs[:, first : first + steps], (lengths - first).clamp(0, min(steps, length - first)))
        logs, states = model.log_likelihoods(
            TextBatch(part, targets[:, first : first + steps].contiguous(), None), states
        )
        total -= exact(logs).sum()
        found.append(logs.cpu().double())
    return Likelihood(float(total), count, torch.cat(found, dim=1).flatten()[:count])


@torch.no_grad()
def run_free(model: Any, batch: TextBatch, *, context: int = 0) -> list[Exposed]:
    """What rows of text cost, the right tokens being read, and the most probable ones after the first `context`.

    The model is a NextToken or a Mixture.
    """
    inputs, lengths = batch.inputs.values, batch.inputs.lengths
    states = model.start(len(inputs))
    if context:
        states = model(Padded(inputs[:, :context], lengths.clamp(max=context)), states)[1]
    step, led_state, own_state, found = model.stepping(), states, states, list[Tensor]()
    own = inputs[:, context]
    for place in range(context, inputs.shape[1]):
        right = batch.targets[:, place].clamp_min(0)  # on padding, anything
        forced, led_state = step(inputs[:, place], led_state, ())
        free, own_state = step(own, own_state, ())
        own = free.argmax(1)
        log_ps = [exact(each.gather(1, right.unsqueeze(1)).squeeze(1)) for each in (forced, free)]
        rights = [exact(each.argmax(1) == right) for each in (forced, free)]
        found.append(torch.stack([-log_ps[0], -log_ps[1], torch.ones_like(log_ps[0]), *rights]))
    numbers = torch.stack(found, dim=2).cpu().numpy()  # (5, B, T)
    return [Exposed(*numbers[:, row, : max(0, length - context)]) for row, length in enumerate(lengths.tolist())]


@torch.no_grad()
def windowed(model: NextToken, tokens: Tensor, *, window: int, stride: int) -> Likelihood:
    """The tokens of windows that begin at 0, stride, 2 stride, …, each given those before it in its window alone.

    A token counts as often as there are windows that predict it, as nanoGPT estimates its loss; a text that is shorter
    than a window is one.
    """
    window = min(window, len(tokens) - 1)
    windows = tokens.unfold(0, window + 1, stride)
    total = exact(torch.zeros((), device=tokens.device))
    rows = max(1, min(TOKENS, SCORES // model.output.scores_each) // window)
    found = []
    for part in windows.split(rows):
        logs, _ = model.log_likelihoods(TextBatch(Padded.full(part[:, :-1]), part[:, 1:].contiguous(), None))
        total -= exact(logs).sum()
        found.append(logs.cpu().double().flatten())
    return Likelihood(float(total), windows.shape[0] * window, torch.cat(found))


class LastWord(NamedTuple):
    """How likely the last word of a passage was, and whether the model would have written it."""

    nats: float  # −log p of all of its tokens
    is_best: bool  # each of its tokens was the most probable one


@torch.no_grad()
def last_words(
    models: Sequence[NextToken],
    passages: Sequence[NDArray[np.integer[Any]]],
    starts: Sequence[int],
    *,
    end: int,
    unknown: int,
    cache: TextCache | None = None,
) -> list[LastWord]:
    """The tokens of each passage from `start` on, given all before them; a passage follows on the end of a line.

    The token for unknown words has a probability, but is never written. Of several models p is the mean.

    −log p(w_start … w_T | w_1 … w_{start−1}) = Σ_t −log p(w_t | w_1 … w_{t−1})
    """
    found: list[LastWord] = [LastWord(0.0, is_best=False)] * len(passages)
    for numbers in in_order_of_length(np.array([len(each) for each in passages], np.int64), tokens=TOKENS):
        batch = fitted(lines_batched([passages[number] for number in numbers], end=end), models[0])
        read = [model(batch.inputs)[0].values for model in models]
        sizes = [len(passages[number]) - starts[number] for number in numbers]
        rows = np.repeat(np.arange(len(sizes)), sizes)
        steps = np.concatenate([np.arange(starts[number], len(passages[number])) for number in numbers])
        places = torch.from_numpy(np.stack([rows, steps], 1)).to(batch.targets.device)
        each = max(model.output.scores_each for model in models) * len(models)
        each = max(each, 0 if cache is None else max(h[0].numel() for h in read))
        logs, is_best = [], []
        for row, step in (part.unbind(1) for part in places.split(max(1, SCORES // each))):
            said = [model.output.log_probabilities(h[row, step]) for model, h in zip(models, read, strict=True)]
            if cache is not None:
                said = [cache.added(own, h, batch.targets, row, step) for own, h in zip(said, read, strict=True)]
            scores = said[0] if len(said) == 1 else torch.stack(said).logsumexp(0) - math.log(len(said))
            wanted = batch.targets[row, step]
            logs.append(exact(scores.gather(1, wanted.unsqueeze(1)).squeeze(1)))
            scores[:, unknown] = -torch.inf
            is_best.append(scores.argmax(1) == wanted)
        firsts = np.cumsum([0, *sizes[:-1]])
        nats = -np.add.reduceat(torch.cat(logs).cpu().numpy(), firsts)
        every = np.logical_and.reduceat(torch.cat(is_best).cpu().numpy(), firsts)
        for number, cost, right in zip(numbers, nats.tolist(), every.tolist(), strict=True):
            found[number] = LastWord(cost, is_best=right)
    return found
