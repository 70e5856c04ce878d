"""How a change of a state goes on: exact Jacobians of a step, their products over time, and what bounds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from recurra.analysis.matrices import recurrent_matrices
from recurra.analysis.watching import Seen, Step, Watch
from recurra.cells import AnyCell, Elman, IndRNN, OrthogonalElman, Wrapper
from recurra.cells.cell import fields
from recurra.cells.weights import Activation
from recurra.padding import Padded
from recurra.stacks.recurrent import Recurrent

AT_ONCE = 4096
"""Rows of a batch by which Jacobians are found: each row of one needs a row of its own."""


class Jacobian(NamedTuple):
    """What one step makes of a small change, for each row of a batch."""

    state: Tensor  # (B, S, S): ∂s_t / ∂s_{t−1}, s all fields of the state one after the other
    x: Tensor  # (B, S, I): ∂s_t / ∂x_t


class Products(NamedTuple):
    """Products of Jacobians from a row's last step T back to each step t, as natural logarithms, by T − t = 0, 1, ….

    All are (B, L), NaN where a row has no such step, −∞ for 0; of h, and of c where there is one.
    """

    largest: dict[str, Tensor]  # singular value of ∂h_T / ∂h_t
    smallest: dict[str, Tensor]  # NaN too where it is so far below the largest that float64 cannot tell it
    norm: dict[str, Tensor]  # the root of the sum of all squares
    inputs: Tensor  # the same norm of ∂h_T / ∂x_t
    bound: Tensor | None  # on the largest of h: Π_{k = t+1}^{T} max_i γ_{k,i} · λ₁; of cells that are one product and φ


def step_jacobian(cell: AnyCell, x: Tensor, before: tuple[Tensor, ...]) -> Jacobian:
    """The exact Jacobian of one step, for inputs (B, I) and the state before it.

    A cell treats the rows of a batch alone, so a batch in which each row stands S times gives all S rows of its
    Jacobian in one backward pass, whatever the cell is made of.

    >>> cell = IndRNN(1, 2, activation="identity").double()
    >>> found = step_jacobian(cell, torch.zeros(1, 1).double(), cell.start(1, torch.zeros(1).double()))
    >>> bool((found.state[0].diagonal() == cell.from_state).all()), found.state[0, 0, 1].item()
    (True, 0.0)
    """
    size = sum(field.shape[1] for field in before)
    rows = max(1, AT_ONCE // size)
    parts = [
        _jacobian(cell, x[at : at + rows], tuple(field[at : at + rows] for field in before), size)
        for at in range(0, len(x), rows)
    ]
    return Jacobian(torch.cat([part.state for part in parts]), torch.cat([part.x for part in parts]))


def _jacobian(cell: AnyCell, x: Tensor, before: tuple[Tensor, ...], size: int) -> Jacobian:
    given = [each.detach().repeat_interleave(size, 0).requires_grad_() for each in (x, *before)]
    with torch.enable_grad():
        fixed = cell.fixed(len(given[0]), given[0])
        after = cell.step(cell.project(given[0], fixed), cell.State(*given[1:]), fixed)
        basis = torch.eye(size, dtype=x.dtype).repeat(len(x), 1)
        of_x, *of_state = torch.autograd.grad(
            torch.cat(after, 1), given, basis, allow_unused=True, materialize_grads=True
        )
    return Jacobian(torch.cat(of_state, 1).unflatten(0, (len(x), size)), of_x.unflatten(0, (len(x), size)))


def step_jacobians(rnn: Recurrent, x: Padded, *, layer: int = 0, direction: int = 0) -> Iterator[Jacobian]:
    """The Jacobian of each step of one layer and direction, in the order of reading.

    >>> rnn = Recurrent("lstm", 2, 3)
    >>> [found.state.shape for found in step_jacobians(rnn, Padded.full(torch.randn(1, 2, 2)))]
    [torch.Size([1, 6, 6]), torch.Size([1, 6, 6])]
    """
    seen = [each for each in stack_seen(rnn, x) if each.layer == layer][direction]
    for step in seen.steps:
        yield step_jacobian(seen.cell, step.x, step.before)


def stack_seen(rnn: Recurrent, x: Padded) -> list[Seen]:
    """What each layer and direction of a stack does with a batch."""
    watch = Watch(rnn)
    with torch.no_grad():
        watch.model(Padded(x.values.double(), x.lengths))
    return watch.seen()


def products(seen: Seen, *, steps: int | None = None) -> Products:
    """Products of the Jacobians of one cell, over so many steps back at most.

    >>> [seen] = stack_seen(Recurrent("gru", 2, 3), Padded.full(torch.randn(2, 4, 2)))
    >>> found = products(seen)
    >>> found.largest["h"].shape, found.largest["h"][:, 0].tolist(), found.bound is None
    (torch.Size([2, 4]), [0.0, 0.0], True)
    """
    real, state = seen.real, seen.steps[0].before
    blocks = _blocks(seen, state)
    rows, size = len(seen.lengths), sum(field.shape[1] for field in state)
    product = torch.eye(size, dtype=state[0].dtype).repeat(rows, 1, 1)
    scale = product.new_zeros(rows)  # the logarithm of what the product was divided by, lest it leave the range
    names = [f"{kind} {name}" for name in blocks for kind in ("largest", "smallest", "norm")]
    logs = {name: product.new_full((len(real), rows), torch.nan) for name in [*names, "inputs"]}
    lengths = torch.full_like(seen.lengths, len(real)) if seen.backward else seen.lengths
    first = 0 if steps is None else max(0, int(lengths[seen.lengths > 0].min()) - steps)
    for k in reversed(range(first, len(real))):
        for name, block in blocks.items():
            values = torch.linalg.svdvals(product[:, block, block])
            told = values[:, -1] > values[:, 0] * values.shape[1] * torch.finfo(values.dtype).eps
            logs[f"largest {name}"][k] = values[:, 0].log() + scale
            logs[f"smallest {name}"][k] = (values[:, -1].log() + scale).where(told, torch.nan)
            logs[f"norm {name}"][k] = values.norm(dim=1).log() + scale
        one = _turn(seen, k)
        h = blocks[next(iter(blocks))]
        logs["inputs"][k] = (product[:, h] @ one.x).flatten(1).norm(dim=1).log() + scale
        product = torch.where(real[k].view(-1, 1, 1), product @ one.state, product)
        grown = product.flatten(1).norm(dim=1)
        grown = torch.where(grown > 0, grown, 1.0)
        product, scale = product / grown.view(-1, 1, 1), scale + grown.log()
    found = {name: seen.by_lag(values)[:, :steps] for name, values in logs.items()}
    largest, smallest, norm = (
        {name: found[f"{kind} {name}"] for name in blocks} for kind in ("largest", "smallest", "norm")
    )
    bound = bounds(seen)
    return Products(largest, smallest, norm, found["inputs"], None if bound is None else bound[:, :steps])


def _turn(seen: Seen, k: int) -> Jacobian:
    """What the k-th step makes of a change, with that of a second cell which changes the same state before it."""
    one = step_jacobian(seen.cell, seen.steps[k].x, seen.steps[k].before)
    turn = seen.turn_before(k)
    if turn is None:
        return one
    cell, step = turn
    return one._replace(state=one.state @ step_jacobian(cell, step.x, step.before).state)


def _blocks(seen: Seen, state: tuple[Tensor, ...]) -> dict[str, slice]:
    """Where the first field of the state, and c, lie among all."""
    names, ends = fields(seen.cell.State), torch.tensor([field.shape[1] for field in state]).cumsum(0).tolist()
    places = {name: slice(end - field.shape[1], end) for name, end, field in zip(names, ends, state, strict=True)}
    return {name: place for name, place in places.items() if name in (names[0], "c")}


def bounds(seen: Seen) -> Tensor | None:
    """(B, T): log of Π_{k = t+1}^{T} max_i |γ_{k,i}| · λ₁ by T − t, γ = φ'(W x + U h + b); None of other cells.

    ‖diag(γ) U‖ ≤ max_i |γ_i| · λ₁, so no product of Jacobians is larger.
    """
    each = [slopes_of(seen.cell, step) for step in seen.steps]
    if seen.other is not None or any(found is None for found in each):
        return None
    largest = torch.stack([found for found in each if found is not None])  # (T, B)
    [lambda_1] = recurrent_matrices(seen).values()
    factors = seen.by_lag((largest * lambda_1).log())
    before = torch.cat([torch.zeros_like(factors[:, :1]), factors[:, :-1]], 1)  # the step that is reached is not passed
    return before.cumsum(1).where(~factors.isnan(), torch.nan)


def slopes_of(cell: AnyCell, step: Step) -> Tensor | None:
    """(B,): the largest |φ'| among the units of one step; None where a step is not one product and one φ."""
    fixed = cell.fixed(len(step.x), step.x)
    inputs = cell.project(step.x, fixed)
    while isinstance(cell, Wrapper):
        if (bare := cell.bare(fixed)) is None:
            return None
        cell, fixed = bare
    phi: Activation | None = None
    if isinstance(cell, Elman | IndRNN):
        phi = cell.phi
    elif isinstance(cell, OrthogonalElman):
        phi = cell.phi if cell.phi is not None or cell.unitary else cell.modrelu
    if phi is None:
        return None
    with torch.enable_grad():
        a = (inputs + fixed.U(step.before[0])).detach().requires_grad_()
        [gamma] = torch.autograd.grad(phi(a).sum(), a)
    return gamma.abs().amax(1)
