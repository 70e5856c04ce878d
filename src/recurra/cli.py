"""The command line: one function per command, each a few lines that call the library.

Nothing here imports torch until a command needs it, so that --help and --version answer at once.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import recurra
from recurra.errors import ConfigError, RecurraError

if TYPE_CHECKING:
    from recurra.cells import Spec


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. 0: done; 2: the user's mistake, said in one sentence; 130: stopped by Ctrl-C."""
    # A user's own cell is found in the current folder, but never in place of an installed module.
    if "" not in sys.path:
        sys.path.append("")
    options = parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], None] = options.command
    try:
        command(options)
    except RecurraError as error:
        print(f"recurra: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nrecurra: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of a pipe, such as head, has seen enough; nothing more can be said there.
        sys.stderr.close()
        return 0
    return 0


def cells(options: argparse.Namespace) -> None:
    """The catalogue, or one cell in full."""
    from recurra.analysis import catalogue

    if options.name is not None:
        entry = catalogue.entry(spec(options.name), options.input, options.hidden)
        print(json.dumps(entry._asdict(), default=list) if options.json else in_full(entry, options))
        return
    entries = catalogue.entries(options.input, options.hidden)
    wrappers = catalogue.wrapper_entries()
    if options.json:
        everything = {"cells": [e._asdict() for e in entries], "wrappers": [w._asdict() for w in wrappers]}
        print(json.dumps(everything, default=lambda _: None))
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


def bench(options: argparse.Namespace) -> None:
    """Speed of cells and engines on this machine."""
    import torch

    from recurra.analysis import speed
    from recurra.cells import Cell
    from recurra.engines import ENGINES
    from recurra.named import catalogue, choose

    if options.threads is not None:
        if options.threads < 1:
            raise ConfigError(f"--threads must be at least 1, but is {options.threads}.")
        torch.set_num_threads(options.threads)
    try:
        torch.zeros(1, device=options.device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"--device '{options.device}' cannot be used: {str(error).splitlines()[0]}") from error
    known = [engine.name for engine in ENGINES]
    timings = speed.measure(
        [spec(text) for text in options.cells] or catalogue(Cell),
        [speed.Shape.parse(text) for text in options.shapes] or speed.DEFAULT_SHAPES,
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
    print("ratio: to torch.nn.LSTM of the same rows x steps x input x hidden; ragged: to the same with full rows\n")
    print(f"{'cell':18}{'engine':9}{'shape':18}{'ms':>9}{'ratio':>8}{'ragged':>8}")
    for timing in timings:
        start = f"{timing.cell:18}{timing.engine:9}{timing.shape!s:18}"
        if timing.milliseconds is not None:
            print(f"{start}{timing.milliseconds:9.2f}{timing.to_lstm:8.2f}{timing.ragged:8.2f}", flush=True)
        elif options.explain:
            print(f"{start}  refused: {timing.refusal}", flush=True)
    if not options.explain:
        print("\nAn engine that is missing in a row refused the cell; --explain gives the reasons.")


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
    if value is ...:
        return "(required)"
    if isinstance(value, tuple):
        return json.dumps(list(value))
    return json.dumps(value)


def indented(text: str, width: int) -> str:
    return "\n".join(" " * width + line if line else "" for line in text.splitlines())


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = argparse.ArgumentParser(prog="recurra", description="Recurrent sequence models: every cell, exact and fast.")
    top.add_argument("--version", action="version", version=f"recurra {recurra.__version__}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(command: Callable[[argparse.Namespace], None], summary: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(command.__name__, help=summary, description=summary[0].upper() + summary[1:] + ".")
        sub.set_defaults(command=command)
        return sub

    add(demo, "the tour: three cells learn to remember, in about a minute")

    sub = add(cells, "the catalogue of cells with their equations; or one of them in full")
    sub.add_argument("name", nargs="?", help='lstm; \'{name = "gru", reset = "after"}\'; my.module:MyCell')
    sub.add_argument("--input", type=int, default=128, metavar="N", help="input size for the counts (128)")
    sub.add_argument("--hidden", type=int, default=256, metavar="N", help="hidden size for the counts (256)")
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
