"""The public face: the names, that each is documented by an example, and that importing is cheap."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recurra
from recurra import extend
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
        "TrustError",
        "compare",
        "detached",
        "export",
        "from_torch",
        "generate",
        "load",
        "pack",
        "pad",
        "pull",
        "push",
        "sweep",
        "to_torch",
        "train",
        "unpack",
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


def test_the_names_to_extend_recurra_with_are_these() -> None:
    assert " ".join(extend.__all__) == (
        "KINDS SERIES START UNLABELLED Anatomy AnswerKind AnyCell AnyState Asked Attended Attention Axes Band "
        "Batches BeamTree Carried Cell ConfigError Counted Curve Data DataError Density Distribution Drop Encoded "
        "Features Generated Head HeatMap Judgement Lines Look Looked Loss Manner Mark Memory Merge Moment OfItems "
        "Output Overlay Padded Paired Pairing Panel Part Parts Past Prediction Probe Product Purpose Reader Readout "
        "Recurrent Recurring Row Schema Scores Several Shape Source Stack Summarised Summary Sums Table Tally Task "
        "Term Text TextSource TokenRow Tokenizer Tokens Training Units UnrolledLevel View Viewer Vocabulary Wiring "
        "WiringState Wrapper built cells_of contributions edit_distance layers_of matrix only perplexity ratio root "
        "rows rows_of section setting total"
    )
    assert all(getattr(extend, name) is not None for name in extend.__all__)
    assert dir(extend) == sorted(extend.__all__)
    with pytest.raises(AttributeError, match=r"module 'recurra\.extend' has no attribute 'Cel'"):
        _ = extend.Cel


def test_all_that_a_config_can_name_as_a_class_of_yours_is_listed_with_its_setting() -> None:
    source = "".join(path.read_text("utf-8") for path in Path(recurra.__file__).parent.rglob("*.py"))
    found = set(re.findall(r"\b(?:find|built)\(([A-Z]\w+),", source))
    assert found | {"Merge"} == set(extend.KINDS)  # whose names are not files
    page = Path(__file__).parent.parent / "docs" / "extending.md"
    assert set(re.findall(r"^\| `(\w+)` \|", page.read_text("utf-8"), re.MULTILINE)) == set(extend.KINDS)
    for name in extend.KINDS:
        assert isinstance(getattr(extend, name), type), name


def test_a_tokenizer_a_reader_or_a_task_is_written_without_importing_torch() -> None:
    code = "import sys; from recurra.extend import Reader, Row, Task, Tokenizer, rows; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("function", [recurra.train, recurra.load, recurra.compare, recurra.generate, recurra.pad])
def test_what_a_public_function_takes_and_returns_has_a_type(function: Any) -> None:
    hints = inspect.get_annotations(function)
    assert set(hints) == {*inspect.signature(function).parameters, "return"}
    assert all(hint != "Any" and "dict[str, Any]" not in hint for hint in hints.values()), hints


@pytest.mark.parametrize("name", [*catalogue(Cell), *catalogue(Wrapper)])
def test_every_cell_and_wrapper_states_its_equations(name: str) -> None:
    kind = find(Cell, name) if name in catalogue(Cell) else find(Wrapper, name)
    assert "\n        " in f"\n    {kind.__doc__}"
    assert "= " in (kind.__doc__ or "") or "→" in (kind.__doc__ or "")
