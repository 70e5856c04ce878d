"""Models whose steps grow, copy, point, join steps or align: their programs answer as the models do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from recurra.engines.c_library import compiler
from recurra.errors import ConfigError
from recurra.programs.inputs import Running
from recurra.programs.searching import Wanted, why_not_in_c
from recurra.runs import setup
from tests.exporting.agreeing import assert_agrees, built

PAIRS = "".join(f"{text}\t{text[::-1]}\n" for text in ("a b c d", "b b a", "d", "c a d b a", "e a"))
LINES = "a b c d a b\nc c b a\nd\n"
ASKED = ("a b c", "d", "e a z b e c a")

SMALL: Mapping[str, Any] = {"model.hidden": 8, "model.embedding": 8, "data.cache": False}
SYMBOLS: Mapping[str, Any] = {"data.source.tokens": "symbols", "data.target.tokens": "symbols"}
LONG: Mapping[str, Any] = {"decoding.min_length": 3, "decoding.max_length": 9}
READS_ALL: Mapping[str, Any] = {"model.encoder.kind": "transformer", "model.encoder.heads": 2}
WRITES: Mapping[str, Any] = {"model.decoder.kind": "transformer", "model.decoder.heads": 2}

MODELS: Mapping[str, Mapping[str, Any]] = {
    "a transformer": {**LONG, **READS_ALL, **WRITES},
    "a decoder with norms after its parts": {**LONG, **WRITES, "model.layers": 2, "model.decoder.form": "vaswani"},
    "copying": {**LONG, "model.copy": True},
    "pointing": {**LONG, "model.pointer": "additive"},
    "a pyramid": {**LONG, "model.encoder.kind": "pyramid", "model.layers": 3, "model.bidirectional": True},
    "a start from the mean": {**LONG, "model.start": "mean", "model.bidirectional": True, "model.layers": 2},
    "transcription": {"model.decoder.kind": "ctc", "decoding.width": 3, "decoding.best": 2},
    "its best path": {"model.decoder.kind": "ctc", "model.decoder.expand": 2, "decoding.search": "path"},
}
IN_C = ("pointing", "transcription")
"""Compiled in `make test`; `make slow-test` compiles all."""


def agree(path: Path, task: str, asked: Mapping[str, Any], *by: str) -> list[Running]:
    kind, model = built(path, task, {**SMALL, **asked}, 3, times=1.5)
    return assert_agrees(kind, model, list(kind.questions(None, list(ASKED))), by=by, folder=path.parent / "onnx")


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_writes_answers_alike_by_its_program(tmp_path: Path, name: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(PAIRS)
    by = ("numpy", "c", "onnx") if name in IN_C and compiler() is not None else ("numpy", "onnx")
    for running in agree(path, "seq2seq", {**SYMBOLS, **MODELS[name]}, *by):
        if running.name == "c":
            assert why_not_in_c(running, Wanted("beam", 1, ())) is None, "the step can be searched in C"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELS if name not in IN_C])
def test_a_model_that_writes_answers_alike_in_c(tmp_path: Path, name: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(PAIRS)
    agree(path, "seq2seq", {**SYMBOLS, **MODELS[name]}, "c")


@pytest.mark.parametrize(
    ("task", "asked", "said"),
    [
        ("seq2seq", {"model.decoder.kind": "ctc"}, "a model of CTC cannot be exported to a page yet"),
        ("seq2seq", WRITES, "a Transformer that writes cannot be exported to a page yet"),
        ("language_model", WRITES, "a Transformer that writes cannot be exported to a page yet"),
    ],
)
def test_a_page_refuses_what_it_cannot_search(tmp_path: Path, task: str, asked: Mapping[str, Any], said: str) -> None:
    path = tmp_path / ("pairs.tsv" if task == "seq2seq" else "lines.txt")
    path.write_text(PAIRS if task == "seq2seq" else LINES)
    this = setup(task, given={"train": [str(path)]}, overrides={**SMALL, **asked})
    with pytest.raises(ConfigError, match=said):
        this.kind.prepared(this.kind.resolved(this.settings)).offline()


def test_a_transformer_that_continues_texts_keeps_states_of_one_size(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text(LINES)
    asked = {**WRITES, "model.decoder.context": 4}
    running, *_ = agree(path, "language_model", asked, "numpy", "onnx")
    step = running.program.functions["step"]
    of_input = {each.name: each.value for each in step.inputs}
    values = step.values
    for name, operand in step.outputs:
        if name != "log_p":
            assert isinstance(operand, int)
            assert values[operand] == of_input[name]
