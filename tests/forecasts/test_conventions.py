"""How the series of a run are scaled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from recurra.cells import Cell, reads_gaps
from recurra.named import catalogue
from recurra.reading.gaps import cell_reads_gaps
from recurra.runs import begin, setup
from recurra.training.progress import Silent
from recurra.training.trained import load


def test_series_of_positive_values_are_divided_by_their_own_mean_and_not_shifted(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    shape = np.exp(draw.normal(size=40))
    rows = [f"s{number},{size * value:.9g}" for number, size in enumerate((1.0, 1000.0)) for value in shape]
    file = tmp_path / "a.csv"
    file.write_text("\n".join(["series,x", *rows]) + "\n")
    overrides = ["model.output=log_normal", "model.hidden=2", "training.steps=1", "data.cache=false"]
    begin(setup("forecasting", given={"train": str(file)}, overrides=overrides), tmp_path / "run", Silent())
    model = load(tmp_path / "run")
    task: Any = model.task
    small, large = task.read([str(file)])
    units = [task.conventions.unit_of(each).scale for each in (small, large)]
    assert [unit.mean.tolist() for unit in units] == [[0.0], [0.0]]
    np.testing.assert_allclose([unit.spread[0] for unit in units], [shape.mean(), 1000 * shape.mean()], rtol=1e-6)
    np.testing.assert_allclose(task.encode(small)["values"], task.encode(large)["values"], rtol=1e-5)
    first, second = model.predict_file(str(file), [], detail=True)
    np.testing.assert_allclose(1000 * np.array(first.detail["values"]), second.detail["values"], rtol=1e-4)


def test_which_cells_read_gaps_is_known_without_torch() -> None:
    for name in catalogue(Cell):
        assert cell_reads_gaps(name) == reads_gaps(name), name
    assert cell_reads_gaps("recurra.cells.gru_d:GRUD")
    assert not cell_reads_gaps({"name": "recurra.cells.gru:GRU"})
