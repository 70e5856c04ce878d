"""Data and config files with random damage: rows come out of them, or a sentence that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.fuzzing import config_case, data_case

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
