"""Small networks from sequences to sequences, drawn at random, and pairs for them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from recurra.config import Seq2SeqModel
from recurra.models.seq2seq import PairBatch, SequenceToSequence, Sizes
from recurra.padding import Padded, pad
from recurra.settings import settings_from

UNKNOWN, START, END = 0, 1, 2
SIZES = Sizes(source=7, target=6, frames=None, unknown=UNKNOWN, start=START)
AUTO = {"engine": "auto"}  # and a window as long as answers: with a shorter one, answers of the same pieces are tied
CONTEXTS: list[dict[str, Any]] = [
    {"attention": "none"},
    {"attention": "none", "conditioning": ["first", "every", "output"], "start": "zeros"},
    {"wiring": "outside"},
    {"wiring": "outside", "query": "previous", "cell": "gru", "conditioning": ["first"], "layers": 2},
    {"wiring": "outside", "attention": {"name": "additive", "terms": ["monotonic"]}, "start": "mean"},
    {"wiring": "between", "conditioning": ["every"], "summary": "mean"},
    {"wiring": "inside", "cell": "gru", "attention": "additive"},
    {"wiring": "conditional", "cell": "gru", "attention": {"name": "dot", "terms": ["coverage"]}, "layers": 2},
    {"wiring": "feeding", "attention": {"name": "projected_dot", "heads": 2}, "conditioning": ["output"]},
    {"wiring": "outside", "tied": "output", "decoder": {"hidden": 3}},
    {"wiring": "outside", "attention": {"name": "dot", "look": {"name": "local", "centre": "monotonic", "reach": 2}}},
    {
        "wiring": "feeding",
        "attention": {"name": "bilinear", "look": {"name": "local", "reach": 2}},
        "readout": "maxout",
    },
    {"encoder": {"kind": "transformer", "heads": 2}, "decoder": {"kind": "transformer", "heads": 2}, "engine": "auto"},
    {"decoder": {"kind": "transformer", "heads": 1}, "conditioning": ["first", "every", "output"], "tied": "output"},
    {"decoder": {"kind": "transformer", "heads": 1}, "attention": "none", "conditioning": ["first"]},
    {"encoder": {"kind": "transformer", "heads": 1}, "start": "mean", "conditioning": ["every"], "summary": "max"},
    {"encoder": {"kind": "embeddings"}, "decoder": {"kind": "window", "window": 14}, "attention": "bilinear", **AUTO},
]
"""Every wiring, start, summary, attention and readout at least once."""

DRAWING: dict[str, Any] = {"wiring": "inside", "attention": {"name": "additive", "look": "hard"}, "readout": "maxout"}
"""One whose attention draws places in training."""


def network(sizes: Sizes = SIZES, seed: int = 0, **options: Any) -> SequenceToSequence:
    """In float64, with weights as large as those of a trained one."""
    usual = {"embedding": 4, "hidden": 4, "dropout": 0.0, "label_smoothing": 0.0, "engine": "loop"}
    torch.manual_seed(seed)
    model = SequenceToSequence(settings_from(Seq2SeqModel, {**usual, **options}), sizes).double()
    for name, parameter in model.named_parameters():
        if "strength" not in name and "pace" not in name:
            nn.init.normal_(parameter, std=0.8)
    return model.eval()


def batch(sources: list[list[int]], targets: list[list[int]] | None = None) -> PairBatch:
    target = None if targets is None else pad([torch.tensor(each, dtype=torch.long) for each in targets])
    return PairBatch(pad([torch.tensor(each, dtype=torch.long) for each in sources]), target, None)


PAIRS = batch([[3, 4, 5, 6], [6, 3], [5]], [[3, 4, END], [5, 3, 3, 4, END], [END]])


def row_of(pairs: PairBatch, row: int) -> PairBatch:
    """One pair alone, without padding."""
    assert isinstance(pairs.source, Padded)
    length, target = int(pairs.source.lengths[row]), pairs.target
    told = None if target is None else [target.values[row, : int(target.lengths[row])].tolist()]
    alone = batch([pairs.source.values[row, :length].tolist()], told)
    copied = None if pairs.copied is None else pairs.copied[row : row + 1, :length]
    return alone._replace(copied=copied, extra=pairs.extra)


def stepped(model: SequenceToSequence, pairs: PairBatch) -> list[Tensor]:
    """log p (T, V) at every place of each target, one row and one token after the other."""
    assert pairs.target is not None
    found = []
    for row, length in enumerate(pairs.target.lengths.tolist()):
        tokens, state, fixed = model.start(row_of(pairs, row))
        each = []
        for token in pairs.target.values[row, :length]:
            log_p, state = model.step(tokens, state, fixed, extra=pairs.extra)
            each.append(log_p[0])
            tokens = token.unsqueeze(0)
        found.append(torch.stack(each))
    return found


def tokens_read(model: SequenceToSequence) -> list[Tensor]:
    """Gets what the decoder's embedding is asked for, call after call."""
    read: list[Tensor] = []
    model.decoder.embedding.register_forward_pre_hook(lambda _, given: read.append(given[0].clone()))
    return read
