"""From files to encoded examples: a second run finds them, and a change of file or settings is never overlooked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recurra.cache import UNFINISHED_DAYS, UNUSED_DAYS
from recurra.cli import main
from recurra.config import TaggingData, TaggingSettings
from recurra.errors import ConfigError, DataError
from recurra.tasks.tagging import Tagging
from recurra.training.preparation import Prepared, prepared

TEXT = "the\tDET\ncat\tNOUN\n\nit\tPRON\nsleeps\tVERB\nhere\tADV\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "train.conll"
    path.write_text(TEXT)
    return path


def settings(file: Path, *, cache: bool = True, min_count: int = 1, lowercase: bool = False) -> TaggingSettings:
    return TaggingSettings(data=TaggingData(train=str(file), cache=cache, min_count=min_count, lowercase=lowercase))


class Listener:
    """What was said, and whether the file was read."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def __call__(self, text: str) -> None:
        self.said.append(text)

    @property
    def has_read(self) -> bool:
        return any(text.startswith("read 2 examples in ") for text in self.said)


def contents(found: Prepared) -> list[object]:
    rows = [{name: values.tolist() for name, values in found.store[row].items()} for row in range(len(found.store))]
    return [found.task.words.tokens, [tags.tokens for tags in found.task.tags], found.task.settings, rows]  # type: ignore[attr-defined]


def entries(file: Path) -> list[Path]:
    return sorted((file.parent / "cache" / "data").glob("*"))


def test_the_examples_are_those_of_the_file(file: Path) -> None:
    task, store = prepared(Tagging, settings(file), Listener())
    assert isinstance(task, Tagging)
    assert [task.words.tokens_of(store[row]["words"]) for row in range(2)] == [["the", "cat"], ["it", "sleeps", "here"]]
    assert task.tags[0].tokens_of(store[1]["tags0"]) == ["PRON", "VERB", "ADV"]
    assert [task.place(store[row]) for row in range(2)] == [f"{file}:1", f"{file}:4"]


def test_a_second_run_reads_nothing_and_finds_the_same(file: Path) -> None:
    first, second = Listener(), Listener()
    made = prepared(Tagging, settings(file), first)
    [entry] = entries(file)
    before = [path.stat().st_mtime_ns for path in (entry / "store", *(entry / "store").iterdir())]
    found = prepared(Tagging, settings(file), second)
    assert contents(found) == contents(made)
    assert first.has_read
    assert second.said == []
    assert entries(file) == [entry]
    assert [path.stat().st_mtime_ns for path in (entry / "store", *(entry / "store").iterdir())] == before


def test_a_file_of_another_size_is_encoded_anew(file: Path) -> None:
    prepared(Tagging, settings(file), Listener())
    file.write_text(TEXT.replace("cat", "bird"))
    again = Listener()
    assert "bird" in prepared(Tagging, settings(file), again).task.words  # type: ignore[attr-defined]
    assert again.has_read


def test_a_file_of_another_time_is_encoded_anew(file: Path) -> None:
    prepared(Tagging, settings(file), Listener())
    known = file.stat()
    file.write_text(TEXT.replace("cat", "dog"))
    os.utime(file, ns=(known.st_atime_ns, known.st_mtime_ns + 1))
    again = Listener()
    assert "dog" in prepared(Tagging, settings(file), again).task.words  # type: ignore[attr-defined]
    assert again.has_read


def test_other_settings_of_data_are_encoded_anew_and_those_of_the_run_are_not(file: Path) -> None:
    prepared(Tagging, settings(file), Listener())
    for other in (settings(file, min_count=2), settings(file, lowercase=True)):
        again = Listener()
        prepared(Tagging, other, again)
        assert again.has_read
    again = Listener()
    run = TaggingSettings(data=TaggingData(train=str(file), valid=str(file), min_count=1, vectors="v.txt"))
    assert prepared(Tagging, run, again).task.settings.data.valid == str(file)
    assert not again.has_read


@pytest.mark.parametrize("what", ["vocabulary.words.json", "scales.json", "store/meta.json", "store/words.values", ""])
def test_a_broken_entry_is_made_again(file: Path, what: str) -> None:
    made = contents(prepared(Tagging, settings(file), Listener()))
    [entry] = entries(file)
    if what:
        (entry / what).unlink()
        (entry / what).write_bytes(b"[")
    else:
        shutil.rmtree(entry)
        entry.write_bytes(b"a file in the place of a folder")
    again = Listener()
    assert contents(prepared(Tagging, settings(file), again)) == made
    assert again.said[0] == f"the cache in {entry} is broken and is rebuilt"
    assert again.has_read
    assert entries(file) == [entry]


def test_a_cache_that_cannot_be_written_is_done_without(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = contents(prepared(Tagging, settings(file), Listener()))
    monkeypatch.setenv("RECURRA_CACHE", str(file / "below a file"))
    listener = Listener()
    assert contents(prepared(Tagging, settings(file), listener)) == expected
    folder = file / "below a file" / "data"
    assert listener.said[0] == (
        f"the cache folder {folder} cannot be used (Not a directory); the encoded examples are not kept"
    )
    assert listener.has_read


def test_an_entry_is_kept_while_it_is_used_and_removed_when_it_is_not(file: Path) -> None:
    prepared(Tagging, settings(file), Listener())
    [used] = entries(file)
    now = time.time()
    for name, days in (("old", UNUSED_DAYS + 1), ("recent", UNUSED_DAYS - 1)):
        (used.parent / name).mkdir()
        os.utime(used.parent / name, (now, now - 86_400 * days))
    for name, days in (("a.unfinished", UNFINISHED_DAYS + 1), ("b.unfinished", UNFINISHED_DAYS - 1)):
        (used.parent / name).mkdir()
        os.utime(used.parent / name, (now, now - 86_400 * days))
    os.utime(used, (now, now - 86_400 * (UNUSED_DAYS + 1)))
    prepared(Tagging, settings(file), Listener())
    prepared(Tagging, settings(file, min_count=2), Listener())
    names = {path.name for path in entries(file)}
    assert {used.name, "recent", "b.unfinished"} < names
    assert not {"old", "a.unfinished"} & names


def test_what_is_wrong_with_the_data_leaves_nothing_in_the_cache(file: Path) -> None:
    file.write_text(TEXT + "\nword without a tag\n")
    with pytest.raises(DataError, match=r"train\.conll:8: "):
        prepared(Tagging, settings(file), Listener())
    assert entries(file) == []


def test_without_a_cache_nothing_is_left_behind(file: Path) -> None:
    temporary = file.parent / "temporary"
    temporary.mkdir()
    code = (
        "import sys; from recurra.config import *; from recurra.tasks.tagging import Tagging\n"
        "from recurra.training.preparation import prepared\n"
        "data = TaggingData(train=sys.argv[1], cache=False)\n"
        "assert len(prepared(Tagging, TaggingSettings(data=data), print).store) == 2"
    )
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("read 2 examples in ")
    assert list(temporary.iterdir()) == []
    assert not (file.parent / "cache").exists()


def test_several_processes_prepare_the_same_file(file: Path) -> None:
    code = (
        "import sys; from recurra.config import *; from recurra.tasks.tagging import Tagging\n"
        "from recurra.training.preparation import prepared\n"
        "assert len(prepared(Tagging, TaggingSettings(data=TaggingData(train=sys.argv[1])), print).store) == 2"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert len(entries(file)) == 1


def test_a_run_without_a_file_to_learn_from_is_refused(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no training data: set data\.train, or give --train FILE\."):
        prepared(Tagging, TaggingSettings(), Listener())
    with pytest.raises(DataError, match=r"gone\.conll"):
        prepared(Tagging, settings(file.with_name("gone.conll")), Listener())


def test_held_out_examples_that_are_trained_on_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.tsv").write_text("good film\tyes\nbad film\tno\na good book\tyes\n")
    Path("valid.tsv").write_text("bad film\tno\nbad film\tyes\nworse\tno\nbad film\tno\n")
    small = ["--set", "training.steps=1", "--set", "model.hidden=4", "--set", "data.cache=false"]
    assert (
        main(["train", "classification", "--train", "train.tsv", "--valid", "valid.tsv", "--out", "run", *small]) == 0
    )
    said = "2 of 4 valid examples (50 %) are also in the training data, with the same answer"
    assert said in capsys.readouterr().err
