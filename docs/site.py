"""Build the documentation site: these pages, the README, and a reference of all public names.

    make site                              in an environment of its own, to site/
    python docs/site.py --out FOLDER       where mkdocs-material is installed

The site is plain files: it opens from disk, its search works offline, and it loads nothing from elsewhere. Links that
leave docs/ (recipes, examples, results) lead to pages that show the file. A link or an anchor that leads nowhere is an
error.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import FunctionType

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

from as_notebook import notebook  # noqa: E402

LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?\)")
LANGUAGES = {".toml": "toml", ".py": "python", ".txt": "text", ".md": "markdown", ".html": "html", ".c": "c"}

CONFIG = """\
site_name: recurra
site_description: Recurrent sequence models in PyTorch
theme:
  name: material
  font: false
  features: [navigation.sections, navigation.indexes, navigation.top, content.code.copy, search.highlight]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
      toggle: {icon: material/weather-night, name: Dark}
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      toggle: {icon: material/weather-sunny, name: Light}
extra_css: [wide.css]
plugins: [search, offline]
use_directory_urls: false
markdown_extensions:
  - admonition
  - tables
  - toc: {permalink: true}
  - pymdownx.highlight: {use_pygments: true}
  - pymdownx.superfences
validation:
  links: {not_found: warn, anchors: warn, absolute_links: warn, unrecognized_links: warn}
  nav: {omitted_files: ignore}
"""

WIDE = ".md-grid {max-width: 76rem}\n"
"""Room for lines of code with 100 letters."""

UNSEARCHED = "---\nsearch: {exclude: true}\n---\n\n"

SHIM = "https://unpkg.com/iframe-worker/shim"

PAGES: dict[str, list[str]] = {
    "Start": ["start.md", "shapes.md", "data.md", "text.md", "signals.md", "training.md", "settings.md", "faq.md"],
    "Tutorials": [
        *("tagging.md", "classification.md", "language_models.md", "forecasting.md", "seq2seq.md", "vec2seq.md"),
        *("question_answering.md", "pairs.md", "pointers.md", "generation.md"),
    ],
    "How to": [
        *("fine_tuning.md", "sweeps.md", "notebooks.md", "gpu.md", "processes.md", "scale.md", "explain.md"),
        *("serve.md", "deploy.md", "export.md", "sharing.md", "streams.md"),
        *("your_cell.md", "a_task_of_your_own.md", "extending.md", "coming_from.md"),
    ],
    "Concepts": [
        *("stacks.md", "attention.md", "wirings.md", "search.md", "transformer.md", "gradients.md", "engines.md"),
        *("gallery.md",),
    ],
    "Cells": ["cells/index.md"],
    "Results": ["results.md", "systems.md", "reliability.md"],
    "Project": ["architecture.md", "changes.md", "contributing.md", "security.md", "conduct.md"],
}
"""The sections of the site. A page of docs/ that stands in none of them goes to "How to"."""

OF_THE_PROJECT = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}
"""Pages that lie beside docs/, and where they stand in the site."""


def copied(source: Path) -> dict[Path, Path]:
    """Every page and picture of the project, copied to a folder: where each of them came from, by where it is now."""
    places = {ROOT / name: source / place for name, place in OF_THE_PROJECT.items()}
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.is_file() and path.suffix in (".md", ".svg", ".png"):
            places[path] = source / path.relative_to(ROOT / "docs")
    for path, place in places.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    return {place: path for path, place in places.items()}


def with_links(text: str, page: Path, original: Path, source: Path, places: dict[Path, Path]) -> str:
    """A page with its links to where files stand in the site; files without a page get one that shows them."""
    here = {path: place for place, path in places.items()}

    def linked(match: re.Match[str]) -> str:
        before, target, anchor = match.groups()
        if re.match(r"[a-z]+:", target):
            return match[0]
        path = (original.parent / target).resolve()
        if path not in here and path.is_file():
            here[path] = shown(path, source)
        if path not in here and path.is_dir() and path.is_relative_to(ROOT):
            here[path] = listed(path, source)
        place = here.get(path)
        if place is None:
            return match[0]  # mkdocs will say that it leads nowhere
        return f"{before}{relative(place, page)}{anchor or ''})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)  # code has no links
    return "".join(part if part.startswith("```") else LINK.sub(linked, part) for part in parts)


def relative(place: Path, page: Path) -> str:
    """
    >>> relative(Path("/s/a/b.md"), Path("/s/c/d.md"))
    '../a/b.md'
    """
    up = 0
    folder = page.parent
    while not place.is_relative_to(folder):
        folder, up = folder.parent, up + 1
    return "../" * up + place.relative_to(folder).as_posix()


def shown(path: Path, source: Path) -> Path:
    """A page that shows a file of the project."""
    name = path.relative_to(ROOT)
    place = source / "files" / name.with_name(name.name + ".md")
    place.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text("utf-8")
    place.write_text(
        f"{UNSEARCHED}# {name.as_posix()}\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{text}\n````\n", "utf-8"
    )
    return place


def listed(path: Path, source: Path) -> Path:
    """A page that lists the files of a folder of the project."""
    name = path.relative_to(ROOT)
    place = source / "files" / name / "index.md"
    place.parent.mkdir(parents=True, exist_ok=True)
    files = sorted(each.name for each in path.iterdir() if not each.name.startswith((".", "__")))
    place.write_text("\n".join([f"# {name.as_posix()}\n", *(f"- `{file}`" for file in files), ""]), "utf-8")
    return place


def add_notebooks(source: Path) -> None:
    """Each page that starts or teaches, as a notebook too, which the page names below its title."""
    (source / "notebooks").mkdir()
    for name in (*PAGES["Start"], *PAGES["Tutorials"], "notebooks.md"):
        page = source / name
        text = page.read_text("utf-8")
        if not re.search(r"^```(python|bash|console)$", text, re.MULTILINE):
            continue
        (source / "notebooks" / page.with_suffix(".ipynb").name).write_text(notebook(text), "utf-8")
        title, rest = text.split("\n", 1)
        link = f"[This page as a notebook](notebooks/{page.stem}.ipynb)"
        page.write_text(f"{title}\n\n{link}\n{rest}", "utf-8")


def reference(module: str = "recurra") -> str:
    """All public names of a module with their signatures and docstrings."""
    package = importlib.import_module(module)
    title = "Reference" if module == "recurra" else module
    parts = [f"# {title}\n", f"Every name of `{module}`, as its docstring says it. Examples run in the tests.\n"]
    for name in sorted(package.__all__, key=str.lower):
        value = getattr(package, name)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        parts += [f"## {name}\n", f"```python\n{declared(name, value)}\n```\n", prose(inspect.getdoc(value) or "")]
        for of, member in members(value, package.__all__):
            parts += [f"### {name}.{of}\n", f"```python\n{declared(of, member)}\n```\n"]
            parts += [prose(inspect.getdoc(unwrapped(member)) or "")]
        parts += inherited(value, package.__all__)
    return "\n".join(parts)


def declared(name: str, value: object) -> str:
    """The signature as it was typed: a parameter to a line where that is longer than a line.

    >>> def add(a: int, b: str = "x") -> int: ...
    >>> declared("add", add)
    "add(a: int, b: str = 'x') -> int"
    """
    before = f"@{type(value).__name__}\n" if isinstance(value, classmethod | staticmethod) else ""
    function = unwrapped(value)
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return name
    if isinstance(value, property | cached_property):
        kind = signature.return_annotation
        return name if kind is signature.empty else f"{name}: {kind if isinstance(kind, str) else kind.__name__}"
    if inspect.isclass(value):
        signature = signature.replace(return_annotation=signature.empty)
    elif inspect.isfunction(function):  # what the instance or the class itself is called stands before the dot
        names = list(signature.parameters)
        if names[:1] in (["self"], ["cls"]):
            signature = signature.replace(parameters=[signature.parameters[each] for each in names[1:]])

    def plain(text: str) -> str:
        text = re.sub(r"<function \S+ at 0x[0-9a-f]+>", "…", text)
        text = re.sub(r"ForwardRef\((['\"])(.*?)\1(?:, module=[^)]*)?\)", r"\2", text)
        return re.sub(r"(: |-> )(['\"])(.*?)\2(?=$| = |[,)])", r"\1\3", text)

    whole = plain(f"{name}{signature}")
    if len(whole) <= LINE:
        return before + whole
    *_, end = plain(str(signature.replace(parameters=[]))).partition(")")
    lines, kinds = list[str](), set[object]()
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not kinds & {each.KEYWORD_ONLY, each.VAR_POSITIONAL}:
            lines.append("    *,")
        kinds.add(each.kind)
        lines.append(f"    {plain(str(each))},")
    return before + "\n".join([f"{name}(", *lines, f"){end}"])


def members(value: object, described: Sequence[str] = ()) -> list[tuple[str, object]]:
    """The public methods and properties of a class, also those of its bases in recurra, which come first.

    Not those of bases whose names are `described` on the same page, and none that only other parts of recurra call.

    >>> class Base:
    ...     def scores(self): "What it reached."
    ...     def _told(self): ...
    >>> Base.__module__ = "recurra.somewhere"
    >>> class Run(Base):
    ...     @property
    ...     def name(self) -> str: "Its name."
    >>> Run.__module__ = "recurra.somewhere"
    >>> [name for name, _ in members(Run)], [name for name, _ in members(Run, ["Base"])]
    (['scores', 'name'], ['name'])
    """
    if not inspect.isclass(value):
        return []
    found: dict[str, object] = {}
    internal = {"extra_repr", *INTERNAL.get(value.__name__, ())}
    for each in reversed(value.__mro__):
        if not each.__module__.startswith("recurra") or (each is not value and each.__name__ in described):
            continue
        for name, member in vars(each).items():
            if isinstance(member, DESCRIBED) and not name.startswith("_") and name not in internal:
                found[name] = member
    return [(name, member) for name, member in found.items() if inspect.getdoc(unwrapped(member))]


def inherited(value: object, described: Sequence[str]) -> list[str]:
    """A line for each base that brings methods of its own: one of this page, or of scikit-learn."""
    lines = []
    for each in value.__mro__[1:] if inspect.isclass(value) else ():
        of_sklearn = each.__module__.startswith("sklearn") and not each.__name__.startswith("_")
        if not (of_sklearn or (each.__module__.startswith("recurra") and each.__name__ in described)):
            continue
        names = [name for name in vars(each) if not name.startswith("_") and isinstance(vars(each)[name], DESCRIBED)]
        names = [f"`{name}`" for name in names if getattr(value, name) is getattr(each, name)]
        if names:
            of = f"`sklearn.base.{each.__name__}`" if of_sklearn else f"[{each.__name__}](#{each.__name__.lower()})"
            lines.append(f"From {of}: {', '.join(names)}.\n")
    return lines


def unwrapped(member: object) -> object:
    """The function that a class method, a static method or a property holds."""
    if isinstance(member, classmethod | staticmethod):
        return member.__func__
    if isinstance(member, property):
        return member.fget
    return member.func if isinstance(member, cached_property) else member


def prose(docstring: str) -> str:
    """A docstring as Markdown: examples and what is aligned become code.

    >>> prose("Adds *all*.")
    'Adds \\\\*all\\\\*.\\n'
    """
    blocks = []
    for block in re.split(r"\n\s*\n", docstring):
        if block.startswith(">>>"):
            blocks.append(f"```python\n{block}\n```")
        elif re.search(r"\S {2,}\S", block) or block.startswith(" "):
            blocks.append(f"```text\n{block}\n```")
        else:
            blocks.append(re.sub(r"([*_<>])", r"\\\1", block) if "`" not in block else block)
    return "\n\n".join(blocks) + "\n"


DESCRIBED = (FunctionType, classmethod, staticmethod, property, cached_property)

INTERNAL = {
    "Trained": {
        *("answers", "apart", "changed", "check_used", "cut", "header_in", "measure", "origins", "outputs", "prepare"),
        *("printed_raw", "record_beside", "searching", "to_score", "with_task", "writer"),
    },
}
"""Of classes that users meet, what only other parts of recurra call."""

LINE = 100
"""Letters of a signature that stand in one line."""

REFERENCES = {
    "reference.md": "recurra",
    "reference_sklearn.md": "recurra.sklearn",
    "reference_extend.md": "recurra.extend",
}
"""Pages that are written from docstrings, and of which module each is."""


def navigation(source: Path) -> str:
    """The sections and pages, as mkdocs wants them."""
    known = {page for pages in PAGES.values() for page in pages}
    others = [
        page.relative_to(source).as_posix()
        for page in sorted(source.glob("*.md"))
        if page.name not in known and page.name != "index.md" and page.name not in REFERENCES
    ]
    cells = [f"cells/{page.name}" for page in sorted((source / "cells").glob("*.md")) if page.name != "index.md"]
    sections = {**PAGES, "How to": [*PAGES["How to"], *others], "Cells": [*PAGES["Cells"], *cells]}
    lines = ["nav:", "  - index.md"]
    for section, pages in sections.items():
        lines += [f"  - {section}:", *(f"      - {page}" for page in pages)]
    lines += ["  - Reference:", *(f"      - {page}" for page in REFERENCES)]
    return "\n".join([*lines, ""])


def search_from_disk(site: Path) -> None:
    """Have pages take from the site what the theme would load from the network for searches from disk."""
    shutil.copyfile(ROOT / "docs" / "offline_search.js", site / "assets" / "javascripts" / "offline_search.js")
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        up = "../" * (len(page.relative_to(site).parts) - 1)
        page.write_text(text.replace(SHIM, f"{up}assets/javascripts/offline_search.js"), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=str(ROOT / "site"), help="folder of the site (default: site)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder).resolve() / "source"
        source.mkdir()
        places = copied(source)
        for place, original in list(places.items()):
            if place.suffix == ".md":
                text = with_links(place.read_text("utf-8"), place, original.resolve(), source, places)
                place.write_text(text, "utf-8")
        add_notebooks(source)
        for page, module in REFERENCES.items():
            (source / page).write_text(reference(module), "utf-8")
        (source / "wide.css").write_text(WIDE, "utf-8")
        config = source.parent / "mkdocs.yml"
        config.write_text(f"{CONFIG}docs_dir: source\n{navigation(source)}", "utf-8")
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", str(config)]
        quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        subprocess.run([*command, "--site-dir", str(Path(given.out).resolve())], check=True, env=quiet)
    (Path(given.out) / "404.html").unlink()  # its links are right only where a server has the site at its root
    search_from_disk(Path(given.out))
    pages = sum(1 for _ in Path(given.out).rglob("*.html"))
    print(f"{pages} pages in {given.out}: open {Path(given.out) / 'index.html'}")


if __name__ == "__main__":
    main()
