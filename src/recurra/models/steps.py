"""The steps of a source as vectors: embeddings of its tokens, or its frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn

from recurra.analysis.saliency import Probe, explained
from recurra.config import Augmentation
from recurra.encoders.augmentation import augmented_series
from recurra.padding import Padded

if TYPE_CHECKING:
    from recurra.models.seq2seq import PairBatch, Sizes


class ReadsSteps(Protocol):
    """A network that reads tokens or frames."""

    training: bool
    sizes: Sizes
    augmentation: Augmentation | None
    embedding: nn.Embedding | None  # of tokens
    from_frames: nn.Linear | None  # None: frames are read as they are
    scale: float
    token_dropout: float


def vectors_of(network: ReadsSteps, source: Padded, dtype: torch.dtype) -> Padded:
    """(B, S, ·): what the encoder reads of ids (B, S) or frames (B, S, F), before dropout."""
    if network.embedding is not None:
        return Padded(network.scale * network.embedding(some_unknown(network, source.values)), source.lengths)
    frames = Padded(source.values.to(dtype), source.lengths).zeroed()
    if network.training and network.augmentation is not None:
        frames = augmented_series(frames, network.augmentation)
    if network.from_frames is not None:
        frames = Padded(network.from_frames(frames.values), frames.lengths)
    return frames


def some_unknown(network: ReadsSteps, tokens: Tensor) -> Tensor:
    """In training, now and then the unknown token in place of another."""
    if not network.training or not network.token_dropout:
        return tokens
    dropped = torch.rand(tokens.shape, device=tokens.device) < network.token_dropout
    return tokens.masked_fill(dropped, network.sizes.unknown)


def probe(
    network: nn.Module,
    batch: Callable[[int], PairBatch],
    tokens: Sequence[str],
    written: Sequence[str],
    title: str,
) -> Probe:
    """What saliency explains of a network that reads tokens or frames: log p of each token of the targets, which have
    these names."""
    most = explained(len(tokens))

    def log_p(some: Any, pairs: PairBatch) -> Tensor:
        found: Tensor = some.token_log_likelihoods(pairs)
        return found.view(len(pairs.source.values), -1)

    def read(some: Any) -> list[nn.Module]:
        return [some.from_frames if some.embedding is None else some.embedding]

    return Probe(tokens, written[:most], network, read, batch, log_p, "log p", title, max(0, len(written) - most))
