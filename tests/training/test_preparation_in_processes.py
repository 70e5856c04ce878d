"""Training data prepared by several processes, and after a stop: the same bytes as by one that nobody stopped."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from recurra.config.given import Given
from recurra.data import cutting, files
from recurra.errors import DataError, TrainingError
from recurra.reading.sentences import Sentence
from recurra.tasks.classification import Classification
from recurra.tasks.language_model import LanguageModel
from recurra.tasks.seq2seq import Seq2Seq
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import Task
from recurra.training import preparation
from recurra.training.preparation import prepared

SENTENCES = "".join(f"{'tea cup pot ' * (1 + n % 3)}w{n % 40}\t{'A B C ' * (1 + n % 3)}D\n" for n in range(400))


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cutting, "PIECE", 2000)
    monkeypatch.setattr(files, "CHUNK", 500)
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))


def made(kind: type[Task[Any, Any, Any]], tmp_path: Path, **given: object) -> dict[str, str]:
    """The digest of every file of a prepared entry of the cache, which is removed."""
    said: list[str] = []
    settings: Any = Given().changes({"training.steps": 1, **given}, "changes").settings(kind.Settings)
    prepared(kind, settings, said.append)
    [entry] = [path for path in (tmp_path / "cache" / "data").iterdir() if path.is_dir()]
    found = {
        path.relative_to(entry).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in entry.rglob("*")
        if path.is_file()
    }
    for path in sorted(entry.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    entry.rmdir()
    return found


TEXTS = "".join(f"how are you {n % 30}\tX{n % 3}\n" for n in range(400))
CASES = [
    pytest.param(Tagging, "a.tsv", SENTENCES, {"data.columns": ["tokens", "tags"]}, id="tagging"),
    pytest.param(Classification, "a.tsv", TEXTS, {}, id="classification", marks=pytest.mark.slow),
    pytest.param(LanguageModel, "a.txt", TEXTS, {}, id="letters", marks=pytest.mark.slow),
    pytest.param(
        LanguageModel,
        "a.txt",
        TEXTS,
        {"data.text.tokens": "words", "data.independent": True},
        id="words",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        Seq2Seq,
        "a.tsv",
        TEXTS.replace("\tX", "\tgood morning "),
        {"data.columns": ["source", "target"]},
        id="seq2seq",
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize(("kind", "name", "content", "given"), CASES)
def test_two_processes_prepare_the_same_bytes_as_one(
    tmp_path: Path, kind: type[Task[Any, Any, Any]], name: str, content: str, given: dict[str, object]
) -> None:
    (tmp_path / name).write_text(content)
    (tmp_path / f"second_{name}").write_text(content[: len(content) // 2].rpartition("\n")[0] + "\n")
    train = [str(tmp_path / name), str(tmp_path / f"second_{name}")]
    one = made(kind, tmp_path, **given, **{"data.train": train, "data.processes": 1})
    two = made(kind, tmp_path, **given, **{"data.train": train, "data.processes": 2})
    assert "store/meta.json" in one
    assert two == one


def test_a_file_in_one_piece_gives_what_it_gave_before_files_were_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.tsv").write_text(SENTENCES)
    given = {"data.columns": ["tokens", "tags"], "data.train": str(tmp_path / "a.tsv")}
    cut = made(Tagging, tmp_path, **given)
    monkeypatch.setattr(cutting, "PIECE", 1 << 30)
    assert made(Tagging, tmp_path, **given) == cut


def test_rows_keep_their_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("short file\tA B\n")
    (tmp_path / "b.tsv").write_text(SENTENCES)
    train = [str(tmp_path / "a.tsv"), str(tmp_path / "b.tsv")]
    given = {"data.columns": ["tokens", "tags"], "data.train": train, "training.steps": 1, "data.processes": 2}
    settings: Any = Given().changes(given, "changes").settings(Tagging.Settings)
    task, store = prepared(Tagging, settings, lambda _: None)
    assert [task.place(store[row]) for row in (0, 1, 400)] == [f"{train[0]}:1", f"{train[1]}:1", f"{train[1]}:400"]


def test_a_mistake_far_into_a_file_is_told_of_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(SENTENCES + "two words\tA\n")
    with pytest.raises(DataError, match=r"a\.tsv:401"):
        made(
            Tagging,
            tmp_path,
            **{"data.columns": ["tokens", "tags"], "data.train": str(tmp_path / "a.tsv"), "data.processes": 2},
        )


class Stopping(Tagging):
    """A tagger that somebody stops while its sentences are encoded."""

    reads_apart: ClassVar[bool] = True
    left: ClassVar[int] = 1 << 30
    by: ClassVar[type[BaseException]] = KeyboardInterrupt

    def encode(self, example: Sentence) -> Any:
        Stopping.left -= 1
        if Stopping.left < 0:
            raise Stopping.by
        return super().encode(example)


@pytest.fixture
def stopping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    monkeypatch.setattr(preparation, "SAVED_EVERY", 0.0)
    (tmp_path / "a.tsv").write_text(SENTENCES)
    yield {"data.columns": ["tokens", "tags"], "data.train": str(tmp_path / "a.tsv")}
    Stopping.left = 1 << 30


def test_a_preparation_that_was_stopped_goes_on_where_it_was(tmp_path: Path, stopping: dict[str, object]) -> None:
    whole = made(Stopping, tmp_path, **stopping)
    settings: Any = Given().changes({"training.steps": 1, **stopping}, "changes").settings(Tagging.Settings)
    Stopping.left = 250
    with pytest.raises(KeyboardInterrupt):
        prepared(Stopping, settings, lambda _: None)
    [left] = [path for path in (tmp_path / "cache" / "data").iterdir() if path.is_dir()]
    rows = json.loads((left / preparation.PROGRESS).read_text())["written"]["rows"]
    assert 150 < rows <= 250
    with open(left / "store" / "words.values", "ab") as file:
        file.write(b"half a row")  # which was written after the progress was saved
    Stopping.left = 400 - rows  # no more than the rest is encoded
    said: list[str] = []
    prepared(Stopping, settings, said.append)
    assert said[0] == f"goes on after {rows:,} examples, which an earlier run has encoded"
    [entry] = [path for path in (tmp_path / "cache" / "data").iterdir() if path.is_dir()]
    found = {name: hashlib.sha256((entry / name).read_bytes()).hexdigest() for name in whole}
    assert found == whole


def test_what_is_left_and_damaged_is_made_anew(tmp_path: Path, stopping: dict[str, object]) -> None:
    whole = made(Stopping, tmp_path, **stopping)
    settings: Any = Given().changes({"training.steps": 1, **stopping}, "changes").settings(Tagging.Settings)
    for damage in ("store/words.values", "vocabulary.words.json", preparation.PROGRESS):
        Stopping.left = 250
        with pytest.raises(KeyboardInterrupt):
            prepared(Stopping, settings, lambda _: None)
        [left] = [path for path in (tmp_path / "cache" / "data").iterdir() if path.is_dir()]
        (left / damage).write_bytes(b"")
        Stopping.left = 1 << 30
        assert made(Stopping, tmp_path, **stopping) == whole


def test_a_mistake_leaves_nothing_behind(tmp_path: Path, stopping: dict[str, object]) -> None:
    settings: Any = Given().changes({"training.steps": 1, **stopping}, "changes").settings(Tagging.Settings)
    Stopping.left, Stopping.by = 250, TrainingError
    try:
        with pytest.raises(TrainingError):
            prepared(Stopping, settings, lambda _: None)
    finally:
        Stopping.by = KeyboardInterrupt
    assert list((tmp_path / "cache" / "data").iterdir()) == []


def test_a_task_that_does_not_say_that_it_reads_apart_is_prepared_by_one_process() -> None:
    class Own(Tagging):
        pass

    settings: Any = Given().changes({"data.processes": 4, "training.steps": 1}, "changes").settings(Tagging.Settings)
    assert preparation._processes(Own, settings) == 1
    assert preparation._processes(Tagging, settings) == 4
    small = dataclasses.replace(settings, data=dataclasses.replace(settings.data, processes=None))
    assert preparation._processes(Tagging, small) == 1
