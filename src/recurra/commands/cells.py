"""The catalogue of cells and their speed."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tomllib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recurra.errors import ConfigError
from recurra.text.json_file import json_text

if TYPE_CHECKING:
    from recurra.cells import Spec
    from recurra.reports.catalogue import WrapperEntry
    from recurra.reports.speed import Size

LARGEST = 20_000
MOST_NUMBERS = 10**9
"""Limits on what the catalogue and the benchmark will allocate."""


def cells(options: argparse.Namespace) -> None:
    """The catalogue, or one cell in full."""
    from recurra.reports import catalogue

    for size in (options.input, options.hidden):
        if size > LARGEST:
            raise ConfigError(f"--input and --hidden can be {LARGEST:,} at most, but one is {size:,}.")
    wrappers = catalogue.wrapper_entries()
    for wrapper in wrappers:
        if wrapper.name == options.name:
            print(json_text(wrapper._asdict(), default=plain) if options.json else wrapper_in_full(wrapper))
            return
    if options.name is not None and options.plan:
        print(catalogue.plan_of(spec(options.name), options.input, options.hidden))
        return
    if options.name is not None:
        entry = catalogue.entry(spec(options.name), options.input, options.hidden)
        print(json_text(entry._asdict(), default=plain) if options.json else in_full(entry, options))
        return
    entries = catalogue.entries(options.input, options.hidden)
    if options.json:
        everything = {"cells": [e._asdict() for e in entries], "wrappers": [w._asdict() for w in wrappers]}
        print(json_text(everything, default=plain))
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
    from recurra.reports.catalogue import Entry

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

    from recurra.cells import Cell
    from recurra.engines import ENGINES
    from recurra.named import catalogue, choose
    from recurra.reports import speed
    from recurra.training.device import usable_device

    if options.threads is not None:
        most = os.cpu_count() or 1
        if not 1 <= options.threads <= most:
            raise ConfigError(f"--threads must be at least 1 and at most {most} here, but is {options.threads}.")
        torch.set_num_threads(options.threads)
    if not 0 < options.seconds < math.inf:
        raise ConfigError(f"--seconds must be a number above 0, but is {options.seconds}.")
    shapes = [speed.Size.parse(text) for text in options.shapes]
    for shape in shapes:
        if max(shape) > LARGEST or shape.B * shape.T * max(shape.I, shape.H) > MOST_NUMBERS:
            raise ConfigError(f"the shape {shape} is too large for this command. Use smaller sizes.")
    if options.device not in ("cpu", "cuda"):
        raise ConfigError(f"--device '{options.device}' cannot be used: it must be cpu or cuda.")
    usable_device(options.device, f"--device '{options.device}'")
    known = [engine.name for engine in ENGINES]
    if options.device == "cuda":
        engines = [choose(["auto", *known], name, "--engines") for name in options.engines] or ["auto"]
        bench_on_gpu(options, shapes, engines)
        return
    if options.types:
        raise ConfigError("--types needs --device cuda: on the CPU all is measured in float32.")
    timings = speed.measure(
        [spec(text) for text in options.cells] or catalogue(Cell),
        shapes or speed.DEFAULT_SHAPES,
        engines=[choose(known, name, "--engines") for name in options.engines] or known,
        backward=not options.forward,
        device=options.device,
        seconds=options.seconds,
    )
    if options.json:
        for timing in timings:
            print(json_text({**timing._asdict(), "shape": str(timing.shape)}), flush=True)
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
        print("\nAn engine that is missing in a row does not support the cell; --explain gives the reasons.")


def bench_on_gpu(options: argparse.Namespace, shapes: Sequence[Size], engines: Sequence[str]) -> None:
    """Speed and exactness of cells on the GPU beside torch.nn.LSTM in all types."""
    from recurra.named import choose
    from recurra.reports import speed_on_gpu as speed

    timings = speed.measure(
        [(text, spec(text)) for text in options.cells or speed.DEFAULT_CELLS],
        shapes or speed.DEFAULT_SHAPES,
        engines=engines,
        types=[choose(speed.TYPES, name, "--types") for name in options.types] or ["bf16"],
        backward=not options.forward,
        seconds=min(options.seconds, 0.4),
    )
    if not options.json:
        print("forward" if options.forward else "forward + backward")
        print(speed.heading())
    measured = []
    for timing in timings:
        print(json_text({**timing._asdict(), "shape": str(timing.shape)}) if options.json else speed.line_of(timing))
        sys.stdout.flush()
        if isinstance(timing, speed.OnGPU):
            measured.append(timing)
    if not options.json:
        print("", *speed.summary(measured), sep="\n")


def spec(text: str) -> Spec:
    """A cell as typed: a name, or a table as a config file has it, such as '{name = "gru", reset = "after"}'."""
    if not text.startswith("{"):
        return text
    try:
        table: dict[str, Any] = tomllib.loads(f"cell = {text}")["cell"]
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the cell {text} is not a valid TOML table: {error}.") from error
    return table


def toml(value: object) -> str:
    """A default as a config file would write it."""
    return "(required)" if value is ... else json.dumps(value, default=plain)


def plain(value: object) -> object:
    """What JSON has no word for: a required option is null, anything else its text."""
    return None if value is ... else str(value)


def indented(text: str, width: int) -> str:
    return "\n".join(" " * width + line if line else "" for line in text.splitlines())
