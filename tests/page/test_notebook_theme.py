"""What a notebook shows, in a browser: it follows the theme of the notebook, whatever that of the system is."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from playwright.sync_api import Browser

from recurra.training.notebook import Notebook
from recurra.views.page import in_notebook
from recurra.views.scene import COLOURS
from recurra.views.table import Table
from recurra.views.tokens import TokenRow, Tokens

THEMES = {
    ("light", "jupyter"): '<body data-jp-theme-light="true">',
    ("dark", "jupyter"): '<body data-jp-theme-light="false">',
    ("light", "code"): '<body class="vscode-light">',
    ("dark", "code"): '<body class="vscode-dark">',
}

OF_JUPYTER = "<style>.jp tbody td,.jp thead th{text-align:right} .jp table{table-layout:fixed}</style>"
"""What JupyterLab says of tables."""


def style(page: Any, selector: str, name: str) -> str:
    return str(page.eval_on_selector(selector, f"node => getComputedStyle(node).{name}"))


def rgb(hexadecimal: str) -> str:
    return "rgb({}, {}, {})".format(*bytes.fromhex(hexadecimal[1:]))


@pytest.mark.parametrize(("theme", "where"), list(THEMES))
@pytest.mark.parametrize("system", ["light", "dark"])
def test_pictures_and_words_have_the_colours_of_the_notebooks_theme(
    browser: Browser, theme: str, where: str, system: Literal["light", "dark"]
) -> None:
    progress = Notebook(show=lambda _: lambda html: html)
    progress.start(0, 4, None)
    for step in (1, 2, 3):
        progress.step(step, 0.1, 1.0 / step, 0.01, 5)
    words = Tokens(["a", "b"], [TokenRow("yes", [1.0, -1.0], ["1", "-1"])])._repr_html_()
    page = browser.new_page(color_scheme=system)
    page.set_content(f"{THEMES[theme, where]}{progress.html()}{words}</body>")
    way = 0 if theme == "light" else 1
    assert style(page, ".scene .paper", "fill") == rgb(COLOURS["paper"][way])
    assert style(page, ".scene .ink", "fill") == rgb(COLOURS["ink"][way])
    assert rgb(COLOURS["more"][way])[4:-1] in style(page, ".words bdi", "backgroundColor")
    page.close()


def test_text_stands_to_the_left_and_a_wide_table_is_scrolled_within_itself(browser: Browser) -> None:
    names = [f"probability_of_{number}" for number in range(12)]
    table = Table(["input", *names], [["a sentence that is long enough to be broken in two", *[0.5] * 12]])
    page = browser.new_page(viewport={"width": 700, "height": 400})
    page.set_content(f'<body>{OF_JUPYTER}<div class="jp">{table._repr_html_()}</div></body>')
    assert style(page, "td:first-child", "textAlign") == "left"
    assert style(page, "td.number", "textAlign") == "right"
    assert style(page, "th:last-child", "textAlign") == "right"
    assert page.eval_on_selector("td:first-child", "node => node.getBoundingClientRect().height") < 60
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    assert page.eval_on_selector(".scroll", "node => node.scrollWidth > node.clientWidth")
    page.close()


def test_what_is_shown_is_closed_html() -> None:
    assert in_notebook("<p>a</p>").startswith('<div class="recurra"><style>')
    assert in_notebook("<p>a</p>").endswith("<p>a</p></div>")
