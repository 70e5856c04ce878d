"""The table of `recurra bench --device cuda`, as far as it needs no GPU."""

from __future__ import annotations

import pytest
import torch

from recurra import ConfigError
from recurra.reports import speed_on_gpu as speed
from recurra.reports.speed import Size

SHAPE = Size(3, 9, 8, 16)
YARDSTICK = {"bf16": 2.0, "fp16": 4.0, "tf32": 8.0}


def test_the_error_is_that_of_rounding() -> None:
    for cell in ("lstm", "min_gru"):
        assert 1e-9 < speed.error(cell, SHAPE, "loop", torch.float32, "cpu") < speed.LIMITS["fp32"]
        assert 1e-4 < speed.error(cell, SHAPE, "loop", torch.bfloat16, "cpu") < 5 * speed.LIMITS["bf16"]


def test_an_error_beyond_the_limit_of_its_type_is_marked() -> None:
    row = speed.OnGPU("gru", "auto", SHAPE, "tf32", "graph", 1.0, 0.5, 0.25, {"bf16": 0.25, "fp16": 1, "tf32": 2}, 9e-4)
    assert " ".join(speed.line_of(row).split()) == "3x9x8x16 gru graph tf32 1.000 0.500 0.25 0.25 1.00 2.00 9.0e-04"
    assert speed.line_of(row._replace(error=1.1e-3)).endswith("1.1e-03!")
    assert speed.line_of(row._replace(graph=None)).split()[5] == "-"


def test_what_was_not_measured_says_why() -> None:
    row = speed.OnGPU("gru", "vendor", SHAPE, "bf16", refusal="the engine 'vendor' cannot run the cell 'gru'")
    assert speed.line_of(row).split()[:4] == ["3x9x8x16", "gru", "vendor", "bf16"]
    assert speed.line_of(row).endswith("not measured: the engine 'vendor' cannot run the cell 'gru'")
    assert speed.summary([row]) == []


def test_the_summary_is_the_geometric_mean_over_shapes() -> None:
    rows = [speed.OnGPU("gru", "auto", SHAPE, "bf16", ratio=ratio) for ratio in (0.5, 2.0)]
    assert speed.summary(rows) == ["gru                auto     bf16  geometric mean 1.00, largest 2.00, of 2 shapes"]
    assert speed.summary(rows[:1])[0].endswith("of 1 shape")


def test_ratios_are_to_the_best_type_of_the_yardstick() -> None:
    assert speed.Yardstick(SHAPE, YARDSTICK).best == 2.0


def test_a_misspelt_cell_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'lstm'"):
        speed.measure([("lsmt", "lsmt")])


@pytest.mark.parametrize(("kind", "is_allowed"), [("tf32", True), ("fp32", False)])
def test_products_of_float32_use_tf32_only_where_asked_for(kind: str, is_allowed: bool) -> None:
    before = torch.backends.cuda.matmul.allow_tf32
    with speed.numbers(kind):
        assert torch.backends.cuda.matmul.allow_tf32 is torch.backends.cudnn.allow_tf32 is is_allowed
    assert torch.backends.cuda.matmul.allow_tf32 == before
