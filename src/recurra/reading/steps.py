"""Steps: one sequence of vectors, when its steps were, and what else is known of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.config.frequency import Frequency
from recurra.data.times import Clock, after, anchor_of

Names = NDArray[np.object_]
"""Words, of which "" is one that is missing."""


@dataclasses.dataclass(frozen=True)
class Steps:
    """One example: the values of successive steps, and where they stand."""

    name: str  # of the series; "" where there is but one
    values: NDArray[np.float64]  # (T, d); a missing value is that of the step before, NaN where there is none
    known: NDArray[np.bool_]  # (T, d): False where the value was missing, or is read and not scored
    file: int
    line: int
    place: str
    observed: NDArray[np.bool_] | None = None  # (T, d): False where the value was missing; None: as known
    times: NDArray[np.datetime64] | None = None  # (T,) in UTC; None where steps are only counted
    numbers: NDArray[np.float64] | None = None  # (T,): times that are numbers
    later: NDArray[Any] | None = None  # (T' − T,): times, or numbers, of the coming steps that the table has rows for
    future: NDArray[np.float64] | None = None  # (T', k), T' ≥ T: known ahead; from T on, those of coming steps
    future_names: Names | None = None  # (T', c): words that are known ahead
    past: NDArray[np.float64] | None = None  # (T, p): known up to now; NaN where missing
    past_names: Names | None = None  # (T, c)
    static_numbers: NDArray[np.float64] | None = None  # (s,): of the whole series; NaN where missing
    static_names: tuple[str, ...] = ()  # (c): of the whole series
    clock: Clock | None = None  # how the table writes its dates
    frequency: Frequency | None = None  # None where times are irregular, or there are none
    rowless: NDArray[np.bool_] | None = None  # (T,): True where the table has no row for the step; None: it has all
    preceding: int = 0  # steps at the beginning that are out of another file
    origin: int | None = None  # steps that are known before the first forecast that is scored; None: all

    def __len__(self) -> int:
        return len(self.values)

    @property
    def moments(self) -> NDArray[Any] | None:
        """(T,): times, be they dates or numbers; None where steps are only counted."""
        return self.times if self.times is not None else self.numbers

    @property
    def measured(self) -> NDArray[np.bool_]:
        """(T, d): False where the value was missing."""
        return self.known if self.observed is None else self.observed

    @property
    def gaps(self) -> int:
        """Steps that the table has no row for."""
        return 0 if self.rowless is None else int(self.rowless.sum())

    @property
    def lead(self) -> int:
        """Steps at the beginning that are read and not scored."""
        if self.observed is None:
            return 0
        is_lead = self.observed.any(1) & ~self.known.any(1)
        return int(np.flatnonzero(is_lead)[-1]) + 1 if is_lead.any() else 0

    def cut(self, start: int, end: int) -> Steps:
        """Some steps; what is known ahead at `end` stays known.

        >>> steps = Steps("", np.arange(4.0)[:, None], np.ones((4, 1), bool), 0, 1, "", future=np.arange(6.0)[:, None])
        >>> part = steps.cut(1, 3)
        >>> part.values[:, 0].tolist(), part.future[:, 0].tolist()
        ([1.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0])
        """

        def part(array: Any) -> Any:
            return None if array is None else array[start:end]

        times = self.times if self.times is not None else self.numbers
        later = self.later
        if times is not None and (self.later is not None or self.future is not None):
            later = times[end:] if self.later is None else np.concatenate([times[end:], self.later])
        return dataclasses.replace(
            self,
            values=self.values[start:end],
            known=self.known[start:end],
            observed=part(self.observed),
            times=part(self.times),
            numbers=part(self.numbers),
            later=later,
            future=None if self.future is None else self.future[start:],
            future_names=None if self.future_names is None else self.future_names[start:],
            past=part(self.past),
            past_names=part(self.past_names),
            rowless=part(self.rowless),
        )

    def copied(self) -> Steps:
        """The same with arrays of its own, so that those of a whole table need not be kept."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        arrays: dict[str, Any] = {name: value.copy() for name, value in fields.items() if isinstance(value, np.ndarray)}
        return dataclasses.replace(self, **arrays)

    def unscored(self, count: int) -> Steps:
        """The same steps, so many of the first of which are read and not scored."""
        known = self.known.copy()
        known[:count] = False
        return dataclasses.replace(self, known=known, observed=self.measured)

    def reversed(self) -> Steps:
        """The same steps from the last to the first; nothing is known ahead of them."""

        def turned(array: Any) -> Any:
            return None if array is None else array[: len(self)][::-1].copy()

        names = ("values", "known", "observed", "times", "numbers", "future", "future_names", "past", "past_names")
        arrays = {name: turned(getattr(self, name)) for name in (*names, "rowless")}
        return dataclasses.replace(self, later=None, **arrays)

    def moments_ahead(self, count: int) -> NDArray[Any] | None:
        """(count,): the times, or numbers, of the steps that follow; None where nothing tells.

        Those of rows that the table has for coming steps come first, and then one step of the frequency after another.
        """
        times = self.times if self.times is not None else self.numbers
        if times is None:
            return None
        found = times[:0] if self.later is None else self.later[:count]
        whole = np.concatenate([times, found])
        missing = count - len(found)
        if missing == 0 or not len(whole):
            return found if missing == 0 else None
        places = np.arange(1, missing + 1)
        if self.numbers is not None:
            step = self.frequency.count if self.frequency is not None else usual_step(self.numbers)
            return None if step is None else np.concatenate([found, whole[-1] + places * step])
        last = int(whole[-1].astype("M8[us]").astype(np.int64))
        if self.frequency is None:
            step = usual_step(whole.astype("M8[us]").astype(np.float64))
            if step is None:
                return None
            more = last + np.round(places * step).astype(np.int64)
        else:
            clock = self.clock or Clock()
            anchor = anchor_of(clock.wall(whole.astype("M8[us]").astype(np.int64)))
            more = after(self.frequency, clock, last, places, anchor)
        return np.concatenate([found, more.astype("M8[us]").astype(whole.dtype)])

    def written(self, moments: NDArray[Any]) -> list[str]:
        """Times, or numbers, as the table writes them."""
        if self.numbers is not None:
            return [str(int(number)) if number % 1 == 0 else f"{number:.12g}" for number in moments.tolist()]
        return (self.clock or Clock()).written(moments.astype("M8[us]").astype(np.int64))


def usual_step(numbers: NDArray[np.float64]) -> float | None:
    """What irregular times are usually apart; None where there is only one.

    >>> usual_step(np.array([0.0, 1.0, 2.5, 3.5]))
    1.0
    """
    return float(np.median(np.diff(numbers))) if len(numbers) > 1 else None
