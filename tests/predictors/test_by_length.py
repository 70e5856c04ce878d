"""Rows that are computed with others of like length are computed as they are all together."""

from __future__ import annotations

import numpy as np
import pytest

from recurra.predictors import by_length
from recurra.predictors.by_length import called_by_length
from recurra.programs.in_numpy import InNumpy
from recurra.programs.inputs import called
from tests.programs.test_folding import reading


def test_rows_of_like_length_give_what_all_rows_give_together(monkeypatch: pytest.MonkeyPatch) -> None:
    running = InNumpy(*reading(7, 3, 5))
    draw = np.random.default_rng(1)
    lengths = draw.permutation([*range(13), 4, 4, 12])
    given = {"tokens": draw.integers(7, size=(16, 12)), "lengths": lengths}
    wanted = called(running, "read", given)["read"]
    monkeypatch.setattr(by_length, "TOGETHER", 24)
    found = called_by_length(running, "read", given, lengths)["read"]
    assert found.shape == wanted.shape
    real = np.arange(12) < lengths[:, None]
    np.testing.assert_allclose(found[real], wanted[real], rtol=1e-6)
