"""The page of a folder of runs, in a browser."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page

from recurra.reports.overview import Overview, Row
from recurra.reports.overview_page import write


def run(name: str, score: float | None, seconds: float | None) -> Row:
    scores = {} if score is None else {"accuracy": score}
    return Row(name, "tagging", "finished", None, "accuracy", scores, {}, 100, seconds, 5, {"model.cell": f"c{name}"})


def order(page: Page) -> list[str]:
    """The names of the runs from top to bottom."""
    return page.locator("tbody th").all_text_contents()


def test_a_click_sorts_by_value_and_a_second_one_the_other_way(browser: Browser, tmp_path: Path) -> None:
    runs = [run("run10", 0.5, 100.0), run("run9", None, 9.0), run("run2", 0.9, None), run("run1", 0.7, 7200.0)]
    write(Overview("runs", runs), tmp_path / "runs.html")
    context = browser.new_context(viewport={"width": 1200, "height": 600})
    page, complaints = context.new_page(), list[str]()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((tmp_path / "runs.html").as_uri())
    assert order(page) == ["run10", "run9", "run2", "run1"]
    for head, up in (
        ("valid accuracy", ["run10", "run1", "run2", "run9"]),
        ("time", ["run9", "run10", "run1", "run2"]),  # what is not known comes last
        ("run", ["run1", "run2", "run9", "run10"]),  # as numbers, where names have some
    ):
        button = page.get_by_role("button", name=head, exact=True)
        button.click()
        assert order(page) == up
        assert page.locator("th[aria-sort=ascending]").all_text_contents() == [head]
        button.press("Enter")
        known = [name for name in up if (name, head) not in (("run9", "valid accuracy"), ("run2", "time"))]
        assert order(page) == [*reversed(known), *(name for name in up if name not in known)]
    context.close()
    assert complaints == []
