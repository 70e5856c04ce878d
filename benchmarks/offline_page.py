"""How large a page in one file is, and how long it takes from a key to the answer and its attention on the screen.

    python benchmarks/offline_page.py RUN [--keys 40]

RUN is a seq2seq run with attention, such as `recurra demo` trains. Needs Zig (pip install ziglang) and Chromium, which
opens the page from disk.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from recurra.runtime.offline import export_page

TYPED = """async (texts) => {
  const field = document.querySelector(".text-field");
  const places = [".answer-place", ".views [role=tabpanel]"].map((each) => document.querySelector(each));
  const took = [];
  for (const text of texts) {
    const changed = places.map((place) => new Promise((resolve) => {
      const observer = new MutationObserver(() => {
        if (place.getAttribute("aria-busy") !== "false" || place.childElementCount === 0) return;
        observer.disconnect();
        resolve(performance.now());
      });
      observer.observe(place, { childList: true, subtree: true, attributes: true });
    }));
    const began = performance.now();
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    const ends = await Promise.all(changed);
    document.body.getBoundingClientRect();
    took.push(performance.now() - began, ends[0] - began);
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  return took;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--keys", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as private, sync_playwright() as playwright:
        file = Path(private, "page.html")
        print(export_page(options.run, file, trust=True))
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda one: complaints.append(one.url) if one.url.startswith("http") else None)
        page.goto(f"file://{file}")
        page.wait_for_selector(".took:not(:empty)")
        word = "characteristically"
        texts = [word[: 3 + number % 12] + "aeiou"[number % 5] for number in range(options.keys)]
        took = page.evaluate(TYPED, texts)
        whole, answers = sorted(took[::2]), sorted(took[1::2])
        browser.close()
    print(f"{file.name}: {len(complaints)} complaints of the browser and requests {complaints[:2]}")
    print(f"from a key to the answer, ms: median {statistics.median(answers):.1f}, largest {answers[-1]:.1f}")
    print(f"to answer and attention drawn, ms: median {statistics.median(whole):.1f}, largest {whole[-1]:.1f}")


if __name__ == "__main__":
    main()
