"""Training: it learns, it is the same each time, and it goes on exactly where it was."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from recurra.cli import main
from recurra.errors import CheckpointError, ConfigError, TrainingError
from recurra.runs import begin, resume, setup
from recurra.training.log import Log, TrainLine, ValidLine, read_log
from recurra.training.position import position_of
from recurra.training.preparation import HeldOut, prepared
from recurra.training.progress import Progress, Silent
from recurra.training.rehearsal import rehearsal
from recurra.training.trained import load
from recurra.training.trainer import Trainer
from tests.training.small import SMALL, small, small_setup


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))


def digest(run: Path) -> str:
    return hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()


def test_a_small_language_is_learned(tmp_path: Path) -> None:
    begin(small_setup(tmp_path, "training.epochs=12", "training.learning_rate=0.01"), tmp_path / "run", Silent())
    model = load(tmp_path / "run")
    scores = model.evaluate(tmp_path / "valid.conll")
    assert scores.values["accuracy"] > 0.99
    [answer] = model.predict(["they run the walk"])
    assert answer.output == "PRON VERB DET NOUN"


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        begin(small_setup(tmp_path, f"training.seed={seed}"), tmp_path / name, Silent())
    assert digest(tmp_path / "one") == digest(tmp_path / "two") != digest(tmp_path / "three")


class StopsAt(Progress):
    """A progress that dies at a step, as a killed process would."""

    def __init__(self, last: int) -> None:
        self.last = last

    def start(
        self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None
    ) -> None: ...

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None:
        if step == self.last:
            raise MemoryError

    def validating(self, done: int, total: int) -> None: ...

    def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None: ...

    def note(self, text: str) -> None: ...

    def stop(self) -> None: ...


@pytest.mark.parametrize(
    "options",
    [
        (),
        ('training.optimizer={name="sgd", momentum=0.9}', "training.schedule=plateau", "training.average=none"),
        ('training.average={name="checkpoints", last=2}', "training.validate=2"),
        ("training.optimizer=asgd", "training.schedule=inverse_sqrt", 'training.average={name="mean", after=0.3}'),
        ("training.accumulate=2", "training.schedule=linear", "training.precision=bfloat16", "training.validate=3"),
        ('model.cell={name="gru", wrap=[{name="zoneout", rate=0.1}]}', "training.optimizer=adamw"),
    ],
)
def test_a_run_broken_anywhere_and_resumed_ends_with_the_same_weights(tmp_path: Path, options: tuple[str, ...]) -> None:
    begin(small_setup(tmp_path, *options), tmp_path / "whole", Silent())
    steps = json.loads((tmp_path / "whole" / "summary.json").read_text())["steps"]
    for last in (1, steps // 2 + 1):
        run = tmp_path / f"broken{last}"
        with pytest.raises(MemoryError):
            begin(small_setup(tmp_path, "training.save_minutes=0.0001", *options), run, StopsAt(last))
        resume(run, Silent())
        assert digest(run) == digest(tmp_path / "whole")
        seen = [line.step for line in read_log(run / "metrics.jsonl") if isinstance(line, ValidLine)]
        assert seen == [
            line.step for line in read_log(tmp_path / "whole" / "metrics.jsonl") if isinstance(line, ValidLine)
        ]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "recurra", *arguments]


def train_command(tmp_path: Path, run: Path, *overrides: str) -> list[str]:
    small_setup(tmp_path)
    files = ["--train", str(tmp_path / "train.conll"), "--valid", str(tmp_path / "valid.conll")]
    sets = [part for override in [*SMALL, *overrides] for part in ("--set", override)]
    return command("train", "tagging", *files, "--out", str(run), *sets)


def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "RECURRA_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}


def wait_for_step(run: Path, process: subprocess.Popen[str], step: int = 0) -> None:
    """Wait for a checkpoint of that step or a later one; pytest's own limit ends a wait for a process that hangs."""
    while (at := position_of(run)) is None or at.step < step:
        assert process.poll() is None, process.stderr.read() if process.stderr else "the process has ended"
        time.sleep(0.01)


def test_kill_9_and_resume_end_with_the_weights_of_an_unbroken_run(tmp_path: Path) -> None:
    # The run would never end, and nothing in it depends on when it would: whenever the kill comes, it is in its midst.
    options = ("training.save_minutes=0", "training.schedule=constant", "training.warmup=0", "training.epochs=none")
    run = tmp_path / "killed"
    endless = train_command(tmp_path, run, *options, "training.steps=1000000000")
    with subprocess.Popen(endless, env=environment(tmp_path), text=True, stderr=subprocess.PIPE) as process:
        wait_for_step(run, process, 3)
        process.kill()
    at = position_of(run)
    assert at is not None
    assert process.returncode == -signal.SIGKILL
    assert not (run / "summary.json").exists()
    end = f"training.steps={at.step + 9}"
    resume(run, Silent(), overrides=[end])
    begin(small_setup(tmp_path, *options, end), tmp_path / "whole", Silent())
    assert digest(run) == digest(tmp_path / "whole")


def test_ctrl_c_saves_and_exits_with_130(tmp_path: Path) -> None:
    run = tmp_path / "stopped"
    arguments = train_command(tmp_path, run, "training.epochs=1500", "training.save_minutes=0.0001")
    with subprocess.Popen(arguments, env=environment(tmp_path), text=True, stderr=subprocess.PIPE) as process:
        wait_for_step(run, process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"recurra train {run} --resume" in said
    assert "Traceback" not in said


SLOW_TASK = '''
import hashlib, os, time
from pathlib import Path
from recurra.tasks.tagging import Tagging

def dawdle(where):
    if os.environ.get("DAWDLE") in (where, where + " in C"):
        Path(f"{where}.begun").touch()
        if os.environ["DAWDLE"] == where:
            time.sleep(60)
        else:  # Python sees no signal before this has ended
            hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 10**9)

class Slow(Tagging):
    """Tagging that takes a minute for a step or a validation."""

    def encode(self, example):
        dawdle("preparation")
        return super().encode(example)

    def predict(self, model, batch, *, detail=False):
        dawdle("validation")
        return super().predict(model, batch, detail=detail)

    def loss(self, model, batch, *moment):
        dawdle("step")
        return super().loss(model, batch, *moment)
'''


def stopped_while(where: str, tmp_path: Path, *overrides: str, renamed: Mapping[str, str] | None = None) -> str:
    """What a run of the slow task says that gets Ctrl-C in the middle of a step or a validation."""
    names = {"tagging": "slow:Slow", **(renamed or {})}
    (tmp_path / "slow.py").write_text(SLOW_TASK)
    arguments = [names.get(word, word) for word in train_command(tmp_path, Path("run"), *overrides)]
    told = {**environment(tmp_path), "DAWDLE": where}
    began = time.monotonic()
    with subprocess.Popen(
        arguments,
        env=told,
        text=True,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a background job ignores it
    ) as process:
        while not (tmp_path / f"{where.removesuffix(' in C')}.begun").exists():
            assert process.poll() is None, process.stderr.read() if process.stderr else "the process has ended"
            time.sleep(0.01)
        to_start = time.monotonic() - began  # which is how busy this machine is
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert time.monotonic() - asked < 2 + to_start / 2
    assert process.returncode == 130
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("where", ["validation", "validation in C"])
def test_ctrl_c_ends_a_validation_at_once_and_the_resumed_run_is_exact(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = stopped_while(where, tmp_path, "training.epochs=3")
    assert "everything is saved. Continue with: recurra train run --resume" in said
    at = position_of(tmp_path / "run")
    assert at is not None
    assert at.validated == -1
    assert at.step > 0
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    resume(Path("run"), Silent())
    config = (tmp_path / "run" / "config.toml").read_text()
    (tmp_path / "again.toml").write_text(config)
    begin(setup("again.toml"), Path("whole"), Silent())
    assert digest(Path("run")) == digest(Path("whole"))
    validated = [line.step for line in read_log(Path("run/metrics.jsonl")) if isinstance(line, ValidLine)]
    assert validated == [line.step for line in read_log(Path("whole/metrics.jsonl")) if isinstance(line, ValidLine)]


@pytest.mark.parametrize("where", ["step", "step in C"])
def test_ctrl_c_ends_a_long_step_too_and_says_where_the_run_goes_on(where: str, tmp_path: Path) -> None:
    said = stopped_while(where, tmp_path)
    assert "stopped during step 1; the last checkpoint is from step 0. Continue from there with:" in said
    at = position_of(tmp_path / "run")
    assert at is not None
    assert at.step == 0


def test_ctrl_c_before_training_says_that_nothing_is_saved(tmp_path: Path) -> None:
    said = stopped_while("preparation", tmp_path)
    assert said == "\nrecurra: stopped before training began; nothing is saved.\n"
    assert not (tmp_path / "run").exists()


def test_ctrl_c_while_the_finished_run_is_scored_says_how_to_score_it(tmp_path: Path) -> None:
    said = stopped_while("validation", tmp_path, "training.steps=2", renamed={"--valid": "--test"})
    assert "training has finished, but the run has not been scored yet. To score it: recurra train run --resume" in said


def test_the_last_validation_is_done_within_the_minutes(tmp_path: Path) -> None:
    this = small_setup(tmp_path, "training.minutes=1", "training.epochs=none")
    task, store = prepared(this.kind, this.settings, lambda _: None)
    trainer = Trainer(task, store, HeldOut([], []), tmp_path / "run", Silent())
    trainer.position.step, trainer.position.seconds = 7, 50.0
    trainer.validation_seconds = 5.0
    assert trainer._ended() is None
    trainer.validation_seconds = 12.0
    assert trainer._ended() == "1 minutes are over"
    trainer.position.validated = 7
    assert trainer._ended() is None


def test_a_dry_run_estimates_the_time_of_an_epoch_and_the_memory(tmp_path: Path) -> None:
    this = small_setup(tmp_path)
    said: list[str] = []
    told = rehearsal(*prepared(this.kind, this.settings, lambda _: None), said.append)
    [before] = said
    assert re.fullmatch(
        r"computing the largest batch, \d+ rows of \d+, or a part of it, to measure time and memory", before
    )
    assert re.search(r"^time     about [\d.]+ s an epoch on this machine, .* s for the largest batch$", told, re.M)
    memory = re.search(r"^memory   about ([\d.]+) MiB in all: ([\d.]+) MiB for .*; ([\d.]+) MiB kept", told, re.M)
    assert memory is not None
    whole, weights, kept = map(float, memory.groups())
    assert weights + kept < whole < 1000


def test_a_batch_that_is_too_large_to_be_tried_is_estimated_from_a_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    this = small_setup(tmp_path, "training.batch_size=40")
    task, store = prepared(this.kind, this.settings, lambda _: None)
    kept = re.compile(r"; ([\d.]+) MiB kept for the backward pass")
    whole = kept.search(rehearsal(task, store))
    monkeypatch.setattr("recurra.training.rehearsal.LARGE_BYTES", 0)
    told = rehearsal(task, store)
    part = kept.search(told)
    assert whole is not None
    assert part is not None
    assert "for the largest batch (estimated from 4 of its 40 rows)" in told
    assert float(part[1]) == pytest.approx(float(whole[1]), rel=0.2)


def test_a_loss_that_is_no_number_names_step_layer_and_batch(tmp_path: Path) -> None:
    this = small_setup(tmp_path)
    task, store = prepared(this.kind, this.settings, lambda _: None)
    trainer = Trainer(task, store, HeldOut([], []), tmp_path / "run", Silent())
    with torch.no_grad():
        trainer.model.recurrent.cells[0][0].from_input.weight.fill_(math.nan)  # type: ignore[union-attr, index]
    with Log(tmp_path / "run") as log, pytest.raises(TrainingError) as error:
        trainer.run(log)
    said = str(error.value)
    assert "at step 1 (epoch 1)" in said
    assert "recurrent.cells.0.0" in said
    assert "train.conll:" in said


def test_a_folder_with_a_run_is_not_overwritten(tmp_path: Path) -> None:
    begin(small_setup(tmp_path, "training.steps=1"), tmp_path / "run", Silent())
    before = digest(tmp_path / "run")
    with pytest.raises(CheckpointError, match="already contains a run"):
        begin(small_setup(tmp_path, "training.steps=1"), tmp_path / "run", Silent())
    assert digest(tmp_path / "run") == before


def test_only_limits_can_change_when_a_run_is_resumed(tmp_path: Path) -> None:
    begin(small_setup(tmp_path, "training.steps=2"), tmp_path / "run", Silent())
    with pytest.raises(ConfigError, match="only limits can change"):
        resume(tmp_path / "run", Silent(), overrides=["model.hidden=99"])
    with pytest.raises(ConfigError, match=r"model\.hidden cannot be used with --resume: only limits can change"):
        resume(tmp_path / "run", Silent(), overrides={"training": {"steps": 4}, "model": {"hidden": 99}})
    resume(tmp_path / "run", Silent(), overrides=["training.steps=4"])
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["steps"] == 4
    resume(tmp_path / "run", Silent(), overrides={"training": {"steps": 5}})
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["steps"] == 5


def test_a_run_on_other_data_is_not_resumed(tmp_path: Path) -> None:
    begin(small_setup(tmp_path, "training.steps=2"), tmp_path / "run", Silent())
    with open(tmp_path / "train.conll", "a") as file:
        file.write("they\tPRON\n\n")
    with pytest.raises(CheckpointError, match="the training data has changed"):
        resume(tmp_path / "run", Silent(), overrides=["training.steps=4"])


def test_a_broken_checkpoint_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    begin(small_setup(tmp_path, "training.steps=2"), tmp_path / "run", Silent())
    checkpoint = tmp_path / "run" / "last" / "checkpoint.safetensors"
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[:100])
    with pytest.raises(CheckpointError, match=r"checkpoint\.safetensors is damaged: its content"):
        resume(tmp_path / "run", Silent(), overrides=["training.steps=4"])
    assert checkpoint.read_bytes() == whole[:100]


def test_two_batches_accumulated_are_one_of_both(tmp_path: Path) -> None:
    """With plain gradient descent and no dropout, two batches of one row make the update of one batch of two rows."""
    (tmp_path / "train.conll").write_text("they\tPRON\nrun\tVERB\n\nthe\tDET\nrun\tNOUN\n\n")
    (tmp_path / "valid.conll").write_text("they\tPRON\n\n")
    plain = (
        "training.steps=1",
        "model.dropout=0",
        "model.word_dropout=0",
        "training.optimizer=sgd",
        "training.warmup=0",
    )
    both = (*plain, "training.precision=float64", "training.average=none", "training.learning_rate=0.1")
    begin(small_setup(tmp_path, *both, "training.batch_size=2"), tmp_path / "one", Silent())
    begin(small_setup(tmp_path, *both, "training.batch_size=1", "training.accumulate=2"), tmp_path / "two", Silent())
    one, two = load(tmp_path / "one").model.state_dict(), load(tmp_path / "two").model.state_dict()
    for name, value in one.items():
        assert torch.allclose(value, two[name], atol=1e-12, rtol=0), name


def test_a_loss_may_be_a_mean_over_labels_or_over_sequences_or_a_sum(tmp_path: Path) -> None:
    """With plain gradient descent, a step is as long as the loss is large: three sentences have seven labels."""
    text = "they\tPRON\nrun\tVERB\nnow\tADV\n\nthe\tDET\nrun\tNOUN\n\nthey\tPRON\nrun\tVERB\n\n"
    (tmp_path / "train.conll").write_text(text)
    (tmp_path / "valid.conll").write_text("they\tPRON\n\n")
    plain = ["model.dropout=0", "model.word_dropout=0", "training.optimizer=sgd", "training.warmup=0"]
    plain += ["training.average=none", "training.precision=float64", "training.clip=none", "training.steps=1"]
    plain += ["training.batch_size=2", "training.accumulate=2"]

    def weights(name: str, *options: str) -> dict[str, torch.Tensor]:
        begin(small_setup(tmp_path, *plain, *options), tmp_path / name, Silent())
        return load(tmp_path / name).model.state_dict()

    start = weights("start", "training.learning_rate=1e-30")
    moved = {
        loss: {
            name: value - start[name]
            for name, value in weights(loss, "training.learning_rate=0.001", f"training.loss={loss}").items()
        }
        for loss in ("mean", "sequence", "sum")
    }
    for name, step in moved["mean"].items():
        assert torch.allclose(moved["sum"][name], 7 * step, atol=1e-14), name
        assert torch.allclose(moved["sequence"][name], 7 / 3 * step, atol=1e-14), name
    assert any(step.abs().max() > 1e-6 for step in moved["mean"].values())


@pytest.mark.parametrize("override", ["training.steps=80", "training.minutes=3"])
def test_a_limit_that_is_given_is_not_cut_short_by_the_usual_epochs(override: str) -> None:
    assert setup("tagging").settings.training.epochs == 20
    assert setup("tagging", overrides=[override]).settings.training.epochs is None
    assert setup("tagging", overrides=[override, "training.epochs=2"]).settings.training.epochs == 2


def test_very_few_updates_are_said_to_be_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(train_command(tmp_path, tmp_path / "run", "training.steps=2")[3:]) == 0
    assert "only 2 updates; models usually need thousands: train for more epochs" in capsys.readouterr().err


@pytest.mark.parametrize("seed", [0, 123_456_789, 2**63 - 1])
def test_any_seed_can_be_given(tmp_path: Path, seed: int) -> None:
    begin(small_setup(tmp_path, f"training.seed={seed}", "training.steps=2"), tmp_path / "run", Silent())
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["seed"] == seed


def test_a_batch_without_a_label_is_passed_over(tmp_path: Path) -> None:
    rows = [{"tokens": ["a"], "tags": [None]}, {"tokens": ["b", "c"], "tags": ["B", "C"]}]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = small("training.batch_size=1", "training.epochs=40", "training.learning_rate=0.02", "model.dropout=0")
    begin(
        setup("tagging", given={"train": str(tmp_path / "train.jsonl")}, overrides=options), tmp_path / "run", Silent()
    )
    assert load(tmp_path / "run").predict(["b c"])[0].output == "B C"


def test_patience_ends_a_run(tmp_path: Path) -> None:
    options = ("training.epochs=50", "training.patience=2", "training.learning_rate=1e-9", "training.average=none")
    begin(small_setup(tmp_path, *options), tmp_path / "run", Silent())
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["stopped"] == "no better score for 2 validations"
    assert summary["epochs"] == 3


def test_the_log_holds_each_step_once_and_says_what_was_best(tmp_path: Path) -> None:
    begin(small_setup(tmp_path), tmp_path / "run", Silent())
    lines = read_log(tmp_path / "run" / "metrics.jsonl")
    assert isinstance(lines[0], TrainLine)
    assert lines[0].step == 1
    valid = [line for line in lines if isinstance(line, ValidLine)]
    assert len(valid) == 3
    best = max(valid, key=lambda line: line.scores["accuracy"])
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["best"]["step"] == best.step
    assert summary["best"]["scores"]["accuracy"] == pytest.approx(best.scores["accuracy"])
    assert (tmp_path / "run" / "report.html").exists()
    assert (tmp_path / "run" / "card.md").exists()


def test_another_run_is_a_start_and_what_was_reused_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin(small_setup(tmp_path), tmp_path / "first", Silent())
    (tmp_path / "other.conll").write_text("they\tPRON\nsing\tVERB\nUH\tINTJ\n\n")
    arguments = train_command(tmp_path, tmp_path / "second", "training.steps=1", "training.learning_rate=1e-12")[3:]
    arguments[arguments.index("--train") + 1] = str(tmp_path / "other.conll")
    assert main([*arguments, "--set", "training.average=none", "--from", str(tmp_path / "first")]) == 0
    said = capsys.readouterr().err
    assert re.search(r"read_words\.embedding: (\d+) of \1 tokens kept, 2 added: 'sing', 'uh'", said), said
    assert "heads.0.transitions: reused, 4 of 5 rows" in said
    assert "recurrent.cells.0.0.from_input.weight: reused" in said
    old, new = load(tmp_path / "first"), load(tmp_path / "second")

    def vector(model: object, word: str) -> np.ndarray:
        number = model.task.words.id(word)  # type: ignore[attr-defined]
        return model.model.read_words.embedding.weight[number].detach().numpy()  # type: ignore[attr-defined]

    assert np.allclose(vector(old, "they"), vector(new, "they"), atol=1e-6)


def test_several_seeds_give_mean_and_spread(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = train_command(tmp_path, tmp_path / "runs", "training.steps=3")[3:]
    assert main([*arguments, "--seeds", "2", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 seeds: mean ± standard deviation\n")
    values = [
        json.loads((tmp_path / "runs" / f"seed-{seed}" / "summary.json").read_text())["best"]["scores"]["accuracy"]
        for seed in (1, 2)
    ]
    assert f"accuracy             {np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}" in said


def test_a_dry_run_trains_nothing_and_tells_what_would_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = train_command(tmp_path, tmp_path / "run")[3:]
    assert main([*arguments, "--dry-run", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "40 examples of 2 to 8 elements" in said
    assert "recurrent.cells.0.1.from_input.weight" in said
    assert "kept for the backward pass of the largest batch" in said
    assert not (tmp_path / "run").exists()
