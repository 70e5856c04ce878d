"""Every named value of every step of a recurrent network while it reads one input: gates, candidates, states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from recurra.analysis.watching import Seen, Watch
from recurra.cells import AnyCell
from recurra.cells.wrappers.wrapper import Wrapper
from recurra.encoders.pyramid import Pyramid
from recurra.errors import ConfigError, DataError
from recurra.stacks.recurrent import Recurrent
from recurra.views.units import Units
from recurra.views.viewer import GATES, WRITTEN


@dataclass(frozen=True, eq=False)
class Gates:
    """What one layer computed in one direction: for each name the values (units, T), a column for each token.

    >>> found = Gates(["a", "b"], {"z": np.array([[0.0, 1.0], [0.5, 0.5]])}, "gru, layer 1, forward")
    >>> found.means["z"].tolist()
    [0.25, 0.75]
    """

    tokens: Sequence[str]
    values: Mapping[str, NDArray[np.float64]]
    title: str
    layer: int = 1
    layers: int = 1
    direction: str = "forward"
    directions: Sequence[str] = ("forward",)
    heading: str = GATES  # of its view
    cell: AnyCell | None = None  # what computed them, without its wrappers

    def __post_init__(self) -> None:
        for name, values in self.values.items():
            if values.ndim != 2 or values.shape[1] != len(self.tokens):
                raise DataError(f"'{name}' has values of shape {values.shape}, but there are {len(self.tokens)} steps.")
        if not self.tokens or not self.values:
            raise DataError("the input is empty, so there are no gates to show.")

    @property
    def means(self) -> dict[str, NDArray[np.float64]]:
        """Of each name the mean over all units, (T,)."""
        return {name: values.mean(0) for name, values in self.values.items()}

    def view(self) -> Units:
        """The units that change most, and means over all of them."""
        found = Units.of(self.tokens, self.values, title=self.heading, caption=self.title)
        return replace(
            found,
            layer=self.layer,
            layers=self.layers,
            direction=self.direction,
            directions=list(self.directions),
        )


Stack: TypeAlias = Recurrent | Pyramid


def stacks_of(model: nn.Module) -> dict[str, Stack]:
    """The recurrent stacks of a model by their names, in the order in which they were made; not those inside another.

    >>> list(stacks_of(nn.ModuleDict({"encoder": Recurrent("gru", 2, 3), "decoder": Recurrent("gru", 3, 3)})))
    ['encoder', 'decoder']
    """
    found: dict[str, Stack] = {}
    for name, part in model.named_modules():
        if isinstance(part, Recurrent | Pyramid) and not any(f"{name}.".startswith(f"{outer}.") for outer in found):
            found[name] = part
    return found


def gates_of(
    stack: Stack,
    tokens: Sequence[str],
    read: Callable[[], object],
    *,
    layer: int | None = None,
    direction: str | None = None,
) -> Gates:
    """What a stack computes while a model reads an input of these tokens; the last layer, forward, unless said.

    `read` runs the model on the input; it is broken off when the stack has been given what it reads. Layers are counted
    from 1. An input that is read as several rows, such as a pair of texts, has the steps of all of them, row after row.
    The weights are those of training; nothing is changed.
    """
    layers = stack.cells if isinstance(stack, Pyramid) else list(stack.cells)
    number = len(layers) if layer is None else layer
    if not 1 <= number <= len(layers):
        some = "one layer" if len(layers) == 1 else f"{len(layers)} layers"
        raise ConfigError(f"--layer {number}: this network has {some}, counted from 1.")
    ways = ways_of(stack)
    way = ways[0] if direction is None else direction
    if way not in ways:
        raise ConfigError(f"--direction {way}: this network reads {' and '.join(ways)} only.")
    parts, lengths = _parts(stack, read, number - 1, ways.index(way))
    together = 2 ** (number - 1) if isinstance(stack, Pyramid) else 1
    named = [" ".join(tokens[first : first + together]) for first in range(0, len(tokens), together)]
    cell = unwrapped(layers[number - 1][ways.index(way)])  # type: ignore[index]  # a ModuleList of cells
    title = f"{cell.name}, layer {number} of {len(layers)}, {way}"
    values = {
        name: torch.cat([row[:length] for row, length in zip(part.flatten(2), lengths, strict=True)])
        .T.cpu()
        .double()
        .numpy()
        for name, part in zip(parts._fields, parts, strict=True)
    }
    return Gates(named, values, title, number, len(layers), way, ways, cell=cell)


def ways_of(stack: Stack) -> tuple[str, ...]:
    """In which directions a stack reads."""
    return ("forward", "backward") if stack.bidirectional else (stack.direction,)


def _parts(stack: Stack, read: Callable[[], object], layer: int, way: int) -> tuple[Any, list[int]]:
    """The parts of one layer and direction, of the model's own reading, and the steps of each row."""
    reader: Any = stack.layers[layer] if isinstance(stack, Pyramid) else stack
    with torch.no_grad():
        x, *states = given_to(reader, read)
        return reader.parts(x, *states)[0 if isinstance(stack, Pyramid) else layer][way], x.lengths.tolist()


def gates_of_decoder(
    model: nn.Module,
    tokens: Sequence[str],
    read: Callable[[Any], object],
    *,
    layer: int | None = None,
    part: str = "decoder",
    heading: str = WRITTEN,
) -> Gates:
    """What a decoder's cells compute while they read a target, token by token; the last layer unless said.

    `part` is the attribute of the model that holds the decoder.

    `read` runs a model, here a copy of this one in float64, on a single row with the target. Layers are counted from
    1; where two cells take turns in a step, with the attention between them, each counts. A step that reads a vector
    of the whole source comes before the tokens.
    """
    watch = Watch(model)
    with torch.no_grad():
        read(watch.model)
    seen = [each for each in watch.seen() if each.name.partition(".")[0] == part]
    if not seen:
        raise ConfigError("this decoder has no recurrent cells, so there are no gates to show.")
    number = len(seen) if layer is None else layer
    if not 1 <= number <= len(seen):
        some = "one layer" if len(seen) == 1 else f"{len(seen)} layers"
        raise ConfigError(f"--layer {number}: this decoder has {some}, counted from 1.")
    chosen = seen[number - 1]
    named = ["(source)", *tokens] if chosen.is_led else list(tokens)
    fields = chosen.steps[0].parts._fields  # type: ignore[attr-defined]  # a NamedTuple
    values = {
        name: torch.cat([getattr(step.parts, name).flatten(1) for step in chosen.steps]).T.double().numpy()
        for name in fields
    }
    cell = unwrapped(chosen.cell)
    title = f"{cell.name}, layer {number} of {len(seen)} of the decoder{_turn(chosen)}"
    return Gates(named, values, title, number, len(seen), heading=heading, cell=cell)


def unwrapped(cell: Any) -> AnyCell:
    """A cell without what changes it, such as zoneout."""
    while isinstance(cell, Wrapper):
        cell = cell.cell
    found: AnyCell = cell
    return found


def _turn(seen: Seen) -> str:
    if seen.other is None:
        return ""
    return ", after attention" if seen.comes_second else ", before attention"


class _Given(Exception):  # no error: it breaks off a run that has come far enough
    """What a module was given."""


def given_to(module: nn.Module, run: Callable[[], object]) -> tuple[Any, ...]:
    """What a module is given first while something runs, which is broken off there."""

    def break_off(_: nn.Module, given: tuple[Any, ...]) -> None:
        raise _Given(*given)

    hook = module.register_forward_pre_hook(break_off)
    try:
        run()
    except _Given as found:
        return found.args
    finally:
        hook.remove()
    raise DataError("the input is empty, so there are no gates to show.")
