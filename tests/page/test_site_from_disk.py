"""The documentation site, opened from disk in a browser: `make site` builds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

SITE = Path(os.environ.get("RECURRA_SITE", Path(__file__).parents[2] / "site"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="there is no site here: make site builds it"),
]


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """A tab that must ask for files of the site alone, and complain of nothing."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(20_000)
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith((SITE.resolve().as_uri(), "data:", "blob:"))] == []


@pytest.mark.parametrize(
    ("words", "found"),
    [("gradual unfreezing", "fine_tuning.html"), ("plot_training", "reference.html"), ("variational", "")],
)
def test_the_search_finds_a_page_without_a_network(tab: Page, words: str, found: str) -> None:
    tab.goto((SITE / "index.html").resolve().as_uri())
    asked = tab.locator("[data-md-component=search-query]")
    asked.focus()
    tab.get_by_text("Type to start searching").wait_for(state="attached")
    asked.press_sequentially(words)
    first = tab.locator(".md-search-result__link").first
    first.wait_for(state="attached")
    links = tab.eval_on_selector_all(".md-search-result__link", "links => links.map(link => link.href)")
    assert any(f"/{found}" in link for link in links), links
    tab.goto(links[0])
    assert tab.locator("h1").count() == 1


@pytest.mark.parametrize("page", ["index.html", "start.html", "cells/lstm.html", "reference.html", "gallery.html"])
def test_pages_open_from_disk_and_have_their_pictures(tab: Page, page: str) -> None:
    tab.goto((SITE / page).resolve().as_uri())
    broken = tab.eval_on_selector_all(
        "img", "all => all.filter(each => each.complete && each.naturalWidth === 0).map(each => each.src)"
    )
    assert broken == []
