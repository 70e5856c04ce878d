"""The command line: one function per command, each a few lines that call the library.

Nothing here imports torch until a command needs it, so that --help and --version answer at once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import recurra
from recurra.errors import ConfigError, RecurraError, is_lack_of_memory
from recurra.text.visible import without_controls

if TYPE_CHECKING:
    from recurra.analysis.catalogue import WrapperEntry
    from recurra.cells import Spec


LARGEST = 20_000
MOST_NUMBERS = 10**9
"""Limits on what the catalogue and the benchmark will allocate."""

COUNTS = ("count", "characters", "unknown")
"""Scores that are whole numbers."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. 0: done; 2: the user's mistake, said in one sentence; 130: stopped by Ctrl-C."""
    # A user's own cell is found in the current folder, but never in place of an installed module.
    if "" not in sys.path:
        sys.path.append("")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without σ shows a ? in its place
    options = parsed(arguments)
    command: Callable[[argparse.Namespace], None] = options.command
    try:
        command(options)
        sys.stdout.flush()
    except RecurraError as error:
        said = "\n".join(without_controls(line) for line in f"recurra: {error}".replace("\t", " ").split("\n"))
        print(said, file=sys.stderr)  # what is quoted of a file may be made to clear a screen
        return 2
    except KeyboardInterrupt as stop:
        print(f"\nrecurra: {str(stop) or 'stopped.'}", file=sys.stderr)
        return 130
    except (MemoryError, RuntimeError) as error:
        if not is_lack_of_memory(error):
            raise
        print(
            "recurra: the memory does not suffice. Long examples need most of it: leave them out, as data.max_length "
            "does for pairs, or make training.batch_tokens or the model smaller. A run goes on with --resume.",
            file=sys.stderr,
        )
        return 2
    except BrokenPipeError:
        # The reader of a pipe, such as head, has seen enough; what Python flushes at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"recurra: the output cannot be written ({error}).", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    return 0


def cells(options: argparse.Namespace) -> None:
    """The catalogue, or one cell in full."""
    from recurra.analysis import catalogue

    for size in (options.input, options.hidden):
        if size > LARGEST:
            raise ConfigError(f"--input and --hidden can be {LARGEST:,} at most, but one is {size:,}.")
    wrappers = catalogue.wrapper_entries()
    for wrapper in wrappers:
        if wrapper.name == options.name:
            print(json.dumps(wrapper._asdict(), default=plain) if options.json else wrapper_in_full(wrapper))
            return
    if options.name is not None and options.plan:
        print(catalogue.plan_of(spec(options.name), options.input, options.hidden))
        return
    if options.name is not None:
        entry = catalogue.entry(spec(options.name), options.input, options.hidden)
        print(json.dumps(entry._asdict(), default=plain) if options.json else in_full(entry, options))
        return
    entries = catalogue.entries(options.input, options.hidden)
    if options.json:
        everything = {"cells": [e._asdict() for e in entries], "wrappers": [w._asdict() for w in wrappers]}
        print(json.dumps(everything, default=plain))
        return
    elman = next(entry.parameters for entry in entries if entry.name == "elman")
    for entry in entries:
        runs = ", ".join(name for name, reason in entry.engines.items() if reason is None)
        print(f"{entry.name}\n    {entry.summary}\n")
        print(indented(entry.equations, 8))
        print(f"\n    {entry.parameters:,} parameters ({entry.parameters / elman:.2f} × elman); engines: {runs}\n")
    for wrapper in wrappers:
        print(f"wrapper {wrapper.name}\n    {wrapper.summary}\n")
        print(indented(wrapper.equations, 8) + "\n")
    print(
        f"Parameters are for input {options.input} and hidden {options.hidden}. `recurra cells NAME` shows one in full."
    )


def in_full(entry: object, options: argparse.Namespace) -> str:
    """One entry of the catalogue with options, states and the word of every engine."""
    from recurra.analysis.catalogue import Entry

    assert isinstance(entry, Entry)
    shown = [f"{name} = {toml(value)}" for name, value in entry.options.items()]
    engines = [f"{name}: {'runs it' if reason is None else reason}" for name, reason in entry.engines.items()]
    return "\n\n".join(
        part
        for part in (
            f"{entry.name}: {entry.summary}",
            indented(entry.equations, 4),
            entry.notes,
            "States: " + ", ".join(entry.state),
            f"Parameters at input {options.input}, hidden {options.hidden}: {entry.parameters:,}",
            "Options, with their defaults:\n" + indented("\n".join(shown), 4) if shown else "",
            "Engines, fastest first:\n" + indented("\n".join(engines), 4),
        )
        if part
    )


def wrapper_in_full(wrapper: WrapperEntry) -> str:
    """A wrapper with its options and how it is put on."""
    shown = [f"{name} = {toml(value)}" for name, value in wrapper.options.items()]
    usage = f'cell = {{name = "lstm", wrap = [{{name = "{wrapper.name}", rate = 0.1}}]}}'
    parts = [f"wrapper {wrapper.name}: {wrapper.summary}", indented(wrapper.equations, 4), wrapper.notes]
    return "\n\n".join([*parts, "Options, with their defaults:\n" + indented("\n".join(shown), 4), usage])


def bench(options: argparse.Namespace) -> None:
    """Speed of cells and engines on this machine."""
    import torch

    from recurra.analysis import speed
    from recurra.cells import Cell
    from recurra.engines import ENGINES
    from recurra.named import catalogue, choose

    if options.threads is not None:
        most = os.cpu_count() or 1
        if not 1 <= options.threads <= most:
            raise ConfigError(f"--threads must be at least 1 and at most {most} here, but is {options.threads}.")
        torch.set_num_threads(options.threads)
    if not 0 < options.seconds < math.inf:
        raise ConfigError(f"--seconds must be a number above 0, but is {options.seconds}.")
    shapes = [speed.Shape.parse(text) for text in options.shapes] or speed.DEFAULT_SHAPES
    for shape in shapes:
        if max(shape) > LARGEST or shape.B * shape.T * max(shape.I, shape.H) > MOST_NUMBERS:
            raise ConfigError(f"the shape {shape} is more than this command will hold in memory.")
    try:
        if options.device not in ("cpu", "cuda"):
            raise RuntimeError("it must be cpu or cuda")
        torch.zeros(1, device=options.device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"--device '{options.device}' cannot be used: {str(error).splitlines()[0]}") from error
    known = [engine.name for engine in ENGINES]
    timings = speed.measure(
        [spec(text) for text in options.cells] or catalogue(Cell),
        shapes,
        engines=[choose(known, name, "--engines") for name in options.engines] or known,
        backward=not options.forward,
        device=options.device,
        seconds=options.seconds,
    )
    if options.json:
        for timing in timings:
            print(json.dumps({**timing._asdict(), "shape": str(timing.shape)}), flush=True)
        return
    what = "forward" if options.forward else "forward + backward"
    print(f"{what}, float32, {options.device}, {torch.get_num_threads()} thread(s), torch {torch.__version__}")
    print(
        "/ LSTM: time over torch.nn.LSTM's of the same rows x steps x input x hidden; / loop: over the loop engine's;"
    )
    print("ragged: with rows of half to full length, over the same with full rows\n")
    print(f"{'cell':18}{'engine':9}{'shape':18}{'ms':>9}{'/ LSTM':>8}{'/ loop':>8}{'ragged':>8}")
    for timing in timings:
        start = f"{timing.cell:18}{timing.engine:9}{timing.shape!s:18}"
        if timing.milliseconds is not None:
            ratios = f"{timing.to_lstm:8.2f}{timing.to_loop:8.2f}{timing.ragged:8.2f}"
            print(f"{start}{timing.milliseconds:9.2f}{ratios}", flush=True)
        elif options.explain:
            print(f"{start}  refused: {timing.refusal}", flush=True)
    if not options.explain:
        print("\nAn engine that is missing in a row refused the cell; --explain gives the reasons.")


def train(options: argparse.Namespace) -> None:
    """A new run, or one to go on with."""
    from recurra import runs
    from recurra.training.progress import progress

    shown = progress(sys.stderr, quiet=options.quiet)
    if options.resume:
        given = [
            name for name in ("train", "valid", "test", "out", "seeds", "dry_run", "start") if getattr(options, name)
        ]
        if given:
            raise ConfigError(f"--resume goes on with a run as it was begun; leave --{given[0].replace('_', '-')} out.")
        runs.resume(Path(options.what), shown, overrides=options.set)
        print(runs.told(Path(options.what)))
        return
    if options.seeds is not None and options.seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, but is {options.seeds}.")
    on_the_line = {name: getattr(options, name) for name in ("train", "valid", "test", "format", "columns")}
    this = runs.setup(options.what, given=on_the_line, overrides=options.set)
    if options.dry_run:
        print(runs.rehearsed(this, shown))
        return
    folder = Path(options.out or runs.free_name(this))
    start_from = Path(options.start) if options.start else None
    if options.seeds and options.seeds > 1:
        print(runs.several(this, folder, options.seeds, shown, start_from=start_from))
        return
    runs.begin(this, folder, shown, start_from=start_from)
    print(runs.told(folder))


def evaluate(options: argparse.Namespace) -> None:
    """Scores of a run on a file with answers."""
    from recurra.training.trained import load

    scores = load(options.run, device=options.device).with_settings(options.set).evaluate(options.data)
    if options.json:
        finite = {name: value for name, value in scores.values.items() if math.isfinite(value)}
        print(json.dumps({name: int(value) if name in COUNTS else value for name, value in finite.items()}))
        return
    for name, value in scores.values.items():
        if math.isnan(value):  # nothing to measure it on, such as unknown words
            continue
        shown = f"{value:,.6g}" if name == "seconds" else f"{value:,.0f}" if name in COUNTS else f"{value:.4f}"
        print(f"{name:20} {shown}")
    for title, table in scores.tables.items() if options.tables else ():
        print(f"\n{title}\n{table.text()}")
    if scores.tables and not options.tables:
        print(f"\n--tables shows more: {', '.join(scores.tables)}.")


def compare(options: argparse.Namespace) -> None:
    """Runs side by side on the same data."""
    from recurra.analysis import comparison, comparison_page

    found = comparison.compare(options.runs, options.data, settings=options.set, device=options.device)
    if options.out is not None:
        comparison_page.write(found, Path(options.out))
    print(json.dumps(found.json(), ensure_ascii=False) if options.json else comparison_page.as_text(found))


def predict(options: argparse.Namespace) -> None:
    """One answer a line, in the order of the input."""
    from recurra.data.files import lines
    from recurra.training.trained import load

    if options.best is not None and not options.json:
        raise ConfigError(f"--best {options.best} lists other answers beside the best, which --json shows: add --json.")
    model = load(options.run, device=options.device).with_settings(options.set)
    model = model.searching(search=options.search, width=options.width, best=options.best)
    file = None if options.file in (None, "-") else options.file
    text = (line for _, line in (lines(file) if file is not None else standard_input()))
    is_talk = file is None and sys.stdin.isatty()
    with contextlib.nullcontext() if options.alignments is None else opened_to_write(options.alignments) as links:
        for answer in model.predict_file(file, text, detail=options.json or links is not None, at_once=is_talk):
            if links is not None:
                from recurra.analysis.alignment import Alignment, pharaoh

                is_silent = not answer.output and answer.alignment is None
                print("" if is_silent else pharaoh(Alignment.of(answer)), file=links, flush=is_talk)
            if options.json:
                found = {"input": answer.input, "output": answer.output, "score": round(answer.score, 6)}
                whole = {**found, **answer.detail, "line": answer.line}
                print(json.dumps(whole, ensure_ascii=False, default=listed), flush=is_talk)
            else:
                print(answer.output, flush=is_talk)


def explain(options: argparse.Namespace) -> None:
    """What a model did with one input."""
    from recurra.analysis import explaining
    from recurra.training.trained import load

    if options.out is not None:
        explaining.check_ending(Path(options.out))
    model = load(options.run, device=options.device).with_settings(options.set)
    found = explaining.explain(
        model,
        options.input,
        show=options.show,
        layer=options.layer,
        direction=options.direction,
        best=options.best,
    )
    if options.out is not None:
        found.write(Path(options.out))
    print(json.dumps(found.json(), ensure_ascii=False) if options.json else found.text)


def gradients(options: argparse.Namespace) -> None:
    """How gradients flow through time."""
    from recurra import runs
    from recurra.analysis import examined, gradient_page
    from recurra.named import catalogue
    from recurra.tasks.task import Task
    from recurra.training.trained import load

    if options.out is not None:
        gradient_page.check_ending(Path(options.out))
    if options.steps < 2:
        raise ConfigError(f"--steps must be at least 2, but is {options.steps}.")
    what = options.what
    if what.endswith(".toml") or Path(what).is_file() or what in catalogue(Task):
        this = runs.setup(what, overrides=options.set)
        found = examined.gradients_before_training(
            this.kind, this.settings, options.data, title=f"{what}, untrained", steps=options.steps
        )
    elif options.set:
        raise ConfigError(f"a trained model keeps its settings: --set {options.set[0]} is for a config file.")
    else:
        found = examined.gradients_of_run(load(Path(what)), options.data, steps=options.steps)
    if options.out is not None:
        gradient_page.write(found, Path(options.out))
    print(json.dumps(found.json(), ensure_ascii=False) if options.json else gradient_page.as_text(found))


def opened_to_write(path: str) -> TextIO:
    """A file to write lines to, or a ConfigError that says why it cannot be."""
    try:
        return open(path, "w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from error


def lab(options: argparse.Namespace) -> None:
    """Cells compared on one problem."""
    from recurra.analysis import lab as laboratory

    if options.out is not None:
        laboratory.check_ending(Path(options.out))
    found = laboratory.compare_cells(
        options.problem,
        laboratory.USUAL if options.cells is None else laboratory.cells_of(options.cells),
        length=options.length,
        hidden=options.hidden,
        seconds=options.seconds,
        updates=options.updates,
        seed=options.seed,
        told=None if options.json else lambda line: print(line, file=sys.stderr, flush=True),
    )
    if options.out is not None:
        laboratory.write(found, Path(options.out))
    print(json.dumps(found.json(), ensure_ascii=False) if options.json else laboratory.as_text(found))


def generate(options: argparse.Namespace) -> None:
    """Texts that go on from a prompt, or a continuation for each line of a file."""
    from recurra.generation import writer_of
    from recurra.training.trained import load

    if options.prompts is not None:
        given = [f"--{name}" for name in ("prompt", "count", "until") if getattr(options, name) is not None]
        if given:
            raise ConfigError(
                f"--prompts gives one continuation for each line, to the line's end: leave {given[0]} out."
            )
    writer = writer_of(
        load(options.run, device=options.device),
        seed=options.seed,
        length=options.length,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        until=options.until if options.prompts is None else "\n",
        allow_unknown=options.allow_unknown,
    )
    if options.prompts is not None:
        is_talk = options.prompts == "-" and sys.stdin.isatty()
        lines = numbered(options.prompts)
        for number, found in writer.continued(lines, where=options.prompts, at_once=is_talk):
            shown = json.dumps({**found._asdict(), "line": number}, ensure_ascii=False) if options.json else found.text
            print(shown, flush=is_talk)
        return
    prompt, count = options.prompt or "", 1 if options.count is None else options.count
    if count == 1 and not options.json and sys.stdout.isatty():
        for piece in writer.pieces(prompt):
            print(piece, end="", flush=True)
        print()
        return
    for number, found in enumerate(writer.texts([prompt], count=count)):
        if options.json:
            print(json.dumps(found._asdict(), ensure_ascii=False))
        else:
            print((writer.between if number else "") + found.whole)


def numbered(file: str) -> Iterator[tuple[int, str]]:
    """The lines of a file, or for - of standard input, with their numbers."""
    from recurra.data.files import lines

    return lines(file) if file != "-" else standard_input()


def standard_input() -> Iterator[tuple[int, str]]:
    """The lines of standard input with their numbers; what is no text is refused as it is in a file."""
    from recurra.data.files import decoded

    if sys.stdin.isatty() or not hasattr(sys.stdin, "buffer"):  # a terminal has an encoding of its own
        return enumerate((line.rstrip("\r\n") for line in sys.stdin), 1)
    return decoded("standard input", (raw.removesuffix(b"\n") for raw in sys.stdin.buffer))


def serve(options: argparse.Namespace) -> None:
    """The page and its JSON API."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"serving needs {error.name}: pip install 'recurra[serve]'.") from error
    from recurra.runtime.server import serve

    serve(options.runs, port=options.port, device=options.device, said=lambda line: print(line, flush=True))


def info(options: argparse.Namespace) -> None:
    """What a run is, how it was trained and what it reached."""
    from recurra import runs

    if options.draw is not None:
        from recurra.analysis.unrolled import draw
        from recurra.training.trained import load_task

        draw(load_task(Path(options.run)), Path(options.draw))
    print(json.dumps(runs.summary_of(Path(options.run))) if options.json else runs.told(Path(options.run)))


def check(options: argparse.Namespace) -> None:
    """What is in some files, what is odd about it and which tasks it can serve."""
    from recurra.data.check import check as checked
    from recurra.named import catalogue
    from recurra.tasks.task import Task

    report = checked(options.data, format=options.format, columns=options.columns, valid=options.valid)
    known = catalogue(Task)
    report = report._replace(tasks=[service for service in report.tasks if service.task in known])
    print(json.dumps(report.json(), ensure_ascii=False) if options.json else report.text())


def config(options: argparse.Namespace) -> None:
    """All settings of a task with their defaults."""
    from recurra import runs
    from recurra.settings import toml_text

    print(toml_text(runs.setup(options.task, overrides=options.set).settings, about=True), end="")


def score(options: argparse.Namespace) -> None:
    """Metrics without a model."""
    from recurra.analysis.scoring import score_files
    from recurra.analysis.text_scoring import holds_pairs, score_texts
    from recurra.named import choose

    gold, predicted, column = options.gold, options.predicted, options.column
    if options.task is not None:
        choose(("tagging", "classification", "seq2seq"), options.task, "--task")
    if options.task == "seq2seq" or (options.task is None and column is None and holds_pairs(gold)):
        tokenize = options.tokenize or "13a"
        found = score_texts(gold, predicted, column=column, tokenize=tokenize, lowercase=options.lowercase)
        if "ter" not in found:
            why = "it needs pip install 'recurra[metrics]', and texts of 200 words at most"
            print(f"ter is left out: {why}.", file=sys.stderr)
    elif options.tokenize or options.lowercase:
        raise ConfigError("--tokenize and --lowercase are for texts: add --task seq2seq.")
    else:
        found = score_files(gold, predicted, column=column)
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:20} {value:.4f}" if isinstance(value, float) else f"{name:20} {value:,}")


def demo(_: argparse.Namespace) -> None:
    """The tour."""
    from recurra.demo import tour

    tour()


def spec(text: str) -> Spec:
    """A cell as typed: a name, or a table as a config file has it, such as '{name = "gru", reset = "after"}'."""
    if not text.startswith("{"):
        return text
    try:
        table: dict[str, Any] = tomllib.loads(f"cell = {text}")["cell"]
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the cell {text} is not a table as TOML writes it: {error}.") from error
    return table


def toml(value: object) -> str:
    """A default as a config file would write it."""
    return "(required)" if value is ... else json.dumps(value, default=plain)


def plain(value: object) -> object:
    """What JSON has no word for: a required option is null, anything else its text."""
    return None if value is ... else str(value)


def listed(array: Any) -> object:
    """An array as lists, to six places."""
    return array.round(6).tolist()


def indented(text: str, width: int) -> str:
    return "\n".join(" " * width + line if line else "" for line in text.splitlines())


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options as typed; predict's FILE may come after them too, which argparse lets only what is required do."""
    top = parser()
    options, left = top.parse_known_args(arguments)
    if options.command is predict and options.file is None and len(left) == 1 and not left[0].startswith("-"):
        options.file, left = left[0], []
    if left:
        top.error(f"unrecognized arguments: {' '.join(left)}")
    return options


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = argparse.ArgumentParser(prog="recurra", description="Recurrent sequence models: every cell, exact and fast.")
    top.add_argument("--version", action="version", version=f"recurra {recurra.__version__}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(command: Callable[[argparse.Namespace], None], summary: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(command.__name__, help=summary, description=summary[0].upper() + summary[1:] + ".")
        sub.set_defaults(command=command)
        return sub

    add(demo, "the tour: two models learn to say English words, with attention and without, about a minute each")

    sub = add(train, "train a model: from a task's name and files, or from a config file; or go on with a run")
    sub.add_argument(
        "what",
        help="tagging, classification, language_model, forecasting, seq2seq, vec2seq; config.toml; with --resume a run",
    )
    for name, about in (("train", "learn from"), ("valid", "decide when to stop"), ("test", "score once at the end")):
        sub.add_argument(f"--{name}", nargs="+", metavar="FILE", help=f"file(s) to {about}")
    sub.add_argument(
        "--format", help="conllu, conll, tsv, csv, jsonl, parquet, npz, fasttext or text (by the extension)"
    )
    sub.add_argument("--columns", nargs="+", metavar="ROLE", help="roles of the columns of a table")
    sub.add_argument("--out", metavar="RUN", help="folder for the run (runs/TASK-1, -2, …)")
    sub.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="change a setting")
    sub.add_argument("--resume", action="store_true", help="go on with the run from its last checkpoint")
    sub.add_argument("--from", dest="start", metavar="RUN", help="start from another run's weights")
    sub.add_argument("--seeds", type=int, metavar="N", help="train with N seeds; mean and spread of the scores")
    sub.add_argument(
        "--dry-run", action="store_true", help="show shapes, parameters, memory and batches; train nothing"
    )
    sub.add_argument("--quiet", action="store_true", help="no progress")

    sub = add(evaluate, "scores of a run on files with answers")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("data", metavar="DATA", nargs="+")
    sub.add_argument("--set", action="append", default=[], metavar="EVALUATION.KEY=VALUE", help="score otherwise")
    sub.add_argument("--tables", action="store_true", help="also per tag, per span type, …")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(compare, "runs side by side on the same data: scores with intervals, differences, scores by length")
    sub.add_argument("runs", metavar="RUN", nargs="+")
    sub.add_argument("data", metavar="DATA")
    sub.add_argument("--set", action="append", default=[], metavar="EVALUATION.KEY=VALUE", help="score otherwise")
    sub.add_argument("--out", metavar="FILE", help="write a page (.html), or the scores by length (.svg, .png)")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(predict, "one prediction per input line, in order")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("file", metavar="FILE", nargs="?", help="lines of text, or a format of training data; - for stdin")
    sub.add_argument("--search", metavar="NAME", help="beam, greedy, sampling, … (as the run's decoding says)")
    sub.add_argument("--width", type=int, metavar="N", help="hypotheses that a beam keeps")
    sub.add_argument("--best", type=int, metavar="N", help="so many answers for each line, listed by --json")
    sub.add_argument("--set", action="append", default=[], metavar="DECODING.KEY=VALUE", help="answer otherwise")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    sub.add_argument("--json", action="store_true", help="one JSON object a line, with tokens and probabilities")
    sub.add_argument(
        "--alignments", metavar="FILE", help="seq2seq: links as Pharaoh writes them, a line for each answer"
    )

    sub = add(explain, "what a model did with one input: attention, probabilities, saliency, search, gates")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("input", metavar="INPUT", help="as predict takes it: a line, a picture's path; or FILE:LINE")
    sub.add_argument("--out", metavar="FILE", help="write a page of all there is (.html), or a picture (.svg, .png)")
    sub.add_argument("--show", metavar="WHAT", help="one of attention, probabilities, saliency, tree and gates")
    sub.add_argument("--layer", type=int, metavar="N", help="whose gates, from 1 (the last)")
    sub.add_argument("--direction", choices=["forward", "backward"], help="whose gates (forward)")
    sub.add_argument("--best", type=int, default=1, metavar="N", help="the N-th best answer (1)")
    sub.add_argument("--set", action="append", default=[], metavar="DECODING.KEY=VALUE", help="answer otherwise")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    sub.add_argument("--json", action="store_true", help="one JSON object of numbers and nothing else")

    sub = add(gradients, "how gradients flow through time: Jacobians, gates, a verdict, advice; of a run or a config")
    sub.add_argument("what", metavar="RUN|CONFIG", help="a run; or a config file, whose model has learned nothing yet")
    sub.add_argument("data", metavar="DATA", nargs="?", help="a file with answers, or one input (the validation data)")
    sub.add_argument("--steps", type=int, default=50, metavar="N", help="so many steps back at most (50)")
    sub.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="change a config's setting"
    )
    sub.add_argument("--out", metavar="FILE", help="write a page (.html) or a picture (.svg, .png)")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(lab, "cells compared on a problem that needs memory: learning curves under one budget")
    sub.add_argument("problem", metavar="PROBLEM", help="adding or copy")
    sub.add_argument("--cells", metavar="LIST", help="names with commas between, or a TOML list (elman,gru,lstm)")
    sub.add_argument("--length", type=int, default=100, metavar="T", help="steps to remember over (100)")
    sub.add_argument("--hidden", type=int, default=64, metavar="N", help="size of each cell (64)")
    sub.add_argument("--seconds", type=float, default=30.0, metavar="S", help="for each cell (30)")
    sub.add_argument("--updates", type=int, metavar="N", help="for each cell, in place of seconds")
    sub.add_argument("--seed", type=int, default=0, metavar="N", help="of weights and sequences (0)")
    sub.add_argument("--out", metavar="FILE", help="write a page (.html) or a picture (.svg, .png)")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(
        generate, "texts that a language model writes on from a prompt, or that vec2seq writes of a vector or picture"
    )
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("--prompt", metavar="TEXT", help="what to go on from (the beginning of a line), or to write of")
    sub.add_argument("--prompts", metavar="FILE", help="one continuation for each line, to the line's end; - for stdin")
    sub.add_argument("--count", type=int, metavar="N", help="how many texts (1)")
    sub.add_argument("--seed", type=int, default=1, metavar="N", help="the same seed gives the same texts (1)")
    sub.add_argument(
        "--length", type=int, metavar="N", help="tokens of a text, at most (as the run's decoding says: 500)"
    )
    sub.add_argument("--temperature", type=float, help="below 1 safer, above 1 bolder, 0 the most probable (1)")
    sub.add_argument("--top-k", type=int, metavar="K", help="draw from the K most probable tokens (all)")
    sub.add_argument("--top-p", type=float, metavar="P", help="draw from the fewest tokens with probability P (all)")
    sub.add_argument("--until", metavar="TEXT", help="end before this text")
    sub.add_argument("--allow-unknown", action="store_true", help="read and write <unk> too")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    sub.add_argument("--json", action="store_true", help="one JSON object a line, with tokens and log-probability")

    sub = add(serve, "a page in the browser that shows what models do, and its JSON API, on this machine alone")
    sub.add_argument("runs", metavar="RUN", nargs="+", help="runs, or folders of runs")
    sub.add_argument("--port", type=int, default=8642, metavar="N", help="of 127.0.0.1; 0 takes a free one (8642)")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")

    sub = add(info, "what a run is, how it was trained and what it reached")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("--draw", metavar="FILE", help="its layers and directions over time, as a picture (.svg, .png)")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(check, "what is in files, what is odd about it, and which tasks it can serve")
    sub.add_argument("data", metavar="DATA", nargs="+")
    sub.add_argument("--valid", metavar="FILE", nargs="+", default=[], help="look for rows that are also in DATA")
    sub.add_argument("--format", help="conllu, conll, tsv, csv, jsonl, parquet, npz, fasttext or text")
    sub.add_argument("--columns", nargs="+", metavar="ROLE", help="roles of the columns of a table")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(config, "all settings of a task with their defaults, explained")
    sub.add_argument(
        "task", help="tagging, classification, language_model, forecasting, seq2seq, vec2seq; or a config file"
    )
    sub.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="change a setting")

    sub = add(score, "metrics of predictions, without a model")
    sub.add_argument("gold", metavar="GOLD")
    sub.add_argument("predicted", metavar="PREDICTED")
    sub.add_argument("--column", help="which column of both files (upos or tags); of texts, which one of GOLD (target)")
    sub.add_argument("--task", help="seq2seq: the answers are texts (known by itself where GOLD has source and target)")
    sub.add_argument("--tokenize", metavar="NAME", help="how BLEU cuts texts: 13a, none, char, intl, … (13a)")
    sub.add_argument("--lowercase", action="store_true", help="BLEU and chrF do not see capitals")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(cells, "the catalogue of cells with their equations; or one of them in full")
    sub.add_argument("name", nargs="?", help='lstm; \'{name = "gru", reset = "after"}\'; my.module:MyCell')
    sub.add_argument("--input", type=int, default=128, metavar="N", help="input size for the counts (128)")
    sub.add_argument("--hidden", type=int, default=256, metavar="N", help="hidden size for the counts (256)")
    sub.add_argument(
        "--plan", action="store_true", help="how the planned engine cuts its step: products and row passes"
    )
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(bench, "speed of cells and engines on this machine, beside torch.nn.LSTM")
    sub.add_argument("--cells", nargs="+", default=[], metavar="NAME", help="which cells (all); as in `recurra cells`")
    sub.add_argument("--engines", nargs="+", default=[], metavar="NAME", help="which engines (all)")
    sub.add_argument("--shapes", nargs="+", default=[], metavar="BxTxIxH", help="rows x steps x input x hidden")
    sub.add_argument("--forward", action="store_true", help="inference alone, without gradients")
    sub.add_argument("--threads", type=int, metavar="N", help="threads for torch")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    sub.add_argument("--seconds", type=float, default=2.0, help="at most so long for each figure (2)")
    sub.add_argument("--explain", action="store_true", help="say why an engine was refused")
    sub.add_argument("--json", action="store_true", help="one JSON object a line and nothing else")
    return top
