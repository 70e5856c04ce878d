"""What other systems do not allow, simulated here: Windows, and a GPU of Apple. Neither was run on the real one."""

from __future__ import annotations

import fcntl
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

import recurra
from recurra.cells import LSTM
from recurra.engines import c_library
from recurra.engines.choice import by_cost
from recurra.engines.engine import Work
from recurra.errors import CheckpointError, ConfigError
from recurra.manifest import LOCK, locked, sync_folder
from recurra.padding import exact
from recurra.runs import resume
from recurra.training.device import device_of, usable_device
from recurra.training.progress import Silent
from tests.training.test_frames import FEW, ROWS

MISSING = ("fork", "geteuid", "getuid", "killpg", "sched_getaffinity", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY")
"""What Python's os has on Linux and not on Windows, of what is used here."""


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders cannot be opened, files that are open cannot be removed or replaced, and there is no fork and no cc."""
    real_open, real_unlink, real_replace = os.open, os.unlink, os.replace

    def opened(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if isinstance(path, str | os.PathLike) and os.path.isdir(path):
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, flags, *more, **options)

    def is_open(path: Any) -> bool:
        links = Path("/proc/self/fd").iterdir()
        return any(os.path.exists(link) and os.path.samefile(link, path) for link in links if os.path.exists(path))

    def unlinked(path: Any, **options: Any) -> None:
        if is_open(path):
            raise PermissionError(13, "The process cannot access the file because it is being used", str(path))
        real_unlink(path, **options)

    def replaced(source: Any, target: Any, **options: Any) -> None:
        if is_open(source) or is_open(target):
            raise PermissionError(13, "Access is denied", str(target))
        real_replace(source, target, **options)

    def locking(file: int, mode: int, count: int) -> None:
        assert (mode, count) == (2, 1)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OSError(36, "Resource deadlock avoided") from error

    monkeypatch.setenv("USERNAME", "ada")
    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "unlink", unlinked)
    monkeypatch.setattr(os, "remove", unlinked)
    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr("shutil._use_fd_functions", False)  # else it removes folders by opening them
    monkeypatch.setattr(c_library, "compiler", lambda: None)
    monkeypatch.setitem(sys.modules, "msvcrt", types.SimpleNamespace(locking=locking, LK_NBLCK=2))
    monkeypatch.setitem(sys.modules, "fcntl", None)
    for name in MISSING:
        monkeypatch.delattr(os, name, raising=False)
    seen = types.SimpleNamespace(**{**vars(sys), "platform": "win32"})
    for module in ("recurra.manifest", "recurra.config.trust"):
        monkeypatch.setattr(f"{module}.sys", seen)


@pytest.mark.usefixtures("windows")
def test_a_run_is_trained_resumed_and_asked_under_the_restrictions_of_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    rows = [{"text": f"größe {row['text']} σ", "label": row["label"]} for row in ROWS]
    model = recurra.train("classification", train=rows, valid="20%", out=tmp_path / "run", settings=FEW)
    resume(tmp_path / "run", Silent(), overrides=["training.steps=6"])
    again = recurra.load(tmp_path / "run")
    assert again.predict(["größe good"])[0].output in ("pos", "neg")
    assert not (tmp_path / "run" / LOCK).exists()
    assert recurra.train("classification", train=rows, out=model.folder, settings=FEW, overwrite=True).folder


@pytest.mark.usefixtures("windows")
def test_a_folder_is_held_by_one_process_and_free_afterwards_on_windows(tmp_path: Path) -> None:
    sync_folder(tmp_path)  # nothing is to be done there
    with (
        locked(tmp_path / "run", "{} is held"),
        pytest.raises(CheckpointError, match="run is held"),
        locked(tmp_path / "run", "{} is held"),
    ):
        pass
    with locked(tmp_path / "run", "{} is held"):
        assert (tmp_path / "run" / LOCK).exists()
    assert not (tmp_path / "run").exists()


def test_auto_never_takes_the_gpu_of_apple(monkeypatch: pytest.MonkeyPatch) -> None:
    from recurra.config.common import Training

    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of(Training(epochs=1)).type == "cpu"


def test_mps_is_refused_where_there_is_none() -> None:
    with pytest.raises(ConfigError, match="--device 'mps' cannot be used: torch sees no GPU of Apple here"):
        usable_device("mps", "--device 'mps'")


def test_mps_is_said_to_be_untested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: torch.ones(1))
    with pytest.warns(RuntimeWarning, match="the device mps is untested: nobody has run it"):
        assert usable_device("mps", "--device 'mps'").type == "mps"


def test_on_mps_only_the_loop_and_torch_itself_are_chosen_from() -> None:
    found = by_cost(Work(LSTM, 1, 3, 4, 5, 6, 24, 144, 0, True, "mps", torch.float32, False, 1, False))
    assert {engine.name for engine in found} == {"vendor", "loop"}


def test_numbers_of_mps_which_has_no_float64_are_summed_on_the_cpu() -> None:
    class OfApple:
        device = types.SimpleNamespace(type="mps")

        def cpu(self) -> torch.Tensor:
            return torch.ones(1)

    numbers: Any = OfApple()
    assert exact(numbers).dtype == torch.float64
