"""The page of a server that asks for a token."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Dialog, expect

from recurra.runtime.access import Access
from recurra.runtime.application import application
from recurra.runtime.hosted import hosted
from recurra.runtime.service import Service
from tests.runtime.listening import at_work

TOKEN = "0123456789abcdef"


def test_the_page_asks_once_for_the_token_and_again_if_it_is_wrong(runs: Path, browser: Browser) -> None:
    service, said = Service(hosted([str(runs / "tags")])), list[str]()
    answers = iter(["wrong", TOKEN])

    def answer(dialog: Dialog) -> None:
        said.append(dialog.message)
        dialog.accept(next(answers))

    with at_work(application(service, access=Access(token=TOKEN))) as port:
        context = browser.new_context(base_url=f"http://127.0.0.1:{port}/")
        page = context.new_page()
        page.on("dialog", answer)
        page.goto("/")
        expect(page.get_by_role("region", name="Answer").first).to_contain_text("answered in")
        page.reload()
        expect(page.get_by_role("region", name="Answer").first).to_contain_text("answered in")
        context.close()
    assert said == ["This server asks for its token:"] * 2
