"""Language models: from text to likelihoods and back, and everything that can be wrong with a text or a setting."""

from __future__ import annotations

import gzip
import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from recurra.cli import main
from recurra.config import LanguageModelSettings
from recurra.errors import ConfigError, DataError
from recurra.runs import begin, setup
from recurra.settings import settings_from
from recurra.tasks.language_model import LanguageModel
from recurra.tasks.task import Moment
from recurra.training.preparation import prepared
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.training.breaking import weights, weights_of_a_broken_run

SMALL = [
    *("model.hidden=16", "model.layers=1", "model.embedding=8", "model.token_dropout=0", "model.dropout=0"),
    *("model.weight_drop=0", "model.output_dropout=0", "reading.steps=12", "training.batch_size=4"),
    *("training.device=cpu", "training.threads=1", "training.average=none", "training.epochs=3", "data.cache=false"),
]
TRANSFORMER = ("model.decoder=transformer", "model.decoder.heads=2", "model.decoder.context=20")

LINES = [
    "the cat sat",
    "on the mat",
    "",
    "a dog, a log",
    "Ünïcode too",
    "the end of it",
    "or is it?",
    "yes",
]
TEXT = "".join(f"{line}\n" for line in LINES)


def write(path: Path, text: str) -> str:
    path.write_text(text, "utf-8")
    return str(path)


def trained(folder: Path, file: str, *overrides: str, valid: str = "", run: str = "run") -> Trained:
    this = setup("language_model", given={"train": file, "valid": valid}, overrides=[*SMALL, *overrides])
    begin(this, folder / run, Silent())
    return load(folder / run)


def task_of(file: str | list[str], *overrides: str) -> tuple[LanguageModel, Any]:
    this = setup("language_model", given={"train": file}, overrides=[*SMALL, *overrides])
    task, store = prepared(this.kind, this.settings, lambda _: None)
    assert isinstance(task, LanguageModel)
    return task, store


def language_model(model: Trained) -> LanguageModel:
    assert isinstance(model.task, LanguageModel)
    return model.task


def shown(task: LanguageModel, ids: Any) -> list[str]:
    return task.vocabulary.tokens_of(np.asarray(ids))


LEARN = ("training.epochs=150", "training.learning_rate=0.02", "model.hidden=32", "reading.steps=40")


@pytest.mark.parametrize(
    ("options", "most"),
    [
        (LEARN, 1.15),
        ((*LEARN, "data.independent=true"), 1.3),  # eight lines begin alike, and which it is cannot be known
        ((*LEARN, "data.text.tokens=words", "model.tied=true", "model.embedding=32"), 1.15),
        ((*LEARN, 'data.text.tokens={name="subwords", size=40}', "model.cell=gru"), 1.15),
        ((*LEARN, "data.text.tokens=symbols", "model.direction=backward"), 1.25),
    ],
)
def test_eight_lines_are_learned_by_heart(tmp_path: Path, options: tuple[str, ...], most: float) -> None:
    file = write(tmp_path / "a.txt", TEXT)
    scores = trained(tmp_path, file, *options).evaluate(file)
    assert scores.first == "perplexity"
    assert not scores.higher_is_better
    assert 1 <= scores.values["perplexity"] < most


@pytest.mark.parametrize(
    "options",
    [
        ("reading.carry=0.5", "model.weight_drop=0.3", "model.token_dropout=0.2", "training.average=ema"),
        ("model.tied=true", "model.embedding=16", "training.accumulate=2", "training.precision=bfloat16"),
        ("data.independent=true", "model.embedding_dropout=0.2", "training.batch_size=2", "training.forcing=0.5"),
    ],
)
def test_a_run_broken_anywhere_and_resumed_ends_with_the_same_weights(tmp_path: Path, options: tuple[str, ...]) -> None:
    file = write(tmp_path / "a.txt", TEXT * 3)
    trained(tmp_path, file, *options, valid=file, run="whole")
    for last in (2, 7):
        this = setup("language_model", given={"train": file, "valid": file}, overrides=[*SMALL, *options])
        broken = weights_of_a_broken_run(this, tmp_path / f"broken{last}", last=last)
        assert broken == weights(tmp_path / "whole")


@pytest.mark.parametrize("reader", [(), TRANSFORMER], ids=["cells", "transformer"])
def test_states_go_on_from_batch_to_batch_as_if_the_stream_were_read_at_once(
    tmp_path: Path, reader: tuple[str, ...]
) -> None:
    options = (*reader, "reading.vary_steps=false", "training.precision=float64")
    task, store = task_of(write(tmp_path / "a.txt", TEXT * 2), *options)
    model = task.build().double()
    chunks = task.batches(store, 0)
    total, moment = 0.0, Moment()
    for chunk in chunks:
        loss = task.loss(model, task.batch(task.chosen(store, chunk)), moment)
        total, moment = total + float(loss.total.detach()), Moment(moment.step + 1, loss.carried)
    long, _ = task_of(write(tmp_path / "b.txt", TEXT * 2), *options, "reading.steps=1000")
    first = chunks[0].copy()
    first[-1] = first[4]  # the whole length of the streams in one chunk
    whole = long.loss(model, long.batch(long.chosen(store, first)))
    assert total == pytest.approx(float(whole.total.detach()), abs=1e-9)
    assert_close(moment.carried, whole.carried, atol=1e-10, rtol=0)


def test_a_batch_holds_streams_that_follow_on_those_of_the_batch_before(tmp_path: Path) -> None:
    task, store = task_of(write(tmp_path / "a.txt", TEXT * 9))
    flat = np.concatenate([store[row]["tokens"] for row in range(len(store))])
    assert "".join(shown(task, flat)) == TEXT * 9
    batches = [task.batch(task.chosen(store, chunk)) for chunk in task.batches(store, 3)]
    for batch, following in pairwise(batches):
        assert torch.equal(batch.inputs.values[:, 1:], batch.targets[:, :-1])
        assert torch.equal(following.inputs.values[:, 0], batch.targets[:, -1])
    text = "".join(shown(task, torch.cat([batch.targets[1] for batch in batches])))
    assert text in TEXT * 9
    assert len(text) > 100


def test_states_are_fresh_at_the_beginning_of_an_epoch_and_carried_with_their_chance(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", TEXT * 60)
    kept = {}
    for carry in ("0", "0.5", "1"):
        task, store = task_of(file, f"reading.carry={carry}", "training.batch_size=8")
        rows, again = (
            [task.batch(task.chosen(store, chunk)).kept.tolist() for chunk in task.batches(store, 0)]  # type: ignore[union-attr]
            for _ in range(2)
        )
        assert rows == again
        assert not any(rows[0])
        kept[carry] = np.mean(rows[1:])
    assert kept["0"] == 0
    assert kept["1"] == 1
    assert float(kept["0.5"]) == pytest.approx(0.5, abs=0.1)


def test_the_usual_weight_drop_that_a_cell_cannot_use_is_left_out_and_said(tmp_path: Path) -> None:
    file = write(tmp_path / "text.txt", "a short text\nof two lines\n")

    def said(*overrides: str) -> str | None:
        task, _ = task_of(file, *overrides)
        return task.initialise(task.build())

    assert said("model.cell=min_gru", "model.weight_drop=none") == (
        "no weight drop: the cell 'min_gru' has no recurrent weights that could be dropped"
    )
    assert said("model.cell=min_gru", "model.weight_drop=0") is None
    assert said("model.cell=gru", "model.weight_drop=none") is None


def test_a_shorter_chunk_moves_the_weights_less(tmp_path: Path) -> None:
    task, store = task_of(write(tmp_path / "a.txt", TEXT * 9))
    model = task.build()
    for chunk in task.batches(store, 0):
        batch = task.batch(task.chosen(store, chunk))
        assert task.loss(model, batch).weight == batch.targets.shape[1] / 12


def test_independent_lines_are_read_from_the_end_of_a_line_to_the_next(tmp_path: Path) -> None:
    task, store = task_of(write(tmp_path / "a.txt", "ab\n\ncde\n"), "data.independent=true", "training.batch_size=3")
    [numbers] = task.batches(store, 0)
    batch = task.batch(task.chosen(store, np.sort(numbers)))
    lengths = batch.inputs.lengths.tolist()
    assert lengths == [3, 1, 4]
    read = ["".join(shown(task, row[:n])) for row, n in zip(batch.inputs.values, lengths, strict=True)]
    wanted = ["".join(shown(task, row[:n])) for row, n in zip(batch.targets, lengths, strict=True)]
    assert read == ["\nab", "\n", "\ncde"]
    assert wanted == ["ab\n", "\n", "cde\n"]
    assert task.loss(task.build(), batch).carried == ()


@pytest.mark.parametrize("manner", ["carried", "windowed"])
def test_a_backward_model_is_a_forward_model_of_the_reversed_text(tmp_path: Path, manner: str) -> None:
    text = "\n" + TEXT  # reversed, it ends in a line end too
    file, mirrored = write(tmp_path / "a.txt", text), write(tmp_path / "b.txt", text[::-1])
    options = ["training.epochs=2", f"evaluation.manner={manner}", "evaluation.window=20"]
    options += ["evaluation.stride=5"] if manner == "windowed" else []
    backward = trained(tmp_path, file, "model.direction=backward", *options, run="backward")
    forward = trained(tmp_path, mirrored, *options, run="forward")
    for name, weight in forward.model.state_dict().items():
        assert torch.equal(weight, backward.model.state_dict()[name])
    assert forward.evaluate(mirrored).values["nll"] == backward.evaluate(file).values["nll"]
    [one], [two] = forward.predict(["tac"], detail=True), backward.predict(["cat"], detail=True)
    assert one.score == two.score
    assert two.detail["tokens"] == ["c", "a", "t", "\n"]
    ends, mirrored_ends = two.detail["log_probabilities"], one.detail["log_probabilities"]
    assert ends == [*mirrored_ends[-2::-1], mirrored_ends[-1]]


def test_scores_of_a_text_and_of_its_lines(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", TEXT)
    model = trained(tmp_path, file)
    scores = model.evaluate(file)
    values = scores.values
    assert values["count"] == len(TEXT) - 1
    assert values["characters"] == len(TEXT)
    assert values["perplexity"] == pytest.approx(math.exp(values["nll"]))
    assert values["bits_per_character"] == pytest.approx(values["nll"] / math.log(2))
    assert scores.loss == values["nll"]
    assert "unknown" not in values
    lines = trained(tmp_path, file, "data.independent=true", run="lines")
    answers = lines.predict(LINES)
    values = lines.evaluate(file).values
    assert values["count"] == len(TEXT)
    assert values["nll"] == pytest.approx(-sum(answer.score for answer in answers) / len(TEXT), rel=1e-6)


def test_characters_are_counted_for_words_too(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", TEXT)
    values = trained(tmp_path, file, "data.text.tokens=symbols").evaluate(file).values
    tokens = len(TEXT.split()) + 8
    assert values["count"] == tokens - 1
    assert values["bits_per_character"] == pytest.approx(values["nll"] / math.log(2) * tokens / len(TEXT))


def test_a_line_is_scored_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    model = trained(tmp_path, write(tmp_path / "a.txt", TEXT))
    line, empty, strange = model.predict(["the cat", "", "zé"], detail=True)
    assert line.output == f"{line.score:.4f}\t8"
    assert line.detail["tokens"] == [*"the cat", "\n"]
    assert sum(line.detail["log_probabilities"]) == pytest.approx(line.score, abs=1e-5)
    assert line.detail["nll"] == pytest.approx(-line.score / 8)
    assert line.detail["perplexity"] == pytest.approx(math.exp(-line.score / 8))
    assert empty.detail["tokens"] == ["\n"]
    assert strange.detail["tokens"] == ["<unk>", "<unk>", "\n"]
    assert [answer.detail["unknown"] for answer in (line, empty, strange)] == [0, 0, 2]
    assert "tokens" not in model.predict(["the cat"])[0].detail
    with pytest.raises(ConfigError, match=r"temperature is for answers that are drawn, but language_model does not"):
        model.predict(["the cat"], temperature=0.5)


def test_padding_batch_and_order_never_change_a_score(tmp_path: Path) -> None:
    model = trained(tmp_path, write(tmp_path / "a.txt", TEXT))
    model.model.double()
    alone = [model.predict([line])[0].score for line in LINES]
    together = [answer.score for answer in model.predict(LINES)]
    backwards = [answer.score for answer in model.predict(LINES[::-1], batch_tokens=17)][::-1]
    assert together == pytest.approx(alone, abs=1e-9)
    assert backwards == pytest.approx(alone, abs=1e-9)


def test_lines_end_in_eos_and_what_is_spelt_like_a_special_is_unknown(tmp_path: Path) -> None:
    task, store = task_of(write(tmp_path / "a.txt", "a <unk> b\n\n a  a <eos>\n"), "data.text.tokens=symbols")
    assert task.vocabulary.tokens == ("<unk>", "<eos>", "a", "b")
    assert shown(task, store[0]["tokens"]) == ["a", "<unk>", "b", "<eos>", "<eos>", "a", "a", "<unk>", "<eos>"]


def test_rare_tokens_are_unknown_and_capitals_may_be_forgotten(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "A a b B c\n")
    options = ("data.text.tokens=words", "data.text.lowercase=true")
    assert task_of(file, *options, "data.text.min_count=2")[0].vocabulary.tokens == ("<unk>", "<eos>", "a", "b")
    assert task_of(file, *options, "data.text.max_size=3")[0].vocabulary.tokens == ("<unk>", "<eos>", "a")
    characters, store = task_of(file, "data.text.lowercase=true", "data.text.max_size=3")
    assert characters.vocabulary.tokens == ("<unk>", "\n", " ")
    assert shown(characters, store[0]["tokens"]) == [
        "<unk>",
        " ",
        "<unk>",
        " ",
        "<unk>",
        " ",
        "<unk>",
        " ",
        "<unk>",
        "\n",
    ]
    lower, _ = task_of(file, 'data.text.tokens={name="characters", lowercase=true}')
    assert lower.vocabulary.tokens == ("<unk>", "\n", " ", "a", "b", "c")


def test_a_text_may_lie_in_several_files_in_folders_and_in_tables(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    write(folder / "b.txt", "bb\n")
    write(folder / "notes.md", "no\n")
    (folder / "deep" / "c.txt.gz").write_bytes(gzip.compress(b"cc\n"))
    write(folder / "a.TXT", "aa")
    write(tmp_path / "d.txt", "dd\n\n")
    task, store = task_of([str(folder), str(tmp_path / "d.txt")])
    assert "".join(shown(task, store.span("tokens", 0, store.size("tokens")))) == "aa\nbb\ncc\ndd\n\n"
    assert task.place(store[2]) == f"{folder / 'deep' / 'c.txt.gz'}:1"
    table = write(tmp_path / "a.jsonl", '{"id": 3, "text": "two\\nlines"}\n{"id": 4, "text": "x"}\n')
    task, store = task_of(table)
    assert "".join(shown(task, store[0]["tokens"])) == "two\nlines\nx\n"
    words = write(tmp_path / "b.jsonl", '{"tokens": ["New", "York"], "tags": ["B", "I"]}\n')
    task, store = task_of(words, "data.text.tokens=symbols")
    assert shown(task, store[0]["tokens"]) == ["New", "York", "<eos>"]
    assert [passage.text for passage in task.read([tmp_path / "d.txt"])] == ["dd\n"]  # a plain text has one column
    named = write(tmp_path / "c.tsv", "body\trest\nhi\t1\n")
    task, store = task_of(named, "data.text=body", 'data.format={name="tsv", header=true}')
    assert "".join(shown(task, store[0]["tokens"])) == "hi\n"
    assert [passage.text for passage in task.questions(words, [])] == ["New York"]
    task, _ = task_of(write(tmp_path / "d.tsv", "1\thi\n"), 'data.columns=["number", "text"]')
    assert [passage.text for passage in task.questions(table, [])] == ["two\nlines", "x"]


def test_long_texts_are_kept_in_passages_and_nothing_is_lost(tmp_path: Path) -> None:
    lines = [str(number) * (number % 50) for number in range(2000)]
    text = "".join(f"{line}\n" for line in lines)
    task, store = task_of(write(tmp_path / "a.txt", text))
    assert len(store) < 20
    assert "".join(shown(task, store.span("tokens", 0, store.size("tokens")))) == text
    file, line = store[1]["place"].tolist()
    assert file == 0
    assert "".join(shown(task, store[1]["tokens"])).startswith(lines[line - 1] + "\n" + lines[line])


def test_unknown_tokens_of_a_validation_text_are_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, valid = write(tmp_path / "a.txt", TEXT), write(tmp_path / "b.txt", "the ß\nß\n")
    options = [part for override in SMALL for part in ("--set", override)]
    arguments = ["train", "language_model", "--train", file, "--valid", valid, "--out", str(tmp_path / "run")]
    assert main([*arguments, *options]) == 0
    said = capsys.readouterr().err
    assert said.count("2 tokens of the validation text are not in the vocabulary, such as 'ß': they are read as") == 1
    assert load(tmp_path / "run").evaluate(valid).values["unknown"] == 2


def test_an_evaluation_may_have_other_settings_than_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.txt", TEXT)
    trained(tmp_path, file)
    evaluate = ["evaluate", str(tmp_path / "run"), file, "--json"]
    found = []
    for options in ([], ["evaluation.streams=1"], ["evaluation.manner=windowed", "evaluation.window=8"]):
        assert main([*evaluate, *(part for option in options for part in ("--set", option))]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0]["count"] == found[1]["count"] == len(TEXT) - 1
    assert found[2]["count"] == 8 * (1 + (len(TEXT) - 9) // 64)
    assert main([*evaluate, "--set", "model.hidden=3"]) == 2
    said = capsys.readouterr().err
    assert (
        "settings of a trained model cannot be changed, except evaluation and decoding: remove --set model.hidden=3"
        in said
    )
    assert main(evaluate[:-1]) == 0
    assert "characters           77" in capsys.readouterr().out


def test_a_dry_run_tells_what_would_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.txt", TEXT * 9)
    options = [part for override in [*SMALL, "reading.vary_steps=false"] for part in ("--set", override)]
    assert main(["train", "language_model", "--train", file, "--dry-run", *options]) == 0
    said = capsys.readouterr().out
    assert "character embeddings of size 8, LSTM 16, softmax" in said
    assert "the largest has 4 rows of 12" in said


def test_another_run_is_a_start_token_by_token(tmp_path: Path) -> None:
    first = trained(tmp_path, write(tmp_path / "a.txt", TEXT), run="first")
    file = write(tmp_path / "b.txt", "the bat\nxyz\n")
    this = setup(
        "language_model",
        given={"train": file},
        overrides=[*SMALL, "training.learning_rate=1e-12"],
        start_from=tmp_path / "first",
    )
    begin(this, tmp_path / "second", Silent())
    second = load(tmp_path / "second")
    for name in ("embedding.weight", "output.readout.weight"):
        old, new = first.model.state_dict()[name], second.model.state_dict()[name]
        for token in "the at\n":
            one, two = (model.task.vocabulary.id(token) for model in (first, second))  # type: ignore[attr-defined]
            assert_close(old[one], new[two])


def test_rows_of_an_adaptive_softmax_go_to_their_tokens(tmp_path: Path) -> None:
    output = 'model.output={name="adaptive_softmax", cutoffs=[4, 5]}'
    first = trained(tmp_path, write(tmp_path / "a.txt", "aaaa bbb\ncc d\n" * 4), output, run="first")
    file = write(tmp_path / "b.txt", "bbbb aaa\ndd c\n" * 4)  # other tokens are frequent
    slow = [*SMALL, output, "training.learning_rate=1e-12", "training.fine_tuning.vocabulary=new"]
    begin(
        setup("language_model", given={"train": file}, overrides=slow, start_from=tmp_path / "first"),
        tmp_path / "new",
        Silent(),
    )
    second = load(tmp_path / "new")
    known = [language_model(model).vocabulary.tokens for model in (first, second)]
    assert known[0] != known[1]
    assert {*known[0][:4]} == {*known[1][:4]}
    for name, rows in (("readout", slice(0, 4)), ("tails.0", slice(4, 5)), ("tails.1", slice(5, None))):
        old, new = (model.model.state_dict()[f"output.{name}.weight"] for model in (first, second))
        for number, token in enumerate(known[1][rows]):
            if token in known[0][rows]:
                assert_close(new[number], old[known[0][rows].index(token)])


def test_an_adaptive_softmax_and_its_words(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", TEXT)
    model = trained(tmp_path, file, 'model.output={name="adaptive_softmax", cutoffs=[5, 10]}')
    assert model.evaluate(file).values["perplexity"] > 1
    for name, axes in model.task.axes().items():
        assert len(axes[0] or ()) == len(model.model.get_parameter(name))
    assert model.task.axes()["output.tails.1.bias"] == (language_model(model).vocabulary.tokens[10:],)
    assert model.task.described() == "23 character embeddings of size 8, LSTM 16, adaptive softmax"
    task, _ = task_of(file, "model.hidden=[9, 8]", "model.layers=none", "model.tied=true", "model.direction=backward")
    assert task.described().endswith("backward LSTM 9 + 8, tied softmax")


def test_frames_and_values_are_forecasting() -> None:
    assert LanguageModel.fitting({"data": {"train": "a.txt"}}) is LanguageModel
    assert LanguageModel.fitting({"data": {"frames": "roll"}}).__name__ == "Forecasting"
    assert LanguageModel.fitting({"data": {"values": ["x"]}}).__name__ == "Forecasting"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model": {"bidirectional": True}}, "has already seen the token it should predict. Train two"),
    ({"model": {"tied": True}}, r"the embedding \(128\) and the last layer \(512\) .* Set model.embedding = 512, or"),
    ({"model": {"tied": True, "hidden": [9, 7], "embedding": 8}}, r"or model.hidden = \[9, 8\]"),
    ({"model": {"hidden": []}}, "model.hidden must be at least 1"),
    ({"model": {"hidden": [3, 4], "layers": 3}}, r"gives 2 layers, but model.layers is 3. Leave model.layers out"),
    ({"model": {"token_dropout": 1.0}}, "model.token_dropout must be at least 0 and below 1"),
    ({"model": {"output_dropout": -0.1}}, "model.output_dropout must be at least 0 and below 1"),
    ({"model": {"temporal_regularization": -1}}, "model.temporal_regularization must be at least 0"),
    (
        {"model": {"weight_drop": 0.2, "cell": {"name": "lstm", "wrap": [{"name": "weight_drop", "rate": 0.1}]}}},
        "weight_drop is set twice",
    ),
    ({"reading": {"steps": 0}}, "reading.steps must be at least 1"),
    ({"reading": {"carry": 1.5}}, "reading.carry must lie between 0 and 1, but is 1.5"),
    ({"evaluation": {"stride": 0}}, "evaluation.stride must be at least 1"),
    ({"evaluation": {"manner": "window"}}, "Did you mean 'windowed'"),
    ({"training": {"batch_size": None}}, "training.batch_size must be a number: continuous text is read"),
    ({"data": {"text": {"tokens": "subwords", "max_size": 9}}}, "Leave data.text.max_size out"),
    ({"data": {"text": {"tokens": {"name": "subwords"}, "min_count": 2}}}, "Leave data.text.min_count out"),
    ({"task": "tagging"}, "these are the settings of language_model"),
]


@pytest.mark.parametrize(("table", "message"), REFUSED, ids=[message[:30] for _, message in REFUSED])
def test_settings_that_cannot_be_are_refused_with_what_to_do(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings_from(LanguageModelSettings, table)


def test_a_mixture_may_be_tied_whatever_the_width_and_lines_may_be_batched_by_tokens() -> None:
    mixture = {"tied": True, "output": {"name": "mixture_of_softmaxes", "components": 2}}
    assert settings_from(LanguageModelSettings, {"model": mixture}).model.tied
    independent = {"data": {"independent": True}, "training": {"batch_size": None}}
    assert settings_from(LanguageModelSettings, independent).training.batch_size is None


MALFORMED = [
    ("a.txt", "", "'.*a.txt' is empty"),
    ("a.txt", "\n", "is too short to train on: it contains 1 token"),
    ("a.tsv", "a\tb\n", r"a.tsv:1: a language model reads a column 'text', but the columns are .* data.text = "),
    ("a.jsonl", '{"text": 3}\n', r"a.jsonl:1: expected a text or a list of words, but found 3"),
    ("a.jsonl", '{"text": "a", "b": 1}\n{"b": 2, "c": 3}\n', r"a.jsonl:2: there is no column 'text'"),
    ("a.bin", "a\n", r"cannot detect the format from the ending '.bin'"),
]


@pytest.mark.parametrize(("name", "content", "message"), MALFORMED, ids=[message[-30:] for _, _, message in MALFORMED])
def test_what_is_wrong_with_a_text_is_said_with_its_place(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        trained(tmp_path, write(tmp_path / name, content))


def test_a_column_that_is_not_there_and_a_folder_without_texts(tmp_path: Path) -> None:
    table = write(tmp_path / "a.jsonl", '{"text": "a", "id": 1}\n')
    with pytest.raises(DataError, match=r"a.jsonl:1: there is no column 'txt'. Did you mean 'text'"):
        trained(tmp_path, table, "data.text=txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"contains no text files \(names that end in .txt, .text, .txt.gz"):
        trained(tmp_path, str(tmp_path / "empty"))


def test_a_vocabulary_that_would_hold_nothing_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "abba\n")
    with pytest.raises(
        DataError, match=r"no token of \S*a.txt would be in the vocabulary: .* 'a', occurs 2 times, .*min_count = 9"
    ):
        trained(tmp_path, file, "data.text.min_count=9")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (
            "evaluation.manner=windowed",
            r"evaluation.manner = 'windowed' is for continuous text, but with data.independent",
        ),
        ("training.batch_tokens=77", r"training.batch_tokens = 77 has no effect beside training.batch_size = "),
    ],
)
def test_a_setting_without_effect_on_lines_is_refused(option: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        setup("language_model", overrides=["data.independent=true", option])


def test_a_text_of_one_token_cannot_be_scored_but_its_line_can(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", TEXT)
    one = write(tmp_path / "one.txt", "\n")
    with pytest.raises(DataError, match="this text has only 1 token, so there is nothing to predict"):
        trained(tmp_path, file).evaluate(one)
    assert trained(tmp_path, file, "data.independent=true", run="lines").evaluate(one).values["count"] == 1


def test_the_place_of_a_bad_batch_is_told(tmp_path: Path) -> None:
    task, store = task_of(write(tmp_path / "a.txt", TEXT * 5))
    rows = task.chosen(store, task.batches(store, 0)[1])
    assert task.place(rows[0]).startswith("the text from token ")
