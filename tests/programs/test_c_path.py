"""The best path of a chain in a printed C file is the one NumPy finds, among equals and with forbidden pairs too."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recurra.engines.c_library import compiler
from recurra.heads.lattice import Chain, best_path_in_numpy
from recurra.programs.c_path import chains
from recurra.programs.c_text import Printed
from recurra.programs.in_c import InC
from recurra.programs.program import Function, Named, Number, Operation, Program, Value
from recurra.programs.sizes import Size
from recurra.programs.weights import weights_content

B, T = Size.named("B"), Size.named("T")


def tagger(chain: Chain) -> tuple[Program, dict[str, NDArray[Any]]]:
    """A program whose scores are its inputs, with a chain."""
    labels = Size.of(len(chain.start))
    value = Value("float32", (B, T, labels))
    scores = Function((Named("x", value),), (Operation("mul", (0, Number(1.0)), (value,)),), (("tags0", 1),))
    weights = {"A": chain.A, "s": chain.start, "e": chain.end}
    chained = Function((), (), (("transitions", "A"), ("start", "s"), ("end", "e")))
    known = {name: ("float32", array.shape) for name, array in weights.items()}
    program = Program({"scores": scores, "chain0": chained}, known)
    return Program.from_json(program.to_json()), weights


def path(running: InC, scores: NDArray[Any], lengths: NDArray[Any], *, log_p: bool = True) -> tuple[Any, Any, int]:
    tags, found = np.full(scores.shape[:2], -1), np.full(len(scores), np.nan)
    call = running.code.recurra_path0
    call.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 4]
    addresses = [scores.ctypes.data, lengths.ctypes.data, tags.ctypes.data, found.ctypes.data if log_p else None]
    return tags, found, call(running.model, *scores.shape[:2], *addresses)


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("labels", [1, 2, 5, 17])
def test_c_finds_the_path_that_numpy_finds(labels: int) -> None:
    draw = np.random.default_rng(labels)
    chain = Chain(*(draw.normal(size=shape).astype(np.float32) for shape in ((labels, labels), labels, labels)))
    if labels > 2:
        chain.A[0, 1:3] = chain.start[2] = -np.inf
    scores = draw.normal(size=(6, 9, labels)).astype(np.float32)
    scores[3] = 0  # equals
    scores[4] *= 300  # where most sums lose their smaller numbers
    lengths = np.array([9, 1, 4, 9, 9, 0])
    program, weights = tagger(chain)
    running = InC(program, weights_content(program, weights))
    tags, log_p, status = path(running, scores, lengths)
    doubled = Chain(*(each.astype(np.float64) for each in chain))
    wanted, probable = best_path_in_numpy(doubled, scores.astype(np.float64), lengths)
    assert status == 0
    assert tags.tolist() == wanted.tolist()
    np.testing.assert_allclose(log_p, probable, atol=1e-9)
    assert path(running, scores, lengths, log_p=False)[0].tolist() == wanted.tolist()
    assert path(running, scores, np.array([9, 1, 4, 10, 9, 0]))[2] == 1, "a row is longer than there are steps"


def test_a_chain_of_another_size_than_the_scores_has_no_path_in_c() -> None:
    program, _ = tagger(Chain(*(np.zeros(shape, np.float32) for shape in ((3, 3), 3, 3))))
    assert chains(program) == [(0, 3)]
    assert "int recurra_path0(" in Printed(program).header()
    other, _ = tagger(Chain(*(np.zeros(shape, np.float32) for shape in ((2, 2), 2, 2))))
    mixed = Program({**program.functions, "chain0": other.functions["chain0"]}, {**other.weights})
    assert chains(mixed) == []
