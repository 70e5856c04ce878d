"""Whole models with random settings and weights: their programs compute what torch computes, and answer the same.

Each example is a model of one task: cells, stacks, directions, attentions with terms, wirings, bridges, encoders,
searches and rules are drawn. Functions are compared at sizes that were not recorded, as `recurra export` does, and
answers with those of the task's own search in torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

from recurra.errors import ConfigError
from recurra.exporting.joining import difference, program_of, runners
from recurra.exporting.recording import record
from recurra.programs.in_numpy import InNumpy
from recurra.programs.inputs import Running
from recurra.runs import setup
from recurra.training.evaluation import outputs_of

IS_SLOW = settings().max_examples >= 600
DRAWN = (Phase.explicit, Phase.generate)
"""No search for a smaller example, which takes minutes: what a model is made of is read at a glance."""

MANY_AT_ODDS = (HealthCheck.filter_too_much, HealthCheck.too_slow)
"""Settings are drawn one by one, and some of them do not go together."""

FEW = {"seq2seq": 6, "tagging": 27, "classification": 32, "language_model": 35}
MANY = {"seq2seq": 800, "tagging": 400, "classification": 400, "language_model": 400}
"""Models that are drawn, in `make test` and in `make slow-test`."""

CELLS = (
    *("lstm", "gru", "elman", "peephole_lstm", "coupled_lstm", "min_gru", "min_lstm", "ind_rnn", "slstm"),
    *("layer_norm_lstm", "orthogonal_elman"),
)
SCORES = ("additive", "bilinear", "dot", "scaled_dot", "projected_dot")
TERMS = ("coverage", "monotonic", "location")

COMMON: dict[str, Any] = {
    "model.hidden": st.sampled_from([4, 6]),
    "model.embedding": st.just(4),
    "model.cell": st.sampled_from(CELLS),
    "model.layers": st.integers(1, 2),
    "model.mix": st.sampled_from(["last", "last", "concat", "mean", "learned"]),
    "model.skip": st.sampled_from(["none", "none", "residual", "highway"]),
}
TWO_WAYS: dict[str, Any] = {
    "model.bidirectional": st.booleans(),
    "model.direction": st.sampled_from(["forward", "forward", "backward"]),
    "model.merge": st.sampled_from(["concat", "concat", "sum", "mean"]),
}
TASKS: dict[str, dict[str, Any]] = {
    "seq2seq": {
        **COMMON,
        **TWO_WAYS,
        "model.attention": st.one_of(
            st.sampled_from([*SCORES, "none"]),
            st.builds(
                lambda name, terms: {"name": name, "terms": terms},
                st.sampled_from(SCORES),
                st.lists(st.sampled_from(TERMS), unique=True, max_size=2),
            ),
        ),
        "model.wiring": st.sampled_from(["outside", "between", "inside", "feeding", "conditional"]),
        "model.readout": st.sampled_from(["tanh", "maxout"]),
        "model.conditioning": st.sampled_from([[], [], ["first"], ["every"], ["output"]]),
        "model.encoder.kind": st.sampled_from(["rnn", "rnn", "rnn", "cnn", "embeddings"]),
        "model.start": st.sampled_from(["last", "mean", "max", "zeros"]),
        "model.bridge": st.sampled_from(["auto", "map"]),
        "decoding.search": st.sampled_from(["beam", "beam", "greedy", "sampling"]),
        "decoding.width": st.integers(2, 4),
        "decoding.length_penalty": st.sampled_from([0.0, 1.0]),
        "decoding.min_length": st.integers(0, 3),
        "decoding.no_repeat": st.integers(0, 2),
        "decoding.max_length": st.just(6),
        "data.source.tokens": st.just("symbols"),
        "data.target.tokens": st.just("symbols"),
    },
    "tagging": {
        **COMMON,
        **TWO_WAYS,
        "model.head": st.sampled_from(["softmax", "crf"]),
        "model.characters.cell": st.sampled_from(["none", "lstm", "gru"]),
        "model.characters.embedding": st.just(3),
        "model.characters.hidden": st.just(3),
    },
    "classification": {
        **COMMON,
        **TWO_WAYS,
        "model.summary": st.sampled_from(["last", "ends", "mean", "max", "attention"]),
        "model.characters.cell": st.sampled_from(["none", "lstm"]),
        "model.characters.embedding": st.just(3),
        "model.characters.hidden": st.just(3),
    },
    "language_model": {**COMMON, "model.tied": st.booleans()},
}
DATA = {
    "seq2seq": "".join(f"{text}\t{text[::-1]}\n" for text in ("a b c d", "b b a", "d", "c a d b a", "e a")),
    "tagging": "a\tX\nbe\tY\nc\tX\n\nc\tZ\na\tX\n\n",
    "classification": "text\tlabel\na be c\tyes\nc d\tno\na\tperhaps\n",
    "language_model": "a b c d a b\nc c b a\nd\n",
}
ASKED = ("a", "c b a", "a b be d e a c", "unknown d")


def models(task: str) -> st.SearchStrategy[tuple[dict[str, Any], int]]:
    """Settings of a model for a task, and a seed of its weights."""
    return st.tuples(st.fixed_dictionaries(TASKS[task]), st.integers(0, 99))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("data")
    endings = {"tagging": "conll", "language_model": "txt"}
    found = {task: folder / f"{task}.{endings.get(task, 'tsv')}" for task in DATA}
    for task, path in found.items():
        path.write_text(DATA[task])
    return found


def built(file: Path, task: str, asked: Mapping[str, Any], number: int) -> tuple[Any, torch.nn.Module]:
    """A task and a model of random weights, larger than those that training starts from; no settings at odds."""
    try:
        this = setup(task, given={"train": [str(file)]}, overrides={**asked, "data.cache": False})
        found = this.kind.prepared(this.kind.resolved(this.settings))
        torch.manual_seed(number)
        model = found.build().eval()
    except ConfigError:
        reject()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)
    return found, model


def assert_agrees(file: Path, task: str, asked: Mapping[str, Any], number: int, *, by_c: bool) -> None:
    kind, model = built(file, task, asked, number)
    predictor = kind.predictor()
    functions = predictor.functions(model)
    program, weights = program_of({each.name: record(model, each) for each in functions})
    every: list[Running] = runners(program, weights) if by_c else [InNumpy(program, weights)]
    examples = list(kind.questions(None, list(ASKED)))
    rows = list(kind.encode_all(examples))
    right = [kind.answer(each, output) for each, output in zip(examples, outputs_of(kind, model, rows), strict=True)]
    for running in every:
        for function in functions:
            difference(running, function, model)  # raises what is off by more than 1e-5
        outputs = predictor.outputs(running, rows)
        found = [kind.answer(each, output) for each, output in zip(examples, outputs, strict=True)]
        if task != "language_model":  # whose output is its score, rounded
            assert [each.output for each in found] == [each.output for each in right]
        assert [each.score for each in found] == pytest.approx([each.score for each in right], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_programs_of_random_models_agree_with_torch(files: Mapping[str, Path], task: str) -> None:
    count = MANY[task] if IS_SLOW else FEW[task]

    @settings(max_examples=count, phases=DRAWN, suppress_health_check=MANY_AT_ODDS)
    @given(model=models(task))
    def agrees(model: tuple[dict[str, Any], int]) -> None:
        assert_agrees(files[task], task, *model, by_c=False)

    agrees()


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_programs_of_random_models_agree_with_torch_in_c(files: Mapping[str, Path], task: str) -> None:
    @settings(max_examples=25, phases=DRAWN, suppress_health_check=MANY_AT_ODDS)
    @given(model=models(task))
    def agrees(model: tuple[dict[str, Any], int]) -> None:
        assert_agrees(files[task], task, *model, by_c=True)

    agrees()
