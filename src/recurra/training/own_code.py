"""Code of the user's own that a run names, such as a cell: its source is kept with the run, to be read and not run."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from recurra.config.given import NamedCode

FOLDER = "code"
"""The folder of a run that holds the sources. Nothing imports them from there."""

LARGEST = 1 << 20
"""Characters of a source that are kept."""


def keep_sources(named: Sequence[NamedCode], folder: Path) -> None:
    """Write the source of each module that is named; of one without a file, such as a notebook, that of the classes."""
    classes: dict[str, list[str]] = {}
    for each in named:
        classes.setdefault(each.module, []).append(each.name.partition(":")[2])
    for module, names in classes.items():
        source = _source(module, names)
        if source and len(source) <= LARGEST:
            path = folder / FOLDER / f"{module.replace('.', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source, "utf-8")


def _source(name: str, classes: Sequence[str]) -> str:
    module = sys.modules.get(name)
    with suppress(OSError, TypeError, UnicodeError):  # of what is compiled
        if module is not None and getattr(module, "__file__", None) is not None:
            return inspect.getsource(module)
    kinds = [kind for each in classes if isinstance(kind := getattr(module, each, None), type)]
    return _typed(kinds, vars(module) if module is not None else {})


def _typed(kinds: Sequence[type], names: Mapping[str, object]) -> str:
    """The lines of classes that were typed, in a notebook, below those of what was typed and is used in them.

    Python knows the cell of a class by its functions, and those of other definitions and imports by their names: the
    last one of a name counts.
    """
    cells = [entry[2] for entry in linecache.cache.values() if len(entry) == 4 and entry[1] is None]
    texts = ["".join(lines) for lines in reversed(cells)]
    imports, found = dict[str, None](), dict[str, str]()

    def add(name: str, texts: Sequence[str]) -> None:
        for text in texts:
            with suppress(SyntaxError):  # a cell with commands of the notebook
                for part in ast.parse(text).body:
                    if isinstance(part, ast.Import | ast.ImportFrom):
                        if name in {each.asname or each.name.partition(".")[0] for each in part.names}:
                            imports[ast.unparse(part)] = None
                            return
                    elif isinstance(part, ast.ClassDef | ast.FunctionDef) and part.name == name:
                        found[name] = ""  # a definition may use itself
                        used = {each.id for each in ast.walk(part) if isinstance(each, ast.Name)}
                        for other in sorted(used & names.keys() - found.keys()):
                            add(other, [text, *texts])
                        del found[name]
                        found[name] = ast.get_source_segment(text, part) or ""
                        return

    for kind in kinds:
        files = (each.__code__.co_filename for each in vars(kind).values() if inspect.isfunction(each))
        add(kind.__name__, [*("".join(linecache.getlines(file)) for file in files), *texts])
    pieces = ["\n".join(imports), *found.values()]
    return "\n\n\n".join(filter(None, pieces)) + "\n" if found else ""


def kept_sources(folder: Path) -> list[Path]:
    """The sources that a run keeps."""
    return sorted((folder / FOLDER).rglob("*.py")) if (folder / FOLDER).is_dir() else []


def kept_in_words(folder: Path) -> str:
    """Where the sources of a run are, as a sentence after an error; "" where it has none.

    >>> kept_in_words(Path("no run"))
    ''
    """
    files = kept_sources(folder)
    if not files:
        return ""
    kept = ", ".join(map(str, files))
    return (
        f" The source that the run was trained with is kept: {kept}. Read it, then put it where Python finds it under "
        "that name."
    )
