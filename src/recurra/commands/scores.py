"""How good answers are, with a run or without, and what is in files."""

from __future__ import annotations

import argparse
import csv
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from recurra.errors import ConfigError
from recurra.text.json_file import json_text

if TYPE_CHECKING:
    from recurra.views.table import Table

COUNTS = ("count", "characters", "unknown")
"""Scores that are whole numbers."""


def evaluate(options: argparse.Namespace) -> None:
    """Scores of a run on a file with answers."""
    from recurra.sharded import Sharded, Which

    if options.out is not None:
        from recurra.training import explaining

        if not options.free_running:
            raise ConfigError("--out draws what --free-running measures: add --free-running, or leave --out out.")
        explaining.check_ending(Path(options.out))
    if options.anomalies is not None and Path(options.anomalies).suffix not in (".csv", ".jsonl"):
        raise ConfigError(f"--anomalies {options.anomalies}: the file must end in .csv or .jsonl.")
    which = Which(options.run, options.device, options.trust, tuple(options.set), history=options.history)
    model = which.load_to_score()
    if options.anomalies is not None:
        print(write_anomalies(model.anomalies(options.data), Path(options.anomalies)), file=sys.stderr)
    exposure = model.free_running(options.data) if options.free_running else None
    if exposure is not None and options.out is not None:
        exposure.view().write(options.out)
    with Sharded(which, model, options.processes or 1) as sharded:
        by = None if options.processes is None else sharded.outputs
        scores = model.evaluate(options.data, say=lambda said: print(said, file=sys.stderr), by=by)
    if options.json:
        finite = {name: value for name, value in scores.values.items() if math.isfinite(value)}
        found = {name: int(value) if name in COUNTS else value for name, value in finite.items()}
        print(json_text(found if exposure is None else {**found, "free_running": exposure.json()}))
        return
    width = max(20, *map(len, scores.values))
    for name, value in scores.values.items():
        if math.isnan(value):  # nothing to measure it on, such as unknown words
            continue
        shown = f"{value:,.6g}" if name == "seconds" else f"{value:,.0f}" if name in COUNTS else f"{value:.4f}"
        print(f"{name:{width}} {shown}")
    for note in scores.notes:
        print(note, file=sys.stderr)
    if exposure is not None:
        print("\n" + "\n".join(f"{name:23} {value:.4f}" for name, value in exposure.values.items()))
        print(f"\n{exposure.view().text()}")
    for title, table in scores.tables.items() if options.tables else ():
        print(f"\n{title}\n{table.text()}")
    if scores.tables and not options.tables:
        print(f"\n--tables shows more: {', '.join(scores.tables)}.")


RARE = 0.001
"""The tail probability below which a value is called improbable."""


def write_anomalies(found: Table, path: Path) -> str:
    """Write a row for each value, and say how many were improbable."""
    try:
        with open(path, "w", encoding="utf-8", newline="") as file:
            if path.suffix == ".csv":
                rows = ([f"{cell:.9g}" if isinstance(cell, float) else cell for cell in row] for row in found.rows)
                csv.writer(file).writerows([list(found.columns), *rows])
            else:
                file.writelines(json_text(dict(zip(found.columns, row, strict=True))) + "\n" for row in found.rows)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from error
    rare = sum(row[-1] < RARE for row in found.rows)
    return f"{len(found.rows):,} values written to {path}; {rare:,} have a tail probability below {RARE:g}"


def compare(options: argparse.Namespace) -> None:
    """Runs side by side on the same data; of a folder alone, all runs in it by what they keep about themselves."""
    *runs, data = options.runs
    if not runs:
        list_runs(options, Path(data))
        return
    from recurra.reports import comparison, comparison_page

    found = comparison.compare(runs, data, settings=options.set, device=options.device, trust=options.trust)
    if options.out is not None:
        comparison_page.write(found, Path(options.out))
    print(json_text(found.json()) if options.json else comparison_page.as_text(found))


def list_runs(options: argparse.Namespace, folder: Path) -> None:
    """The runs of a folder in a table."""
    from recurra.overview import overview
    from recurra.reports import overview_page

    if options.set:
        raise ConfigError(
            f"--set {options.set[0]}: without data nothing is scored. Leave it out, or name runs and data."
        )
    found = overview(folder)
    if options.out is not None:
        overview_page.write(found, Path(options.out))
    print(json_text(found.json()) if options.json else overview_page.as_text(found))


def score(options: argparse.Namespace) -> None:
    """Metrics without a model."""
    from recurra.named import choose
    from recurra.reports.scoring import score_files
    from recurra.reports.text_scoring import holds_pairs, score_texts
    from recurra.reports.treebank_scoring import are_treebanks, as_json, as_table, score_treebanks

    gold, predicted, column = options.gold, options.predicted, options.column
    if options.task is not None:
        choose(("tagging", "classification", "seq2seq"), options.task, "--task")
    is_plain = column is None and not options.tokenize and not options.lowercase
    if options.task in (None, "tagging") and is_plain and are_treebanks(gold, predicted):
        agreed = score_treebanks(gold, predicted)
        print(json_text(as_json(agreed)) if options.json else as_table(agreed).text())
        return
    if options.task == "seq2seq" or (options.task is None and column is None and holds_pairs(gold)):
        tokenize = options.tokenize or "13a"
        found = score_texts(gold, predicted, column=column, tokenize=tokenize, lowercase=options.lowercase)
        if "ter" not in found:
            why = "it needs pip install 'recurra[metrics]', and texts of 200 words at most"
            print(f"TER is not computed: {why}.", file=sys.stderr)
    elif options.tokenize or options.lowercase:
        raise ConfigError("--tokenize and --lowercase apply only to texts: add --task seq2seq.")
    else:
        found = score_files(gold, predicted, column=column)
    if options.json:
        print(json_text(found))
        return
    for name, value in found.items():
        print(f"{name:20} {value:.4f}" if isinstance(value, float) else f"{name:20} {value:,}")


def check(options: argparse.Namespace) -> None:
    """What is in some files, what is odd about it and which tasks it can serve; of a run, whether it is damaged."""
    from recurra.runs import check_run, is_run

    if len(options.data) == 1 and is_run(Path(options.data[0])):
        print(check_run(Path(options.data[0]), accept=options.accept))
        return
    if options.accept:
        raise ConfigError("--accept is for the folder of a run: recurra check RUN --accept.")
    from recurra.data.check import check as checked
    from recurra.named import catalogue
    from recurra.tasks.task import Task

    report = checked(options.data, format=options.format, columns=options.columns, valid=options.valid)
    known = catalogue(Task)
    report = report._replace(tasks=[service for service in report.tasks if service.task in known])
    print(json_text(report.json()) if options.json else report.text())
