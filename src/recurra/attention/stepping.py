"""The steps of an attention in a loop on a GPU: scores, softmax and average of a step are one kernel, and so is its
way back.

    e_j = score(q_t, k_j);   α_t = softmax(e) over the real places;   context_t = Σ_j α_tj v_j

On the way back of a step only the gradient of its query is computed, and that of e is kept. What all steps add to is
left to the end, where it is one product or one kernel:

    dv_j = Σ_t α_tj dcontext_t;      dk_j = Σ_t de_tj q_t,  or  Σ_t de_tj v ∘ φ'(q_t + k_j) with an additive score

One program computes a row, or one head of it. φ(q + k) is computed again rather than kept.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from recurra.attention.additive import Additive
from recurra.attention.attention import Attention, Memory
from recurra.attention.bilinear import Bilinear
from recurra.attention.dot import Dot
from recurra.attention.projected_dot import ProjectedDot
from recurra.attention.scaled_dot import ScaledDot
from recurra.cells.weights import is_bare
from recurra.engines.stepping import CellSteps, Kind, Lent, Part, Room, is_turned, multiplied, summed_product
from recurra.engines.triton_kernels import is_interpreted, loaded
from recurra.engines.triton_source import PRELUDE, Kernel, power_of_two

MOST_PLACES = 2048
"""As many as one program holds at once."""

MOST_TOGETHER = 16
"""So many rows that look at the same source are computed together at most."""

TOGETHER_TILE = 8192
TOGETHER_STAGES = 3
TOGETHER_WARPS = 4
"""How many numbers of keys or values they load at once, how many times ahead, and by how many warps."""

MANY_ROWS = 256
"""From so many rows on a step without a way back computes its sums as products, which does not fit a pass of a cell."""

TILE = {2: 32768, 4: 8192}
"""How many numbers of keys or values a program loads at once, by the bytes of one."""

FITS = {  # how well query q and key k fit, number by number; Σ over them is the score
    "dot": "k * q",
    "tanh": "2.0 * v * tl.sigmoid(k + 2.0 * q)",  # keys are doubled already; see additive.py
    "quick tanh": "v * quick_tanh(0.5 * k + q)",
    "sigmoid": "v * tl.sigmoid(k + q)",
    "relu": "v * tl.maximum(k + q, 0.0)",
    "identity": "v * (k + q)",
}
SLOPES = {  # φ'(k + q), number by number, and by what the sums of it are multiplied for dq, dk and dv
    "tanh": ("tl.sigmoid(k + 2.0 * q)", "f * (1.0 - f)", 4.0, 2.0, 2.0),
    "quick tanh": ("quick_tanh(0.5 * k + q)", "1.0 - f * f", 1.0, 0.5, 1.0),
    "sigmoid": ("tl.sigmoid(k + q)", "f * (1.0 - f)", 1.0, 1.0, 1.0),
    "relu": ("tl.maximum(k + q, 0.0)", "tl.where(f > 0.0, 1.0, 0.0)", 1.0, 1.0, 1.0),
    "identity": ("k + q", "tl.full(f.shape, 1.0, tl.float32)", 1.0, 1.0, 1.0),
}

QUICK = '''

@triton.jit
def quick_tanh(a):
    """By one instruction of NVIDIA's GPUs, which is right to 11 bits: as many as half precision has."""
    code: tl.constexpr = "tanh.approx.f32 $0, $1;"
    return tl.inline_asm_elementwise(code, "=f,f", [a], dtype=tl.float32, is_pure=True, pack=1)
'''

HEADER = f"{PRELUDE}{QUICK}\n\n"


class Within(NamedTuple):
    """A row pass within a kernel of attention, as text: what one of the two writes of a row, the other reads."""

    source: str
    parameters: str
    call: str

    @classmethod
    def of(cls, row_pass: Kernel | None, *, is_first: bool) -> Within:
        if row_pass is None:
            return cls("", "", "")
        names = ", ".join(f"lent{n}" for n in range(2 + 3 * len(row_pass.arguments)))
        lines = [f"{row_pass.name}(t, {names}, False, 1)", "tl.debug_barrier()"]
        # A function with other functions around it: only the outermost one is launched.
        source = row_pass.source.replace('@triton.jit(do_not_specialize=["t"])', "@triton.jit")
        return cls(f"{source}\n\n", f"{names}, ", "\n    ".join(lines if is_first else reversed(lines)))


def indented(text: str, depth: int) -> str:
    return text.replace("\n", "\n" + "    " * depth)


@functools.lru_cache(maxsize=64)
def forward_source(score: str, targets: int, before: Kernel | None = None) -> str:
    """One step: weights, and the context written to so many places. A row pass may come before it."""
    lent = Within.of(before, is_first=True)
    outs = [f"c{n}" for n in range(targets)]
    stores = "\n".join(
        f"tl.store({out} + b * {out}_row + t * {out}_step + n * D + d, seen, mask=d < D)" for out in outs
    )
    of_v = "" if score == "dot" else "v = tl.load(weight + k_at, mask=k_at < K, other=0.0).to(tl.float32)[None, :]"
    return f"""{HEADER}{lent.source}
@triton.jit(do_not_specialize=["t"])
def attend(
    t, {lent.parameters}query, query_row, query_step, keys, values, mask, weight, alpha, alpha_head, alpha_step,
    {", ".join(f"{out}, {out}_row, {out}_step" for out in outs)},
    S, N: tl.constexpr, K: tl.constexpr, D: tl.constexpr, SP: tl.constexpr, BK: tl.constexpr, BD: tl.constexpr,
    AHEAD: tl.constexpr, EACH: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1)
    t = t.to(tl.int64)
    s = tl.arange(0, SP)
    source = b // EACH
    real = tl.load(mask + source * S + s, mask=s < S, other=0) != 0
    row = ((source * N + n) * S + s)[:, None]
    if AHEAD:
        k_at = tl.arange(0, BK)
        d = tl.arange(0, BD)
        ahead_k = tl.load(keys + row * K + k_at[None, :], mask=real[:, None] & (k_at < K)[None, :], other=0.0)
        ahead = tl.load(values + row * D + d[None, :], mask=real[:, None] & (d < D)[None, :], other=0.0)
    {lent.call}
    total = tl.zeros((SP, BK), tl.float32)
    for first in tl.static_range(0, K, BK):
        k_at = first + tl.arange(0, BK)
        if AHEAD:
            k = ahead_k.to(tl.float32)
        else:
            k = tl.load(keys + row * K + k_at[None, :], mask=real[:, None] & (k_at < K)[None, :], other=0.0)
            k = k.to(tl.float32)
        q = tl.load(query + b * query_row + t * query_step + n * K + k_at, mask=k_at < K, other=0.0)
        q = q.to(tl.float32)[None, :]
        {of_v}
        total += {FITS[score]}
    e = tl.where(real, tl.sum(total, 1), float("-inf"))
    top = tl.max(e, 0)
    p = tl.exp(e - tl.where(top == float("-inf"), 0.0, top))
    whole = tl.sum(p, 0)
    p = p / tl.where(whole == 0.0, 1.0, whole)
    tl.store(alpha + (b * N + n) * alpha_head + t * alpha_step + s, p, mask=s < S)
    for first in tl.static_range(0, D, BD):
        d = first + tl.arange(0, BD)
        if AHEAD:
            x = ahead.to(tl.float32)
        else:
            x = tl.load(values + row * D + d[None, :], mask=real[:, None] & (d < D)[None, :], other=0.0).to(tl.float32)
        seen = tl.sum(x * p[:, None], 0)
        {indented(stores, 2)}
"""


@functools.lru_cache(maxsize=16)
def together_source(targets: int) -> str:
    """One step of the rows that look at one source, with a dot score: both sums are products of small matrices."""
    outs = [f"c{n}" for n in range(targets)]
    stores = "\n".join(
        f"tl.store({out} + b[:, None] * {out}_row + t * {out}_step + n * D + d[None, :], seen, "
        "mask=is_row[:, None] & (d < D)[None, :])"
        for out in outs
    )
    return f"""{HEADER}
@triton.jit(do_not_specialize=["t"])
def attend_together(
    t, query, query_row, query_step, keys, values, mask, weight, alpha, alpha_head, alpha_step,
    {", ".join(f"{out}, {out}_row, {out}_step" for out in outs)},
    S, N: tl.constexpr, K: tl.constexpr, D: tl.constexpr, SP: tl.constexpr, BK: tl.constexpr, BD: tl.constexpr,
    EACH: tl.constexpr, QP: tl.constexpr, STAGES: tl.constexpr,
):
    source = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1)
    t = t.to(tl.int64)
    s = tl.arange(0, SP)
    q_at = tl.arange(0, QP)
    is_row = q_at < EACH
    b = source * EACH + q_at
    real = tl.load(mask + source * S + s, mask=s < S, other=0) != 0
    row = ((source * N + n) * S + s)[:, None]
    e = tl.zeros((QP, SP), tl.float32)
    for first in tl.range(0, K, BK, num_stages=STAGES):
        k_at = first + tl.arange(0, BK)
        k = tl.load(keys + row * K + k_at[None, :], mask=real[:, None] & (k_at < K)[None, :], other=0.0)
        q_place = b[:, None] * query_row + t * query_step + n * K + k_at[None, :]
        q = tl.load(query + q_place, mask=is_row[:, None] & (k_at < K)[None, :], other=0.0)
        e = tl.dot(q, tl.trans(k), e, input_precision="ieee")
    e = tl.where(real[None, :], e, float("-inf"))
    top = tl.max(e, 1)
    p = tl.exp(e - tl.where(top == float("-inf"), 0.0, top)[:, None])
    whole = tl.sum(p, 1)
    p = p / tl.where(whole == 0.0, 1.0, whole)[:, None]
    place = alpha + (b * N + n)[:, None] * alpha_head + t * alpha_step + s[None, :]
    tl.store(place, p, mask=is_row[:, None] & (s < S)[None, :])
    for first in tl.range(0, D, BD, num_stages=STAGES):
        d = first + tl.arange(0, BD)
        x = tl.load(values + row * D + d[None, :], mask=real[:, None] & (d < D)[None, :], other=0.0)
        seen = tl.dot(p.to(x.dtype), x, input_precision="ieee")
        {indented(stores, 2)}
"""


@functools.lru_cache(maxsize=64)
def backward_source(score: str, gradients: tuple[Kind, ...], after: Kernel | None = None) -> str:
    """One step back: the gradient of the scores and of the query, from that of the context in so many parts. A row pass
    may come after it."""
    lent = Within.of(after, is_first=False)
    names = [f"g{n}" for n in range(len(gradients))]
    terms = []
    for name, kind in zip(names, gradients, strict=True):
        for part in range(kind.parts):
            step = f"t * {name}_step" if kind.is_sequence else f"{part} * {name}_step"
            at = f"{name} + b * {name}_row + {step} + n * D + d"
            terms.append(f"tl.load({at}, mask=d < D, other=0.0).to(tl.float32)")
    lines = [f"g = {terms[0]}", *(f"g += {term}" for term in terms[1:])]
    if score == "dot":
        of_query = "dq = tl.sum(k * de[:, None], 0)"
    else:
        of_phi, slope, factor, _, _ = SLOPES[score]
        of_query = "\n".join(
            [
                "q = tl.load(query + b * query_row + t * query_step + n * K + k_at, mask=k_at < K, other=0.0)",
                "q = q.to(tl.float32)[None, :]",
                "v = tl.load(weight + k_at, mask=k_at < K, other=0.0).to(tl.float32)",
                f"f = {of_phi}",
                f"dq = {factor} * v * tl.sum(de[:, None] * ({slope}), 0)",
            ]
        )
    return f"""{HEADER}{lent.source}
@triton.jit(do_not_specialize=["t"])
def attend_back(
    t, {lent.parameters}query, query_row, query_step, keys, values, mask, weight, alpha, alpha_head, alpha_step,
    d_scores, d_alpha, d_alpha_row, d_alpha_step, d_context, d_context_row, d_context_step,
    d_query, d_query_row, d_query_step,
    {", ".join(f"{name}, {name}_row, {name}_step" for name in names)},
    S, N: tl.constexpr, K: tl.constexpr, D: tl.constexpr, SP: tl.constexpr, BK: tl.constexpr, BD: tl.constexpr,
    AHEAD: tl.constexpr, SEEN: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1)
    t = t.to(tl.int64)
    s = tl.arange(0, SP)
    real = tl.load(mask + b * S + s, mask=s < S, other=0) != 0
    row = ((b * N + n) * S + s)[:, None]
    if AHEAD:
        k_at = tl.arange(0, BK)
        ahead = tl.load(keys + row * K + k_at[None, :], mask=real[:, None] & (k_at < K)[None, :], other=0.0)
    a = tl.load(alpha + (b * N + n) * alpha_head + t * alpha_step + s, mask=s < S, other=0.0)
    total = tl.zeros((SP, BD), tl.float32)
    for first in tl.static_range(0, D, BD):
        d = first + tl.arange(0, BD)
        x = tl.load(values + row * D + d[None, :], mask=real[:, None] & (d < D)[None, :], other=0.0).to(tl.float32)
        {indented(chr(10).join(lines), 2)}
        tl.store(d_context + b * d_context_row + t * d_context_step + n * D + d, g, mask=d < D)
        total += x * g[None, :]
    da = tl.sum(total, 1)
    if SEEN:
        given = tl.load(d_alpha + b * d_alpha_row + t * d_alpha_step + s, mask=s < S, other=0.0).to(tl.float32)
        da += given / N
    de = a * (da - tl.sum(a * da, 0))
    tl.store(d_scores + (b * N + n) * alpha_head + t * alpha_step + s, de, mask=s < S)
    for first in tl.static_range(0, K, BK):
        k_at = first + tl.arange(0, BK)
        if AHEAD:
            k = ahead.to(tl.float32)
        else:
            k = tl.load(keys + row * K + k_at[None, :], mask=real[:, None] & (k_at < K)[None, :], other=0.0)
            k = k.to(tl.float32)
        {indented(of_query, 2)}
        tl.store(d_query + b * d_query_row + t * d_query_step + n * K + k_at, dq, mask=k_at < K)
    {lent.call}
"""


@functools.lru_cache(maxsize=16)
def keys_source(score: str) -> str:
    """After the loop, of an additive score: the gradients of keys and v, all steps at once.

    A program owns some places and numbers of a row; places that are not real have no gradient.
    """
    of_phi, slope, _, of_keys, of_v = SLOPES[score]
    return f"""{HEADER}
@triton.jit
def attend_keys(
    query, query_row, query_step, keys, weight, mask, d_scores, d_keys, d_weight, T, S,
    K: tl.constexpr, BS: tl.constexpr, BK: tl.constexpr, STEPS: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    zero = b - b  # of 64 bits, as a step times a stride needs them
    s = tl.program_id(1) * BS + tl.arange(0, BS)
    k_at = tl.program_id(2) * BK + tl.arange(0, BK)
    real = tl.load(mask + b * S + s, mask=s < S, other=0) != 0
    at = (b * S + s)[:, None] * K + k_at[None, :]
    inside = (s < S)[:, None] & (k_at < K)[None, :]
    of_keys = tl.zeros((BS, BK), tl.float32)
    of_v = tl.zeros((BS, BK), tl.float32)
    if tl.max(real.to(tl.int32), 0) != 0:
        k = tl.load(keys + at, mask=inside, other=0.0).to(tl.float32)
        q_at = query + b * query_row + k_at
        e_at = d_scores + b * T * S + s
        for first in range(0, T, STEPS):
            for n in tl.static_range(STEPS):
                t = first + n + zero
                q = tl.load(q_at + t * query_step, mask=(k_at < K) & (t < T), other=0.0).to(tl.float32)[None, :]
                de = tl.load(e_at + t * S, mask=real & (t < T), other=0.0)[:, None]
                f = {of_phi}
                of_keys += de * ({slope})
                of_v += de * f
    v = tl.load(weight + k_at, mask=k_at < K, other=0.0).to(tl.float32)[None, :]
    tl.store(d_keys + at, {of_keys} * v * of_keys, mask=inside)
    parts = tl.num_programs(1)
    tl.store(d_weight + (b * parts + tl.program_id(1)) * K + k_at, {of_v} * tl.sum(of_v, 0), mask=k_at < K)
"""


class Tiles(NamedTuple):
    """How much of a memory one program holds."""

    SP: int
    BK: int
    BD: int
    warps: int
    AHEAD: bool  # whether what is needed last is asked for first

    @classmethod
    def of(cls, S: int, K: int, D: int, size: int) -> Tiles:
        SP = max(16, power_of_two(S))
        most = max(16, TILE[size] // SP)
        BK, BD = min(most, max(16, power_of_two(K))), min(most, max(16, power_of_two(D)))
        warps = 4 if SP * max(BK, BD) <= 8192 else 8
        return cls(SP, BK, BD, warps, size == 2 and BK >= K and BD >= D)

    @property
    def options(self) -> dict[str, int | bool]:
        return {"SP": self.SP, "BK": self.BK, "BD": self.BD, "AHEAD": self.AHEAD, "num_warps": self.warps}

    @property
    def of_few_rows(self) -> dict[str, int]:
        """For rows of one source together: blocks of 16 rows, the least that a product on a GPU has."""
        most = max(16, TOGETHER_TILE // self.SP)
        sizes = {"SP": self.SP, "BK": min(most, self.BK), "BD": min(most, self.BD), "QP": MOST_TOGETHER}
        return {**sizes, "STAGES": TOGETHER_STAGES, "num_warps": TOGETHER_WARPS}


def score_of(attention: Attention) -> str | None:
    """Which of the scores above an attention has; None where it has another."""
    if type(attention) in (Dot, Bilinear, ScaledDot):
        return "dot"
    if type(attention) is ProjectedDot and is_bare(attention.from_query):
        return "dot"
    if type(attention) is Additive and attention.activation in SLOPES and is_bare(attention.from_query):
        return attention.activation
    return None


def no_steps(attention: Attention, memory: Memory) -> str | None:
    """Why an attention cannot be run by these kernels, in words; None where it can."""
    if score_of(attention) is None:
        return f"the score of '{type(attention).__name__}' is not known to the kernels"
    if attention.location is not None or len(attention.terms):
        return "the attention looks back at its own weights"
    if attention.look is not None or attention.gate is not None:
        return "the attention has a look or a gate of its own"
    if memory.mask.shape[1] > MOST_PLACES or memory.mask.shape[1] == 0:
        return f"the kernels hold 1 to {MOST_PLACES} places, but the memory has {memory.mask.shape[1]}"
    return None


class AttentionSteps:
    """An attention in a loop: its steps forward and back, and the gradients after the last."""

    def __init__(
        self,
        attention: Attention,
        room: Room,
        memory: Memory,
        v: Tensor | None,
        from_query: Tensor | None,
        query: Tensor,
        contexts: Sequence[Tensor],
        beside: CellSteps | None = None,
        each: int = 1,
        *,
        returns: bool = True,
    ) -> None:
        """
        beside       a cell whose h is the query, and whose product of h is computed together with W q
        each         how many rows look at one source, one after the other; more than one have no way back
        returns      whether there will be a way back
        v            of an additive score, (K,)
        from_query   W, by which the query is multiplied first, (heads K, Q); None: it is compared as it is
        query        (T, B, Q)
        contexts     where the context of each step is written, (T, B, D) each
        """
        score = score_of(attention)
        assert score is not None
        # In float32, and where no GPU of NVIDIA runs the kernels, φ has all its digits.
        is_quick = room.dtype != torch.float32 and not is_interpreted() and torch.version.cuda is not None
        self.score = "quick tanh" if score == "tanh" and is_quick else score
        self.room = room
        self.heads = attention.heads
        self.keys, self.values = (each.to(room.dtype).contiguous() for each in memory[:2])
        self.mask = memory.mask.contiguous().view(torch.uint8)
        self.places = memory.mask.shape[1]
        self.v = v
        self.size, self.share = self.keys.shape[-1], self.values.shape[-1]
        self.query = query
        self.from_query = None if from_query is None else from_query.to(room.dtype)
        self.compared = query
        self.beside: CellSteps | None = None
        if self.from_query is not None:
            self.multiply_query(self.from_query, beside)
        self.weights = torch.empty(
            room.rows, self.heads, room.steps, self.places, dtype=torch.float32, device=room.device
        )
        self.tiles = Tiles.of(self.places, self.size, self.share, self.keys.element_size())
        self.block = 16, min(64, max(16, power_of_two(self.size)))  # places and numbers, in the kernel after the loop
        self.contexts = list(contexts)
        self.each = each
        is_many = each > 1 or (room.rows >= MANY_ROWS and not returns)
        self.are_together = self.score == "dot" and is_many and each <= MOST_TOGETHER
        self.grid = (room.rows // each if self.are_together else room.rows, self.heads)
        self.lent: Lent | None = None
        self.of_query: Part | None = None

    def multiply_query(self, W: Tensor, beside: CellSteps | None) -> None:
        """Make room for W q, and for U h behind it."""
        lead = None if beside is None else beside.offered_lead()
        width = 0 if lead is None else lead.forward.out.width
        self.products = self.room.sequence(len(W) + width)
        self.compared = self.products[:, :, : len(W)]
        self.matrix = W
        if beside is not None and lead is not None:
            self.U = beside.take_lead(lead, self.products[:, :, len(W) :])
            self.matrix = torch.cat([W, self.U.t()], dim=0)
            self.beside = beside

    def arguments(self) -> list[object]:
        first = [self.compared, self.compared.stride(1), self.compared.stride(0)]
        v = self.weights if self.v is None else self.v
        of_weights = [self.weights, self.weights.stride(1), self.weights.stride(2)]
        return [*first, self.keys, self.values, self.mask, v, *of_weights]

    @property
    def sizes(self) -> dict[str, int]:
        return {"N": self.heads, "K": self.size, "D": self.share}

    def prepare(self, lent: Lent | None = None) -> None:
        """Find the kernel; the last pass of the cell that makes the query may be part of it."""
        self.lent = lent
        if self.are_together:
            assert lent is None, "a pass of a cell computes one row at a time"
            self.call = loaded(together_source(len(self.contexts)))["attend_together"]
            return
        source = forward_source(self.score, len(self.contexts), None if lent is None else lent.kernel)
        self.call = loaded(source)["attend"]

    @property
    def is_next_to_query(self) -> bool:
        """Whether no product stands between the cell that makes the query and the attention, and both go row by row."""
        return self.heads == 1 and self.from_query is None and not self.are_together

    def forward(self, t: int) -> None:
        if self.from_query is not None:
            torch.mm(self.query[t], self.matrix.t(), out=self.products[t])
        outs = [part for out in self.contexts for part in (out, out.stride(1), out.stride(0))]
        lent = () if self.lent is None else self.lent.arguments
        options = self.tiles.of_few_rows if self.are_together else self.tiles.options
        self.call[self.grid](t, *lent, *self.arguments(), *outs, self.places, EACH=self.each, **self.sizes, **options)

    def mean_weights(self) -> Tensor:
        """(B, T, S)."""
        return self.weights.squeeze(1) if self.heads == 1 else self.weights.mean(1)

    # Backward

    def begin_backward(self) -> None:
        """Make room for what the steps back leave to others: the gradient of the query is `of_query`."""
        room = self.room
        self.d_scores = torch.empty_like(self.weights)
        self.d_context = room.sequence(self.heads * self.share)
        if self.from_query is None:
            self.d_compared = room.once(self.query.shape[2], dtype=torch.float32)
            self.of_query = Part(self.d_compared, is_sequence=False)
        else:
            K, width = len(self.from_query), self.query.shape[2]
            self.d_products = torch.empty_like(self.products)
            self.d_compared = self.d_products[:, :, :K]
            self.d_matrix = self.matrix
            if self.beside is not None:
                U = self.beside.take_d_lead(self.d_products[:, :, K:])
                if not is_turned(U, self.U):
                    self.d_matrix = torch.cat([self.from_query, U], dim=0)
            self.d_query = room.once(width, room.parts(len(self.d_matrix), width))
            self.of_query = Part(self.d_query, is_sequence=False)

    def prepare_backward(self, gradients: Sequence[Part], d_weights: Tensor | None, lent: Lent | None = None) -> None:
        """
        gradients    parts of that of the context
        d_weights    gradient of the weights that the loop returns, (B, T, S)
        lent         the first pass back of the cell that made the query
        """
        self.lent_back = lent
        kinds = tuple(part.kind for part in gradients)
        source = backward_source(self.score, kinds, None if lent is None else lent.kernel)
        self.call_back = loaded(source)["attend_back"]
        self.gradients = list(gradients)
        self.d_weights = d_weights

    def backward(self, t: int) -> None:
        seen = self.d_weights
        of_seen = [self.weights, 0, 0] if seen is None else [seen, seen.stride(0), seen.stride(1)]
        d = self.d_compared
        step = d.stride(0) if self.from_query is not None else 0
        self.call_back[self.grid](
            t,
            *(() if self.lent_back is None else self.lent_back.arguments),
            *self.arguments(),
            self.d_scores,
            *of_seen,
            self.d_context,
            self.d_context.stride(1),
            self.d_context.stride(0),
            d,
            d.stride(1),
            step,
            *(part for each in self.gradients for part in (each.tensor, each.tensor.stride(1), each.tensor.stride(0))),
            self.places,
            SEEN=seen is not None,
            **self.sizes,
            **self.tiles.options,
        )
        if self.from_query is not None:
            multiplied(self.d_products[t], self.d_matrix, self.d_query)

    # After the loop

    def by_head(self, sequence: Tensor) -> Tensor:
        """(B heads, T, ·) of (T, B, heads ·)."""
        if self.heads == 1:
            return sequence.transpose(0, 1)
        return sequence.unflatten(2, (self.heads, -1)).permute(1, 2, 0, 3).flatten(0, 1)

    def memory_gradients(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Of keys, values and v."""
        dtype, S = self.room.dtype, self.places
        of_weights, of_scores = (
            each.view(-1, self.room.steps, S).transpose(1, 2) for each in (self.weights, self.d_scores)
        )
        d_values = torch.bmm(of_weights.to(dtype), self.by_head(self.d_context))
        if self.v is None:
            d_keys = torch.bmm(of_scores.to(dtype), self.by_head(self.compared))
            return d_keys.view(self.keys.shape), d_values.view(self.values.shape), None
        BS, BK = self.block
        grid = (self.room.rows, -(-S // BS), -(-self.size // BK))
        d_keys = torch.empty_like(self.keys)
        d_v = torch.empty(grid[0] * grid[1], self.size, dtype=torch.float32, device=self.keys.device)
        loaded(keys_source(self.score))["attend_keys"][grid](
            self.compared,
            self.compared.stride(1),
            self.compared.stride(0),
            self.keys,
            self.v,
            self.mask,
            self.d_scores,
            d_keys,
            d_v,
            self.room.steps,
            S,
            K=self.size,
            BS=BS,
            BK=BK,
            STEPS=4,
            num_warps=4,
        )
        return d_keys, d_values.view(self.values.shape), d_v.sum(0)

    def query_gradient(self) -> Tensor | None:
        """Of W, by which the query is multiplied."""
        if self.from_query is None:
            return None
        return summed_product(self.d_compared.flatten(0, 1), self.query.flatten(0, 1))
