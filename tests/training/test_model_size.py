"""Sizes that no machine can hold are refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from recurra.cli import main
from recurra.errors import ConfigError
from recurra.training import model_size
from recurra.training.model_size import bounded_parameters, physical_memory

DATA = Path(__file__).parent.parent / "old_runs" / "0.1" / "tagging" / "data" / "train.conll"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.threads=100000", "training.threads must be at most"),
        ("model.layers=1000000000", "model.layers must be at most 1,000, but is 1,000,000,000"),
        ("model.hidden=1000000000000", "out of memory"),
        ("model.embedding=1000000000000", "out of memory"),
    ],
)
def test_a_size_that_would_end_the_process_is_refused(
    setting: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "tagging", "--train", str(DATA), "--out", str(tmp_path / "run"), "--set", "data.cache=false"]
    assert main([*command, "--set", "training.steps=1", "--set", setting]) == 2
    assert message in capsys.readouterr().err


def test_weights_that_exceed_the_memory_are_refused_with_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_size, "physical_memory", lambda: 10 * 2**30)
    with bounded_parameters():
        nn.Linear(100, 100)
    message = r"take more than 16 GiB, but this machine has 10 GiB of memory\. Reduce the sizes of the model"
    with torch.device("meta"), bounded_parameters():
        nn.Linear(1 << 16, 1 << 16)  # of another device, whose memory is its own
    # One number that stands for all: no test machine need have the memory.
    weight = nn.Parameter(torch.zeros(1, 1).expand(1 << 16, 1 << 16))
    with pytest.raises(ConfigError, match=message), bounded_parameters():
        nn.Module().register_parameter("weight", weight)
    nn.Linear(10, 10)  # nothing is counted any more


def test_the_memory_of_this_machine_is_known() -> None:
    found = physical_memory()
    assert found is None or found > 1 << 28
