"""The public face: the names, that each is documented by an example, and that importing is cheap."""

from __future__ import annotations

import subprocess
import sys

import pytest

import recurra
from recurra.cells import Cell, Wrapper
from recurra.named import catalogue, find


def test_the_public_names_are_these() -> None:
    assert recurra.__all__ == [
        "Cell",
        "CheckpointError",
        "ConfigError",
        "DataError",
        "EngineError",
        "Padded",
        "RecurraError",
        "Recurrent",
        "Trained",
        "TrainingError",
        "compare",
        "detached",
        "from_torch",
        "generate",
        "load",
        "pad",
        "to_torch",
        "train",
    ]
    assert {*recurra.__all__, "__version__"} == set(dir(recurra))
    assert all(getattr(recurra, name) is not None for name in recurra.__all__)
    with pytest.raises(AttributeError, match="module 'recurra' has no attribute 'Recurrant'"):
        _ = recurra.Recurrant


@pytest.mark.parametrize("name", [name for name in recurra.__all__ if not name.endswith("Error")])
def test_every_public_name_has_an_example_that_is_run(name: str) -> None:
    assert ">>> " in (getattr(recurra, name).__doc__ or "")


def test_importing_recurra_does_not_import_torch() -> None:
    code = "import sys, recurra; assert 'torch' not in sys.modules and recurra.__version__"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", [*catalogue(Cell), *catalogue(Wrapper)])
def test_every_cell_and_wrapper_states_its_equations(name: str) -> None:
    kind = find(Cell, name) if name in catalogue(Cell) else find(Wrapper, name)
    assert "\n        " in f"\n    {kind.__doc__}"
    assert "= " in (kind.__doc__ or "") or "→" in (kind.__doc__ or "")
