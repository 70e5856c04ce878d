"""A Transformer in sequence to sequence: it learns, and does all that other decoders do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recurra.training.trained import Trained, load
from tests.tasks.small_pairs import WORDS, small, table, trained, words
from tests.training.breaking import weights, weights_of_a_broken_run

READS, WRITES = "model.encoder=transformer", "model.decoder=transformer"
USUAL = ["training.learning_rate=0.01", "training.steps=60"]


def answers(model: Trained, sources: list[str]) -> list[str]:
    return [answer.output for answer in model.predict(sources)]


@pytest.mark.parametrize(
    "options",
    [
        [READS, WRITES],
        [WRITES, "training.r_drop=1", "model.dropout=0.05", "model.tied=output"],
        [READS, "model.start=mean", "training.learning_rate=0.02"],
        [READS, WRITES, "training.forcing=0.8"],
        [WRITES, "model.attention=none", 'model.conditioning=["first", "every", "output"]'],
        [READS, WRITES, "model.bidirectional=false", "model.layers=2", "training.precision=bfloat16"],
    ],
    ids=" ".join,
)
def test_eight_pairs_are_learned_by_heart_and_written_back(tmp_path: Path, options: list[str]) -> None:
    model = trained(tmp_path, words(tmp_path), *USUAL, *options)
    assert answers(model, [source for source, _ in WORDS]) == [target for _, target in WORDS]


def test_a_word_that_the_targets_do_not_know_is_copied(tmp_path: Path) -> None:
    names = ["Ada", "Bo", "Cy", "Di", "Ed", "Flo", "Gus", "Hal"]
    file = table(tmp_path / "a.tsv", [(f"my name is {name}", f"hello {name} !") for name in names])
    model = trained(tmp_path, file, *USUAL, "model.copy=true", "data.target.max_size=6", READS, WRITES)
    assert answers(model, ["my name is Flo", "my name is Zoë"]) == ["hello Flo!", "hello Zoë!"]


def test_runs_with_a_transformer_and_without_answer_as_one(tmp_path: Path) -> None:
    file = words(tmp_path)
    one = trained(tmp_path, file, *USUAL, READS, WRITES, run="transformer")
    trained(tmp_path, file, run="cells")
    both = load([tmp_path / "transformer", tmp_path / "cells"])
    sources = [source for source, _ in WORDS]
    assert answers(both, sources) == answers(one, sources)
    for answer in (one.predict(["cat"])[0], both.predict(["cat"])[0]):
        assert answer.alignment is not None
        np.testing.assert_allclose(answer.alignment.sum(1), 1, atol=1e-5)


@pytest.mark.parametrize(
    "options", [[READS, WRITES, "training.average=ema"], [WRITES, "training.forcing=0.7"]], ids=" ".join
)
def test_a_run_broken_and_resumed_ends_with_the_same_weights(tmp_path: Path, options: list[str]) -> None:
    file = words(tmp_path)
    extra = ["training.steps=9", "training.validate=4", "training.batch_size=4", "model.dropout=0.2", *options]
    trained(tmp_path, file, *extra, valid=file, run="whole")
    broken = weights_of_a_broken_run(small(file, *extra, valid=file), tmp_path / "broken", last=6)
    assert broken == weights(tmp_path / "whole")


@pytest.mark.parametrize(("both", "kind"), [("true", "Transformer"), ("false", "causal Transformer")])
def test_it_is_told_in_a_line(tmp_path: Path, both: str, kind: str) -> None:
    model = trained(tmp_path, words(tmp_path), "training.steps=1", READS, WRITES, f"model.bidirectional={both}")
    assert f", 2-layer {kind} 24 encoder, 2-layer Transformer 24 decoder, 19 symbols" in repr(model)
