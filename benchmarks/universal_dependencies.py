"""Tokens, sentences, tags, features and lemmas of Universal Dependencies, beside UDPipe 1 trained on the same files.

    python -m venv udpipe && udpipe/bin/pip install ufal.udpipe==1.4.0.1
    python benchmarks/universal_dependencies.py --udpipe udpipe/bin/python
    python benchmarks/universal_dependencies.py ud_turkish_imst --out runs/ud --set training.epochs=4    # a first look

One network learns the columns UPOS, XPOS (where the treebank has it), FEATS and LEMMA, the first three chosen as one,
lemmas by edit rules; and a splitter learns to find tokens and sentences. UDPipe trains a tokeniser, and a tagger and
lemmatiser, with its own defaults, no parser; without --udpipe it is left out, which is said. Both are scored from gold
words and from raw text: that of the test file's sentences, without a blank where it says SpaceAfter=No, and with an
empty line before each # newpar and # newdoc. Scores are F1 as CoNLL 2018 counts them (`recurra score`).

Words/s are words per second of CPU time on one thread, the best of --rounds passes of both in turn over the test file,
each after a warm-up: from the text of the file in memory to the text of CoNLL-U. Both can run once on each core. With
--wall, words per second of wall time of the whole pipeline too: of recurra with so many threads, and of so many
processes of each system, each with a part of the text. Runs and models that lie in --out, as TREEBANK.run,
TREEBANK.tokenizer and TREEBANK.tagger, are used as they are. Data are read from $RECURRA_DATA (../shared/data).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

import recurra
from recurra.config import TaggingData
from recurra.data.checking.treebank import faults
from recurra.data.conllu_file import conllu_sentences
from recurra.reading.sentences import sentences
from recurra.reports.treebank_scoring import score_treebanks
from recurra.runs import begin, setup
from recurra.training.progress import progress
from recurra.training.trained import Trained

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data"))
TREEBANKS = {"ud_turkish_imst": "tr_imst", "ud_french_sequoia": "fr_sequoia", "ud_english_ewt": "en_ewt"}
SHOWN = ("Tokens", "Sentences", "Words", "UPOS", "XPOS", "UFeats", "AllTags", "Lemmas")
PEER = Path(__file__).with_name("universal_dependencies_udpipe.py")
MODEL = ["model.hidden=128", "model.characters.hidden=96", "model.dropout=0.3", "training.epochs=30"]


class Side(NamedTuple):
    """One system from one kind of input."""

    system: str
    given: str  # gold words or raw text
    timed: Callable[[], float]  # words per second of CPU time, of one more pass
    answers: Path


def unpacked(treebank: str, part: str, folder: Path) -> Path:
    """A file of a treebank, as UDPipe reads it."""
    target = folder / f"{treebank}-{part}.conllu"
    if not target.exists():
        with gzip.open(DATA / treebank / f"{TREEBANKS[treebank]}-ud-{part}.conllu.gz") as packed:
            target.write_bytes(packed.read())
    return target


def text_of(conllu: Path) -> Path:
    """A file with the raw text of a treebank."""
    target, name = conllu.with_suffix(".txt"), str(conllu)
    read = sentences([name], TaggingData(train=name, tokens="tokens", tags=["upos"]))
    target.write_text("".join(each.written.in_text for each in read if each.written is not None), "utf-8")
    return target


def columns_of(file: Path) -> list[str]:
    """The columns of a treebank that say something."""
    has_xpos = any(cells[4] != "_" for sentence in conllu_sentences(file) for _, cells in sentence.words())
    return ["upos", *(["xpos"] if has_xpos else []), "feats", "lemma"]


def words_in(conllu: str) -> int:
    return sum(1 for line in conllu.split("\n") if line.partition("\t")[0].isdecimal())


def ours(treebank: str, files: dict[str, Path], text: Path, folder: Path, settings: list[str]) -> list[Side]:
    run = folder / f"{treebank}.run"
    if not (run / "summary.json").exists():
        given = {"train": str(files["train"]), "valid": str(files["dev"])}
        columns = columns_of(files["train"])
        tags = [f"data.tags={json.dumps(columns)}", f"model.together={json.dumps(columns[:-1])}"]
        begin(setup("tagging", given=given, overrides=[*MODEL, *tags, *settings]), run, progress(sys.stderr))
    model, gold, raw = recurra.load(run, device="cpu"), files["test"], text.read_text("utf-8")
    print(f"{treebank}: {model.task.described()}")

    def passing(written: Callable[[], str], out: Path) -> Callable[[], float]:
        written()  # the warm-up

        def once() -> float:
            began = time.process_time()
            conllu = written()
            seconds = time.process_time() - began
            out.write_text(conllu, "utf-8")
            return words_in(conllu) / seconds

        return once

    from_gold, from_raw = (folder / f"{treebank}.recurra.{kind}.conllu" for kind in ("gold", "raw"))
    tagged = passing(lambda: "".join(model.task.printed_file(gold, model.predict_file(gold, ()), "conllu")), from_gold)
    whole = passing(lambda: "".join(model.printed_raw([raw], "conllu")), from_raw)
    return [Side("recurra", "gold words", tagged, from_gold), Side("recurra", "raw text", whole, from_raw)]


def udpipe(python: str, treebank: str, files: dict[str, Path], text: Path, folder: Path) -> list[Side]:
    models = {kind: folder / f"{treebank}.{kind}" for kind in ("tokenizer", "tagger")}
    for kind, model in models.items():
        if not model.exists():
            command = [python, str(PEER), "train", str(files["train"]), str(files["dev"]), str(model), kind]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)

    def passing(*arguments: str) -> Callable[[], float]:
        def once() -> float:
            done = subprocess.run([python, str(PEER), *arguments], check=True, capture_output=True, text=True)
            told = json.loads(done.stdout)
            return float(told["words"] / told["cpu_seconds"])

        return once

    from_gold, from_raw = (folder / f"{treebank}.udpipe.{kind}.conllu" for kind in ("gold", "raw"))
    tagger = str(models["tagger"])
    tagged = passing("tag", tagger, str(files["test"]), str(from_gold))
    whole = passing("whole", str(models["tokenizer"]), tagger, str(text), str(from_raw))
    return [Side("udpipe", "gold words", tagged, from_gold), Side("udpipe", "raw text", whole, from_raw)]


def shown(treebank: str, sides: list[Side], gold: Path, rounds: int) -> None:
    speeds = [[side.timed() for side in sides] for _ in range(rounds)]  # in turn: a busy machine is busy for both
    for number, side in sorted(enumerate(sides), key=lambda each: each[1].given):
        if side.system == "recurra" and (wrong := list(faults(side.answers))):
            print(f"{side.answers.name}: {len(wrong)} faults, the first: {wrong[0]}")
        found = score_treebanks(gold, side.answers)
        scores = "".join(f"{100 * found[name].f1:10.2f}" for name in SHOWN)
        fastest = max(each[number] for each in speeds)
        print(f"{treebank:19}{side.system:9}{side.given:11}{scores}{fastest:9,.0f}", flush=True)


def walls(treebank: str, text: Path, folder: Path, python: str | None, threads: int, rounds: int) -> None:
    """Words a second of wall time of the whole pipeline: one process with threads, and processes with parts."""
    model: Trained = recurra.load(folder / f"{treebank}.run", device="cpu")
    raw, by_threads = text.read_text("utf-8"), 0.0
    parts = [text.with_suffix(f".{number}.part") for number in range(threads)]
    lines = raw.split(". ")
    for number, part in enumerate(parts):
        share = lines[number * len(lines) // threads : (number + 1) * len(lines) // threads]
        part.write_text(". ".join(share) + (". " if number + 1 < threads else ""), "utf-8")
    own = [sys.executable, __file__, "--read", str(folder / f"{treebank}.run")]
    peer = [python or "", str(PEER), "whole", *(str(folder / f"{treebank}.{kind}") for kind in ("tokenizer", "tagger"))]
    by_processes = {"recurra": 0.0} | ({} if python is None else {"UDPipe": 0.0})
    for _ in range(rounds):
        torch.set_num_threads(threads)
        for is_warm in (False, True):
            began = time.perf_counter()
            conllu = "".join(model.printed_raw([raw], "conllu"))
            by_threads = max(by_threads, is_warm * words_in(conllu) / (time.perf_counter() - began))
        torch.set_num_threads(1)
        for system in by_processes:
            command = own if system == "recurra" else peer
            commands = [[*command, str(part), f"{part}.{system}.conllu"] for part in parts]
            running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
            told = [json.loads(each.communicate()[0].splitlines()[-1]) for each in running]
            rate = sum(each["words"] / each["seconds"] for each in told)
            by_processes[system] = max(by_processes[system], rate)
    said = ", ".join(f"{threads} processes of {system} {rate:,.0f}" for system, rate in by_processes.items())
    print(f"{treebank:19}words/s of wall time, {threads} cores: {threads} threads of recurra {by_threads:,.0f}, {said}")


def read_part(run: str, text: str, out: str) -> None:
    """Read a text twice, and say how long the second pass took: what UDPipe's side of `walls` does."""
    model, raw = recurra.load(run, device="cpu"), Path(text).read_text("utf-8")
    for _ in range(2):
        began = time.perf_counter()
        conllu = "".join(model.printed_raw([raw], "conllu"))
        seconds = time.perf_counter() - began
    Path(out).write_text(conllu, "utf-8")
    print(json.dumps({"words": words_in(conllu), "seconds": seconds}))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("treebanks", nargs="*", help=f"which of {', '.join(TREEBANKS)} (all)")
    arguments.add_argument("--udpipe", metavar="PYTHON", help="an interpreter that has ufal.udpipe")
    arguments.add_argument("--out", help="keep the runs, models and answers in this folder")
    arguments.add_argument("--rounds", type=int, default=3, help="passes of each system (3)")
    arguments.add_argument("--wall", type=int, default=0, metavar="THREADS", help="also measure wall time")
    arguments.add_argument("--set", action="append", default=[], help="another setting of recurra")
    arguments.add_argument("--read", nargs=3, metavar=("RUN", "TEXT", "OUT"), help=argparse.SUPPRESS)
    options = arguments.parse_args()
    torch.set_num_threads(1)
    if options.read:
        read_part(*options.read)
        return
    print(f"recurra {recurra.__version__}, torch {torch.__version__}: {' '.join(['python', *sys.argv])}")
    python = options.udpipe if options.udpipe is not None and shutil.which(options.udpipe) is not None else None
    if python is None:
        print("UDPipe is left out: --udpipe names no interpreter. See the top of this file for how to install it.")
    print(f"{'treebank':19}{'system':9}{'from':11}{''.join(f'{name:>10}' for name in SHOWN)}{'words/s':>9}")
    with tempfile.TemporaryDirectory() as private:
        folder = Path(options.out or private)
        folder.mkdir(parents=True, exist_ok=True)
        for treebank in options.treebanks or TREEBANKS:
            files = {part: unpacked(treebank, part, folder) for part in ("train", "dev", "test")}
            text = text_of(files["test"])
            sides = ours(treebank, files, text, folder, options.set)
            sides += [] if python is None else udpipe(python, treebank, files, text, folder)
            shown(treebank, sides, files["test"], options.rounds)
            if options.wall:
                walls(treebank, text, folder, python, options.wall, options.rounds)


if __name__ == "__main__":
    main()
