"""UDPipe 1 by its Python package, for benchmarks/universal_dependencies.py: run by an interpreter that has ufal.udpipe.

    python -m venv udpipe && udpipe/bin/pip install ufal.udpipe==1.4.0.1
    udpipe/bin/python benchmarks/universal_dependencies_udpipe.py train train.conllu dev.conllu TAGGER tagger
    udpipe/bin/python benchmarks/universal_dependencies_udpipe.py train train.conllu dev.conllu TOKENIZER tokenizer \\
        epochs=60
    udpipe/bin/python benchmarks/universal_dependencies_udpipe.py tag TAGGER test.conllu OUT.conllu
    udpipe/bin/python benchmarks/universal_dependencies_udpipe.py whole TOKENIZER TAGGER text.txt OUT.conllu
    udpipe/bin/python benchmarks/universal_dependencies_udpipe.py score MODEL gold.conllu

`train` learns a tagger and lemmatiser, or a tokeniser, with UDPipe's own defaults but for options such as epochs=60; no
parser. `tag` tags gold words, from CoNLL-U to CoNLL-U, and `whole` finds tokens and sentences in a text first; both
print one JSON object with the words and the seconds of a pass after a warm-up, reading and writing of files not
counted. `score` prints what UDPipe's Evaluator says about its own answers, from gold words.
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


def train(udpipe: Any, train_file: str, dev_file: str, out: str, what: str, options: str = "") -> None:
    error = udpipe.ProcessingError()
    model = udpipe.Trainer.train(
        "morphodita_parsito",
        collected(udpipe, train_file),
        collected(udpipe, dev_file),
        options if what == "tokenizer" else udpipe.Trainer.NONE,
        options if what == "tagger" else udpipe.Trainer.NONE,
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
    model, text = loaded(udpipe, path), Path(file).read_text("utf-8")

    def read() -> Any:
        found = udpipe.InputFormat.newConlluInputFormat()
        found.setText(text)
        return found

    timed(udpipe, read, model, out)


def whole(udpipe: Any, tokenizer: str, tagger: str, file: str, out: str) -> None:
    cutter, model, text = loaded(udpipe, tokenizer), loaded(udpipe, tagger), Path(file).read_text("utf-8")

    def read() -> Any:
        found = cutter.newTokenizer(udpipe.Model.DEFAULT)
        found.setText(text)
        return found

    timed(udpipe, read, model, out)


def timed(udpipe: Any, read: Any, model: Any, out: str) -> None:
    """Tag what a reader gives, twice, and say how long the second pass took."""
    writer = udpipe.OutputFormat.newConlluOutputFormat()
    for _ in range(2):
        began, began_cpu = time.perf_counter(), time.process_time()
        reader, error, sentence, words, found = read(), udpipe.ProcessingError(), udpipe.Sentence(), 0, []
        while reader.nextSentence(sentence, error):
            model.tag(sentence, udpipe.Model.DEFAULT)
            words += len(sentence.words) - 1
            found.append(writer.writeSentence(sentence))
        conllu = "".join(found)
        seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    Path(out).write_text(conllu, "utf-8")
    print(json.dumps({"words": words, "seconds": seconds, "cpu_seconds": cpu}))


def score(udpipe: Any, path: str, file: str) -> None:
    model, usual = loaded(udpipe, path), udpipe.Evaluator.DEFAULT  # the evaluator does not keep the model alive
    evaluator = udpipe.Evaluator(model, udpipe.Evaluator.NONE, usual, udpipe.Evaluator.NONE)
    print(evaluator.evaluate(Path(file).read_text("utf-8"), udpipe.ProcessingError()))


def main() -> None:
    udpipe, commands = (
        importlib.import_module("ufal.udpipe"),
        {"train": train, "tag": tag, "whole": whole, "score": score},
    )
    command: Any = commands[sys.argv[1]]
    command(udpipe, *sys.argv[2:])


if __name__ == "__main__":
    main()
