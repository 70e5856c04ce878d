"""The tour: two models learn to pronounce English words before your eyes, one with attention and one without."""

from __future__ import annotations

import dataclasses
import gzip
import importlib.util
import itertools
import math
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recurra.analysis.alignment import alignment_of
from recurra.analysis.lengths import ByLength
from recurra.errors import CheckpointError
from recurra.tasks.task import Prediction
from recurra.text.visible import columns
from recurra.training.progress import progress
from recurra.views.several import Several
from recurra.views.table import Table
from recurra.views.view import View

if TYPE_CHECKING:
    from recurra.training.trained import Trained

WORDS = Path(__file__).parent / "demo_data"
"""A sample of the CMU Pronouncing Dictionary."""

SETTINGS = {
    "data.source.tokens": "characters",
    "data.source.lowercase": True,  # the dictionary has no capitals, but who tries it types London
    "data.target.tokens": "symbols",
    "model.embedding": 64,
    "model.hidden": 128,
    "model.dropout": 0.2,
    "training.steps": 2200,
    "training.minutes": 1.75,
    "training.batch_size": 64,
    "training.learning_rate": 6e-3,
    "training.validate": 500,
    "training.threads": 1,  # two wait for each other where a machine has other work
    "evaluation.first": "exact_match",
}
"""An update takes 22 ms of one core: 50 seconds for each of the models."""

MODELS: Mapping[str, Mapping[str, Any]] = {
    "attention": {"model.attention": "bilinear"},
    "no-attention": {"model.attention": "none", "model.conditioning": ["every"]},
}

TITLES = ("with attention", "without attention")

LOOKED_AT = ("pamphlet", "lightning", "shampoo")
"""Words of the test data whose attention is shown."""

WIDTH, NARROW = 1200, 720
"""Pixels, at most, of their picture, and of that of scores by length."""

AMBIGUOUS = "whisky"
"""A word of the test data that the dictionary pronounces in two ways."""


def tour(*, out: str | os.PathLike[str] | None = None, settings: Mapping[str, Any] | None = None) -> None:
    """Train both models in a new folder, runs/demo-1 or the next, and print and draw what they learned."""
    folder = Path(out) if out is not None else free_folder()
    words = unpacked(folder)
    print(
        f"How is an English word pronounced? The demo trains two models on {len(words['train']):,} words of the "
        "CMU Pronouncing\nDictionary, from letters to sounds. An encoder reads the letters in both directions; a "
        "decoder writes the\nsounds, one after the other. Each model trains for about 50 seconds.\n"
    )
    trained = {}
    for name, said in (
        ("attention", "With attention: for each sound, the decoder looks at the letters again."),
        ("no-attention", "Without attention: the decoder gets the whole word as a single vector."),
    ):
        print(said, flush=True)
        trained[name] = learned(folder, name, {**SETTINGS, **MODELS[name], **(settings or {})})
        print()
    tell_scores(folder, len(words["test"]))
    answers = trained["attention"].predict(LOOKED_AT, detail=True)
    tell_attention(folder, answers, words["test"])
    [several] = trained["attention"].with_settings(["decoding.best=4"]).predict([AMBIGUOUS], detail=True)
    tell_best(several, words["test"])
    tell_what_is_next(folder)


def free_folder() -> Path:
    """A folder for the runs that is not there yet."""
    return next(path for n in itertools.count(1) if not (path := Path("runs") / f"demo-{n}").exists())


def unpacked(folder: Path) -> dict[str, dict[str, list[str]]]:
    """The words of each part with their pronunciations; written as train.tsv, valid.tsv and test.tsv into a folder."""
    parts: dict[str, dict[str, list[str]]] = {}
    for part in ("train", "valid", "test"):
        text = gzip.decompress((WORDS / f"{part}.tsv.gz").read_bytes())
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{part}.tsv").write_bytes(text)
        except OSError as error:
            raise CheckpointError(f"the demo cannot write to {folder}: {error.strerror}.") from error
        parts[part] = {}
        for line in text.decode().splitlines():
            word, _, sounds = line.partition("\t")
            parts[part].setdefault(word, []).append(sounds)
    return parts


def learned(folder: Path, name: str, settings: Mapping[str, object]) -> Trained:
    """A model that was trained with these settings, in a folder of that name."""
    from recurra.runs import train

    return train(
        "seq2seq",
        train=folder / "train.tsv",
        valid=folder / "valid.tsv",
        test=folder / "test.tsv",
        out=folder / name,
        settings=settings,
        progress=progress(sys.stderr),
    )


def tell_scores(folder: Path, count: int) -> None:
    """How many words of the test data each model says right: all of them, and by length."""
    from recurra.runs import summary_of

    summaries = {name: summary_of(folder / name) for name in MODELS}
    tables = {name: Table(**summary["tables"]["test: by length"]) for name, summary in summaries.items()}
    by = ByLength.of(tables, "exact_match")
    by = dataclasses.replace(
        by, runs=dict(zip(TITLES, by.runs.values(), strict=True)), score="share of words pronounced right"
    )
    whole = {name: summary["test"]["scores"]["exact_match"] for name, summary in summaries.items()}
    print(f"Of {count:,} words that neither model has seen, this share is pronounced as in the dictionary:\n")
    print(f"  {'letters':8} {'words':>5}   {TITLES[0]:21} {TITLES[1]}")
    rows = list(zip(by.buckets, by.items, *by.runs.values(), strict=True))
    for bucket, items, with_it, without in [*rows, ("all", count, *whole.values())]:
        print(f"  {bucket:8} {items:5,}   {bar(with_it)}   {bar(without)}")
    sizes = " and ".join(f"{summary['parameters']:,}" for summary in summaries.values())
    print(f"\nThe models have {sizes} weights. Without attention, the whole word must fit into one vector.")
    print(f"As a picture: {drawn(by.view(), folder / 'by_length', NARROW)}\n")


def bar(share: float, width: int = 12) -> str:
    """A share as a bar and a percentage.

    >>> bar(0.5, width=4)
    '██░░  50 %'
    """
    full = round(share * width)
    return f"{'█' * full}{'░' * (width - full)} {share:4.0%}".replace("%", " %")


def tell_attention(folder: Path, answers: Sequence[Prediction], known: Mapping[str, Sequence[str]]) -> None:
    """The attention of a few answers, side by side, and as a picture."""
    print("Attention: one row per sound that was written, one column per letter that was read.\n")
    alignments = [alignment_of(answer, f"{answer.input} → {answer.output}") for answer in answers]
    print(beside([dataclasses.replace(each, caption="").text() for each in alignments]) + "\n")
    for each, answer in zip(alignments, answers, strict=True):
        right = known[answer.input]
        print(f"  {each.caption}, {'as in the dictionary' if answer.output in right else f'but it is {right[0]}'}")
    print(f"\nAs a picture: {drawn(Several(alignments), folder / 'attention', WIDTH)}\n")


def beside(blocks: Sequence[str], gap: int = 4) -> str:
    """Blocks of lines next to each other.

    >>> print(beside(["a\\nbc", "d"], gap=1))
    a  d
    bc
    """
    lines = [block.split("\n") for block in blocks]
    widths = [max(map(columns, block)) + gap for block in lines]
    rows = itertools.zip_longest(*lines, fillvalue="")
    return "\n".join(
        "".join(x + " " * (w - columns(x)) for x, w in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def tell_best(answer: Prediction, known: Mapping[str, Sequence[str]]) -> None:
    """Several answers for one word, with their probabilities."""
    print(f"A beam of five finds several answers, here the best for “{answer.input}”, with a length penalty:\n")
    first = {"output": answer.output, "log_probability": answer.detail["log_probability"]}
    for each in [first, *answer.detail["alternatives"]]:
        note = "  in the dictionary" if each["output"] in known[answer.input] else ""
        print(f"  {math.exp(each['log_probability']):6.1%}  {each['output']}{note}".replace("%", " %"))
    print()


def drawn(view: View, path: Path, width: float) -> Path:
    """The file of a picture: a PNG where matplotlib is there, otherwise an SVG."""
    ending = ".svg" if importlib.util.find_spec("matplotlib") is None else ".png"
    return view.write(path.with_name(path.name + ending), width)


def tell_what_is_next(folder: Path) -> None:
    """Commands that go on from here."""
    this, with_it, without = command(), folder / "attention", folder / "no-attention"
    steps = [
        ("pronounce any word: type one per line, then Ctrl-D", f"predict {with_it}"),
        ("see attention and beam search in the browser, while you type", f"serve {folder}"),
        ("all scores of a model", f"evaluate {with_it} {folder / 'test.tsv'}"),
        ("both models side by side, with confidence intervals", f"compare {with_it} {without} {folder / 'test.tsv'}"),
        (
            "train on your own pairs, one per line, separated by a tab",
            "train seq2seq --train YOURS.tsv --valid OTHERS.tsv",
        ),
        ("inspect a file and get a training command", "check YOURS.tsv"),
    ]
    print("What to type next:\n")
    for what, arguments in steps:
        print(f"  # {what}\n  {this} {arguments}")
    print(f"\nEach model has a training report: {with_it / 'report.html'}")


def command() -> str:
    """What the user types to run this program."""
    called = Path(sys.argv[0])
    if called.name != "recurra":
        return "python -m recurra"
    known = shutil.which("recurra")
    if known is not None and Path(known).resolve() == called.resolve():
        return "recurra"
    return shlex.quote(os.path.relpath(called))
