"""Tags of spans written in another scheme than the learned one, and answers as CoNLL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import recurra
from recurra.cli import main
from recurra.data.formats.conll import CoNLL
from recurra.errors import ConfigError
from recurra.runs import begin, setup
from recurra.runtime.hosted import Hosted
from recurra.tasks.tagging import Tagging
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.tasks.test_raw_tagging import FEW, treebank
from tests.tasks.test_tagging import SMALL, write

WORDS = ["Ada Lovelace met Alan Turing Grace Hopper in London", "Paris Rome", "no name"]
WRITTEN = {
    "bio": ["B-p I-p O B-p I-p B-p I-p O B-l", "B-l B-l", "O O"],
    "bioes": ["B-p E-p O B-p E-p B-p E-p O S-l", "S-l S-l", "O O"],
    "iob1": ["I-p I-p O I-p I-p B-p I-p O I-l", "I-l B-l", "O O"],
}
"""The same spans in each scheme, by hand."""


def conll(scheme: str) -> str:
    rows = zip(WORDS, WRITTEN[scheme], strict=True)
    pairs = (zip(words.split(), tags.split(), strict=True) for words, tags in rows)
    return "".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) + "\n" for sentence in pairs)


def trained(folder: Path, file: str, *more: str) -> Trained:
    begin(setup("tagging", given={"train": file}, overrides=[*SMALL, *more]), folder / "run", Silent())
    return load(folder / "run")


@pytest.fixture(scope="module", params=["bio", "bioes", "iob1"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp(request.param)
    return trained(folder, write(folder / "train.conll", conll(request.param)), "training.epochs=40")


def predicted(capsys: pytest.CaptureFixture[str], run: Trained, *arguments: str) -> str:
    assert main(["predict", str(run.folder), *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("scheme", ["bio", "bioes", "iob1"])
def test_spans_are_written_in_the_scheme_that_is_asked_for(
    run: Trained, scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, asked = write(tmp_path / "a.txt", "\n".join(WORDS) + "\n"), ["--set", f"decoding.scheme={scheme}"]
    assert predicted(capsys, run, file, *asked).splitlines() == WRITTEN[scheme]
    assert predicted(capsys, run, file, *asked, "--format", "conll") == conll(scheme)
    told = [json.loads(line)["tags"] for line in predicted(capsys, run, file, *asked, "--json").splitlines()]
    assert told == [tags.split() for tags in WRITTEN[scheme]]
    in_misc = predicted(capsys, run, file, *asked, "--format", "conllu")
    assert [line.split("tags=")[1] for line in in_misc.splitlines() if "tags=" in line] == " ".join(
        WRITTEN[scheme]
    ).split()


def test_without_a_scheme_answers_are_as_the_run_has_learned_them(
    run: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    own = (run.folder.parent / "train.conll").read_text()
    assert predicted(capsys, run, str(run.folder.parent / "train.conll"), "--format", "conll") == own


def test_a_run_may_keep_its_scheme_and_judges_answers_in_it(tmp_path: Path) -> None:
    file = write(tmp_path / "train.conll", conll("bio"))
    run = trained(tmp_path, file, "training.epochs=40", "decoding.scheme=bioes")
    examples = list(run.task.read([file]))
    answers = list(run.predict(WORDS))
    assert [answer.output for answer in answers] == WRITTEN["bioes"]
    judge = run.task.judge(examples)
    assert [judge(*pair) for pair in zip(examples, answers, strict=True)] == [(True, "")] * 3
    assert run.evaluate(file).values["f1"] == 1


def test_conll_is_read_back_and_scored(run: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = str(run.folder.parent / "train.conll"), tmp_path / "out.conll"
    assert "3 answers written to" in predicted(capsys, run, file, "--out", str(out))
    assert [(row.values, row.line) for row in CoNLL().read(out)] == [
        (row.values, row.line) for row in CoNLL().read(file)
    ]


def test_conll_has_every_column_of_raw_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = treebank(20).replace("\tdit\t_\tVERB", "\tdit\tdire\tVERB").replace("\tthé\t_", "\tthé\tthé vert")
    file = write(tmp_path / "train.conllu", text)
    run = recurra.train("tagging", train=file, out=tmp_path / "run", settings={**FEW, "data.tags": ["upos", "lemma"]})
    raw = write(tmp_path / "raw.txt", "Du thé! Il dit non.")
    assert predicted(capsys, run, raw, "--format", "conll") == (
        "De\tADP\t_\nle\tDET\t_\nthé\tNOUN\tthé vert\n!\tPUNCT\t_\n\n"
        "Il\tPRON\t_\ndit\tVERB\tdire\nnon\tADV\t_\n.\tPUNCT\t_\n\n"
    )
    assert predicted(capsys, run, file, "--format", "conll").startswith("De\tADP\t_\nle\tDET\t_\n")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a\tX\nb\tY\n\n", ["--set", "decoding.scheme=bio"], "decoding.scheme = 'bio' writes tags of spans"),
        ("a\tX\nb\tY\n\n", ["--format", "xml"], "--format xml is not known: tagging writes conllu or conll."),
        ("a\tX\nb\tY\n\n", ["--format", "conll", "--out", "a.csv"], "the file must end in .conll."),
        ("a\tX\nb\tY\n\n", ["--out", "a.xml"], "Taggers also write .conllu and .conll."),
    ],
)
def test_what_cannot_be_written_is_refused(
    content: str, options: Sequence[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "a.conll", content)
    run = trained(tmp_path, file, "training.steps=1")
    assert main(["predict", str(run.folder), file, *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"frames": [[0, 1]], "tags": ["A"]}, "--format conll writes words, but this run tags frames of numbers"),
        (
            {"tokens": ["a"], "tags": ["A"], "label": "x"},
            "--format conll has no place for the label of a whole sentence, which this run also predicts: use --json",
        ),
    ],
)
def test_conll_is_words_and_tags_alone(
    row: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "a.jsonl", json.dumps(row) + "\n")
    run = trained(tmp_path, file, "training.steps=1", *(["data.tags=['tags']"] if "label" in row else []))
    assert main(["predict", str(run.folder), file, "--format", "conll"]) == 2
    assert message in capsys.readouterr().err


def test_numbers_of_words_have_no_place_in_conll(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.jsonl", '{"tokens": ["a", "b"], "height": [1.0, 2.0]}\n')
    run = trained(tmp_path, file, "training.steps=1", 'data.values=["height"]', 'data.tokens="tokens"')
    assert main(["predict", str(run.folder), file, "--format", "conll"]) == 2
    assert "no place for numbers of words (data.values)" in capsys.readouterr().err


def test_no_score_depends_on_the_scheme(run: Trained, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(run.folder.parent / "train.conll")
    assert main(["evaluate", str(run.folder), file, "--set", "decoding.scheme=bio"]) == 2
    assert "decoding.scheme has no effect: no score depends on it" in capsys.readouterr().err


def test_a_page_offers_the_scheme_where_there_are_spans(run: Trained, tmp_path: Path) -> None:
    assert [each["name"] for each in Hosted("a", str(run.folder)).about["decoding"]] == ["scheme"]
    file = write(tmp_path / "a.conll", "a\tX\nb\tY\n\n")
    other = trained(tmp_path, file, "training.steps=1")
    assert Hosted("a", str(other.folder)).about["decoding"] == []


def test_a_page_in_one_file_has_the_learned_scheme_alone(run: Trained) -> None:
    task = run.with_settings({"decoding.scheme": "bio"}).task
    assert isinstance(task, Tagging)
    with pytest.raises(ConfigError, match="another scheme than it has learned"):
        task.offline()
