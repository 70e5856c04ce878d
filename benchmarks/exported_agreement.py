"""Exported models beside their runs on real inputs: how many answers are equal, and how far their scores are apart.

    python benchmarks/exported_agreement.py [MODEL …] [--steps 150] [--count 500] [--by c]

For each task, and for other kinds of models of pairs (one that points at the nouns of a sentence among them), a small
model is trained for a few updates on data of $RECURRA_DATA (../shared/data), exported, and asked the first inputs of
the test set, as its run is. A language model is asked for the probability of each line; its answer, the rounded score,
counts as equal where the scores are at most 1e-5 apart, relative to their size. So does a forecast, of 24 hours after
96, where each of its numbers is.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import recurra
from recurra.tasks.task import Prediction

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data"))

SMALL = {"hidden": 64, "embedding": 32}
TRANSFORMER = {"kind": "transformer", "heads": 4}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "tagging": ("tagging", {**SMALL, "characters": {"embedding": 16, "hidden": 16}}),
    "classification": ("classification", SMALL),
    "language_model": ("language_model", SMALL),
    "seq2seq": ("seq2seq", SMALL),
    "vec2seq": ("vec2seq", SMALL),
    "question_answering": ("question_answering", {}),
    "forecasting": ("forecasting", {"hidden": 64}),
    "ctc": ("seq2seq", {**SMALL, "decoder": {"kind": "ctc", "expand": 2}}),
    "transformer": ("seq2seq", {**SMALL, "encoder": TRANSFORMER, "decoder": TRANSFORMER}),
    "copy": ("seq2seq", {**SMALL, "copy": True}),
    "pointer": ("seq2seq", {**SMALL, "pointer": "additive"}),
}
"""Their tasks and settings of [model]."""

READ, AHEAD = 96, 24
"""Hours before a forecast, and of it."""


def lines(path: Path, count: int) -> list[str]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for _, line in zip(range(count), file, strict=False)]


def sentences(path: Path, count: int) -> Iterator[list[str]]:
    """The words of the sentences of a CoNLL-U file."""
    words: list[str] = []
    for line in lines(path, 40 * count):
        fields = line.split("\t")
        if fields[0].isdigit():
            words.append(fields[1])
        elif not line and words:
            yield words
            words = []


def nouns(path: Path) -> Iterator[tuple[str, str]]:
    """The words of each sentence of a CoNLL-U file that has nouns, and the numbers of these words."""
    words: list[tuple[str, bool]] = []
    for line in lines(path, 100_000):
        fields = line.split("\t")
        if fields[0].isdigit():
            words.append((fields[1].replace(" ", "_"), fields[3] == "NOUN"))
        elif not line:
            places = [str(place) for place, (_, is_noun) in enumerate(words, 1) if is_noun]
            if places:
                yield " ".join(word for word, _ in words), " ".join(places)
            words = []


def stories(folder: Path, which: str, out: Path) -> Path:
    """A file of bAbI without gzip, as the reader of stories takes it."""
    out.write_bytes(b"".join(gzip.decompress(path.read_bytes()) for path in sorted(folder.glob(f"qa[16]_*_{which}*"))))
    return out


def given(name: str, count: int, folder: Path) -> tuple[Path, list[Any]]:
    """The file to train a model on, and inputs to ask."""
    task = MODELS[name][0]
    if name == "pointer":
        here, train = DATA / "ud_english_ewt", folder / "nouns.tsv"
        pairs = nouns(here / "en_ewt-ud-dev.conllu.gz")
        train.write_text("".join(f"{text}\t{places}\n" for text, places in pairs), "utf-8")
        return train, [text for text, _ in nouns(here / "en_ewt-ud-test.conllu.gz")][:count]
    if task == "tagging":
        here = DATA / "ud_english_ewt"
        train = folder / "train.conllu"
        train.write_bytes(gzip.decompress((here / "en_ewt-ud-dev.conllu.gz").read_bytes()))  # the smaller one
        test = here / "en_ewt-ud-test.conllu.gz"
        return train, list(sentences(test, count))[:count]
    if task == "classification":
        return DATA / "clinc150" / "train.tsv", [
            each.split("\t")[0] for each in lines(DATA / "clinc150" / "test.tsv", count)
        ]
    if task == "language_model":
        here = DATA / "tinyshakespeare"
        text = [line for line in lines(here / "valid.txt", 4 * count) if line]
        return here / "train.txt", text[:count]
    if task == "seq2seq":
        here = DATA / "g2p_sigmorphon2020"
        asked = [
            line.split("\t")[0] for name in ("fre_test", "fre_valid") for line in lines(here / f"{name}.tsv", count)
        ]
        return here / "fre_train.tsv", asked[:count]
    if task == "vec2seq":
        rows = [line.split("\t") for line in lines(DATA / "colors" / "test.tsv", count)]
        train = folder / "colors.tsv"
        numbers = (line.split("\t") for line in lines(DATA / "colors" / "train.tsv", 10_000))
        train.write_text("".join(f"{r} {g} {b}\t{name}\n" for name, r, g, b in numbers), "utf-8")
        return train, [f"{r} {g} {b}" for _, r, g, b in rows]
    if task == "forecasting":
        hours = [line.split(",") for line in lines(DATA / "etth1" / "ETTh1.csv.gz", 20_000)]
        train = folder / "oil.csv"
        train.write_text("".join(f"{hour[0]},{hour[-1]}\n" for hour in hours[:12_000]), "utf-8")
        oil = [float(hour[-1]) for hour in hours[12_000:]]
        return train, [oil[first : first + READ] for first in range(0, len(oil) - READ, 10)][:count]
    from recurra.data.formats.babi import Babi

    train, test = (stories(DATA / "babi" / "en", which, folder / f"{which}.babi") for which in ("train", "test"))
    questions = [{name: row.values[name] for name in ("context", "question")} for row in Babi().read(test)]
    return train, questions[:count]


def are_equal(task: str, found: Prediction, right: Prediction) -> bool:
    if task == "language_model":
        return abs(found.score - right.score) <= 1e-5 * max(1.0, abs(right.score))
    if task == "forecasting":
        one, other = (np.array([*map(float, each.output.replace(",", " ").split())]) for each in (found, right))
        return one.shape == other.shape and np.allclose(one, other, rtol=1e-5, atol=1e-5)
    return found.output == right.output


def compared(name: str, steps: int, count: int, by: Any, folder: Path) -> str:
    began = time.time()
    task, model = MODELS[name]
    train, asked = given(name, count, folder)
    settings: dict[str, Any] = {"model": model, "data": {"cache": False}}
    settings["training"] = {"steps": steps, "validate": steps}
    if task == "forecasting":
        settings["decoding"] = {"horizon": AHEAD}
    if name == "pointer":
        settings["data"]["source"] = {"tokens": "words"}
    run = recurra.train(task, train=str(train), out=folder / "run", settings=settings)
    report = recurra.export(folder / "run", folder / "exported")
    right = run.predict(asked)
    found = recurra.load(folder / "exported", by=by).predict(asked)
    apart = [abs(one.score - other.score) / max(1.0, abs(other.score)) for one, other in zip(found, right, strict=True)]
    equal = sum(are_equal(task, one, other) for one, other in zip(found, right, strict=True))
    return (
        f"{name:<20} {len(asked):>6} {equal:>6} {max(apart):>14.1e} {report.largest_error:>14.1e} "
        f"{time.time() - began:>8.0f} s"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), help=", ".join(MODELS))
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--by", default="c", choices=("c", "numpy"))
    asked = parser.parse_args(arguments)
    print(f"{'model':<20} {'inputs':>6} {'equal':>6} {'scores apart':>14} {'functions off':>14} {'time':>8}")
    for name in asked.models:
        with tempfile.TemporaryDirectory() as folder:
            print(compared(name, asked.steps, asked.count, asked.by, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
