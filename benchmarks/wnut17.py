"""Names in noisy English (WNUT 2017), with and without features of our own character language models.

    python benchmarks/wnut17.py                                            # CPU: 5 minutes for each language model
    python benchmarks/wnut17.py --hidden 1024 --dropout 0.2 --batch 128 --minutes 60 --wiki 20 --seeds 3 --epochs 30 \\
        --device cuda --out runs                                           # a GPU

First two language models of characters are trained, one forward, one backward, on sentences of wikitext2 (--wiki
megabytes of it), the web texts of ud_english_ewt and the training sentences of wnut17, words set apart by blanks. Then
taggers are trained with the defaults of `recurra config tagging`, but for --epochs, without and with
model.features = [forward, backward]. Weights are chosen on valid.conll; F1 is that of whole entities, exactly right.
Data are read from $RECURRA_DATA (../shared/data); no word vectors and no gazetteers.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import recurra
from recurra.runs import begin, setup
from recurra.training.progress import progress

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data"))

PUBLISHED = {  # entity F1 on test, from the README of the data
    "Drexel-CCI (shared task, last)": 26.30,
    "Arcada (BiLSTM and transitions)": 39.98,
    "UH-RiTUAL (characters, words, multitask, CRF; first)": 41.86,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", help="keep the runs in this folder; language models that are there are used")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--hidden", type=int, default=256, help="units of each language model (256)")
    arguments.add_argument("--minutes", type=float, default=5.0, help="training of each language model (5)")
    arguments.add_argument("--dropout", type=float, default=0.0, help="of the language models (0: few epochs)")
    arguments.add_argument("--batch", type=int, default=32, help="streams of a batch of the language models (32)")
    arguments.add_argument("--wiki", type=float, default=3.0, help="megabytes of wikitext2 (3)")
    arguments.add_argument("--epochs", type=int, default=15, help="of the taggers (15)")
    arguments.add_argument("--seeds", type=int, default=1, help="taggers of each kind (1)")
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all taggers")
    arguments.add_argument("--set-lm", action="append", default=[], help="another setting, for both language models")
    arguments.add_argument(
        "--only", choices=("forward", "backward"), help="train this language model alone, into --out"
    )
    options = arguments.parse_args()
    print(f"recurra {recurra.__version__}, Python {platform.python_version()}: {' '.join(sys.argv)}\n")
    with tempfile.TemporaryDirectory() as private:
        folder = Path(options.out or private)
        folder.mkdir(parents=True, exist_ok=True)
        if options.only is not None:  # two machines or processes may train one each
            language_model(folder, options.only, options)
            return
        runs = [language_model(folder, direction, options) for direction in ("forward", "backward")]
        rows = []
        for kind, features in (("without", []), ("with", [str(run) for run in runs])):
            for seed in range(1, options.seeds + 1):
                rows.append((kind, seed, tagger(folder / f"{kind}-{seed}", features, seed, options)))
    print(f"{'features':10}{'seed':>5}{'valid F1':>10}{'test F1':>10}{'precision':>11}{'recall':>9}{'seconds':>9}")
    for kind, seed, summary in rows:
        valid, test = summary["best"]["scores"], summary["test"]["scores"]
        numbers = [valid["f1"], test["f1"], test["precision"], test["recall"]]
        cells = "".join(f"{100 * number:{width}.2f}" for number, width in zip(numbers, (10, 10, 11, 9), strict=True))
        print(f"{kind:10}{seed:>5}{cells}{summary['seconds']:9.0f}")
    for name, f1 in PUBLISHED.items():
        print(f"{name:60}{f1:.2f}")


def language_model(folder: Path, direction: str, options: argparse.Namespace) -> Path:
    """A language model of characters that reads in this direction; its bits per character are printed."""
    run = folder / direction
    if not (run / "summary.json").is_file():
        sentences = texts(options.wiki)
        held = max(1, len(sentences) // 50)
        for name, part in (("train", sentences[held:]), ("valid", sentences[:held])):
            (folder / f"{direction}.{name}.txt").write_text("\n".join(part) + "\n", "utf-8")
        changes = [
            f"model.direction={direction}",
            f"model.hidden={options.hidden}",
            "model.layers=1",
            "model.weight_drop=0",
            f"model.output_dropout={options.dropout}",  # model.dropout lies between layers, of which there is one
            "model.token_dropout=0",
            f"training.batch_size={options.batch}",
            "data.text.min_count=5",
            "training.epochs=none",
            f"training.minutes={options.minutes}",
            f"training.device={options.device}",
        ]
        given = {name: str(folder / f"{direction}.{name}.txt") for name in ("train", "valid")}
        begin(setup("language_model", given=given, overrides=[*changes, *options.set_lm]), run, progress(sys.stderr))
    summary = json.loads((run / "summary.json").read_text("utf-8"))
    bits = summary["best"]["scores"].get("bits_per_character", float("nan"))
    print(
        f"{direction} language model of {options.hidden} units: {bits:.3f} bits per character, {summary['steps']} steps"
    )
    return run


def texts(megabytes: float) -> list[str]:
    """Sentences in a random order, their words set apart by blanks."""
    found: list[str] = []
    with gzip.open(DATA / "wikitext2" / "train.txt.gz", "rt", encoding="utf-8") as file:
        size = 0
        for line in file:
            if size > megabytes * 1e6:
                break
            if (text := line.strip()) and not text.startswith("="):
                found += [f"{sentence} ." for sentence in text.removesuffix(" .").split(" . ")]
                size += len(line)
    with gzip.open(DATA / "ud_english_ewt" / "en_ewt-ud-train.conllu.gz", "rt", encoding="utf-8") as file:
        rows = (line.split("\t") if line[:1].isdigit() else [] for line in file)
        found += sentences_of([row[1] if row and row[0].isdigit() else None if not row else "" for row in rows])
    with open(DATA / "wnut17" / "train.conll", encoding="utf-8") as plain:
        found += sentences_of([line.split("\t")[0] or None if line.strip() else None for line in plain])
    random.Random(1).shuffle(found)
    return found


def sentences_of(words: list[str | None]) -> list[str]:
    """Words as sentences, which None divides; "" stands for no word."""
    found: list[list[str]] = [[]]
    for word in words:
        if word is None:
            found.append([])
        elif word:
            found[-1].append(word)
    return [" ".join(sentence) for sentence in found if sentence]


def tagger(run: Path, features: list[str], seed: int, options: argparse.Namespace) -> dict[str, Any]:
    changes = [f"training.epochs={options.epochs}", f"training.seed={seed}", f"training.device={options.device}"]
    changes += [f"model.features={json.dumps(features)}"] if features else []
    given = {part: str(DATA / "wnut17" / f"{part}.conll") for part in ("train", "valid", "test")}
    begin(setup("tagging", given=given, overrides=[*changes, *options.set]), run, progress(sys.stderr))
    found: dict[str, Any] = json.loads((run / "summary.json").read_text("utf-8"))
    return found


if __name__ == "__main__":
    main()
