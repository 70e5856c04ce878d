"""A part of a model that is scored by itself: its weights are kept from its own best validation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from recurra.manifest import committing
from recurra.models.saved import read_tensors, write_tensors
from recurra.runs import Setup, begin, resume, setup, told
from recurra.training.log import TrainLine, ValidLine, read_log
from recurra.training.position import CHECKPOINT, MODEL, position_of
from recurra.training.progress import Silent
from recurra.training.trained import load
from tests.tasks.test_raw_tagging import FEW, treebank
from tests.training.breaking import weights, weights_of_a_broken_run


def its_setup(folder: Path, **changes: object) -> Setup:
    """A tagger that is good before its splitter is, or after it."""
    train, valid = folder / "train.conllu", folder / "valid.conllu"
    train.write_text(treebank(3), "utf-8")
    valid.write_text(treebank(1).replace("dit", "dort"), "utf-8")
    settings = {**FEW, "training.epochs": 5, "training.batch_tokens": 40, "training.schedule": "constant"}
    settings |= {"training.warmup": 0, "data.train": str(train), "data.valid": str(valid), **changes}
    return setup("tagging", overrides=settings)


def validations(run: Path) -> dict[int, Mapping[str, float]]:
    return {line.step: line.scores for line in read_log(run / "metrics.jsonl") if isinstance(line, ValidLine)}


def last_weights(run: Path) -> dict[str, Tensor]:
    found, _ = read_tensors(run / CHECKPOINT)
    return {name.removeprefix("model."): value for name, value in found.items() if name.startswith("model.")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    begin(its_setup(folder), folder / "run", Silent())
    return folder / "run"


def test_the_splitter_is_kept_from_its_own_best_validation(whole: Path, tmp_path: Path) -> None:
    lines = [line for line in read_log(whole / "metrics.jsonl") if isinstance(line, ValidLine)]
    best = {
        "accuracy": max(line.step for line in lines if line.best),
        "splitter": max(lines, key=lambda line: line.scores["splitter"]).step,
    }
    assert best["accuracy"] != best["splitter"], "the case says nothing where both are best at once"
    kept, _ = read_tensors(whole / MODEL)
    for name, step in best.items():
        run = tmp_path / name
        begin(its_setup(tmp_path, **{"training.steps": step}), run, Silent())
        at_that_step = last_weights(run)
        for weight, value in kept.items():
            if weight.startswith("splitter.") is (name == "splitter"):
                assert torch.equal(value, at_that_step[weight]), (name, weight)
    summary = json.loads((whole / "summary.json").read_text("utf-8"))
    assert summary["best"]["step"] == best["accuracy"]
    assert summary["best"]["parts"] == {"splitter": best["splitter"]}
    assert f"the weights of step {best['accuracy']} are kept, of the splitter those of step {best['splitter']}" in told(
        whole
    )


def test_the_score_of_the_splitter_is_what_evaluation_from_raw_text_counts(whole: Path) -> None:
    best = max(scores["splitter"] for scores in validations(whole).values())
    found = load(whole).with_settings({"evaluation.raw": True}).evaluate(whole.parent / "valid.conllu").values
    assert best == pytest.approx(sum(found[f"{name}_f1"] for name in ("tokens", "sentences", "words")) / 3, abs=1e-12)
    assert best < 1


def test_a_broken_run_keeps_the_same_weights_bit_for_bit(whole: Path, tmp_path: Path) -> None:
    best = json.loads((whole / "summary.json").read_text("utf-8"))["best"]
    last = best["parts"]["splitter"] + 1  # after the best splitter, and before the best of the rest
    assert last < best["step"]
    found = weights_of_a_broken_run(its_setup(tmp_path), tmp_path / "broken", last=last)
    assert found == weights(whole)
    assert position_of(tmp_path / "broken").best_parts == position_of(whole).best_parts  # type: ignore[union-attr]


def test_a_run_of_a_version_that_kept_the_whole_at_once_goes_on_so(tmp_path: Path) -> None:
    run = tmp_path / "run"
    begin(its_setup(tmp_path, **{"training.epochs": 2}), run, Silent())
    tensors, about = read_tensors(run / CHECKPOINT)
    for name in ("best_parts", "best_part_steps"):
        del about["position"][name]
    with committing(run) as new:
        write_tensors(new / CHECKPOINT, tensors, about)
    resume(run, Silent(), overrides=["training.epochs=5"])
    scores = validations(run)
    later = [step for step in scores if step > about["position"]["step"]]
    assert later
    assert all("splitter" not in scores[step] for step in later)
    best = json.loads((run / "summary.json").read_text("utf-8"))["best"]
    assert "parts" not in best
    begin(its_setup(tmp_path, **{"training.steps": best["step"]}), tmp_path / "until", Silent())
    kept, _ = read_tensors(run / MODEL)
    wanted = last_weights(tmp_path / "until")
    assert best["step"] in later, "the case says nothing where no later weights were kept"
    assert all(torch.equal(value, wanted[name]) for name, value in kept.items())


def test_training_data_without_raw_text_has_no_such_part(tmp_path: Path) -> None:
    its_setup(tmp_path)
    rows = [f"{form}\t{tag}" for form, tag in (("Il", "PRON"), ("dit", "VERB"))]
    for name in ("train", "valid"):
        (tmp_path / f"{name}.conll").write_text("\n".join(rows) + "\n\n", "utf-8")
    few = {name: value for name, value in FEW.items() if "splitter" not in name} | {"training.epochs": 1}
    files = {"data.train": str(tmp_path / "train.conll"), "data.valid": str(tmp_path / "valid.conll")}
    begin(setup("tagging", overrides={**few, **files}), tmp_path / "run", Silent())
    assert position_of(tmp_path / "run").best_parts == {}  # type: ignore[union-attr]
    lines = [line for line in read_log(tmp_path / "run" / "metrics.jsonl") if not isinstance(line, TrainLine)]
    assert all("splitter" not in line.scores for line in lines if isinstance(line, ValidLine))
