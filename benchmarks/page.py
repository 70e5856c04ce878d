"""How long the page waits for an answer: `recurra serve` asked over HTTP, one question after the other.

    recurra demo && python benchmarks/page.py runs/demo-1/attention [--words 200] [--browser /usr/bin/chromium]

RUN is a model of the pronunciation of English words, as `recurra demo` trains it. Asked: less than 100 ms at the median
for a word, on two cores. Times are those of a client on the same machine, from the question to the whole answer read;
with --browser also those of the page in it, from the input's event to the frame with the answer (needs playwright).
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np

LONG = 200

TYPED = 40
"""Words that are typed in a browser."""

# What is drawn beneath an answer says how long it took, and is the last to change.
TYPING = """(word) => new Promise((done) => {
  const field = document.querySelector("textarea, input[type=text]");
  const drawn = () => [...document.querySelectorAll("*")].find(
    (each) => each.childElementCount === 0 && each.textContent.startsWith("answered in"))?.parentElement.innerText;
  const before = drawn();
  const began = performance.now();
  const watch = new MutationObserver(() => {
    if (drawn() === before) return;
    watch.disconnect();
    requestAnimationFrame(() => done(performance.now() - began));
  });
  watch.observe(document.body, { childList: true, subtree: true, characterData: true });
  field.value = word;
  field.dispatchEvent(new Event("input", { bubbles: true }));
})"""


def words(count: int) -> list[str]:
    """Words that the demo's model has not seen."""
    packed = (resources.files("recurra") / "demo_data" / "test.tsv.gz").read_bytes()
    found = [line.partition("\t")[0] for line in gzip.decompress(packed).decode("utf-8").splitlines()]
    return [found[number % len(found)] for number in range(count)]


class Client:
    """One connection, as a browser keeps it."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    def asked(self, path: str, question: object = None) -> Any:
        body = None if question is None else json.dumps(question)
        self.connection.request("GET" if body is None else "POST", path, body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        found = json.loads(answer.read())
        if answer.status != 200:
            raise SystemExit(found["error"])
        return found

    def timed(self, path: str, questions: Sequence[object]) -> list[float]:
        """Milliseconds of each question."""
        found = []
        for question in questions:
            began = time.perf_counter()
            self.asked(path, question)
            found.append(1000 * (time.perf_counter() - began))
        return found


def row(what: str, times: Sequence[float]) -> None:
    median, most, worst = np.quantile(times, [0.5, 0.9, 1])
    print(f"{what:44} {len(times):5} {median:8.1f} {most:8.1f} {worst:8.1f}", flush=True)


def measured(port: int, count: int) -> float:
    """The median for a word, after a table of everything is printed."""
    client = Client(port)
    [about] = client.asked("/api/runs")["runs"]
    path = f"/api/runs/{about['name']}"
    given = words(count)
    client.asked(f"{path}/predict", {"inputs": ["warm"]})
    print(f"{about['name']}: {about['described']}\n")
    print(f"{'milliseconds':44} {'asked':>5} {'median':>8} {'90 %':>8} {'worst':>8}")
    one_word = client.timed(f"{path}/predict", [{"inputs": [word]} for word in given])
    row("predict, a word", one_word)
    row("predict, a word, the 5 best", client.timed(f"{path}/predict", _five(given[:50])))
    row(f"predict, {LONG} letters", client.timed(f"{path}/predict", [{"inputs": [_long(given)]}] * 10))
    row("predict, 100 words in one call", client.timed(f"{path}/predict", [{"inputs": given[:100]}] * 5))
    for view in about["views"]:
        questions = [{"input": word, "show": [view]} for word in given[:20]]
        row(f"explain, a word, {view}", client.timed(f"{path}/explain", questions))
    for view in about["views"]:
        question = {"input": _long(given), "show": [view]}
        if client.asked(f"{path}/explain", question)["views"]:  # what mattered is shown of shorter inputs alone
            row(f"explain, {LONG} letters, {view}", client.timed(f"{path}/explain", [question] * 3))
    row("the list of runs", client.timed("/api/runs", [None] * 50))
    return float(np.median(one_word))


def typed(port: int, browser: str) -> list[float]:
    """Milliseconds from each word that is put into the page's field to its answer."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        window = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = window.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_load_state("networkidle")
        found = []
        for word in dict.fromkeys(words(4 * TYPED)[-TYPED:]):
            found.append(float(page.evaluate(TYPING, word)))
            page.wait_for_timeout(250)  # the view beneath it is drawn meanwhile
        window.close()
    return found


def _five(given: Sequence[str]) -> list[object]:
    return [{"inputs": [word], "decoding": {"best": 5}} for word in given]


def _long(given: Sequence[str]) -> str:
    return "".join(given)[:LONG]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--browser", metavar="CHROMIUM", help="also measure the page in this browser")
    options = parser.parse_args()
    command = [sys.executable, "-m", "recurra", "serve", options.run, "--port", "0"]
    print(f"{os.cpu_count()} cores")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r":(\d+)/", server.stdout.readline())
            if found is None:
                return 2
            median = measured(int(found[1]), options.words)
            if options.browser is not None:
                row("in the browser, from a key to the answer", typed(int(found[1]), options.browser))
        finally:
            server.terminate()
    print(f"\na word takes {median:.1f} ms at the median; asked: less than 100")
    return 0 if median < 100 else 1


if __name__ == "__main__":
    sys.exit(main())
