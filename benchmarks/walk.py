"""How far a reader walks: functions and files of the package that one command, or one step, touches.

    python benchmarks/walk.py

Counts distinct functions of recurra that are called (sys.setprofile), in all threads of this process: by
`recurra train tagging` to its end, by `recurra predict`, and by one training step of sequence to sequence.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import recurra

PACKAGE = os.path.dirname(recurra.__file__)
FEW = ["training.steps=3", "data.cache=false", "model.hidden=8", "model.embedding=4"]


def touched(work: Callable[[], object]) -> tuple[int, int]:
    """How many functions of the package, in how many files, are called while something is done."""
    seen: set[tuple[str, str, int]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # Bodies of modules and classes, comprehensions and lambdas are no functions that a reader would look up.
        is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        if event == "call" and is_function and code.co_filename.startswith(PACKAGE):
            seen.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len(seen), len({file for file, _, _ in seen})


def main() -> None:
    from recurra.cli import main as command

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tags.conll").write_text("the\tDET\ncat\tNOUN\nsleeps\tVERB\n\n" * 8)
        (folder / "pairs.tsv").write_text("cat\tK AE T\ndog\tD AO G\n" * 8)
        (folder / "in.txt").write_text("the cat\n")
        few = [part for each in FEW for part in ("--set", each)]
        train = ["train", "tagging", "--train", f"{folder}/tags.conll", "--valid", f"{folder}/tags.conll"]
        rows = {
            "recurra train tagging": touched(lambda: command([*train, "--out", f"{folder}/run", *few])),
            "recurra predict": touched(lambda: command(["predict", f"{folder}/run", f"{folder}/in.txt"])),
        }
        settings = {"training.steps": 1, "data.cache": False, "model.hidden": 8, "model.embedding": 4}
        with contextlib.redirect_stderr(io.StringIO()):
            model = recurra.train("seq2seq", train=f"{folder}/pairs.tsv", out=folder / "pairs", settings=settings)
        encoded = [model.task.encode(example) for example in model.task.read([f"{folder}/pairs.tsv"])]
        model.model.train()

        def step() -> None:
            model.task.loss(model.model, model.task.batch(encoded)).total.backward()

        step()
        rows["one step of sequence to sequence"] = touched(step)
    print(f"{'':36} functions  files")
    for what, (functions, files) in rows.items():
        print(f"{what:36} {functions:9} {files:6}")


if __name__ == "__main__":
    main()
