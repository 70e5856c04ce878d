"""Folders that change at one commit point: all of a change or nothing, and no damage unnoticed."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

import pytest

from recurra.errors import CheckpointError
from recurra.manifest import (
    MANIFEST,
    STAGE,
    committing,
    finish_change,
    locked,
    read_manifest,
    seal,
    verify,
    wrong_files,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files and a log, committed once."""
    here = tmp_path / "run"
    here.mkdir()
    (here / "log.jsonl").write_text("1\n2\n")
    with committing(here, logs={"log.jsonl": 4}) as new:
        (new / "config.toml").write_text("old")
        (new / "last").mkdir()
        (new / "last" / "weights").write_bytes(bytes(range(256)))
    return here


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def change(folder: Path) -> None:
    with committing(folder) as new:
        (new / "config.toml").write_text("new")
        (new / "last").mkdir()
        (new / "last" / "weights").write_bytes(b"new weights")


def test_a_commit_leaves_its_files_and_a_manifest_and_nothing_else(folder: Path) -> None:
    assert sorted(content(folder)) == ["config.toml", "last/weights", "log.jsonl", MANIFEST]
    assert [path.name for path in folder.iterdir() if path.is_dir()] == ["last"]
    verify(folder)


def test_a_change_that_fails_leaves_everything_as_it_was(folder: Path) -> None:
    before = content(folder)

    def change_half() -> None:
        with committing(folder) as new:
            (new / "config.toml").write_text("new")
            raise OSError(28, "No space left on device")

    with pytest.raises(CheckpointError, match=r"cannot be written \(No space left on device\); all that was saved"):
        change_half()
    assert content(folder) == before


class Cut(BaseException):
    """The process is gone."""


def cut_at(number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a process end at the `number`-th rename, sync or removal: whatever it would do afterwards is not done."""
    left = [number]

    def counted(function: object) -> object:
        def call(*arguments: object, **options: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Cut
            return function(*arguments, **options)  # type: ignore[operator]

        return call

    with monkeypatch.context() as patch:
        for where, name in ((os, "replace"), (os, "fsync"), (shutil, "rmtree"), (os, "unlink")):
            patch.setattr(where, name, counted(getattr(where, name)))
        yield


@pytest.mark.parametrize("number", range(12))
def test_a_change_that_is_cut_off_anywhere_is_there_whole_or_not_at_all(
    number: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in cut_at(number, monkeypatch):
        with pytest.raises(Cut):
            change(folder)
    verify(folder)
    texts = (folder / "config.toml").read_text(), (folder / "last" / "weights").read_bytes()
    assert texts in (("old", bytes(range(256))), ("new", b"new weights"))
    change(folder)
    verify(folder)
    assert sorted(content(folder)) == ["config.toml", "last/weights", "log.jsonl", MANIFEST]


def test_a_new_file_is_hashed_once_so_that_it_takes_its_place_right_after_the_commit_point(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    digest = hashlib.file_digest

    def counted(file: BufferedReader, name: str) -> object:
        hashed.append(Path(file.name).name)
        return digest(file, name)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    change(folder)
    assert sorted(hashed) == ["config.toml", "weights"]


def test_a_cut_off_change_that_cannot_be_finished_is_refused_in_a_sentence(folder: Path) -> None:
    (folder / STAGE).mkdir()
    (folder / "last").rename(folder / STAGE / "last")
    (folder / "last").write_text("a file where the folder was")
    with pytest.raises(CheckpointError, match=r"the last change of .*run was cut off, and .*\.new cannot be put"):
        finish_change(folder)
    with pytest.raises(CheckpointError, match=r"last/weights cannot be put in its place"):
        verify(folder)


def test_a_log_may_grow_but_not_change_or_shrink(folder: Path) -> None:
    with open(folder / "log.jsonl", "a") as file:
        file.write("3\n")
    verify(folder)
    (folder / "log.jsonl").write_text("1\n9\n3\n")
    with pytest.raises(CheckpointError, match=r"log\.jsonl is damaged"):
        verify(folder)
    (folder / "log.jsonl").write_text("1\n")
    with pytest.raises(CheckpointError, match=r"log\.jsonl is damaged"):
        verify(folder)


@pytest.mark.parametrize("name", ["config.toml", "last/weights", "log.jsonl", MANIFEST])
def test_no_flipped_bit_and_no_cut_goes_unnoticed(name: str, folder: Path) -> None:
    good = (folder / name).read_bytes()
    known = read_manifest(folder)
    for place in range(len(good)):
        for bad in (good[:place], good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :]):
            (folder / name).write_bytes(bad)
            try:
                verify(folder)
            except CheckpointError:
                continue
            assert name == MANIFEST, f"byte {place} of {name}"
            assert read_manifest(folder) == known  # of the text of a manifest, blanks mean nothing
            assert json.loads(bad)["files"] == json.loads(good)["files"]


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a//b", "a\\b", "C:x", "", "./a", "a/../b", MANIFEST])
def test_a_manifest_cannot_name_a_file_outside(name: str, folder: Path) -> None:
    entry = {"bytes": 0, "sha256": "0" * 64}
    (folder / MANIFEST).write_text(json.dumps({"format": 1, "files": {name: entry}}))
    with pytest.raises(CheckpointError, match=r"manifest\.json is damaged"):
        verify(folder)


OTHER_KINDS = [
    "",
    "[]",
    "{}",
    '{"format": 1}',
    '{"format": 1, "files": 3}',
    '{"format": 1, "files": {"a": 3}}',
    '{"format": 1, "files": {"a": {"bytes": -1, "sha256": ""}}}',
    "[" * 100_000,
    " " * (2 << 20),
]


@pytest.mark.parametrize("text", OTHER_KINDS, ids=lambda text: text[:60].strip() or "blank")
def test_a_manifest_of_another_kind_is_refused_in_a_sentence(text: str, folder: Path) -> None:
    (folder / MANIFEST).write_text(text)
    with pytest.raises(CheckpointError, match=r"manifest\.json is damaged"):
        verify(folder)


def test_a_manifest_of_a_later_format_is_refused_with_what_to_do(folder: Path) -> None:
    (folder / MANIFEST).write_text('{"format": 9, "files": {}}')
    with pytest.raises(CheckpointError, match=r"written by a later recurra .* Upgrade"):
        verify(folder)


def test_links_out_of_the_folder_and_pipes_are_refused(folder: Path) -> None:
    (folder.parent / "elsewhere").write_text("secret")
    (folder / "config.toml").unlink()
    (folder / "config.toml").symlink_to(folder.parent / "elsewhere")
    with pytest.raises(CheckpointError, match=r"config\.toml is a link to a place outside of the folder"):
        verify(folder)
    (folder / "config.toml").unlink()
    os.mkfifo(folder / "config.toml")
    with pytest.raises(CheckpointError, match="neither a file nor a folder"):
        verify(folder)


def test_a_missing_file_and_a_second_damaged_one_are_both_named(folder: Path) -> None:
    (folder / "config.toml").unlink()
    (folder / "last" / "weights").write_bytes(b"x")
    assert [name for name, _ in wrong_files(folder)] == ["config.toml", "last/weights"]
    seal(folder)
    verify(folder)


def test_a_folder_may_be_held_once_and_is_free_afterwards(tmp_path: Path) -> None:
    def hold() -> None:
        with locked(tmp_path / "run", "{} is taken"):
            (tmp_path / "run" / "a").touch()

    with locked(tmp_path / "run", "{} is taken"), pytest.raises(CheckpointError, match="run is taken"):
        hold()
    assert not (tmp_path / "run").exists()
    hold()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["a"]


def hammer(folder: Path, times: int) -> None:
    """Take the lock again and again; inside, nobody else may be."""
    done = 0
    while done < times:
        try:
            with locked(folder, "taken"):
                os.mkdir(folder / "inside")  # fails where another process is inside too
                os.rmdir(folder / "inside")
                done += 1
        except CheckpointError:
            continue


def test_two_processes_are_never_inside_together(tmp_path: Path) -> None:
    (tmp_path / "keep").touch()
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=hammer, args=(tmp_path, 100)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert [process.exitcode for process in processes] == [0, 0, 0]


def test_whoever_reads_while_another_commits_sees_one_state_or_the_other(folder: Path) -> None:
    context = multiprocessing.get_context("fork")
    writer = context.Process(target=_commit_often, args=(folder, 60))
    writer.start()
    seen = 0
    while writer.is_alive():
        verify(folder)
        seen += 1
    writer.join()
    assert writer.exitcode == 0
    assert seen > 5


def _commit_often(folder: Path, times: int) -> None:
    with locked(folder, "taken"):
        for number in range(times):
            with committing(folder) as new:
                (new / "config.toml").write_text(str(number) * 1000)
            assert not (folder / STAGE).exists()


def test_a_change_that_waits_in_a_folder_that_may_only_be_read_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / STAGE).mkdir()
    shutil.move(folder / "config.toml", folder / STAGE / "config.toml")

    def refused(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("recurra.manifest.make_folder", refused)
    with pytest.raises(CheckpointError, match=r"was cut off, and \S*/\.new/config\.toml cannot be put in its place"):
        verify(folder)
    monkeypatch.undo()
    verify(folder)
    assert (folder / "config.toml").read_text() == "old"
