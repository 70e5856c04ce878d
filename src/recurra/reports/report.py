"""A finished run in words, tables and pictures: report.html to look at, card.md to publish with the model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from recurra.manifest import committing
from recurra.reports.purpose import commands, data_table, purpose, python
from recurra.reports.summary import Run, listed, within
from recurra.training.curves import learning_curves, losses_apart
from recurra.training.log import EventLine
from recurra.views.page import page, section, table_in_html, write_whole
from recurra.views.table import Table, in_cell, in_words

_QUICK = (
    "These curves show the faster validation during training, which selected the weights. All other scores were "
    "computed in full after training, with the selected weights."
)


def write_report(folder: Path, *, examples: str = "", script: str = "") -> Path:
    """Write RUN/report.html from RUN/summary.json, metrics.jsonl and config.toml: one page that works offline.

    `examples` is a piece of HTML about a few examples, which needs the script where one is given.
    """
    run = Run.read(Path(folder))
    first = [str(run.summary["first_metric"])] if run.summary.get("first_metric") else []
    curves = learning_curves(run.lines, metrics=first).figure() if run.lines else ""
    apart = losses_apart(run.lines, listed(run.summary.get("training_differs")))
    caption = f'<p class="soft">{_QUICK}</p>' if run.summary.get("quick_validation") else ""
    events = [f"<li>step {line.step:,}: {escape(line.text)}</li>" for line in run.lines if isinstance(line, EventLine)]
    engines = "\n".join(map(str, listed(run.summary.get("engines"))))
    environment = run.said("created", "recurra_version", "torch_version", "device", "threads", "seed")
    pieces = [
        f"<h1>{escape(run.name)}</h1>",
        *(f'<p class="soft">{escape(text)}</p>' for _, text in run.said("description")),
        f'<dl class="facts">{"".join(facts)}</dl>' if (facts := list(_facts(run))) else "",
        section("Data", table_in_html(data_table(run, whole_path=True))),
        section("Learning curves", curves and curves + caption + f'<p class="soft">{escape(apart)}</p>' * bool(apart)),
        section("Scores", table_in_html(run.scores())),
        section("A few validation examples", examples),
        *(section(title, table_in_html(table)) for title, table in run.tables().items()),
        section("What happened", f"<ul>{''.join(events)}</ul>" if events else ""),
        section("Settings", _folded("config.toml", run.config)),
        section("Environment", _pairs(environment) + _folded("Engines", engines)),
    ]
    with committing(run.folder) as new:
        write_whole(new / "report.html", page(f"{run.name}: training report", pieces, script=script))
    return run.folder / "report.html"


def write_card(folder: Path) -> Path:
    """Write RUN/card.md: what the model is, what it is for, how it was made, how good it is and how to use it."""
    run = Run.read(Path(folder))
    task, words = str(run.summary.get("task", "")), purpose(run)
    trained = run.said("steps", "epochs", "seconds", "stopped", "seed", "device", "recurra_version", "torch_version")
    scores, data = run.scores(), data_table(run, whole_path=False)
    files = {row[0]: f" on {_plain(row[1])}" for row in data.rows if row[1]}
    measured = files.get(scores.columns[-1], " on the data named above")
    limits = [f"The scores above were measured{measured}; on other kinds of data the model may be worse."]
    if scores.columns[1:] == ["valid"]:
        limits.append("The best step was selected by these validation scores, so they are slightly optimistic.")
    elif not scores.rows:
        limits = ["No scores were measured, so the quality of the model is not known."]
    limits.append("The model reproduces errors and biases of its training data.")
    use = "\n".join(commands(run, {row[0]: row[1] for row in data.rows}))
    what = [
        f"A model that {_plain(words.does)} (task `{escape(task.replace('`', ''))}`)."
        if words.does
        else f"A model of {_plain(task)}.",
        *(f"The model: {_plain(text)}." for _, text in run.said("description")),
        f"It has {in_words(run.summary['parameters'])} parameters." if "parameters" in run.summary else "",
    ]
    parts = {
        "What it is": "\n\n".join(filter(None, what if task else what[1:])),
        "Intended use": f"Inputs like those it was trained on, {_plain(words.alike)}."
        + (f" There it {_plain(words.does)}; it is not intended for anything else." if words.does else ""),
        "Data": _markdown(data),
        "How it was trained": "\n".join(f"- {key}: {_plain(value)}" for key, value in trained),
        "Scores": _markdown(scores),
        "Limits": "\n".join(f"- {limit}" for limit in limits),
        "How to use it": f"```sh\n{use}\n```\n\n```python\n{python(run)}\n```",
    }
    text = "\n\n".join([f"# {_plain(run.name)}", *(f"## {title}\n\n{part}" for title, part in parts.items() if part)])
    with committing(run.folder) as new:
        write_whole(new / "card.md", text + "\n")
    return run.folder / "card.md"


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


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>" if text.strip() else ""


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return f'<dl class="pairs">{rows}</dl>' if rows else ""


def _markdown(table: Table) -> str:
    rows = [
        [_plain(name) for name in table.columns],
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
