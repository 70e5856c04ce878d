"""The recurrent matrices of a cell, by name, and the largest singular value of each."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from recurra.analysis.watching import Seen
from recurra.cells import AnyCell, Product
from recurra.cells.cell import fields
from recurra.cells.weights import leaves, replaced


def recurrent_matrices(seen: Seen) -> dict[str, float]:
    """λ₁, the largest singular value, of U; of a cell with gates of U_i, U_f, …. Empty where a cell shows none.

    A cell shows its recurrent weights as a Product. Which gate a block of it belongs to is found by leaving it out:
    the first that answers otherwise, and has no name yet, gives it its name.

    >>> from recurra import Padded, Recurrent
    >>> from recurra.analysis.jacobian import stack_seen
    >>> [seen] = stack_seen(Recurrent("lstm", 2, 3), Padded.full(torch.randn(1, 2, 2)))
    >>> {name: round(value, 6) for name, value in recurrent_matrices(seen).items()}  # they start orthogonal
    {'U_i': 1.0, 'U_f': 1.0, 'U_candidate': 1.0, 'U_o': 1.0}
    """
    step, size = seen.steps[-1], seen.steps[-1].before[0].shape[1]
    x = step.x[:1]
    with torch.no_grad():
        fixed = seen.cell.fixed(1, x)
        weights = [product.weight for product in leaves(fixed, Product)]
        blocks = [
            (number, slice(at, at + size))
            for number, weight in enumerate(weights)
            for at in range(0, len(weight) if weight.dim() == 2 else 1, size)
        ]
        gates = [name for name in fields(step.parts) if name not in fields(seen.cell.State)]
        whole = _parts(seen.cell, x, fixed)
        found: dict[str, float] = {}
        for number, block in blocks:
            less = _parts(seen.cell, x, _without(fixed, number, block))
            other = [name for name in gates if not torch.equal(whole[name], less[name]) and f"U_{name}" not in found]
            name = "U" if len(blocks) == 1 and not gates else f"U_{other[0]}" if other else f"U {len(found) + 1}"
            weight = weights[number]
            size_of = weight.abs().max() if weight.dim() == 1 else torch.linalg.matrix_norm(weight[block], 2)
            found[name] = float(size_of)
    return found


def _parts(cell: AnyCell, x: Tensor, fixed: Any) -> dict[str, Tensor]:
    """One step from a state that every weight acts on."""
    inputs = cell.project(x, fixed)
    state = cell.State(*(torch.linspace(0.5, 1.0, field.shape[1]).to(x).unsqueeze(0) for field in cell.start(1, x)))
    return dict(cell.parts(inputs, state, fixed)._asdict())  # type: ignore[attr-defined]  # a NamedTuple


def _without(fixed: Any, number: int, block: slice) -> Any:
    """The same, with zeros for one block of the weights of one product."""
    places = itertools.count()

    def less(product: Product) -> Product:
        if next(places) != number:
            return product
        weight = product.weight.clone()
        weight[block] = 0
        return product._replace(weight=weight)

    return replaced(fixed, Product, less)
