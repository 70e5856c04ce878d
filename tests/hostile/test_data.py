"""Data and config files with random damage: rows come out of them, or a sentence that names the file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.hostile.fuzzing import Kind, config_case, data_case, prepare

AT_ONCE, FEW, MANY = 500, 2_000, 200_000
"""Cases of one test, and cases of all tests in `make test` and in `make slow-test`."""

SLOW = [pytest.param(first, marks=pytest.mark.slow) for first in range(FEW, MANY, AT_ONCE)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", [*range(0, FEW, AT_ONCE), *SLOW])
def test_a_damaged_file_gives_rows_or_a_sentence_about_it(first: int, tmp_path: Path) -> None:
    outcomes = [
        (seed, (config_case if seed % 5 == 0 else data_case)(seed, tmp_path)) for seed in range(first, first + AT_ONCE)
    ]
    for seed, outcome in outcomes:
        if not outcome.is_read:
            assert "case." in outcome.said, (seed, outcome.said)
            assert outcome.said.endswith((".", "?")), (seed, outcome.said)
    assert {outcome.is_read for _, outcome in outcomes} == {True, False}


MILLION = 1_000_000
LONG = {
    "tagging": Kind("tagging", "conll", b"word\tX\nother\tY\n" * (MILLION // 2) + b"\na\tX\n\n"),
    "classification": Kind("classification", "ft", b"__label__a " + b"a " * MILLION + b"\n__label__b c\n"),
    "seq2seq": Kind("seq2seq", "tsv", b"a " * MILLION + b"\t" + b"b " * MILLION + b"\nc\td\n"),
    "language_model": Kind("language_model", "txt", b"a " * MILLION),
    "forecasting": Kind("forecasting", "csv", b"load\n" + b"1.5\n2.5\n" * (MILLION // 2)),
    "vec2seq": Kind("vec2seq", "tsv", b"1\t2\t" + b"a " * MILLION + b"\n3\t4\tb\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("task", LONG)
def test_a_sequence_of_a_million_tokens_is_read(task: str, tmp_path: Path) -> None:
    path = tmp_path / f"long.{LONG[task].ending}"
    path.write_bytes(LONG[task].content)
    began = time.process_time()
    assert prepare(LONG[task], path) == "read"
    assert time.process_time() - began < 60
