"""Every dependency has a lowest version, which `make lowest-test` tries, and hashes, which `make` verifies."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOT_TRIED = {"torch", "ray", "triton", "ruff", "mypy", "import-linter", "mlflow-skinny", "wandb"}
"""No CPU build of the lowest torch is at hand; no test needs the others."""


EXTRAS = {"hashes.txt": ["plot", "serve"], "hashes-dev.txt": ["dev", "plot", "serve"]}
"""The files of hashes, and the extras that `make` installs from each."""


def wanted(extras: list[str] | None = None) -> list[tuple[str, str | None]]:
    """The name and the lowest version of each dependency: those of some extras, or of all."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    chosen = optional if extras is None else extras
    listed = [*project["dependencies"], *(each for extra in chosen for each in optional[extra])]
    found = []
    for each in listed:
        if each.startswith("recurra["):  # other extras, all at once
            continue
        parts = re.fullmatch(r"([\w-]+)(?:\[\w+\])?(?:>=([\d.]+))?(?:,<[\d.]+)?", each)
        assert parts is not None, each
        found.append((parts[1], parts[2]))
    return found


IMPORTED_AS = {
    "pillow": "PIL",
    "scikit-learn": "sklearn",
    "mlflow-skinny": "mlflow",
    "huggingface-hub": "huggingface_hub",
}
"""Packages whose modules are called otherwise."""


def imports_of(folders: list[str]) -> str:
    """All lines of some folders that import something, by a statement or by its name."""
    texts = (path.read_text("utf-8") for folder in folders for path in (ROOT / folder).rglob("*.py"))
    importing = re.compile(r"^.*\b(?:import|from|import_module|importorskip|find_spec|library)\b.*$", re.MULTILINE)
    return "\n".join(line for text in texts for line in importing.findall(text))


def test_every_extra_has_code_that_imports_its_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {name: each for name, each in project["optional-dependencies"].items() if name not in ("all", "dev")}
    code = imports_of(["src", "examples"])
    idle = [
        f"{extra}: {package}"
        for extra in extras
        for package, _ in wanted([extra])
        if not re.search(rf"\b{IMPORTED_AS.get(package, package)}\b", code)
    ]
    assert not idle


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


def hashed(file: str) -> list[tuple[str, str, list[str]]]:
    """The name, the version and the hashes of each requirement. One package may have a version for each Python."""
    text = re.sub(r"(?m)^ *#.*\n", "", (ROOT / file).read_text("utf-8")).replace(" \\\n", " ")
    found = []
    for line in text.splitlines():
        parts = re.fullmatch(r"([a-z0-9.-]+)==([\w.]+)(?: ; [^#]*?)?((?: +--hash=sha256:[0-9a-f]{64})+)", line)
        assert parts is not None, f"{file}: not a pinned version with SHA-256 hashes: {line[:80]}"
        found.append((parts[1], parts[2], parts[3].split()))
    return found


@pytest.mark.parametrize("file", EXTRAS)
def test_every_package_that_make_installs_has_hashes_at_the_version_of_the_constraints(file: str) -> None:
    constraints = pinned("constraints.txt")
    requirements = hashed(file)
    names = {name for name, _, _ in requirements}
    missing = {name for name, _ in wanted(EXTRAS[file])} - {"torch"} - names
    assert not missing, f"{file} lacks {missing}: run make hashes"
    # What builds the checkout, and what every build of torch needs.
    assert names >= {"hatchling", "editables", "filelock", "fsspec", "jinja2", "networkx", "setuptools", "sympy"}
    for name, version, _ in requirements:
        assert constraints.get(name, version) == version, f"{file} has {name} {version}: run make hashes"


@pytest.mark.parametrize("file", EXTRAS)
def test_the_hashes_leave_out_torch_and_the_libraries_of_its_cuda_builds(file: str) -> None:
    assert [name for name, _, _ in hashed(file) if re.match(r"torch$|triton$|cuda-|nvidia-", name)] == []


@pytest.mark.parametrize("file", EXTRAS)
def test_the_hashes_name_no_package_index_and_no_file_of_one_machine(file: str) -> None:
    assert re.search(r"://|(?m:^ *-)(?!-hash=)", (ROOT / file).read_text("utf-8")) is None


def test_the_development_tools_change_no_version_that_is_installed() -> None:
    everything = {(name, version): hashes for name, version, hashes in hashed("hashes-dev.txt")}
    for name, version, hashes in hashed("hashes.txt"):
        assert everything[name, version] == hashes, f"{name} {version}: run make hashes"
