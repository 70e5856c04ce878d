"""Pages that work offline: one file, nothing fetched, no script but one that is named by its hash."""

from __future__ import annotations

import hashlib
import itertools
import os
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from recurra.errors import DataError
from recurra.views.scene import COLOURS, Colour
from recurra.views.table import Table, in_cell

# Nothing is fetched from anywhere: the policy forbids it, and the empty icon keeps a browser from asking for one.
_HEAD = """<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:@">
<link rel="icon" href="data:,">
<style>
:root{color-scheme:light dark;--ink:#222;--soft:#5c5f66;--paper:#fff;--line:#ddd;--panel:#f5f6f8}
@media screen and (prefers-color-scheme:dark){
:root{--ink:#ddd;--soft:#a0a4ac;--paper:#16181c;--line:#3a3d44;--panel:#202329}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:56rem;padding:1.5rem 1rem 3rem;font:1rem/1.5 system-ui,sans-serif;
color:var(--ink);background:var(--paper)}
h1{margin:0;font-size:1.75rem;line-height:1.2;overflow-wrap:anywhere}
h2{margin:2.25rem 0 .5rem;font-size:1.2rem}
p{margin:.5rem 0}
.soft,dt,figcaption{color:var(--soft)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(11.5rem,1fr));gap:.75rem;margin:1.25rem 0 0}
.facts div{padding:.6rem .8rem;border-radius:.4rem;background:var(--panel)}
dl{margin:0}dt{font-size:.85rem}dd{margin:0;overflow-wrap:anywhere}
.facts dd{font-size:1.2rem;font-weight:600}.facts small{display:block;font-size:.85rem;font-weight:400;line-height:1.3}
.pairs{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.25rem;align-items:baseline}
.scroll{overflow:auto;max-height:34rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .9rem .3rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{font-weight:600;white-space:nowrap}.number{text-align:right}td:not(.number){min-width:5rem;overflow-wrap:anywhere}
figure{margin:0}svg{display:block;max-width:100%;height:auto}.fits .scene{max-width:100%}.narrow{display:none}
pre{overflow:auto;padding:.8rem;border-radius:.4rem;background:var(--panel);font:.85rem/1.45 ui-monospace,monospace}
details{margin-top:.75rem}summary{cursor:pointer}
@media (max-width:640px){.wide{display:none}.narrow{display:block}}
@media print{.wide{display:block}.narrow{display:none}.scroll{max-height:none}body{max-width:none}}
</style>"""


def _in_the_theme() -> str:
    """The colours of pictures and words where the page has a theme of its own, whatever the system's is."""
    themes = {
        0: (
            '[data-jp-theme-light="true"]',
            ".vscode-light",
        ),  # JupyterLab, nbconvert; Visual Studio Code
        1: ('[data-jp-theme-light="false"]', ".vscode-dark"),
    }
    rules = []
    for way, places in themes.items():
        colours = "".join(f"--{name}:{both[way]};" for name, both in COLOURS.items())
        strong = "".join(f"--{name}:{' '.join(map(str, bytes.fromhex(COLOURS[name][way][1:])))};" for name in STRONG)
        for what, values in (("scene", colours), ("words", strong)):
            rules.append(f"{','.join(f'{place} .recurra .{what}' for place in places)}{{{values}}}")
    return "".join(rules)


STRONG: tuple[Colour, ...] = ("more", "less")
"""The colours of words."""

_IN_NOTEBOOK = (
    ".recurra .narrow{display:none}.recurra .scroll{overflow-x:auto}"
    ".recurra .scroll table{table-layout:auto;width:max-content;font-variant-numeric:tabular-nums}"
    ".recurra .scroll :is(th,td){max-width:24rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}"
    ".recurra .scroll .number{text-align:right}" + _in_the_theme()
)


def page(title: str, pieces: Iterable[str], *, script: str = "") -> str:
    """A whole page of pieces of HTML; empty ones are left out. Of scripts, the browser runs the given one alone."""
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    head = _HEAD.replace("@", f"; script-src 'sha256-{digest}'" if script else "", 1)
    top = (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n<title>{escape(title)}</title>\n</head>\n<body>\n<main>\n'
    )
    end = f"<script>{script}</script>\n" if script else ""
    return top + "\n".join(filter(None, pieces)) + f"\n</main>\n{end}</body>\n</html>\n"


def section(title: str, content: str) -> str:
    """Content under a heading; nothing where there is no content."""
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>" if content else ""


def in_notebook(content: str) -> str:
    """Pieces of a page as a notebook shows them: of two pictures the one for wide screens, in the notebook's theme."""
    return f'<div class="recurra"><style>{_IN_NOTEBOOK}</style>{content}</div>'


def table_in_html(table: Table) -> str:
    """A table, numbers to the right; nothing where it has no rows."""
    if not table.rows:
        return ""
    is_number = [
        all(isinstance(cell, int | float | None) for row in table.rows for cell in row[i : i + 1])
        for i in range(max(map(len, [table.columns, *table.rows])))
    ]

    def row(cells: Sequence[object], tag: str) -> str:
        classes = [' class="number"' if number else "" for number in is_number]
        pairs = itertools.zip_longest(cells, classes, fillvalue="")
        return f"<tr>{''.join(f'<{tag}{look}>{escape(in_cell(cell))}</{tag.split()[0]}>' for cell, look in pairs)}</tr>"

    head, body = row(table.columns, 'th scope="col"'), "\n".join(row(cells, "td") for cells in table.rows)
    return f'<div class="scroll"><table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'


def write_whole(path: Path, text: str) -> Path:
    """Write a file whole or not at all: a reader never sees half of it."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise DataError(f"{path} cannot be written: {error.strerror}.") from error
    return path
