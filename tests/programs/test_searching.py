"""Searches in C find what those of recurra.search find: tokens, of equals too, scores, and where each token looked."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from recurra.errors import RecurraError
from recurra.exporting.joining import program_of
from recurra.exporting.recording import record
from recurra.programs.in_c import InC
from recurra.programs.inputs import Input, Recordable
from recurra.programs.program import Program
from recurra.programs.searching import Begun, Wanted, searched_in_c, why_not_in_c
from recurra.programs.weights import read_weights, write_weights
from recurra.search.beam import beam
from recurra.search.decoding import by_score
from recurra.search.greedy import greedy
from recurra.search.rules import Rules
from recurra.search.sampling import Filter, sample
from recurra.search.search import Hypothesis
from tests.search.tiny import SIZE

VOCABULARY = 7


class Tiny(nn.Module):
    """What tests/search/tiny.py computes, and one without attention."""

    def __init__(self, *, looks: bool) -> None:
        super().__init__()
        self.looks = looks
        self.recurrent = nn.Parameter(torch.randn(SIZE, SIZE))
        self.embedding = nn.Parameter(torch.randn(VOCABULARY, SIZE))
        self.output = nn.Parameter(torch.randn(SIZE, VOCABULARY))

    def step(self, tokens: Tensor, h: Tensor, *fixed: Tensor) -> dict[str, Tensor]:
        x = h @ self.recurrent + self.embedding[tokens]
        if not self.looks:
            h = x.tanh()
            return {"log_p": (h @ self.output).log_softmax(1), "state0": h}
        vectors, places = fixed
        each = len(tokens) // len(places)
        vectors, places = (part.repeat_interleave(each, 0) for part in (vectors, places))
        weights = (vectors @ h.unsqueeze(2)).squeeze(2).masked_fill(~places, -3e38).softmax(1)
        h = (x + (weights.unsqueeze(1) @ vectors).squeeze(1)).tanh()
        return {"log_p": (h @ self.output).log_softmax(1), "state0": h, "weights": weights}


@functools.cache
def recorded(*, looks: bool) -> tuple[Program, dict[str, NDArray[Any]]]:
    model = Tiny(looks=looks).eval()
    rows = "B*K" if looks else "N"
    inputs = [Input("tokens", (rows,), "ids", below=VOCABULARY), Input("state0", (rows, SIZE))]
    inputs += [Input("fixed0", ("B", "M0", SIZE)), Input("fixed1", ("B", "M0"), "flags")] if looks else []
    return program_of({"step": record(model, Recordable("step", inputs, model.step))})


class Case:
    """A model with drawn weights, and what a search of it begins with."""

    def __init__(self, folder: Path, seed: int, sentences: int, *, looks: bool, round_to: float) -> None:
        program, weights = recorded(looks=looks)
        draws = np.random.default_rng(seed)

        def drawn(*shape: int) -> NDArray[np.float32]:
            found = 2 * draws.standard_normal(shape)
            found = np.round(found / round_to) * round_to if round_to else found
            return found.astype(np.float32)

        own = {name: drawn(*array.shape) for name, array in weights.items()}
        write_weights(folder / "weights.bin", program, own)
        self.running = InC(program, read_weights(folder / "weights.bin", program)[0])
        self.tokens = draws.integers(0, VOCABULARY, sentences)
        self.moving = [drawn(sentences, SIZE)]
        count = np.arange(sentences) % 4 + 1
        self.places = np.arange(4) < count[:, None]
        self.fixed = [drawn(sentences, 4, SIZE), self.places] if looks else []

    def step(self, tokens: Any, moving: Any, fixed: Any) -> Any:
        log_p, h, *weights = self.running.run("step", [tokens, moving[0], *fixed])
        return log_p, (h, *weights)

    def in_python(self, wanted: Wanted) -> list[list[Hypothesis]]:
        every: dict[str, Any] = {
            "length": wanted.length,
            "ends": wanted.ends,
            "rules": wanted.rules,
            "length_penalty": wanted.length_penalty,
            "coverage_penalty": wanted.coverage_penalty,
            "watch": (lambda moving: moving[-1]) if self.fixed else None,
            "places": wanted.places,
        }
        begun = (self.step, self.tokens, tuple(self.moving), tuple(self.fixed))
        if wanted.search == "beam":
            return beam(*begun, width=wanted.width, best=wanted.best, **every)
        if wanted.search == "greedy":
            return [[each] for each in greedy(*begun, **every)]
        seeds = range(wanted.seed, wanted.seed + wanted.best)
        return by_score(
            [sample(*begun, keep=wanted.keep, seed=seed, numbers=wanted.numbers, **every) for seed in seeds]
        )

    def in_c(self, wanted: Wanted) -> list[list[Hypothesis]]:
        assert why_not_in_c(self.running, wanted) is None
        return searched_in_c(self.running, Begun(self.tokens, self.moving, self.fixed), wanted)


def found_or_refused(search: Any, wanted: Wanted) -> Any:
    """What a search finds, or the words in which it is refused."""
    try:
        return search(wanted)
    except RecurraError as error:
        return str(error)


def assert_same(found: Any, right: Any) -> None:
    if isinstance(right, str):
        assert found == right
        return

    def claims(each: Sequence[Sequence[Hypothesis]]) -> list[list[tuple[list[int], bool]]]:
        return [[(one.tokens, one.ended) for one in row] for row in each]

    assert claims(found) == claims(right)
    for own, row in zip(found, right, strict=True):
        for one, other in zip(own, row, strict=True):
            assert one.score == pytest.approx(other.score, rel=1e-6, abs=1e-6)
            assert one.log_probability == pytest.approx(other.log_probability, rel=1e-9, abs=1e-9)
            if other.watched is not None:
                assert np.array_equal(one.watched, other.watched)


ids = st.integers(0, VOCABULARY - 2)

rules = st.builds(
    lambda banned, forced, **others: Rules(
        banned=banned, forced=[each for each in forced if each not in banned], **others
    ),
    banned=st.lists(ids, max_size=2),
    forced=st.one_of(st.just([]), st.lists(ids, max_size=2)),
    prefix=st.one_of(st.just([]), st.lists(ids, max_size=3)),
    min_length=st.integers(0, 3),
    no_repeat=st.integers(0, 3),
)


@settings(max_examples=100 if settings().max_examples < 600 else 2000)
@given(
    seed=st.integers(0, 10**6),
    sentences=st.integers(1, 5),
    looks=st.booleans(),
    round_to=st.sampled_from([0.0, 1.0, 2.0]),
    lengths=st.lists(st.integers(3, 8), min_size=5, max_size=5),
    search=st.sampled_from(["beam", "beam", "greedy", "sampling"]),
    width=st.integers(1, 9),
    best=st.integers(1, 5),
    ends=st.sampled_from([[VOCABULARY - 1], [VOCABULARY - 1], []]),
    length_penalty=st.sampled_from([0.0, 0.8, 3.0]),
    coverage_penalty=st.sampled_from([0.0, 0.3]),
    rules=st.one_of(st.just(Rules()), rules),
    own_leasts=st.booleans(),
    temperature=st.sampled_from([1.0, 0.5, 3.0, 0.0]),
    top_k=st.sampled_from([None, 1, 3, 7, 20]),
    top_p=st.sampled_from([None, 0.3, 0.9, 1.0]),
)
def test_c_finds_what_python_finds(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    sentences: int,
    looks: bool,
    round_to: float,
    lengths: list[int],
    best: int,
    coverage_penalty: float,
    rules: Rules,
    own_leasts: bool,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    **others: Any,
) -> None:
    case = Case(tmp_path_factory.getbasetemp(), seed, sentences, looks=looks, round_to=round_to)
    own = [seed % 3, *[2] * (sentences - 1)] if own_leasts else []
    wanted = Wanted(
        length=lengths[:sentences],
        rules=rules._replace(min_lengths=own),
        best=best,
        seed=seed,
        numbers=[seed + 2**63 * row for row in range(sentences)],
        keep=Filter(temperature=temperature, top_k=top_k, top_p=top_p),
        watches=looks,
        coverage_penalty=coverage_penalty if looks else 0.0,
        places=case.places if looks and coverage_penalty else None,
        **others,
    )
    assert_same(found_or_refused(case.in_c, wanted), found_or_refused(case.in_python, wanted))
