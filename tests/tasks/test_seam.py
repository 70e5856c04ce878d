"""Task is the only seam: nothing outside asks what class a task is of."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import recurra

ROOMS = ("analysis", "commands", "generation", "reports", "runtime", "training")
PACKAGE = Path(recurra.__file__).parent
FILES = sorted([*(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")), *PACKAGE.glob("*.py")])


def questions(source: str) -> list[str]:
    """Calls that ask what class something called a task is of, or whether it has an attribute."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
            continue
        about = ast.unparse(node.args[0]).split(".")[-1]
        is_question = node.func.id in ("isinstance", "hasattr") or (node.func.id == "getattr" and len(node.args) == 3)
        if is_question and about in ("task", "settings"):
            found.append(ast.unparse(node))
    return found


def test_a_question_is_found() -> None:
    assert questions("isinstance(self.model.task, Tagging) and hasattr(task, 'words')") == [
        "isinstance(self.model.task, Tagging)",
        "hasattr(task, 'words')",
    ]
    assert questions("getattr(task.settings, 'decoding', None)") == ["getattr(task.settings, 'decoding', None)"]
    assert questions("isinstance(value, str)") == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_outside_asks_what_class_a_task_is_of(path: Path) -> None:
    assert questions(path.read_text("utf-8")) == []
