"""The runs of a folder as text, and as a page whose table is sorted by a click on the head of a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from recurra.errors import ConfigError
from recurra.reports.overview import Overview, Row
from recurra.views.page import page, write_whole
from recurra.views.table import Table, in_words

MOST_SETTINGS = 6
"""Settings that differ have columns in a terminal up to this number; a page shows all."""

HIDDEN = ("count", "characters", "unknown", "seconds")
"""Values beside scores that are none."""

STYLE = """<style>
body{max-width:none}.scroll{max-height:80vh}
table{border-collapse:separate;border-spacing:0}
th,td{padding:.3rem .9rem .3rem .4rem;white-space:nowrap}
thead th{position:sticky;top:0;background:var(--paper);z-index:1}
@media (min-width:641px){tr>:first-child{position:sticky;left:0;background:var(--paper)}
thead tr>:first-child{z-index:2}}
td.long{white-space:normal;min-width:14rem}
th button{font:inherit;font-weight:600;color:inherit;background:none;border:0;padding:0;cursor:pointer}
th button:focus-visible{outline:2px solid currentColor;outline-offset:2px}
th button::after{content:"\\2195";content:"\\2195"/"";opacity:.35;margin-left:.3rem}
th[aria-sort=ascending] button::after{content:"\\2191";content:"\\2191"/"";opacity:1}
th[aria-sort=descending] button::after{content:"\\2193";content:"\\2193"/"";opacity:1}
tbody tr:hover>*{background:var(--panel)}
</style>"""

SCRIPT = """
const table = document.querySelector("table"), body = table.tBodies[0]
const value = (row, column) => {
  const text = row.cells[column].dataset.value
  return text === "" ? null : isNaN(text) ? text : Number(text)
}
for (const button of table.querySelectorAll("th button")) button.addEventListener("click", () => {
  const head = button.parentElement, column = head.cellIndex
  const is_up = head.getAttribute("aria-sort") !== "ascending", sign = is_up ? 1 : -1
  for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort")
  head.setAttribute("aria-sort", is_up ? "ascending" : "descending")
  const rows = [...body.rows].map(row => [value(row, column), row])
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null)
    const numbers = typeof a === "number" && typeof b === "number"
    return sign * (numbers ? a - b : String(a).localeCompare(String(b), undefined, {numeric: true}))
  })
  body.append(...rows.map(([, row]) => row))
})
"""


class Column(NamedTuple):
    """A column of the table: what it is called, and its value for each run."""

    name: str
    value: Callable[[Row], object]
    shown: Callable[[object], str] = in_words


def as_text(found: Overview) -> str:
    """A line for each run: its main score, its size, its time, and the settings that differ."""
    columns = columns_of(found)
    names = found.settings
    columns += [setting(name) for name in names[:MOST_SETTINGS]]
    columns = [each for each in columns if any(each.value(run) not in (None, "") for run in found.runs)]
    rows = [[_cell(column, run) for column in columns] for run in found.runs]
    lines = [f"{found.folder}: {_runs(found)}", "", Table([column.name for column in columns], rows).text()]
    if len(names) > MOST_SETTINGS:
        left = len(names) - MOST_SETTINGS
        others = f"{left} more settings differ" if left > 1 else "1 more setting differs"
        lines += ["", f"{others} ({', '.join(names[MOST_SETTINGS:])}): --out runs.html shows all"]
    lines += [f"\n{run.name}: {run.state}" for run in found.runs if run.state.startswith("damaged")]
    return "\n".join(lines)


def as_page(found: Overview) -> str:
    """All scores and all settings that differ, as one page of HTML that needs nothing else."""
    columns = [*columns_of(found), *map(setting, found.settings), *other_scores(found)]
    columns = [each for each in columns if any(each.value(run) not in (None, "") for run in found.runs)]
    head = "".join(
        f'<th scope="col"{_number_class(column, found.runs)}><button type="button">{escape(column.name)}</button></th>'
        for column in columns
    )
    body = "\n".join(
        f"<tr>{''.join(_cell_in_html(column, run, found.runs) for column in columns)}</tr>" for run in found.runs
    )
    name = Path(found.folder).resolve().name or found.folder
    pieces = [
        STYLE,
        f"<h1>{escape(name)}</h1>",
        f'<p class="soft">{_runs(found)}. A click on the head of a column sorts by it. After the date stand the '
        "settings that are not the same in all runs, then the other scores.</p>",
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>',
    ]
    return page(f"Runs in {name}", pieces, script=SCRIPT)


def write(found: Overview, path: Path) -> None:
    """Write the page."""
    if path.suffix != ".html":
        raise ConfigError(f"--out {path}: the table of a folder of runs is a page, so the file must end in .html.")
    write_whole(path, as_page(found))


def columns_of(found: Overview) -> list[Column]:
    """What is known of every run: its name, the scores that training goes by, size and time."""
    columns = [Column("run", lambda run: run.name)]
    if len({run.task for run in found.runs}) > 1:
        columns.append(Column("task", lambda run: run.task))
    if any(run.state != "finished" for run in found.runs):
        columns.append(Column("state", lambda run: run.state.partition(":")[0]))
    for part in ("valid", "test"):
        names = [name for name in found.scores(part) if name not in HIDDEN]
        columns += [score(part, name) for name in names if is_first(found, name)]
    columns.append(Column("parameters", lambda run: run.parameters))
    columns.append(Column("steps", lambda run: run.steps))
    columns.append(Column("time", lambda run: run.seconds, duration))
    columns.append(Column("date", lambda run: (run.created or "")[:10]))
    return columns


def other_scores(found: Overview) -> list[Column]:
    """The scores that no training goes by."""
    parts = [(part, name) for part in ("valid", "test") for name in found.scores(part)]
    return [score(part, name) for part, name in parts if name not in HIDDEN and not is_first(found, name)]


def is_first(found: Overview, name: str) -> bool:
    """Whether some training went by this score."""
    return any(run.first == name for run in found.runs)


def score(part: str, name: str) -> Column:
    """One score of all runs, on validation or test data."""

    def value(run: Row) -> object:
        found: object = getattr(run, part).get(name)
        return found

    return Column(
        f"{part} {name}", value, lambda value: f"{value:.4f}" if isinstance(value, float) else in_words(value)
    )


def setting(name: str) -> Column:
    """One setting of all runs."""
    return Column(name, lambda run: run.settings.get(name))


def duration(seconds: object) -> str:
    """Seconds as people say them.

    >>> duration(4.2), duration(95.0), duration(7260.0), duration(None)
    ('4 s', '1 min 35 s', '2 h 1 min', '–')
    """
    if not isinstance(seconds, int | float):
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _runs(found: Overview) -> str:
    return "1 run" if len(found.runs) == 1 else f"{len(found.runs):,} runs"


def _cell(column: Column, run: Row) -> str:
    value = column.value(run)
    if isinstance(value, dict):
        name, *options = (f"{key} = {in_words(each)}" if key != "name" else str(each) for key, each in value.items())
        return f"{name} ({', '.join(options)})" if options else name
    return "–" if value in (None, "", []) else column.shown(value)


def _is_number(column: Column, runs: Sequence[Row]) -> bool:
    values = [value for run in runs if (value := column.value(run)) is not None]
    return bool(values) and all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)


def _number_class(column: Column, runs: Sequence[Row]) -> str:
    return ' class="number"' if _is_number(column, runs) else ""


def _cell_in_html(column: Column, run: Row, runs: Sequence[Row]) -> str:
    value, text = column.value(run), _cell(column, run)
    key = value if isinstance(value, int | float) and not isinstance(value, bool) else "" if text == "–" else text
    kind = _number_class(column, runs) or (' class="long"' if len(text) > 60 else "")
    tag = "th" if column.name == "run" else "td"
    scope = ' scope="row"' if tag == "th" else ""
    return f'<{tag}{scope}{kind} data-value="{escape(str(key))}">{escape(text)}</{tag}>'


__all__ = ["as_page", "as_text", "write"]
