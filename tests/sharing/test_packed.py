"""A packed run is a file with all that it needs, the same bytes each time; a file that was tampered with is refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import recurra
from recurra.cli import main
from recurra.errors import CheckpointError, ConfigError, TrustError
from recurra.exporting.folder import export
from recurra.manifest import MANIFEST, read_manifest, seal
from recurra.runs import check_run
from recurra.training.answering import Answering

OLD = Path(__file__).parents[1] / "old_runs" / "0.1" / "tagging"


def outputs(model: Answering, texts: list[str]) -> list[str]:
    return [answer.output for answer in model.predict(texts)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run with a manifest and a card."""
    shutil.copytree(OLD / "run", tmp_path / "run")
    (tmp_path / "run" / "card.md").write_text("# a tagger\n")
    seal(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def packed(run: Path, tmp_path: Path) -> Path:
    return recurra.pack(run, tmp_path / "tagger.zip").file


def test_an_unpacked_run_has_the_files_of_the_run_and_answers_as_it_does(run: Path, packed: Path) -> None:
    copy = recurra.unpack(packed, run.with_name("copy")).folder
    there = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    assert there == {MANIFEST, *(name for name in read_manifest(run) or {} if not name.startswith("last/"))}
    for name in there - {MANIFEST}:
        assert (copy / name).read_bytes() == (run / name).read_bytes()
    text = ["they run", "the cat sees dogs"]
    assert outputs(recurra.load(copy), text) == outputs(recurra.load(run), text)
    assert "are as written" in check_run(copy)


def test_the_same_run_gives_the_same_bytes_whenever_and_wherever_it_is_packed(run: Path, packed: Path) -> None:
    other = shutil.copytree(run, run.parent / "elsewhere" / "run")
    for path in other.rglob("*"):
        os.utime(path, (1e9, 1e9))
        path.chmod(0o700)
    again = recurra.pack(other, run.parent / "again.zip")
    assert again.file.read_bytes() == packed.read_bytes()
    assert again.sha256 == hashlib.sha256(packed.read_bytes()).hexdigest()


def test_any_program_that_reads_zip_finds_the_files_as_they_are(packed: Path) -> None:
    with zipfile.ZipFile(packed) as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == MANIFEST
        assert {each.compress_type for each in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.read("card.md") == b"# a tagger\n"
        table = json.loads(archive.read(MANIFEST))["files"]
        for name, entry in table.items():
            assert hashlib.sha256(archive.read(name)).hexdigest() == entry["sha256"]
        assert set(table) == {*archive.namelist()} - {MANIFEST}


def test_a_run_of_an_early_version_is_packed_too(tmp_path: Path) -> None:
    assert not (OLD / "run" / MANIFEST).exists()
    recurra.pack(OLD / "run", tmp_path / "old.zip")
    copy = recurra.unpack(tmp_path / "old.zip").folder
    assert copy == tmp_path / "old"
    assert (
        recurra.load(copy).predict(["they run"])[0].output == recurra.load(OLD / "run").predict(["they run"])[0].output
    )


def test_of_a_log_that_has_grown_what_was_recorded_is_packed(run: Path) -> None:
    before = (run / "metrics.jsonl").read_bytes()
    with (run / "metrics.jsonl").open("ab") as log:
        log.write(b'{"kind": "event", "step": 1, "text": "more"}\n')
    recurra.pack(run, run.parent / "grown.zip")
    copy = recurra.unpack(run.parent / "grown.zip").folder
    assert (copy / "metrics.jsonl").read_bytes() == before


def test_an_exported_folder_is_packed_and_answers_again(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export(run, run.with_name("exported"))
    assert main(["pack", str(run.with_name("exported")), str(run.with_name("e.zip")), "--license", "MIT"]) == 0
    assert "licence: MIT" in capsys.readouterr().out
    assert main(["unpack", str(run.with_name("e.zip")), str(run.with_name("e"))]) == 0
    answers = outputs(recurra.load(run.with_name("e"), by="numpy"), ["they run"])
    assert answers == outputs(recurra.load(run), ["they run"])
    assert "Apache" in (run.with_name("e") / "LICENSE").read_text()  # that of its code


# Licences


def test_a_licence_is_named_or_given_as_a_text(run: Path, tmp_path: Path) -> None:
    assert recurra.pack(run, tmp_path / "none.zip").license is None
    named = recurra.pack(run, tmp_path / "named.zip", license="CC-BY-4.0")
    assert named.license == "CC-BY-4.0"
    copy = recurra.unpack(named.file).folder
    assert (copy / "LICENSE.model").read_text() == "SPDX-License-Identifier: CC-BY-4.0\n"
    assert recurra.pack(copy, tmp_path / "again.zip").file.read_bytes() == named.file.read_bytes()
    (tmp_path / "terms.txt").write_text("Use it well.\n")
    given = recurra.pack(copy, tmp_path / "given.zip", license=tmp_path / "terms.txt")
    assert given.license == "LICENSE.model"
    assert (recurra.unpack(given.file).folder / "LICENSE.model").read_text() == "Use it well.\n"


def test_without_a_licence_the_command_says_what_that_means(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", str(run), str(run.parent / "x.zip")]) == 0
    said = capsys.readouterr().out
    assert "It has no licence, so others may not use it. To name one: --license CC-BY-4.0, or a file" in said


@pytest.mark.parametrize("license", ["my own terms", "terms.txt", ""])
def test_what_is_no_licence_is_refused(run: Path, license: str) -> None:
    with pytest.raises(ConfigError, match=r"is neither a file nor an identifier of a licence such as CC-BY-4.0"):
        recurra.pack(run, run.parent / "x.zip", license=license)
    assert not (run.parent / "x.zip").exists()


# What cannot be packed


def test_what_is_no_finished_run_is_not_packed(run: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"there is no folder .*none: name the folder of a run"):
        recurra.pack(tmp_path / "none")
    with pytest.raises(CheckpointError, match=r"there is no config.toml in"):
        recurra.pack(tmp_path)
    (run / "summary.json").unlink()
    with pytest.raises(
        CheckpointError, match=r"is not finished, so there is nothing to share yet. Continue with: recurra"
    ):
        recurra.pack(run, tmp_path / "x.zip")


def test_a_damaged_run_is_not_packed_and_no_file_is_left(run: Path, tmp_path: Path) -> None:
    with (run / "model.safetensors").open("rb+") as file:
        file.write(b"x")
    with pytest.raises(CheckpointError, match=r"model.safetensors is damaged"):
        recurra.pack(run, tmp_path / "x.zip")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_a_file_that_is_there_is_not_replaced(run: Path, packed: Path) -> None:
    before = packed.read_bytes()
    with pytest.raises(CheckpointError, match=r"tagger.zip already exists: remove it, or name another file."):
        recurra.pack(run, packed)
    assert packed.read_bytes() == before


def test_a_folder_that_has_files_is_not_unpacked_into(run: Path, packed: Path) -> None:
    with pytest.raises(CheckpointError, match=r"already exists and is not empty. Choose another folder."):
        recurra.unpack(packed, run)


def test_a_packed_run_is_no_folder_and_every_command_says_so(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["predict", str(packed)], ["info", str(packed)], ["serve", str(packed), "--port", "0"]):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert f"unpack it first: recurra unpack {packed} FOLDER" in said, command
    with pytest.raises(CheckpointError, match=r"is a file, and a run is a folder"):
        recurra.load(packed)


# Files that were made to do harm


def entry(name: str, content: bytes = b"x", mode: int = stat.S_IFREG | 0o644) -> tuple[zipfile.ZipInfo, bytes]:
    about = zipfile.ZipInfo(name)
    about.filename = about.orig_filename = name  # as it is, with whatever zipfile would make of it
    about.create_system, about.external_attr = 3, mode << 16
    return about, content


def with_more(packed: Path, *more: tuple[zipfile.ZipInfo, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """A packed run with other files besides, which its manifest lists too."""
    target = packed.with_name("hostile.zip")
    with zipfile.ZipFile(packed) as archive:
        files = {each.filename: archive.read(each) for each in archive.infolist()}
    table = json.loads(files[MANIFEST])
    for about, content in more:
        digest = hashlib.sha256(content).hexdigest()
        table["files"][about.orig_filename] = {"bytes": len(content), "sha256": digest}
    files[MANIFEST] = json.dumps(table).encode()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        for about, content in more:
            about.compress_type = compression
            archive.writestr(about, content, compression)
    return target


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../outside.txt", "a part of it is '..'"),
        ("a/../../outside.txt", "a part of it is '..'"),
        ("/tmp/outside.txt", "it leads out of the folder"),
        ("C:/outside.txt", "it leads out of the folder"),
        ("..\\outside.txt", "it leads out of the folder"),
        (".new/model.safetensors", "it is hidden"),
        (".lock", "it is hidden"),
        ("a//b", "a part of it is empty"),
        ("folder/", "a part of it is empty"),
    ],
)
def test_a_file_that_would_lie_elsewhere_is_refused(packed: Path, name: str, why: str) -> None:
    before = sorted(path.name for path in packed.parent.iterdir())
    hostile = with_more(packed, entry(name))
    with pytest.raises(CheckpointError, match=r"Nothing was written") as caught:
        recurra.unpack(hostile, packed.with_name("out"))
    assert why in str(caught.value)
    assert sorted(path.name for path in packed.parent.iterdir()) == sorted([*before, "hostile.zip"])


def test_links_and_devices_are_refused(packed: Path) -> None:
    for mode, why in ((stat.S_IFLNK, "it is a link"), (stat.S_IFIFO, "it is no plain file")):
        hostile = with_more(packed, entry("passwd", b"/etc/passwd", mode | 0o777))
        with pytest.raises(CheckpointError, match=why):
            recurra.unpack(hostile, packed.with_name("out"))
        assert not packed.with_name("out").exists()


def test_a_file_that_would_unpack_to_gigabytes_is_refused(packed: Path) -> None:
    hostile = with_more(packed, entry("zeros.json", b"0" * 10_000_000), compression=zipfile.ZIP_DEFLATED)
    assert hostile.stat().st_size < 1_000_000
    with pytest.raises(CheckpointError, match=r"it is compressed, which `recurra pack` never does"):
        recurra.unpack(hostile, packed.with_name("out"))


def test_a_file_that_is_there_twice_is_refused(packed: Path) -> None:
    with pytest.warns(UserWarning, match=r"Duplicate name"):
        hostile = with_more(packed, entry("config.toml", b'task = "tagging"\n'))
    with pytest.raises(CheckpointError, match=r"'config.toml', it is there twice"):
        recurra.unpack(hostile, packed.with_name("out"))


def test_files_that_claim_to_be_larger_than_the_archive_are_refused(packed: Path) -> None:
    """All of them may name the same bytes: none is read."""
    content = packed.read_bytes()
    with zipfile.ZipFile(packed) as archive:
        [model] = [each for each in archive.infolist() if each.filename == "model.safetensors"]
    old, new = model.file_size.to_bytes(4, "little"), (1 << 31).to_bytes(4, "little")
    place = content.rindex(b"model.safetensors") - 46  # in the list at the end
    head = bytearray(content)
    for offset in (20, 24):  # as it is stored, and as it is
        assert head[place + offset : place + offset + 4] == old
        head[place + offset : place + offset + 4] = new
    packed.write_bytes(bytes(head))
    with pytest.raises(CheckpointError, match=r"its files claim to be larger than it is. Nothing was written."):
        recurra.unpack(packed, packed.with_name("out"))


def rewritten(packed: Path, change: Callable[[dict[str, bytes]], object]) -> Path:
    with zipfile.ZipFile(packed) as archive:
        files = {each.filename: archive.read(each) for each in archive.infolist()}
    change(files)
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda files: files.pop(MANIFEST), "is no file that `recurra pack` wrote: it has no manifest.json"),
        (lambda files: files.pop("config.toml"), "is damaged: it has no config.toml, which its manifest.json lists"),
        (lambda files: files.update({"more.json": b"{}"}), "its manifest.json does not list more.json"),
        (lambda files: files.update({"card.md": b"# a tigger\n"}), "card.md is not what was packed"),
        (lambda files: files.update({"card.md": b"# another\n"}), "card.md has 10 bytes, but 11 by its manifest.json"),
        (lambda files: files.update({MANIFEST: b"{}"}), "it has no format"),
        (lambda files: files.update({MANIFEST: b"\xff"}), "manifest.json is damaged"),
        (lambda files: files.update({MANIFEST: b" " * (1 << 21)}), "its manifest.json is larger than"),
        (
            lambda files: files.update({MANIFEST: b'{"format": 1, "files": {"../x": {"bytes": 1, "sha256": "0"}}}'}),
            "is not the name of a file in this folder",
        ),
    ],
)
def test_a_file_that_does_not_agree_with_its_manifest_is_refused(
    packed: Path, change: Callable[[dict[str, bytes]], object], said: str
) -> None:
    with pytest.raises(CheckpointError) as caught:
        recurra.unpack(rewritten(packed, change), packed.with_name("out"))
    assert said in str(caught.value)
    assert str(packed) in str(caught.value)
    assert sorted(path.name for path in packed.parent.iterdir()) == ["run", "tagger.zip"]


def test_what_is_no_archive_is_refused(tmp_path: Path, packed: Path) -> None:
    for content in (b"", b"PK\x03\x04", b"a text", packed.read_bytes()[:-30], packed.read_bytes()[1000:]):
        path = tmp_path / "odd.zip"
        path.write_bytes(content)
        with pytest.raises(CheckpointError):
            recurra.unpack(path, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    with pytest.raises(CheckpointError, match=r"there is no file"):
        recurra.unpack(tmp_path / "none.zip")
    with pytest.raises(CheckpointError, match=r"is a folder already: it need not be unpacked"):
        recurra.unpack(packed.with_name("run"))


def test_whichever_byte_is_changed_the_run_is_refused_or_as_it_was(packed: Path, tmp_path: Path) -> None:
    content, whole = packed.read_bytes(), recurra.unpack(packed, tmp_path / "whole").folder
    right = {path.name: path.read_bytes() for path in whole.rglob("*") if path.is_file()}
    refused = 0
    for place in range(0, len(content), max(1, len(content) // 150)):
        damaged = bytearray(content)
        damaged[place] ^= 0x41
        packed.write_bytes(bytes(damaged))
        try:
            out = recurra.unpack(packed, tmp_path / "out").folder
        except CheckpointError:
            refused += 1
            continue
        assert {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()} == right
        shutil.rmtree(out)
    assert refused > 100


def test_code_that_a_packed_run_names_is_not_imported_before_it_is_allowed(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "packed_cells.py").write_text("raise SystemExit('it ran')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = (run / "config.toml").read_text().replace('cell = "lstm"', 'cell = "packed_cells:Cell"')
    assert "packed_cells" in config
    (run / "config.toml").write_text(config)
    (run / "code").mkdir()
    (run / "code" / "packed_cells.py").write_text("raise SystemExit('it ran')\n")
    seal(run)
    copy = recurra.unpack(recurra.pack(run, tmp_path / "x.zip").file).folder
    assert (copy / "code" / "packed_cells.py").is_file()
    with pytest.raises(TrustError, match=r"names code from outside recurra"):
        recurra.load(copy)
    assert "packed_cells" not in sys.modules


def test_an_encrypted_file_is_refused(packed: Path) -> None:
    content = bytearray(packed.read_bytes())
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        count = len(archive.infolist())
    place = content.rindex(b"PK\x01\x02")  # the last file in the list at the end
    content[place + 8] |= 1
    packed.write_bytes(bytes(content))
    assert count > 5
    with pytest.raises(CheckpointError, match=r"it is encrypted"):
        recurra.unpack(packed, packed.with_name("out"))
