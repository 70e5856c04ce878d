"""A notebook from start to end: pandas in, live progress, plots, an explanation, a data frame out; and its picture.

    python benchmarks/notebook.py FOLDER                    # runs it, writes notebook.ipynb, its HTML and pictures
    python benchmarks/notebook.py FOLDER --browser /usr/bin/chromium

The cells run in a kernel of their own, as Jupyter starts it. What it sends while the training cell runs is kept: how
often the progress was drawn anew, and how it looked half-way. The sentences are those of SNIPS, with seven intents,
read from $RECURRA_DATA (../shared/data). Needs ipykernel, nbclient, nbconvert, pandas, narwhals and playwright.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from playwright.sync_api import Browser, Request, sync_playwright

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data")).resolve() / "snips"

READ = f"""\
import pandas as pd
import recurra

def read(part):
    names = ["text", "slots", "intent"]
    return pd.read_csv(f"{DATA}/{{part}}.tsv", sep="\\t", names=names, quoting=3)[["text", "intent"]]

train, valid, test = read("train"), read("valid"), read("test")
train.sample(4, random_state=0)"""

TRAIN = """\
model = recurra.train(
    "classification",
    train=train,
    valid=valid,
    out="runs/intents",
    overwrite=True,
    settings={
        "data.text": "text", "data.label": "intent", "model.cell": "gru", "model.summary": "attention",
        "model.hidden": 48, "training.epochs": 3, "training.validate": 100, "training.threads": 1,
    },
)"""

CELLS = [
    (
        "markdown",
        "# What do they want?\n\nIntents of 13,084 sentences, from a data frame to a data frame.",
    ),
    ("code", READ),
    ("code", TRAIN),
    ("code", "model"),
    ("code", 'model.plot_training(["accuracy"])'),
    ("code", "model.evaluate(test)"),
    ("code", 'model.explain("will it be warm enough to swim in lisbon tomorrow")'),
    ("code", 'model.plot_answer("will it be warm enough to swim in lisbon tomorrow", "saliency")'),
    ("code", "answers = model.predict(test.head(6))\nanswers"),
    ("code", 'test.head(6).join(answers.to_frame()[["output", "score"]])'),
]
TRAINING = 2
"""The cell that trains."""

WIDTH = 1000


class Watched(NotebookClient):  # type: ignore[misc]
    """Runs a notebook, and keeps what the training cell shows on the way, each time that it is drawn anew."""

    def __init__(self, notebook: Any, **options: Any) -> None:
        super().__init__(notebook, **options)
        self.drawn: list[tuple[float, str]] = []

    def process_message(self, message: Any, cell: Any, cell_index: int) -> Any:
        if cell_index == TRAINING and message["msg_type"] in ("display_data", "update_display_data"):
            self.drawn.append((time.monotonic(), message["content"]["data"].get("text/html", "")))
        return super().process_message(message, cell, cell_index)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--browser", help="a Chromium other than playwright's own")
    options = arguments.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    made = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    notebook = nbformat.v4.new_notebook(cells=[made[kind](source) for kind, source in CELLS])
    client = Watched(notebook, timeout=1200, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    began = time.monotonic()
    client.execute()
    print(f"{sum(kind == 'code' for kind, _ in CELLS)} cells ran in {time.monotonic() - began:.0f} s")
    told(client, notebook)
    nbformat.write(notebook, folder / "notebook.ipynb")
    half = len(client.drawn) // 2
    live = nbformat.v4.new_notebook(cells=[made["code"](TRAIN)])
    live.cells[0].outputs = [nbformat.v4.new_output("display_data", data={"text/html": client.drawn[half][1]})]
    for theme in ("light", "dark"):
        for name, shown in (("notebook", notebook), ("live", live)):
            body, _ = HTMLExporter(theme=theme).from_notebook_node(shown)
            (folder / f"{name}.{theme}.html").write_text(body, "utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.browser, args=["--no-sandbox"])
        for name in ("notebook", "live"):
            pictured(browser, folder / f"{name}.png")
        browser.close()


def told(client: Watched, notebook: Any) -> None:
    """What the kernel sent while it trained, and what each cell shows in the end."""
    times = [at for at, _ in client.drawn]
    print(f"while it trained, progress was drawn {len(times)} times in {times[-1] - times[0]:.0f} s, in one place")
    bars = [drawn.partition("</progress> ")[2].partition("</div>")[0] for _, drawn in client.drawn]
    for number in sorted({0, len(bars) // 4, len(bars) // 2, 3 * len(bars) // 4, len(bars) - 1}):
        print(f"  {bars[number] or '(notes alone)'}")
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        first = cell.source.splitlines()[0]
        print(f"[{cell.execution_count}] {first}")
        for output in cell.outputs:
            data = output.get("data", {})
            kinds = ", ".join(data) or output.output_type
            print(f"      {kinds}: {len(data.get('text/html', '')):,} characters of HTML")
    print("\nthe data frame in the end:")
    print(notebook.cells[-1].outputs[0].data["text/plain"])


def pictured(browser: Browser, page: Path) -> None:
    """The page as a picture in the light and the dark theme; the system's own is the other one, which must not matter.

    What it asks of the network is refused: results do not need it.
    """
    for theme, system in (("light", "dark"), ("dark", "light")):
        tab = browser.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme=system)  # type: ignore[arg-type]
        tab.route("**/*", lambda route: route.continue_() if from_disk(route.request) else route.abort())
        source = page.with_suffix(f".{theme}.html")
        tab.goto(source.as_uri())
        tab.screenshot(path=str(page.with_suffix(f".{theme}.png")), full_page=True)
        tab.close()


def from_disk(request: Request) -> bool:
    return request.url.startswith(("file:", "data:"))


if __name__ == "__main__":
    main()
