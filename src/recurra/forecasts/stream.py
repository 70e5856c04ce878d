"""A stream: a series that is read row by row, with a forecast after each; its state can be saved and gone on with.

    h_t, s_t = network(x_t, f_{t+1}, s_{t−1})          s: the states of the network,  f: what is known ahead
    forecast from h_t, s_t and the last values

What is kept is s_{t−1}: with the next row, step t is read again, since f_{t+1} may differ from what was expected of it.
Several runs that forecast together keep their states each; what they forecast is combined after every row.

Saved are the states, the last steps of the series, and how it is scaled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from recurra.data.normal import Normal
from recurra.data.store import Encoded
from recurra.data.stream_state import damaged, state_of_bytes, state_to_bytes
from recurra.data.times import Clock
from recurra.data.unit import Unit
from recurra.errors import DataError
from recurra.forecasts.conventions import Conventions
from recurra.models.forecast import Forecast
from recurra.reading.ends import Ends, packed
from recurra.reading.facts import frequency_of
from recurra.reading.history import continued
from recurra.reading.panel import carried
from recurra.reading.steps import Steps
from recurra.views.prediction import Prediction

STATE = "state_"
"""What the names of states begin with: state_LAYER_DIRECTION_FIELD."""

LONGEST_GAP = 10_000
"""Steps that may be missing between two rows."""


class Reads(Protocol):
    """What a stream needs of a task."""

    @property
    def settings(self) -> Any: ...
    @property
    def conventions(self) -> Conventions: ...
    @property
    def steps_remembered(self) -> int: ...
    def asked(self, row: Any, *, is_first: bool) -> Steps: ...
    def with_unit(self, name: str, unit: Unit) -> Reads: ...
    def combined(self, example: Steps, outputs: Sequence[Any]) -> Any: ...
    def answer(self, example: Steps, output: Any) -> Prediction: ...


class Decoding(Protocol):
    """How far ahead is forecast, and what is drawn."""

    @property
    def horizon(self) -> int: ...
    @property
    def paths(self) -> int: ...
    @property
    def seed(self) -> int: ...


class Reader(Protocol):
    """A network that reads a stream, in torch or as a program. What it keeps of it is None before the first step."""

    @property
    def reach(self) -> int:
        """The last steps that a forecast looks at, beside the states."""

    def read(self, row: Encoded, kept: Any, *, new: int, decoding: Decoding) -> tuple[Forecast, Any]:
        """The forecast after the last step of a row, of which `new` steps were not read, and what is kept then."""

    def arrays(self, kept: Any) -> dict[str, NDArray[Any]]:
        """All that is kept, by name; of states the names begin with STATE."""

    def kept(self, arrays: Mapping[str, NDArray[Any]]) -> Any:
        """What `arrays` has written; a KeyError or ValueError where that is not of this network."""


@final
class Stream:
    """A series of which one row after the other is read.

    The scale of the series is that of training where it was there, else it is taken from what is read first and stays.
    `run` is the digest of the weights, to which a state belongs.
    """

    def __init__(
        self, task: Reads, members: Sequence[tuple[Reads, Reader]], run: str, state: bytes | None = None
    ) -> None:
        self._task = task  # which reads rows and answers; each network has its own
        self._members = tuple(members)
        self._run = run
        self._kept: tuple[Any, ...] = (None,) * len(members)
        self._end: Steps | None = None  # the last steps, as many as forecasts are made from
        self._unit: Unit | None = None
        self.steps = 0  # that were read
        if state is not None:
            self._go_on_with(state)

    def read(self, row: object) -> Prediction:
        """The forecast of the next steps, after one more row.

        A row is a number, a list of the values of a step, or a dict as `predict` takes it, whose `values` are the new
        steps: one, or several at once, such as all that is known at the start. After an error, the stream is as it was.
        """
        given = _as_steps(row)
        if self._end is not None and self._end.name and isinstance(given, dict):
            given = {"series": self._end.name, **given}
        new = self._task.asked(given, is_first=self._end is None)
        if not len(new):
            raise DataError(f"a row of a stream needs values, but {row!r:.60} has none.")
        if self._end is not None and new.values.shape[1] != self._end.values.shape[1]:
            raise DataError(
                f"found {new.values.shape[1]} values per step, but the model expects {self._end.values.shape[1]}."
            )
        whole = new if self._end is None else self._joined(self._end, new, has_static=_names_static(given))
        unit = self._task.conventions.unit_of(whole) if self._unit is None else self._unit
        task = self._task.with_unit(whole.name, unit)
        count = len(whole) - (0 if self._end is None else len(self._end))
        # The last step is read again; of frames, zeros are read before the first.
        more = self._end is not None or task.conventions.from_nothing
        forecasts, kept = list[Forecast](), list[Any]()
        for (own, reader), before in zip(self._members, self._kept, strict=True):
            encoded = own.with_unit(whole.name, unit).conventions.encode(whole)
            forecast, after = reader.read(encoded, before, new=count + more, decoding=task.settings.decoding)
            forecasts.append(forecast)
            kept.append(after)
        answer = task.answer(whole, forecasts[0] if len(forecasts) == 1 else task.combined(whole, forecasts))
        self._kept, self._unit = tuple(kept), unit
        needed = max(max(own.steps_remembered, reader.reach) for own, reader in self._members)
        self._end = whole.cut(max(0, len(whole) - needed), len(whole))
        self.steps += count
        return answer

    def _joined(self, end: Steps, new: Steps, *, has_static: bool) -> Steps:
        """The last steps and the new ones as one series."""
        if new.name not in ("", end.name):
            raise DataError(f"the stream reads the series '{end.name}', but the row is of '{new.name}'.")
        new = dataclasses.replace(new, name=end.name)
        if not has_static:
            new = dataclasses.replace(new, static_numbers=end.static_numbers, static_names=end.static_names)
        if _moments(end) is None or _moments(new) is None:
            if (_moments(end) is None) != (_moments(new) is None):
                has, lacks = ("earlier rows", "this one") if _moments(new) is None else ("this row", "earlier ones")
                raise DataError(f"{has} had times, and {lacks} had none: give times with every row, or with none.")
            return _appended(end, new)
        [found] = continued([new], {end.name: end}, longest=len(end) + LONGEST_GAP)
        if found is new:
            [last], [first] = end.written(_moments(end)[-1:]), new.written(_moments(new)[:1])
            raise DataError(
                f"the row at {first} does not go on with the stream, whose last time is {last}: a row must be later, "
                f"a whole number of steps away, and at most {LONGEST_GAP:,}."
            )
        return dataclasses.replace(found, preceding=0)

    def state(self) -> bytes:
        """All that the next rows need, for `Trained.stream`."""
        about: dict[str, Any] = {"steps": self.steps}
        arrays: dict[str, NDArray[Any]] = {}
        if self._end is not None and self._unit is not None:
            end = self._end
            of_networks = {
                f"{_prefix(number)}{name}": array
                for number, ((_, reader), kept) in enumerate(zip(self._members, self._kept, strict=True))
                for name, array in reader.arrays(kept).items()
            }
            about |= {
                "clock": None if end.clock is None else end.clock.to_json(),
                "frequency": None if end.frequency is None else str(end.frequency),
                "static_names": list(end.static_names),
                "difference": self._unit.difference,
                "has_states": any(name.startswith(STATE) for name in of_networks),
            }
            arrays |= packed({end.name: end})
            arrays |= {"unit_mean": self._unit.scale.mean, "unit_spread": self._unit.scale.spread}
            arrays |= {} if self._unit.floor is None else {"unit_floor": self._unit.floor}
            arrays |= {} if end.static_numbers is None else {"static_numbers": end.static_numbers}
            arrays |= of_networks
        return state_to_bytes(self._run, about, arrays)

    def _go_on_with(self, state: bytes) -> None:
        about, arrays = state_of_bytes(state, run=self._run)
        try:
            steps = int(about["steps"])
        except (ValueError, TypeError, KeyError) as error:
            raise damaged(error) from error
        if not steps:
            return
        try:
            clock = None if about["clock"] is None else Clock(**about["clock"])
            [end] = Ends(arrays, clock, frequency_of(about["frequency"])).values()
            names, numbers = tuple(map(str, about["static_names"])), arrays.get("static_numbers")
            scale = Normal(arrays["unit_mean"], arrays["unit_spread"])
            kept = tuple(
                reader.kept(_of_prefix(arrays, _prefix(number))) for number, (_, reader) in enumerate(self._members)
            )
            unit = Unit(scale, bool(about["difference"]), arrays.get("unit_floor"))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise damaged(error) from error
        self._end = dataclasses.replace(end, static_names=names, static_numbers=numbers, place="input:1", line=1)
        self._kept, self._unit, self.steps = kept, unit, steps


def _as_steps(row: object) -> object:
    """A row as `predict` takes a series: a list of steps, or a dict of such."""
    if isinstance(row, np.ndarray | np.generic):
        row = row.tolist()
    if isinstance(row, Mapping):
        values = row.get("values")
        return {**row, "values": [values] if isinstance(values, int | float) else values}
    if row is None or isinstance(row, int | float):
        return [[row]]
    if isinstance(row, list | tuple) and row and all(each is None or isinstance(each, int | float) for each in row):
        return [list(row)]
    raise DataError(
        f"a row of a stream must be a number, a list of the values of one step, or a dict with 'values', but is "
        f"{row!r:.60}."
    )


def _names_static(given: object) -> bool:
    return isinstance(given, Mapping) and "static" in given


def _moments(steps: Steps) -> Any:
    return steps.times if steps.times is not None else steps.numbers


def _appended(end: Steps, new: Steps) -> Steps:
    """Steps that are only counted, one after the other; a missing value is that of the step before."""
    measured = np.concatenate([end.measured, new.measured])
    values = np.concatenate([end.values, new.values])
    beside: dict[str, Any] = {}
    for name in ("future", "future_names", "past", "past_names"):
        old, coming = getattr(end, name), getattr(new, name)
        beside[name] = coming if old is None or coming is None else np.concatenate([old[: len(end)], coming])
    return dataclasses.replace(new, values=carried(values, ~np.isnan(values)), known=measured, observed=None, **beside)


def _prefix(number: int) -> str:
    """What the names of arrays of a network begin with; those of the first have none.

    >>> _prefix(0), _prefix(1)
    ('', '1_')
    """
    return f"{number}_" if number else ""


def _of_prefix(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with a prefix, without it.

    >>> _of_prefix({"memory": np.zeros(1), "1_memory": np.ones(1)}, "1_")
    {'memory': array([1.])}
    """
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
