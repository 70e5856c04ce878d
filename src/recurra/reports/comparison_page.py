"""A comparison of runs as text, as a page and as a picture."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape
from pathlib import Path

from recurra.errors import ConfigError, DataError
from recurra.metrics.resampling import Difference
from recurra.reports.comparison import Apart, Comparison
from recurra.views.page import page, section, table_in_html, write_whole
from recurra.views.table import Table

COUNTS = ("count", "characters", "unknown")
"""Values that are whole numbers."""


def as_text(comparison: Comparison) -> str:
    """Everything in tables, one under the other."""
    parts = [headline(comparison)]
    parts += ["\n".join(f"{run.name}: {run.description}" for run in comparison.runs)]
    parts += [scores_table(comparison).text()]
    parts += [differences_table(pair, comparison.level).text() for pair in comparison.apart]
    if comparison.by_length is not None:
        parts.append(f"{comparison.by_length.score} by length\n{comparison.by_length.text()}")
    return "\n\n".join([*parts, *comparison.notes])


def as_page(comparison: Comparison) -> str:
    """The same as one page of HTML, with the picture."""
    title = " beside ".join(run.name for run in comparison.runs)
    return page(title, [f"<h1>{escape(title)}</h1>", *pieces(comparison)])


def pieces(comparison: Comparison) -> list[str]:
    """What stands on that page below its title."""
    by = comparison.by_length
    descriptions = "".join(f"<dt>{escape(run.name)}</dt><dd>{escape(run.description)}</dd>" for run in comparison.runs)
    return [
        f'<p class="soft">{escape(headline(comparison))}</p>',
        *(f"<p>{escape(note)}</p>" for note in comparison.notes),
        section("Runs", f'<dl class="pairs">{descriptions}</dl>'),
        section("Scores", table_in_html(Table(*scores_table(comparison)))),
        *(
            section(f"{pair.first} − {pair.second}", table_in_html(Table(*differences_table(pair, comparison.level))))
            for pair in comparison.apart
        ),
        section(f"{by.score} by length", by.view().figure()) if by is not None else "",
    ]


def write(comparison: Comparison, path: Path) -> None:
    """Write a page (.html), or the picture of scores by length (.svg, .png)."""
    if path.suffix == ".html":
        write_whole(path, as_page(comparison))
        return
    if path.suffix not in (".svg", ".png"):
        raise ConfigError(f"--out {path}: the file must end in .html, .svg or .png.")
    if comparison.by_length is None:
        raise DataError(f"cannot draw {path}: these runs have no scores by length.")
    comparison.by_length.view().write(path)


def headline(comparison: Comparison) -> str:
    """What was compared, and how sure the figures are."""
    text = f"{comparison.task} on {comparison.data}"
    if comparison.items is None or not any(run.intervals for run in comparison.runs):
        return text
    how = f"{comparison.level:.0%} intervals, of {comparison.resamples:,} samples of them"
    return f"{text}: {comparison.items:,} items; in brackets {how}"


def scores_table(comparison: Comparison) -> Table:
    """A row for each score, a column for each run."""
    names = dict.fromkeys(name for run in comparison.runs for name in run.scores.values)

    def cell(name: str, place: int) -> str:
        run = comparison.runs[place]
        value = run.scores.values.get(name, math.nan)
        if math.isnan(value):
            return "–"
        if name in COUNTS:
            return f"{value:,.0f}"
        ends = run.intervals.get(name)
        return f"{value:.4f}" + (f" [{ends[0]:.4f}, {ends[1]:.4f}]" if ends is not None else "")

    rows = [[name, *(cell(name, place) for place in range(len(comparison.runs)))] for name in names]
    shown = [row for row in rows if {*row[1:]} != {"–"}]
    return Table(["score", *(run.name for run in comparison.runs)], shown)


def differences_table(pair: Apart, level: float) -> Table:
    """A row for each score: how far apart two runs are, and in how many of the samples the first is better."""
    columns: dict[str, Callable[[Difference], str]] = {
        "difference": lambda found: f"{found.value:+.4f}",
        f"{level:.0%} interval": lambda found: f"[{found.low:+.4f}, {found.high:+.4f}]",
        f"{pair.first} better": lambda found: f"{found.better:.1%}",
    }
    rows = [[name, *(cell(found) for cell in columns.values())] for name, found in pair.scores.items()]
    return Table([f"{pair.first} − {pair.second}", *columns], rows)
