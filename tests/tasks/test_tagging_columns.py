"""Several columns of CoNLL-U at once: lemmas by rules, features one by one, a head and a weight for each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from recurra.cli import main
from recurra.config.given import Given
from recurra.data.checking.treebank import faults_in
from recurra.errors import ConfigError, DataError
from recurra.models.tagger import Tagger
from recurra.runs import check_run, setup
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import Prediction, Task
from recurra.training.explaining import explain
from recurra.training.preparation import prepared
from recurra.training.trained import load
from tests.tasks.test_tagging import SMALL, trained, write

TREEBANK = """\
# sent_id = 1
# text = Dogs bark.
1	Dogs	dog	NOUN	NNS	Number=Plur	2	nsubj	_	_
2	bark	bark	VERB	VBP	Tense=Pres|VerbForm=Fin	0	root	_	SpaceAfter=No
3	.	.	PUNCT	.	_	2	punct	_	_

# text = Ada's cat was walking
1-2	Ada's	_	_	_	_	_	_	_	_
1	Ada	Ada	PROPN	NNP	Number=Sing	3	nmod	_	Entity=Person
2	's	's	PART	POS	_	1	case	_	_
3	cat	cat	NOUN	NN	Number=Sing	5	nsubj	_	_
4	was	be	AUX	VBD	Mood=Ind|Tense=Past|VerbForm=Fin	5	aux	_	_
4.1	not	not	PART	RB	_	_	_	5:advmod	_
5	walking	walk	VERB	VBG	Tense=Pres|VerbForm=Part	0	root	_	_

"""


def treebank(folder: Path) -> str:
    return write(folder / "a.conllu", TREEBANK)


@pytest.fixture(scope="module")
def of_all_columns(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("columns")
    names = 'data.tags=["upos", "xpos", "feats", "lemma", "misc:Entity"]'
    return trained(folder, treebank(folder), names, "training.epochs=40", "data.raw=false")


def test_all_columns_are_learned_and_lemmas_are_made_of_the_words(of_all_columns: Any) -> None:
    [answer] = of_all_columns.predict(["Ada 's cat was walking"])
    assert answer.detail["upos"] == ["PROPN", "PART", "NOUN", "AUX", "VERB"]
    assert answer.detail["lemma"] == ["Ada", "'s", "cat", "be", "walk"]
    assert answer.detail["misc:Entity"] == ["Person", "_", "_", "_", "_"]
    # The rule of an unknown word is applied to that word.
    [answer] = of_all_columns.predict(["xyzs"])
    rules = of_all_columns.task.tags[3].tokens
    assert {*rules} == {"lower||", "lower||-", "lower||---", "keep||", "=be"}
    assert answer.detail["lemma"][0] in ("xyzs", "xyz", "x", "be")


def test_lemmas_are_scored_as_words(of_all_columns: Any, tmp_path: Path) -> None:
    other = write(tmp_path / "b.conllu", TREEBANK.replace("\tdog\t", "\twolf\t"))
    scores = of_all_columns.evaluate(other)
    # No rule that was learned makes wolf of Dogs: it counts as wrong, though its rule is not known.
    assert scores.values["accuracy.lemma"] == 7 / 8
    assert scores.values["accuracy"] == 1
    assert not any(title.startswith("lemma") for title in scores.tables)


def test_the_description_names_the_head_of_each_column(of_all_columns: Any) -> None:
    said = of_all_columns.task.described()
    assert "CRF over 6 tags (upos)" in said
    assert "softmax over 5 edits (lemma)" in said


def test_saliency_explains_a_lemma_by_its_word(tmp_path: Path) -> None:
    model = trained(tmp_path, treebank(tmp_path), 'data.tags=["lemma"]', "training.steps=3")
    assert name_of_head(model) == "softmax"
    assert re.search(r"Dogs/\w+", explain(model, "Dogs bark", show="saliency").text)


def name_of_head(model: Any) -> str:
    return str(model.task.settings.model.head)


def test_each_feature_has_a_head_of_its_own_and_the_whole_cell_a_score(tmp_path: Path) -> None:
    model = trained(tmp_path, treebank(tmp_path), 'data.tags=["upos", "feats:*"]', "training.epochs=40")
    task: Any = model.task
    assert task.settings.data.tags == ["upos", "feats:Mood", "feats:Number", "feats:Tense", "feats:VerbForm"]
    [answer] = model.predict(["Dogs bark ."])
    assert answer.detail["feats:Number"] == ["Plur", "_", "_"]
    assert answer.detail["feats:VerbForm"] == ["_", "Fin", "_"]
    values = model.evaluate(tmp_path / "a.conllu").values
    assert values["accuracy.feats"] == 1
    other = write(tmp_path / "b.conllu", TREEBANK.replace("Tense=Past|VerbForm=Fin", "Tense=Past|VerbForm=Inf"))
    scores = model.evaluate(other)
    assert scores.values["accuracy.feats"] == 7 / 8
    # A score for each of many keys would hide the others: they have tables.
    assert not any(":" in name for name in scores.values)
    assert [row[3] for row in scores.tables["feats:Mood: tags"].rows] == [1.0, 1.0]
    assert min(row[3] for row in scores.tables["feats:VerbForm: tags"].rows) < 1


def test_features_alone_are_judged_by_whole_cells(tmp_path: Path) -> None:
    model = trained(tmp_path, treebank(tmp_path), 'data.tags=["feats:*"]', "training.epochs=40")
    scores = model.evaluate(write(tmp_path / "b.conllu", TREEBANK.replace("Mood=Ind|", "")))
    assert scores.first == "accuracy"
    assert scores.values["accuracy"] == 7 / 8


def test_a_column_without_pairs_has_no_keys(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'upos:\*': the column 'upos' of .*a.conllu has no pairs such as Case=Nom"):
        task_of(tmp_path, 'data.tags=["upos:*"]')


def test_a_key_of_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a.conllu:1: there is no column 'feat:Case'"):
        task_of(tmp_path, 'data.tags=["feat:Case"]')


def test_a_column_named_like_a_key_is_read_as_it_is(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"tokens": ["a"], "feats": ["Case=Nom"], "feats:Case": ["Acc"]}\n')
    this = setup("tagging", given={"train": file}, overrides=[*SMALL, 'data.tags=["feats:Case"]'])
    task: Any = prepared(this.kind, this.settings, lambda _: None).task
    assert task.tags[0].tokens == ("Acc",)


def task_of(folder: Path, *overrides: str, said: list[str] | None = None) -> Tagging:
    this = setup("tagging", given={"train": treebank(folder)}, overrides=[*SMALL, *overrides])
    found = prepared(this.kind, this.settings, (lambda _: None) if said is None else said.append).task
    assert isinstance(found, Tagging)
    return found


def test_heads_are_chosen_column_by_column_which_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    task = task_of(tmp_path, 'data.tags=["upos", "lemma", "feats:Number"]', said=said)
    assert task.heads() == ["crf", "softmax", "softmax"]
    notice = "heads by the number of tags: crf for upos (6); softmax for lemma (5), feats:Number (3)"
    assert any(notice in line for line in said), said


def test_heads_and_weights_are_set_by_column_and_for_all_keys_by_the_column_of_pairs(tmp_path: Path) -> None:
    names = 'data.tags=["upos", "feats:Number", "feats:Tense"]'
    settings = ["model.head=softmax", "model.heads.feats=crf", "model.loss_weights={upos = 3, feats = 0.5}"]
    task = task_of(tmp_path, names, *settings)
    assert task.heads() == ["softmax", "crf", "crf"]
    assert task.build().loss_weights == (3.0, 0.5, 0.5)


def test_the_loss_is_the_weighted_sum_of_the_losses_of_columns(tmp_path: Path) -> None:
    task = task_of(tmp_path, 'data.tags=["upos", "lemma"]', "model.loss_weights={upos = 3, lemma = 0.25}")
    rows = [task.encode(example) for example in task.read([tmp_path / "a.conllu"])]
    batch = task.batch(rows)
    model: Tagger = task.build().double()
    total, count = model.loss(batch)
    features = model.features(batch)
    upos, lemma = (head.loss(features, tags).sum() for head, tags in zip(model.heads, batch.tags, strict=True))  # type: ignore[operator]
    assert_close(total, 3 * upos + 0.25 * lemma)
    assert count == 2 * 8
    assert torch.isfinite(total)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.heads.lema=softmax", r"model.heads: 'lema' is not one of data.tags. Did you mean 'lemma'"),
        ("model.loss_weights={lema = 2}", r"model.loss_weights: 'lema' is not one of data.tags"),
        ("model.loss_weights={lemma = -1}", r"the weight of 'lemma' must be at least 0, but is -1"),
        ('data.edits=["xpos"]', r"data.edits names 'xpos', which is not in data.tags"),
        ('data.tags=["upos", "upos"]', r"data.tags names 'upos' twice"),
        ('model.together=["upos", "xpos"]', r"model.together: 'xpos' is not one of data.tags"),
        ('model.together=["upos", "lemma"]', r"'lemma' is learned as edits of words \(data.edits\)"),
        ('model.together=["upos"]', r"model.together needs two or more different columns"),
    ],
)
def test_settings_of_columns_that_are_not_learned_are_refused(tmp_path: Path, setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        task_of(tmp_path, 'data.tags=["upos", "lemma"]', setting)


def test_columns_that_are_chosen_as_one_have_softmax_heads(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"columns that are chosen as one have softmax heads, but 'upos' has 'crf'"):
        task_of(tmp_path, 'data.tags=["upos", "feats"]', 'model.together=["upos", "feats"]', "model.heads.upos=crf")


def test_columns_that_are_chosen_as_one_answer_with_combinations_of_training(tmp_path: Path) -> None:
    names = ['data.tags=["upos", "lemma", "feats"]', 'model.together=["upos", "feats"]']
    model = trained(tmp_path, treebank(tmp_path), *names, "training.steps=1")
    pairs = {
        (cells[3], cells[5]) for line in TREEBANK.split("\n") if line[:1].isdigit() for cells in [line.split("\t")]
    }
    words = "a Dogs zzz bark . cat 's was Ada walking"
    for _ in range(2):  # as it was trained, and as it was saved
        assert model.task.heads() == ["softmax", "softmax", "softmax"]  # type: ignore[attr-defined]
        [answer] = model.predict([words], detail=True)
        assert set(zip(answer.detail["upos"], answer.detail["feats"], strict=True)) <= pairs
        assert "8 combinations of upos, feats" in model.task.described()
        model = load(model.folder)
    both = load(f"{model.folder},{model.folder}")
    assert both.predict([words])[0].detail["lemma"] == answer.detail["lemma"]
    with pytest.raises(ConfigError, match=r"columns as one \(model.together\) cannot be exported yet"):
        model.task.predictor()


def test_edits_are_of_words_not_of_frames(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data.edits are edits of words, but data.frames reads numbers"):
        task_of(tmp_path, 'data.tags=["lemma"]', 'data.edits=["lemma"]', "data.frames=tokens")


def test_lemmas_of_runs_without_edits_stay_whole_words(tmp_path: Path) -> None:
    model = trained(tmp_path, treebank(tmp_path), 'data.tags=["lemma"]', "data.edits=[]", "training.steps=2")
    config = model.folder / "config.toml"
    assert "be" in model.task.tags[0].tokens  # type: ignore[attr-defined]
    # As earlier versions wrote it.
    text = "\n".join(line for line in config.read_text().splitlines() if not line.startswith("edits"))
    config.write_text(text)
    check_run(model.folder, accept=True)
    settings: Any = Given.of_run(model.folder).settings(Tagging.Settings)
    again = Tagging.load(settings, model.folder)
    assert again.edits == (False,)
    assert Tagging.resolved(again.settings).data.edits == []


def test_a_head_of_ones_own_that_a_run_names_for_a_column_needs_trust(tmp_path: Path) -> None:
    model = trained(tmp_path, treebank(tmp_path), 'data.tags=["upos", "lemma"]', "training.steps=1")
    config = model.folder / "config.toml"
    config.write_text(re.sub(r"(?m)^heads = \{.*", 'heads = {lemma = "evil.module:Head"}', config.read_text()))
    check_run(model.folder, accept=True)
    assert [each.name for each in Given.of_run(model.folder).code(Tagging.Settings)] == ["evil.module:Head"]


def test_predictions_in_conllu_keep_all_other_columns_comments_ranges_and_nodes(
    of_all_columns: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = re.sub(r"(?m)^(\d+\t\S+)\t\S+\t\S+\t\S+\t\S+", r"\1\t_\t_\t_\t_", TREEBANK).replace("Entity=Person", "_")
    file, run = write(tmp_path / "bare.conllu", bare), str(of_all_columns.folder)
    assert main(["predict", run, file, "--format", "conllu"]) == 0
    assert capsys.readouterr().out == TREEBANK
    out = tmp_path / "out.conllu"
    assert main(["predict", run, file, "--out", str(out)]) == 0
    assert out.read_text() == TREEBANK
    assert "2 answers written to" in capsys.readouterr().out


def test_lines_of_words_become_conllu(of_all_columns: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = write(tmp_path / "lines.txt", "Dogs bark .\n\nAda walking\n")
    assert main(["predict", str(of_all_columns.folder), lines, "--format", "conllu"]) == 0
    said, notice = capsys.readouterr()
    assert "each line is read as a sentence, its words separated by blanks" in notice
    assert said.startswith("# sent_id = 1\n# text = Dogs bark .\n1\tDogs\tdog\tNOUN\tNNS\tNumber=Plur\t_\t_\t_\t_\n")
    assert list(faults_in(enumerate(said.removesuffix("\n").split("\n"), 1))) == []
    assert said.count("# sent_id") == 2


def test_the_features_of_a_file_are_written_back_sorted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = trained(tmp_path, treebank(tmp_path), 'data.tags=["feats:VerbForm", "feats:Mood", "feats:Tense"]')
    assert main(["predict", str(model.folder), str(tmp_path / "a.conllu"), "--format", "conllu"]) == 0
    assert capsys.readouterr().out == TREEBANK


def test_a_label_of_the_whole_is_a_comment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.jsonl", '{"tokens": ["hi"], "tags": ["X"], "label": "Greet"}\n')
    model = trained(tmp_path, file, "training.steps=2")
    assert main(["predict", str(model.folder), file, "--format", "conllu"]) == 0
    assert "# label = Greet\n1\thi\t_\t_\t_\t_\t_\t_\t_\ttags=X\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "xml"], "--format xml is not known: tagging writes conllu"),
        (["--format", "conllu", "--json"], "--format conllu and --json exclude each other"),
        (["--format", "conllu", "--out", "a.csv"], "--out a.csv: with --format conllu the file must end in .conllu"),
    ],
)
def test_formats_that_cannot_be_written_are_refused(
    of_all_columns: Any, options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(of_all_columns.folder), treebank(tmp_path), *options]) == 2
    assert message in capsys.readouterr().err


def test_frames_are_not_written_as_conllu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.jsonl", '{"frames": [[0, 1], [1, 0]], "tags": ["A", "B"]}\n')
    model = trained(tmp_path, file, "training.steps=2")
    assert main(["predict", str(model.folder), file, "--format", "conllu"]) == 2
    assert "--format conllu writes words, but this run tags frames of numbers" in capsys.readouterr().err


def test_other_tasks_refuse_a_format() -> None:
    class Other(Tagging):
        name = "other"

    with pytest.raises(ConfigError, match="--format conllu is for taggers; other prints plain answers"):
        Task.printed(Other.__new__(Other), Prediction("", "", 0.0, 1, {}), "conllu", 1)
