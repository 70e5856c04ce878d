"""A page of the documentation as a notebook: its text, and its snippets as cells that run in their order.

The first cell writes the small files that snippets read (docs/small_files.py); put files of your own in their place.
`make site` writes the notebooks of all pages that start and teach.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^(?:`([\w.]+)`:\n\n)?```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
FIRST = "The next cell writes the small files that this page reads, into the folder of the notebook."
NOT_RUN = ("pip", "make", "git", "kill", "tensorboard", "recurra serve")
"""Commands that install, or that never end by themselves: they stand in their cells as comments."""


def notebook(page: str) -> str:
    """The text of a page of Markdown as that of a notebook (.ipynb, format 4.4).

    >>> found = json.loads(notebook("# A page\\n\\n```python\\nx = 1\\n```\\n"))
    >>> [(cell["cell_type"], cell["source"]) for cell in found["cells"]]
    [('markdown', '# A page'), ('code', 'x = 1')]
    """
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    kinds = list(cells(page))
    return json.dumps({"cells": kinds, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}, indent=1) + "\n"


def cells(page: str) -> Iterator[dict[str, Any]]:
    """Text and snippets, one after the other."""
    end, text, files_are_there = 0, "", "recurra train" not in page and "recurra.train" not in page
    for block in BLOCK.finditer(page):
        file, language, content = block.groups()
        text += page[end : block.start()]
        end = block.end()
        code = in_a_cell(file, language, content)
        if code is None:
            text += block[0]
            continue
        if not files_are_there:
            files_are_there = True
            yield text_cell(f"{text.rstrip()}\n\n{FIRST}")
            yield code_cell((Path(__file__).parent / "small_files.py").read_text("utf-8"))
            text = ""
        if text.strip():
            yield text_cell(text)
        text = ""
        yield code_cell(code)
    if (text + page[end:]).strip():
        yield text_cell(text + page[end:])


def in_a_cell(file: str | None, language: str, content: str) -> str | None:
    """What a cell has to say to do what a block shows; None where there is nothing to do.

    >>> print(in_a_cell(None, "console", "$ recurra cells\\nelman …\\n$ recurra info x\\nrecurra: no run\\n"))
    %%bash
    recurra cells
    recurra info x || true
    """
    if file is not None:
        return f"%%writefile {file}\n{content}"
    if language == "python":
        return content
    if language == "bash":
        lines = [f"# {line}" if line.startswith(NOT_RUN) else line for line in content.splitlines()]
        return "\n".join(["%%bash", *lines])
    if language == "console":
        found = re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]
        parts = [part.partition("\n") for part in found]
        return "\n".join(
            ["%%bash", *(f"{asked} || true" if "recurra: " in printed else asked for asked, _, printed in parts)]
        )
    return None


def text_cell(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": to_the_site(text.strip())}


def code_cell(code: str) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": code.strip()}


def to_the_site(text: str) -> str:
    """Links, from the folder notebooks/ of the site, in which the notebooks lie.

    >>> to_the_site("[data](data.md#tables), ![picture](pictures/a.svg), [above](#above)")
    '[data](../data.html#tables), ![picture](../pictures/a.svg), [above](#above)'
    """

    def there(match: re.Match[str]) -> str:
        target = re.sub(r"\.md$", ".html", match[1])
        return f"](../{target}{match[2] or ''})"

    return LINK.sub(there, text)
