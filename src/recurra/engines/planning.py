"""Finding the plan of a cell: traced once for all cells that are alike, and again when a cell's attributes change."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, fx
from torch.utils._pytree import tree_flatten

from recurra.cells import AnyCell
from recurra.engines.alike import likeness
from recurra.engines.engine import DirectedCell
from recurra.engines.generators import states_of, unnoticed
from recurra.engines.plan import Plan, make_plan
from recurra.engines.snapshot import Snapshot
from recurra.engines.trace import trace, weights_of
from recurra.engines.values import NoPlan
from recurra.padding import Padded

MOST_CHANGES = 8
"""So many versions of a cell's attributes are planned; to plan takes far longer than to run."""

CHANGES = (
    f"its Python attributes have had more than {MOST_CHANGES} different values, and each needs a plan of its own "
    "(a number that changes often can be a buffer)"
)


class Plans:
    """Plans of cells, each made when it is first asked for."""

    def __init__(self) -> None:
        self.known: WeakKeyDictionary[AnyCell, list[Known]] = WeakKeyDictionary()
        self.shared: WeakKeyDictionary[type, dict[tuple[Any, ...], Planning]] = WeakKeyDictionary()

    def plan(self, reader: DirectedCell, values: Tensor) -> Plan | str:
        """The plan of a cell as it now is, or why there is none."""
        return self.planning(reader, values).plan

    def planning(self, reader: DirectedCell, values: Tensor) -> Planning:
        """What is known of a cell as it now is; found out once for all cells that are alike."""
        cell = reader.cell
        key = (traced_type(values), shape_of(reader.fixed))
        known = self.known.setdefault(cell, [])
        if not known or not known[0].snapshot.holds():
            # The newest stands first: most calls find the cell as the last one left it.
            now = Snapshot(cell)
            now = next((each.snapshot for each in known if each.snapshot.is_like(now)), now)
            plans = next((each.plans for each in known if each.snapshot is now), {})
            known[:] = [Known(Snapshot(cell), plans), *(each for each in known if each.snapshot is not now)]
        if len(known) > MOST_CHANGES:
            return Planning(CHANGES, draws=True)
        plans = known[0].plans
        if key not in plans:
            found = likeness(cell)
            shared = {} if found is None else self.shared.setdefault(type(cell), {})
            if (key, found) not in shared:
                # In a thread of its own, without the caller's hooks on saved tensors, which tracing does not allow.
                with ThreadPoolExecutor(1) as thread:
                    shared[key, found] = thread.submit(made, cell, values).result()
            plans[key] = shared[key, found]
        return plans[key]


class Known(NamedTuple):
    """A cell with certain attributes, and the plans made of it, by type of number and shapes in `fixed`."""

    snapshot: Snapshot
    plans: dict[tuple[Any, ...], Planning]


class Planning(NamedTuple):
    """What is known of a cell in the mode it is in."""

    plan: Plan | str  # or why there is none
    draws: bool  # whether `project` draws random numbers, so that it must not be called twice


def made(cell: AnyCell, values: Tensor) -> Planning:
    """Trace a cell and cut it into a plan."""
    with torch.no_grad(), unnoticed(values.device):
        # The weights' own type: under autocast a batch may have another.
        like = values.new_zeros((), dtype=next((each.dtype for each in cell.parameters()), values.dtype))
        fixed = cell.fixed(1, like)
        before = states_of(values.device)
        width = cell.project(like.new_zeros(1, 1, cell.input_size), fixed).shape[-1]
        draws = not all(map(torch.equal, before, states_of(values.device)))
        try:
            return Planning(make_plan(trace(cell, width, like.to(traced_type(values)))), draws)
        except NoPlan as reason:
            return Planning(str(reason), draws)
        except Exception as error:  # a step that planning does not expect still runs, in the loop
            return Planning(f"planning it failed ({type(error).__name__}: {error})", draws)


def traced_type(values: Tensor) -> torch.dtype:
    """In half precision a step is traced in float32: torch's own formulas compute in it, and so do row passes."""
    return torch.float32 if values.dtype in (torch.bfloat16, torch.float16) else values.dtype


def leaves_of(fixed: Any) -> list[Any]:
    """The leaves of `fixed` as torch's tree_flatten gives them; tuples, which most are made of, ten times as fast."""
    if fixed is None or isinstance(fixed, Tensor):
        return [fixed]
    if not is_tuple(fixed):
        return tree_flatten(fixed)[0]
    return [leaf for part in fixed for leaf in leaves_of(part)]


def shape_of(fixed: Any) -> Hashable:
    """What a plan depends on in `fixed`: its structure, the shapes of its tensors but for the rows, other values."""
    if fixed is None:
        return None
    if isinstance(fixed, Tensor):
        return fixed.shape[1:]
    if is_tuple(fixed):
        return type(fixed), *(shape_of(part) for part in fixed)
    leaves, structure = tree_flatten(fixed)
    return str(structure), *(leaf.shape[1:] if isinstance(leaf, Tensor) else leaf for leaf in leaves)


def is_tuple(value: object) -> bool:
    return type(value) is tuple or (isinstance(value, tuple) and hasattr(value, "_fields"))


def split_fixed(plan: Plan, reader: DirectedCell) -> tuple[list[Tensor], list[Tensor]]:
    """What the plan takes beside inputs and states: tensors with a row each, and weights."""
    given = [leaf for leaf in leaves_of(reader.fixed) if isinstance(leaf, Tensor)]
    tensors = [*given, *weights_of(reader.cell).values()]
    of_rows = {int(name.removeprefix("fixed ")) for name in plan.trace.row_inputs}
    rows = [tensor for number, tensor in enumerate(tensors) if number in of_rows]
    return rows, [tensor for number, tensor in enumerate(tensors) if number not in of_rows]


def row_tensors(plan: Plan, reader: DirectedCell) -> list[Tensor]:
    return split_fixed(plan, reader)[0] if plan.trace.row_inputs else []


def inputs_of(reader: DirectedCell, x: Padded) -> Tensor:
    """The projected batch, in the order of reading."""
    inputs = reader.cell.project(x.values, reader.fixed)
    return Padded(inputs, x.lengths).reversed().values if reader.backward else inputs


def computed(node: fx.Node, known: dict[fx.Node, Tensor], plan: Plan) -> Tensor:
    """A node of the trace that no row owns, by torch."""
    if node in known:
        return known[node]
    if node.op == "get_attr":
        result = getattr(plan.trace.module, str(node.target))
    else:

        def value(argument: Any) -> Any:
            return computed(argument, known, plan) if isinstance(argument, fx.Node) else argument

        arguments = fx.node.map_arg(node.args, value)
        keywords = fx.node.map_arg(node.kwargs, value)
        result = node.target(*arguments, **keywords)  # type: ignore[operator]
    known[node] = result
    return result


class Nodes:
    """Some nodes of a trace that no row owns, as a function of others: printed once, and then as fast as torch."""

    def __init__(self, plan: Plan, given: Sequence[fx.Node], nodes: Sequence[fx.Node]) -> None:
        names = {node: f"w{number}" for number, node in enumerate(given)}
        found: dict[str, object] = {}
        lines: list[str] = []

        def named(argument: Any) -> str:
            if isinstance(argument, fx.Node):
                return name_of(argument)
            if isinstance(argument, list | tuple):
                return f"[{', '.join(named(part) for part in argument)}]"
            found[f"c{len(found)}"] = argument
            return f"c{len(found) - 1}"

        def name_of(node: fx.Node) -> str:
            if node not in names:
                if node.op == "get_attr":
                    found[f"c{len(found)}"] = getattr(plan.trace.module, str(node.target))
                    names[node] = f"c{len(found) - 1}"
                    return names[node]
                arguments = [named(argument) for argument in node.args]
                arguments += [f"{key}={named(argument)}" for key, argument in node.kwargs.items()]
                found[f"c{len(found)}"] = node.target
                call = f"c{len(found) - 1}({', '.join(arguments)})"
                names[node] = f"v{len(lines)}"
                lines.append(f"    {names[node]} = {call}")
            return names[node]

        results = [name_of(node) for node in nodes]
        inputs = ", ".join(names[node] for node in given)
        source = "\n".join([f"def run({inputs}):", *lines, f"    return [{', '.join(results)}]"])
        exec(source, found)
        self.run: Any = found["run"]

    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The nodes asked for, from tensors for those given."""
        result: list[Tensor] = self.run(*tensors)
        return result


PLANS = Plans()
"""Every cell's plan, for the whole process and all engines that run plans."""
