"""What the documentation site makes of the project's pages; `make site` builds it and checks every link."""

from __future__ import annotations

import doctest
import importlib.util
import json
import os
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SITE = runpy.run_path(str(ROOT / "docs" / "site.py"))
NOTEBOOKS = runpy.run_path(str(ROOT / "docs" / "as_notebook.py"))


def test_every_page_stands_in_one_section_and_every_page_of_a_section_exists() -> None:
    named = [page for pages in SITE["PAGES"].values() for page in pages]
    assert len(named) == len(set(named))
    made = set(SITE["OF_THE_PROJECT"].values())
    assert [page for page in named if page not in made and not (ROOT / "docs" / page).exists()] == []


def test_links_out_of_the_docs_lead_to_pages_that_show_the_file(tmp_path: Path) -> None:
    places = SITE["copied"](tmp_path)
    page = tmp_path / "cells" / "lstm.md"
    links = "[a](../your_cell.md#x) [b](../../recipes/cho.toml) [c](https://example.org) [d](nowhere.md)"
    text = f"{links}\n```\n[e](../data.md)\n```\n"
    found = SITE["with_links"](text, page, ROOT / "docs" / "cells" / "lstm.md", tmp_path, places)
    assert found == text.replace("../../recipes/cho.toml", "../files/recipes/cho.toml.md")
    shown = (tmp_path / "files" / "recipes" / "cho.toml.md").read_text()
    assert (ROOT / "recipes" / "cho.toml").read_text() in shown


def test_the_reference_has_every_public_class_and_function() -> None:
    import recurra

    text = SITE["reference"]()
    names = [name for name in recurra.__all__ if callable(getattr(recurra, name))]
    assert [name for name in names if f"\n## {name}\n" not in text] == []


def test_parts_of_your_own_and_estimators_have_references_too() -> None:
    assert set(SITE["REFERENCES"].values()) == {"recurra", "recurra.extend", "recurra.sklearn"}
    text = SITE["reference"]("recurra.extend")
    assert text.startswith("# recurra.extend\n")
    assert "\n## Wrapper\n" in text
    assert "\n## HeatMap\n" in text


def test_the_reference_has_what_a_class_inherits_its_properties_and_class_methods() -> None:
    text = SITE["reference"]()
    of_trained = {line for line in text.splitlines() if line.startswith("### Trained.")}
    for name in ("predict", "evaluate", "explain", "plot_answer", "plot_training", "with_settings", "save"):
        assert f"### Trained.{name}" in of_trained
    assert text.index("### Trained.predict\n") < text.index("### Trained.save\n"), "what is inherited comes first"
    assert "```python\ncuts_text: bool\n```" in text
    assert "```python\n@classmethod\nfull(values: Tensor) -> Padded\n```" in text
    assert text.partition("### Recurrent.step\n")[2].startswith("\n```python\nstep(\n    x: Tensor,\n")
    assert " at 0x" not in text, "functions that are defaults have no addresses"


def test_the_reference_leaves_out_what_only_recurra_calls() -> None:
    from recurra import Trained

    text = SITE["reference"]()
    for name in SITE["INTERNAL"]["Trained"]:
        assert hasattr(Trained, name), "the list of what is left out names it"
        assert f"### Trained.{name}\n" not in text
    called = re.findall(r"\bmodel\.(\w+)\(", "".join(page.read_text("utf-8") for page in (ROOT / "docs").glob("*.md")))
    assert {name for name in called if name in SITE["INTERNAL"]["Trained"]} == set(), "the pages call it"


def test_methods_of_a_base_on_the_same_page_are_named_once_with_a_link() -> None:
    text = SITE["reference"]("recurra.extend")
    assert "### View.write\n" in text
    assert "### HeatMap.write\n" not in text
    of_heat_maps = text.partition("\n## HeatMap\n")[2].partition("\n## ")[0]
    [line] = [line for line in of_heat_maps.splitlines() if line.startswith("From ")]
    assert line.startswith("From [View](#view): ")
    assert "`write`" in line
    assert "`json`" not in line, "it has its own"


def test_what_estimators_have_of_scikit_learn_is_named() -> None:
    pytest.importorskip("sklearn")
    text = SITE["reference"]("recurra.sklearn").partition("\n## RecurrentClassifier\n")[2].partition("\n## ")[0]
    assert "From `sklearn.base.ClassifierMixin`: `score`." in text
    assert "`get_params`" in text


@pytest.mark.parametrize(
    ("docstring", "markdown"),
    [
        ("Adds *all*.", "Adds \\*all\\*."),
        (">>> 1 + 1\n2", "```python\n>>> 1 + 1\n2\n```"),
        ("x    an input", "```text\nx    an input\n```"),
    ],
)
def test_docstrings_become_markdown(docstring: str, markdown: str) -> None:
    assert SITE["prose"](docstring) == markdown + "\n"


def test_a_notebook_has_the_snippets_of_its_page_in_their_order_and_the_files_they_read() -> None:
    page = (ROOT / "docs" / "start.md").read_text()
    cells = json.loads(NOTEBOOKS["notebook"](page))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert "def write_others()" in code[0]
    assert [cell.splitlines()[0] for cell in code[1:]] == [
        "%%bash", "%%writefile questions.tsv", "%%bash", "%%bash", "%%bash", "import recurra"
    ]  # fmt: skip
    assert "# pip install ." in code[1]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert "[tagging](../tagging.html)" in text
    assert "--print-completion zsh" in text, "what is for a shell alone stays text"


def test_what_is_a_notebook_says_so_below_its_title(tmp_path: Path) -> None:
    SITE["copied"](tmp_path)
    SITE["add_notebooks"](tmp_path)
    made = {path.stem for path in (tmp_path / "notebooks").iterdir()}
    assert {"start", "tagging", "forecasting", "notebooks"} <= made
    assert "settings" not in made, "a page without snippets"
    for name in made:
        assert (tmp_path / f"{name}.md").read_text().splitlines()[2] == (
            f"[This page as a notebook](notebooks/{name}.ipynb)"
        )


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["start", "classification", "notebooks"])
def test_a_notebook_of_a_page_runs_from_start_to_end(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each cell in a kernel of its own, as Jupyter runs it: an error in one ends it."""
    nbclient = pytest.importorskip("nbclient", reason="needs pip install nbclient ipykernel")
    pytest.importorskip("ipykernel", reason="needs pip install nbclient ipykernel")
    for needed in ("pandas", "narwhals", "sklearn") if name == "notebooks" else ():
        pytest.importorskip(needed)
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    made = nbformat.reads(NOTEBOOKS["notebook"]((ROOT / "docs" / f"{name}.md").read_text("utf-8")), as_version=4)
    folder = tmp_path / "work"
    folder.mkdir()
    options = {"timeout": 300, "kernel_name": "python3", "resources": {"metadata": {"path": str(folder)}}}
    nbclient.NotebookClient(made, **options).execute()
    shown = [output for cell in made.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("data" in output or "text" in output for output in shown)
    assert list((folder / "runs").iterdir())


@pytest.mark.parametrize("script", ["site", "as_notebook"])
def test_examples_in_the_scripts_of_the_site_run(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "docs" / f"{script}.py"
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"docs_{script}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
