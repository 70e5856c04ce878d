"""The cost of targets under softmax(W h + b), without a table of all scores: a few rows at a time.

Memory, for N rows, V tokens and C rows at once: scores, log p and p of C rows (C, V) live for a moment, on a GPU with
Triton only the scores, in the type in which they were multiplied (cross_entropy_kernel.py); the gradients
of h (N, H), W (V, H) and b (V) are computed with them and kept until the backward pass, which only scales them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from recurra.products.triton_here import KernelsError, can_run, kernels_for

LEAST = -100.0
"""log p, in a cost, of a token that cannot be said at all."""

SCORES = 1 << 24
"""So many scores are in memory together."""

ALIGNED = 8
"""A GPU multiplies matrices several times as fast where their sizes are multiples of this."""


class Options(NamedTuple):
    """What is added up."""

    smoothing: float = 0.0  # ε: the share of a target that is spread over all tokens
    r_drop: float = 0.0  # α: with it, row n and row n + N/2 are two passes of one
    ignored: int | None = None  # a target that costs nothing


def cost(
    log_p: Tensor, targets: Tensor, options: Options, *, tokens: int | None = None, some_never: bool = False
) -> Tensor:
    """The summed cost of targets (N,) given log-probabilities (N, V): the definition.

        cost = Σ_n (1 − ε) (−log p_n[y_n]) + ε/V Σ_v (−log p_n[v])

    and, with r_drop, where p and q are the two passes of a row (Liang et al. 2021),

        cost / 2 + α/4 Σ_n Σ_v (p_n[v] − q_n[v]) (log p_n[v] − log q_n[v])

    tokens: V, where some columns after them are words that only some rows can say. some_never: a target is spread over
    what its row can say; of the rest, log p is -∞.
    """
    size = log_p.shape[1] if tokens is None else tokens
    if options.ignored is not None:
        is_kept = targets != options.ignored
        log_p = log_p.masked_fill(~is_kept.unsqueeze(1), 0.0)
        targets = targets * is_kept
    chosen = log_p.gather(1, targets.unsqueeze(1))
    total = -chosen.masked_fill(chosen == -torch.inf, LEAST).sum()
    if options.smoothing and some_never:
        never = log_p == -torch.inf
        means = log_p.masked_fill(never, 0.0).sum(1) / (~never).sum(1)
        total = (1 - options.smoothing) * total - options.smoothing * means.sum()
    elif options.smoothing:
        total = (1 - options.smoothing) * total - options.smoothing / size * log_p[:, :size].sum()
    if not options.r_drop:
        return total
    # What a pass cannot say at all, such as a word of another source, has no part in how far they differ.
    one, other = log_p.chunk(2)
    never = (one == -torch.inf) | (other == -torch.inf)
    one, other = one.masked_fill(never, 0.0), other.masked_fill(never, 0.0)
    return total / 2 + options.r_drop / 4 * ((one.exp() - other.exp()) * (one - other)).sum()


def cost_in_pieces(
    features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, options: Options, *, scores: int = SCORES
) -> Tensor:
    """`cost` of log softmax(W h + b), for features (N, H), W (V, H), b (V) and targets (N,).

    >>> h, W, b, y = torch.randn(5, 3), torch.randn(7, 3), torch.randn(7), torch.tensor([0, 6, 2, 2, 1])
    >>> plain = cost(functional.linear(h, W, b).log_softmax(1), y, Options(smoothing=0.1))
    >>> torch.allclose(cost_in_pieces(h, W, b, y, Options(smoothing=0.1), scores=14), plain)
    True
    """
    total: Tensor = _Pieces.apply(features, weight, bias, targets, options, scores)  # type: ignore[no-untyped-call]
    return total


class _Pieces(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, options: Options, scores: int
    ) -> Tensor:
        wanted = any(ctx.needs_input_grad[:3])
        dtype = _autocast_type(features, weight)
        ctx.options, ctx.dtype = options, dtype
        with torch.autocast(features.device.type, enabled=False):
            total, slopes = _summed(features, weight, bias, targets, options, scores, dtype, with_slopes=wanted)
        ctx.save_for_backward(features, weight, bias, targets, *slopes)
        return total

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        features, weight, bias, targets, of_features, of_weight, of_bias = ctx.saved_tensors
        given = features, weight, bias
        are_wanted, rest = ctx.needs_input_grad[:3], (None, None, None)
        if torch.is_grad_enabled():  # these gradients will be differentiated: they come from the definition
            total = _defined(features, weight, bias, targets, ctx.options, ctx.dtype)
            wanted = [each for each, is_wanted in zip(given, are_wanted, strict=True) if is_wanted]
            found = iter(torch.autograd.grad(total, wanted, slope, create_graph=True))
            return *(next(found) if is_wanted else None for is_wanted in are_wanted), *rest
        pairs = zip((of_features, of_weight, of_bias), given, are_wanted, strict=True)
        return *((slope * each).to(like.dtype) if is_wanted else None for each, like, is_wanted in pairs), *rest


def _defined(
    features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, options: Options, dtype: torch.dtype | None
) -> Tensor:
    """The cost by its definition, of all scores at once."""
    if dtype is not None:
        features, weight, bias = (each.to(dtype) for each in (features, weight, bias))
    with torch.autocast(features.device.type, enabled=False):
        scores = functional.linear(features, weight, bias)
    return cost(scores.to(torch.promote_types(scores.dtype, torch.float32)).log_softmax(1), targets, options)


def _autocast_type(features: Tensor, weight: Tensor) -> torch.dtype | None:
    """The type in which autocast would multiply; None where it would not."""
    device = features.device.type
    if not torch.is_autocast_enabled(device) or torch.float64 in (features.dtype, weight.dtype):
        return None
    return torch.get_autocast_dtype(device)


def _summed(
    features: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    options: Options,
    scores: int,
    dtype: torch.dtype | None,
    *,
    with_slopes: bool,
) -> tuple[Tensor, list[Tensor]]:
    """The cost, and its gradients by features, weight and bias."""
    (rows, _), size = features.shape, len(weight)
    lower = features.dtype if dtype is None else dtype
    exact = torch.promote_types(lower, torch.float32)
    padded = padded_size(size, features.device)
    W, b = with_padding(weight, bias, padded, lower)
    passes = 2 if options.r_drop else 1
    assert rows % passes == 0, "each row has two passes"
    each = rows // passes
    at_once = max(1, scores // (padded * passes))
    h = features.to(lower)
    total = torch.zeros((), dtype=exact, device=features.device)
    of_features = torch.empty_like(h) if with_slopes else h
    of_weight = torch.zeros_like(W, dtype=exact) if with_slopes else W
    of_bias = torch.zeros_like(b, dtype=exact) if with_slopes else b
    for first in range(0, each, at_once):
        places = [slice(start + first, start + min(first + at_once, each)) for start in range(0, each * passes, each)]
        scores_of = [torch.addmm(b, h[place], W.t()) for place in places]
        wanted = [targets[place] for place in places]
        by_kernel = by_one_kernel(scores_of, wanted, options, size) if with_slopes else None
        if by_kernel is not None:
            found, slopes = by_kernel, scores_of  # which the kernel has overwritten
        else:
            logs = [each.to(exact).log_softmax(1) for each in scores_of]
            found, slopes = _of_rows(logs, wanted, options, size, with_slopes=with_slopes)
        total += found
        for place, slope in zip(places, slopes, strict=with_slopes):
            of_bias += slope.sum(0, dtype=exact)
            slope = slope.to(lower)
            torch.mm(slope, W, out=of_features[place])
            of_weight += slope.t() @ h[place]
    return total, [of_features, of_weight[:size], of_bias[:size]] if with_slopes else []


def by_one_kernel(scores: list[Tensor], targets: list[Tensor], options: Options, size: int) -> Tensor | None:
    """The cost of some rows by a kernel that makes gradients of their scores; None where there is none, or it failed,
    and the scores are as they were."""
    if torch.compiler.is_compiling() or scores[0].dtype not in (torch.float32, torch.bfloat16, torch.float16):
        return None
    if not can_run(scores[0], "cross entropy"):
        return None
    from recurra.products import cross_entropy_kernel  # which imports Triton

    try:
        with kernels_for(scores[0].device, "cross entropy", "the cross entropy"):
            return cross_entropy_kernel.overwrite(scores, targets, size=size, **options._asdict()).sum()
    except KernelsError:
        return None


def padded_size(tokens: int, device: torch.device) -> int:
    """How many columns of scores are computed: the others are padding.

    >>> padded_size(6003, torch.device("cpu")), padded_size(6003, torch.device("cuda"))
    (6003, 6008)
    """
    return -(-tokens // ALIGNED) * ALIGNED if device.type == "cuda" else tokens


def with_padding(weight: Tensor, bias: Tensor, size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """W and b with more rows, to which a score of −∞ gives the probability 0."""
    more = size - len(weight)
    if not more:
        return weight.to(dtype), bias.to(dtype)
    W, b = weight.new_empty(size, weight.shape[1], dtype=dtype), bias.new_empty(size, dtype=dtype)
    W[:-more], b[:-more] = weight, bias
    W[-more:], b[-more:] = 0.0, -torch.inf
    return W, b


def _of_rows(
    logs: list[Tensor], targets: list[Tensor], options: Options, size: int, *, with_slopes: bool
) -> tuple[Tensor, list[Tensor]]:
    """The cost of some rows, in one pass or two, and its gradients by their scores (C, V).

    cross entropy    ∂/∂o = p − (1 − ε) 1[y] − ε/V
    two passes       ∂/∂o = p (d − Σ p d) + p − q,   d = log p − log q        of Σ (p − q) d, by the scores of p
    """
    epsilon, alpha = options.smoothing, options.r_drop
    share = 0.5 if alpha else 1.0
    total = logs[0].new_zeros(())
    slopes: list[Tensor] = []
    ps = [log_p.exp() for log_p in logs]
    d: Tensor | None = None
    if alpha:
        d = logs[0] - logs[1]
        d[:, size:] = 0.0  # of padding
    for number, (log_p, p, y) in enumerate(zip(logs, ps, targets, strict=True)):
        is_kept = None if options.ignored is None else (y != options.ignored).unsqueeze(1)
        y = (y if is_kept is None else y * is_kept.squeeze(1)).unsqueeze(1)
        costs = -share * (1 - epsilon) * log_p.gather(1, y)
        if epsilon:
            costs -= share * epsilon / size * log_p[:, :size].sum(1, keepdim=True)
        slope = p  # which nobody else reads, where there is one pass
        if d is not None:
            sign, slope = 1 - 2 * number, p * d
            kl = sign * slope.sum(1, keepdim=True)  # Σ (p − q) d is Σ p d and Σ q (−d): each pass adds its own
            costs += alpha / 4 * kl
        total = total + (costs if is_kept is None else costs.masked_fill(~is_kept, 0.0)).sum()
        if not with_slopes:
            continue
        if d is not None:
            torch.add(share + alpha / 4 * (1 - kl), d, alpha=sign * alpha / 4, out=slope)
            slope.mul_(p).sub_(ps[1 - number], alpha=alpha / 4)
        slope.scatter_add_(1, y, torch.full_like(costs, -share * (1 - epsilon)))
        if epsilon:
            slope[:, :size] -= share * epsilon / size
        slopes.append(slope if is_kept is None else slope.masked_fill_(~is_kept, 0.0))
    return total, slopes
