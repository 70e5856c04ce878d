"""`--valid 10%`: a share of the training files is held out, by every task in its own way, and never trained on."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file

import recurra
from recurra import runs
from recurra.cli import main
from recurra.config import TaggingData
from recurra.config.share import FilePart, Shares
from recurra.data.check import check
from recurra.data.formats.reader import Row
from recurra.errors import ConfigError, DataError, RecurraError
from recurra.named import catalogue
from recurra.reading.parts import drawn
from recurra.tasks.task import Task
from recurra.training.preparation import prepared
from recurra.training.progress import PlainLines, Silent
from tests.outside import ctc, similarity
from tests.tasks.contracts import LOOP, SMALL

ROWS = 40
WORDS = [f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(ROWS)]
"""One word for each row, so that it can be told from a vocabulary which rows were counted."""


class Case(NamedTuple):
    """A task and a file of forty examples, all different."""

    task: str
    file: str
    lines: Sequence[str]
    settings: Sequence[str] = ()

    def write(self, folder: Path) -> Path:
        path = folder / self.file
        path.write_text("".join(f"{line}\n" for line in self.lines), "utf-8")
        return path


CASES = {
    "tagging": Case("tagging", "a.conll", [f"{word}\t{'NV'[n % 2]}\n" for n, word in enumerate(WORDS)]),
    "classification": Case(
        "classification", "a.csv", ["text,label", *(f"{word},{'ab'[n % 2]}" for n, word in enumerate(WORDS))]
    ),
    "seq2seq": Case("seq2seq", "a.tsv", [f"{word}\t{word.upper()}" for word in WORDS]),
    "vec2seq": Case("vec2seq", "a.tsv", [f"{n}\t1\t{word}" for n, word in enumerate(WORDS)]),
    "language_model": Case("language_model", "a.txt", WORDS, ["data.independent=true"]),
    "forecasting": Case(
        "forecasting",
        "a.jsonl",
        [json.dumps({"frames": [[float(n)], [n + 1.0], [2.0]]}) for n in range(ROWS)],
        ["decoding.horizon=1"],
    ),
    "question_answering": Case(
        "question_answering", "a.tsv", [f"it is {word}.\twhat is it?\t{'ab'[n % 2]}" for n, word in enumerate(WORDS)]
    ),
    "ctc": Case(
        f"{ctc.CTC.__module__}:CTC",
        "a.jsonl",
        [json.dumps({"frames": [[float(n), 0], [1, 1]], "target": "a"}) for n in range(ROWS)],
    ),
    "similarity": Case(
        f"{similarity.Similarity.__module__}:Similarity", "a.tsv", [f"{word}\t{word} two\t{1}" for word in WORDS]
    ),
}


def setup(case: Case, path: Path, *settings: str) -> runs.Setup:
    small = [each for each in SMALL if "validate" not in each]
    return runs.setup(case.task, given={"train": str(path)}, overrides=[*small, *case.settings, *settings])


def parts_of(this: runs.Setup) -> tuple[Task[Any, Any, Any], dict[str, list[int]]]:
    """The task and the lines of the examples in each part; those of training are what is in its store."""
    task, store = prepared(this.kind, this.settings, lambda _: None)
    trained = [int(store[row]["place"][1]) if "place" in store[row] else row for row in range(len(store))]
    held = {name: list(task.read(task.settings.data.files(name))) for name in ("valid", "test")}
    lines = {name: [task.origin(example)[1] for example in examples] for name, examples in held.items()}
    return task, {"train": trained, **lines}


@pytest.mark.parametrize("name", CASES)
def test_parts_have_no_example_in_common_and_are_all_there_is(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    path = case.write(tmp_path)
    _, whole = parts_of(setup(case, path))
    _, parts = parts_of(setup(case, path, "data.valid=20%", "data.test=10%"))
    assert {part: len(lines) for part, lines in parts.items()} == {"train": 28, "valid": 8, "test": 4}
    assert {*parts["valid"]}.isdisjoint(parts["test"])
    assert sorted(line for lines in parts.values() for line in lines) == sorted(whole["train"])


def test_every_task_of_the_house_has_a_case() -> None:
    assert {*catalogue(Task)} <= {case.task for case in CASES.values()}


@pytest.mark.parametrize("name", ["tagging", "classification", "seq2seq", "similarity"])
def test_vocabularies_are_made_of_the_training_part_alone(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    words = ["data.source.tokens=words"] if name == "seq2seq" else []
    task, _ = parts_of(setup(case, case.write(tmp_path), "data.valid=20%", *words))
    task.save(tmp_path)
    known = "".join(file.read_text("utf-8") for file in tmp_path.glob("*.json"))
    held = list(task.read(task.settings.data.files("valid")))
    heard = [word for word in WORDS if f'"{word}"' in known]
    assert len(heard) == ROWS - len(held) == 32
    assert not any(f"'{word}'" in repr(example) for word in heard for example in held)


def test_equal_inputs_stay_together_also_in_two_files(tmp_path: Path) -> None:
    one, other = tmp_path / "a.tsv", tmp_path / "b.tsv"
    one.write_text("".join(f"{word}\tA B\n{word}\tC D\n" for word in WORDS), "utf-8")
    other.write_text("".join(f"{word}\tE F\n" for word in WORDS), "utf-8")
    this = runs.setup("seq2seq", given={"train": [str(one), str(other)], "valid": "25%"}, overrides=SMALL)
    task, store = prepared(this.kind, this.settings, lambda _: None)
    held = list(task.read(task.settings.data.files("valid")))
    assert (len(held), len(store)) == (30, 90)
    assert all(sum(pair.source == again.source for again in held) == 3 for pair in held)


def test_another_seed_draws_other_examples_and_training_seed_does_not(tmp_path: Path) -> None:
    case = CASES["classification"]
    path = case.write(tmp_path)
    given = ["data.valid=20%", "data.seed={}", "training.seed={}"]
    first, again, other = (
        parts_of(setup(case, path, *(each.format(seed) for each, seed in zip(given, ("", *seeds), strict=True))))[1]
        for seeds in ((1, 1), (1, 5), (2, 1))
    )
    assert first == again
    assert {*first["valid"]} != {*other["valid"]}


def test_the_cache_keeps_splits_apart_and_finds_each_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    case = CASES["classification"]
    path = case.write(tmp_path)
    found: dict[str, set[int]] = {}
    for share in ("10%", "20%", "10%"):
        said: list[str] = []
        this = setup(case, path, "data.cache=true", f"data.valid={share}")
        task, store = prepared(this.kind, this.settings, said.append)
        lines = {int(store[row]["place"][1]) for row in range(len(store))}
        assert lines.isdisjoint(example.line for example in task.read(task.settings.data.files("valid")))
        assert any("read " in each for each in said) == (share not in found)
        assert found.setdefault(share, lines) == lines
    assert len(found["10%"]) == 36
    assert len(found["20%"]) == 32


def test_a_resumed_run_holds_the_same_examples_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES["classification"]
    data = str(case.write(tmp_path))
    small = [word for each in (*SMALL, *LOOP, "model.characters.cell=none") for word in ("--set", each)]
    given = ["train", "classification", "--train", data, "--valid", "20%", "--test", "10%", *small]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert main([*given, "--out", str(whole)]) == 0
    said = capsys.readouterr()
    assert "valid: 8 of 40 examples, drawn by seed 1\n" in said.err
    assert "test: 4 of 40 examples, drawn by seed 1\n" in said.err
    assert "valid data: 8 of 40 examples, drawn by seed 1\n" in said.out
    assert main([*given, "--set", "training.steps=2", "--out", str(broken)]) == 0
    assert main(["train", str(broken), "--resume", "--set", "training.steps=4"]) == 0
    assert "valid: 8 of 40 examples, drawn by seed 1\n" in capsys.readouterr().err
    one, other = (load_file(run / "model.safetensors") for run in (whole, broken))
    assert all(torch.equal(one[name], other[name]) for name in one)
    summary = json.loads((whole / "summary.json").read_text("utf-8"))
    assert summary["data"]["valid"]["share"] == "20%"
    assert summary["data"]["valid"]["held_out"] == "8 of 40 examples, drawn by seed 1"
    assert summary["data"]["train"]["rows"] == 28
    assert "20% of a.csv" in (whole / "card.md").read_text("utf-8")
    assert "20% of " in (whole / "report.html").read_text("utf-8")
    assert len((whole / "samples.json").read_text("utf-8").splitlines()) > 2
    # What was held out is scored as a file with the same rows is.
    model = recurra.load(whole)
    held = tmp_path / "held.csv"
    rows = list(model.task.read(model.task.settings.data.files("valid")))
    held.write_text("text,label\n" + "".join(f"{row.text},{row.labels[0]}\n" for row in rows), "utf-8")
    scores = model.evaluate(held).values
    assert scores["nll"] == pytest.approx(summary["best"]["scores"]["nll"], abs=1e-6)
    assert main(["info", str(whole)]) == 0
    assert "valid data: 8 of 40 examples" in capsys.readouterr().out
    assert main(["train", str(broken), "--resume", "--set", "data.valid=30%"]) == 2
    assert "--resume cannot change which examples are held out" in capsys.readouterr().err


def test_a_share_is_given_in_python_as_well(tmp_path: Path) -> None:
    case = CASES["similarity"]
    few = {"training.steps": 1, "model.hidden": 4, "model.embedding": 4, "data.cache": False}
    recurra.train(case.task, train=case.write(tmp_path), valid="10%", out=tmp_path / "run", settings=few)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    assert summary["data"]["valid"]["held_out"] == "4 of 40 examples, drawn by seed 1"


# In time, and from the end of a text


def series(path: Path, lengths: Sequence[int]) -> Path:
    rows = [f"{name},{step},{100 * name + step}" for name, steps in enumerate(lengths) for step in range(steps)]
    path.write_text("series,time,level\n" + "".join(f"{row}\n" for row in rows), "utf-8")
    return path


def forecasting(path: Path, *settings: str) -> runs.Setup:
    return runs.setup("forecasting", given={"train": str(path)}, overrides=[*SMALL, "data.window=8", *settings])


def test_the_end_of_every_series_is_held_out_and_only_that_is_scored(tmp_path: Path) -> None:
    this = forecasting(series(tmp_path / "a.csv", [20, 40, 2]), "data.valid=10%", "data.test=20%")
    task, store = prepared(this.kind, this.settings, lambda _: None)
    read = {name: list(task.read(task.settings.data.files(name))) for name in ("train", "valid", "test")}
    levels = {name: [part.values[part.known].tolist() for part in parts] for name, parts in read.items()}
    assert levels["train"] == [[*range(14)], [*range(100, 128)], [200, 201]]  # the last is too short to be cut
    assert levels["valid"] == [[14, 15], [128, 129, 130, 131]]
    assert levels["test"] == [[16, 17, 18, 19], [*range(132, 140)]]
    first = read["valid"][0]
    assert first.values[:, 0].tolist() == [*range(6, 16)]  # the eight steps before are read, so that there is a past
    held = runs.held_out(task, store, Silent())
    assert runs.share_in_words(task, store, held, "valid") == "6 of 62 steps, the end of each of 2 series"


def test_forecasts_of_a_held_out_part_begin_in_it(tmp_path: Path) -> None:
    this = forecasting(series(tmp_path / "a.csv", [40]), "data.valid=10%", "decoding.horizon=2")
    task, _ = prepared(this.kind, this.settings, lambda _: None)
    examples = list(task.read(task.settings.data.files("valid")))
    torch.manual_seed(1)
    outputs = task.outputs(task.build().eval(), [task.encode(each) for each in examples], device="cpu")
    assert outputs is not None
    assert outputs[0].origins.tolist() == [8, 9, 10, 11]
    assert task.score(examples, outputs).values["count"] == 4


def test_whole_sequences_are_drawn_where_a_row_is_one(tmp_path: Path) -> None:
    case = CASES["forecasting"]
    this = setup(case, case.write(tmp_path), "data.valid=10%")
    task, store = prepared(this.kind, this.settings, lambda _: None)
    held = runs.held_out(task, store, Silent())
    said = runs.share_in_words(task, store, held, "valid")
    assert said == "4 of 40 whole sequences, drawn by seed 1"


@pytest.mark.parametrize("independent", [True, False])
def test_the_end_of_a_text_is_held_out_over_all_files_of_a_folder(tmp_path: Path, *, independent: bool) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.txt").write_text("".join(f"{word}\n" for word in WORDS[10 * number :][:10]), "utf-8")
    settings = [*SMALL, f"data.independent={str(independent).lower()}", "data.valid=30%", "data.text.tokens=words"]
    this = runs.setup("language_model", given={"train": str(folder)}, overrides=settings)
    task, store = prepared(this.kind, this.settings, lambda _: None)
    texts = {
        name: "\n".join(each.text for each in task.read(task.settings.data.files(name))).split()
        for name in ("train", "valid")
    }
    assert texts == {"train": WORDS[:28], "valid": WORDS[28:]}
    held = runs.held_out(task, store, Silent())
    said = runs.share_in_words(task, store, held, "valid")
    end = "whole lines at the end of the text" if independent else "the end of the text"
    assert said == f"24 of 80 tokens, {end}"


# What is refused


@pytest.mark.parametrize(
    ("valid", "said"),
    [
        ("0%", "data.valid = '0%' must be above 0% and below 100% of the training data"),
        ("100%", "data.valid = '100%' must be above 0% and below 100% of the training data"),
        ("0.1", "data.valid = '0.1' is not a file: for a share of the data write 10%."),
        (".25", "data.valid = '.25' is not a file: for a share of the data write 25%."),
        ("10 %", "data.valid = '10 %' is not a share of the training data: write 10%, without a blank."),
        ("abc%", "data.valid = 'abc%' is not a share of the training data: write a number, such as 10%."),
        (["10%", "b.csv"], "is more than a share: give either one share of the training data, such as 10%, or files."),
    ],
)
def test_a_share_that_makes_no_sense_is_refused(valid: str | list[str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        recurra.train("classification", train="a.csv", valid=valid, out="nowhere")
    assert said in str(refused.value)
    assert str(refused.value).startswith("valid=: ")


def test_shares_that_leave_nothing_and_a_seed_for_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"data.valid = '60%' and data.test = '40%' leave nothing to train on"):
        TaggingData(train="a.conllu", valid="60%", test="40%")
    with pytest.raises(ConfigError, match=r"data.seed = 7 has no effect: neither data.valid nor data.test is a share"):
        TaggingData(train="a.conllu", valid="b.conllu", seed=7)


@pytest.mark.parametrize(
    ("name", "share", "said"),
    [
        ("classification", "1%", "a.csv: data.valid = 1% holds out nothing of 40 examples. Take a larger share"),
        ("classification", "99%", "a.csv: data.valid = 99% leaves nothing of 40 examples to train on. Take a smaller"),
        ("language_model", "1%", "a.txt: data.valid = 1% holds out nothing of 280 characters, cut at the end of a li"),
    ],
)
def test_a_share_of_too_few_examples_is_refused(name: str, share: str, said: str, tmp_path: Path) -> None:
    case = CASES[name]
    this = setup(case, case.write(tmp_path), f"data.valid={share}")
    with pytest.raises(RecurraError) as refused:
        runs.begin(this, tmp_path / "run", Silent())
    assert said in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_a_share_of_examples_that_are_equal_says_how_many_are_different() -> None:
    parts = [FilePart("a.csv", "valid", Shares(valid=0.2, test=0.0, seed=1))]
    with pytest.raises(DataError, match=r"holds out nothing of 40 examples \(2 different: equal ones stay together\)"):
        list(drawn(parts, lambda: iter(["one", "two"] * 20), str.encode))


def test_series_that_are_too_short_to_be_cut_are_refused(tmp_path: Path) -> None:
    this = forecasting(series(tmp_path / "a.csv", [3, 3]), "data.valid=10%")
    with pytest.raises(
        RecurraError, match=r"a.csv: data.valid = 10% holds out nothing of 6 steps. Take a larger share"
    ):
        runs.begin(this, tmp_path / "run", Silent())


class WholeFiles(similarity.Similarity):
    """A task that opens files by itself, and so knows nothing of parts."""

    def read(self, files: Sequence[str | Path]) -> Iterator[Row]:
        for number, file in enumerate(files):
            for line, text in enumerate(Path(file).read_text("utf-8").splitlines(), 1):
                first, second, value = text.split("\t")
                yield Row({"first": first, "second": second, "value": value}, line, number)


def test_a_task_that_reads_whole_files_cannot_hold_a_share_out(tmp_path: Path) -> None:
    path = CASES["similarity"].write(tmp_path)
    few = {"training.steps": 1, "data.cache": False, "data.valid": "10%"}
    with pytest.raises(ConfigError, match=r"data.valid = '10%' holds nothing out: WholeFiles reads whole files"):
        recurra.train(f"{__name__}:WholeFiles", train=path, out=tmp_path / "run", settings=few)


def test_what_is_alike_only_for_the_model_is_reported_as_overlap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    texts = [text for word in WORDS for text in (f"{word} it", f"{word}  it")]  # cut into words, these are equal
    path.write_text("text,label\n" + "".join(f"{text},{'ab'['a' in text[5:]]}\n" for text in texts), "utf-8")
    case = CASES["classification"]._replace(lines=path.read_text("utf-8").splitlines())
    small = ["model.characters.cell=none", "model.embedding=4", "data.valid=20%"]
    this = setup(case, path, *small)
    runs.begin(this, tmp_path / "run", PlainLines(sys.stderr))
    assert " of 16 valid examples" in capsys.readouterr().err


# What `recurra check` proposes


@pytest.mark.parametrize(
    ("task", "name", "rows", "share"),
    [
        ("classification", "a.csv", ["text,label", *(f"say {n},{'ab'[n % 2]}" for n in range(120))], "10%"),
        ("forecasting", "a.csv", ["date,rain", *(f"{1900 + n},{n % 7}" for n in range(60))], "20%"),
        ("language_model", "a.txt", [f"a line of text, number {n}" for n in range(100)], "10%"),
    ],
)
def test_check_proposes_a_share_where_there_is_no_file_for_validation_and_its_command_trains(
    task: str,
    name: str,
    rows: list[str],
    share: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("".join(f"{row}\n" for row in rows), "utf-8")
    [command] = [service.command for service in check([name]).tasks if service.task == task]
    assert command is not None
    assert f"--train {name} --valid {share} --out runs/{task}" in command
    small = [word for each in (*SMALL, "training.steps=1") for word in ("--set", each)]
    assert main([*shlex.split(command)[1:], *small]) == 0
    assert "valid: " in capsys.readouterr().err


def test_check_proposes_no_share_of_a_small_file_or_beside_a_file_for_validation(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("text,label\n" + "".join(f"say {n},{'ab'[n % 2]}\n" for n in range(120)), "utf-8")
    few = tmp_path / "b.csv"
    few.write_text("text,label\n" + "".join(f"say {n},{'ab'[n % 2]}\n" for n in range(20)), "utf-8")
    for report in (check([few]), check([file], valid=[few])):
        assert not any("%" in (service.command or "") for service in report.tasks)
