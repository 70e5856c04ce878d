"""Sequence to sequence: what is learned by heart is written back, whatever the network, and training is exact."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from recurra.analysis.alignment import alignment_of
from recurra.cli import main
from recurra.errors import ConfigError, DataError
from recurra.padding import Padded
from recurra.runs import begin, setup
from recurra.tasks.seq2seq import Seq2Seq
from recurra.tasks.task import Moment
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.tasks.small_pairs import SMALL, WORDS, Noted, jsonl, small, spelt, table, task_of, trained, untrained, words
from tests.training.breaking import weights, weights_of_a_broken_run


def answers(model: Trained, sources: list[str]) -> list[str]:
    return [answer.output for answer in model.predict(sources)]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["model.attention=none"],
        ["model.attention=none", 'model.conditioning=["every"]', "model.start=zeros", "model.cell=gru"],
        ["model.wiring=between", "model.attention=dot"],
        ["model.wiring=inside", "model.attention=additive"],
        ["model.wiring=feeding", 'model.attention={name="bilinear", terms=["monotonic"]}'],
        ["model.wiring=conditional", "model.cell=gru"],
        ["model.cell=elman", "training.steps=100", "training.learning_rate=0.01"],
        ["model.encoder.kind=cnn", "model.start=mean", "model.tied=output"],
        ["training.forcing=0.7", "training.r_drop=1", "model.dropout=0.1", "training.steps=120"],
        ["decoding.search=greedy", "training.precision=bfloat16"],
    ],
    ids=lambda options: " ".join(options[:2]) or "default",
)
def test_eight_pairs_are_learned_by_heart_and_written_back(tmp_path: Path, options: list[str]) -> None:
    model = trained(tmp_path, words(tmp_path), *options)
    assert answers(model, [source for source, _ in WORDS]) == [target for _, target in WORDS]


def test_a_word_that_the_targets_do_not_know_is_copied(tmp_path: Path) -> None:
    names = ["Ada", "Bo", "Cy", "Di", "Ed", "Flo", "Gus", "Hal"]
    rows = [(f"my name is {name}", f"hello {name} !") for name in names]
    file = table(tmp_path / "a.tsv", rows)
    options = ("model.copy=true", "data.target.max_size=6", "training.steps=120")
    model = trained(tmp_path, file, *options)
    assert task_of(model).texts.target.vocabulary.tokens[4:] == ("!", "hello")
    assert answers(model, ["my name is Flo", "my name is Zoë"]) == ["hello Flo!", "hello Zoë!"]
    [answer] = model.predict(["my name is Zoë"])
    assert answer.detail["tokens"] == ["hello", "Zoë", "!"]
    assert model.evaluate(file).values["exact_match"] == 1
    assert model.evaluate(file).values["perplexity"] < 1.2
    assert task_of(model).noticed(list(task_of(model).read([file]))) is None


def test_one_vocabulary_may_serve_both_sides_and_the_output(tmp_path: Path) -> None:
    rows = [(word, word[::-1]) for word, _ in WORDS]
    model = trained(
        tmp_path, table(tmp_path / "a.tsv", rows), "data.joint=true", "model.tied=all", "training.steps=100"
    )
    assert answers(model, [source for source, _ in rows]) == [target for _, target in rows]
    weights = model.model.state_dict()
    assert weights["embedding.weight"].data_ptr() == weights["decoder.embedding.weight"].data_ptr()
    assert weights["embedding.weight"].data_ptr() == weights["output.readout.weight"].data_ptr()


def test_series_of_numbers_are_written_as_words(tmp_path: Path) -> None:
    rows = [{"frames": [[k, n % 2] for n in range(k + 1)], "target": " ".join("ab"[n % 2] for n in range(k + 1))}
            for k in range(8)]  # fmt: skip
    file = jsonl(tmp_path / "a.jsonl", rows)
    model = trained(tmp_path, file)
    assert [answer.output for answer in model.predict_file(file, [])] == [row["target"] for row in rows]
    found = model.predict([json.dumps(row["frames"]) for row in rows[:4]])
    assert [answer.input for answer in found[:2]] == ["a series of 1 step", "a series of 2 steps"]
    assert [answer.output for answer in found] == ["a", "a b", "a b a", "a b a b"]
    assert task_of(model).described().startswith("series of 2 numbers per step, BiLSTM 12 encoder")
    assert model.predict([[]])[0].output == ""
    with pytest.raises(DataError, match=r"input:2: found 1 number per step, but training has 2\."):
        model.predict(["[[1, 2]]", "[[3]]"])
    other = jsonl(tmp_path / "b.jsonl", [{"frames": [[1, 2, 3]], "target": "a"}])
    for ask in (lambda: model.evaluate(other), lambda: list(model.predict_file(other, []))):
        with pytest.raises(DataError, match=r"b\.jsonl:1: found 3 numbers per step, but training has 2\."):
            ask()
    assert found[3].alignment is not None
    assert found[3].alignment.shape == (5, 4)


def test_a_pyramid_learns_series_by_heart_and_looks_at_its_own_places(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"frames": [[k, n % 3] for n in range(2 * k + 1)], "target": " ".join("abc"[n % 3] for n in range(k + 1))}
        for k in range(8)
    ]
    file = jsonl(tmp_path / "a.jsonl", rows)
    location = 'model.attention={name="additive", terms=["location"]}'
    model = trained(tmp_path, file, "model.encoder=pyramid", location, "training.steps=80")
    found = list(model.predict_file(file, [], detail=True))
    assert [answer.output for answer in found] == [row["target"] for row in rows]
    for answer, row in zip(found, rows, strict=True):
        assert answer.alignment is not None
        assert answer.alignment.shape == (len(row["target"].split()) + 1, -(-len(row["frames"]) // 4))
        assert answer.alignment.sum(1) == pytest.approx(1.0, abs=1e-6)
        assert alignment_of(answer).columns == tuple(str(n + 1) for n in range(answer.alignment.shape[1]))
    covered = model.with_settings(["decoding.coverage_penalty=0.2"])
    assert [answer.output for answer in covered.predict_file(file, [])] == [row["target"] for row in rows]
    alone = [model.predict([json.dumps(row["frames"])])[0] for row in rows]
    assert [answer.score for answer in alone] == pytest.approx([answer.score for answer in found], abs=1e-5)
    assert ", 3-layer pyramidal BiLSTM 12 encoder," in task_of(model).described()


def test_a_place_of_a_pyramid_is_named_by_its_tokens(tmp_path: Path) -> None:
    model = untrained(tmp_path, words(tmp_path), "model.encoder.kind=pyramid", "model.encoder.layers=2")
    [answer] = model.predict(["house"])
    assert answer.detail["source_tokens"] == ["h o", "u s", "e </s>"]
    assert answer.alignment is not None
    assert answer.alignment.shape[1] == 3
    other = untrained(tmp_path, words(tmp_path), run="other")
    together = load([model.folder, other.folder])
    with pytest.raises(ConfigError, match="these runs divide a source into different numbers of places"):
        together.predict(["house"])
    assert together.evaluate(words(tmp_path)).values["count"] == 8


def test_series_are_changed_a_little_in_training(tmp_path: Path) -> None:
    rows = [{"frames": [[k, n % 2] for n in range(k + 1)], "target": "a" * (k + 1)} for k in range(8)]
    file = jsonl(tmp_path / "a.jsonl", rows)
    models = [
        untrained(tmp_path, file, f"augmentation.noise={noise}", run=f"noise-{noise}").model.state_dict()
        for noise in (0.0, 0.4)
    ]
    assert any(not torch.equal(models[0][name], models[1][name]) for name in models[0])


def test_features_and_several_columns_tell_apart_what_is_otherwise_the_same(tmp_path: Path) -> None:
    rows = [("walk", form, feature) for form, feature in [("walks", "V;3;SG"), ("walked", "V;PST"), ("walk", "V;NFIN")]]
    model = trained(tmp_path, table(tmp_path / "a.tsv", rows))
    assert answers(model, ["walk\tV;PST", "walk\tV;3;SG", "walk\tV;NFIN"]) == ["walked", "walks", "walk"]
    assert model.predict(["walk\tV;PST"])[0].detail["source_tokens"] == ["⟨V⟩", "⟨PST⟩", *"walk", "</s>"]
    rows = [("a", "x", "x a"), ("a", "y", "y a"), ("b", "x", "x b"), ("b", "y", "y b")]
    columns = 'data.columns=["source", "source", "target"]'
    model = trained(tmp_path, table(tmp_path / "b.tsv", rows), columns, "data.target.tokens=symbols", run="columns")
    assert answers(model, ["a\tx", "b\ty"]) == ["x a", "y b"]
    assert model.predict(["a\tx"])[0].input == "a\tx"


def test_a_saved_model_answers_as_the_one_it_was(tmp_path: Path) -> None:
    model = trained(tmp_path, words(tmp_path), "training.steps=15")
    again = load(model.save(tmp_path / "copy"))
    sources = [source for source, _ in WORDS]
    for one, other in zip(model.predict(sources, best=3), again.predict(sources, best=3), strict=True):
        assert one.output == other.output
        assert one.score == other.score
        assert [each["score"] for each in one.alternatives] == [each["score"] for each in other.alternatives]


BREAKABLE = [
    ['training.forcing={name="linear", k=0.9, c=0.05, floor=0.2}', "training.batch_size=3"],
    ["training.r_drop=1", "model.token_dropout=0.1", "training.average=ema"],
    ['data.source.tokens={name="subwords", size=20, dropout=0.3}', "training.average=ema", "training.accumulate=2"],
    ["model.copy=true", "data.joint=true", "model.locked=true", "training.schedule=plateau"],
    ["model.wiring=feeding", "training.validate_with=decoding", "training.optimizer=adamw"],
]  # fmt: skip


@pytest.mark.parametrize("options", BREAKABLE, ids=[options[0] for options in BREAKABLE])
def test_a_run_broken_and_resumed_ends_with_the_same_weights(tmp_path: Path, options: list[str]) -> None:
    file = words(tmp_path)
    extra = ["training.steps=9", "training.validate=4", "training.batch_size=4", "model.dropout=0.2", *options]
    trained(tmp_path, file, *extra, valid=file, run="whole")
    broken = weights_of_a_broken_run(small(file, *extra, valid=file), tmp_path / "broken", last=6)
    assert broken == weights(tmp_path / "whole")


def test_subwords_are_cut_anew_in_training_alone(tmp_path: Path) -> None:
    tokens = '{name="subwords", size=30, dropout=0.5}'
    model = untrained(tmp_path, words(tmp_path), f"data.source.tokens={tokens}", f"data.target.tokens={tokens}")
    task = task_of(model)
    rows = [task.encode(example) for example in task.read(task.settings.data.files("train"))]

    class Store:
        def take(self, numbers: Any) -> Any:
            return [rows[number] for number in numbers]

    def cut(rows: Any) -> tuple[str, ...]:
        batch = task.batch(rows)
        assert batch.target is not None
        assert isinstance(batch.source, Padded)
        return tuple(
            str(side.values[row, :n].tolist())
            for side in (batch.source, batch.target)
            for row, n in enumerate(side.lengths)
        )

    assert len({cut(rows) for _ in range(5)}) == 1
    assert len({cut(task.chosen(Store(), torch.arange(8).numpy())) for _ in range(5)}) == 5
    torch.manual_seed(3)
    first = cut(task.chosen(Store(), torch.arange(8).numpy()))
    torch.manual_seed(3)
    assert cut(task.chosen(Store(), torch.arange(8).numpy())) == first
    target, texts = rows[4]["target"], task.texts
    assert {spelt(texts, texts.recut(target, "target", seed)) for seed in range(9)} == {"T R IY"}


def test_training_validates_greedily_and_the_end_is_scored_by_the_beam(tmp_path: Path) -> None:
    file = words(tmp_path)
    model = untrained(tmp_path, file, "decoding.width=4", "decoding.best=2", 'decoding.forced=["T"]')
    quick = model.task.while_training()
    assert quick.settings.decoding == dataclasses.replace(
        model.task.settings.decoding, search="greedy", best=1, forced=[]
    )
    assert quick.settings.training == model.task.settings.training
    as_asked = untrained(tmp_path, file, "training.validate_with=decoding", run="asked").task
    assert as_asked.while_training().settings.decoding == as_asked.settings.decoding
    trained(tmp_path, file, "training.steps=6", "training.validate=3", valid=file, run="two")
    log = [json.loads(line) for line in (tmp_path / "two" / "metrics.jsonl").read_text().splitlines()]
    valid = [entry for entry in log if entry["kind"] == "valid"]
    assert [entry["step"] for entry in valid] == [3, 6]
    assert "word_error_rate" in str(valid[0])
    assert "chrf" not in str(valid[0])
    summary = json.loads((tmp_path / "two" / "summary.json").read_text())
    assert "chrf" in str(summary)


def test_forcing_is_logged_as_it_falls(tmp_path: Path) -> None:
    option = 'training.forcing={name="linear", k=1.0, c=0.1, floor=0.5}'
    task = task_of(untrained(tmp_path, words(tmp_path), option))
    batch = task.batch([task.encode(example) for example in task.read(task.settings.data.files("train"))])
    model = task.build().train()
    found = [task.loss(model, batch, Moment(step)).logged.get("forcing") for step in (0, 3, 30)]
    assert found == pytest.approx([1.0, 0.7, 0.5])
    plain = task_of(untrained(tmp_path, words(tmp_path), run="plain"))
    assert plain.loss(plain.build(), batch, Moment(3)).logged == {}


def test_pairs_with_a_side_that_is_too_long_are_left_out_and_counted(tmp_path: Path) -> None:
    file = words(tmp_path)
    told = Noted()
    begin(small(file, "data.max_length=3", "training.steps=1"), tmp_path / "run", told)
    said = " ".join(told.notes)
    assert "left out 4 of 8 examples: a side is longer than data.max_length = 3" in said
    assert load(tmp_path / "run").evaluate(file).values["count"] == 8


def test_a_source_with_several_targets_is_right_with_any_of_them(tmp_path: Path) -> None:
    model = trained(tmp_path, words(tmp_path))
    several = table(tmp_path / "several.tsv", [("cat", "K AH T"), ("cat", "K AE T"), ("dog", "D AO G")])
    values = model.evaluate(several).values
    assert values["count"] == 2
    assert values["exact_match"] == 1
    assert values["word_error_rate"] == 0


def test_another_run_is_a_start_token_by_token(tmp_path: Path) -> None:
    old = trained(tmp_path, words(tmp_path), "training.steps=5", run="old")
    file = table(tmp_path / "new.tsv", [("tod", "T AO D"), ("xylo", "Z AY L OW"), ("bat", "B AE T")])
    start = f"training.fine_tuning.base={tmp_path / 'old'}"
    begin(small(file, "training.learning_rate=1e-9", start), tmp_path / "new", Silent())
    new = load(tmp_path / "new")
    for name, side, shared in (
        ("embedding.weight", "source", "tod"),
        ("decoder.embedding.weight", "target", ["T", "AO", "D"]),
        ("output.readout.weight", "target", ["T", "AO", "D", "</s>"]),
        ("output.readout.bias", "target", ["T", "AO", "D"]),
    ):
        one, two = (
            model.model.state_dict()[name][[getattr(task_of(model).texts, side).vocabulary.id(t) for t in shared]]
            for model in (old, new)
        )
        assert_close(one, two, atol=1e-6, rtol=0)


def test_the_axes_are_those_of_the_weights(tmp_path: Path) -> None:
    rows = [{"frames": [1, 2], "target": "a"}, {"frames": [2, 2], "target": "b"}]
    for number, model in enumerate(
        (
            untrained(tmp_path, words(tmp_path)),
            untrained(tmp_path, words(tmp_path), "data.joint=true", "model.tied=all", run="tied"),
            untrained(tmp_path, jsonl(tmp_path / "a.jsonl", rows), run="frames"),
        )
    ):
        axes = model.task.axes()
        assert ("embedding.weight" in axes) == (number < 2)
        for name, tokens in axes.items():
            assert len(tokens[0] or ()) == len(model.model.state_dict()[name])


def test_several_seeds_are_several_runs_with_a_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = words(tmp_path), str(tmp_path / "runs")
    sets = [part for override in [*SMALL, "training.steps=2"] for part in ("--set", override)]
    arguments = ["train", "seq2seq", "--train", file, "--valid", file, "--out", out, "--seeds", "2", "--quiet"]
    assert main([*arguments, *sets]) == 0
    assert "word_error_rate" in capsys.readouterr().out
    runs = sorted(path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    assert len(runs) == 2
    one, two = (load(run).predict(["cat"], best=2)[0] for run in runs)
    assert one.score != two.score
    assert load(runs).predict(["cat"])[0].score not in (one.score, two.score)


def test_tokens_of_the_validation_targets_that_cannot_be_written_are_said(tmp_path: Path) -> None:
    valid = table(tmp_path / "valid.tsv", [("cat", "K AE T"), ("zoo", "Z UW Z")])
    told = Noted()
    begin(small(words(tmp_path), "training.steps=1", valid=valid), tmp_path / "run", told)
    expected = "3 tokens of the validation targets are not in the vocabulary, such as 'Z', 'UW': the model cannot"
    assert expected in " ".join(told.notes)


def test_of_equal_scores_the_weights_with_the_lower_loss_are_kept(tmp_path: Path) -> None:
    other = table(tmp_path / "other.tsv", [("dig", "D IH G"), ("moth", "M AO TH")])
    few = ("training.steps=8", "training.validate=2", "training.learning_rate=0.003")
    model = trained(tmp_path, words(tmp_path), *few, valid=other)
    lines = [json.loads(line) for line in (model.folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    valid = [line for line in lines if line["kind"] == "valid"]
    assert {line["scores"]["word_error_rate"] for line in valid} == {1.0}  # nothing is right yet
    losses = {line["step"]: line["loss"] for line in valid}
    assert len(losses) == 4
    summary = json.loads((model.folder / "summary.json").read_text("utf-8"))
    assert summary["best"]["step"] == min(losses, key=losses.__getitem__) > 2


def test_answers_of_few_words_are_not_judged_by_bleu(tmp_path: Path) -> None:
    def first(target: str, *overrides: str) -> str | None:
        file = table(tmp_path / "a.tsv", [(f"wish {number} of somebody", target) for number in range(3)])
        given = setup("seq2seq", given={"train": file}, overrides=[*SMALL, *overrides])
        return Seq2Seq.resolved(given.settings).evaluation.first

    assert first("lights off now", "data.target.tokens=words") == "symbol_error_rate"
    assert first("lights off now", "data.target.tokens=words", "evaluation.first=bleu") == "bleu"
    assert first("lights off now", "data.target.tokens=characters") is None
    assert first("turn the lights off", "data.target.tokens=words") is None
