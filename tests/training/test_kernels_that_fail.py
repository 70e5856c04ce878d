"""What a training makes of kernels that gave up, or failed, and of memory that ran out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recurra.engines.graph import WORKSPACES
from recurra.engines.waiting import check_done, failure_flag
from recurra.errors import EngineError
from recurra.models.saved import read_tensors
from recurra.products import triton_here
from recurra.products.triton_here import KernelsError
from recurra.runs import begin
from recurra.search.graphs import graphs_of
from recurra.training.device import slower_without_kernels
from recurra.training.evaluation import loss_of, outputs_of
from recurra.training.giving_back import give_back_recordings
from recurra.training.log import Log
from recurra.training.preparation import HeldOut, prepared
from recurra.training.progress import Silent
from recurra.training.trained import load
from recurra.training.trainer import Trainer
from tests.engines.test_triton_source import plan_of
from tests.search.test_graphs import Chain, found
from tests.training.small import small_setup
from tests.training.test_faults import OWN, Hungry, trained
from tests.training.test_faults import _own_cache as _own_cache

GAVE_UP = "a persistent kernel waited for seconds for its other programs and gave up; its results are wrong"


def test_steps_of_which_a_kernel_gave_up_are_not_saved(tmp_path: Path) -> None:
    begin(small_setup(tmp_path, "training.steps=2"), tmp_path / "run", Silent())
    checkpoint = (tmp_path / "run" / "last" / "checkpoint.safetensors").read_bytes()
    this = small_setup(tmp_path)
    task, store = prepared(this.kind, this.settings, lambda _: None)
    trainer = Trainer(task, store, HeldOut([], []), tmp_path / "run", Silent())
    trainer.position.step = 7
    failure_flag("cpu").fill_(1)
    with Log(tmp_path / "run") as log, pytest.raises(EngineError, match=GAVE_UP):
        trainer.save(log)
    assert (tmp_path / "run" / "last" / "checkpoint.safetensors").read_bytes() == checkpoint
    check_done(torch.device("cpu"))  # it is said once


def test_answers_and_losses_of_which_a_kernel_gave_up_are_not_given(tmp_path: Path) -> None:
    begin(small_setup(tmp_path, "training.steps=2"), tmp_path / "run", Silent())
    run = load(tmp_path / "run")
    this = small_setup(tmp_path)
    task, store = prepared(this.kind, this.settings, lambda _: None)
    model, rows = task.build(), list(task.chosen(store, np.arange(3)))
    for answer in (outputs_of, loss_of):
        failure_flag("cpu").fill_(1)
        with pytest.raises(EngineError, match=GAVE_UP):
            answer(task, model, rows)
    failure_flag("cpu").fill_(1)
    with pytest.raises(EngineError, match=GAVE_UP):
        run.predict(["they run"])
    assert run.predict(["they run"])[0].output


def test_a_step_whose_kernels_fail_is_computed_again_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decoder's way back has no other way than its kernels; the step then begins anew."""
    whole = trained(tmp_path, "whole", Silent())
    plain, calls = Hungry.fixed, [0]

    def failing(self: Hungry, rows: int, like: torch.Tensor) -> Any:
        calls[0] += self.training and torch.is_grad_enabled()
        if calls[0] == 2:
            raise KernelsError("the loop of 'Feeding': Triton failed")
        return plain(self, rows, like)

    monkeypatch.setattr(Hungry, "fixed", failing)
    again = trained(tmp_path, "again", Silent())
    assert calls[0] > 2
    for name, tensor in whole.items():
        assert torch.equal(again[name], tensor), name


def test_kernels_that_fail_again_and_again_end_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> Any:
        raise KernelsError("the loop of 'Feeding': Triton failed")

    monkeypatch.setattr(Hungry, "fixed", failing)
    with pytest.raises(EngineError, match="the loop of 'Feeding': Triton failed"):
        trained(tmp_path, "run", Silent())


def test_before_a_batch_is_halved_recorded_steps_are_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []

    def freeing(*_: object) -> bool:
        given.append(Hungry.most)
        Hungry.most = 10**9
        return len(given) == 1

    whole = trained(tmp_path, "whole", Silent())
    monkeypatch.setattr(Hungry, "most", 8)
    monkeypatch.setattr("recurra.training.trainer.give_back_recordings", freeing)
    freed = trained(tmp_path, "freed", Silent())
    assert given == [8]
    for name, tensor in whole.items():
        assert torch.equal(freed[name], tensor), "no batch was halved"
    assert read_tensors(tmp_path / "freed" / "model.safetensors")
    assert OWN


def test_all_that_was_recorded_is_given_back_and_recorded_anew() -> None:
    cpu, model = torch.device("cpu"), Chain().eval()
    give_back_recordings(cpu, None)
    graphs = graphs_of(model)
    for _ in range(2):
        found(model, graphs)
    WORKSPACES.give_back(WORKSPACES.take(plan_of("lstm"), 4, 10, torch.float32, cpu, is_full=True))
    assert graphs.rooms
    assert WORKSPACES.idle
    assert give_back_recordings(cpu, None)
    assert not graphs.rooms
    assert not WORKSPACES.idle
    assert not give_back_recordings(cpu, None)
    before = graphs.recorded
    found(model, graphs)
    assert graphs.recorded > before


def test_memory_in_use_is_not_given_back() -> None:
    cpu = torch.device("cpu")
    lease = WORKSPACES.take(plan_of("lstm"), 4, 10, torch.float32, cpu, is_full=True)
    WORKSPACES.forget(cpu)
    assert lease.is_valid()
    lease.release()
    assert WORKSPACES.forget(cpu)


def test_a_gpu_without_kernels_is_said_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_here, "has_triton", lambda: False)
    assert slower_without_kernels(torch.device("cuda", 0)) == (
        "training runs without kernels of recurra, which is slower: Triton, which compiles its kernels, is not "
        "installed (pip install triton)"
    )
    assert slower_without_kernels(torch.device("cpu")) is None
