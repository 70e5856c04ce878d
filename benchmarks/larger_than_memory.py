"""Training on a file that need not fit into memory: what the process holds while it reads, trains, and starts again.

    python benchmarks/larger_than_memory.py [--gigabytes 1] [--minutes 3]

Writes a table of tagged sentences (200,000 words by Zipf's law) to a temporary folder and trains a small tagger on it
in a process of its own, whose resident memory is read every second: all of it (RSS), what it allocated itself
(anonymous) and pages of files. It is flat if, after a third of the training, it stays within 5 % of what it is then.
Needs about five times the size of the file on the disk; exit code 1 where memory is not flat.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

WORDS = 200_000
TAGS = ("NOUN", "VERB", "ADJ", "ADV", "DET", "PRON", "ADP", "NUM", "CCONJ", "PUNCT", "AUX", "PROPN")
SETTINGS = [
    'data.columns=["tokens", "tags"]',
    *("model.embedding=16", "model.hidden=64", "model.characters.hidden=16", "model.characters.embedding=16"),
    *("model.dropout=0.2", "training.epochs=none", "training.validate=1000000", "training.device=cpu"),
]
POINTS = 30
ALLOWED = 0.05


class Sample(NamedTuple):
    """The memory of a process at one moment, in MB."""

    seconds: float
    rss: float
    anonymous: float
    file: float


def spelt(rank: int) -> str:
    """A word of two letters for the most frequent, of six for the rarest."""
    word = ""
    while not word or rank:
        rank, digit = divmod(rank, 85)
        word = "bcdfghjklmnpqrstv"[digit % 17] + "aeiou"[digit // 17] + word
    return word


def write_sentences(path: Path, size: int) -> tuple[int, int]:
    """One sentence a line, its words, a tab, its tags. How many lines and words were written."""
    draw = np.random.default_rng(1)
    chance = 1 / (np.arange(WORDS) + 2.7)
    until = np.cumsum(chance / chance.sum())
    words = [spelt(rank) for rank in range(WORDS)]
    tag_of = draw.integers(len(TAGS), size=WORDS)
    lines = tokens = 0
    with open(path, "w", encoding="utf-8") as file:
        while file.tell() < size:
            lengths = draw.integers(4, 40, size=20_000)
            ranks = np.minimum(np.searchsorted(until, draw.random(lengths.sum())), WORDS - 1)
            tags = tag_of[ranks]
            said = [words[rank] for rank in ranks.tolist()]
            meant = [TAGS[tag] for tag in tags.tolist()]
            end = 0
            block = []
            for length in lengths.tolist():
                start, end = end, end + length
                block.append(f"{' '.join(said[start:end])}\t{' '.join(meant[start:end])}\n")
            file.write("".join(block))
            lines, tokens = lines + len(lengths), tokens + end
    return lines, tokens


def started(folder: Path, run: str, *settings: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "recurra", "train", "tagging", "--train", "train.tsv", "--out", run]
    command += [part for setting in (*SETTINGS, *settings) for part in ("--set", setting)]
    environment = {**os.environ, "RECURRA_CACHE": str(folder / "cache")}
    return subprocess.Popen([*command, "--quiet"], cwd=folder, env=environment, stdout=subprocess.DEVNULL)


def memory(process: subprocess.Popen[bytes], began: float) -> Sample | None:
    """None once the process has ended."""
    try:
        with open(f"/proc/{process.pid}/status") as file:
            fields = dict(line.split(":", 1) for line in file)
        rss, anonymous, mapped = (int(fields[name].split()[0]) / 1000 for name in ("VmRSS", "RssAnon", "RssFile"))
    except (OSError, KeyError, IndexError):
        return None
    return Sample(time.monotonic() - began, rss, anonymous, mapped)


def watched(process: subprocess.Popen[bytes], log: Path) -> tuple[list[Sample], list[Sample]]:
    """Memory, once a second, before the first step, and from there to the last."""
    began = time.monotonic()
    before: list[Sample] = []
    after: list[Sample] = []
    while process.poll() is None:
        sample = memory(process, began)
        written = log.read_text("utf-8") if log.exists() else ""
        if sample is not None and '"event"' not in written:  # the last line says why it is over
            (after if written else before).append(sample)
        time.sleep(1)
    if process.returncode:
        sys.exit(f"the training ended with code {process.returncode}")
    return before, after


def show(title: str, samples: list[Sample]) -> None:
    print(f"\n{title}\n{'seconds':>9}{'RSS, MB':>10}{'anonymous':>11}{'files':>8}")
    chosen = np.unique(np.linspace(0, len(samples) - 1, POINTS).round().astype(int))
    for number in chosen.tolist():
        sample = samples[number]
        print(f"{sample.seconds:9.0f}{sample.rss:10.0f}{sample.anonymous:11.0f}{sample.file:8.0f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of the file (1)")
    parser.add_argument("--minutes", type=float, default=3.0, help="of training (3)")
    options = parser.parse_args()
    size = int(options.gigabytes * 1e9)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if shutil.disk_usage(folder).free < 5 * size:
            sys.exit(f"{folder} has less than {5 * size / 1e9:.1f} GB free: set TMPDIR to a larger disk")
        lines, tokens = write_sentences(folder / "train.tsv", size)
        print(f"{size / 1e9:g} GB: {lines:,} sentences, {tokens:,} words", flush=True)
        process = started(folder, "first", f"training.minutes={options.minutes}")
        preparing, training = watched(process, folder / "first" / "metrics.jsonl")
        show("reading, counting and encoding", preparing)
        show("training", training)
        kept = sum(path.stat().st_size for path in (folder / "cache").rglob("*") if path.is_file())
        print(f"\nencoded examples on the disk: {kept / 1e9:.2f} GB")
        began = time.monotonic()
        process = started(folder, "second", "training.steps=1")
        log = folder / "second" / "metrics.jsonl"
        while process.poll() is None and not (log.exists() and log.stat().st_size):
            time.sleep(0.01)
        print(f"a second run makes its first step after {time.monotonic() - began:.1f} s")
        process.wait()
    rest = training[len(training) // 3 :]
    if not rest:
        sys.exit("the training was too short to say anything")
    low, high = (edge(sample.rss for sample in rest) / rest[0].rss - 1 for edge in (min, max))
    is_flat = max(-low, high) <= ALLOWED
    print(f"RSS after a third of the training: {rest[0].rss:.0f} MB, then {low:+.1%} to {high:+.1%}", end="")
    print(": flat" if is_flat else ": NOT FLAT")
    return 0 if is_flat else 1


if __name__ == "__main__":
    sys.exit(main())
