"""Tags, features and lemmas of Universal Dependencies from gold words, beside UDPipe 1 trained on the same files.

    python -m venv udpipe && udpipe/bin/pip install ufal.udpipe==1.4.0.1
    python benchmarks/universal_dependencies.py --udpipe udpipe/bin/python
    python benchmarks/universal_dependencies.py ud_turkish_imst --out runs/ud --set training.epochs=4    # a first look

One network learns the columns UPOS, XPOS (where the treebank has it), FEATS and LEMMA; lemmas by edit rules. UDPipe
trains a tagger and lemmatiser with its own defaults, no parser; without --udpipe it is left out, which is said. Scores
are F1 as CoNLL 2018 counts them (`recurra score`), on the test file. Words/s are words per second of CPU time on one
thread, the better of three passes over the test file, after a warm-up: of recurra from the file to CoNLL-U text, of
UDPipe its tagging alone, without reading and writing. Data are read from $RECURRA_DATA (../shared/data).
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
from functools import partial
from pathlib import Path

import torch

import recurra
from recurra.data.checking.treebank import faults
from recurra.data.conllu_file import conllu_sentences
from recurra.reports.treebank_scoring import score_treebanks
from recurra.runs import begin, setup, summary_of
from recurra.training.progress import progress

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data"))
TREEBANKS = {"ud_turkish_imst": "tr_imst", "ud_french_sequoia": "fr_sequoia", "ud_english_ewt": "en_ewt"}
SHOWN = ("UPOS", "XPOS", "UFeats", "AllTags", "Lemmas")
PEER = Path(__file__).with_name("universal_dependencies_udpipe.py")
MODEL = ["model.hidden=128", "model.characters.hidden=96", "model.dropout=0.3"]


def unpacked(treebank: str, part: str, folder: Path) -> Path:
    """A file of a treebank, as UDPipe reads it."""
    target = folder / f"{treebank}-{part}.conllu"
    if not target.exists():
        with gzip.open(DATA / treebank / f"{TREEBANKS[treebank]}-ud-{part}.conllu.gz") as packed:
            target.write_bytes(packed.read())
    return target


def columns_of(file: Path) -> list[str]:
    """The columns of a treebank that say something."""
    has_xpos = any(cells[4] != "_" for sentence in conllu_sentences(file) for _, cells in sentence.words())
    return ["upos", *(["xpos"] if has_xpos else []), "feats", "lemma"]


def ours(treebank: str, files: dict[str, Path], folder: Path, settings: list[str]) -> tuple[Path, float, float]:
    """The answers to the test file, words per second of CPU time, and the seconds of training."""
    run, out = folder / f"{treebank}.run", folder / f"{treebank}.recurra.conllu"
    if not (run / "summary.json").exists():
        given = {"train": str(files["train"]), "valid": str(files["dev"])}
        tags = f"data.tags={json.dumps(columns_of(files['train']))}"
        begin(setup("tagging", given=given, overrides=[*MODEL, tags, *settings]), run, progress(sys.stderr))
    torch.set_num_threads(1)
    model = recurra.load(run)
    words = sum(1 for sentence in conllu_sentences(files["test"]) for _ in sentence.words())
    taken = []
    for _ in range(4):  # the first is the warm-up
        began = time.process_time()
        text = "".join(model.task.printed_file(files["test"], model.predict_file(files["test"], ()), "conllu"))
        taken.append(time.process_time() - began)
    out.write_text(text, "utf-8")
    wrong = list(faults(out))
    if wrong:
        print(f"{out}: {len(wrong)} faults, the first: {wrong[0]}")
    return out, words / min(taken[1:]), summary_of(run)["seconds"]


def udpipe(python: str, treebank: str, files: dict[str, Path], folder: Path) -> tuple[Path, float, float]:
    """The same of UDPipe."""
    model, out = folder / f"{treebank}.udpipe", folder / f"{treebank}.udpipe.conllu"
    taken = folder / f"{treebank}.udpipe.seconds"
    if not model.exists():
        began = time.monotonic()
        command = [python, str(PEER), "train", str(files["train"]), str(files["dev"]), str(model)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        taken.write_text(str(time.monotonic() - began))
    told = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for command in [[python, str(PEER), "tag", str(model), str(files["test"]), str(out)]] * 4
    ]
    seconds = float(taken.read_text()) if taken.exists() else float("nan")
    return out, max(each["words"] / each["cpu_seconds"] for each in told[1:]), seconds


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("treebanks", nargs="*", help=f"which of {', '.join(TREEBANKS)} (all)")
    arguments.add_argument("--udpipe", metavar="PYTHON", help="an interpreter that has ufal.udpipe")
    arguments.add_argument("--out", help="keep the runs, models and answers in this folder")
    arguments.add_argument("--set", action="append", default=[], help="another setting of recurra")
    options = arguments.parse_args()
    print(f"recurra {recurra.__version__}, torch {torch.__version__}: {' '.join(['python', *sys.argv])}")
    if options.udpipe is None or shutil.which(options.udpipe) is None:
        print("UDPipe is left out: --udpipe names no interpreter. See the top of this file for how to install it.")
    print(f"{'treebank':20}{'system':10}{''.join(f'{name:>9}' for name in SHOWN)}{'words/s':>10}{'training s':>12}")
    with tempfile.TemporaryDirectory() as private:
        folder = Path(options.out or private)
        folder.mkdir(parents=True, exist_ok=True)
        for treebank in options.treebanks or TREEBANKS:
            files = {part: unpacked(treebank, part, folder) for part in ("train", "dev", "test")}
            rows = {"recurra": partial(ours, treebank, files, folder, options.set)}
            if options.udpipe is not None and shutil.which(options.udpipe) is not None:
                rows["udpipe"] = partial(udpipe, options.udpipe, treebank, files, folder)
            for system, run in rows.items():
                answers, speed, seconds = run()
                found = score_treebanks(files["test"], answers)
                scores = "".join(f"{100 * found[name].f1:9.2f}" for name in SHOWN)
                print(f"{treebank:20}{system:10}{scores}{speed:10,.0f}{seconds:12,.0f}", flush=True)


if __name__ == "__main__":
    main()
