"""Streams of an exported forecaster: functions that carry states on, and what reads rows by them.

    begin      -> states before the first step
    read       steps, states -> states after them, and the features of the steps where forecasts look at those
    go_on      steps, states -> the forecast after the last of them, as `forecast` gives it, and states after it

States have the names of those that a run saves. Where all steps of a horizon are forecast at once, `go_on` also takes
`recent`, the last values up to the last step, as many as the autoregression reads; where forecasts look back with
attention, `memory`, the features of the steps before, and `count`, how many of them are real.

With the next row the last step is read again, since what is known of the coming step may differ from what was expected
of it; so what is kept of a stream are the states before its last step, and `read` brings them up to the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from recurra.data.store import Encoded
from recurra.errors import CheckpointError
from recurra.forecasts.stream import STATE, Decoding
from recurra.metrics.forecast_errors import LEVELS
from recurra.models.forecast import Forecast, Review
from recurra.predictors.predictor import BEGIN, GO_ON
from recurra.predictors.trees import refilled
from recurra.programs.inputs import Input, Recordable, Running, called

READ = "read"

ALONG = ("values", "gaps", "past", "known")
"""Arrays of a row that have an entry for each of its steps."""


def stream_functions(model: Any, inputs: Sequence[Input], horizon: int) -> list[Recordable]:
    """`begin`, `read` and `go_on` of a forecaster, whose `forecast` takes these inputs. (torch)"""
    import torch

    from recurra.forecasts.networks import named_states
    from recurra.models.at_once import Seen, recent_values
    from recurra.models.forecaster import Ahead

    begin = model.stack.start(1, next(model.parameters()))
    named = named_states(begin)
    of_states = [Input(name, ("B", *field.shape[1:])) for name, field in named.items()]
    count, reach = len(inputs), model.reach
    more = [Input("recent", ("B", model.direct.lags, model.size))] if model.direct is not None else []
    if reach > 1:
        more += [Input("memory", ("B", reach - 1, model.stack.output_size)), Input("count", ("B",), "counts")]

    def after(tensors: Sequence[Any]) -> tuple[Any, Any, Any]:
        """The batch, the features of its steps, and the states after them."""
        batch = batch_of(inputs, tensors[:count])
        states = refilled(begin, iter(tensors[count : count + len(of_states)]))
        features, states = model.read(model.seen(batch), states, batch.beside)
        return batch, features.values, states

    def read(*tensors: Any) -> Mapping[str, Any]:
        _, features, states = after(tensors)
        return {**named_states(states), **({"features": features} if reach > 1 else {})}

    def go_on(*tensors: Any) -> Mapping[str, Any]:
        batch, features, states = after(tensors)
        last = batch.values.lengths - 1
        rows = torch.arange(len(last), device=last.device)
        if model.direct is None:
            ahead = model.recursively(features[rows, last], states, horizon, model.coming(batch, rows, last, horizon))
            return {**by_name(model, ahead), **named_states(states)}
        recent, *looked = tensors[count + len(of_states) :]
        coming = model.coming(batch, rows, last, max(horizon, model.direct.horizon))
        kept, memory = looked[:1], {}
        features = torch.cat([*kept, features], dim=1)
        ends = (last + reach - 1).unsqueeze(1)
        counts = (looked[1] + last + 1).clamp_max(reach) if looked else torch.ones_like(last)
        seen = Seen(recent_values(model.direct.kept(features), ends, reach).squeeze(1), counts)
        if looked:
            memory = {"memory": recent_values(features, ends, reach - 1).squeeze(1)}
        ahead = Ahead(*model.directly(seen, states, recent, horizon, coming))
        return {**by_name(model, ahead), **named_states(states), **memory}

    return [
        Recordable(BEGIN, [], lambda: named_states(begin)),
        Recordable(READ, [*inputs, *of_states], read),
        Recordable(GO_ON, [*inputs, *of_states, *more], go_on),
    ]


def batch_of(inputs: Sequence[Input], tensors: Sequence[Any]) -> Any:
    """Tensors, one for each input of a forecaster, as it takes them. (torch)"""
    import torch

    from recurra.models.series_batch import ForecasterBatch
    from recurra.padding import Padded

    given = dict(zip((each.name for each in inputs), tensors, strict=True))
    categories = [tensor for name, tensor in given.items() if name.startswith("category")]
    return ForecasterBatch(
        Padded(given["values"], given["lengths"]),
        torch.ones_like(given["values"], dtype=torch.bool),
        given.get("future"),
        given.get("past"),
        given.get("static_numbers"),
        torch.stack(categories, dim=1) if categories else None,
        given.get("gaps"),
    )


def by_name(model: Any, ahead: Any) -> dict[str, Any]:
    """What a forecaster says of the steps ahead, as outputs of a function. (torch)"""
    if searched := model.density.searched(ahead.features):
        return {"values": ahead.values, "means": model.expected(ahead), **searched}
    said = model.said(ahead)
    found = {"values": said.values, "means": said.means, "log_p": said.log_p}
    return found if said.fan is None else {**found, "fan": said.fan.to(said.values.dtype)}


class Predicts(Protocol):
    """What a reader needs of the predictor."""

    def arrays(self, running: Running, rows: Sequence[Encoded]) -> dict[str, NDArray[Any]]: ...
    def said(self, outputs: Mapping[str, NDArray[Any]], rows: Sequence[Encoded]) -> Any: ...


class Kept(NamedTuple):
    """What a program keeps of a stream."""

    states: Mapping[str, NDArray[Any]]  # before the last step
    memory: NDArray[Any]  # (1, n, H): features of the steps before the last, where forecasts look at them


class ProgramReader:
    """A program as the reader of a stream."""

    def __init__(self, predictor: Predicts, running: Running, *, from_nothing: bool) -> None:
        self.predictor, self.running, self.from_nothing = predictor, running, from_nothing
        self.begun = called(running, BEGIN, {})
        self.sizes = {
            each.name: [size.constant or 0 for size in each.value.shape]
            for each in running.program.functions[GO_ON].inputs
        }

    @property
    def reach(self) -> int:
        return self.sizes["memory"][1] + 1 if "memory" in self.sizes else 1

    def read(self, row: Encoded, kept: Kept | None, *, new: int, decoding: Decoding) -> tuple[Forecast, Kept]:
        return self.gone_on(row, kept, new=new)

    def gone_on(self, row: Encoded, kept: Kept | None, *, new: int) -> tuple[Forecast, Kept]:
        """The same, up to the horizon of the predictor."""
        if self.from_nothing:
            row = {name: preceded_by_zeros(array) if name in ALONG else array for name, array in row.items()}
        if kept is None:
            kept = Kept(self.begun, np.zeros((1, 0, self.sizes.get("memory", [0])[-1]), np.float32))
        steps = len(row["values"])
        if new > 1:
            found = called(self.running, READ, {**self.given(row, steps - new, steps - 1), **kept.states})
            memory = kept.memory
            if self.reach > 1:
                memory = np.concatenate([memory, found["features"]], axis=1)[:, 1 - self.reach :]
            kept = Kept({name: found[name] for name in self.begun}, memory)
        given = {**self.given(row, steps - 1, steps), **kept.states}
        if "recent" in self.sizes:
            lags = self.sizes["recent"][1]
            # Before the first step its value is repeated.
            places = np.maximum(np.arange(steps - lags, steps), 0)
            given["recent"] = row["values"][None, places].astype(np.float32)
        if self.reach > 1:
            there = kept.memory.shape[1]
            given["memory"] = np.pad(kept.memory, ((0, 0), (self.reach - 1 - there, 0), (0, 0)))
            given["count"] = np.array([there], np.int64)
        [forecast] = self.predictor.said(called(self.running, GO_ON, given), [row])
        return forecast, kept

    def reviewed(self, row: Encoded, origins: NDArray[np.int64], horizon: int) -> Review:
        """What is said of a row from some origins, and of each step by the forecast from the step before it."""
        values = row["values"]
        steps, size = values.shape
        expected, bounds = np.full((steps, size), np.nan), np.zeros((2, steps, size))
        ahead = np.zeros((len(origins), horizon, size))
        fans: list[NDArray[np.float64]] = []
        kept: Kept | None = None
        place = {int(origin): number for number, origin in enumerate(origins)}
        has_fan = False
        for known in range(1, steps):
            part = cut(row, known, exported_horizon(self.running))
            said, kept = self.gone_on(part, kept, new=1 if kept is None else 2)
            expected[known] = said.means[0]
            has_fan = said.fan is not None
            if said.fan is not None:
                bounds[:, known] = said.fan[0, [0, -1]]
            if known in place:
                ahead[place[known]] = said.values
                if said.fan is not None:
                    fans.append(said.fan)
        low, high = bounds
        inside = (low <= values) & (values <= high) & ~np.isnan(expected)
        found = Review(np.zeros(steps), expected, None, origins, ahead, has_losses=False)
        if not has_fan:
            return found
        return found._replace(
            inside=inside, bounds=bounds, fan=np.stack(fans) if fans else np.zeros((0, horizon, len(LEVELS), size))
        )

    def given(self, row: Encoded, first: int, last: int) -> dict[str, NDArray[Any]]:
        """Some steps of a row as inputs."""
        part = {name: array[first:last] if name in ALONG else array for name, array in row.items()}
        if "future" in row:
            part["future"] = row["future"][first : last + exported_horizon(self.running)]
        return self.predictor.arrays(self.running, [part])

    def arrays(self, kept: Kept) -> dict[str, NDArray[Any]]:
        memory = {"memory": kept.memory} if self.reach > 1 else {}
        return {**memory, **kept.states}

    def kept(self, arrays: Mapping[str, NDArray[Any]]) -> Kept:
        is_told = any(name.startswith(STATE) for name in arrays)  # else no step but the last was read
        states = {name: arrays[name] for name in self.begun} if is_told else self.begun
        if any(states[name].shape != begun.shape for name, begun in self.begun.items()):
            raise ValueError("its states are not those of this model")
        width = self.sizes.get("memory", [0])[-1]
        memory = arrays["memory"] if self.reach > 1 else np.zeros((1, 0, width), np.float32)
        if self.reach > 1 and (memory.shape[1] >= self.reach or memory.shape[::2] != (1, width)):
            raise ValueError("its memory is not that of this model")
        return Kept({name: each.astype(np.float32) for name, each in states.items()}, memory.astype(np.float32))


def exported_horizon(running: Running) -> int:
    """The steps ahead that a program forecasts."""
    function = running.program.functions["forecast"]
    [operand] = [operand for name, operand in function.outputs if name == "values"]
    steps = function.values[operand].shape[1].constant if isinstance(operand, int) else None
    if steps is None:
        raise CheckpointError("the program's `forecast` gives no values: export the run again.")
    return steps


def cut(row: Encoded, steps: int, horizon: int) -> Encoded:
    """The first steps of a row, with what was known ahead of them.

    >>> cut({"values": np.zeros((9, 1)), "future": np.zeros((12, 2))}, 4, 3)["future"].shape
    (7, 2)
    """
    ends = {"values": steps, "known": steps, "past": steps, "gaps": steps, "future": steps + horizon}
    return {name: array[: ends[name]] if name in ends else array for name, array in row.items() if name != "unseen"}


def preceded_by_zeros(array: NDArray[Any]) -> NDArray[Any]:
    """(T + 1, n): steps after one of zeros, as frames are read.

    >>> preceded_by_zeros(np.ones((2, 1))).tolist()
    [[0.0], [1.0], [1.0]]
    """
    return np.pad(array, ((1, 0), (0, 0)))
