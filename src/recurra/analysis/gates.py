"""Every named value of every step of a recurrent network while it reads one input: gates, candidates, states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from recurra.cells.wrappers.wrapper import Wrapper
from recurra.encoders.pyramid import Pyramid
from recurra.encoders.recurrent_encoder import RecurrentEncoder
from recurra.errors import ConfigError, DataError
from recurra.padding import Padded
from recurra.stacks.recurrent import Recurrent
from recurra.training.evaluation import moved
from recurra.training.trained import Trained
from recurra.views.units import Units


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

    def __post_init__(self) -> None:
        for name, values in self.values.items():
            if values.ndim != 2 or values.shape[1] != len(self.tokens):
                raise DataError(f"'{name}' has values of shape {values.shape}, but there are {len(self.tokens)} steps.")
        if not self.tokens or not self.values:
            raise DataError("nothing was read, so there are no gates to show.")

    @property
    def means(self) -> dict[str, NDArray[np.float64]]:
        """Of each name the mean over all units, (T,)."""
        return {name: values.mean(0) for name, values in self.values.items()}

    def view(self) -> Units:
        """The units that change most, and means over all of them."""
        found = Units.of(self.tokens, self.values, title="Gates over time", caption=self.title)
        return replace(
            found,
            layer=self.layer,
            layers=self.layers,
            direction=self.direction,
            directions=list(self.directions),
        )


def gates_of(model: Trained, example: Any, *, layer: int | None = None, direction: str | None = None) -> Gates:
    """What the recurrent network of a model computed while it read an example; the last layer, forward, unless said.

    Layers are counted from 1. The weights are those of training; nothing is changed.
    """
    stack, tokens = stack_of(model), read_tokens(model, example)
    layers = stack.cells if isinstance(stack, Pyramid) else list(stack.cells)
    number = len(layers) if layer is None else layer
    if not 1 <= number <= len(layers):
        some = "one layer" if len(layers) == 1 else f"{len(layers)} layers"
        raise ConfigError(f"--layer {number}: this network has {some}, the first of which is 1.")
    ways = ("forward", "backward") if stack.bidirectional else (getattr(stack, "direction", "forward"),)
    way = ways[0] if direction is None else direction
    if way not in ways:
        raise ConfigError(f"--direction {way}: this network reads {' and '.join(ways)} only.")
    parts = _parts(model, stack, example, number - 1, ways.index(way))
    together = 2 ** (number - 1) if isinstance(stack, Pyramid) else 1
    named = [" ".join(tokens[first : first + together]) for first in range(0, len(tokens), together)]
    cell = layers[number - 1][ways.index(way)]  # type: ignore[index]  # a ModuleList of cells
    while isinstance(cell, Wrapper):
        cell = cell.cell
    title = f"{cell.name}, layer {number} of {len(layers)}, {way}"
    values = {
        name: part[0].flatten(1).T.double().cpu().numpy() for name, part in zip(parts._fields, parts, strict=True)
    }
    return Gates(named, values, title, number, len(layers), way, ways)


def _parts(model: Trained, stack: Recurrent | Pyramid, example: Any, layer: int, way: int) -> Any:
    """The parts of one layer and direction, of the model's own reading."""
    reader: Any = stack.layers[layer] if isinstance(stack, Pyramid) else stack
    batch = moved(model.task.batch([model.task.encode(example)]), next(model.model.parameters()).device)
    network: Any = model.model
    with torch.no_grad(), _noted(reader) as noted:
        if hasattr(batch, "source"):  # of what writes, only the reading is wanted
            network.read(batch.source)
        elif hasattr(batch, "inputs"):
            network(batch.inputs)
        else:
            model.task.predict(network, batch)
        x, *states = noted[0]
        return reader.parts(x, *states)[0 if isinstance(stack, Pyramid) else layer][way]


@contextmanager
def _noted(module: nn.Module) -> Iterator[list[tuple[Padded, ...]]]:
    """What a module is given while this lasts."""
    found: list[tuple[Padded, ...]] = []
    hook = module.register_forward_pre_hook(lambda _, given: found.append(given))
    try:
        yield found
    finally:
        hook.remove()


def stack_of(model: Trained) -> Recurrent | Pyramid:
    """The recurrent network that reads a model's input; a ConfigError says why there is none."""
    if model.others:
        raise ConfigError("several runs answer as one here, each with gates of its own: name one of them.")
    found = reading_stack(model.model)
    if found is None:
        raise ConfigError(
            f"the run {model.folder} does not read its input with a recurrent network ({model.task.described()}), so "
            f"that there are no gates to show."
        )
    return found


def reading_stack(network: Any) -> Recurrent | Pyramid | None:
    """The recurrent network by which a model reads, where it has one."""
    encoders = [each for each in getattr(network, "encoders", ()) if isinstance(each, RecurrentEncoder)]
    owner = encoders[0] if encoders else getattr(network, "encoder", network)
    found = getattr(owner, "recurrent", None)
    return found if isinstance(found, Recurrent | Pyramid) else None


def read_tokens(model: Trained, example: Any) -> list[str]:
    """What the steps that are read are called; those of numbers are counted from 1."""
    task: Any = model.task
    encoded = task.encode(example)
    if "frames" in encoded:
        return [str(number) for number in range(1, len(encoded["frames"]) + 1)]
    if "values" in encoded:  # zeros are read before the first where that is predicted too
        return [str(number) for number in range(0 if task.from_nothing else 1, len(encoded["values"]) + 1)]
    if "source" in encoded:
        return list(task.texts.source_tokens(example))
    if "words" in encoded:
        return list(task.tokens(example) if hasattr(task, "tokenizer") else example.tokens)
    if "tokens" in encoded:  # of a language model, which begins with the end of the line before
        found: list[str] = task.vocabulary.tokens_of(task.batch([encoded]).inputs.values[0].tolist())
        return found
    raise ConfigError(f"what a {task.name} model like {model.folder} reads has no steps one after the other.")
