"""Which files the wheels of the two distributions hold, and their address; hatchling calls this.

docs/architecture.md says why there are two.

recurra-run holds every module that can be imported with NumPy alone, and the page of `recurra serve`; recurra holds the
rest and requires recurra-run of its version. That is so for wheels made from the source distribution, which are
released. A wheel of recurra made straight from a checkout holds all, so that `pip install .` asks no index for the
other half.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

SOURCE = Path(__file__).parent / "src"
PACKAGE = "recurra"

AT_HAND = {*sys.stdlib_module_names, "numpy", "starlette", "uvicorn"}
"""What modules of recurra-run may import: the server's packages are an extra of it."""

OF_RUN = ("page/", "py.typed")
"""Files of recurra-run that are no modules."""


def files() -> list[str]:
    """All files of the package, by their paths from src/."""
    found = (path for path in (SOURCE / PACKAGE).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path.relative_to(SOURCE).as_posix() for path in found)


def files_of_run() -> list[str]:
    """Those of recurra-run."""
    modules = {path_of(name) for name in modules_of_run()}
    return [file for file in files() if file in modules or file.removeprefix(f"{PACKAGE}/").startswith(OF_RUN)]


def modules_of_run() -> list[str]:
    """The modules that import nothing but what is at hand, nor any module that does, before a function is called."""
    trees = {name_of(file): ast.parse((SOURCE / file).read_text("utf-8")) for file in files() if file.endswith(".py")}
    imports = {name: set(imported(tree.body, trees)) | set(above(name)) for name, tree in trees.items()}
    needy = {
        name
        for name, found in imports.items()
        if any(each.partition(".")[0] not in {*AT_HAND, PACKAGE} for each in found)
    }
    while more := {name for name, found in imports.items() if name not in needy and found & needy}:
        needy |= more
    return sorted(imports.keys() - needy)


def imported(body: list[ast.stmt], known: Mapping[str, ast.Module]) -> Iterator[str]:
    """Modules that are imported when a module is, by its statements outside of functions; not for a type checker."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (each.name for each in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            yield str(statement.module)
            inner = (f"{statement.module}.{each.name}" for each in statement.names)
            yield from (name for name in inner if name in known)
        elif isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            yield from imported(statement.orelse, known)
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in ("body", "orelse", "finalbody", "handlers"):
                yield from imported(getattr(statement, part, []), known)


def above(name: str) -> Iterator[str]:
    """The packages that a module is in, which are imported before it."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def name_of(file: str) -> str:
    """The module of a file: recurra/data/__init__.py is recurra.data."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def path_of(module: str) -> str:
    """The file of a module, by its path from src/."""
    file = module.replace(".", "/")
    return f"{file}/__init__.py" if (SOURCE / file).is_dir() else f"{file}.py"


class Addresses(MetadataHookInterface):
    """Gives both the address of the project, where RECURRA_URL says it: in a checkout nobody knows who hosts it."""

    def update(self, metadata: dict[str, Any]) -> None:
        address = os.environ.get("RECURRA_URL", "").strip()
        if not address:
            return
        if not address.startswith("https://"):
            raise ValueError(f"RECURRA_URL = {address!r} is no address: it must begin with https://")
        metadata["urls"] = {"Source": address}


class Halves(BuildHookInterface[Any]):
    """Gives each wheel its files, and recurra its dependency on recurra-run."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        is_run = self.metadata.name == f"{PACKAGE}-run"
        is_released = self.target_name == "sdist" or (SOURCE.parent / "PKG-INFO").is_file()
        if version == "editable":  # either exposes the whole of src
            return
        if is_released and not is_run:
            build_data["dependencies"].append(f"{PACKAGE}-run=={self.metadata.version}")
            self.metadata.core.scripts.clear()  # the command is that of recurra-run
        if self.target_name == "wheel":
            chosen = set(files_of_run())
            wanted = chosen if is_run else set(files()) - chosen if is_released else set(files())
            build_data["force_include"].update({str(SOURCE / file): file for file in sorted(wanted)})
