"""Classification: from files to classes and back, whatever the encoder, the input and the kind of answer."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from recurra.cli import main
from recurra.errors import ConfigError, DataError
from recurra.runs import begin, resume, setup
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.training.test_trainer import StopsAt

SMALL = [
    "model.hidden=10",
    "model.embedding=10",
    "model.characters.cell=none",
    "model.dropout=0",
    "model.word_dropout=0",
    "data.cache=false",
    "training.device=cpu",
    "training.threads=1",
    "training.average=none",
    "training.learning_rate=0.03",
    "training.steps=50",
]

TEXTS = [
    ("play some Bach now", "music"),
    ("a table for two", "food"),
    ("is it cold in Rome ?", "weather"),
    ("play Mozart", "music"),
    ("book two tables", "food"),
    ("rain tomorrow", "weather"),
    ("the hits of Bach", "music"),
    ("Rome", "weather"),
]


def write(path: Path, text: str) -> str:
    path.write_text(text, "utf-8")
    return str(path)


def texts(folder: Path) -> str:
    return write(folder / "texts.tsv", "".join(f"{text}\t{label}\n" for text, label in TEXTS))


def jsonl(path: Path, rows: list[dict[str, Any]]) -> str:
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


def small(*overrides: str) -> list[str]:
    """What makes a classifier small, and the overrides; an encoder is given only the sizes that it has."""
    given = dict(each.split("=", 1) for each in overrides)
    encoder = given.get("model.encoder", "rnn")
    convolves = encoder == "cnn" or (encoder == "ensemble" and "cnn" in given.get("model.members", "cnn"))
    others = {"cnn": ("hidden",), "bag": ("hidden", "embedding")}.get(encoder, ())
    others += ("embedding", "characters.cell", "word_dropout") if "data.frames" in given else ()
    own = [each for each in SMALL if not each.startswith(tuple(f"model.{name}=" for name in others))]
    return [*own, *["model.convolution.filters=8"] * convolves, *overrides]


def trained(folder: Path, file: str, *overrides: str, valid: str = "") -> Trained:
    this = setup("classification", given={"train": file, "valid": valid}, overrides=small(*overrides))
    begin(this, folder / "run", Silent())
    return load(folder / "run")


ENCODERS = [
    *(["model.encoder=rnn", f"model.summary={name}"] for name in ("last", "last_cell", "ends", "mean", "max")),
    ["model.encoder=rnn", 'model.summary={name="attention", queries=2, size=5}'],
    ["model.encoder=rnn", "model.summary=last", "model.bidirectional=false"],
    ["model.encoder=pyramid", 'model.summary={name="attention", queries=2, size=5}'],
    ["model.encoder=cnn"],
    ["model.encoder=cnn", "model.convolution.pooling=mean", "model.convolution.layers=2"],
    ["model.encoder=ensemble"],
    ["model.encoder=ensemble", "model.share=true", 'model.members=["rnn", "cnn", "bag", "rnn"]'],
    ["model.encoder=bag", "model.bag.buckets=500"],
]


@pytest.mark.parametrize("options", ENCODERS, ids=lambda options: " ".join(options))
def test_eight_texts_are_learned_by_heart_and_predicted_back(tmp_path: Path, options: list[str]) -> None:
    file = texts(tmp_path)
    model = trained(tmp_path, file, *options)
    asked = [text for text, _ in TEXTS]
    together = model.predict(asked)
    assert [answer.output for answer in together] == [label for _, label in TEXTS]
    scores = model.evaluate(file).values
    assert scores["accuracy"] == scores["f1"] == scores["auc"] == 1.0
    # Padding and the rows beside it change nothing.
    model.model.double()
    asked += ["", "unseen"]
    together = model.predict(asked, detail=True)
    alone = [model.predict([text], detail=True)[0] for text in asked]
    backwards = model.predict(asked[::-1], detail=True, batch_tokens=9)[::-1]
    for one, two, three in zip(together, alone, backwards, strict=True):
        assert one.output == two.output == three.output
        assert one.score == pytest.approx(two.score, abs=1e-9)
        assert one.score == pytest.approx(three.score, abs=1e-9)


def test_words_are_read_by_their_letters_too_with_their_capitals(tmp_path: Path) -> None:
    rows = "".join(f"{word}\t{label}\n" for word, label in [("walking", "ing"), ("walked", "ed"), ("Talking", "ing")])
    file = write(tmp_path / "a.tsv", rows + "talked\ted\nsinging\ting\nloved\ted\n")
    options = ["model.characters.cell=lstm", "model.characters.hidden=8", "model.characters.embedding=6"]
    model = trained(tmp_path, file, *options, "model.embedding=0", "training.steps=80")
    assert [a.output for a in model.predict(["jumping", "jumped"])] == ["ing", "ed"]
    assert "T" in model.task.characters.tokens  # type: ignore[attr-defined]
    assert "talking" in model.task.words  # type: ignore[attr-defined]


@pytest.mark.parametrize("tokens", ["characters", "symbols", '{name="subwords", size=40}'])
def test_a_text_may_be_cut_in_another_way(tmp_path: Path, tokens: str) -> None:
    file = texts(tmp_path)
    model = trained(tmp_path, file, f"data.text.tokens={tokens}", "training.steps=80")
    assert model.evaluate(file).values["accuracy"] == 1.0
    again = load(tmp_path / "run")
    assert again.predict(["play Mozart", "PLAY mozart"])[0].output == "music"


def test_series_of_different_length_are_told_apart(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rows = []
    for number in range(12):
        walk = 500 + 30 * draw.normal(size=(int(draw.integers(2, 9)), 2))
        walk[:, 1] += 200 * (number % 2)
        rows.append({"x": walk.round(2).tolist(), "label": number % 2})
    file = jsonl(tmp_path / "a.jsonl", rows)
    model = trained(tmp_path, file)
    scores = model.evaluate(file).values
    assert scores["accuracy"] == scores["sensitivity"] == scores["specificity"] == scores["auc"] == 1.0
    assert [a.output for a in model.predict(["[[500, 700]]", "[[500, 500], [510, 480]]"])] == ["1", "0"]
    assert model.task.settings.data.frames == "x"
    with pytest.raises(DataError, match=r"input:1: found 1 number per step, but training has 2\."):
        model.predict(["1 2 3"])
    with pytest.raises(DataError, match="input:1: a series is a JSON list of numbers, or of lists of them"):
        model.predict(["[1, 2"])
    with pytest.raises(DataError, match="input:1: 'frames' must contain only numbers, but has 'hello'"):
        model.predict(["hello"])
    with pytest.raises(DataError, match=r"input:1: a series is .*, but this is an object.* ends in .jsonl"):
        model.predict(['{"x": [[1, 2]]}'])


def test_series_are_changed_a_little_in_training(tmp_path: Path) -> None:
    rows = [{"frames": [0.1 * n, n % 2, 0.5, n], "label": n % 2} for n in range(8)]
    file = jsonl(tmp_path / "a.jsonl", rows)
    plain = trained(tmp_path / "plain", file, "training.steps=3")
    noisy = trained(tmp_path / "noisy", file, "training.steps=3", "augmentation.noise=0.3", "model.encoder=rnn")
    weights = [model.model.state_dict() for model in (plain, noisy)]
    assert any(not torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    with pytest.raises(
        ConfigError, match=r"augmentation.rotate applies to pictures, but the inputs are series:.*shift, scale"
    ):
        trained(tmp_path / "turned", file, "augmentation.rotate=5")


def test_one_number_a_step_may_stand_in_a_table_separated_by_blanks(tmp_path: Path) -> None:
    lines = [f"{' '.join(str(v) for v in range(k, k + 3))},{'low' if k < 5 else 'high'}" for k in range(10)]
    file = write(tmp_path / "a.csv", "frames,label\n" + "\n".join(lines) + "\n")
    model = trained(tmp_path, file)
    assert [a.output for a in model.predict(["0 1 2", "[9, 10, 11]"])] == ["low", "high"]


def test_a_row_may_have_several_classes_or_none(tmp_path: Path) -> None:
    rows = [
        ("red round", "red, round"),
        ("red", "red"),
        ("round", "round"),
        ("grey", ""),
        ("red big round", "red,round"),
    ]
    rows += [("big", "big"), ("big red", "big red")]
    file = write(tmp_path / "a.tsv", "".join(f"{text}\t{labels}\n" for text, labels in rows))
    model = trained(tmp_path, file, 'data.columns=["text", "labels"]')
    scores = model.evaluate(file)
    assert scores.first == "f1"
    assert scores.values["f1"] == scores.values["f1_macro"] == scores.values["exact_match"] == 1.0
    both, none = model.predict(["red round", "grey"], detail=True)
    assert sorted(both.output.split(",")) == sorted(both.detail["labels"]) == ["red", "round"]
    assert both.detail["alternatives"] == ["big"]
    assert none.output == ""
    assert none.detail["labels"] == []


def test_numbers_are_learned_in_their_own_unit(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rows = []
    for _ in range(16):
        steps = draw.normal(size=(4, 1))
        rows.append({"frames": steps.tolist(), "target": 1000 + 50 * steps.mean(), "other": [1.0, -steps[0, 0]]})
    file = jsonl(tmp_path / "a.jsonl", rows)
    model = trained(tmp_path, file, "model.summary=mean", "training.steps=150")
    scores = model.evaluate(file)
    assert model.task.answer_kind() == "numbers"
    assert scores.first == "rmse"
    assert not scores.higher_is_better
    assert scores.values["rmse"] < 5  # the spread of the targets is about 25
    assert scores.values["r2"] > 0.9
    [answer] = model.predict(["[[0.5], [0.5], [0.5], [0.5]]"])
    assert 1000 < float(answer.output) < 1050
    several = setup("classification", given={"train": file}, overrides=[*SMALL, 'data.targets=["target", "other"]'])
    begin(several, tmp_path / "several", Silent())
    [answer] = load(tmp_path / "several").predict(["[[0.5]]"])
    assert len(answer.output.split()) == len(answer.detail["values"]) == 3


def test_small_changes_of_large_numbers_are_seen(tmp_path: Path) -> None:
    up = [{"frames": [1e9 + k + step for step in range(5)], "label": "up"} for k in range(4)]
    down = [{"frames": [1e9 + k - step for step in range(5)], "label": "down"} for k in range(4)]
    file = jsonl(tmp_path / "a.jsonl", up + down)
    assert trained(tmp_path, file).evaluate(file).values["accuracy"] == 1.0


def test_json_answers_list_the_next_best_and_where_was_looked(tmp_path: Path) -> None:
    file = texts(tmp_path)
    model = trained(tmp_path, file, 'model.summary={name="attention", queries=2, size=5}', "decoding.alternatives=1")
    answer, empty = model.predict(["play Bach", ""], detail=True)
    assert next(iter(answer.detail["probabilities"])) == answer.output == answer.detail["label"] == "music"
    assert answer.detail["alternatives"] == list(answer.detail["probabilities"])[1:]
    assert len(answer.detail["alternatives"]) == 1
    assert answer.score == pytest.approx(np.log(answer.detail["probabilities"]["music"]), abs=1e-4)
    assert answer.detail["tokens"] == ["play", "Bach"]
    assert np.array(answer.detail["attention"]).shape == (2, 2)
    assert_close(torch.tensor(answer.detail["attention"]).sum(1), torch.ones(2), atol=1e-5, rtol=0)
    assert empty.detail["attention"] == [[], []]
    assert empty.output in ("music", "food", "weather")
    assert "attention" not in model.predict(["play Bach"])[0].detail


def test_a_class_that_is_not_probable_enough_is_not_answered(tmp_path: Path) -> None:
    file = texts(tmp_path)
    model = trained(tmp_path, file, "decoding.abstain=0.9")
    sure, unsure = model.predict(["play Mozart", ""], detail=True)
    assert sure.output == "music"
    assert unsure.output == "-"
    assert unsure.detail["abstained"] is True
    assert unsure.detail["label"] in ("music", "food", "weather")
    scores = model.evaluate(file).values
    assert scores["answered"] == scores["answered_accuracy"] == 1.0


class Listening(StopsAt):
    """A progress that never stops and keeps what is said."""

    def __init__(self) -> None:
        super().__init__(last=-1)
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_class_that_only_the_validation_data_has_is_said_and_counted_as_wrong(tmp_path: Path) -> None:
    valid = write(tmp_path / "valid.tsv", "play Mozart\tmusic\nhello\tgreeting\n")
    given = {"train": texts(tmp_path), "valid": valid, "test": valid}
    heard = Listening()
    begin(setup("classification", given=given, overrides=SMALL), tmp_path / "run", heard)
    assert [note for note in heard.notes if "greeting" in note] == [
        "the validation data has a class that is not in the training data ('greeting'): "
        "1 of 2 examples cannot be predicted correctly"
    ]
    scores = load(tmp_path / "run").evaluate(valid)
    assert scores.values["accuracy"] == scores.values["unseen"] == 0.5
    assert np.isfinite(scores.values["nll"])
    assert [row[0] for row in scores.tables["classes"].rows if row[-1] and not row[2]] == ["greeting"]


def test_an_empty_text_is_refused_unless_it_is_asked_for(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", "hello\tyes\n \tno\n")
    with pytest.raises(DataError, match=r"a\.tsv:2: the text is empty. .*data.empty = \"keep\""):
        trained(tmp_path, file)
    model = trained(tmp_path, file, "data.empty=keep")
    assert [a.output for a in model.predict(["", "hello"])] == ["no", "yes"]


def test_a_series_without_a_step_is_refused_unless_it_is_asked_for(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", [{"frames": [[1, 2]], "label": "some"}, {"frames": [], "label": "none"}])
    with pytest.raises(DataError, match=r"a\.jsonl:2: the series has no step. .*data.empty = \"keep\""):
        trained(tmp_path, file)
    model = trained(tmp_path, file, "data.empty=keep", "model.encoder=ensemble")
    assert [a.output for a in model.predict(["[]", "[[1, 2]]", ""])] == ["none", "some", "none"]


def test_words_may_come_as_a_list(tmp_path: Path) -> None:
    rows = [{"text": ["New York", "sleeps"], "label": "city"}, {"text": ["he", "sleeps"], "label": "person"}]
    model = trained(tmp_path, jsonl(tmp_path / "a.jsonl", rows))
    assert "new york" in model.task.words  # type: ignore[attr-defined]
    assert model.predict([["New York", "sleeps"], ["he", "sleeps"]])[0].output == "city"


def test_a_file_with_other_columns_is_read_by_its_own_names_in_prediction(tmp_path: Path) -> None:
    model = trained(tmp_path, texts(tmp_path))
    file = jsonl(tmp_path / "b.jsonl", [{"text": "play Mozart", "id": "7"}])
    assert [a.output for a in model.predict_file(file, [])] == ["music"]
    assert [a.output for a in model.predict_file(tmp_path / "texts.tsv", [])] == [label for _, label in TEXTS]


@pytest.mark.parametrize(
    "options",
    [
        ["model.encoder=rnn"],
        ["model.encoder=ensemble", "model.class_weights=balanced"],
        ["model.encoder=bag", "model.bag.buckets=100", "training.average=ema"],
    ],
)
def test_a_run_broken_and_resumed_ends_with_the_same_weights(tmp_path: Path, options: list[str]) -> None:
    file = texts(tmp_path)
    extra = ["training.steps=12", "training.validate=3", "training.batch_size=3", "model.dropout=0.3", *options]

    def this(*more: str) -> Any:
        return setup("classification", given={"train": file, "valid": file}, overrides=small(*extra, *more))

    begin(this(), tmp_path / "whole", Silent())
    with pytest.raises(MemoryError):
        begin(this("training.save_minutes=0.0001"), tmp_path / "broken", StopsAt(7))
    resume(tmp_path / "broken", Silent())
    digests = [hashlib.sha256((tmp_path / n / "model.safetensors").read_bytes()).digest() for n in ("whole", "broken")]
    assert digests[0] == digests[1]


def test_another_run_gives_its_words_and_classes(tmp_path: Path) -> None:
    old = trained(tmp_path, texts(tmp_path), "training.steps=2")
    file = write(tmp_path / "new.tsv", "play Mozart\tmusic\nbye\tparting\n")
    this = setup(
        "classification",
        given={"train": file},
        overrides=[*SMALL, "training.learning_rate=1e-9"],
        start_from=tmp_path / "run",
    )
    begin(this, tmp_path / "new", Silent())
    new = load(tmp_path / "new")
    for part, names in (("readers.0.embedding", "words"), ("readouts.0", "labels")):
        known = ["play", "mozart"] if names == "words" else ["music"]
        rows = [
            model.model.get_submodule(part).weight[[getattr(model.task, names).id(name) for name in known]]  # type: ignore[index]
            for model in (old, new)
        ]
        assert_close(rows[0], rows[1], atol=1e-6, rtol=0)


def test_numbers_of_another_run_are_a_start_also_where_a_column_holds_several(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", [{"frames": [k, 1], "target": [k, 2 * k, 5 - k]} for k in range(4)])
    old = trained(tmp_path, file, "training.steps=2")
    this = setup(
        "classification",
        given={"train": file},
        overrides=[*SMALL, "training.learning_rate=1e-9"],
        start_from=tmp_path / "run",
    )
    begin(this, tmp_path / "new", Silent())
    weights = [model.model.get_parameter("readouts.0.weight") for model in (old, load(tmp_path / "new"))]
    assert_close(weights[0], weights[1], atol=1e-6, rtol=0)
    assert [row[0] for row in old.evaluate(file).tables["targets"].rows] == ["target.0", "target.1", "target.2"]


def test_buckets_of_another_number_of_them_mean_something_else(tmp_path: Path) -> None:
    bag = ["model.encoder=bag", "model.bag.dropout=0"]
    old = trained(tmp_path, texts(tmp_path), *bag, "training.steps=2", "model.bag.buckets=50")
    slow = small(*bag, "training.learning_rate=1e-9", "model.bag.buckets=60")
    begin(setup("classification", given={"train": texts(tmp_path)}, overrides=slow), tmp_path / "plain", Silent())
    this = setup("classification", given={"train": texts(tmp_path)}, overrides=slow, start_from=tmp_path / "run")
    begin(this, tmp_path / "new", Silent())
    before, found, plain = (
        model.model.get_parameter("encoders.0.table.weight")
        for model in (old, load(tmp_path / "new"), load(tmp_path / "plain"))
    )
    words = len(before) - 50
    assert_close(found[:words], before[:words], atol=1e-6, rtol=0)
    assert_close(found[words:], plain[words:], atol=1e-6, rtol=0)


def test_word_vectors_are_a_start(tmp_path: Path) -> None:
    file = texts(tmp_path)
    vectors = write(tmp_path / "v.txt", "play 1 0 0\nunseen 0 0 9\n")
    options = (f"data.vectors={vectors}", "training.steps=1", "training.learning_rate=1e-9", "model.encoder=ensemble")
    model = trained(tmp_path, file, *options, "model.embedding=3")
    number = model.task.words.id("play")  # type: ignore[attr-defined]
    for reader in model.model.readers:  # type: ignore[union-attr]
        assert_close(reader.embedding.weight[number].detach(), torch.tensor([1.0, 0, 0]), atol=1e-6, rtol=0)
    with pytest.raises(ConfigError, match=r"vectors of size 3: set model.embedding = 3 \(it is 10\)"):
        trained(tmp_path / "other", file, f"data.vectors={vectors}")
    with pytest.raises(ConfigError, match=r"data\.vectors needs word embeddings: use"):
        trained(tmp_path / "other", file, f"data.vectors={vectors}", "model.embedding=0", "model.characters.cell=elman")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("model.class_weights.musik=2", r"model.class_weights: 'musik' is not a class. Did you mean 'music'"),
        ("model.class_weights.music=-2", r"model.class_weights must be at least 0"),
        ("data.positive=musik", r"data.positive = 'musik' is not a class. Did you mean 'music'"),
        ("data.text=words", r"texts.tsv:1: there is no column 'words'"),
        ("model.summary=ends", r"set model.bidirectional = true"),
        ("model.members=[]", r"model.members must name rnn, pyramid, transformer, cnn and bag"),
        (
            "augmentation.noise=0.1",
            r"augmentation.noise applies to series and pictures, but a text is read: leave it out",
        ),
        ("model.hidden=0", r"model.hidden must be at least 1"),
        ("model.hidden=[]", r"model.hidden must be at least 1"),
        ("model.label_smoothing=1.5", r"model.label_smoothing must be at least 0 and below 1"),
        ("decoding.abstain=2", r"decoding.abstain must be at least 0 and below 1"),
        ("task=tagging", r"task = 'tagging', but these are the settings of classification"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(tmp_path: Path, option: str, said: str) -> None:
    with pytest.raises((ConfigError, DataError), match=said):
        trained(tmp_path, texts(tmp_path), "model.bidirectional=false", option)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["data.label=a", "data.labels=b"],
            r"data.label and data.labels cannot be used together: a classifier predicts one",
        ),
        (["data.text=a", "data.frames=b"], r"data.text and data.frames cannot be used together"),
        (["model.embedding=0"], r"model.embedding = 0 needs character embeddings instead"),
        (
            ["model.encoder=pyramid", "model.skip=residual"],
            r"skip = 'residual' adds .* 'pyramid' change the sequence length: leave",
        ),
        (
            ["model.encoder=pyramid", "model.mix=mean"],
            r"mix = 'mean' combines the outputs of all layers, but .* 'pyramid' change the sequence length: leave",
        ),
        (["model.direction=backward"], r"model.direction = 'backward' reads from the end only, but model.bidirec"),
        (["model.hidden=[4, 5]", "model.layers=3"], r"gives 2 layers, but model.layers is 3"),
        (["training.batch_tokens=300"], r"training.batch_tokens = 300 has no effect beside training.batch_size = 32"),
        (["model.convolution.filters=0"], r"model.convolution.filters must be at least 1"),
        (
            ["data.labels=a", "decoding.abstain=0.5"],
            r"decoding.abstain works only where one class is predicted, but data.labels are any number",
        ),
        (
            ['data.targets=["a"]', "decoding.abstain=0.5"],
            r"decoding.abstain works only where one class is predicted, but data.targets are num",
        ),
        (
            ["data.labels=a", "data.positive=x"],
            r"data.positive works only with two classes, but data.labels are any number",
        ),
        (
            ['data.targets=["a"]', "model.label_smoothing=0.1"],
            r"model.label_smoothing works only with classes, but data.targets",
        ),
    ],
)
def test_settings_that_exclude_each_other_are_refused(tmp_path: Path, options: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        trained(tmp_path, texts(tmp_path), *options)


def test_a_class_to_be_detected_is_one_of_two(tmp_path: Path) -> None:
    file = write(tmp_path / "three.tsv", "a b\tx\nc d\ty\ne f\tz\n")
    with pytest.raises(ConfigError, match=r"data.positive is for two classes, but there are 3"):
        trained(tmp_path, file, "data.positive=y")


def test_weights_are_for_classes(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", [{"frames": [1, 2], "target": 3}, {"frames": [2, 2], "target": 4}])
    with pytest.raises(ConfigError, match=r"model\.class_weights are for classes, but data\.targets are numbers"):
        trained(tmp_path, file, "model.class_weights=balanced")


def test_the_command_line_trains_scores_and_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, run = texts(tmp_path), str(tmp_path / "run")
    sets = [part for override in SMALL for part in ("--set", override)]
    assert main(["train", "classification", "--train", file, "--valid", file, "--out", run, "--quiet", *sets]) == 0
    said = capsys.readouterr().out
    assert "classification: 23 word embeddings of size 10, BiLSTM 10 with max pooling, 3 classes" in said
    assert main(["evaluate", run, file, "--tables"]) == 0
    said = capsys.readouterr().out
    assert all(part in said for part in ("accuracy             1.0000", "right \\ found", "probability", "steps"))
    assert main(["predict", run, file, "--json"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first["output"] == "music"
    assert first["line"] == 1
    assert main(["train", "classification", "--train", file, "--dry-run", *sets]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "readouts.0.weight 3x20 60" in said
    assert "encoders.0 8 x 20 readouts.0 8 x 3" in said


def test_the_summary_of_a_run_counts_rows_and_tokens_of_every_part(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", "two words\ta\nthree words here\tb\n")
    trained(tmp_path, file, "training.steps=1", valid=file)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    for part in ("train", "valid"):
        assert (summary["data"][part]["rows"], summary["data"][part]["tokens"]) == (2, 5)
