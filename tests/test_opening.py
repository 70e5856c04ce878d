"""Devices, sockets and named pipes in the place of a file are refused at once; what a shell hands over is read."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from recurra.cli import main
from recurra.data.files import lines
from recurra.data.images import read_image
from recurra.errors import ConfigError, DataError
from recurra.opening import open_file
from recurra.settings import read_toml
from recurra.text.json_file import read_json

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")

OLD = Path(__file__).parent / "old_runs" / "0.1" / "tagging"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe.txt"
    os.mkfifo(path)
    return path


@pytest.fixture
def socket_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # a socket's name may have 107 characters
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket.txt")
    return tmp_path / "socket.txt"


def test_a_named_pipe_is_refused_without_waiting_for_a_writer(pipe: Path) -> None:
    with pytest.raises(DataError, match=r"pipe\.txt' cannot be read: it is a named pipe, not a file"):
        list(lines(pipe))
    with pytest.raises(DataError, match=r"here: '.*pipe\.txt' cannot be read: it is a named pipe, not a file"):
        read_image(str(pipe), "here")
    with pytest.raises(ConfigError, match=r"the config file .*pipe\.txt cannot be read: it is a named pipe"):
        read_toml(pipe)
    with pytest.raises(DataError, match=r"pipe\.txt cannot be read: it is a named pipe, not a file"):
        read_json(pipe)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null"])
def test_a_device_is_refused(device: str) -> None:
    with pytest.raises(DataError, match=f"'{device}' cannot be read: it is a device, not a file. Give a regular file"):
        list(lines(device))
    with pytest.raises(ConfigError, match=f"{device} cannot be read: it is a device, not a file"):
        read_toml(device)


def test_a_socket_and_a_folder_are_refused(socket_file: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"socket\.txt' cannot be opened"):
        list(lines(socket_file))
    with pytest.raises(DataError, match="is a folder; name a file in it"):
        list(lines(tmp_path))
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_toml(tmp_path)


def test_a_config_file_of_many_megabytes_is_not_read_to_its_end(tmp_path: Path) -> None:
    with open(tmp_path / "config.toml", "wb") as file:
        file.truncate(1 << 34)  # a file of holes, which takes no room
    with pytest.raises(ConfigError, match=r"is larger than 1,048,576 bytes, so it is not a config file"):
        read_toml(tmp_path / "config.toml")


def test_a_pipe_that_was_handed_over_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"one\ntwo\n")
    os.close(writing)
    with open_file(f"/dev/fd/{reading}") as file:
        assert file.read() == b"one\ntwo\n"
    os.close(reading)


@pytest.mark.parametrize("cache", ["true", "false"])
def test_training_does_not_take_a_pipe(
    cache: str, tmp_path: Path, pipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for given in (str(pipe), "/dev/zero"):
        command = ["train", "classification", "--train", given, "--out", str(tmp_path / "run")]
        assert main([*command, "--set", f"data.cache={cache}", "--set", "data.format=text"]) == 2
        assert "is a pipe or a device, but training reads its files several times" in capsys.readouterr().err


def test_predict_reads_what_a_shell_hands_over(tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    command = f"{sys.executable} -m recurra predict run <(cat data/inputs.txt)"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path / "old", capture_output=True, text=True, check=True, timeout=60
    )
    assert len(done.stdout.splitlines()) == len((tmp_path / "old/data/inputs.txt").read_text().splitlines())
