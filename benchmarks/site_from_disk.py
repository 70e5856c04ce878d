"""The documentation site in a browser, from disk: its links, its search, and pictures of its pages to be looked at.

    make site && .venv/bin/python benchmarks/site_from_disk.py site pictures
    python benchmarks/site_from_disk.py site pictures --browser /usr/bin/chromium

Every link and every picture of every page is looked up, also the anchor that it names; links to other sites are
counted, not fetched. Each page is then opened: what it asks of a network and what the browser complains of is printed,
and the exit status is 1. Some are drawn light, dark and on a screen 390 pixels wide, a phone's. Needs playwright.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

DRAWN = ("index.html", "start.html", "tagging.html", "cells/lstm.html", "reference.html", "results.html")
LOOKS = {"light": ("light", 1400), "dark": ("dark", 1400), "phone": ("light", 390)}
ASKED = {"gradual unfreezing": "fine_tuning.html", "plot_training": "reference.html", "peephole": "cells/lstm.html"}
"""Words to search for, and a page that has to be among what is found."""


class Links(HTMLParser):
    """The links of a page, and the places in it that links can name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif value and ((name == "href" and tag in ("a", "link")) or (name == "src")):
                self.links.append(value)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("site", type=Path)
    arguments.add_argument("pictures", type=Path)
    arguments.add_argument("--browser", help="a Chromium other than playwright's own")
    options = arguments.parse_args()
    site = options.site.resolve()
    options.pictures.mkdir(parents=True, exist_ok=True)
    files = [path for path in site.rglob("*") if path.is_file()]
    pages = sorted(path for path in files if path.suffix == ".html")
    print(f"{len(pages)} pages, {len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")
    wrong = checked(site, pages)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.browser, args=["--no-sandbox"])
        wrong += opened(browser, site, pages)
        wrong += searched(browser, site)
        for name in DRAWN:
            for look, (scheme, width) in LOOKS.items():
                context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)  # type: ignore[arg-type]
                page = context.new_page()
                page.goto((site / name).as_uri())
                page.wait_for_timeout(300)
                page.screenshot(path=str(options.pictures / f"{name.replace('/', '-')}.{look}.png"))
                over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                if over > 0:
                    wrong.append(f"{name} is {over} pixels wider than a screen of {width}")
                context.close()
        browser.close()
    print("\n".join(wrong) if wrong else "nothing is wrong")
    sys.exit(bool(wrong))


def checked(site: Path, pages: list[Path]) -> list[str]:
    """Links that lead nowhere."""
    parsed = {page: Links(page.read_text("utf-8")) for page in pages}
    kinds, wrong = Counter[str](), list[str]()
    for page, found in parsed.items():
        for link in found.links:
            if urlsplit(link).scheme in ("http", "https", "mailto", "data"):
                kinds["to other sites" if "http" in link[:4] else "other"] += 1
                continue
            target, place = urldefrag(urljoin(page.as_uri(), link))
            path = Path(unquote(urlsplit(target).path))
            kinds["within the site"] += 1
            kinds["to a place in a page"] += bool(place)
            if not path.is_file() or not path.is_relative_to(site):
                wrong.append(f"{page.relative_to(site)}: {link} leads nowhere")
            elif place and path in parsed and unquote(place) not in parsed[path].places:
                wrong.append(f"{page.relative_to(site)}: {link}: there is no such place in {path.relative_to(site)}")
    print("links: " + ", ".join(f"{count:,} {kind}" for kind, count in kinds.items()) + f"; {len(wrong)} lead nowhere")
    return wrong


def watched(page: Page, site: Path, wrong: list[str]) -> None:
    """Note what a page asks of others than the site, and what it complains of."""
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))

    def asked(url: str) -> None:
        if not url.startswith((site.as_uri(), "data:", "blob:")):
            wrong.append(f"{page.url} asks for {url}")

    page.on("request", lambda request: asked(request.url))


def opened(browser: Browser, site: Path, pages: list[Path]) -> list[str]:
    """Open each page once."""
    wrong = list[str]()
    tab = browser.new_page()
    watched(tab, site, wrong)
    for each in pages:
        tab.goto(each.as_uri())
    tab.close()
    print(f"{len(pages)} pages opened from disk: {len(wrong)} requests of a network and complaints")
    return wrong


def searched(browser: Browser, site: Path) -> list[str]:
    """Type into the search."""
    wrong = list[str]()
    for words, page in ASKED.items():
        tab = browser.new_page()
        watched(tab, site, wrong)
        tab.goto((site / "index.html").as_uri())
        field = tab.locator("[data-md-component=search-query]")
        field.focus()
        tab.get_by_text("Type to start searching").wait_for(state="attached")
        began = time.monotonic()
        field.press_sequentially(words)
        tab.locator(".md-search-result__link").first.wait_for(state="attached")
        links = tab.eval_on_selector_all(".md-search-result__link", "all => all.map(each => each.href)")
        taken = time.monotonic() - began
        places = [urldefrag(link)[0].removeprefix(site.as_uri() + "/").partition("?")[0] for link in links]
        print(f"search for '{words}': {', '.join(dict.fromkeys(places[:8]))} ({taken:.1f} s, typing included)")
        if page not in places:
            wrong.append(f"the search for '{words}' does not find {page}")
        tab.close()
    return wrong


if __name__ == "__main__":
    main()
