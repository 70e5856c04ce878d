"""Step functions as a researcher would write them, one line or a few each, and cells made of them.

A step sees its own weights, a = W x + U h + b, and h; it returns the new h. `STEPS` need no particular size, `HEADS`
read a row as 3 heads of 5 numbers, and `REFUSED` are steps that no plan can hold, each with the reason that is given.
"""

# ruff: noqa: ARG001 (every step takes the same arguments, used or not)

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra import Cell

HEADS_OF = (3, 5)


class Own(nn.Module):
    """The weights that the steps may use, beside the matrix of the state."""

    even: Tensor
    levels: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.U = nn.Linear(size, size)
        self.V = nn.Linear(size, size, bias=False)
        self.gain = nn.Parameter(torch.ones(size))
        self.scale = nn.Parameter(torch.full((1,), 0.7))
        self.single = nn.Parameter(torch.tensor(0.3))
        self.low, self.high = nn.Parameter(torch.full((size,), -0.4)), nn.Parameter(torch.full((size,), 0.6))
        self.gains = nn.Parameter(torch.rand(HEADS_OF))
        self.per_head = nn.Parameter(torch.randn(HEADS_OF[0], 5, 5) * 0.4)
        self.all_heads = nn.Linear(5, 5)
        self.mix = nn.Parameter(torch.randn(3, 3) * 0.4)
        self.register_buffer("even", torch.arange(size) % 2 == 0)
        self.register_buffer("levels", torch.linspace(-1, 1, size))


Step: TypeAlias = Callable[[Own, Tensor, Tensor], Tensor]


def soft_capped(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return 3.0 * torch.tanh(a / 3.0)


def rms_by_hand(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return own.gain * a * torch.rsqrt(a.square().mean(-1, keepdim=True) + 1e-5)


def layer_norm_by_hand(own: Own, a: Tensor, h: Tensor) -> Tensor:
    centred = a - a.mean(-1, keepdim=True)
    return own.gain * centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-5) + own.low


def layer_norm_of_slices(own: Own, a: Tensor, h: Tensor) -> Tensor:
    first, rest = a[:, :3], a[:, 3:]
    normal = [functional.layer_norm(part, part.shape[-1:]) for part in (first, rest)]
    return torch.cat(normal, dim=-1)


def rectified_gate(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return torch.where(a > 0, a, 0.1 * h) * torch.where(h.abs() < 0.5, 1.0, 0.5)


def between(own: Own, a: Tensor, h: Tensor) -> Tensor:
    inside = (a >= own.low) & (a <= own.high)
    return torch.where(inside | ~(h != 0), a, h.tanh()) + (a == h).to(a.dtype)


def masked(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return torch.where(own.even, a.tanh(), h) + own.even * 0.1


def masked_fill(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return a.masked_fill(own.even, 0.3).masked_fill(h > 0.4, 0.2)


def straight_through(own: Own, a: Tensor, h: Tensor) -> Tensor:
    soft = torch.sigmoid(a)
    hard = (soft > 0.5).to(a.dtype)
    return soft + (hard - soft).detach()


def flipped(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return a.flip(-1).tanh() + 0.5 * h


def rolled(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return torch.tanh(a + torch.roll(h, 2, dims=-1))


def every_other(own: Own, a: Tensor, h: Tensor) -> Tensor:
    even, odd = a[:, ::2].tanh(), a[:, 1::2].sigmoid()
    return torch.cat([even, odd], dim=-1) - 0.2 * h


def single_numbers(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return torch.tanh(a * a[:, 0:1] + h[:, -1].unsqueeze(-1) - own.scale + own.single)


def narrowed(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return torch.cat([a.narrow(-1, 2, 3).exp().clamp(max=2.0), h[:, 1:-2].sin()], dim=-1)


def split_in_three(own: Own, a: Tensor, h: Tensor) -> Tensor:
    first, second, third = torch.split(torch.cat([a, h, a * h], dim=-1), a.shape[-1], dim=-1)
    return torch.tanh(first + second * third)


def stacked(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return torch.stack([a.tanh(), h, a * h], dim=1).mean(dim=1)


def unbound(own: Own, a: Tensor, h: Tensor) -> Tensor:
    one, two = torch.stack([a, h], dim=-1).unbind(dim=-1)
    return torch.sigmoid(one) * two + one


def maxout(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return torch.stack([a, own.V(h), own.gain * h], dim=-1).amax(dim=-1)


def largest_of_the_row(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return a / (1 + a.abs().amax(dim=-1, keepdim=True)) + 0.1 * a.min(dim=-1, keepdim=True).values


def standardised(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return (a - a.mean(dim=-1, keepdim=True)) / (a.std(dim=-1, keepdim=True) + 1e-3)


def by_variance(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return a.tanh() * a.var(dim=-1, keepdim=True, unbiased=False)


def by_length(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return a / (a.norm(dim=-1, keepdim=True) + 0.1) + functional.normalize(h + 1, dim=-1)


def outer_and_back(own: Own, a: Tensor, h: Tensor) -> Tensor:
    outer = torch.einsum("bi,bj->bij", a.tanh(), h.tanh())
    return torch.einsum("bij,bj->bi", outer, a) + 0.3 * outer.sum(dim=1)


def cumulative(own: Own, a: Tensor, h: Tensor) -> Tensor:
    """The cumax of an ordered-neurons LSTM: soft, monotone gates."""
    gate = torch.cumsum(torch.softmax(a, dim=-1), dim=-1)
    return gate * h + (1 - gate) * a.tanh()


def lerped(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return torch.lerp(h, a.tanh(), torch.sigmoid(own.gain * a))


def fused(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return torch.addcmul(h, a, own.gain, value=0.5) - torch.addcdiv(a, h, 2 + own.gain.exp(), value=0.2)


def glu_of_both(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return functional.glu(torch.cat([a, h], dim=-1), dim=-1)


def squared_distance(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return torch.exp(-((a - own.levels) ** 2)) - 0.1 * h


def in_place(own: Own, a: Tensor, h: Tensor) -> Tensor:
    out = a * h
    out.mul_(0.5).add_(h)
    out[:, 1:3] = a[:, :2].tanh()
    return out


def another_product(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return functional.gelu(a) + own.V(functional.silu(a) * h) @ own.V.weight


def constants_of_the_step(own: Own, a: Tensor, h: Tensor) -> Tensor:
    ramp = torch.arange(a.shape[-1], dtype=a.dtype) / a.shape[-1]
    return torch.tanh(a + ramp) + torch.zeros_like(h) + torch.ones(a.shape[0], 1, dtype=a.dtype) * 0.1


def expanded(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return torch.where(own.gain.expand_as(a) > a, own.low.expand(a.shape[0], -1), h) + a


STEPS: dict[str, Step] = {
    "gelu": lambda own, a, h: functional.gelu(a) - 0.3 * h,
    "gelu by tanh": lambda own, a, h: functional.gelu(a, approximate="tanh"),
    "elu": lambda own, a, h: functional.elu(a, alpha=0.7),
    "selu": lambda own, a, h: functional.selu(a),
    "celu": lambda own, a, h: functional.celu(a, alpha=1.3),
    "leaky relu": lambda own, a, h: functional.leaky_relu(a, 0.1),
    "prelu": lambda own, a, h: functional.prelu(a, own.gain),
    "softplus": lambda own, a, h: functional.softplus(a, beta=1.5, threshold=1.0),
    "silu": lambda own, a, h: functional.silu(a),
    "mish": lambda own, a, h: functional.mish(a),
    "hardtanh": lambda own, a, h: functional.hardtanh(a, -0.5, 0.8),
    "hardsigmoid": lambda own, a, h: functional.hardsigmoid(3 * a),
    "hardswish": lambda own, a, h: functional.hardswish(3 * a),
    "relu6": lambda own, a, h: functional.relu6(8 * a) / 6,
    "softsign": lambda own, a, h: functional.softsign(a),
    "tanhshrink": lambda own, a, h: functional.tanhshrink(a),
    "softshrink": lambda own, a, h: functional.softshrink(a, 0.2),
    "hardshrink": lambda own, a, h: functional.hardshrink(a, 0.2),
    "threshold": lambda own, a, h: functional.threshold(a, 0.1, -0.2),
    "log sigmoid": lambda own, a, h: functional.logsigmoid(a),
    "clamp": lambda own, a, h: a.clamp(-0.5, 0.5) + h.clamp(min=0) - 0.1 * h.clamp(max=0.2),
    "clamp by weights": lambda own, a, h: torch.clamp(a, own.low, own.high) + torch.clamp(h, min=own.low),
    "minimum and maximum": lambda own, a, h: torch.minimum(a, h) - 0.5 * torch.maximum(a.tanh(), own.gain),
    "rectified gate": rectified_gate,
    "between": between,
    "masked": masked,
    "masked fill": masked_fill,
    "straight through": straight_through,
    "absolute and sign": lambda own, a, h: a.abs() * a.sign() + torch.sign(h) * h.abs().sqrt().clamp(min=0.1),
    "square roots": lambda own, a, h: (a.square() + 1).sqrt() + (h.square() + 1).rsqrt() + (a.exp() + 1).reciprocal(),
    "powers": lambda own, a, h: (
        a.tanh() ** 3 + (a.tanh() + 1.5) ** 1.7 - (h.tanh().abs() + 1) ** own.gain + 2.0 ** a.tanh() + a**0
    ),
    "exponentials": lambda own, a, h: (a.clamp(max=1).exp() + 1).log() + a.abs().log1p() - torch.expm1(h.tanh()),
    "other bases": lambda own, a, h: torch.exp2(a.tanh()) + torch.log2(a.square() + 1) - torch.log10(h.square() + 2),
    "angles": lambda own, a, h: a.sin() + h.cos() * a.atan() + torch.erf(a) + torch.atan2(a, h.square() + 1),
    "hyperbolic": lambda own, a, h: torch.sinh(a.tanh()) - torch.cosh(h.tanh()) + torch.asinh(a),
    "whole numbers": lambda own, a, h: a + torch.floor(2 * a) / 4 - torch.round(h) / 2 + torch.trunc(h),
    "softmax": lambda own, a, h: torch.softmax(3 * a, dim=-1) + 0.5 * h,
    "log softmax": lambda own, a, h: 0.2 * torch.log_softmax(a, dim=-1),
    "logsumexp": lambda own, a, h: a - torch.logsumexp(a, dim=-1, keepdim=True),
    "rms by hand": rms_by_hand,
    "rms norm": lambda own, a, h: functional.rms_norm(a, a.shape[-1:], own.gain, 1e-5),
    "layer norm by hand": layer_norm_by_hand,
    "layer norm": lambda own, a, h: functional.layer_norm(a, a.shape[-1:], own.gain, own.low),
    "layer norm of slices": layer_norm_of_slices,
    "soft capped": soft_capped,
    "flipped": flipped,
    "rolled": rolled,
    "every other": every_other,
    "single numbers": single_numbers,
    "narrowed": narrowed,
    "split in three": split_in_three,
    "stacked": stacked,
    "unbound": unbound,
    "maxout": maxout,
    "largest of the row": largest_of_the_row,
    "standardised": standardised,
    "by variance": by_variance,
    "by length": by_length,
    "outer and back": outer_and_back,
    "cumulative": cumulative,
    "lerped": lerped,
    "fused": fused,
    "glu": glu_of_both,
    "squared distance": squared_distance,
    "in place": in_place,
    "another product": another_product,
    "constants of the step": constants_of_the_step,
    "expanded": expanded,
    "cast": lambda own, a, h: a.to(h.dtype).type_as(h).tanh().contiguous(),
    "unchanged": lambda own, a, h: h,
    "forgotten": lambda own, a, h: a.tanh(),
    "dot": lambda own, a, h: a.tanh() * (a * h).sum(dim=-1, keepdim=True),
    "bilinear": lambda own, a, h: a.tanh() * torch.einsum("bi,ij,bj->b", h, own.V.weight, a).tanh().unsqueeze(-1),
}


def joined_weights(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return torch.tanh(a + h * torch.cat([own.gain[:13] * own.low[:13], own.high[13:]]))


def in_heads(a: Tensor) -> Tensor:
    return a.view(-1, *HEADS_OF)


def attention_over_heads(own: Own, a: Tensor, h: Tensor) -> Tensor:
    """Each head looks at all heads."""
    query, key = in_heads(a), in_heads(h)
    weights = torch.softmax(query @ key.transpose(1, 2) / 5**0.5, dim=-1)
    return (weights @ key).flatten(1) + a.tanh()


def normal_heads(own: Own, a: Tensor, h: Tensor) -> Tensor:
    heads = in_heads(a)
    heads = heads / (heads.square().mean(dim=-1, keepdim=True) + 1e-3).sqrt()
    return (heads * own.gains).reshape(a.shape)


def gates_of_heads(own: Own, a: Tensor, h: Tensor) -> Tensor:
    gate = torch.sigmoid(in_heads(a).sum(dim=-1))
    return torch.einsum("bhd,bh->bhd", in_heads(h), gate).reshape(h.shape) + a.tanh()


def chunks(own: Own, a: Tensor, h: Tensor) -> Tensor:
    first, second, third = a.chunk(3, dim=-1)
    return torch.cat(
        [second.tanh(), first * third.mean(dim=-1, keepdim=True), third.amax(-1, keepdim=True) - first], -1
    )


def across_heads(own: Own, a: Tensor, h: Tensor) -> Tensor:
    heads = in_heads(a)
    shares = torch.softmax(heads, dim=1)
    return (shares * in_heads(h) + heads.max(dim=1, keepdim=True).values + heads.mean(dim=1, keepdim=True)).flatten(1)


def transposed_heads(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return (in_heads(a).transpose(1, 2).reshape(a.shape) + h).tanh()


def rotated(own: Own, a: Tensor, h: Tensor) -> Tensor:
    """Pairs of numbers turned by an angle."""
    pairs = a[:, :14].view(-1, 7, 2)
    x, y = pairs[..., 0], pairs[..., 1]
    turned = torch.stack([x * h[:, :7].cos() - y * h[:, :7].sin(), x * h[:, :7].sin() + y * h[:, :7].cos()], dim=-1)
    return torch.cat([turned.flatten(1), a[:, 14:]], dim=-1)


HEADS: dict[str, Step] = {
    "heads with their own weights": lambda own, a, h: (
        torch.einsum("bhd,hde->bhe", in_heads(a.tanh()), own.per_head).flatten(1) + 0.2 * h
    ),
    "heads with one weight": lambda own, a, h: own.all_heads(in_heads(a).tanh()).flatten(1) - 0.2 * h,
    "heads mixed": lambda own, a, h: torch.einsum("bhd,hk->bkd", in_heads(a.tanh()), own.mix).flatten(1) + 0.1 * h,
    "dot of heads": lambda own, a, h: (
        in_heads(a.tanh()) * torch.einsum("bhd,bhd->bh", in_heads(a), in_heads(h)).unsqueeze(-1)
    ).flatten(1),
    "attention over heads": attention_over_heads,
    "normal heads": normal_heads,
    "layer norm of heads": lambda own, a, h: functional.layer_norm(in_heads(a), (5,)).flatten(1) * own.gain + h.tanh(),
    "group norm": lambda own, a, h: functional.group_norm(a, 3, own.gain, own.low),
    "gates of heads": gates_of_heads,
    "chunks": chunks,
    "across heads": across_heads,
    "transposed heads": transposed_heads,
    "rotated": rotated,
    "sum of everything": lambda own, a, h: a.tanh() + in_heads(h).sum(dim=(1, 2), keepdim=True).flatten(1),
    "one head chosen": lambda own, a, h: torch.cat([in_heads(a)[:, 1].tanh(), h[:, 5:] * in_heads(a)[:, 0, 3:4]], -1),
}


def looks(own: Own, a: Tensor, h: Tensor) -> Tensor:
    return a.tanh() if a.sum() > 0 else h


REFUSED: dict[str, tuple[Step, str]] = {
    "looks at values": (looks, "its step depends on the values of a batch"),
    "sorts": (
        lambda own, a, h: a.sort(dim=-1).values + h,
        "its step uses aten.sort.default, which a row pass does not support",
    ),
    "largest three": (lambda own, a, h: a.topk(3).values.sum(-1, keepdim=True) + h, "uses aten.topk.default"),
    "product of a row": (lambda own, a, h: a * h.prod(dim=-1, keepdim=True), "uses aten.prod.dim_int"),
    "mean over rows": (lambda own, a, h: a - h.mean(dim=0), "its step mixes rows"),
    "softmax over rows": (lambda own, a, h: torch.softmax(a, dim=0) + h, "its step mixes rows"),
    "rows in reverse": (lambda own, a, h: a + h.flip(0), "its step mixes rows"),
    "rows multiplied": (lambda own, a, h: (a @ h.T) @ h, "its step mixes rows"),
    "running sum over rows": (lambda own, a, h: a.cumsum(dim=0) + h, "its step mixes rows"),
    "first row alone": (lambda own, a, h: a + h[:1], "its step does not treat all rows alike"),
    "numbered rows": (
        lambda own, a, h: a + torch.arange(len(a), dtype=a.dtype).unsqueeze(1) * h,
        "its step creates a tensor of the batch's size (aten.arange.start_step)",
    ),
    "random": (lambda own, a, h: a + torch.rand_like(a), "its step draws random numbers"),
    "dropout": (lambda own, a, h: functional.dropout(a, 0.5), "its step draws random numbers"),
    "half precision": (lambda own, a, h: a.half().tanh().to(h.dtype) + h, "its step casts to torch.float16"),
    "to whole numbers": (lambda own, a, h: a + h.long(), "its step casts to torch.int64"),
    "frequencies": (lambda own, a, h: torch.fft.rfft(a).abs().sum(-1, keepdim=True) + h, "uses aten._fft_r2c.default"),
    "single precision": (
        lambda own, a, h: a + torch.where(h > 0, 0.3, 0.7) * 0.1,
        "its step computes in torch.float32",
    ),
    "looked up": (lambda own, a, h: a.gather(1, h.argmax(-1, keepdim=True)) + h, "aten.argmax.default"),
    "inverse": (
        lambda own, a, h: torch.linalg.inv(own.per_head[0] + h[:, 0].view(-1, 1, 1))[:, 0, :1] + a,
        "linalg_inv",
    ),
}


class Steps(Cell[tuple[Tensor, ...], tuple[()]]):
    """Several steps side by side, each with a state of its own: one plan, and one compilation, for all."""

    def __init__(self, input_size: int, hidden_size: int, *, names: Sequence[str]) -> None:
        super().__init__(input_size, hidden_size)
        self.named = {
            name: (
                STEPS | HEADS | {"joined weights": joined_weights} | {key: step for key, (step, _) in REFUSED.items()}
            )[name]
            for name in names
        }
        fields = [(name.replace(" ", "_"), Tensor) for name in names]
        self.State = NamedTuple("State", fields)  # type: ignore[misc,assignment]
        self.W = nn.Linear(input_size, len(names) * hidden_size)
        self.own = Own(hidden_size)

    def project(self, x: Tensor, fixed: tuple[()]) -> Tensor:
        return self.W(x)

    def parts(self, inputs: Tensor, state: tuple[Tensor, ...], fixed: tuple[()]) -> tuple[Tensor, ...]:
        sizes = [self.hidden_size] * len(self.named)
        pieces = zip(self.named.values(), inputs.split(sizes, dim=-1), state, strict=True)
        return self.State(*(step(self.own, x + self.own.U(h), h) for step, x, h in pieces))
