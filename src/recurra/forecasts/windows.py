"""The parts of series that training reads together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.data.batches import Batches
from recurra.data.origins import COUNT, Origins
from recurra.data.origins import Window as OriginsWindow
from recurra.data.store import Columns, Flat, Rows
from recurra.data.windows import Windows
from recurra.forecasts.conventions import Conventions


def windows_of(conventions: Conventions, lengths: NDArray[np.int64]) -> Windows | Origins | None:
    """The parts of rows of some lengths that are read together in training; None: whole rows."""
    data, model = conventions.settings.data, conventions.settings.model
    if conventions.is_direct:
        assert data.window is not None
        assert model.horizon is not None
        assert data.season is not None
        return Origins(lengths, count=COUNT, lead=data.window, horizon=model.horizon, earliest=data.season - 1)
    if data.window is None:
        return None
    overlap = data.window // 2 if data.overlap is None else data.overlap
    return Windows(lengths, size=data.window, overlap=overlap)


def batches_of(conventions: Conventions, windows: Windows | Origins, epoch: int) -> Batches:
    """Which windows make the batches of an epoch."""
    training = conventions.settings.training
    size = training.batch_size
    tokens = None if size is not None else training.batch_tokens
    if isinstance(windows, Origins):  # whose elements are the steps from which forecasts start
        drawn = windows.drawn(conventions.settings.data.origins, seed=training.seed, epoch=epoch)
        return Batches(windows.counts, tokens=tokens, rows=size, seed=training.seed, epoch=epoch, of=drawn)
    return Batches(windows.lengths, tokens=tokens, rows=size, seed=training.seed, epoch=epoch)


def cut_out(
    conventions: Conventions,
    store: Any,
    lengths: NDArray[np.int64],
    windows: Windows | Origins,
    numbers: NDArray[np.int64],
) -> Rows:
    """Windows of a store of rows as rows of their own."""
    chosen, begins = windows.at(numbers), np.cumsum(lengths) - lengths
    row, has, horizon = chosen.row, conventions.widths, conventions.horizon
    first, last = begins[row] + chosen.start, begins[row] + chosen.end
    steps = ["values", "known", *(["past"] if has.past else []), *(["gaps"] if conventions.reads_gaps else [])]
    found: dict[str, Flat] = {name: store.spans(name, first, last) for name in steps}
    if conventions.from_nothing:  # a frame in the middle does not follow on silence
        known, counts = found["known"]
        begun = np.cumsum(counts) - counts
        known = known.copy()
        known[begun[(chosen.start > 0) & (counts > 0)]] = False
        found["known"] = Flat(known, counts)
    if has.future:  # of each row as many more as the horizon has steps
        ahead = row * horizon
        found["future"] = store.spans("future", first + ahead, last + ahead + horizon)
    widths = {"place": 2, "static_numbers": has.static, "static_names": len(has.categories)}
    widths["unit"] = conventions.size if conventions.tells_unit else 0
    found |= {name: store.spans(name, width * row, width * (row + 1)) for name, width in widths.items() if width}
    if isinstance(chosen, OriginsWindow):
        one = np.ones(len(numbers), np.int64)
        found |= {"origin": Flat(chosen.first, one), "origins": Flat(chosen.origins, one)}
    return Rows(Columns(found))
