"""Two texts read together: pairings learn a grammar of entailment, readers find who is asked for; and refusals."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from torch.testing import assert_close

from recurra import load
from recurra.cli import main
from recurra.config import ClassificationSettings
from recurra.config.given import Given
from recurra.errors import ConfigError, DataError, RecurraError
from recurra.named import catalogue
from recurra.pairings import Pairing
from recurra.runs import begin, setup
from recurra.tasks.classification import Classification
from recurra.training.progress import Silent
from recurra.training.trained import Trained

ROOT = Path(__file__).parents[2]

SMALL = [
    *("model.embedding=16", "model.characters.cell=none", "model.dropout=0", "model.word_dropout=0"),
    *("data.cache=false", "training.device=cpu", "training.threads=1", "training.average=none"),
    *("training.learning_rate=0.02", "training.batch_size=30"),
]


def generator(name: str) -> ModuleType:
    """examples/data/NAME.py."""
    found = importlib.util.spec_from_file_location(name, ROOT / "examples" / "data" / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules.setdefault(name, module)
    found.loader.exec_module(module)
    return module


GRAMMAR, CLOZE = generator("entailment"), generator("cloze")


def trained(folder: Path, file: Path, *overrides: str, start_from: Path | None = None) -> Trained:
    this = setup("classification", given={"train": str(file)}, overrides=[*SMALL, *overrides], start_from=start_from)
    begin(this, folder / "run", Silent())
    return load(folder / "run")


def pairs_in(folder: Path, count: int = 60, seed: int = 1) -> Path:
    file = folder / "pairs.tsv"
    GRAMMAR.write(file, GRAMMAR.pairs(count, seed=seed))
    return file


PAIRINGS = {
    "siamese": "model.pairing=siamese",
    "conditional": 'model.pairing={name="conditional", attention="additive"}',
    "word_by_word": "model.pairing=word_by_word",
    "decomposable": 'model.pairing={name="decomposable", size=16, within=true, compare="all"}',
    "attentive": "model.pairing=attentive",
    "impatient": "model.pairing=impatient",
}


def test_every_pairing_is_trained() -> None:
    assert {*PAIRINGS} == {*catalogue(Pairing)}


@pytest.mark.parametrize("name", PAIRINGS)
def test_pairs_are_learned_by_heart_and_answered_the_same_alone(tmp_path: Path, name: str) -> None:
    file = pairs_in(tmp_path, 12)
    hidden = [] if name == "decomposable" else ["model.hidden=12"]
    model = trained(tmp_path, file, PAIRINGS[name], *hidden, "training.steps=20", "training.learning_rate=0.05")
    rows = GRAMMAR.pairs(12, seed=1)
    asked = [f"{row.premise}\t{row.hypothesis}" for row in rows]
    assert [answer.output for answer in model.predict(asked)] == [row.label for row in rows]
    model.model.double()
    together = model.predict(asked[:2], detail=True)
    for one, text in zip(together, asked, strict=False):
        [alone] = model.predict([text], detail=True)
        assert one.score == pytest.approx(alone.score, abs=1e-9)
        assert one.detail.get("attention") == alone.detail.get("attention")


GRASPING = {
    "siamese": ["model.pairing=siamese", "model.hidden=48"],
    "decomposable": ['model.pairing={name="decomposable", size=64, layers=1, compare="all"}', "model.dropout=0.1"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GRASPING)
def test_new_pairs_of_the_grammar_are_understood(tmp_path: Path, name: str) -> None:
    options = ["training.steps=1500", "training.learning_rate=0.005", "model.embedding=48"]
    model = trained(tmp_path, pairs_in(tmp_path, 6000), *GRASPING[name], *options)
    GRAMMAR.write(tmp_path / "new.tsv", GRAMMAR.pairs(300, seed=2))
    assert model.evaluate(tmp_path / "new.tsv").values["accuracy"] > 0.95


def test_a_reader_answers_with_an_entity_of_its_document(tmp_path: Path) -> None:
    file = tmp_path / "cloze.tsv"
    CLOZE.write(file, CLOZE.clozes(40, seed=1, entities=6, sentences=3))
    options = ["data.label=answer", "model.pairing=attentive", "model.candidates=text", "model.hidden=12"]
    model = trained(tmp_path, file, *options, "training.steps=3")
    for row in CLOZE.clozes(20, seed=2, entities=6, sentences=3):
        [answer] = model.predict([f"{row.document}\t{row.question}"], detail=True)
        p = answer.detail["probabilities"]
        assert answer.output in row.document.split()
        assert sum(p.values()) == pytest.approx(1, abs=1e-4)
        assert all(value == 0 for name, value in p.items() if name not in row.document.split())
        assert len(answer.detail["attention"]) == 1
        assert len(answer.detail["attention"][0]) == len(row.document.split())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["word_by_word", "attentive", "impatient"])
def test_readers_find_who_is_asked_for(tmp_path: Path, name: str) -> None:
    file, new = tmp_path / "cloze.tsv", tmp_path / "new.tsv"
    CLOZE.write(file, CLOZE.clozes(4000, seed=1, entities=6, sentences=4))
    CLOZE.write(new, CLOZE.clozes(300, seed=2, entities=6, sentences=4))
    options = ["data.label=answer", f"model.pairing={name}", "model.candidates=text", "model.hidden=32"]
    model = trained(tmp_path, file, *options, "training.steps=1000", "training.learning_rate=0.01")
    assert model.evaluate(new).values["accuracy"] > 0.9


def test_a_row_whose_class_the_text_does_not_name_is_not_trained_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("document\tquestion\tlabel\nann met bob\twho\tann\nbob slept\twho\tann\nbob ran\twho\tbob\n")
    options = [word for each in (*SMALL, "model.candidates=text", "training.steps=2") for word in ("--set", each)]
    assert main(["train", "classification", "--train", str(file), "--out", str(tmp_path / "run"), *options]) == 0
    said = "".join(capsys.readouterr())
    assert "left out 1 of 3 examples: its class" in said
    assert "its class does not occur in the text, where model.candidates = 'text' looks for it" in said
    [answer] = load(tmp_path / "run").predict(["nobody\twho"], detail=True)  # no class is named: all can be answered
    assert {*answer.detail["probabilities"]} == {"ann", "bob"}
    assert min(answer.detail["probabilities"].values()) > 0


def test_another_run_gives_its_words_and_its_pairing(tmp_path: Path) -> None:
    options = ["model.pairing=word_by_word", "model.hidden=6"]
    old = trained(tmp_path, pairs_in(tmp_path), *options, "training.steps=2")
    other = tmp_path / "other.tsv"
    GRAMMAR.write(other, GRAMMAR.pairs(12, seed=5))
    new = trained(
        tmp_path / "new",
        other,
        *options,
        "training.steps=1",
        "training.learning_rate=1e-9",
        start_from=tmp_path / "run",
    )
    for name, weight in new.model.named_parameters():
        if name.startswith("encoders.") or name == "readouts.0.weight":
            before = old.model.get_parameter(name)
            order = (
                [old.task.labels.id(label) for label in new.task.labels]  # type: ignore[attr-defined]
                if name == "readouts.0.weight"
                else slice(None)
            )
            assert_close(weight, before[order], atol=1e-6, rtol=0)


HEADERS = {
    "premise\thypothesis\tlabel": ("premise", "hypothesis", "label"),
    "label\tPremise\tHypothesis": ("Premise", "Hypothesis", "label"),
    "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score": (
        *("sentence_A", "sentence_B", "entailment_label"),
    ),
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment": (
        *("sentence_A", "sentence_B", "entailment_judgment"),
    ),
    "gold_label\tsentence1_parse\tsentence2_parse\tsentence1\tsentence2\tpairID\tlabel1\tlabel2": (
        *("sentence1", "sentence2", "gold_label"),
    ),
    "qid\tquestion1\tquestion2\tlabel": ("question1", "question2", "label"),
    "document\tquestion\tlabel": ("document", "question", "label"),
}


@pytest.mark.parametrize("header", HEADERS)
def test_two_texts_are_found_by_the_usual_names_of_columns(
    tmp_path: Path, header: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, label = HEADERS[header]
    names = header.split("\t")
    rows = []
    for number in range(24):
        cells = {name: f"{name[:4]} words of {number} here" for name in names}
        cells |= {name: f"{number}r{name}" for name in names if name.lower().endswith("id")}
        cells |= {name: f"{1 + number % 4}.5" for name in names if name.endswith("score")}
        cells |= {name: ["entailment", "neutral", "contradiction"][number % 3] for name in names if "label" in name}
        cells |= {name: ["entailment", "neutral"][number % 2] for name in names if "judgment" in name}
        rows.append("\t".join(cells.values()))
    file = tmp_path / "a.tsv"
    file.write_text("\n".join([header, *rows]) + "\n")
    data = Classification.resolved(setup("classification", given={"train": str(file)}).settings).data
    assert (data.text.column, data.second, data.label) == (first, second, label)
    assert main(["check", str(file)]) == 0
    said = capsys.readouterr().out
    assert f"--set data.text={first} --set data.second={second}" in said
    assert label == "label" or f"--set data.label={label}" in said


def test_check_takes_columns_without_names_for_a_pair_where_the_classes_are_those_of_entailment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.tsv"
    rows = GRAMMAR.pairs(60, seed=1)
    file.write_text("".join(f"{r.premise}\t{r.hypothesis}\t{r.label}\t{1 + n % 5}\n" for n, r in enumerate(rows)))
    assert main(["check", str(file)]) == 0
    said = capsys.readouterr().out
    assert """--set 'data.columns=["premise","hypothesis","label","_"]'""" in said
    assert "a guess: it takes column1 and column2 as premise and hypothesis, because column3 has the classes" in said
    file.write_text("".join(f"{r.premise}\t{r.hypothesis}\t{r.label[:3]}\n" for r in rows))
    assert main(["check", str(file)]) == 0
    assert "To read column2 together with it, add --set data.second=column2" in capsys.readouterr().out


def test_check_takes_a_pair_for_repeated_only_where_both_texts_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["a dog runs\ta dog rests\tneutral\n", "a dog runs\ta cat rests\tneutral\n"] * 12
    file = tmp_path / "a.tsv"
    for header, read in (("", "column1 and column2"), ("premise\thypothesis\tlabel\n", "premise and hypothesis")):
        file.write_text(header + "".join(rows) + "a dog runs\ta dog rests\tentailment\n")
        assert main(["check", str(file)]) == 0
        said = capsys.readouterr().out
        assert "repeated rows: 22 " in said
        assert f"repeated {read}, with any other columns: 23 " in said


def test_pairs_without_a_majority_are_left_out_only_when_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = ["entailment", "-", "neutral", "contradiction"]
    rows = [{"gold_label": labels[n % 4], "sentence1": f"one {n}", "sentence2": f"two {n}"} for n in range(40)]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"10 rows have the class '-' .* set data.leave_out = \[\"-\"\]"):
        trained(tmp_path, file)
    assert main(["check", str(file)]) == 0
    assert """--set 'data.leave_out=["-"]'""" in capsys.readouterr().out
    model = trained(tmp_path, file, 'data.leave_out=["-"]', "training.steps=1", "model.hidden=4")
    assert [*model.task.labels] == ["contradiction", "entailment", "neutral"]  # type: ignore[attr-defined]
    assert len([*model.task.read([file])]) == 30
    assert "accuracy" in model.evaluate(file).values


def test_views_show_what_one_text_looked_at_in_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(tmp_path, pairs_in(tmp_path), PAIRINGS["decomposable"], "training.steps=2")
    run = str(tmp_path / "run")
    asked = "a tall man plays a guitar\ta man plays"
    for show in ("attention", "saliency"):
        assert main(["explain", run, asked, "--show", show, "--json"]) == 0
        view = json.loads(capsys.readouterr().out)["views"][show]
        if show == "attention":
            there, back = view["views"]
            assert there["rows"] == ["a", "man", "plays"]
            assert there["columns"] == ["a", "tall", "man", "plays", "a", "guitar"]
            assert (back["rows"], back["columns"]) == (there["columns"], there["rows"])
            assert np.allclose(np.sum(there["weights"], 1), 1, atol=1e-3)
        else:
            assert view["tokens"] == ["a", "tall", "man", "plays", "a", "guitar", "a", "man", "plays"]
    assert main(["explain", run, asked, "--show", "gates"]) == 2
    assert "has no recurrent encoder" in capsys.readouterr().err


def test_gates_are_shown_of_both_readers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(tmp_path, pairs_in(tmp_path), "model.pairing=conditional", "model.hidden=4", "training.steps=2")
    run, asked = str(tmp_path / "run"), "a man plays\ta man paints a rose"
    assert main(["explain", run, asked, "--show", "gates", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["views"]["gates"]
    assert found["tokens"] == ["a", "man", "plays", "a", "man", "paints", "a", "rose"]
    assert "of the reader of each text" in found["caption"]
    assert main(["explain", run, asked, "--show", "attention"]) == 2
    assert "train with model.pairing = word_by_word, decomposable, attentive or impatient" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["data.text=premise"], "there is no second text"),
        (["data.second=premise", "data.text=premise"], "is the column of data.text too"),
        (["data.second=hypothesis", "data.frames=x"], r"data.second is a second text, but the input is data.frames"),
        (["data.second=hypothesis", "model.encoder=bag"], "'bag' cannot read two texts"),
        (["data.second=hypothesis", "model.encoder=cnn"], "'cnn' reads one text at a time"),
        (["model.candidates=text", "model.label_smoothing=0.1"], "only where model.label_smoothing is 0"),
        (["model.candidates=text", 'data.targets=["x"]'], "only where one class is predicted, but data.targets"),
        (["model.candidates=text", "data.frames=x"], "only where a text is read"),
        (["data.second=hypothesis", "model.pairing=decomposable", "model.hidden=9"], "only with its option read"),
        (["data.second=hypothesis", "model.pairing=attentive", "model.summary=mean"], "has a vector of its own"),
        (["data.second=hypotesis"], "no column 'hypotesis'. Did you mean 'hypothesis'"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(tmp_path: Path, options: list[str], said: str) -> None:
    pairing = [] if any("pairing" in each or "bag" in each for each in options) else ["model.pairing=word_by_word"]
    with pytest.raises(RecurraError, match=said):
        trained(tmp_path, pairs_in(tmp_path), *pairing, *options)
    assert not (tmp_path / "run").exists()


def test_a_pairing_needs_a_second_text(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("text\tlabel\ngood\tyes\nbad\tno\n")
    with pytest.raises(ConfigError, match=r"'attentive' reads two texts together, but only 'text' is read"):
        trained(tmp_path, file, "model.pairing=attentive")


def test_the_other_text_is_named_where_it_cannot_be_told(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"a": "x y", "b": "y z", "c": "z", "label": "yes"}) + "\n")
    with pytest.raises(DataError, match=r"a.jsonl:1: data.second = 'c' .* but 'a' and 'b' could be it"):
        trained(tmp_path, file, "data.second=c")


@pytest.mark.parametrize(("cells", "said"), [("\tb", "'premise' is empty"), ("a\t ", "'hypothesis' is empty")])
def test_an_empty_text_is_refused(tmp_path: Path, cells: str, said: str) -> None:
    file = tmp_path / "a.tsv"
    file.write_text(f"premise\thypothesis\tlabel\na\tb\tyes\n{cells}\tno\n")
    with pytest.raises(DataError, match=f"a.tsv:3: {said}"):
        trained(tmp_path, file)


def test_a_question_has_both_texts(tmp_path: Path) -> None:
    model = trained(tmp_path, pairs_in(tmp_path), "model.hidden=4", "training.steps=1")
    with pytest.raises(DataError, match="input:1: found 1 text, but this model reads two, premise and hypothesis"):
        model.predict(["a man plays"])
    [one, two] = [*model.predict(["a man plays\ta man"]), *model.predict([["a man plays", "a man"]])]
    assert one == two


@pytest.mark.parametrize("name", ["entailment", "conditional_reader", "decomposable_attention", "attentive_reader"])
def test_the_recipes_load(name: str) -> None:
    given = Given.of_file(ROOT / "recipes" / f"{name}.toml")
    settings = given.settings(ClassificationSettings)
    assert settings.model.pairing != "siamese"
