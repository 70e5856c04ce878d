"""A run's answers by its program in C, beside torch: made when torch has worked long enough, used where it is faster.

Recording a model and compiling it take seconds, so they are paid for when torch has worked as long (`PATIENCE`), or
soon where an earlier process has left the program in the cache. A server makes it before it is ready, or beside its
answers. From then on each kind of batch, by how many rows it
has, is given to C and to torch a few times, and then to whichever took less time for an element.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import io
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from recurra.cache import cache_folder
from recurra.data.store import Encoded, Rows
from recurra.engines.c_library import NoCompiler, Unusable, compiler, opened_folder, user
from recurra.errors import RecurraError
from recurra.exporting.joining import difference, recorded_functions, same
from recurra.models.saved import fingerprint
from recurra.predictors.predictor import Predictor
from recurra.programs.in_c import InC
from recurra.programs.program import Program
from recurra.programs.weights import unsealed_content
from recurra.tasks.task import Task
from recurra.training.answering import RECORDING
from recurra.version import __version__

PATIENCE = 3.0
"""Seconds of torch's work after which a model is recorded and compiled, which takes about as long."""

PATIENCE_WITH_CACHE = 0.3
"""The same where the program is in the cache."""

TRIALS = 3
"""Batches of each kind that C and torch are given before the faster is known."""

MARGIN = 1.1
"""C answers where torch takes so many times as long: less may be chance."""

ONE_AT_A_TIME = threading.Lock()
"""Held while a model is recorded; another thread does not wait for it, but answers by torch."""

NOT_OF_A_PROGRAM = ("decoding", "evaluation", "training")
"""Settings on which a program does not depend."""


class Compiled:
    """The program of a model, once it is made; `Trained` with other settings of decoding share it."""

    def __init__(self, model: nn.Module, reason: str | None = None) -> None:
        self.model = model
        self.reason = reason  # why torch answers everything; None: nothing speaks against C so far
        self.running: InC | None = None
        self.seconds = 0.0  # of torch's work
        self.times: dict[int, dict[str, list[float]]] = {}  # of each kind of batch, seconds for an element
        self.is_beside = False  # whether answers go on by torch while the program is made
        self.is_settled = False  # whether one of the two answers everything
        self._was_looked_for = False  # in the cache
        self._stamp: list[tuple[int, int]] = []
        self._predictor: tuple[Task[Any, Any, Any], Predictor[Any]] | None = None

    def outputs(
        self,
        task: Task[Any, Any, Any],
        rows: Sequence[Encoded],
        by_torch: Callable[[], list[Any]],
        *,
        detail: bool = False,
    ) -> list[Any]:
        """Outputs for a batch, by whichever is faster."""
        if self.reason is not None or not rows:
            return by_torch()
        running = self.running if self.is_settled else self._ready(task)
        work = len(rows) * max(1, int(max(task.lengths(Rows.of(rows)))))
        if running is not None and self.faster(len(rows)) == "C":
            began = time.thread_time()
            try:
                found = self._predictor_of(task).outputs(running, rows, detail=detail)
            except RecurraError:
                return by_torch()  # which answers, or says the same of the input
            self._note("C", len(rows), (time.thread_time() - began) / work)
            return found
        began = time.thread_time()
        found = by_torch()
        taken = time.thread_time() - began
        self.seconds += taken
        if running is not None:
            self._note("torch", len(rows), taken / work)
        return found

    def faster(self, rows: int) -> str:
        """Which of the two answers a batch of so many rows."""
        if self.is_settled:
            return "C"
        times = self.times.get(rows.bit_length(), {})
        for way in ("C", "torch"):
            if len(times.get(way, ())) < TRIALS:
                return way
        return "C" if MARGIN * min(times["C"]) <= min(times["torch"]) else "torch"

    def report(self) -> str:
        """What answers, in a sentence."""
        if self.reason is not None:
            return f"torch answers: {self.reason}"
        if self.running is None:
            return f"torch answers: C is compiled after {PATIENCE:g} s of its work, so far {self.seconds:.1f} s"
        kinds = [
            f"{1 << bits >> 1} to {(1 << bits) - 1} rows: {self.faster(1 << bits >> 1)}" for bits in sorted(self.times)
        ]
        return f"C or torch answers, as measured ({'; '.join(kinds) or 'nothing yet'})"

    def _note(self, way: str, rows: int, seconds: float) -> None:
        kept = self.times.setdefault(rows.bit_length(), {}).setdefault(way, [])
        if len(kept) < TRIALS:
            kept.append(seconds)

    def _predictor_of(self, task: Task[Any, Any, Any]) -> Predictor[Any]:
        known = self._predictor
        if known is None or known[0] is not task:
            self._predictor = known = (task, task.predictor())
        return known[1]

    def _ready(self, task: Task[Any, Any, Any]) -> InC | None:
        """The program, if it is there or is made now."""
        if self.running is not None:
            if self._stamp == stamp_of(self.model):
                return self.running
            self.running, self.seconds, self.times, self._was_looked_for = None, 0.0, {}, False  # weights have changed
        is_due = self.seconds >= PATIENCE
        if not (is_due or (self.seconds >= PATIENCE_WITH_CACHE and not self._was_looked_for)):
            return None
        if not ONE_AT_A_TIME.acquire(blocking=False):
            return None
        if self.is_beside:
            threading.Thread(target=self._find, args=(task, is_due), name=RECORDING, daemon=True).start()
            return None
        self._find(task, is_due)
        return self.running

    def prepare(self, task: Task[Any, Any, Any]) -> None:
        """Make the program now, however little torch has worked."""
        if self.reason is None and self.running is None:
            ONE_AT_A_TIME.acquire()
            self._find(task, True)

    def settle(self, task: Task[Any, Any, Any]) -> None:
        """Let C answer everything from now on, or torch where there is no program: answers do not depend on time."""
        if not self.is_settled:
            self.prepare(task)
            self.is_settled = True

    def knows(self, rows: int) -> bool:
        """Whether it is known which of the two is faster for so many rows."""
        times = self.times.get(rows.bit_length(), {})
        return self.running is None or all(len(times.get(way, ())) >= TRIALS for way in ("C", "torch"))

    def _find(self, task: Task[Any, Any, Any], may_make: bool) -> None:
        """Look for the program in the cache, or make it; ONE_AT_A_TIME is held, and is released here."""
        try:
            self.reason = why_torch(task, self.model)
            if self.reason is None:
                self._was_looked_for, self._stamp = True, stamp_of(self.model)
                file = file_of(task, self.model)
                found = loaded(file, self.model)
                if found is None and may_make:
                    found = made(file, task.predictor(), self.model)
                self.running = found
        except NoCompiler as error:
            self.reason = str(error)
        except Exception as error:  # whatever torch cannot record, it can still compute
            self.reason = f"the model cannot be recorded ({type(error).__name__}: {error})"
        finally:
            ONE_AT_A_TIME.release()


def why_torch(task: Task[Any, Any, Any], model: nn.Module) -> str | None:
    """Why torch answers for a model, as far as it is known without recording it; None: nothing speaks against C."""
    engine = getattr(vars(task.settings).get("model"), "engine", "auto")
    if engine != "auto":
        return f"model.engine = '{engine}' was asked for"
    if any(tensor.device.type != "cpu" for tensor in model.parameters()):
        return "the model is not on the CPU"
    if any(tensor.is_floating_point() and tensor.dtype != torch.float32 for tensor in model.parameters()):
        return "its weights are not float32"
    if compiler() is None:
        return "no C compiler was found"
    try:
        task.predictor()
    except RecurraError as error:
        return str(error).rstrip(".")
    return None


def stamp_of(model: nn.Module) -> list[tuple[int, int]]:
    """What changes when weights do."""
    return [(tensor.data_ptr(), tensor._version) for tensor in model.parameters()]


# The program and what it keeps of the weights


def made(file: Path | None, predictor: Predictor[Any], model: nn.Module) -> InC:
    """A model recorded, compiled, compared with torch, and put into the cache."""
    network = copy.deepcopy(model).eval()
    functions = predictor.functions(network)
    program, weights = recorded_functions(network, functions)
    running = InC(program, unsealed_content(program, weights), is_sealed=False)
    for function in functions:
        difference(running, function, network)
    if file is not None:
        keep(file, program, weights, network)
    return running


def keep(file: Path, program: Program, weights: Mapping[str, NDArray[Any]], network: nn.Module) -> None:
    """Write a program, and of its weights those that are not the model's; one can do without a cache."""
    known = arrays_of(network)
    own = {f"w{name}": each for name, each in weights.items() if name not in known or not same(known[name], each)}
    written = io.BytesIO()
    text = np.frombuffer(program.to_json().encode("utf-8"), np.uint8)
    np.savez(written, program=text, **own)  # type: ignore[arg-type]  # names are not options of savez
    content = written.getvalue()
    aside = file.with_name(f"{file.name}.{secrets.token_hex(4)}.part")
    try:
        file.parent.parent.mkdir(parents=True, exist_ok=True)
        os.close(opened_folder(file.parent))
        aside.write_bytes(hashlib.sha256(content).digest() + content)
        os.replace(aside, file)
    except (OSError, Unusable):
        aside.unlink(missing_ok=True)


def loaded(file: Path | None, model: nn.Module) -> InC | None:
    """The program that lies in the cache with the weights of a model; None where there is none, or a broken one."""
    if file is None or not file.is_file():
        return None
    try:
        os.close(opened_folder(file.parent))
        whole = file.read_bytes()
        digest, content = whole[:32], whole[32:]
        if digest != hashlib.sha256(content).digest():
            return None
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            program = Program.from_json(found["program"].tobytes().decode("utf-8"))
            weights = {**arrays_of(model), **{name[1:]: found[name] for name in found.files if name != "program"}}
        return InC(program, unsealed_content(program, weights), is_sealed=False)
    except (OSError, Unusable, ValueError, KeyError, RecurraError):
        return None


def arrays_of(model: nn.Module) -> dict[str, NDArray[Any]]:
    return {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}


def file_of(task: Task[Any, Any, Any], model: nn.Module) -> Path | None:
    """Where the program of a model lies in the cache; None for code from outside recurra, which may change."""
    kinds = {type(task).__module__, *(type(module).__module__ for module in model.modules())}
    if not all(kind.startswith(("recurra.", "torch.")) for kind in kinds):
        return None
    settings = {
        field.name: repr(getattr(task.settings, field.name))
        for field in dataclasses.fields(task.settings)
        if field.name not in NOT_OF_A_PROGRAM
    }
    text = json.dumps([__version__, torch.__version__, code_mark(), task.name, settings, fingerprint(model)])
    return cache_folder() / f"programs-{user()}" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.npz"


def code_mark() -> list[tuple[str, int, int]]:
    """Every file of recurra with its size and time: other code may record another program."""
    folder = Path(__file__).parents[1]
    files = sorted(folder.rglob("*.py"))
    return [(str(file.relative_to(folder)), (found := file.stat()).st_size, found.st_mtime_ns) for file in files]
