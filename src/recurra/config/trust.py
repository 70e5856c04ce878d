"""Which run folders may have code from outside recurra imported.

The settings of a run may name a class of the user's own, 'my.lab:MyCell', and to import a module runs whatever it
holds. A run folder may come from anybody, so nothing that it names is imported before the user allows it. What was
allowed is remembered by the SHA-256 of the run's config.toml and of the sources that are named, in a folder of the
user's own: where one of them changes, it is asked for again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import stat
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path

from recurra.config.given import NamedCode
from recurra.errors import TrustError
from recurra.frozen import NamedTuple
from recurra.toml import clipped

HOW = "allow it: --trust on the command line, trust=True in Python"


def check_code(config: Path, named: Sequence[NamedCode], *, trust: bool) -> None:
    """Refuse a run that names code from outside recurra, unless it is trusted now or was before; nothing is imported.

    `named` is what `Given.code` finds in `config`, the run's config.toml.
    """
    if not named:
        return
    sources = {name: source for each in named for name, source in _sources(each.module).items()}
    record = _record(config, named, sources)
    if trust:
        if record is not None:
            _remember(record, named, sources)
        return
    if record is not None and _is_trusted(record):
        return
    lines = [f"{each.place}: {each.setting} = '{each.name}' would import {_told(each, sources)}" for each in named]
    changed = ""
    if record is not None and any(map(_is_trusted, record.parent.glob(f"{record.name.partition('.')[0]}.*"))):
        changed = " It was trusted before, but that code has changed since."
    raise TrustError(
        "\n".join([f"the run {config.parent} names code from outside recurra, which would be run:", *lines])
        + f"\nNothing was imported.{changed} If you trust this run and that code, {HOW}."
    )


def trust_folder() -> Path | None:
    """Where it is remembered which runs are trusted; None where the user has no folder for settings."""
    if configs := os.environ.get("XDG_CONFIG_HOME"):
        return Path(configs) / "recurra" / "trust"
    try:
        return Path.home() / ".config" / "recurra" / "trust"
    except RuntimeError:
        return None


class _Source(NamedTuple):
    """What the import of one module would run."""

    file: str | None  # or "built-in"; None: the module is not found, or is a folder without code
    digest: str | None  # None: it cannot be read, and is not remembered


_ABSENT = _Source(None, "")


def _sources(module: str) -> dict[str, _Source]:
    """What importing a module would run: the packages around it, then the module. None of them is imported."""
    found: dict[str, _Source] = {}
    inside: Sequence[str] | None = None
    for name in itertools.accumulate(module.split("."), "{}.{}".format):
        spec = _spec(name, inside)
        found[name] = _ABSENT if spec is None else _source(spec)
        if spec is None:
            break
        inside = [*(spec.submodule_search_locations or ())]
    return found


def _spec(name: str, inside: Iterable[str] | None) -> ModuleSpec | None:
    """Where a module is found. For one in a package, importlib.util.find_spec would import the package: not here."""
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(loaded, ModuleSpec):
        return loaded
    import pkgutil
    from importlib.util import find_spec

    if inside is None:
        try:
            return find_spec(name)
        except (ImportError, ValueError):  # ValueError: of what runs as __main__ and has no file
            return None
    folders: list[str] = []
    for place in inside:
        finder = pkgutil.get_importer(place)
        spec = None if finder is None else finder.find_spec(name)
        if spec is not None and spec.loader is not None:
            return spec
        folders += [] if spec is None else spec.submodule_search_locations or []
    if not folders:
        return None
    package = ModuleSpec(name, None, is_package=True)  # a folder without __init__.py
    package.submodule_search_locations = folders
    return package


def _source(spec: ModuleSpec) -> _Source:
    if spec.origin is None:
        return _ABSENT if spec.loader is None else _Source("built-in", None)
    if spec.origin in ("built-in", "frozen"):
        return _Source("built-in", spec.origin)
    try:
        return _Source(spec.origin, hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest())
    except OSError:
        return _Source(spec.origin, None)


def _told(code: NamedCode, sources: dict[str, _Source]) -> str:
    source = sources.get(code.module, _ABSENT)
    if source.file == "built-in":
        return f"the module '{code.module}', which is part of Python."
    where = "which is not found here" if source.file is None else f"which is {source.file}"
    return f"the module '{code.module}', {where}."


def _record(config: Path, named: Sequence[NamedCode], sources: dict[str, _Source]) -> Path | None:
    """The file that is there where just this is trusted; None where it cannot be remembered."""
    home = trust_folder()
    try:
        settings = hashlib.sha256(config.read_bytes()).hexdigest()
    except OSError:
        return None
    if home is None or any(source.digest is None for source in sources.values()):
        return None
    # With the names: they were read before config.toml was read for its digest.
    code = [sorted({each.name for each in named}), sorted((name, each.digest) for name, each in sources.items())]
    return home / f"{settings}.{hashlib.sha256(json.dumps(code).encode()).hexdigest()}"


def _remember(record: Path, named: Sequence[NamedCode], sources: dict[str, _Source]) -> None:
    """Make the record; where that cannot be, the user is asked again."""
    with suppress(OSError):
        record.parent.parent.mkdir(parents=True, exist_ok=True)
        record.parent.mkdir(mode=0o700, exist_ok=True)
        if not _is_private(record.parent, stat.S_IFDIR):
            return
        about = "".join(f"{clipped(each.name)}: {_told(each, sources)}\n" for each in named)
        with open(os.open(record, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(about)  # for people to read: that the file is there is all that counts


def _is_trusted(record: Path) -> bool:
    return _is_private(record.parent, stat.S_IFDIR) and _is_private(record, stat.S_IFREG)


def _is_private(path: Path, kind: int) -> bool:
    """Whether this is a file or folder, no link, that belongs to this user and that nobody else may change."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    if sys.platform == "win32":  # others cannot write to the user's profile
        return stat.S_IFMT(found.st_mode) == kind
    return stat.S_IFMT(found.st_mode) == kind and found.st_uid == os.geteuid() and not found.st_mode & 0o022
