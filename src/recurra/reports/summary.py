"""What the folder of a finished run says of it: summary.json, metrics.jsonl and config.toml."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from recurra.errors import DataError
from recurra.manifest import verify
from recurra.opening import read_file
from recurra.training.log import FILE, Line, read_log
from recurra.views.table import Table, in_words


class Run(NamedTuple):
    """What a run folder holds; parts that it lacks are empty."""

    folder: Path
    summary: Mapping[str, object]
    lines: Sequence[Line]
    config: str

    @classmethod
    def read(cls, folder: Path) -> Run:
        path = folder / "summary.json"
        if folder.is_dir():
            verify(folder, {"summary.json", "config.toml", FILE}.__contains__)
        try:
            summary = json.loads(read_file(path))
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}. {folder} may not be a run folder.") from error
        except (ValueError, RecursionError):
            summary = None
        if not isinstance(summary, dict):
            raise DataError(
                f"{path} is not a valid summary of a training run (a JSON object). Restore the file, or train again."
            )
        log, config = folder / FILE, folder / "config.toml"
        return cls(
            folder,
            summary,
            read_log(log) if log.exists() else [],
            config.read_text("utf-8", "replace") if config.exists() else "",
        )

    @property
    def name(self) -> str:
        return str(self.summary.get("name") or self.folder.resolve().name)

    def said(self, *keys: str) -> list[tuple[str, str]]:
        """Each of these keys that the summary has, with what it says."""
        found: list[tuple[str, str]] = []
        for key in keys:
            value = self.summary.get(key)
            if key == "seconds" and isinstance(value, int | float) and math.isfinite(value):
                found.append(("time", time_in_words(value)))
            elif value not in (None, ""):
                found.append((key.replace("_", " "), str(value) if key == "seed" else in_words(value)))
        return found

    def scores(self) -> Table:
        """The scores by name, the first metric first: of the best validation, and of the test data if there are any."""
        by_part = {"valid": within(self.summary, "best", "scores"), "test": within(self.summary, "test", "scores")}
        found = {part: scores for part, scores in by_part.items() if scores}
        first = self.summary.get("first_metric")
        names = sorted(dict.fromkeys(n for scores in found.values() for n in scores), key=lambda name: name != first)
        return Table(["score", *found], [[name, *(scores.get(name) for scores in found.values())] for name in names])

    def data(self, *, whole_path: bool) -> Table:
        """The data files with their sizes; only their names where the folder they lie in is nobody's business."""
        rows: list[list[object]] = []
        parts = {part: within(self.summary, "data", part) for part in within(self.summary, "data")}
        if "path" in (test := within(self.summary, "test")):
            parts.setdefault("test", test)
        for part, found in parts.items():
            given = found.get("path") or ""
            paths = [str(path) for path in (given if isinstance(given, list) else [given])]
            if not whole_path:  # parallel files are named together: a.en,a.de
                paths = [",".join(Path(one).name for one in path.split(",")) for path in paths]
            share = f"{found['share']} of " if "share" in found else ""
            rows.append([part, share + ", ".join(paths), found.get("rows"), found.get("tokens")])
        return Table(["part", "file", "rows", "tokens"], rows)

    def tables(self) -> dict[str, Table]:
        found = {title: within(self.summary, "tables", title) for title in within(self.summary, "tables")}
        return {
            title: Table(
                [str(name) for name in listed(table.get("columns"))], [listed(r) for r in listed(table.get("rows"))]
            )
            for title, table in found.items()
        }


def time_in_words(seconds: float) -> str:
    """
    >>> time_in_words(9.87), time_in_words(125), time_in_words(4320)
    ('9.9 s', '2 min 5 s', '1 h 12 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def within(table: Mapping[str, object], *keys: str) -> Mapping[str, object]:
    """The table inside tables; an empty one where a summary has none."""
    for key in keys:
        found = table.get(key)
        table = found if isinstance(found, Mapping) else {}
    return table


def listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []
