"""The source of a user's own cell is kept with the run, and named where the cell cannot be imported."""

from __future__ import annotations

import linecache
import sys
import types
from pathlib import Path

import pytest

import recurra
from recurra.config.given import NamedCode
from recurra.errors import ConfigError, TrustError
from recurra.runs import told
from recurra.training.own_code import keep_sources
from tests.training.test_frames import FEW, ROWS

CELL = """from recurra.cells import LSTM


class Mine(LSTM):
    pass
"""


def test_the_source_of_a_cell_is_kept_and_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lab_of_mine.py").write_text(CELL)
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = {**FEW, "model.cell": "lab_of_mine:Mine", "data.cache": False}
    model = recurra.train("classification", train=ROWS, out=tmp_path / "run", settings=settings)
    kept = tmp_path / "run" / "code" / "lab_of_mine.py"
    assert kept.read_text() == CELL
    assert (model.save(tmp_path / "copy") / "code" / "lab_of_mine.py").read_text() == CELL
    needed = f"needs code of your own: lab_of_mine:Mine (as it was in training: {kept})"
    assert needed in told(tmp_path / "run").splitlines()
    (tmp_path / "lab_of_mine.py").unlink()
    monkeypatch.delitem(sys.modules, "lab_of_mine")
    with pytest.raises(TrustError, match=rf"which is not found here.*\n.*is kept: {kept}"):
        recurra.load(tmp_path / "run")
    with pytest.raises(ConfigError, match=rf"importing 'lab_of_mine' failed .* is kept: {kept}\. Read it, then put"):
        recurra.load(tmp_path / "run", trust=True)


def test_of_a_class_that_was_typed_its_own_lines_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = "class Typed(LSTM):\n    def extra(self):\n        return 1\n"
    cell = f"from recurra.cells import LSTM\nx = 1\n{typed}y = 2\n"
    monkeypatch.setitem(linecache.cache, "<cell 1>", (len(cell), None, cell.splitlines(keepends=True), "<cell 1>"))
    module = types.ModuleType("typed_here")
    exec(compile(cell, "<cell 1>", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, "typed_here", module)
    keep_sources([NamedCode("typed_here:Typed", "typed_here", "model.cell", "")], tmp_path)
    assert (tmp_path / "code" / "typed_here.py").read_text() == f"from recurra.cells import LSTM\n\n\n{typed}"


def test_what_typed_classes_use_is_kept_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [
        "import math\nfrom typing import NamedTuple\n",
        "class State(NamedTuple):\n    h: int\n",
        "def half(x):\n    return x / 3\n",
        "def half(x):\n    return x / 2\n",
        "class One:\n    State = State\n    def step(self):\n        return half(One)\n",
        "class Two:\n    def step(self):\n        return 2\n",
        "print(State(1))\n",
    ]
    module = types.ModuleType("typed_there")
    for number, cell in enumerate(cells):
        entry = (len(cell), None, cell.splitlines(keepends=True), f"<there {number}>")
        monkeypatch.setitem(linecache.cache, f"<there {number}>", entry)
        exec(compile(cell, f"<there {number}>", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, "typed_there", module)
    named = [NamedCode(f"typed_there:{name}", "typed_there", "model.cell", "") for name in ("One", "Two")]
    keep_sources(named, tmp_path)
    kept = (tmp_path / "code" / "typed_there.py").read_text()
    again: dict[str, object] = {}
    exec(kept, again)
    assert {"State", "half", "One", "Two"} <= again.keys()
    assert "x / 2" in kept
    assert "x / 3" not in kept
    assert "print" not in kept
    assert "math" not in kept


def test_a_run_without_code_of_its_own_keeps_none(tmp_path: Path) -> None:
    recurra.train("classification", train=ROWS, out=tmp_path / "run", settings={**FEW, "data.cache": False})
    assert not (tmp_path / "run" / "code").exists()
