"""Whole models with random settings and weights: their programs compute what torch computes, and answer the same.

Each example is a model of one kind: cells, stacks, directions, attentions with terms, wirings, bridges, encoders,
searches and rules are drawn. Functions are compared at sizes that were not recorded, as `recurra export` does, and
answers with those of the task's own search in torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

from recurra.errors import ConfigError
from recurra.training.evaluation import outputs_of
from tests.exporting.agreeing import assert_agrees, built, log_p_by_torch
from tests.exporting.random_models import FAMILIES, Family, questions, written

IS_SLOW = settings().max_examples >= 600
DRAWN = (Phase.explicit, Phase.generate)
"""No search for a smaller example, which takes minutes: what a model is made of is read at a glance."""

MANY_AT_ODDS = (HealthCheck.filter_too_much, HealthCheck.too_slow)
"""Settings are drawn one by one, and some of them do not go together."""

PART = 50
"""Models that are tried by one test."""

TIMES = 1.5
"""How much larger weights are than those that training starts from."""


def models(family: Family) -> st.SearchStrategy[tuple[dict[str, Any], int]]:
    """Settings of a model, and a seed of its weights."""
    return st.tuples(st.fixed_dictionaries(dict(family.settings)), st.integers(0, 99))


def agrees(file: Path, family: Family, asked: Mapping[str, Any], seed: int, *by: str) -> None:
    """That a model agrees with its program; settings at odds are drawn again."""
    try:
        kind, model = built(file, family.task, asked, seed, times=TIMES)
    except ConfigError:
        reject()
    examples = list(
        kind.questions(file, []) if family.data in ("table", "counts") else kind.questions(None, questions(family.data))
    )
    assert_agrees(kind, model, examples, by=by, folder=file.parent / "onnx", tolerance=1e-4)


def tried(folder: Path, family: Family, count: int, *by: str) -> int:
    """How many models were compared, so many as were asked for."""
    file, done = written(folder, family.data), Counter[str]()

    @settings(max_examples=count, phases=DRAWN, suppress_health_check=MANY_AT_ODDS)
    @given(model=models(family))
    def every(model: tuple[dict[str, Any], int]) -> None:
        agrees(file, family, *model, *by)
        done["compared"] += 1

    every()
    return done["compared"]


def parts() -> Iterator[Any]:
    """All models of every kind, so many together that a test of them ends within minutes."""
    for name, family in FAMILIES.items():
        count = family.many if IS_SLOW else family.few
        for first in range(0, count, PART):
            yield pytest.param(name, min(PART, count - first), id=f"{name} {1 + first // PART}")


@pytest.mark.hypothesis  # a search for examples inside of a test: `make slow-test` must be told
@pytest.mark.parametrize(("name", "count"), [*parts()])
def test_programs_of_random_models_agree_with_torch(tmp_path: Path, name: str, count: int) -> None:
    assert tried(tmp_path, FAMILIES[name], count, "numpy") == count


DRAWN_BEFORE: dict[str, tuple[str, dict[str, Any], int]] = {
    "a mix of layers before the step": (
        "copying",
        {
            "model.copy": True,
            "model.wiring": "inside",
            "model.readout": "maxout",
            "model.mix": "concat",
            "model.layers": 2,
            "model.cell": "gru",
        },
        50,
    ),
    "places that nothing tells apart": (
        "pointing",
        {
            "model.pointer": "scaled_dot",
            "model.wiring": "between",
            "model.attention": "scaled_dot",
            "model.encoder.kind": "embeddings",
            "model.start": "max",
            "model.layers": 1,
            "model.cell": "gru",
            "model.skip": "residual",
            "decoding.no_repeat": 2,
        },
        64,
    ),
}
"""Settings and seeds of models of which a search of the past has said that something is wrong."""
SMALL = {"model.hidden": 4, "model.embedding": 4, "data.source.tokens": "symbols", "decoding.max_length": 6}


@pytest.mark.parametrize("name", DRAWN_BEFORE)
def test_programs_of_models_that_were_drawn_before_agree_with_torch(tmp_path: Path, name: str) -> None:
    family, asked, seed = DRAWN_BEFORE[name]
    data = FAMILIES[family].data
    agrees(written(tmp_path, data), FAMILIES[family], {**SMALL, **asked}, seed, "numpy")


def test_torch_says_whether_another_text_is_as_good(tmp_path: Path) -> None:
    family, asked, seed = DRAWN_BEFORE["places that nothing tells apart"]
    file = written(tmp_path, FAMILIES[family].data)
    best = {**SMALL, **asked, "decoding.width": 50, "decoding.best": 20}
    kind, model = built(file, FAMILIES[family].task, best, seed, times=TIMES)
    [example] = kind.questions(None, ["a b d c a c"])  # c stands at 4 and 6, a at 1 and 5
    [answer] = [kind.answer(example, output) for output in outputs_of(kind, model, [kind.encode(example)])]

    def log_p(each: Mapping[str, Any], text: str) -> Any:
        return log_p_by_torch(kind, model, example, answer._replace(output=text, detail=each))

    answers = [answer.detail | {"output": answer.output}, *answer.detail["alternatives"]]
    for each in answers:
        swapped = each["output"].translate(str.maketrans("46", "64"))
        assert each["log_probability"] == pytest.approx(log_p(each, each["output"]), abs=1e-5)
        assert each["log_probability"] == pytest.approx(log_p(each, swapped), abs=1e-5)
    assert abs(log_p(answers[0], answers[0]["output"]) - log_p(answers[0], answers[-1]["output"])) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_programs_of_random_models_agree_with_torch_in_c_and_onnx(tmp_path: Path, name: str) -> None:
    assert tried(tmp_path, FAMILIES[name], 25, "c", "onnx") == 25
