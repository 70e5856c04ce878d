"""A finished run in words, tables and pictures: report.html to look at, card.md to publish with the model."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from recurra.analysis.curves import curves
from recurra.analysis.purpose import commands, data_table, purpose, python
from recurra.analysis.summary import Run, Table, in_cell, in_words, listed, within
from recurra.errors import DataError
from recurra.training.log import EventLine

_QUICK = (
    "These curves show validation as it was done during training, in a quicker way, by which the weights were chosen. "
    "All other scores are of the weights that were kept, found in full after training."
)

# Nothing is fetched from anywhere: the policy forbids it, and the empty icon keeps a browser from asking for one.
_HEAD = """<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<style>
:root{color-scheme:light dark;--ink:#222;--soft:#5c5f66;--paper:#fff;--line:#ddd;--panel:#f5f6f8}
@media screen and (prefers-color-scheme:dark){
:root{--ink:#ddd;--soft:#a0a4ac;--paper:#16181c;--line:#3a3d44;--panel:#202329}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:56rem;padding:1.5rem 1rem 3rem;font:1rem/1.5 system-ui,sans-serif;
color:var(--ink);background:var(--paper)}
h1{margin:0;font-size:1.75rem;line-height:1.2;overflow-wrap:anywhere}
h2{margin:2.25rem 0 .5rem;font-size:1.2rem}
p{margin:.5rem 0}
.soft,dt,figcaption{color:var(--soft)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(11.5rem,1fr));gap:.75rem;margin:1.25rem 0 0}
.facts div{padding:.6rem .8rem;border-radius:.4rem;background:var(--panel)}
dl{margin:0}dt{font-size:.85rem}dd{margin:0;overflow-wrap:anywhere}
.facts dd{font-size:1.2rem;font-weight:600}.facts small{display:block;font-size:.85rem;font-weight:400;line-height:1.3}
.pairs{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.25rem;align-items:baseline}
.scroll{overflow:auto;max-height:34rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .9rem .3rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{font-weight:600;white-space:nowrap}.number{text-align:right}td:not(.number){min-width:5rem;overflow-wrap:anywhere}
figure{margin:0}svg{display:block;max-width:100%;height:auto}.narrow{display:none}
pre{overflow:auto;padding:.8rem;border-radius:.4rem;background:var(--panel);font:.85rem/1.45 ui-monospace,monospace}
details{margin-top:.75rem}summary{cursor:pointer}
@media (max-width:640px){.wide{display:none}.narrow{display:block}}
@media print{.wide{display:block}.narrow{display:none}.scroll{max-height:none}body{max-width:none}}
</style>"""


def write_report(folder: Path) -> Path:
    """Write RUN/report.html from RUN/summary.json, metrics.jsonl and config.toml: one page that works offline."""
    run = Run.read(Path(folder))
    first = [str(run.summary["first_metric"])] if run.summary.get("first_metric") else []
    wide = curves(run.lines, metrics=first, width=864, height=660)
    narrow = curves(run.lines, metrics=first, width=360, height=600)
    caption = f"<figcaption>{_QUICK}</figcaption>" if run.summary.get("quick_validation") else ""
    events = [f"<li>step {line.step:,}: {escape(line.text)}</li>" for line in run.lines if isinstance(line, EventLine)]
    engines = "\n".join(map(str, listed(run.summary.get("engines"))))
    environment = run.said("created", "recurra_version", "torch_version", "device", "threads", "seed")
    pieces = [
        f"<h1>{escape(run.name)}</h1>",
        *(f'<p class="soft">{escape(text)}</p>' for _, text in run.said("description")),
        f'<dl class="facts">{"".join(facts)}</dl>' if (facts := list(_facts(run))) else "",
        _section("Data", _html(data_table(run, whole_path=True))),
        _section(
            "Learning curves",
            f'<figure><div class="wide">{wide}</div><div class="narrow">{narrow}</div>{caption}</figure>'
            if run.lines
            else "",
        ),
        _section("Scores", _html(run.scores())),
        *(_section(title, _html(table)) for title, table in run.tables().items()),
        _section("What happened", f"<ul>{''.join(events)}</ul>" if events else ""),
        _section("Settings", _folded("config.toml", run.config)),
        _section("Environment", _pairs(environment) + _folded("Engines", engines)),
    ]
    title = f"<title>{escape(run.name)}: training report</title>"
    page = f'<!doctype html>\n<html lang="en">\n<head>\n{_HEAD}\n{title}\n</head>\n<body>\n<main>\n'
    return _write(run.folder / "report.html", page + "\n".join(filter(None, pieces)) + "\n</main>\n</body>\n</html>\n")


def write_card(folder: Path) -> Path:
    """Write RUN/card.md: what the model is, what it is for, how it was made, how good it is and how to use it."""
    run = Run.read(Path(folder))
    task, words = str(run.summary.get("task", "")), purpose(run)
    trained = run.said("steps", "epochs", "seconds", "stopped", "seed", "device", "recurra_version", "torch_version")
    scores, data = run.scores(), data_table(run, whole_path=False)
    files = {row[0]: f" on {_plain(row[1])}" for row in data.rows if row[1]}
    measured = files.get(scores.columns[-1], " on the data named above")
    limits = [f"The scores above were measured{measured}; on data of another kind the model may do worse."]
    if scores.columns[1:] == ["valid"]:
        limits.append("The step to keep was chosen by these validation scores, so they flatter the model a little.")
    elif not scores.rows:
        limits = ["No scores were measured: how good the model is, is not known."]
    limits.append("The model repeats what its training data says, right or wrong.")
    use = "\n".join(commands(run, {row[0]: row[1] for row in data.rows}))
    what = [
        f"A recurrent model that {words.does} (task `{task}`)." if words.does else f"A model of {_plain(task)}.",
        *(f"The model: {_plain(text)}." for _, text in run.said("description")),
        f"It has {in_words(run.summary['parameters'])} parameters." if "parameters" in run.summary else "",
    ]
    parts = {
        "What it is": "\n\n".join(filter(None, what if task else what[1:])),
        "Intended use": f"Inputs like those it was trained on, {words.alike}."
        + (f" There it {words.does}; for anything else it was not made." if words.does else ""),
        "Data": _markdown(data),
        "How it was trained": "\n".join(f"- {key}: {_plain(value)}" for key, value in trained),
        "Scores": _markdown(scores),
        "Limits": "\n".join(f"- {limit}" for limit in limits),
        "How to use it": f"```sh\n{use}\n```\n\n```python\n{python(run)}\n```",
    }
    text = "\n\n".join([f"# {_plain(run.name)}", *(f"## {title}\n\n{part}" for title, part in parts.items() if part)])
    return _write(run.folder / "card.md", text + "\n")


def _facts(run: Run) -> Iterable[str]:
    summary, first = run.summary, str(run.summary.get("first_metric"))
    best = within(summary, "best")
    score = within(best, "scores").get(first)
    epochs = f"{in_words(summary['epochs'])} epochs" if "epochs" in summary else ""
    facts = [
        (f"Best {first}", score, f"at step {in_words(best['step'])}" if "step" in best else ""),
        ("Task", summary.get("task"), ""),
        ("Parameters", summary.get("parameters"), ""),
        ("Steps", summary.get("steps"), epochs),
        *(("Time", value, str(summary.get("stopped", ""))) for _, value in run.said("seconds")),
    ]
    for name, value, more in facts:
        if value is not None:
            small = f" <small>{escape(more)}</small>" if more else ""
            yield f"<div><dt>{escape(name)}</dt><dd>{escape(in_words(value))}{small}</dd></div>"


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>" if content else ""


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>" if text.strip() else ""


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return f'<dl class="pairs">{rows}</dl>' if rows else ""


def _html(table: Table) -> str:
    if not table.rows:
        return ""
    is_number = [
        all(isinstance(cell, int | float | None) for row in table.rows for cell in row[i : i + 1])
        for i in range(max(map(len, [table.columns, *table.rows])))
    ]

    def row(cells: Sequence[object], tag: str) -> str:
        classes = [' class="number"' if number else "" for number in is_number]
        pairs = itertools.zip_longest(cells, classes, fillvalue="")
        return f"<tr>{''.join(f'<{tag}{look}>{escape(in_cell(cell))}</{tag.split()[0]}>' for cell, look in pairs)}</tr>"

    head, body = row(table.columns, 'th scope="col"'), "\n".join(row(cells, "td") for cells in table.rows)
    return f'<div class="scroll"><table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'


def _markdown(table: Table) -> str:
    rows = [
        table.columns,
        ["---"] * len(table.columns),
        *([_plain(in_cell(cell)) for cell in row] for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) if table.rows else ""


def _plain(text: object) -> str:
    r"""Text that Markdown shows as it is.

    >>> _plain("<b>|*a*\n")
    '&lt;b&gt;\\|\\*a\\*'
    """
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", escape(" ".join(str(text).split()), quote=False))


def _write(path: Path, text: str) -> Path:
    """Write a file whole or not at all: a reader never sees half of it."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise DataError(f"{path} cannot be written: {error.strerror}.") from error
    return path
