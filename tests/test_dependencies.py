"""Every dependency has a lowest version, and `make lowest-test` runs the tests with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOT_TRIED = {"torch", "onnx", "onnxruntime", "ray", "triton", "ruff", "mypy", "import-linter"}
"""No CPU build of the lowest torch is at hand; no test needs the others."""


def wanted() -> list[tuple[str, str | None]]:
    """The name and the lowest version of each dependency."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    listed = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    found = []
    for each in listed:
        parts = re.fullmatch(r"([\w-]+)(?:\[\w+\])?(?:>=([\d.]+))?(?:,<[\d.]+)?", each)
        assert parts is not None, each
        found.append((parts[1], parts[2]))
    return found


def pinned(file: str) -> dict[str, str]:
    lines = (line for line in (ROOT / file).read_text("utf-8").splitlines() if line and not line.startswith("#"))
    return dict(line.split("==") for line in lines)


def test_every_dependency_has_a_lowest_version_that_is_tried() -> None:
    lowest = pinned("lowest.txt")
    assert len(wanted()) > 25
    for name, version in wanted():
        assert version is not None, f"{name} has no lowest version"
        if name not in NOT_TRIED:
            assert re.fullmatch(rf"{re.escape(version)}(\.0)*", lowest[name]), name


@pytest.mark.parametrize("file", ["constraints.txt", "lowest.txt"])
def test_torch_and_all_others_are_pinned(file: str) -> None:
    assert {name for name, _ in wanted()} - NOT_TRIED <= pinned(file).keys()
    assert "torch" in pinned(file)
