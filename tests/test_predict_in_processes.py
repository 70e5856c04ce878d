"""`recurra predict` and `evaluate` by several processes, of folders of shards, and after a kill: the same bytes."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recurra.cli import main
from recurra.engines import c_library
from recurra.errors import ConfigError, WorkerError
from recurra.sharded import Kept, Sharded, Which, unfinished
from recurra.training import answering
from recurra.views.prediction import Prediction

RUN = str(Path(__file__).parent / "old_runs/0.1/classification/run")
OLD = sorted((Path(__file__).parent / "old_runs").glob("*/*/expected.json"))
TAGGER = str(Path(__file__).parent / "old_runs/0.1/tagging/run")
WORDS = ["tea", "cup", "good", "bad", "Xu", "7"]


def texts(count: int, first: int = 0) -> list[str]:
    return [" ".join(WORDS[(number * step) % 6] for step in range(1, 3 + number % 5)) for number in range(first, count)]


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "AHEAD", 8)


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """A file of 60 questions."""
    path = tmp_path / "asked.jsonl"
    path.write_text("".join(json.dumps({"text": text, "n": n}) + "\n" for n, text in enumerate(texts(60))))
    return path


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "asked.txt"
    path.write_text("\n".join(texts(60)))
    return path


def test_two_processes_write_the_bytes_of_one(asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = []
    for processes in ("1", "2"):
        out = tmp_path / f"{processes}.csv"
        assert main(["predict", RUN, str(asked), "--out", str(out), "--processes", processes]) == 0
        said = capsys.readouterr()
        assert said.out == f"60 answers written to {out}\n"
        written.append((out.read_bytes(), said.err))
    assert written[0] == written[1]
    assert written[0][0].count(b"\n") == 61
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.csv", "2.csv", "asked.jsonl"]


@pytest.mark.slow
def test_two_processes_print_the_bytes_of_one(lines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for processes in ("1", "2"):
        assert main(["predict", RUN, str(lines), "--json", "--processes", processes]) == 0
        printed.append(capsys.readouterr())
    assert printed[0] == printed[1]
    assert len(printed[0].out.splitlines()) == 60


@pytest.mark.slow
@pytest.mark.parametrize("old", OLD, ids=lambda path: path.parent.name)
def test_each_task_says_in_two_processes_what_it_says_in_one(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs of earlier versions: every byte of the answers, and every score."""
    monkeypatch.setattr(answering, "AHEAD", 2)
    monkeypatch.setattr(answering, "TOKENS", 24)
    # As the processes compile it, and not as the tests do: another optimisation rounds otherwise.
    flags = tuple("-O3" if flag == "-O1" else flag for flag in c_library.FLAGS)
    monkeypatch.setattr(c_library, "FLAGS", flags)
    shutil.copytree(old.parent, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    expected = json.loads(old.read_text("utf-8"))
    commands = [
        ["predict", "run", expected["inputs"], "--json"],
        ["predict", "run", expected["inputs"]],
        ["evaluate", "run", expected["valid"], "--json"],
    ]
    for command in commands:
        found = []
        for processes in ("1", "2"):
            assert main([*command, "--processes", processes]) == 0
            said = capsys.readouterr()
            found.append((re.sub(r'"seconds": [\d.e-]+', "", said.out), said.err))
        assert found[0] == found[1]
        assert found[0][0].strip()


@pytest.mark.slow
def test_scores_do_not_depend_on_the_number_of_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "TOKENS", 24)
    path = tmp_path / "scored.conll"
    path.write_text("".join("".join(f"{word}\tX\n" for word in text.split()) + "\n" for text in texts(40)))
    scores = []
    for more in ([], ["--processes", "2"]):
        assert main(["evaluate", TAGGER, str(path), "--json", *more]) == 0
        scores.append(json.loads(capsys.readouterr().out))
        del scores[-1]["seconds"]
    assert scores[0] == scores[1]


def test_a_folder_is_scored_and_checked_as_the_files_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (source := Path("shards")).mkdir()
    for name, some in (("b.conll", texts(9)), ("a.conll.gz", texts(20, 9))):
        content = "".join("".join(f"{word}\tX\n" for word in text.split()) + "\n" for text in some).encode()
        (source / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    (source / "README.md").write_text("no data")
    files = [str(source / "a.conll.gz"), str(source / "b.conll")]
    for command in (["evaluate", TAGGER, "--json"], ["check", "--json"]):
        found = []
        for given in ([str(source)], files):
            assert main([*command, *given]) == 0
            found.append(json.loads(capsys.readouterr().out))
            found[-1].pop("seconds", None)
        assert found[0] == found[1]
    (empty := Path("empty")).mkdir()
    for command in (["evaluate", TAGGER], ["check"]):
        assert main([*command, str(empty)]) == 2
        assert "the folder empty contains no data files (names that end in " in capsys.readouterr().err


# After a stop


class Counting:
    """Answers that are counted, and stopped after so many groups."""

    def __init__(self, most: int = 1 << 30) -> None:
        self.groups, self.most = 0, most

    def __call__(self, groups: Any) -> Iterator[list[Prediction]]:
        for group in groups:
            self.groups += 1
            if self.groups > self.most:
                raise KeyboardInterrupt
            yield [Prediction(each, each.upper(), len(each) / 3, 1, {"not_in_vocabulary": [each]}) for each in group]


GROUPS = [["a", "b"], ["c", "d"], ["e", "f"], ["g"]]


def kept_after(folder: Path, groups: int) -> list[list[Prediction]]:
    """What is answered when everything is asked, and a stop came after so many groups."""
    with pytest.raises(KeyboardInterrupt):
        list(Kept(folder, 2).answered(GROUPS, Counting(groups), print))
    said: list[str] = []
    again = Counting()
    found = list(Kept(folder, 2).answered(GROUPS, again, said.append))
    assert again.groups == 4 - groups
    assert said == (
        [f"goes on after {2 * groups} answers, which an earlier run of this command has kept"] * bool(groups)
    )
    return found


def test_answers_that_are_kept_are_not_computed_again(tmp_path: Path) -> None:
    unbroken = list(Counting()(GROUPS))
    for groups in range(4):
        (folder := tmp_path / str(groups)).mkdir()
        assert kept_after(folder, groups) == unbroken


@pytest.mark.parametrize("content", [b"", b"x" * 100, None])
def test_a_part_that_is_broken_is_answered_again(tmp_path: Path, content: bytes | None) -> None:
    unbroken = list(Kept(tmp_path, 2).answered(GROUPS, Counting(), print))
    part = tmp_path / "00000001.answers"
    whole = part.read_bytes()
    part.write_bytes(whole[:-1] + b"?" if content is None else content)
    again = Counting()
    assert list(Kept(tmp_path, 2).answered(GROUPS, again, print)) == unbroken
    assert again.groups == 3
    assert part.read_bytes() == whole


class Harmful:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, ("harm",)


def test_a_part_that_somebody_made_to_do_harm_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib
    import pickle

    monkeypatch.chdir(tmp_path)
    content = pickle.dumps([Harmful(), Harmful()])
    (tmp_path / "00000000.answers").write_bytes(hashlib.sha256(content).digest() + content)
    assert list(Kept(tmp_path, 2).answered(GROUPS, Counting(), print)) == list(Counting()(GROUPS))
    assert not (tmp_path / "harm").exists()


PREDICT = """\
import sys
from recurra.training import answering
answering.AHEAD = 8
from recurra.cli import main
sys.exit(main(sys.argv[1:]))
"""


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-c", PREDICT, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.slow
def test_a_command_that_was_stopped_goes_on_and_writes_the_same_bytes(
    tmp_path: Path, by: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "asked.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts(4000)))
    whole, out = tmp_path / "whole.csv", tmp_path / "out.csv"
    assert main(["predict", RUN, str(path), "--out", str(whole)]) == 0
    with started("predict", RUN, str(path), "--out", str(out), "--processes", "2") as process:
        until = time.monotonic() + 100
        while not list(tmp_path.glob("out.csv.parts/0000003?.answers")) and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(by)
        _, said = process.communicate()
    assert not out.exists()
    if by == signal.SIGINT:
        assert process.returncode == 130
        assert "stopped; what was answered is kept in" in said
        assert "Traceback" not in said
    capsys.readouterr()
    assert main(["predict", RUN, str(path), "--out", str(out)]) == 0
    told = capsys.readouterr().err
    assert "goes on after" in told
    assert "answers, which an earlier run of this command has kept" in told
    assert out.read_bytes() == whole.read_bytes()
    assert not (tmp_path / "out.csv.parts").exists()


def stopped_by_a_worker(out: Path, *, is_kept: bool) -> None:
    with unfinished(out, {}) as folder:
        if is_kept:
            Kept(folder, 1)._write(0, [])
        raise WorkerError("a worker died.")


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_worker_that_died_is_told_of_with_what_is_kept(tmp_path: Path, is_kept: bool) -> None:
    words = r"^a worker died\. What was answered is kept in .*parts: the same " if is_kept else r"^a worker died\.$"
    with pytest.raises(WorkerError, match=words):
        stopped_by_a_worker(tmp_path / "out.csv", is_kept=is_kept)
    assert (tmp_path / "out.csv.parts").exists() is is_kept


def test_answers_of_another_command_are_not_taken(
    asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    parts = tmp_path / "out.csv.parts"
    parts.mkdir()
    (parts / "00000000.answers").write_bytes(b"")
    (parts / "about.json").write_text('{"file": "another"}')
    assert main(["predict", RUN, str(asked), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "holds answers of another command (" in said
    assert "Remove that folder, or choose another name." in said
    assert (parts / "00000000.answers").exists()


def test_a_command_that_fails_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "asked.jsonl"
    path.write_text('{"text": "tea"}\nno JSON\n')
    assert main(["predict", RUN, str(path), "--out", str(tmp_path / "out.csv")]) == 2
    assert "asked.jsonl:2" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["asked.jsonl"]


# Formats


@pytest.mark.parametrize("ending", ["jsonl.gz", "jsonl.zst", "csv.gz", "parquet"])
def test_answers_are_written_compressed_and_as_parquet(asked: Path, tmp_path: Path, ending: str) -> None:
    if ending.endswith("zst"):
        pytest.importorskip("zstandard")
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    from recurra.data.formats import rows

    out, plain = tmp_path / f"out.{ending}", tmp_path / "plain.jsonl"
    assert main(["predict", RUN, str(asked), "--out", str(out)]) == 0
    assert main(["predict", RUN, str(asked), "--out", str(plain)]) == 0
    wanted = [row.values for row in rows(plain)]
    found = [row.values for row in rows(out)]
    assert [(row["text"], row["prediction"], float(str(row["score"]))) for row in found] == [
        (row["text"], row["prediction"], float(str(row["score"]))) for row in wanted
    ]
    assert {*found[0]} == {"text", "n", "prediction", "score"}
    if ending.endswith("gz"):
        assert out.read_bytes()[4:8] == b"\0\0\0\0"  # no time: equal answers are equal bytes
        assert len(gzip.decompress(out.read_bytes()).splitlines()) in (60, 61)


def test_parquet_keeps_all_columns_of_parquet_as_they_are(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table(
        {
            "text": texts(20),
            "score": arrow.array(range(20), arrow.int8()),  # a column of that name
            "day": arrow.array([0] * 20, arrow.date32()),
        }
    )
    parquet.write_table(table, tmp_path / "asked.parquet")
    out = tmp_path / "out.parquet"
    assert main(["predict", RUN, str(tmp_path / "asked.parquet"), "--out", str(out)]) == 0
    found = parquet.read_table(out)
    assert found.select(table.column_names).equals(table)
    assert found.column_names[len(table.column_names) :] == ["prediction", "predicted_score"]
    assert found["prediction"].null_count == 0


def test_every_file_of_a_folder_gets_a_file_of_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (source := tmp_path / "shards").mkdir()
    for name in ("b.jsonl", "a.jsonl.gz"):
        content = "".join(json.dumps({"text": text}) + "\n" for text in texts(20)).encode()
        (source / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    (source / "c.txt").write_text("tea\ngood cup\n")
    (source / "README.md").write_text("no data")
    target = tmp_path / "answers"
    assert main(["predict", RUN, str(source), "--out", str(target)]) == 0
    assert sorted(path.name for path in target.iterdir()) == ["a.jsonl.gz", "b.jsonl", "c.txt.jsonl"]
    assert gzip.decompress((target / "a.jsonl.gz").read_bytes()) == (target / "b.jsonl").read_bytes()
    assert len((target / "c.txt.jsonl").read_text().splitlines()) == 2
    capsys.readouterr()
    assert main(["predict", RUN, str(source), "--out", str(target)]) == 2
    assert "this folder exists already" in capsys.readouterr().err


def test_a_folder_goes_on_after_the_files_that_are_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (source := tmp_path / "shards").mkdir()
    for name in "abc":
        (source / f"{name}.jsonl").write_text(json.dumps({"text": name}) + "\n")
    (source / "d.jsonl").write_text("no JSON\n")
    target = tmp_path / "answers"
    assert main(["predict", RUN, str(source), "--out", str(target)]) == 2
    assert sorted(path.name for path in target.iterdir()) == ["a.jsonl", "b.jsonl", "c.jsonl", "unfinished.json"]
    before = (target / "a.jsonl").stat().st_mtime_ns
    capsys.readouterr()
    assert main(["predict", RUN, str(source), "--out", str(target)]) == 2
    assert "goes on after 3 of 4 files, whose answers are there already" in capsys.readouterr().err
    assert (target / "a.jsonl").stat().st_mtime_ns == before
    (source / "d.jsonl").write_text(json.dumps({"text": "d"}) + "\n")
    assert main(["predict", RUN, str(source), "--out", str(target)]) == 2
    assert "holds answers of another command (files differ)" in capsys.readouterr().err


def test_what_cannot_be_done_is_refused_in_words(
    tmp_path: Path, lines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, said in (
        ([str(empty)], "name the folder of the answers with --out FOLDER"),
        ([str(empty), "--out", str(tmp_path / "x")], "contains no data files"),
        ([str(lines), "--processes", "2", "--device", "cuda"], "cuda"),
    ):
        assert main(["predict", RUN, *arguments]) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["predict", RUN, str(lines), "--processes", "0"])
    assert "must be a whole number above 0, but is '0'" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="--processes 2 shares the work out over the cores of a CPU"):
        Sharded(Which(RUN, device="cuda"), Which(RUN).load(), 2)


@pytest.mark.slow
def test_an_exported_folder_is_shared_out_too(tmp_path: Path, asked: Path) -> None:
    folder = tmp_path / "exported"
    assert main(["export", RUN, str(folder)]) == 0
    written = []
    for processes in ("1", "2"):
        out = tmp_path / f"{processes}.csv"
        assert main(["predict", str(folder), str(asked), "--out", str(out), "--processes", processes]) == 0
        written.append(out.read_bytes())
    assert written[0] == written[1]


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_memory_stays_flat_on_200_megabytes(processes: str, tmp_path: Path) -> None:
    """Rows of a kilobyte, most of which is passed through: what is read is not kept until the end."""
    path, count = tmp_path / "large.jsonl", 200_000
    with open(path, "w") as file:
        for number in range(count):
            text = " ".join(WORDS[(number * step) % 6] for step in range(1, 3 + number % 5))
            file.write(json.dumps({"text": text, "note": f"{number:x}" * (1000 // len(f"{number:x}"))}) + "\n")
    assert path.stat().st_size > 200e6
    out = tmp_path / "answers.jsonl"
    command = ["predict", RUN, str(path), "--out", str(out), "--processes", processes]
    process = subprocess.Popen([sys.executable, "-m", "recurra", *command], stdout=-3, stderr=-3)
    held = list[float]()
    while process.poll() is None:
        held.append(resident(process.pid))
        time.sleep(0.1)
    assert process.returncode == 0
    with open(out, "rb") as file:
        assert sum(1 for _ in file) == count
    third = len(held) // 3
    assert max(held[2 * third :]) < 1.1 * max(held[third : 2 * third])
    assert max(held) < 600 * (1 + (int(processes) if processes != "1" else 0))  # most of it is torch, in each process


def resident(process: int) -> float:
    """Megabytes that a process and its children hold."""
    total, waiting = 0.0, [process]
    while waiting:
        number = waiting.pop()
        try:
            status = Path(f"/proc/{number}/status").read_text()
            total += next(int(line.split()[1]) / 1000 for line in status.splitlines() if line.startswith("VmRSS"))
            for thread in Path(f"/proc/{number}/task").iterdir():
                waiting += map(int, (thread / "children").read_text().split())
        except (OSError, StopIteration):  # it has just ended
            continue
    return total
