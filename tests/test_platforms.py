"""What other systems do not allow, simulated here: Windows, and a GPU of Apple. Neither was run on the real one."""

from __future__ import annotations

import fcntl
import math
import os
import subprocess
import sys
import types
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

import recurra
from recurra.attention.rotary import rotation
from recurra.cells import LSTM
from recurra.cli import main
from recurra.data.arriving import Arriving
from recurra.engines import c_library
from recurra.engines.choice import by_cost
from recurra.engines.engine import Work
from recurra.errors import CheckpointError, ConfigError
from recurra.manifest import LOCK, locked, sync_folder
from recurra.padding import exact
from recurra.runs import resume
from recurra.training.device import device_of, usable_device
from recurra.training.progress import Silent
from recurra.workers import Crew, cores
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
    for module in ("manifest", "config.trust", "sweeping.journal", "workers", "training.launching", "data.arriving"):
        monkeypatch.setattr(f"recurra.{module}.sys", seen)
    monkeypatch.setattr("select.select", refused_by_windows)
    monkeypatch.setattr(subprocess, "Popen", StartedOnWindows)


def refused_by_windows(*_: object) -> None:
    raise OSError(10038, "An operation was attempted on something that is not a socket")


class StartedOnWindows(subprocess.Popen):  # type: ignore[type-arg]
    """A process that is started with flags of Windows, and with none of what only other systems know."""

    flags: ClassVar[list[int]] = []

    def __init__(self, *arguments: Any, creationflags: int = 0, **options: Any) -> None:
        for name in ("process_group", "start_new_session", "preexec_fn", "user", "group"):
            assert options.get(name) is None, f"Windows has no {name}"
        self.flags.append(creationflags)
        super().__init__(*arguments, **options)


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


@pytest.mark.usefixtures("windows")
def test_workers_are_started_in_a_group_of_their_own_on_windows() -> None:
    StartedOnWindows.flags.clear()
    with Crew(1, partial(partial, max)) as crew:
        assert list(crew.map([[3, 1], [2, 5]])) == [3, 5]
    assert StartedOnWindows.flags == [0x200], "CREATE_NEW_PROCESS_GROUP"
    assert cores() == (os.cpu_count() or 1)


@pytest.mark.usefixtures("windows")
def test_several_processes_are_refused_on_windows_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "tagging", "--train", "none.conllu", "--out", "runs/x", "--processes", "2"]) == 2
    said = capsys.readouterr().err
    assert said == "recurra: --processes needs Linux or macOS: leave it out, and train in one process.\n"


@pytest.mark.usefixtures("windows")
def test_lines_of_a_pipe_are_answered_one_by_one_on_windows() -> None:
    reading, writing = os.pipe()
    waited: list[str] = []
    os.write(writing, "größe\nσ".encode())
    lines = Arriving(reading, lambda: waited.append("for a line"))
    assert not lines.has_arrived(), "it cannot be asked whether more is there"
    assert next(lines) == "größe".encode()
    os.close(writing)
    assert list(lines) == ["σ".encode()]
    assert len(waited) == 3
    os.close(reading)


@pytest.mark.usefixtures("windows")
def test_a_process_of_a_sweep_on_windows_is_known_by_the_age_of_its_file(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    from recurra.sweeping.journal import DEAD_SECONDS, Journal

    mine, other = (Journal(tmp_path, 1, prunes=True) for _ in range(2))
    with mine.at_work(), other.at_work():
        its_file = tmp_path / "workers" / other.me
        assert mine._is_at_work(other.me), "it has touched its file"
        os.utime(its_file, times=(0, its_file.stat().st_mtime - DEAD_SECONDS - 5))
        assert not mine._is_at_work(other.me), "its file grew old, and there are no locks that say more"
    assert list((tmp_path / "workers").iterdir()) == [], "files are closed before they are removed"


@pytest.mark.usefixtures("windows")
def test_a_sweep_goes_on_under_the_restrictions_of_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    for trials in (1, 2):
        found = recurra.sweep(
            "classification",
            {"model.dropout": {"from": 0.0, "to": 0.5}},
            train=ROWS,
            valid="20%",
            out=tmp_path / "sweep",
            trials=trials,
            settings={**FEW, "training.steps": 2},
        )
        assert len(found.trials) == trials
    assert (tmp_path / "sweep" / "best" / "config.toml").exists()
    assert list((tmp_path / "sweep" / "workers").iterdir()) == []


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


def test_angles_of_positions_on_mps_which_has_no_float64_are_computed_on_the_cpu() -> None:
    positions, asked = torch.arange(900, 905), list[str]()

    class OfApple:
        device = types.SimpleNamespace(type="mps")

        def cpu(self) -> torch.Tensor:
            asked.append("cpu")
            return positions

        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"{name} of a tensor on mps")

    there: Any = OfApple()
    found = rotation(there, 6, torch.zeros(1))
    assert asked == ["cpu"]
    assert found.cos.dtype == found.sin.dtype == torch.float32
    wanted = [[math.cos(position * 10000 ** (-pair / 3)) for pair in range(3)] for position in positions.tolist()]
    torch.testing.assert_close(found.cos, torch.tensor(wanted), rtol=0, atol=1e-7)
    on_device = rotation(there, 6, torch.zeros(1, device="meta", dtype=torch.float16))
    assert (on_device.cos.device.type, on_device.cos.dtype) == ("meta", torch.float16)


def test_numbers_of_mps_which_has_no_float64_are_summed_on_the_cpu() -> None:
    class OfApple:
        device = types.SimpleNamespace(type="mps")

        def cpu(self) -> torch.Tensor:
            return torch.ones(1)

    numbers: Any = OfApple()
    assert exact(numbers).dtype == torch.float64
