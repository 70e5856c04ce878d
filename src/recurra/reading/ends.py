"""The last steps of many series, as arrays one after the other: each series is made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from recurra.config.frequency import Frequency
from recurra.data.times import Clock
from recurra.reading.steps import Steps

Arrays = dict[str, NDArray[Any]]

FIELDS = ("values", "known", "times", "numbers", "future", "past")
WORDS = ("future_names", "past_names")

AT_ONCE = 512
"""Series that are made arrays together."""


@final
class Ends(Mapping[str, Steps]):
    """Series by their names.

    >>> steps = Steps("a", np.ones((3, 1)), np.ones((3, 1), bool), 0, 1, "")
    >>> ends = Ends(packed({"a": steps}), None, None)
    >>> len(ends), ends["a"].values.shape, "b" in ends
    (1, (3, 1), False)
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]], clock: Clock | None, frequency: Frequency | None) -> None:
        self.arrays: Arrays = {name: arrays[name] for name in _stored() if name in arrays}
        self._clock, self._frequency = clock, frequency
        lengths = self.arrays["end_lengths"]
        self._starts: NDArray[np.int64] = np.cumsum(lengths) - lengths
        self._numbers = {name: number for number, name in enumerate(self.arrays["end_names"].tolist())}

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __getitem__(self, name: str) -> Steps:
        number = self._numbers[name]
        start, length = int(self._starts[number]), int(self.arrays["end_lengths"][number])
        fields: dict[str, Any] = {
            field: self.arrays[f"end_{field}"][start : start + length]
            for field in (*FIELDS, *WORDS)
            if f"end_{field}" in self.arrays
        }
        if "times" in fields:
            micros = fields["times"]
            fields["times"] = (
                micros.astype("M8[us]") if (micros % 1_000_000).any() else (micros // 1_000_000).astype("M8[s]")
            )
        fields |= {field: fields[field].astype(object) for field in WORDS if field in fields}
        return Steps(name=name, file=0, line=0, place="", clock=self._clock, frequency=self._frequency, **fields)


def _stored() -> Sequence[str]:
    return ["end_names", "end_lengths", *(f"end_{field}" for field in (*FIELDS, *WORDS))]


def packed(ends: Mapping[str, Steps]) -> Arrays:
    """The ends of all series as arrays, which `Ends` reads."""
    if isinstance(ends, Ends):
        return ends.arrays
    found: Arrays = {"end_names": np.array([*ends], np.str_)}
    found["end_lengths"] = np.array([len(steps) for steps in ends.values()], np.int64)
    for field in (*FIELDS, *WORDS):
        parts = [_until_now(steps, field) for steps in ends.values()]
        if parts and parts[0] is not None:
            whole = np.concatenate([part for part in parts if part is not None])
            if field == "times":
                whole = whole.astype("M8[us]").astype(np.int64)
            found[f"end_{field}"] = whole.astype(np.str_) if field in WORDS else whole
    return found


def _until_now(steps: Steps, field: str) -> NDArray[Any] | None:
    if field == "known":
        return steps.measured
    array: NDArray[Any] | None = getattr(steps, field)
    return None if array is None else array[: len(steps)]


class EndsGathered:
    """The ends of one series after the other, some hundred of which are made arrays together."""

    def __init__(self) -> None:
        self._few: dict[str, Steps] = {}
        self._parts: list[Arrays] = []

    def add(self, steps: Steps) -> None:
        """Of two series of one name, the later one counts."""
        self._few[steps.name] = steps
        if len(self._few) >= AT_ONCE:
            self._pack()

    def _pack(self) -> None:
        if self._few:
            self._parts.append(packed(self._few))
            self._few = {}

    def finished(self, clock: Clock | None, frequency: Frequency | None) -> Mapping[str, Steps]:
        """All of them."""
        self._pack()
        if not self._parts:
            return {}
        names = self._parts[0]
        return Ends({name: np.concatenate([part[name] for part in self._parts]) for name in names}, clock, frequency)
