"""One layer of a Transformer: steps look at one another, then at a memory, then each is mapped by itself."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.attention import Memory
from recurra.attention.fused import attended
from recurra.attention.projected_dot import ProjectedDot
from recurra.attention.rotary import Rotation, rotated
from recurra.cells.weights import initialise

Norm: TypeAlias = Literal["pre", "post"]
Activation: TypeAlias = Literal["gelu", "relu"]


class Cache(NamedTuple):
    """What a layer keeps of the t steps before: the last column is the step just before the next one."""

    keys: Tensor  # (N, heads, t, d), turned by their positions
    values: Tensor  # (N, heads, t, d)
    real: Tensor  # (N, t): False where a row has fewer steps behind it
    position: Tensor  # (N,): of the next step


class Sight(NamedTuple):
    """Which steps may see which, and how far apart they are."""

    angles: Rotation | None  # of the T steps; None where queries and keys are not turned
    allowed: Tensor | None  # broadcasts to (B, heads, T, t + T)
    causal: bool  # where nothing else need be said


@final
class SelfAttention(nn.Module):
    """α_ij = softmax_j(R_i U q_i · R_j W k_j / √d) and Σ_j α_ij V x_j for each head, then O on all of them.

    R turns by the angle of a position, so that only the distance i − j counts.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.from_input = nn.Linear(width, 3 * width, bias=False)  # U, W and V
        self.output = nn.Linear(width, width, bias=False)  # O

    def forward(self, x: Tensor, past: Cache | None, sight: Sight) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """(B, T, width), and the keys and values of all columns."""
        q, k, v = self.parts(x, sight.angles)
        if past is not None:
            k = torch.cat([past.keys.to(k.dtype), k], dim=2)
            v = torch.cat([past.values.to(v.dtype), v], dim=2)
        seen = attended(q, k, v, sight.allowed, causal=sight.causal)
        return self.output(seen.transpose(1, 2).flatten(2)), (k, v)

    def parts(self, x: Tensor, angles: Rotation | None) -> tuple[Tensor, Tensor, Tensor]:
        """R U x, R W x and V x, each (B, heads, T, d); U x and W x without angles."""
        parts = self.from_input(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if angles is None:
            return parts[0], parts[1], parts[2]
        q, k = rotated(parts[:2], angles).to(parts.dtype)
        return q, k, parts[2]


@final
class CrossAttention(nn.Module):
    """ProjectedDot on a memory, without positions, then O on its context."""

    def __init__(self, width: int, memory_size: int, heads: int) -> None:
        super().__init__()
        self.attention = ProjectedDot(width, memory_size, heads=heads, values=width)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, memory: Memory, *, weighed: bool) -> tuple[Tensor, Tensor | None]:
        """(N, T, width) for x of the same shape; weighed: with the weights, (N, T, S).

        With k rows for each of the B sources, N = k B, one after the other: they are queries of one source.
        """
        rows, steps, width = x.shape
        queries = x.reshape(len(memory.mask), -1, width) if rows else x
        weights: Tensor | None = None
        if weighed:
            seen = self.attention(queries, memory)
            context, weights = seen.context, seen.weights.reshape(rows, steps, memory.mask.shape[1])
        else:
            context = self._context(queries, memory)
        return self.output(context.reshape(x.shape)), weights

    def _context(self, queries: Tensor, memory: Memory) -> Tensor:
        """The same context by the kernel that makes no weights."""
        attention = self.attention
        q = queries if attention.heads == 1 else attention.from_query(queries)
        keys, values = (each.unsqueeze(1) if attention.heads == 1 else each for each in memory[:2])
        allowed = memory.mask[:, None, None]
        seen = attended(attention.split(q), keys, values, allowed, scale=1.0)  # the keys are scaled already
        return seen.transpose(1, 2).flatten(2)


@final
class TransformerLayer(nn.Module):
    """One layer, its norms before its parts (Xiong et al. 2020), or after them (Vaswani et al. 2017).

    x ← x + drop(SelfAttention(LN(x)))                     post: x ← LN(x + drop(SelfAttention(x)))
    x ← x + drop(CrossAttention(LN(x), memory))            post: x ← LN(x + drop(CrossAttention(x, memory)))
    x ← x + drop(W_2 φ(W_1 LN(x) + b_1) + b_2)             post: x ← LN(x + drop(W_2 φ(W_1 x + b_1) + b_2))

    The second only where there is a memory. φ is gelu, or relu.
    """

    def __init__(
        self,
        width: int,
        *,
        heads: int,
        feed_forward: int,
        dropout: float = 0.0,
        memory_size: int | None = None,
        norm: Norm = "pre",
        activation: Activation = "gelu",
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.is_post = norm == "post"
        self.phi = functional.gelu if activation == "gelu" else functional.relu
        self.attention_norm = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.memory_norm = None if memory_size is None else nn.LayerNorm(width)
        self.memory_attention = None if memory_size is None else CrossAttention(width, memory_size, heads)
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, feed_forward)
        self.outer = nn.Linear(feed_forward, width)

    def forward(
        self, x: Tensor, past: Cache | None, sight: Sight, memory: Memory | None = None, *, weighed: bool = False
    ) -> tuple[Tensor, tuple[Tensor, Tensor], Tensor | None]:
        """(B, T, width), the keys and values of all columns, and the weights on the memory where they are asked for."""
        y, columns = self.attention(self._before(self.attention_norm, x), past, sight)
        x = self._after(self.attention_norm, x + self._dropped(y))
        weights: Tensor | None = None
        if self.memory_attention is not None and self.memory_norm is not None:
            assert memory is not None, "this layer looks at a memory"
            y, weights = self.memory_attention(self._before(self.memory_norm, x), memory, weighed=weighed)
            x = self._after(self.memory_norm, x + self._dropped(y))
        y = self.outer(self.phi(self.inner(self._before(self.norm, x))))
        return self._after(self.norm, x + self._dropped(y)), columns, weights

    def _before(self, norm: nn.LayerNorm, x: Tensor) -> Tensor:
        """What a part reads."""
        return x if self.is_post else norm(x)

    def _after(self, norm: nn.LayerNorm, x: Tensor) -> Tensor:
        """What goes on after a part."""
        return norm(x) if self.is_post else x

    def _dropped(self, y: Tensor) -> Tensor:
        return functional.dropout(y, self.dropout, self.training)

    def initialise(self, parts: int) -> None:
        """Glorot for every matrix; those that add to x, `parts` of them in the whole stack, are smaller by √parts."""
        initialise(self.attention.from_input.weight, 3, "glorot")
        added, others = [self.attention.output, self.outer], [self.inner]
        if self.memory_attention is not None:
            added.append(self.memory_attention.output)
            others += [layer for layer in self.memory_attention.attention.children() if isinstance(layer, nn.Linear)]
        for layer in (*added, *others):
            initialise(layer.weight, 1, "glorot")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        for layer in added if not self.is_post else ():  # norms that come after keep x from growing
            layer.weight.detach().mul_(parts**-0.5)
