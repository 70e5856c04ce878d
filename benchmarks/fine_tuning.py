"""A ninth language from 100 words: fine-tuning a model of letters to phonemes that was trained on eight others.

    python benchmarks/fine_tuning.py                  # the base, then rum ady dut jpn, each trained in every way
    python benchmarks/fine_tuning.py dut --seeds 3
    python benchmarks/fine_tuning.py --more-of ice    # one language: all its words, then the first 500 of them again

Data are those of SIGMORPHON 2020, read from $RECURRA_DATA (../shared/data): 3,600 words of a language, of which a ninth
one gives 100 to train on and 50 to validate on. The languages are told apart by a feature of the source, so that the
ninth adds a feature beside its letters and phonemes. Word error rate (WER, greedy search) is measured on the 450 test
words of the ninth language, and before and after on 50 test words of each of the eight. Everything runs on one core.

--more-of trains a model of one language, and goes on with the first 500 of its words: in these, some of its symbols
are missing, and a vocabulary that is built anew loses them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import recurra

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data")) / "g2p_sigmorphon2020"
BASE = ("arm", "bul", "fre", "geo", "gre", "hun", "ice", "vie")
NINTH = ("rum", "ady", "dut", "jpn")

FEW = 500
"""Words with which --more-of goes on."""

WORDS, VALID, TESTED = 100, 50, 50
"""Words of the ninth language to train on, to validate on, and test words of each of the eight."""

SETTINGS = {
    "data.columns": ["features", "source", "target"],
    "data.features": ["features"],
    "data.source.tokens": "characters",
    "data.target.tokens": "symbols",
    "model.attention": {"name": "projected_dot", "terms": ["monotonic"]},
    "model.hidden": 128,
    "model.embedding": 64,
    "model.dropout": 0.2,
    "decoding.search": "greedy",
    "training.device": "cpu",
    "training.threads": 1,
    "training.deterministic": False,
}
LONG = {"training.steps": 2400, "training.batch_size": 64, "training.validate": 400}
SHORT = {"training.steps": 500, "training.batch_size": 20, "training.validate": 50, "training.warmup": 20}

TUNING = "training.fine_tuning."
OLD_WAY = {TUNING + "vocabulary": "new", "training.learning_rate": 2e-3}
WAYS: dict[str, dict[str, object] | None] = {
    "from scratch": None,
    "vocabulary built anew, full rate": OLD_WAY,
    "vocabulary kept (the default)": {},
    "and 20 % old data": {TUNING + "old_share": 0.2},
    "and 50 % old data": {TUNING + "old_share": 0.5},
    "and encoder frozen": {TUNING + "frozen": ["encoder"]},
    "and gradual unfreezing": {TUNING + "frozen": ["embedding", "encoder", "decoder"], TUNING + "unfreeze": 10},
}


def rows(language: str, part: str) -> list[str]:
    """The words of a language, each with its feature."""
    lines = (DATA / f"{language}_{part}.tsv").read_text("utf-8").splitlines()
    return [f"{language}\t{line}" for line in lines if line.strip()]


def written(path: Path, lines: Sequence[str]) -> str:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


def some(lines: Sequence[str], count: int, seed: int) -> list[str]:
    return random.Random(seed).sample(lines, count)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("languages", nargs="*", help=f"ninth languages, of {', '.join(NINTH)} (all)")
    arguments.add_argument("--ways", nargs="*", help="only ways that begin with these words")
    arguments.add_argument("--seeds", type=int, default=1, help="draws of the 100 words, each with a seed of training")
    arguments.add_argument("--out", help="keep the runs in this folder; a base that is there is not trained again")
    arguments.add_argument("--more-of", metavar="LANGUAGE", help="go on with words of the language of the base itself")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as private:
        home = Path(options.out or private)
        home.mkdir(parents=True, exist_ok=True)
        if options.more_of is not None:
            gone_on(home, options.more_of, options.seeds)
            return
        eight = [line for language in BASE for line in some(rows(language, "test"), TESTED, 0)]
        old = written(home / "eight.tsv", eight)
        base = home / "base"
        if not (base / "summary.json").exists():
            train = written(home / "train.tsv", [line for language in BASE for line in rows(language, "train")])
            valid = written(home / "valid.tsv", [line for each in BASE for line in some(rows(each, "valid"), 25, 0)])
            recurra.train("seq2seq", train=train, valid=valid, out=base, settings={**SETTINGS, **LONG})
        before = wer(base, old)
        print(f"the base: {len(BASE)} languages ({', '.join(BASE)}), {seconds_of(base):.0f} s")
        print(f"WER of the eight before: {before:.1%}\n")
        print(f"{'ninth':6}{'way':36}{'WER':>8}{'of the eight':>14}{'seconds':>9}")
        found: dict[str, list[tuple[float, float]]] = {}
        for language in options.languages or NINTH:
            for way, settings in WAYS.items():
                if options.ways and not any(way.startswith(each) for each in options.ways):
                    continue
                seeds = range(1, options.seeds + 1)
                scores = [tuned(home, base, language, way, settings, seed, old) for seed in seeds]
                new, forgotten, seconds = (statistics.fmean(each) for each in zip(*scores, strict=True))
                found.setdefault(way, []).append((new, forgotten))
                known = "–" if settings is None else f"{forgotten:.1%}"
                print(f"{language:6}{way:36}{new:>8.1%}{known:>14}{seconds:>9.0f}", flush=True)
        print("\nmean of the languages")
        for way, means in found.items():
            new, forgotten = (statistics.fmean(each) for each in zip(*means, strict=True))
            print(f"{'':6}{way:36}{new:>8.1%}{'–' if WAYS[way] is None else f'{forgotten:.1%}':>14}")


def gone_on(home: Path, language: str, seeds: int) -> None:
    """WER of a language on its test words, before and after training with a few of its own words again."""
    train, valid, test = (written(home / f"{part}.tsv", rows(language, part)) for part in ("train", "valid", "test"))
    few = written(home / "few.tsv", rows(language, "train")[:FEW])
    print(f"{language:45}{'symbols':>8}{'WER':>8}   on {len(rows(language, 'test'))} test words, {seeds} seeds")
    for way, settings in (("all words", None), *WAYS.items()):
        if way != "all words" and (settings is None or not way.startswith("vocabulary")):
            continue
        found = list[tuple[int, float]]()
        for seed in range(1, seeds + 1):
            base, run = home / f"{language}.{seed}", home / f"{language}.{seed}.{way.replace(' ', '_')}"
            if settings is None:
                given: dict[str, object] = {**SETTINGS, **LONG, "training.seed": seed}
                run = base
            else:
                given = {**SETTINGS, **SHORT, "training.seed": seed, **settings}
            if not (run / "summary.json").exists():
                data, start = (few, base) if settings is not None else (train, None)
                recurra.train("seq2seq", train=data, valid=valid, out=run, settings=given, start_from=start)
            task: Any = recurra.load(run, device="cpu").task
            symbols = len(task.texts.target.vocabulary)
            found.append((symbols, wer(run, test)))
        errors = [error for _, error in found]
        each = ", ".join(f"{error:.1%}" for error in errors)
        print(f"{way:45}{found[0][0]:8}{statistics.fmean(errors):8.1%}   {each}", flush=True)


def tuned(
    home: Path, base: Path, language: str, way: str, settings: dict[str, object] | None, seed: int, old: str
) -> tuple[float, float, float]:
    """WER of the ninth language and of the eight, and the seconds of training, by one of the ways."""
    train = written(home / f"{language}.{seed}.tsv", some(rows(language, "train"), WORDS, seed))
    valid = written(home / f"{language}.{seed}.valid.tsv", some(rows(language, "valid"), VALID, seed))
    test = written(home / f"{language}.test.tsv", rows(language, "test"))
    run = home / f"{language}.{seed}.{way.replace(' ', '_')}"
    if not (run / "summary.json").exists():
        given = {**SETTINGS, **SHORT, "training.seed": seed, **(settings or {})}
        start = None if settings is None else base
        recurra.train("seq2seq", train=train, valid=valid, out=run, settings=given, start_from=start)
    return wer(run, test), wer(run, old) if settings is not None else 1.0, seconds_of(run)


def seconds_of(run: Path) -> float:
    return float(json.loads((run / "summary.json").read_text("utf-8"))["seconds"])


def wer(run: Path, file: str) -> float:
    return recurra.load(run, device="cpu").evaluate(file).values["word_error_rate"]


if __name__ == "__main__":
    main()
