"""What is in a data file, what is odd about it, and which tasks it can serve."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recurra.data.checking import treebank
from recurra.data.checking.columns import Column, ColumnSurvey
from recurra.data.checking.duplicates import Repeated, RowSurvey
from recurra.data.checking.oddities import Oddity, TextSurvey
from recurra.data.checking.pairs import PairReport, PairSurvey
from recurra.data.checking.pointed import PointSurvey, pointing
from recurra.data.checking.series import SeriesSurvey, SeriesTable
from recurra.data.checking.tasks import ParallelSurvey, Request, Service, roles_of, services
from recurra.data.checking.timeline import timeline_in_words
from recurra.data.checking.words import in_words
from recurra.data.files import PathLike
from recurra.data.formats import reader, rows
from recurra.data.formats.fasttext import PREFIX
from recurra.data.formats.reader import Row, Value
from recurra.data.roles import ENTAILMENT, two_texts
from recurra.data.shards import with_shards
from recurra.errors import DataError

SHARES = {"10%": 100, "20%": 50}
"""Shares of the training files that are proposed for validation, and the rows that they take."""

INPUTS = ("tokens", "text", "source")
LABELS = ("label", "labels", "category", "tags", "upos")
_HEADER_WORDS = frozenset(
    {
        "text",
        "label",
        "tokens",
        "tags",
        "source",
        "target",
        "id",
        "language",
        "sentence",
        "review",
        "sentiment",
        "class",
    }
    | {"category", "intent", "word", "tag", "input", "output", "src", "tgt", "title", "score", "date", "name"}
)


class FileReport(NamedTuple):
    """One file."""

    path: str
    format: str
    rows: int
    columns: list[Column]
    oddities: list[Oddity]
    repeated: Repeated  # whole rows
    input: str  # the column that a model would read; of two texts that are read together, both
    repeated_inputs: Repeated  # rows of whatever answer
    pairs: PairReport | None = None  # where the rows are a source and a target
    header: Sequence[str] = ()  # the names in the first line of a table, where it is taken for a header


class Overlap(NamedTuple):
    """Rows of one file that stand in another."""

    path: str
    other: str
    rows: Repeated
    inputs: Repeated


class Unseen(NamedTuple):
    """Labels that a file has and the training files have not."""

    path: str
    column: str
    labels: list[str]


class Report(NamedTuple):
    """All files, what they share, and what can be done with them."""

    files: list[FileReport]
    overlaps: list[Overlap]
    unseen: list[Unseen]
    tasks: list[Service]

    def text(self) -> str:
        """The report for a terminal."""
        return in_words(self)

    def json(self) -> dict[str, object]:
        """The report as the object that --json prints."""
        return {name: _plain(part) for name, part in self._asdict().items()}


def check(
    paths: Sequence[PathLike],
    *,
    format: str | Mapping[str, object] | None = None,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    valid: Sequence[PathLike] = (),
) -> Report:
    r"""What is in the files, read as a stream; a folder stands for the data files in it.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "reviews.tsv"
    >>> _ = file.write_text("good film\tyes\nbad film\tno\ngood book\tyes\nbad book\tno\n")
    >>> report = check([file], columns=["text", "label"])
    >>> report.files[0].columns[1].counts
    {'no': 2, 'yes': 2}
    >>> [service.task for service in report.tasks if service.command]
    ['classification', 'language_model']
    """
    if isinstance(paths, str | os.PathLike) or not paths:
        raise DataError(f"check needs a list of at least one file, but got {paths!r}.")
    train, held = ([os.fspath(path) for path in with_shards(given)] for given in (paths, valid))
    surveys = [_Survey(path, format, columns) for path in (*train, *held)]
    request = Request(train, held, format, columns, _share(surveys) if not held else None)
    files = [survey.found(request) for survey in surveys]
    overlaps = [
        Overlap(late.path, early.path, late.whole.repeated_in(early.whole), late.inputs.repeated_in(early.inputs))
        for number, late in enumerate(surveys)
        for early in surveys[:number]
        if early.path not in held
    ]
    first, seen = files[0], surveys[0]
    table = seen.series_table(first.columns)
    said = services(request, first.format, first.columns, seen.parallel.found(), table)
    if table is not None and any(service.task == "forecasting" and service.command for service in said):
        timeline = timeline_in_words(rows(train[0], format=format, columns=columns), table)
        said = [each._replace(found=timeline) if each.task == "forecasting" else each for each in said]
    return Report(
        files,
        overlaps,
        _unseen(files[: len(train)], surveys[len(train) :]),
        [pointing(service, seen.points) for service in said],
    )


class _Survey:
    """One file, seen row by row."""

    def __init__(
        self,
        path: str,
        format: str | Mapping[str, object] | None,
        columns: Mapping[str, str] | Sequence[str] | None,
    ) -> None:
        self.path = path
        self.format = type(reader(path, format, columns)).__name__.lower()
        self.rows = 0
        self.columns: dict[str, ColumnSurvey] = {}
        self.texts, self.parallel, self.series = TextSurvey(), ParallelSurvey(), SeriesSurvey()
        self.pairs, self.points = PairSurvey(), PointSurvey()
        self.whole, self.inputs = RowSurvey(), RowSurvey()
        self.header_line = 0
        self.header: list[str] = []
        self.input: Sequence[str] = ()
        self.first_line = ""
        for row in rows(path, format=format, columns=columns):
            self._see(row)

    def _see(self, row: Row) -> None:
        if not self.rows:
            self.input = _input(row.values)
            self.header_line = row.line if _is_header(row.values) else 0
            self.first_line = str(row.values.get("text", ""))
            is_named = self.format in ("csv", "tsv") and row.line > 1
            self.header = list(row.values) if is_named else []
        self.rows += 1
        for name, value in row.values.items():
            if name not in self.columns:
                self.columns[name] = ColumnSurvey(name)
                self.columns[name].missing = self.rows - 1  # a key that earlier lines do not have
            self.columns[name].see(value, row.line)
        for name in self.columns.keys() - row.values.keys():
            self.columns[name].see(None, row.line)
        self.texts.see(row.values, row.line)
        self.parallel.see(row.values)
        self.series.see(row.values)
        self.pairs.see(row.values, row.line)
        self.points.see(row.values)
        self.whole.see(row.values, row.line)
        self.inputs.see({name: row.values.get(name) for name in self.input}, row.line)

    def found(self, request: Request) -> FileReport:
        oddities = self.texts.found()
        if self.header_line:
            what = "the first line looks like a header: set header = true, or name its columns"
            oddities.insert(0, Oddity("", what, 1, [self.header_line]))
        if self.format == "conllu":
            oddities = [*treebank.oddities(self.path), *oddities]
        if self.format == "text" and self.first_line.startswith(PREFIX):
            what = f"the first line begins with {PREFIX}, as fastText writes labels: set data.format = fasttext"
            oddities.insert(0, Oddity("", what, 1, [1]))
        if self.format == "text" and "\t" in self.first_line:
            what = "the first line has tabs, as the rows of a table have: set data.format = tsv, or give --format tsv"
            oddities.insert(0, Oddity("", what, 1, [1]))
        columns = [survey.found() for survey in self.columns.values()]
        if _swapped({column.name: column for column in columns}):
            what = "text looks like a label and label like a text: swap them in data.columns"
            oddities.insert(0, Oddity("", what, self.rows, []))
        whole, inputs = self.whole.repeated(), self.inputs.repeated()
        pairs = self.pairs.found() if self._are_pairs(request, columns) else None
        if pairs is not None:
            oddities = [*self.pairs.oddities(), *oddities]
        read = " and ".join(self.input)
        return FileReport(self.path, self.format, self.rows, columns, oddities, whole, read, inputs, pairs, self.header)

    def series_table(self, columns: Sequence[Column]) -> SeriesTable | None:
        """The series that the columns are, where they are."""
        return self.series.found(self.format, [column.name for column in columns if column.counts])

    def _are_pairs(self, request: Request, columns: Sequence[Column]) -> bool:
        """Whether the rows read like pairs; a label and a text can be taken for one, but seldom are."""
        known = (request, self.format, columns, self.parallel.found(), self.series_table(columns))
        roles = roles_of("seq2seq", *known)
        if roles is None or self.pairs.columns is None:
            return False
        sides = tuple({role: name for name, role in roles.items()}.get(side) for side in ("source", "target"))
        is_certain = sides == ("source", "target") or len(roles) > 2
        return sides == self.pairs.columns and (is_certain or roles_of("classification", *known) is None)


def _share(surveys: Sequence[_Survey]) -> str | None:
    """How much of the files to hold out for validation; None of files that are too small for it."""
    count = sum(survey.rows for survey in surveys)
    return next((share for share, fewest in SHARES.items() if count >= fewest), None)


def _input(values: Mapping[str, Value]) -> Sequence[str]:
    """The column that a model would read: by its name, or else the first that holds a list, or else the first.

    Two where they are read together: by their names, or because a class of entailment stands beside them.
    """
    texts = [name for name, value in values.items() if isinstance(value, str)]
    if len(texts) > 2 and (both := two_texts(texts)) is not None:
        return both
    others = [name for name in texts if str(values[name]).lower() not in ENTAILMENT]
    if len(others) == len(texts) - 1 > 1:
        return others[:2]
    lists = [name for name, value in values.items() if isinstance(value, list)]
    return [name for name in INPUTS if name in values][:1] or lists[:1] or [*values][:1]


def _is_header(values: Mapping[str, Value]) -> bool:
    """Whether the first row of a table without a header reads like one."""
    if not all(re.fullmatch("column[0-9]+", name) for name in values):
        return False
    cells = [value.lower() if isinstance(value, str) else "" for value in values.values()]
    return all(re.fullmatch(r"[a-z_ ]{1,20}", cell) for cell in cells) and any(cell in _HEADER_WORDS for cell in cells)


def _swapped(columns: Mapping[str, Column]) -> bool:
    text, label = columns.get("text"), columns.get("label")
    return text is not None and label is not None and bool(text.counts) and not label.counts


def _unseen(train: Sequence[FileReport], held: Sequence[_Survey]) -> list[Unseen]:
    known: dict[str, set[str]] = {}
    for file in train:
        for column in file.columns:
            known.setdefault(column.name, set()).update(column.counts)
    found = []
    for survey in held:
        for name, seen in survey.columns.items():
            column = seen.found()
            if column.dates:  # they recur as labels do, and the later ones are always new
                continue
            # In a short file labels hardly recur, so that they do not look like labels; their name says what they are.
            values = (seen.labels or {}) if name in LABELS else column.counts
            labels = sorted(value for value in values if value not in known.get(name, ()))
            if labels and known.get(name):
                found.append(Unseen(survey.path, name, labels))
    return found


def _plain(value: object) -> object:
    """Tuples with names become objects."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value
