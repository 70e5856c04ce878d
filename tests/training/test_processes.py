"""Several processes train one model: the curve of one process, the same bits each time, or a sentence why not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import recurra
from recurra.errors import ConfigError, TrainingError
from recurra.models.saved import read_tensors
from recurra.runs import Setup, begin, resume, setup
from recurra.settings import SettingError
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import START, Loss, Moment
from recurra.training import launching, several_processes
from recurra.training.device import own_gpu
from recurra.training.launching import Place, place_of_this_process
from recurra.training.log import EventLine, TrainLine, ValidLine, read_log
from recurra.training.position import position_of
from recurra.training.progress import Silent
from recurra.training.trainer import Trainer
from tests.forked import REPOSITORY
from tests.tasks.contracts import CASES, SMALL
from tests.training.device_threads import CAN_BE_SIMULATED
from tests.training.small import small_setup, write_sentences
from tests.training.together import Curve, curve, in_processes

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")

NOTHING_DRAWN = {
    "tagging": ["model.word_dropout=0"],
    "classification": ["model.word_dropout=0"],
    "classification of pairs": ["model.word_dropout=0"],
    "language_model": ["model.token_dropout=0", "model.weight_drop=0", "model.output_dropout=0"],
    "vec2seq of pictures": ["model.image.norm=layer", "model.image.dropout=0"],
    "question_answering": ["model.noise=0"],
}
"""What else is drawn in training beside dropout, switched off."""

STREAMS = [
    *("model.embedding=4", "model.dropout=0", "model.token_dropout=0", "model.weight_drop=0", "model.output_dropout=0"),
    *("reading.steps=5", "reading.vary_steps=true", "training.batch_size=3", "model.temporal_regularization=1"),
]
"""A running text whose states are carried on: three streams, of which one process reads two."""


@pytest.fixture(scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled once in this module, not in each of its processes."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(_cache))


def case_setup(name: str, folder: Path, *more: str) -> Setup:
    """The tiny run of a task's contract, without anything that is drawn."""
    case = CASES[name]
    file = folder / case.file
    file.write_text(case.content, "utf-8")
    kept = [each for each in (*SMALL, *case.settings) if not each.startswith("model.dropout")]
    drawn = [] if name in ("question_answering", "ctc", "similarity") else ["model.dropout=0"]
    sets = [*kept, *drawn, *NOTHING_DRAWN.get(name, ()), *more]
    return setup(case.task, given={"train": str(file), "valid": str(file)}, overrides=sets)


def plain_setup(folder: Path, *more: str) -> Setup:
    """A tagger without dropout."""
    return small_setup(folder, "model.dropout=0", "model.word_dropout=0", "training.precision=float64", *more)


def stream_setup(folder: Path, *more: str) -> Setup:
    text = folder / "text.txt"
    text.write_text("one two three four two three one four three two one " * 20, "utf-8")
    usual = ["model.hidden=5", "training.threads=1", "training.device=cpu", "training.precision=float64", *STREAMS]
    return setup("language_model", given={"train": str(text), "valid": str(text)}, overrides=[*usual, *more])


def difference(one: list[float], other: list[float]) -> float:
    assert len(one) == len(other) > 0
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def weights(run: Path) -> dict[str, torch.Tensor]:
    return read_tensors(run / "last" / "checkpoint.safetensors")[0]


def same(one: Path, other: Path) -> bool:
    left, right = weights(one), weights(other)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


# The curve of one process


@pytest.mark.parametrize(
    "more",
    [
        ("training.batch_tokens=60", "training.accumulate=2", "training.average=ema"),
        ("training.batch_size=1", "training.clip=0.5"),  # one of two processes never has a row
        ("training.batch_size=5", "training.loss=sequence", 'training.optimizer={name="sgd", momentum=0.9}'),
    ],
)
def test_two_processes_have_the_losses_of_one(more: tuple[str, ...], tmp_path: Path) -> None:
    this = plain_setup(tmp_path, "training.epochs=none", "training.steps=20", *more)
    one, two = curve(this, tmp_path / "one"), curve(this, tmp_path / "two", processes=2)
    assert difference(one, two) < 1e-9


def test_streams_are_shared_out_and_keep_their_states(tmp_path: Path) -> None:
    this = stream_setup(tmp_path, "training.epochs=3")
    one, two = curve(this, tmp_path / "one"), curve(this, tmp_path / "two", processes=2)
    assert difference(one, two) < 1e-9
    carried = [
        {name: value for name, value in weights(tmp_path / run).items() if "carried" in name} for run in ("one", "two")
    ]
    assert carried[0].keys() == carried[1].keys() != set()
    assert all(torch.allclose(carried[0][name], carried[1][name], atol=1e-9) for name in carried[0])


def test_the_mean_over_neighbours_is_that_of_the_whole_batch(tmp_path: Path) -> None:
    """The lines have different lengths, so that the means of two halves are not the mean of the whole."""
    more = ["model.temporal_regularization=5", "training.batch_size=3", "training.steps=6"]
    this = case_setup("language_model", tmp_path, *more, "training.precision=float64")
    one, two = curve(this, tmp_path / "one"), curve(this, tmp_path / "two", processes=2)
    assert difference(one, two) < 1e-9
    without = case_setup("language_model", tmp_path, *more[1:], "training.precision=float64")
    assert difference(one, curve(without, tmp_path / "without")) > 1e-3


def test_sparse_gradients_are_added_up_by_their_rows(tmp_path: Path) -> None:
    rows = ["text\tlabel", *(f"w{n % 7} w{n % 5} x{n}\t{'ab'[n % 2]}" for n in range(30))]
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    sets = [
        "model.encoder=bag",
        "model.bag.sparse=true",
        "model.bag.buckets=50",
        "model.bag.dropout=0",
        "model.dropout=0",
        "model.word_dropout=0",
    ]
    usual = ["training.batch_size=4", "training.epochs=3", "training.precision=float64", "training.threads=1"]
    usual += ["training.device=cpu"]
    this = setup("classification", given={"train": str(tmp_path / "train.tsv")}, overrides=[*sets, *usual])
    one, two = curve(this, tmp_path / "one"), curve(this, tmp_path / "two", processes=2)
    assert difference(one, two) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_every_task_has_the_losses_of_one_process(name: str, precision: str, tmp_path: Path) -> None:
    steps, most = (200, 1e-9) if precision == "float64" else (50, 1e-5)
    settings = (f"training.precision={precision}", f"training.steps={steps}", "training.validate=100")
    # Forecasting begins at an optimum: Adam with an eps of 1e-8 would follow the sign of gradients that are rounding.
    steady = ['training.optimizer={name="adam", eps=0.0001}'] if name == "forecasting" else []
    this = case_setup(name, tmp_path, *settings, *steady)
    one, two = curve(this, tmp_path / "one"), curve(this, tmp_path / "two", processes=2)
    assert len(one) == steps
    assert difference(one, two) < most


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["planned", "vendor", "loop"])
@pytest.mark.parametrize("task", ["tagging", "seq2seq"])
def test_every_engine_of_a_cpu_has_the_losses_of_one_process(engine: str, task: str, tmp_path: Path) -> None:
    settings = ("training.precision=float64", "training.steps=100", f"model.engine={engine}")
    this = case_setup(task, tmp_path, *settings)
    one, two = curve(this, tmp_path / "one"), curve(this, tmp_path / "two", processes=2)
    assert len(one) == 100
    assert difference(one, two) < 1e-9


@pytest.mark.slow
def test_the_mean_of_checkpoints_is_that_of_one_process(tmp_path: Path) -> None:
    mean = ['training.average={name="checkpoints", last=3}', "training.steps=20", "training.validate=4"]
    this = stream_setup(tmp_path, *mean)
    one, two = curve(this, tmp_path / "one"), curve(this, tmp_path / "two", processes=2)
    assert difference(one, two) < 1e-9
    best = [read_tensors(tmp_path / run / "model.safetensors")[0] for run in ("one", "two")]
    assert best[0].keys() == best[1].keys()
    assert all(torch.allclose(best[0][name], best[1][name], atol=1e-9) for name in best[0])
    scores = [json.loads((tmp_path / run / "summary.json").read_text())["best"]["scores"] for run in ("one", "two")]
    assert scores[0] == pytest.approx(scores[1], abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("independent", ["true", "false"])
def test_a_text_fine_tuned_with_old_text_has_the_losses_of_one_process(independent: str, tmp_path: Path) -> None:
    alone = f"data.independent={independent}"
    begin(stream_setup(tmp_path, "training.steps=4", alone), tmp_path / "base", Silent())
    (tmp_path / "new.txt").write_text("two one five one\nsix one\n" * 15, "utf-8")
    few = ["training.fine_tuning.old_share=0.5", "training.steps=30", "training.precision=float64"]
    this = setup(None, given={"train": str(tmp_path / "new.txt")}, overrides=few, start_from=tmp_path / "base")
    one, two = curve(this, tmp_path / "one"), curve(this, tmp_path / "two", processes=2)
    assert len(one) == 30
    assert difference(one, two) < 1e-9


@pytest.mark.slow
def test_a_tagger_fine_tuned_with_old_sentences_has_the_losses_of_one_process(tmp_path: Path) -> None:
    begin(plain_setup(tmp_path, "training.epochs=1"), tmp_path / "base", Silent())
    new = write_sentences(tmp_path / "new.conll", 12, seed=8)
    few = ["training.fine_tuning.old_share=0.4", "training.epochs=3", "training.average=ema"]
    this = setup(None, given={"train": str(new)}, overrides=few, start_from=tmp_path / "base")
    one, two = curve(this, tmp_path / "one"), curve(this, tmp_path / "two", processes=2)
    assert difference(one, two) < 1e-9


@pytest.mark.slow
def test_r_drop_is_the_same_in_two_processes(tmp_path: Path) -> None:
    few = ("training.precision=float64", "training.steps=30")
    this = case_setup("seq2seq", tmp_path, "training.r_drop=1.0", "model.dropout=1e-9", *few)  # which drops nothing
    one, two = curve(this, tmp_path / "one"), curve(this, tmp_path / "two", processes=2)
    assert difference(one, two) < 1e-9


@pytest.mark.slow
def test_the_baseline_of_hard_attention_is_a_mean_over_all_processes_and_is_resumed_exactly(tmp_path: Path) -> None:
    hard = ['model.attention={name="additive", look="hard"}', "training.batch_size=3"]
    this = case_setup("seq2seq", tmp_path, *hard, "training.steps=8", "training.validate=4")
    curve(this, tmp_path / "whole", processes=2)
    half = case_setup("seq2seq", tmp_path, *hard, "training.steps=4", "training.validate=4")
    curve(half, tmp_path / "parts", processes=2)
    again = ["training.steps=8"]
    assert in_processes(2, partial(resume, tmp_path / "parts", Silent(), overrides=again)) == ["", ""]
    assert "carried.0" in weights(tmp_path / "whole")
    assert same(tmp_path / "whole", tmp_path / "parts")


# The same bits


def test_a_resumed_run_of_two_processes_is_the_unbroken_one(tmp_path: Path) -> None:
    drawn = ["model.dropout=0.3", "reading.carry=0.5", "training.average=ema", "training.validate=7"]
    drawn += ["training.schedule=constant", "training.warmup=0"]

    def steps(number: int) -> Setup:
        return stream_setup(tmp_path, *drawn, f"training.steps={number}")

    curve(steps(20), tmp_path / "whole", processes=2)
    curve(steps(9), tmp_path / "parts", processes=2)
    said = in_processes(2, partial(resume, tmp_path / "parts", Silent(), overrides=["training.steps=20"]))
    assert said == ["", ""]
    assert same(tmp_path / "whole", tmp_path / "parts")


def test_another_number_of_processes_goes_on_from_a_checkpoint_and_says_so(tmp_path: Path) -> None:
    one = curve(stream_setup(tmp_path, "training.steps=24"), tmp_path / "one")
    begun = curve(
        stream_setup(tmp_path, "training.steps=12", "training.schedule=constant"), tmp_path / "run", processes=2
    )
    assert len(begun) == 12
    told = Curve()
    resume(tmp_path / "run", told, overrides=["training.steps=24"])
    [said] = [note for note in told.notes if "goes on in" in note]
    assert said.startswith("the run was trained in 2 processes until step 12 and goes on in 1: ")
    assert len(told.losses) == 12
    assert len(one) == 24


def test_only_the_first_process_writes(tmp_path: Path) -> None:
    curve(plain_setup(tmp_path, "training.epochs=2"), tmp_path / "run", processes=2)
    lines = read_log(tmp_path / "run" / "metrics.jsonl")
    assert [line.text for line in lines if isinstance(line, EventLine)] == ["2 epochs done"]
    steps = [line.step for line in lines if isinstance(line, TrainLine)]
    assert len(steps) == len(set(steps))
    assert (tmp_path / "run" / "report.html").exists()


def validates_for_longer_than_it_waits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(several_processes, "PATIENCE", timedelta(seconds=2))
    usual = Trainer.scores

    def slow(self: Trainer) -> Any:
        time.sleep(3)
        return usual(self)

    patch.setattr(Trainer, "scores", slow)


def test_a_validation_may_take_longer_than_a_process_waits_in_a_step(tmp_path: Path) -> None:
    this = plain_setup(tmp_path, "training.epochs=1")
    assert len(curve(this, tmp_path / "run", processes=2, changed=validates_for_longer_than_it_waits)) > 1


def has_memory_for_two_rows(patch: pytest.MonkeyPatch) -> None:
    usual = Tagging.loss

    def short(self: Tagging, model: Any, batch: Any, moment: Moment = START) -> Loss:
        if model.training and os.environ["RANK"] == "1" and len(batch.tags[0]) > 2:
            raise MemoryError
        return usual(self, model, batch, moment)

    patch.setattr(Tagging, "loss", short)


def test_a_batch_too_large_for_one_process_is_halved_there_alone(tmp_path: Path) -> None:
    this = plain_setup(tmp_path, "training.epochs=1", "training.batch_size=8")
    one = curve(this, tmp_path / "one")
    assert difference(one, curve(this, tmp_path / "two", processes=2, changed=has_memory_for_two_rows)) < 1e-9


# What goes wrong


def finds_nan_in_the_third_step(patch: pytest.MonkeyPatch) -> None:
    usual = Tagging.loss

    def wrong(self: Tagging, model: Any, batch: Any, moment: Moment = START) -> Loss:
        found = usual(self, model, batch, moment)
        is_wrong = model.training and os.environ["RANK"] == "1" and moment.step == 2
        return found._replace(total=found.total * torch.nan) if is_wrong else found

    patch.setattr(Tagging, "loss", wrong)


def test_a_loss_that_is_not_finite_is_explained_by_the_process_that_has_it(tmp_path: Path) -> None:
    this = plain_setup(tmp_path)
    said = in_processes(2, partial(begin, this, tmp_path / "run", Silent()), finds_nan_in_the_third_step)
    assert said[0] == said[1]
    assert said[0].startswith("TrainingError: the loss became nan at step 3 (epoch 1): the outputs of all layers are")
    assert "train.conll:" in said[0]


def is_told_to_stop_in_the_third_step(patch: pytest.MonkeyPatch) -> None:
    usual = Tagging.loss

    def asks(self: Tagging, model: Any, batch: Any, moment: Moment = START) -> Loss:
        if os.environ["RANK"] == "1" and moment.step == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return usual(self, model, batch, moment)

    patch.setattr(Tagging, "loss", asks)


def test_a_signal_to_one_process_stops_all_after_the_same_step_and_everything_is_saved(tmp_path: Path) -> None:
    this = plain_setup(tmp_path)
    said = in_processes(2, partial(begin, this, tmp_path / "run", Silent()), is_told_to_stop_in_the_third_step)
    assert said[0] == said[1]
    assert said[0].startswith("Interrupted: stopped at step 3, everything is saved. Continue with: recurra train ")
    position = position_of(tmp_path / "run")
    assert position is not None
    assert (position.step, position.processes) == (3, 2)


def is_told_to_stop_in_a_validation(patch: pytest.MonkeyPatch) -> None:
    usual = Trainer.scores

    def asks(self: Trainer) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return usual(self)

    patch.setattr(Trainer, "scores", asks)


def test_a_validation_is_cut_short_in_all_processes_and_the_run_is_saved(tmp_path: Path) -> None:
    this = stream_setup(tmp_path, "training.validate=3")
    said = in_processes(2, partial(begin, this, tmp_path / "run", Silent()), is_told_to_stop_in_a_validation)
    assert said[0].startswith("Interrupted: stopped at step 3, everything is saved. Continue with: recurra train ")
    assert said[1].startswith("Interrupted: ")
    assert any("carried" in name for name in weights(tmp_path / "run"))


def fails_in_the_third_step(patch: pytest.MonkeyPatch) -> None:
    usual = Tagging.loss

    def dies(self: Tagging, model: Any, batch: Any, moment: Moment = START) -> Loss:
        if os.environ["RANK"] == "1" and moment.step == 2:
            raise ValueError("no more")
        return usual(self, model, batch, moment)

    patch.setattr(Tagging, "loss", dies)


def test_a_process_that_ends_is_missed_by_the_others(tmp_path: Path) -> None:
    this = plain_setup(tmp_path)
    said = in_processes(2, partial(begin, this, tmp_path / "run", Silent()), fails_in_the_third_step)
    assert said[0].startswith("LostError: another process of this training has ended, or does not answer (")
    assert said[1] == "ValueError: no more"


def begin_each_its_own(setups: Sequence[Setup], folder: Path) -> None:
    begin(setups[int(os.environ["RANK"])], folder, Silent())


def test_processes_with_other_data_or_settings_do_not_begin(tmp_path: Path) -> None:
    setups = [plain_setup(tmp_path), plain_setup(tmp_path, "training.learning_rate=0.5")]
    said = in_processes(2, partial(begin_each_its_own, setups, tmp_path / "run"))
    assert said[0].startswith("ConfigError: process 1 and process 0 differ in the settings: ")
    assert said[1].startswith("ConfigError: process 0 and process 1 differ in the settings: ")
    assert not (tmp_path / "run").exists()


def cannot_be_shared_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tagging, "unshared", lambda _: "the loss of this task is a mean over a whole batch.")


def test_a_loss_that_is_no_sum_over_rows_is_refused(tmp_path: Path) -> None:
    this = plain_setup(tmp_path)
    said = in_processes(2, partial(begin, this, tmp_path / "run", Silent()), cannot_be_shared_out)
    assert said == ["ConfigError: the loss of this task is a mean over a whole batch."] * 2


def test_each_process_has_a_gpu_of_its_own() -> None:
    with pytest.raises(
        SettingError, match=r"training\.device = 'cuda:1' is one device, but there are 2 processes: use"
    ):
        own_gpu("cuda:1", 1, 2)
    if not torch.cuda.is_available():
        assert own_gpu("cuda", 1, 2) == "cuda:1"  # which is then refused: there is none


@pytest.mark.parametrize(
    ("here", "wanted", "said"),
    [
        (
            1,
            2,
            r"2 processes need a GPU each, but there is 1 here: train in one process, or with training\.device = 'cpu'",
        ),
        (
            2,
            4,
            r"4 processes need a GPU each, but there are 2 here: train in as many, or with training\.device = 'cpu'",
        ),
    ],
)
def test_more_processes_than_gpus_are_refused(
    here: int, wanted: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: here)
    with pytest.raises(SettingError, match=said):
        own_gpu("cuda", 0, wanted)
    assert own_gpu("cuda", 1, here) == "cuda:1"


def test_functions_of_this_process_are_refused_where_others_train(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="on_step and on_validation are functions of this process, but training in 2"):
        recurra.train(
            "tagging", train=write_sentences(tmp_path / "a", 4), out=tmp_path / "b", processes=2, on_step=print
        )


def test_an_environment_that_makes_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "first")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE must be numbers"):
        place_of_this_process()


def test_torchrun_says_in_the_environment_which_process_this_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    assert place_of_this_process() == Place(3, 4, 1, 2, "env://")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert place_of_this_process() is None


# The commands

DYING = """
import os, signal
from recurra.tasks.tagging import Tagging

class Dying(Tagging):
    def loss(self, model, batch, moment=None):
        if model.training and moment.step == 7 and os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0":
            if os.environ["RANK"] == "1" and os.environ["DIES"] == "yes":
                os.kill(os.getpid(), signal.SIGKILL)
            if os.environ["RANK"] == "0" and os.environ["DIES"] == "asks":
                os.kill(os.getppid(), signal.SIGINT)
        return super().loss(model, batch, moment)
"""
"""A tagger of which a process is killed at a step, or asks the launcher to stop, as Ctrl-C does."""

OFTEN = [
    *("model.hidden=6", "model.embedding=4", "model.characters.cell=none", "data.min_count=1", "data.cache=false"),
    *("training.batch_size=4", "training.steps=12", "training.validate=3", "training.threads=1", "training.device=cpu"),
]


def typed(folder: Path, *more: str) -> list[str]:
    """A command that trains such a tagger."""
    (folder / "dying.py").write_text(DYING)
    write_sentences(folder / "train.conll", 20, seed=1)
    sets = [word for each in OFTEN for word in ("--set", each)]
    return ["train", "dying:Dying", "--train", "train.conll", "--valid", "train.conll", *sets, *more]


def commanded(folder: Path, arguments: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "recurra", *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def unbroken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same run in two processes, of which none dies."""
    monkeypatch.setenv("DIES", "no")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    this = setup("dying:Dying", given={"train": "train.conll", "valid": "train.conll"}, overrides=OFTEN)
    curve(this, folder / "whole", processes=2)
    return folder / "whole"


@pytest.mark.slow
def test_a_killed_process_is_started_again_with_the_others_and_the_bits_are_those_of_an_unbroken_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = commanded(tmp_path, typed(tmp_path, "--out", "run", "--processes", "2"), DIES="yes")
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    [said] = [line for line in ended.stderr.splitlines() if "killed" in line]
    assert said.endswith(
        "process 1 of 2 was killed by signal 9 (SIGKILL): all start again from the last checkpoint (restart 1 of 3)"
    )
    events = [line.text for line in read_log(tmp_path / "run" / "metrics.jsonl") if isinstance(line, EventLine)]
    assert events == ["resumed from step 6", "12 steps done"]
    assert same(tmp_path / "run", unbroken(tmp_path, monkeypatch))


@pytest.mark.slow
def test_ctrl_c_stops_all_processes_and_everything_is_saved(tmp_path: Path) -> None:
    ended = commanded(tmp_path, typed(tmp_path, "--out", "run", "--processes=2", "--quiet"), DIES="asks")
    assert ended.returncode == 130, ended.stderr
    [said] = [line for line in ended.stderr.splitlines() if line]
    assert said.startswith("recurra: stopped at step 8, everything is saved. Continue with: recurra train run --resume")
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())


def test_an_error_of_all_processes_is_said_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    assert launching.launch(["check", str(tmp_path / "missing.tsv")], 2, said.append) == 2
    assert capfd.readouterr().err.count("recurra: ") == 1
    assert said == []


KILLED = """
import os, signal
if os.environ.get("RANK") == "1" and int(os.environ["TORCHELASTIC_RESTART_COUNT"]) < int(os.environ["KILLED"]):
    os.kill(os.getpid(), signal.SIGKILL)
"""
"""What Python runs when it starts: the second process is killed, the first few times."""


@pytest.mark.parametrize(("times", "restarts"), [(1, 1), (9, 3)])
def test_the_launcher_starts_all_again_where_one_was_killed_but_not_for_ever(
    times: int, restarts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sitecustomize.py").write_text(KILLED)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("KILLED", str(times))
    monkeypatch.setattr(launching, "ENDING_SECONDS", 0.1)
    said: list[str] = []
    status = launching.launch(["--version"], 2, said.append)
    assert [line.split("(")[-1] for line in said] == [f"restart {number + 1} of 3)" for number in range(restarts)]
    if times == 1:
        assert status == 0
    else:
        assert status == 2
        assert (
            "process 1 of 2 was killed by signal 9 (SIGKILL), after 3 restarts. Continue from" in capfd.readouterr().err
        )


@pytest.mark.slow
def test_processes_end_with_the_one_that_has_started_them(tmp_path: Path) -> None:
    arguments = typed(tmp_path, "--out", "run", "--processes", "2", "--set", "training.steps=100000")
    launcher = subprocess.Popen(
        [sys.executable, "-m", "recurra", *arguments], cwd=tmp_path, env={**os.environ, "DIES": "no"}, stderr=-3
    )
    while not (tmp_path / "run" / "metrics.jsonl").exists():
        time.sleep(0.1)
        assert launcher.poll() is None
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    assert len(children) == 2
    launcher.kill()
    launcher.wait()
    until = time.monotonic() + 10
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.slow
def test_python_trains_in_several_processes_too(tmp_path: Path) -> None:
    given = write_sentences(tmp_path / "train.conll", 20)
    small: dict[str, object] = {"training.steps": 5, "model.hidden": 6, "training.threads": 1, "data.cache": False}
    small |= {"training.device": "cpu"}
    for _ in range(2):
        model = recurra.train("tagging", train=given, out=tmp_path / "run", settings=small, processes=2, overwrite=True)
        assert model.predict(["the run"])[0].output
    with pytest.raises(TrainingError, match="training in 2 processes has failed"):
        recurra.train("tagging", train=tmp_path / "none.conll", out=tmp_path / "other", settings=small, processes=2)


AFTER_OTHER_WORK = """
import os, sys
from functools import partial
from pathlib import Path
from tests.training.device_threads import gradient, start

start()
if not os.fork():
    try:
        gradient()
    except RuntimeError as error:
        print(str(error), flush=True)
    os._exit(0)
os.wait()

import recurra
from tests.training.small import write_sentences
from tests.training.test_processes import plain_setup, difference
from tests.training.together import curve

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    given = write_sentences(folder / "a.conll", 20)
    settings = {"training.steps": 5, "model.hidden": 6, "training.threads": 1, "training.device": "cpu"}
    model = recurra.train("tagging", train=given, out=folder / "run", settings=settings, processes=2)
    print(bool(model.predict(["the run"])[0].output))
    this = plain_setup(folder, "training.epochs=1")
    print(difference(curve(this, folder / "one"), curve(this, folder / "two", processes=2)) < 1e-9)
"""
"""A program whose autograd has threads, as on a machine with a GPU, trains in several processes."""


@pytest.mark.slow
@pytest.mark.skipif(not CAN_BE_SIMULATED, reason="this torch takes no device that is written in Python")
def test_several_processes_train_after_other_work_where_there_is_a_gpu(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(AFTER_OTHER_WORK)
    ended = subprocess.run(
        [sys.executable, tmp_path / "program.py", tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    forked, *_, trained, same_losses = ended.stdout.splitlines()  # between them what the first process says
    assert forked.startswith("Unable to handle autograd's threading in combination with fork-based multiprocessing")
    assert (trained, same_losses) == ("True", "True")


@pytest.mark.slow
def test_torchrun_restarts_a_killed_process_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "2"]
    ended = subprocess.run(
        [*torchrun, "-m", "recurra", *typed(tmp_path, "--out", "run")],
        cwd=tmp_path,
        env={**os.environ, "DIES": "yes"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert same(tmp_path / "run", unbroken(tmp_path, monkeypatch))


AMONG_ITSELF = """
import sys
from recurra import runs
from recurra.cli import main
from recurra.training.launching import Place
from recurra.training.several_processes import SeveralProcesses

runs.place_of_this_process = lambda: Place(0, 1, 0, 1, "env://")
SeveralProcesses.is_one = False
sys.exit(main(sys.argv[1:]))
"""
"""A process that would train alone does all that several do, with itself: the one way to run NCCL on a single GPU."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [["hidden=6", "embedding=4"], ["encoder=bag", "bag.sparse=true", "bag.buckets=50", "bag.dropout=0"]]
)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_one_process_of_torchrun_has_the_losses_of_one_without(device: str, model: list[str], tmp_path: Path) -> None:
    """On the CPU by gloo, on a GPU by NCCL."""
    if device == "cuda" and not (torch.cuda.is_available() and torch.distributed.is_nccl_available()):
        pytest.skip("there is no GPU, or no NCCL in this torch")
    rows = ["text\tlabel", *(f"w{n % 7} w{n % 5} x{n}\t{'ab'[n % 2]}" for n in range(30))]
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    (tmp_path / "among_itself.py").write_text(AMONG_ITSELF)
    sets = [f"model.{each}" for each in (*model, "dropout=0", "word_dropout=0")]
    sets += ["training.precision=float64", "training.replay=false", "training.batch_size=4", "training.steps=12"]
    sets += ["training.validate=4", "data.cache=false", f"training.device={device}"]
    typed = ["train", "classification", "--train", "train.tsv", "--valid", "train.tsv"]
    typed += [word for each in sets for word in ("--set", each)]
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "1", "among_itself.py"]
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for folder, command in (("among_itself", torchrun), ("alone", ["-m", "recurra"])):
        ended = subprocess.run(
            [sys.executable, *command, *typed, "--out", folder],
            cwd=tmp_path,
            env={**os.environ, **paths},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ended.returncode == 0, ended.stderr
        assert ("training in 1 processes" in ended.stderr) == (folder == "among_itself"), ended.stderr
    one, other = weights(tmp_path / "among_itself"), weights(tmp_path / "alone")
    assert one.keys() == other.keys()
    assert all(torch.allclose(one[name], other[name], rtol=0, atol=1e-9) for name in one)
    scores = [
        [line.scores for line in read_log(tmp_path / folder / "metrics.jsonl") if isinstance(line, ValidLine)]
        for folder in ("among_itself", "alone")
    ]
    assert len(scores[0]) == len(scores[1]) == 3
    for mine, theirs in zip(*scores, strict=True):
        assert {**mine, "seconds": 0} == pytest.approx({**theirs, "seconds": 0}, abs=1e-9)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--processes", "0"], "--processes must be between 1 and 1,024, but is 0."),
        (["--processes", "2", "--seeds", "3"], "--seeds trains several models, one after the other, and several"),
    ],
)
def test_what_does_not_go_with_processes_is_refused(
    more: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from recurra.cli import main

    monkeypatch.chdir(tmp_path)
    write_sentences(tmp_path / "train.conll", 4)
    assert main(["train", "tagging", "--train", "train.conll", "--out", "run", *more]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--out", "run", "--processes", "2"], "--processes starts processes itself: leave it out under torchrun."),
        ([], "several processes write one run: say where with --out RUN."),
        (["--out", "run", "--seeds", "2"], "--seeds trains several models"),
    ],
)
def test_what_does_not_go_with_torchrun_is_refused(
    more: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from recurra.cli import main

    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.chdir(tmp_path)
    write_sentences(tmp_path / "train.conll", 4)
    assert main(["train", "tagging", "--train", "train.conll", *more]) == 2
    assert said in capsys.readouterr().err
