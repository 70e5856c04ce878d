"""New data and old: what a run that starts from another one reads, so that it does not forget what that one learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from recurra.data.store import Encoded, Flat, Rows, Store

PLACE, OLD = "place", -2
"""Where a row stands, and the number of the file of a row of old data."""

REPLAY_DRAW = 7919
"""A number of its own for the generator that draws old rows."""


@final
class Mixed:
    """Two stores, of which each epoch reads all new rows, and old ones so that these are a share of all.

    Which old ones is a pure function of seed and epoch. None is drawn twice in an epoch, and one at least.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> new = Store.write(folder / "new", [{"ids": np.array([n])} for n in range(6)])
    >>> old = Store.write(folder / "old", [{"ids": np.array([-n])} for n in range(1, 50)])
    >>> mixed = Mixed(new, old, share=0.25, seed=1)
    >>> [row["ids"].tolist() for row in mixed.of_epoch(0)][:6], len(mixed.of_epoch(0))
    ([[0], [1], [2], [3], [4], [5]], 8)
    >>> mixed.drawn(0).tolist() == mixed.drawn(0).tolist(), mixed.drawn(0).tolist() == mixed.drawn(1).tolist()
    (True, False)
    """

    def __init__(self, new: Store, old: Store, *, share: float, seed: int) -> None:
        assert 0 < share < 1, "checked by the settings"
        self.new, self.old, self.share, self.seed = new, old, share, seed

    def drawn(self, epoch: int) -> NDArray[np.int64]:
        """The numbers of the old rows of an epoch."""
        wanted = max(1, round(self.share / (1 - self.share) * len(self.new)))
        draw = np.random.default_rng([REPLAY_DRAW, self.seed, epoch])
        return np.sort(draw.permutation(len(self.old))[:wanted])

    def of_epoch(self, epoch: int) -> Joined:
        """What an epoch reads."""
        return Joined(self.new, self.old, self.drawn(epoch))

    def stretch_of_epoch(self, epoch: int, field: str) -> Joined:
        """What an epoch of a running text reads: old steps that go on as they stand, from a place that is drawn."""
        size, most = self.new.size(field), self.old.size(field)
        wanted = min(most, max(1, round(self.share / (1 - self.share) * size)))
        first = int(np.random.default_rng([REPLAY_DRAW, self.seed, epoch]).integers(most - wanted + 1))
        return Joined(self.new, self.old, np.zeros(0, np.int64), stretch=(first, first + wanted))


@final
class Joined(Sequence[Encoded]):
    """The rows of a store and some of another, or a stretch of the other's steps, with the face of one store."""

    def __init__(
        self, new: Store, old: Store, numbers: NDArray[np.int64], *, stretch: tuple[int, int] | None = None
    ) -> None:
        self._new, self._old, self._numbers, self._stretch = new, old, numbers, stretch
        self._flat: dict[str, NDArray[Any]] = {}  # the old steps of a field

    def __len__(self) -> int:
        return len(self._new) + len(self._numbers)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[number] for number in range(*row.indices(len(self)))]
        number = range(len(self))[row]
        if number < len(self._new):
            return self._new[number]
        return _of_old_data(self._old[int(self._numbers[number - len(self._new)])])

    @property
    def fields(self) -> Any:
        return self._new.fields

    def take(self, numbers: NDArray[np.int64]) -> Rows:
        """Some rows, in this order."""
        is_old = np.asarray(numbers) >= len(self._new)
        if not is_old.any():
            return self._new.take(numbers)
        new = iter(self._new.take(numbers[~is_old]))
        old = iter(self._old.take(self._numbers[numbers[is_old] - len(self._new)]))
        return Rows(_of_old_data(next(old)) if each else next(new) for each in is_old.tolist())

    def lengths(self, field: str) -> NDArray[np.int64]:
        return np.concatenate([self._new.lengths(field), self._old.lengths(field)[self._numbers]])

    def size(self, field: str) -> int:
        if self._stretch is not None:
            return self._new.size(field) + self._stretch[1] - self._stretch[0]
        return int(self.lengths(field).sum())

    def span(self, field: str, start: int, end: int) -> NDArray[Any]:
        """Steps of a field as if all rows were one, the new ones first."""
        size = self._new.size(field)
        if end <= size:
            return self._new.span(field, start, end)
        if self._stretch is None:
            return (
                self._of_old(field)[max(0, start - size) : end - size] if start >= size else self._all(field)[start:end]
            )
        first = self._stretch[0]
        late = self._old.span(field, first + max(0, start - size), first + end - size)
        return late if start >= size else np.concatenate([self._new.span(field, start, size), late])

    def spans(self, field: str, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Flat:
        """Several parts of a field, each as `span` gives it."""
        parts = [self.span(field, start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        return Flat(np.concatenate(parts), ends - starts)

    def _of_old(self, field: str) -> NDArray[Any]:
        if field not in self._flat:
            self._flat[field] = self._old.take(self._numbers).flat(field).values
        return self._flat[field]

    def _all(self, field: str) -> NDArray[Any]:
        return np.concatenate([self._new.span(field, 0, self._new.size(field)), self._of_old(field)])


def _of_old_data(row: Encoded) -> Encoded:
    """A row whose place says that it is not one of the new files."""
    place = row.get(PLACE)
    return row if place is None else {**row, PLACE: np.concatenate([[OLD], place[1:]]).astype(np.int64)}


def line_of_old(row: Encoded) -> int | None:
    """The line of a row of old data; None: it is a new one."""
    place = row.get(PLACE)
    return int(place[1]) if place is not None and len(place) == 2 and place[0] == OLD else None
