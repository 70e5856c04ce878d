"""Where Triton is installed and does not work: 'auto' goes on without its kernels, and says why.

What fails is Triton's: a stand-in for it is installed here, whose kernels can be made and not launched, as where the C
compiler for its launcher is missing. Recurra takes it for the interpreter, so that no GPU is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from recurra.errors import EngineError
from recurra.products import triton_here
from recurra.products.triton_here import KernelsError, gave_up, is_of_triton, kernels_for, why_no_kernels
from tests.forked import Ended, Forks, forks

TRITON = """
import os
from types import ModuleType, SimpleNamespace
import sys

knobs = SimpleNamespace(runtime=SimpleNamespace(interpret=True))
language = ModuleType("triton.language")
language.__getattr__ = lambda name: int
sys.modules["triton.language"] = language

class Kernel:
    def __init__(self, function):
        self.name = function.__name__

    def __getitem__(self, grid):
        return self.launched

    def launched(self, *given, **options):
        if self.name == "write_doubled" and os.environ["LAUNCHES"] == "the trial":
            given[1].copy_(2 * given[0])
            return
        raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable.\\nMore lines.")

def jit(function=None, **options):
    return Kernel if function is None else Kernel(function)

def next_power_of_2(n):
    return 1 << (n - 1).bit_length()
"""

SCRIPT = """
import json, os, sys, warnings
import torch
from torch.nn import functional
from recurra import EngineError, Padded, Recurrent
from recurra.cells import Cell
from recurra.engines import choice
from recurra.engines.engine import DirectedCell
from recurra.engines.graph import Graph
from recurra.engines.planning import PLANS
from recurra.products import triton_here
from recurra.products.cross_entropy import Options, cost_in_pieces
from recurra.search.continuing import Scored, continued, by_torch, FAILURES
from tests.wirings.decoding import Decoding, assert_alike

torch.manual_seed(0)
x = Padded(torch.randn(3, 5, 4), torch.tensor([5, 2, 4]))
gru, linear = Recurrent("gru", 4, 6), Recurrent("min_gru", 4, 6)
ind = Recurrent({"name": "ind_rnn", "activation": "tanh"}, 4, 6)
decoding = Decoding("feeding", "gru", "dot")
for module in (gru, linear, ind, decoding.wiring):  # torch, which traces them, is to know of no Triton
    for cell in module.modules():
        if isinstance(cell, Cell):
            PLANS.plan(DirectedCell(cell, cell.start(3, x.values), cell.fixed(3, x.values)), x.values)
sys.path.insert(0, os.environ["STAND_IN"])
triton_here.has_triton.cache_clear(); triton_here.is_interpreted.cache_clear()
choice.ENGINES = (Graph(), choice.LOOP)
choice.by_cost = lambda work: list(choice.ENGINES)  # as on a GPU
found = {}
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")

    def answers(rnn, engine):
        rnn.engine = engine
        outputs = rnn(x)[0].values
        return [outputs, *torch.autograd.grad(outputs.square().sum(), list(rnn.parameters()))]

    for _ in range(2):
        for rnn, engine in ((gru, "auto"), (linear, "scan"), (ind, "newton")):
            for ours, theirs in zip(answers(rnn, engine), answers(rnn, "loop")):
                torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    try:
        answers(gru, "graph")
    except EngineError as error:
        found["by name"] = str(error)
    assert_alike(decoding.answers(), decoding.answers("loop"), 1e-6)
    h, W, b = torch.randn(6, 5, requires_grad=True), torch.randn(7, 5), torch.randn(7)
    y = torch.tensor([0, 6, 2, 2, 1, 3])
    total = cost_in_pieces(h, W, b, y, Options())
    expected = functional.cross_entropy(functional.linear(h, W, b), y, reduction="sum")
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(*(torch.autograd.grad(each, h)[0] for each in (total, expected)))
    beam = Scored(torch.randn(4, 9).log_softmax(1)), None, torch.zeros(2, 2).double(), torch.zeros(9, dtype=torch.bool)
    assert torch.equal(continued(*beam).kept, by_torch(*beam).kept)
found["said"] = [str(each.message) for each in said if str(each.message).startswith("recurra: ")]
found["searches"] = FAILURES
print(json.dumps(found))
"""

MISSING = "Triton failed (RuntimeError: Failed to find C compiler. Please specify via CC environment variable.)"


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    with forks(tmp_path_factory.mktemp("forks")) as found:
        yield found


def run(processes: Forks, folder: Path, launches: str) -> dict[str, Any]:
    package = folder / "triton"
    package.mkdir()
    (package / "__init__.py").write_text(TRITON, "utf-8")
    environment = {"STAND_IN": str(folder), "TRITON_INTERPRET": "1", "LAUNCHES": launches}
    done: Ended = processes.wait(processes.start(SCRIPT, environment))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_where_triton_launches_nothing_no_kernel_is_used_and_all_answers_are_right(
    processes: Forks, tmp_path: Path
) -> None:
    found = run(processes, tmp_path, "nothing")
    assert found["by name"] == (
        f"the engine 'graph' cannot run the cell 'gru': {MISSING}. Use engine = 'auto', which selects the fastest "
        f"engine that supports it."
    )
    assert found["said"] == []  # a training and `recurra bench --explain` say it, and a GPU's first search
    assert found["searches"] == []


def test_where_a_kernel_fails_that_passed_the_trial_each_thing_goes_on_without_its_own_and_says_so_once(
    processes: Forks, tmp_path: Path
) -> None:
    found = run(processes, tmp_path, "the trial")
    assert MISSING in found["by name"]
    things = [
        "the engine 'graph' with the cell 'gru'",
        "the engine 'scan' with the cell 'min_gru'",
        "the engine 'newton' with the cell 'ind_rnn'",
        "the engine 'scan'",
        "the loop of 'Feeding'",
        "the cross entropy",
    ]
    assert found["said"] == [
        *(f"recurra: {thing} runs without its kernels, which is slower: {MISSING}" for thing in things),
        f"recurra: searches run without kernels, which is slower: {MISSING}",
    ]
    assert found["searches"] == [MISSING]


class TritonError(Exception):
    """Named as Triton names its own."""


TritonError.__module__ = "triton.compiler.errors"


def test_errors_of_triton_are_told_from_others() -> None:
    assert is_of_triton(TritonError("no such instruction"))
    assert not is_of_triton(RuntimeError("shapes do not match"))
    assert not is_of_triton(EngineError("a persistent kernel waited"))
    assert not is_of_triton(MemoryError())
    with pytest.raises(ValueError, match="mine"), kernels_for(torch.device("meta"), "this", "a thing"):
        raise ValueError("mine")


def test_what_failed_is_said_in_a_line_and_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FAILED", "TRIED", "SAID"):
        monkeypatch.setattr(triton_here, name, type(getattr(triton_here, name))())
    here = torch.device("cuda", 0)
    with (
        pytest.warns(UserWarning, match="^recurra: a thing runs without its kernels, which is slower: Triton failed"),
        pytest.raises(KernelsError, match=r"^a thing: Triton failed .*no such instruction.* The next try does without"),
        kernels_for(here, "this", "a thing"),
    ):
        raise TritonError("\n  no such instruction\nand many lines")
    assert gave_up(here, "this", "a thing", TritonError("another")) == "Triton failed (TritonError: another)"
    monkeypatch.setattr(triton_here, "has_triton", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    triton_here.TRIED.add(here)
    assert why_no_kernels(here, "this") == "Triton failed (TritonError: no such instruction)"
    assert why_no_kernels(here, "that") is None
    assert why_no_kernels(here) is None


@pytest.mark.parametrize(
    ("capability", "installed", "reason"),
    [
        ((7, 5), True, "Triton needs a GPU of compute capability 8.0 or newer, and this one has 7.5"),
        ((9, 0), False, "Triton, which compiles its kernels, is not installed (pip install triton)"),
    ],
)
def test_a_gpu_that_is_too_old_and_a_missing_triton_are_said(
    capability: tuple[int, int], installed: bool, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(triton_here, "has_triton", lambda: installed)
    assert why_no_kernels(torch.device("cuda", 0)) == reason
