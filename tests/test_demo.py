"""The tour runs from its first line to its last, and the words it learns from are what their rule says."""

from __future__ import annotations

import gzip
import importlib.util
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from recurra import demo
from recurra.cli import parser
from recurra.demo import AMBIGUOUS, LOOKED_AT, WORDS, bar, beside, command, free_folder, tour
from recurra.errors import CheckpointError

DOCS = Path(__file__).parent.parent / "docs"
SMALL = {
    **{"model.hidden": 8, "model.embedding": 8, "data.cache": False},
    **{"training.steps": 2, "training.threads": 1, "decoding.max_length": 6},
}


def lines(part: str) -> list[str]:
    return gzip.decompress((WORDS / f"{part}.tsv.gz").read_bytes()).decode().splitlines()


def words(part: str) -> set[str]:
    return {line.partition("\t")[0] for line in lines(part)}


@pytest.fixture
def _few_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo with a few of its words, in an empty folder."""
    shown = {*LOOKED_AT, AMBIGUOUS}
    for part, count in (("train", 100), ("valid", 10), ("test", 40)):
        kept = [line for n, line in enumerate(lines(part)) if n < count or line.partition("\t")[0] in shown]
        (tmp_path / f"{part}.tsv.gz").write_bytes(gzip.compress("\n".join(kept).encode()))
    monkeypatch.setattr(demo, "WORDS", tmp_path)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)


def test_no_word_is_in_two_parts_and_there_are_as_many_as_is_said() -> None:
    train, valid, test = words("train"), words("valid"), words("test")
    assert (len(train), len(valid), len(test)) == (15_577, 496, 1_092)
    assert not train & valid
    assert not train & test
    assert not valid & test


def test_words_are_letters_and_a_tab_and_sounds_that_training_knows() -> None:
    for part in ("train", "valid", "test"):
        found = lines(part)
        assert all(re.fullmatch(r"[a-z]{4,14}\t[A-Z]{1,2}( [A-Z]{1,2})+", line) for line in found)
        assert len(found) == len({*found})
    known = {sound for line in lines("train") for sound in line.partition("\t")[2].split()}
    assert len(known) == 39
    assert {sound for line in lines("test") for sound in line.partition("\t")[2].split()} <= known


def test_the_words_are_small_and_come_with_their_licence() -> None:
    assert sum(path.stat().st_size for path in WORDS.iterdir()) < 200_000
    notice = (WORDS / "LICENSE.cmudict").read_text()
    assert "Carnegie Mellon University" in notice
    assert "Redistributions in binary form must reproduce the above copyright" in notice


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_demo_data", DOCS / "make_demo_data.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_that_made_the_words_puts_each_where_it_is() -> None:
    made = maker()
    for part in ("train", "valid", "test"):
        assert {made.part_of(word) for word in words(part)} == {part}


def test_the_script_drops_stress_comments_and_what_is_spelled_out(tmp_path: Path) -> None:
    made = maker()
    chosen = sorted(words("test"))[:2]
    dictionary = tmp_path / "cmudict.dict"
    dictionary.write_text(
        f"{chosen[0]} AE1 B EY0 # french\n{chosen[0]}(2) AE1 B\n{chosen[0]}(3) AE2 B\n'tis T IH1 Z\n"
        f"{chosen[1]} {'EY1 ' * (len(chosen[1]) + 2)}\n"
    )
    made.main(dictionary, tmp_path / "out")
    assert gzip.decompress((tmp_path / "out/test.tsv.gz").read_bytes()).decode() == (
        f"{chosen[0]}\tAE B EY\n{chosen[0]}\tAE B\n"
    )


@pytest.mark.usefixtures("_few_words")
def test_the_tour_runs_from_end_to_end(capsys: pytest.CaptureFixture[str]) -> None:
    tour(settings=SMALL)
    printed = capsys.readouterr().out
    assert "With attention" in printed
    assert re.search(r"^  all +\d+ +[█░]{12} +\d+ % +[█░]{12} +\d+ %$", printed, re.MULTILINE)
    assert printed.count("∎") >= len(LOOKED_AT)
    assert len(re.findall(r"^ +[\d.]+ %  ", printed, re.MULTILINE)) == 4
    for path in re.findall(r"runs/demo-1/\S+", printed):
        assert Path(path).exists(), path
    pictures = {path.name for path in Path("runs/demo-1").iterdir() if path.suffix in (".png", ".svg")}
    assert pictures == {"attention.png", "by_length.png"}
    for line in printed.splitlines():
        if line.startswith("  python -m recurra "):
            parser().parse_args(shlex.split(line)[3:])
    assert free_folder() == Path("runs/demo-2")


@pytest.mark.usefixtures("_few_words")
def test_without_matplotlib_the_pictures_are_svg(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> object:
        return None if name == "matplotlib" else whole(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    tour(out="tour", settings=SMALL)
    assert Path("tour/attention.svg").read_text().startswith("<svg ")
    assert Path("tour/by_length.svg").read_text().startswith("<svg ")


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"the demo cannot write to .*file: "):
        tour(out=tmp_path / "file")


def test_shares_are_bars_and_blocks_stand_side_by_side() -> None:
    assert bar(1.0, width=3) == "███ 100 %"
    assert bar(0.0, width=3) == "░░░   0 %"
    assert beside(["茶\nb", "c\nd\ne"], gap=1) == "茶 c\nb  d\n   e"


def test_what_to_type_is_what_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "recurra"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(program), "demo"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command() == "bin/recurra"
    monkeypatch.setenv("PATH", str(program.parent))
    assert command() == "recurra"
    monkeypatch.setattr(sys, "argv", ["/somewhere/recurra/__main__.py", "demo"])
    assert command() == "python -m recurra"
