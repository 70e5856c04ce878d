"""Pictures of the page of `recurra serve`, to be looked at: each view of a small run of each task.

    python benchmarks/page_screenshots.py pictures                      # trains the runs first, once: about ten minutes
    python benchmarks/page_screenshots.py pictures --only tags music --browser /usr/bin/chromium
    python benchmarks/page_screenshots.py pictures --runs runs/demo-1   # of runs that are there already

Each view is drawn light and dark, on a screen 1400 pixels wide and on one of 390, a phone's: RUN.VIEW.light.wide.png
and so on, and a comparison of two runs. What lies outside of the screen or of its own box, and what the browser
complains about, is printed, and the exit status is then 1. Data are read from $RECURRA_DATA (../shared/data). Needs
playwright.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recurra.runs import begin, setup
from recurra.training.progress import progress

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Error, Page

HERE = Path(__file__).parents[1]
DATA = Path(os.environ.get("RECURRA_DATA", HERE.parent / "shared" / "data"))

WIDTHS = {"wide": 1400, "narrow": 390}
SCHEMES = ("light", "dark")

SPILT = """() => {
  const edge = document.documentElement.clientWidth;
  const isCut = (node) => node && (getComputedStyle(node).overflowX !== "visible" || isCut(node.parentElement));
  const named = (node) => `${node.tagName.toLowerCase()}.${node.getAttribute("class") ?? ""}`;
  const seen = [...document.querySelectorAll("main *")].filter((node) => node.checkVisibility() && !isCut(node));
  const found = seen.flatMap((node) => [
    node.getBoundingClientRect().right > edge + 1 ? `${named(node)} is wider than the screen` : "",
    node.childElementCount === 0 && node.clientWidth && node.scrollWidth > node.clientWidth + 1
      ? `${named(node)} is narrower than its text` : "",
  ]);
  return [...new Set(found)].filter((each) => each);
}"""
"""What lies outside of the screen, or of its own box, and cannot be scrolled to within the page."""


class Small(NamedTuple):
    """A run that trains in less than a minute."""

    task: str
    data: Callable[[Path], Path]  # a folder to the file of training data that it writes there
    settings: Sequence[str]


def lines(name: str, count: int) -> list[str]:
    """The first lines of a file of the data, packed or not."""
    read = (DATA / name).read_bytes()
    text = (gzip.decompress(read) if name.endswith(".gz") else read).decode("utf-8")
    return text.splitlines(keepends=True)[:count]


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def sentences(folder: Path) -> Path:
    return written(folder / "train.conllu", "".join(lines("ud_english_ewt/en_ewt-ud-train.conllu.gz", 20_000)))


def intents(folder: Path) -> Path:
    given = sorted(lines("clinc150/train.tsv", 15_000), key=lambda line: line.rpartition("\t")[2])[:1500]
    return written(folder / "intents.tsv", "".join(given))


def vowels(folder: Path) -> Path:
    rows = [json.loads(line) for line in lines("japanese_vowels/train.jsonl.gz", 270)]
    made = [json.dumps({"frames": row["x"], "label": f"speaker {row['label']}"}) for row in rows]
    return written(folder / "vowels.jsonl", "\n".join(made))


def play(folder: Path) -> Path:
    return written(folder / "play.txt", "".join(lines("tinyshakespeare/train.txt", 8000)))


def words(folder: Path) -> Path:
    packed = (HERE / "src" / "recurra" / "demo_data" / "train.tsv.gz").read_bytes()
    found = gzip.decompress(packed).decode("utf-8").splitlines()
    return written(folder / "words.tsv", "\n".join(random.Random(1).sample(found, 6000)))


def captions(folder: Path) -> Path:
    both = zip(*(lines(f"multi30k/tok/train.lc.norm.tok.{language}", 4000) for language in ("en", "de")), strict=True)
    return written(folder / "captions.tsv", "".join(f"{one.strip()}\t{other}" for one, other in both))


def colours(folder: Path) -> Path:
    rows = [line.rstrip("\n").split("\t") for line in lines("colors/train.tsv", 6000)]
    made = [",".join([*numbers, json.dumps(name)]) for name, *numbers in rows if '"' not in name]
    return written(folder / "colours.csv", "\n".join(["red,green,blue,target", *made]))


def formulas(folder: Path) -> Path:
    rows = [json.loads(line) for line in lines("crohme/train.jsonl.gz", 8000)]
    short = [row for row in rows if len(row["latex"].split()) <= 7][:600]
    return written(folder / "formulas.jsonl", "\n".join(map(json.dumps, short)))


def oil(folder: Path) -> Path:
    return written(folder / "oil.csv", "".join(lines("etth1/ETTh1.csv.gz", 4000)))


def music(folder: Path) -> Path:
    """Two chords by turns, with a melody above them: values that are 0 or 1."""
    chance, rows = np.random.default_rng(1), ["time,song,c,d,e,f,g,a,b"]
    for song in range(40):
        for step in range(32):
            chord = {0, 2, 4} if step // 4 % 2 == 0 else {1, 3, 5}
            notes = chord | {int(chance.integers(7))}
            rows.append(",".join(map(str, [step, song, *(int(note in notes) for note in range(7))])))
    return written(folder / "music.csv", "\n".join(rows))


def speech(folder: Path) -> Path:
    """Frames of three numbers, each of which is high while its letter is spoken."""
    chance, made = np.random.default_rng(1), []
    for _ in range(200):
        said = chance.integers(0, 3, int(chance.integers(2, 6)))
        spoken = np.repeat(np.eye(3)[said], chance.integers(2, 5, len(said)), axis=0)
        frames = np.round(spoken + chance.normal(0, 0.1, spoken.shape), 3).tolist()
        made.append(json.dumps({"frames": frames, "target": " ".join("abc"[each] for each in said)}))
    return written(folder / "speech.jsonl", "\n".join(made))


def alike(folder: Path) -> Path:
    rows = [line.rstrip("\n").split("\t") for line in lines("sick/train.tsv.gz", 2000)]
    return written(folder / "alike.tsv", "\n".join(f"{one}\t{other}\t{score}" for one, other, _, score in rows))


SMALL = {
    "tags": Small("tagging", sentences, ["model.hidden=64", "training.steps=150"]),
    "features": Small("tagging", sentences, ['data.tags=["upos", "feats"]', "model.hidden=64", "training.steps=150"]),
    "intents": Small("classification", intents, ["training.steps=200"]),
    "vowels": Small("classification", vowels, ["training.steps=150", "model.hidden=32"]),
    "play": Small("language_model", play, ["training.steps=100", "model.hidden=128"]),
    "words": Small("seq2seq", words, ["training.steps=500", "model.hidden=96", "model.embedding=48"]),
    "words-without-attention": Small(
        "seq2seq", words, ["training.steps=100", "model.hidden=96", "model.embedding=48", "model.attention=none"]
    ),
    "translation": Small("seq2seq", captions, ["training.steps=250", "model.hidden=128", "model.embedding=96"]),
    "colours": Small("vec2seq", colours, ["training.steps=400", "model.hidden=96"]),
    "formulas": Small(
        "vec2seq",
        formulas,
        [
            *("data.image.strokes=ink", "data.target.column=latex", "data.target.tokens=symbols"),
            *("model.hidden=96", "model.embedding=48", "model.image.widths=[16, 32, 64]", "training.batch_size=16"),
            *("training.steps=300", "training.learning_rate=2e-3"),
        ],
    ),
    "oil": Small("forecasting", oil, ["training.steps=100", "model.hidden=48", "decoding.horizon=24"]),
    "music": Small("forecasting", music, ["data.series=song", "training.steps=150", "model.hidden=48"]),
    "speech": Small("tests.outside.ctc:CTC", speech, ["training.steps=150", "model.hidden=24"]),
    "alike": Small("tests.outside.similarity:Similarity", alike, ["training.steps=150", "model.hidden=32"]),
}

COMPARED = ("words", "words-without-attention")


def trained(folder: Path, names: Sequence[str]) -> None:
    """The runs that are not in the folder yet."""
    for name in names:
        run = folder / name
        if (run / "summary.json").exists():
            continue
        shutil.rmtree(run, ignore_errors=True)
        small = SMALL[name]
        place = folder / ".data" / name
        place.mkdir(parents=True, exist_ok=True)
        given = {"train": str(small.data(place))}
        always = ["data.cache=false", "training.device=cpu", "training.threads=1"]
        begin(setup(small.task, given=given, overrides=[*small.settings, *always]), run, progress(sys.stderr))


def photographed(browser: Browser, address: str, folder: Path, runs: Sequence[dict[str, Any]]) -> list[str]:
    """Writes the pictures; what is wrong with the pages, in words."""
    wrong: list[str] = []

    def complained(message: ConsoleMessage) -> None:
        if message.type == "error":
            wrong.append(message.text)

    def failed(error: Error) -> None:
        wrong.append(str(error))

    for scheme, (width, pixels) in itertools.product(SCHEMES, WIDTHS.items()):
        context = browser.new_context(
            base_url=address,
            viewport={"width": pixels, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
            device_scale_factor=1 if width == "wide" else 2,
        )
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.on("console", complained)
        page.on("pageerror", failed)
        for name, query in addresses(runs):
            page.goto(query)
            drawn(page)
            page.screenshot(path=folder / f"{name}.{scheme}.{width}.png", full_page=True)
            wrong += [f"{name}, {scheme}, {width}: {each}" for each in page.evaluate(SPILT)]
        context.close()
    return wrong


def addresses(runs: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """What the pictures are called, and the addresses of what they show."""
    for run in runs:
        for view in run["views"]:
            yield f"{run['name']}.{view}".replace("/", "-"), f"/?run={run['name']}&tab={view}"
    names = [run["name"] for run in runs]
    if set(COMPARED) <= set(names):
        yield "compared", f"/?run={COMPARED[0]}&2.run={COMPARED[1]}"


def drawn(page: Page) -> None:
    """Waits for the answer and the view."""
    page.get_by_text(re.compile("^answered in")).first.wait_for()
    page.wait_for_load_state("networkidle")
    page.locator("[role=tabpanel][aria-busy=true]").first.wait_for(state="detached")


def main() -> int:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="FOLDER", help="where the pictures go; the runs are in runs/ there")
    parser.add_argument("--only", nargs="+", metavar="RUN", choices=list(SMALL), help=f"some of {', '.join(SMALL)}")
    parser.add_argument("--runs", metavar="FOLDER", help="runs that are there already, in place of these")
    parser.add_argument("--browser", default=shutil.which("chromium"), metavar="CHROMIUM")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(HERE))  # two of the tasks are those of tests/outside
    names = options.only or list(SMALL)
    served = [options.runs]
    if options.runs is None:
        trained(options.out / "runs", names)
        served = [str(options.out / "runs" / name) for name in names]
    command = [sys.executable, "-m", "recurra", "serve", *served, "--port", "0", *([] if options.runs else ["--trust"])]
    there = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=there) as server, sync_playwright() as tool:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[0]
            browser = tool.chromium.launch(executable_path=options.browser, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page()
            runs = page.request.get(f"{address}api/runs").json()["runs"]
            wrong = photographed(browser, address, options.out, runs)
            browser.close()
        finally:
            server.terminate()
    print("\n".join(wrong) or "nothing lies outside of its place")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
