"""Tokens, sentences, words and tags from raw text on Universal Dependencies, beside UDPipe 1.

    python benchmarks/raw_text.py fr                        # train a run on Sequoia and score it from raw text
    python benchmarks/raw_text.py fr --run runs/fr          # score a run that is there
    python benchmarks/raw_text.py fr --udpipe fr.udpipe     # beside a tokenizer of UDPipe 1
    python benchmarks/raw_text.py fr --train-udpipe fr.udpipe

Data are read from $RECURRA_DATA (../shared/data). The raw text of a treebank is that of its sentences, without a blank
where it says SpaceAfter=No, and with an empty line before each # newpar and # newdoc. Both sides cut the same text and
are scored by the same code, `recurra.metrics.conllu_alignment`. UDPipe (pip install ufal.udpipe) trains with its
defaults on the same files. Speeds are per second of one core: those of recurra include tags, those of UDPipe do not.
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

import recurra
from recurra.config import TaggingData
from recurra.reading.sentences import Sentence, sentences
from recurra.runs import begin, setup
from recurra.scoring.raw_parts import as_written, parted
from recurra.scoring.raw_scores import raw_scores
from recurra.text.written import written_as
from recurra.training.progress import progress
from recurra.training.trained import Trained, load

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data"))

FILES = {
    "en": "ud_english_ewt/en_ewt-ud-{}.conllu.gz",
    "tr": "ud_turkish_imst/tr_imst-ud-{}.conllu.gz",
    "fr": "ud_french_sequoia/fr_sequoia-ud-{}.conllu.gz",
}

SHOWN = ("tokens_f1", "sentences_f1", "words_f1", "upos_f1")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("treebank", choices=FILES)
    arguments.add_argument("--run", help="a run that is there; without it, one is trained")
    arguments.add_argument("--out", help="keep the run that is trained in this folder")
    arguments.add_argument("--set", action="append", default=[], help="another setting of training")
    arguments.add_argument("--udpipe", help="a model of UDPipe 1 to compare with")
    arguments.add_argument("--train-udpipe", metavar="FILE", help="train a tokenizer of UDPipe 1 into a new file")
    options = arguments.parse_args()
    if options.train_udpipe is not None:
        train_udpipe(options.treebank, Path(options.train_udpipe))
    print(f"recurra {recurra.__version__}, torch {torch.__version__}, Python {platform.python_version()}")
    print(f"$ python benchmarks/raw_text.py {' '.join(sys.argv[1:])}")
    with tempfile.TemporaryDirectory() as private:
        run = load(options.run) if options.run else trained(options.treebank, Path(options.out or private), options.set)
        print(run.task.described())
        print(f"{'':10}{'part':6}" + "".join(f"{name:>14}" for name in SHOWN) + f"{'words/s':>10}{'characters/s':>14}")
        peer = options.udpipe or options.train_udpipe
        for part in ("dev", "test"):
            gold = list(read(options.treebank, part))
            show("recurra", part, gold, *cut_by_run(run, gold))
            if peer is not None:
                show("UDPipe 1", part, gold, *cut_by_udpipe(Path(peer), gold))


def trained(name: str, folder: Path, changes: Sequence[str]) -> Trained:
    given = {"train": str(path(name, "train")), "valid": str(path(name, "dev"))}
    begin(setup("tagging", given=given, overrides=list(changes)), folder / name, progress(sys.stderr))
    return load(folder / name)


def path(name: str, part: str) -> Path:
    return DATA / FILES[name].format(part)


def read(name: str, part: str) -> Iterator[Sentence]:
    file = str(path(name, part))
    return sentences([file], TaggingData(train=file, tokens="tokens", tags=["upos"]))


Found = tuple[list[Sentence], Sequence[Sequence[Sequence[str]]], float]
"""Sentences, their columns of tags, and the seconds that they took."""


def cut_by_run(run: Trained, gold: Sequence[Sentence]) -> Found:
    list(run.predict_raw(["To begin with."]))
    began = time.process_time()
    model: Any = run.model
    found = list(run.task.cut(model, [sentence.written.in_text for sentence in gold if sentence.written]))
    answers = run.answers(found)
    return found, [[answer.detail["upos"]] for answer in answers], time.process_time() - began


def cut_by_udpipe(file: Path, gold: Sequence[Sentence]) -> Found:
    import ufal.udpipe  # type: ignore[import-not-found]

    model = ufal.udpipe.Model.load(str(file))
    pipe = ufal.udpipe.Pipeline(model, "tokenize", "none", "none", "conllu")
    text = "".join(sentence.written.in_text for sentence in gold if sentence.written)
    began = time.process_time()
    conllu = pipe.process(text)
    seconds = time.process_time() - began
    found, tags, place = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "found.conllu").write_text(conllu, "utf-8")
        file_name = str(Path(folder) / "found.conllu")
        for each in sentences([file_name], TaggingData(train=file_name, tokens="tokens", tags=["upos"])):
            assert each.written is not None
            forms, words = each.written.forms, [token.words for token in each.written.tokens]
            places = []
            for form in forms:
                place = text.index(form, place)
                places.append(place)
                place += len(form)
            own = written_as(forms, words, [" "] * len(forms), text=text[places[0] : place], opens=False)
            found.append(Sentence(each.tokens, None, (), None, None, 0, 0, own._replace(start=places[0])))
            tags.append([each.tags[0]])
    return found, tags, seconds


def show(who: str, part: str, gold: Sequence[Sentence], found: list[Sentence], tags: Any, seconds: float) -> None:
    lengths = [len(sentence.written.in_text) for sentence in gold if sentence.written]
    said = parted(lengths, found, tags, columns=1)
    counted = raw_scores([sentence.line for sentence in gold], as_written(gold), said, ["upos"])
    scores = counted.scores().values
    has_tags = any(tag != "_" for sentence in tags for tag in sentence[0])
    cells = "".join(f"{100 * scores[name]:14.2f}" if has_tags or name != "upos_f1" else f"{'':14}" for name in SHOWN)
    words = sum(len(sentence) for sentence in found)
    print(f"{who:10}{part:6}{cells}{words / seconds:10,.0f}{sum(lengths) / seconds:14,.0f}")


def train_udpipe(name: str, out: Path) -> None:
    """A tokenizer of UDPipe 1 with its defaults."""
    import ufal.udpipe as udpipe

    def read_all(part: str) -> Any:
        reader, error = udpipe.InputFormat.newConlluInputFormat(), udpipe.ProcessingError()
        reader.setText(gzip.decompress(path(name, part).read_bytes()).decode("utf-8"))
        found, sentence = udpipe.Sentences(), udpipe.Sentence()
        while reader.nextSentence(sentence, error):
            found.append(sentence)
            sentence = udpipe.Sentence()
        if error.occurred():
            raise SystemExit(error.message)
        return found

    error, none = udpipe.ProcessingError(), udpipe.Trainer.NONE
    began = time.monotonic()
    model = udpipe.Trainer.train("morphodita_parsito", read_all("train"), read_all("dev"), "", none, none, error)
    if error.occurred():
        raise SystemExit(error.message)
    out.write_bytes(model)
    print(f"UDPipe 1 trained its tokenizer in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
