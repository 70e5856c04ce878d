"""A forecaster: one function of a program predicts the next steps of series, up to the horizon of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recurra.data.batches import in_order_of_length
from recurra.data.store import Encoded, Rows
from recurra.errors import ConfigError
from recurra.forecasts.stream import Stream
from recurra.models.forecast import Forecast, Past
from recurra.predictors.forecast_streams import (
    ProgramReader,
    batch_of,
    by_name,
    cut,
    exported_horizon,
    stream_functions,
)
from recurra.predictors.predictor import GO_ON, Predictor, padded
from recurra.predictors.streaming import AnyStream
from recurra.programs.inputs import Input, Recordable, Running, called

TOGETHER = 8192
"""Steps of series that are read together."""

BESIDE = ("future", "past", "static_numbers", "static_names", "gaps")
"""What may be known of a series beside its values."""

PARAMETERS = ("rate", "shape", "log_square", "freedom", "log_weights", "centres", "log_squares")
"""What a program says of a density whose quantiles have to be searched for: `recurra.forecasts.searched`."""

SAID = ("values", "means", "log_p", "fan", *PARAMETERS)
"""What a program says of the steps ahead."""


class Forecasts(Protocol):
    """What is needed of the task."""

    def widths_beside(self) -> Mapping[str, int]: ...
    def refusal_of_streams(self) -> str | None: ...
    def places(self, rows: Sequence[Encoded]) -> list[NDArray[np.int64]]: ...
    def origins_before(self, row: Encoded) -> NDArray[np.int64]: ...
    def unit_of_row(self, row: Encoded) -> NDArray[np.float64]: ...

    @property
    def is_at_once(self) -> bool: ...


class ForecastingPredictor(Predictor[Forecast]):
    """Series (B, T, d), with what is known beside them, to the next h steps (B, h, d).

    forecast    values, lengths, what is known beside them -> values, means, log p, quantiles; of densities whose
                quantiles have to be searched for, their parameters in place of log p and quantiles
    begin, read, go_on        of streams; see recurra.predictors.forecast_streams
    """

    def __init__(self, task: Forecasts, *, size: int, horizon: int, paths: int) -> None:
        self.task, self.size, self.horizon, self.paths = task, size, horizon, paths

    def functions(self, model: Any) -> list[Recordable]:
        inputs = self.inputs(model)

        def forecast(*tensors: Any) -> Mapping[str, Any]:
            return by_name(model, model.forecast(batch_of(inputs, tensors), self.horizon))

        found = [Recordable("forecast", inputs, forecast)]
        return found if self.refusal_of_streams(model) else found + stream_functions(model, inputs, self.horizon)

    def inputs(self, model: Any) -> list[Input]:
        """Values, lengths, and what is known beside them. (torch)"""
        shapes: dict[str, tuple[str | int, ...]] = {
            "future": ("B", f"T+{self.horizon}"),
            "past": ("B", "T"),
            "gaps": ("B", "T"),
            "static_numbers": ("B",),
            "static_names": ("B",),
        }
        widths = self.task.widths_beside()
        found = [Input("values", ("B", "T", self.size)), Input("lengths", ("B",), "lengths", along="T")]
        for name in (name for name in BESIDE if widths.get(name)):
            if name == "static_names":
                found += [
                    Input(f"category{number}", ("B",), "ids", below=embedding.num_embeddings)
                    for number, embedding in enumerate(model.covariates.embeddings)
                ]
            else:
                found.append(Input(name, (*shapes[name], widths[name])))
        return found

    def refusal_of_streams(self, model: Any) -> str | None:
        return self.task.refusal_of_streams()

    def stream(self, task: Any, running: Running, run: str, state: bytes | None = None) -> AnyStream:
        self.check(running)
        if GO_ON not in running.program.functions:
            reason = task.refusal_of_streams() or "an earlier version exported it: export the run again"
            raise ConfigError(f"this exported model cannot read a stream: {reason}.")
        return Stream(
            task, [(task, ProgramReader(self, running, from_nothing=task.conventions.from_nothing))], run, state
        )

    def outputs(self, running: Running, rows: Sequence[Encoded], *, detail: bool = False) -> list[Forecast]:
        self.check(running)
        found = self.forecasts(running, rows)
        origins = [self.task.origins_before(row) for row in rows]
        past = [cut(row, int(origin), self.horizon) for row, own in zip(rows, origins, strict=True) for origin in own]
        said = iter(self.forecasts(running, past))
        return [
            forecast._replace(past=past_of(own, [next(said) for _ in own])) if len(own) else forecast
            for forecast, own in zip(found, origins, strict=True)
        ]

    def check(self, running: Running) -> None:
        """Refuse what the settings ask for and a program lacks."""
        if self.paths:
            raise ConfigError("decoding.paths needs the run: an exported model draws no paths. Leave it out.")
        if self.horizon > (most := exported_horizon(running)):
            raise ConfigError(
                f"decoding.horizon = {self.horizon} needs the run: the model was exported for {most} steps ahead."
            )

    def scored_whole(self, running: Running, rows: Sequence[Encoded]) -> list[Any]:
        """A Review of each row: what is said from each of its origins, and of each step given those before it."""
        self.check(running)
        origins = self.task.places(rows)
        if GO_ON not in running.program.functions:
            reason = self.task.refusal_of_streams() or "an earlier version exported it: export the run again"
            raise ConfigError(
                f"forecasts from many origins, by which forecasters are scored, need the run or a stream: {reason}."
            )
        reader = ProgramReader(self, running, from_nothing=False)
        return [reader.reviewed(row, own, self.horizon) for row, own in zip(rows, origins, strict=True)]

    def forecasts(self, running: Running, rows: Sequence[Encoded]) -> list[Forecast]:
        """How each of some rows goes on."""
        found: list[Any] = [None] * len(rows)
        lengths = Rows(rows).lengths("values") if len(rows) else np.zeros(0, np.int64)
        for numbers in in_order_of_length(lengths, tokens=TOGETHER):
            for number, each in zip(numbers, self._together([rows[n] for n in numbers], running), strict=True):
                found[number] = each
        return found

    def _together(self, rows: Sequence[Encoded], running: Running) -> Iterator[Forecast]:
        return self.said(called(running, "forecast", self.arrays(running, rows)), rows)

    def arrays(self, running: Running, rows: Sequence[Encoded]) -> dict[str, NDArray[Any]]:
        """The inputs of `forecast` for some rows."""
        every = Rows.of(rows)
        values, lengths = padded(every, "values", np.float32)
        # Where all rows are empty, one step of padding is read.
        least = max(1, values.shape[1])
        given = {"values": widened(values, least), "lengths": lengths}
        for name in ("future", "past", "gaps"):
            if every.has(name):
                more = exported_horizon(running) if name == "future" else 0
                given[name] = widened(padded(every, name, np.float32)[0], least + more)
        if every.has("static_numbers"):
            given["static_numbers"] = np.stack([row["static_numbers"] for row in rows]).astype(np.float32)
        if every.has("static_names"):
            names = np.stack([row["static_names"] for row in rows])
            given |= {f"category{number}": column for number, column in enumerate(names.T)}
        return given

    def said(self, outputs: Mapping[str, NDArray[Any]], rows: Sequence[Encoded]) -> Iterator[Forecast]:
        """The forecast of each row, of what a program has computed."""
        found = {name: outputs[name][:, : self.horizon].astype(np.float64) for name in SAID if name in outputs}
        for number, row in enumerate(rows):
            own = {name: array[number] for name, array in found.items()}
            if "log_p" not in own:
                from recurra.forecasts.searched import searched  # which few forecasters need

                own |= searched(own, self.task.unit_of_row(row), fan=self.task.is_at_once)
            yield Forecast(own["values"], own["means"], None, float(own["log_p"].sum()), own.get("fan"))


def widened(array: NDArray[Any], steps: int) -> NDArray[Any]:
    """(B, steps, n): an array (B, T, n) with zeros after its steps."""
    return np.pad(array, ((0, 0), (0, steps - array.shape[1]), (0, 0)))


def past_of(origins: NDArray[np.int64], said: Sequence[Forecast]) -> Past:
    """What was said from some origins before."""
    fans = [each.fan for each in said if each.fan is not None]
    return Past(origins, np.stack([each.values for each in said]), np.stack(fans) if fans else None)
