"""Takes the README's picture of the page: python docs/draw_page.py runs/demo-1 [--browser /usr/bin/chromium].

Writes docs/pictures/page.png: the models of `recurra demo`, which pronounce English words, are served, the first one is
asked for a word, and one of the sounds is pointed at. Needs playwright.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

WORD = "knightsbridge"
POINTED_AT = "T"
WIDTH, HEIGHT = 1140, 1330


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", metavar="FOLDER")
    parser.add_argument("--browser", default=shutil.which("chromium"), metavar="CHROMIUM")
    options = parser.parse_args()
    command = [sys.executable, "-m", "recurra", "serve", options.runs, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as tool:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[0]
            browser = tool.chromium.launch(executable_path=options.browser, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
            page.goto(f"{address}?input={WORD}")
            page.locator(".down .label", has_text=POINTED_AT).first.hover()
            page.screenshot(path=Path(__file__).parent / "pictures" / "page.png")
            browser.close()
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
