"""The report of `recurra check` for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from recurra.data.checking.columns import Column, Lengths
from recurra.data.checking.duplicates import Repeated
from recurra.data.checking.pairs import PairReport
from recurra.data.files import parallel_files

if TYPE_CHECKING:
    from recurra.data.check import FileReport, Report

MOST_LABELS = 12
MOST_RARE = 6
SYNTAX = ("head", "deps", "misc")
"""Columns of CoNLL-U that no task reads."""


def in_words(report: Report) -> str:
    """The report as lines of text."""
    lines: list[str] = []
    for file in report.files:
        lines += [*_file(file), ""]
    shared = list(_between(report))
    if shared:
        lines += ["Between files", *(f"  {line}" for line in shared), ""]
    lines.append("Tasks")
    for service in report.tasks:
        lines.append(f"  {service.task}: {'yes' if service.command else f'no, {service.reason}'}")
        if service.command:
            lines.append(f"    {service.command}")
        if service.found:
            lines.append(f"    {service.found}")
        if service.guess:
            lines.append(f"    a guess: it takes {service.guess}.")
    return "\n".join(_visible(line) for line in lines)


def _visible(line: str) -> str:
    """The line with what a terminal would obey or hide written as an escape."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _file(file: FileReport) -> Iterator[str]:
    yield f"{file.path}: {file.format}, {_counted(file.rows, 'row')}"
    if file.header:
        yield f"  the first line is taken for a header: {', '.join(file.header)}"
    for column in file.columns:
        if file.format != "conllu" or (column.name not in SYNTAX and list(column.counts) != ["_"]):
            is_new = column is file.columns[0] or column.lengths != file.columns[0].lengths
            yield from (f"  {line}" for line in _column(file, column, with_lengths=is_new))
    if file.pairs is not None:
        yield from (f"  {line}" for line in _pairs(file.path, file.pairs))
    yield f"  repeated rows: {_repeated(file.repeated, file.path, file.path)}"
    if file.repeated_inputs.rows > file.repeated.rows and len(file.columns) > 1:
        yield (
            f"  repeated {file.input}, with any other columns: {_repeated(file.repeated_inputs, file.path, file.path)}"
        )
    for oddity in file.oddities:
        where = f"{oddity.column}: " if oddity.column else ""
        places = _places(file.path, oddity.lines, oddity.rows, oddity.column)
        yield f"  odd: {where}{oddity.what}, {_counted(oddity.rows, 'row')} ({places})"


def _pairs(path: str, pairs: PairReport) -> Iterator[str]:
    sides = (_words(pairs.source_words), _words(pairs.target_words))
    yield f"pairs of {pairs.source} and {pairs.target}: {' and '.join(sides)}"
    if pairs.several.sources:
        has = "1 source has" if pairs.several.sources == 1 else f"{pairs.several.sources:,} sources have"
        up_to = "2" if pairs.several.most == 2 else f"2 to {pairs.several.most:,}"
        places = ", ".join(_place(path, line) for line in pairs.several.lines)
        yield f"  several targets: {has} {up_to} different ones, such as at {places}"


def _words(words: Lengths) -> str:
    if words.shortest == words.longest:
        return _counted(words.longest, "word")
    return f"{words.shortest:,} to {_counted(words.longest, 'word')} (median {words.median:,})"


def _column(file: FileReport, column: Column, *, with_lengths: bool) -> Iterator[str]:
    path = file.path
    at_least = "" if column.distinct_is_exact else " or more"
    values = f", {_counted(column.distinct, 'different value')}{at_least}" if column.distinct else ""
    kind = column.kind
    if file.format in ("csv", "tsv") and kind == "text":  # all their cells are texts, some of them understood as more
        kind = "date" if column.dates else "number" if column.numeric else kind
    yield f"{column.name}: {kind}{values}"
    if column.examples:
        yield "  such as " + ", ".join(f"'{example}'" for example in column.examples)
    is_short = column.numeric or (column.counts and column.lengths is not None and column.lengths.unit == "characters")
    if column.lengths is not None and with_lengths and not is_short:
        unit, shortest, median, most, longest, line = column.lengths
        yield (
            f"  {shortest:,} to {longest:,} {unit}, median {median:,}, 95 % have at most {most:,}; "
            f"the longest is {_place(path, line, column.name)}"
        )
    if column.empty:
        places = _places(path, column.empty_lines, column.empty, column.name)
        yield f"  empty: {_counted(column.empty, 'row')} ({places})"
    if column.missing:
        yield f"  missing: {_counted(column.missing, 'row')}"
    if column.dates:
        return
    if column.counts:
        frequent = [f"{label} {count:,}" for label, count in list(column.counts.items())[:MOST_LABELS]]
        yield f"  counts: {_listed(frequent, len(column.counts))}"
    if column.rare:
        rarest = [
            f"{rare.value} {rare.times} ({_places(path, rare.lines[:1], rare.times)})"
            for rare in column.rare[::-1][:MOST_RARE]
        ]
        yield f"  rare: {_listed(rarest, len(column.rare))}"


def _between(report: Report) -> Iterator[str]:
    for overlap in report.overlaps:
        rows = _repeated(overlap.rows, overlap.path, overlap.other)
        yield f"rows of {overlap.path} that are in {overlap.other}: {rows}"
        if overlap.inputs.rows > overlap.rows.rows:
            yield f"  with any answer: {_repeated(overlap.inputs, overlap.path, overlap.other)}"
    formats = {file.path: file.format for file in report.files}
    for unseen in report.unseen:
        if formats[unseen.path] == "conllu" and unseen.column in SYNTAX:
            continue
        labels = _listed(unseen.labels[:MOST_LABELS], len(unseen.labels))
        yield f"{unseen.path} has labels in {unseen.column} that are not in the training data: {labels}"


def _repeated(repeated: Repeated, path: str, other: str) -> str:
    if not repeated.rows:
        return "none"
    pairs = [f"{_place(path, line)} = {_place(other, earlier)}" for line, earlier in repeated.pairs]
    return f"{repeated.rows:,} ({100 * repeated.share:.1f} %): {_listed(pairs, repeated.rows)}"


def _places(path: str, lines: Sequence[int], number: int, column: str = "") -> str:
    return _listed([_place(path, line, column) for line in lines], number)


def _place(path: str, line: int, column: str = "") -> str:
    """file:line; of two parallel files that with the column."""
    files = parallel_files(path)
    return f"{files[-1 if column == 'target' and len(files) == 2 else 0]}:{line}"


def _listed(shown: Iterable[str], number: int) -> str:
    shown = list(shown)
    return ", ".join(shown) + (f", … {number - len(shown):,} more" if number > len(shown) else "")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
