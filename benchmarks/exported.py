"""Exported models beside their runs: time of a first answer in a fresh process, size, and answers a second.

    python benchmarks/exported.py RUN [RUN …] [--inputs FILE] [--rows 1,32] [--count 64] [--search beam,greedy]

Each RUN is exported to a temporary folder. A fresh process is timed from its start to its end, with one answer between
(import, load, predict), in turn with one that only imports numpy: the least and the median of --times. Before that, one
answer writes the bytecode of recurra's modules and the compiled program, as the first answer on a machine does; without
bytecode (PYTHONDONTWRITEBYTECODE) every process would compile all modules anew, so this is not handed on. Answers a
second are those of `predict` on one thread, the best of three; of a language model, texts of 1,000 tokens are drawn.
Times are CPU seconds of the process, which other programs on the machine disturb less than those of a clock. "Torch" is
the run kept from compiled code, "run" as it answers by itself once it has compiled it. In brackets beside C is its
share of the floor: the time that the products of matrices take, each as long as its multiplications take at the rate of
a loop that does nothing else, or as it takes to read its weights from the caches; both rates are measured in the same
run (exported_translation.py), and the products are those of NumPy, which also computes rows that have ended.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from exported_translation import rates

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

FRESH = """
import recurra
print(recurra.load({folder!r}).predict({inputs!r})[0].output)
"""


def seconds_of(*codes: str, times: int) -> list[list[float]]:
    """CPU seconds of fresh processes, one for each code in turn, so many times, sorted."""
    found: list[list[float]] = [[] for _ in codes]
    for number in range(times + 1):
        for code, seconds in zip(codes, found, strict=True):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if number:  # the first writes bytecode and compiles
                seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return [sorted(each) for each in found]


def rate(work: Callable[[], object], count: int, times: int = 3) -> float:
    """How many a second."""
    work()
    found = []
    for _ in range(times):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return count / min(found)


def one_by_one(model: Any, inputs: list[Any], rows: int, **asked: Any) -> None:
    for first in range(0, len(inputs), rows):
        model.predict(inputs[first : first + rows], **asked)


def floor(model: Any, work: Callable[[Any], object], multiplied: float, read: float) -> float:
    """The seconds that the products of matrices take at least, of some work of a model that NumPy runs."""
    found = [0.0]
    running = model.running
    computed = running.computed

    def counted(op: Any, operands: Any, shape: Any, sizes: Any) -> Any:
        if op.kind == "matmul":
            weights = operands[1].nbytes if isinstance(op.operands[1], str) else 0
            found[0] += max(math.prod(shape) * operands[0].shape[-1] / multiplied, weights / read)
        return computed(op, operands, shape, sizes)

    running.computed = counted
    try:
        work(model)
    finally:
        del running.computed
    return found[0]


def drawn(model: Any) -> None:
    import recurra

    recurra.generate(model, "", length=1000, seed=1)


def main() -> None:
    import torch

    from recurra.exported import load_exported
    from recurra.exporting.folder import export, sample_inputs
    from recurra.training import compiled
    from recurra.training.trained import load

    multiplied, read = rates()
    print(f"multiplications of float32: {multiplied / 1e9:.0f} G a second; reads of the caches: {read / 1e9:.0f} GB")
    torch.set_num_threads(1)
    compiled.PATIENCE = compiled.PATIENCE_WITH_CACHE = 0.0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--inputs", type=Path, help="inputs, one a line (default: the samples of each run)")
    parser.add_argument("--times", type=int, default=15, help="fresh processes")
    parser.add_argument("--rows", default="1,32", help="inputs that are answered together")
    parser.add_argument("--count", type=int, default=64, help="inputs that are answered")
    parser.add_argument("--search", default="", help="searches that are compared (default: that of the run)")
    options = parser.parse_args()
    for run in options.runs:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "exported"
            report = export(run, folder)
            model = load(run)
            given = options.inputs.read_text("utf-8").splitlines() if options.inputs else sample_inputs(model)
            inputs = (given * options.count)[: options.count]
            fresh = FRESH.format(folder=str(folder), inputs=inputs[:1])
            numpy, first = seconds_of("import numpy", fresh, times=options.times)
            sizes = ", ".join(
                f"{name} {report.bytes[name] / 1e6:.2f} MB" for name in ("weights.bin", "program.json", "model.c")
            )
            print(f"{run}: {sizes}; largest difference {report.largest_error:.1e}")
            for name, at in (("least", 0), ("median", options.times // 2)):
                over = first[at] / numpy[at]
                print(
                    f"  a fresh process with one answer, {name} of {options.times}: {first[at]:.3f} s of CPU, "
                    f"{over:.2f} × import numpy ({numpy[at]:.3f} s)"
                )
            ways: dict[str, Any] = {"torch": model.in_torch(), "C": load_exported(folder, by="c")}
            ways["NumPy"] = load_exported(folder, by="numpy")
            if model.task.name == "language_model":
                texts = {name: rate(partial(drawn, each), 1) for name, each in ways.items() if name != "NumPy"}
                seconds = ", ".join(f"{name} {1 / each:.3f}" for name, each in texts.items())
                over = texts["C"] / texts["torch"]
                least = floor(ways["NumPy"], drawn, multiplied, read)
                print(
                    f"  1,000 tokens drawn, seconds of CPU: {seconds}; C over torch {over:.1f} ×, "
                    f"{least * texts['C']:.0%} of the floor of {least:.3f}"
                )
                continue
            for search in options.search.split(","):
                for rows in map(int, options.rows.split(",")):
                    asked = {"search": search} if search else {}
                    answered = {}
                    for name, each in (*ways.items(), ("run", load(run))):
                        one_by_one(each, inputs, rows, **asked)  # while it is compiled
                        answered[name] = rate(partial(one_by_one, each, inputs, rows, **asked), len(inputs))
                    least = floor(ways["NumPy"], lambda each: one_by_one(each, inputs, rows, **asked), multiplied, read)  # noqa: B023
                    share = answered["C"] * least / len(inputs)
                    found = ", ".join(
                        f"{name} {each:,.0f}{f' ({share:.0%} of the floor)' if name == 'C' else ''}"
                        for name, each in answered.items()
                    )
                    over, own = answered["C"] / answered["torch"], answered["run"] / answered["torch"]
                    print(
                        f"  {search} {rows} at once, answers a second of CPU: {found}; "
                        f"over torch: C {over:.1f} ×, run {own:.1f} ×"
                    )


if __name__ == "__main__":
    main()
