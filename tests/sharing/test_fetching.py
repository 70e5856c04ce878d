"""Runs at URLs: never fetched unless it is asked for, and then from encrypted or local places alone."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import recurra
from recurra.cli import main
from recurra.errors import CheckpointError, ConfigError
from recurra.manifest import seal
from recurra.training.answering import Answering

OLD = Path(__file__).parents[1] / "old_runs" / "0.1" / "tagging"


def outputs(model: Answering, texts: list[str]) -> list[str]:
    return [answer.output for answer in model.predict(texts)]


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    shutil.copytree(OLD / "run", tmp_path / "run")
    seal(tmp_path / "run")
    return recurra.pack(tmp_path / "run", tmp_path / "tagger.zip").file


@contextmanager
def served(content: bytes) -> Iterator[tuple[str, list[str]]]:
    """A server of this machine: /tagger.zip is the content, /to/URL leads elsewhere; and what was asked of it."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if self.path.startswith("/to/"):
                self.send_response(302)
                self.send_header("Location", self.path.removeprefix("/to/"))
                self.end_headers()
                return
            is_there = self.path == "/tagger.zip"
            self.send_response(200 if is_there else 404)
            self.end_headers()
            self.wfile.write(content if is_there else b"")

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_nothing_is_fetched_before_it_is_asked_for(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(packed.read_bytes()) as (url, asked):
        for each in (f"{url}/tagger.zip", packed.as_uri(), "hf://owner/name"):
            with pytest.raises(ConfigError, match=r"is a URL, and nothing is fetched before you ask for it"):
                recurra.load(each)
            with pytest.raises(ConfigError, match="is a URL"):
                recurra.load([packed.parent / "run", each])
            for command in ("info", "explain", "serve"):
                more = ["--port", "0"] if command == "serve" else ["they run"] if command == "explain" else []
                assert main([command, each, *more]) == 2
                assert f"recurra pull {each} FOLDER" in capsys.readouterr().err
        assert asked == []


def test_a_url_is_fetched_where_it_is_asked_for(packed: Path) -> None:
    right = outputs(recurra.load(packed.parent / "run"), ["they run"])
    with served(packed.read_bytes()) as (url, asked):
        assert outputs(recurra.load(f"{url}/tagger.zip", fetch=True), ["they run"]) == right
        assert asked == ["/tagger.zip"]
    assert outputs(recurra.load(packed.as_uri(), fetch=True), ["they run"]) == right


def test_pull_makes_a_folder_of_what_a_url_holds(
    packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pull", packed.as_uri(), str(tmp_path / "theirs")]) == 0
    assert "are as written, by their SHA-256" in capsys.readouterr().out
    assert (tmp_path / "theirs" / "model.safetensors").read_bytes() == (
        tmp_path / "run" / "model.safetensors"
    ).read_bytes()
    assert main(["pull", packed.as_uri(), str(tmp_path / "theirs")]) == 2
    assert "already exists and is not empty" in capsys.readouterr().err


def test_what_cannot_be_fetched_is_said_with_its_url(tmp_path: Path) -> None:
    with served(b"no archive") as (url, _):
        with pytest.raises(CheckpointError, match=f"{url}/none.zip cannot be fetched: the server answered 404"):
            recurra.pull(f"{url}/none.zip", tmp_path / "out")
        with pytest.raises(CheckpointError, match=f"{url}/tagger.zip is no file that `recurra pack` wrote"):
            recurra.pull(f"{url}/tagger.zip", tmp_path / "out")
    with pytest.raises(CheckpointError, match=f"{url}/tagger.zip cannot be fetched: .*refused"):
        recurra.pull(f"{url}/tagger.zip", tmp_path / "out")
    with pytest.raises(CheckpointError, match="there is no file"):
        recurra.pull((tmp_path / "none.zip").as_uri(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://models.example.org/a.zip", "is not encrypted, so anybody between could change the file: use https"),
        ("ftp://models.example.org/a.zip", "runs are fetched from https://, file:// and hf://, not from ftp://"),
        ("file://elsewhere/a.zip", "the file must lie on this machine: file:///folder/model.zip"),
    ],
)
def test_places_that_are_not_safe_are_refused(url: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        recurra.pull(url, tmp_path / "out")


def test_a_server_cannot_lead_to_a_file_or_to_a_place_without_encryption(packed: Path, tmp_path: Path) -> None:
    with served(packed.read_bytes()) as (url, _):
        for elsewhere in (packed.as_uri(), "http://models.example.org/a.zip", "ftp://models.example.org/a.zip"):
            with pytest.raises((ConfigError, CheckpointError)):
                recurra.pull(f"{url}/to/{elsewhere}", tmp_path / "out")
            assert not (tmp_path / "out").exists()
        assert recurra.pull(f"{url}/to/{url}/tagger.zip", tmp_path / "out").folder.is_dir()


def test_a_revision_is_for_the_hub_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--revision main is for the Hugging Face Hub"):
        recurra.pull("https://models.example.org/a.zip", tmp_path / "out", revision="main")
