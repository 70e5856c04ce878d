"""UDPipe 1 by its Python package, for benchmarks/universal_dependencies.py: run by an interpreter that has ufal.udpipe.

    python -m venv udpipe && udpipe/bin/pip install ufal.udpipe==1.4.0.1
    udpipe/bin/python benchmarks/universal_dependencies_udpipe.py train train.conllu dev.conllu MODEL [tokenizer]
    udpipe/bin/python benchmarks/universal_dependencies_udpipe.py tag MODEL test.conllu OUT.conllu
    udpipe/bin/python benchmarks/universal_dependencies_udpipe.py score MODEL gold.conllu

`train` learns a tagger and lemmatiser with UDPipe's own defaults, no parser, and a tokeniser where asked. `tag` tags
gold words and prints one JSON object with the words and the seconds, reading and writing of files not counted. `score`
prints what UDPipe's Evaluator says about its own answers, from gold words.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any


def sentences(udpipe: Any, file: str) -> list[Any]:
    """The sentences of a CoNLL-U file."""
    reader = udpipe.InputFormat.newConlluInputFormat()
    reader.setText(Path(file).read_text("utf-8"))
    found, error = [], udpipe.ProcessingError()
    sentence = udpipe.Sentence()
    while reader.nextSentence(sentence, error):
        found.append(sentence)
        sentence = udpipe.Sentence()
    if error.occurred():
        raise SystemExit(error.message)
    return found


def collected(udpipe: Any, file: str) -> Any:
    """The same as UDPipe's own list, which gives out copies of what it holds."""
    found = udpipe.Sentences()
    for sentence in sentences(udpipe, file):
        found.append(sentence)
    return found


def train(udpipe: Any, train_file: str, dev_file: str, out: str, tokenizer: str = "") -> None:
    error = udpipe.ProcessingError()
    model = udpipe.Trainer.train(
        "morphodita_parsito",
        collected(udpipe, train_file),
        collected(udpipe, dev_file),
        udpipe.Trainer.DEFAULT if tokenizer else udpipe.Trainer.NONE,
        udpipe.Trainer.DEFAULT,
        udpipe.Trainer.NONE,
        error,
    )
    if error.occurred():
        raise SystemExit(error.message)
    # The package gives bytes as a text with surrogates.
    Path(out).write_bytes(model if isinstance(model, bytes) else model.encode("utf-8", "surrogateescape"))


def loaded(udpipe: Any, path: str) -> Any:
    model = udpipe.Model.load(path)
    if model is None:
        raise SystemExit(f"UDPipe cannot load {path}")
    return model


def tag(udpipe: Any, path: str, file: str, out: str) -> None:
    model, found = loaded(udpipe, path), sentences(udpipe, file)
    began, began_cpu = time.perf_counter(), time.process_time()
    for sentence in found:
        model.tag(sentence, udpipe.Model.DEFAULT)
    seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    words = sum(len(sentence.words) - 1 for sentence in found)
    writer = udpipe.OutputFormat.newConlluOutputFormat()
    Path(out).write_text("".join(writer.writeSentence(sentence) for sentence in found), "utf-8")
    print(json.dumps({"words": words, "seconds": seconds, "cpu_seconds": cpu}))


def score(udpipe: Any, path: str, file: str) -> None:
    model, usual = loaded(udpipe, path), udpipe.Evaluator.DEFAULT  # the evaluator does not keep the model alive
    evaluator = udpipe.Evaluator(model, udpipe.Evaluator.NONE, usual, udpipe.Evaluator.NONE)
    print(evaluator.evaluate(Path(file).read_text("utf-8"), udpipe.ProcessingError()))


def main() -> None:
    udpipe, commands = importlib.import_module("ufal.udpipe"), {"train": train, "tag": tag, "score": score}
    command: Any = commands[sys.argv[1]]
    command(udpipe, *sys.argv[2:])


if __name__ == "__main__":
    main()
