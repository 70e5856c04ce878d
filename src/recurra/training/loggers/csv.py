"""CSV: RUN/metrics.csv, a row for each number: its step, epoch, name and value."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import final

from recurra.training.log import EventLine, Line, Logger, numbers_in


def opened(folder: Path, known: Sequence[Line], _: Mapping[str, object]) -> Logger:
    """The table, with the lines that the log holds already."""
    return CSV(folder / "metrics.csv", known)


@final
class CSV(Logger):
    """A table that every spreadsheet reads."""

    def __init__(self, path: Path, known: Sequence[Line]) -> None:
        self._file = path.open("w", encoding="utf-8", newline="")
        self._table = csv.writer(self._file, lineterminator="\n")
        self._table.writerow(["step", "epoch", "name", "value"])
        for line in known:
            self.write(line)

    def write(self, line: Line) -> None:
        if not isinstance(line, EventLine):
            self._table.writerows([line.step, line.epoch, name, x] for name, x in numbers_in(line).items())
            self._file.flush()

    def close(self) -> None:
        self._file.close()
