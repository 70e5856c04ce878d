"""Random settings of models of every task and kind, the data that they are made for, and what they are asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

CELLS = (
    *("lstm", "gru", "elman", "peephole_lstm", "coupled_lstm", "min_gru", "min_lstm", "ind_rnn", "slstm"),
    *("layer_norm_lstm", "orthogonal_elman"),
)
SCORES = ("additive", "bilinear", "dot", "scaled_dot", "projected_dot")
TERMS = ("coverage", "monotonic", "location")

STACK: dict[str, Any] = {
    "model.hidden": st.sampled_from([4, 6]),
    "model.cell": st.sampled_from(CELLS),
    "model.layers": st.integers(1, 2),
    "model.mix": st.sampled_from(["last", "last", "concat", "mean", "learned"]),
    "model.skip": st.sampled_from(["none", "none", "residual", "highway"]),
}
COMMON: dict[str, Any] = {**STACK, "model.embedding": st.just(4)}
TWO_WAYS: dict[str, Any] = {
    "model.bidirectional": st.booleans(),
    "model.direction": st.sampled_from(["forward", "forward", "backward"]),
    "model.merge": st.sampled_from(["concat", "concat", "sum", "mean"]),
}
SPELT: dict[str, Any] = {
    "model.characters.cell": st.sampled_from(["none", "lstm", "gru"]),
    "model.characters.embedding": st.just(3),
    "model.characters.hidden": st.just(3),
}
WITH_TERMS = st.builds(
    lambda name, terms: {"name": name, "terms": terms},
    st.sampled_from(SCORES),
    st.lists(st.sampled_from(TERMS), unique=True, max_size=2),
)
ATTENDING: dict[str, Any] = {
    "model.attention": st.one_of(st.sampled_from(SCORES), WITH_TERMS),
    "model.wiring": st.sampled_from(["outside", "between", "inside", "feeding", "conditional"]),
    "model.readout": st.sampled_from(["tanh", "maxout"]),
}
SEARCHED: dict[str, Any] = {
    "decoding.search": st.sampled_from(["beam", "beam", "greedy", "sampling"]),
    "decoding.width": st.integers(2, 4),
    "decoding.length_penalty": st.sampled_from([0.0, 1.0]),
    "decoding.min_length": st.integers(0, 3),
    "decoding.no_repeat": st.integers(0, 2),
    "decoding.max_length": st.just(6),
}
SYMBOLS: dict[str, Any] = {
    "data.source.tokens": st.just("symbols"),
    "data.target.tokens": st.just("symbols"),
}
ENCODED: dict[str, Any] = {
    "model.encoder.kind": st.sampled_from(["rnn", "rnn", "rnn", "cnn", "embeddings"]),
    "model.start": st.sampled_from(["last", "mean", "max", "zeros"]),
    "model.bridge": st.sampled_from(["auto", "map"]),
}
LAYERS: dict[str, Any] = {  # of a Transformer
    "model.hidden": st.sampled_from([4, 8]),
    "model.layers": st.integers(1, 2),
    "model.decoder.heads": st.sampled_from([1, 2]),
    "model.decoder.form": st.sampled_from(["pre_norm", "vaswani"]),
    "model.embedding": st.sampled_from([4, 8]),
}
WRITES: dict[str, Any] = {**COMMON, **TWO_WAYS, **ATTENDING, **SEARCHED, **SYMBOLS}


class Family(NamedTuple):
    """Models of one kind: what is drawn of them, and how many in `make test` and in `make slow-test`."""

    task: str
    data: str
    few: int
    many: int
    settings: Mapping[str, Any]


FAMILIES: dict[str, Family] = {
    "seq2seq": Family(
        *("seq2seq", "pairs", 5, 800),
        {
            **WRITES,
            **ENCODED,
            "model.attention": st.one_of(st.sampled_from([*SCORES, "none"]), WITH_TERMS),
            "model.conditioning": st.sampled_from([[], [], ["first"], ["every"], ["output"]]),
        },
    ),
    "tagging": Family(
        "tagging", "tags", 20, 400, {**COMMON, **TWO_WAYS, **SPELT, "model.head": st.sampled_from(["softmax", "crf"])}
    ),
    "classification": Family(
        *("classification", "labels", 22, 400),
        {**COMMON, **TWO_WAYS, **SPELT, "model.summary": st.sampled_from(["last", "ends", "mean", "max", "attention"])},
    ),
    "language_model": Family("language_model", "lines", 24, 400, {**COMMON, "model.tied": st.booleans()}),
    "a Transformer": Family(
        *("seq2seq", "pairs", 2, 100),
        {
            **SEARCHED,
            **SYMBOLS,
            **LAYERS,
            "model.decoder.kind": st.just("transformer"),
            "model.encoder.kind": st.sampled_from(["transformer", "rnn", "cnn"]),
            "model.encoder.heads": st.sampled_from([1, 2]),
            "model.encoder.form": st.sampled_from(["pre_norm", "vaswani"]),
            "model.bidirectional": st.booleans(),
        },
    ),
    "a Transformer that continues": Family(
        *("language_model", "lines", 3, 60),
        {**LAYERS, "model.decoder.kind": st.just("transformer"), "model.decoder.context": st.sampled_from([2, 5, 16])},
    ),
    "transcription": Family(
        *("seq2seq", "pairs", 1, 100),
        {
            **COMMON,
            **TWO_WAYS,
            **SYMBOLS,
            "model.decoder.kind": st.just("ctc"),
            "model.decoder.expand": st.integers(1, 3),
            "model.encoder.kind": st.sampled_from(["rnn", "rnn", "cnn", "pyramid"]),
            "decoding.search": st.sampled_from(["beam", "greedy", "path"]),
            "decoding.width": st.integers(2, 4),
            "decoding.best": st.integers(1, 2),
        },
    ),
    "copying": Family("seq2seq", "pairs", 1, 100, {**WRITES, **ENCODED, "model.copy": st.just(True)}),
    "pointing": Family(
        *("seq2seq", "places", 1, 100),
        {
            **{name: each for name, each in WRITES.items() if name not in ("data.target.tokens", "model.readout")},
            **ENCODED,
            "model.pointer": st.sampled_from(SCORES),
            "model.attention": st.sampled_from([*SCORES, "none"]),
        },
    ),
    "a pyramid": Family(
        *("seq2seq", "pairs", 2, 100),
        {
            **WRITES,
            "model.encoder.kind": st.just("pyramid"),
            "model.encoder.layers": st.integers(2, 3),
            "model.layers": st.just(1),
        },
    ),
    "colours": Family(
        *("vec2seq", "colours", 4, 100),
        {
            **COMMON,
            **SEARCHED,
            "data.target.tokens": st.just("characters"),
            "model.conditioning": st.sampled_from(
                [["initial"], ["first"], ["initial", "every"], ["output"], ["every"]]
            ),
            "model.readout": st.just("tanh"),
        },
    ),
    "places": Family(
        *("vec2seq", "grids", 2, 100),
        {
            **COMMON,
            **ATTENDING,
            **SEARCHED,
            "data.target.tokens": st.just("characters"),
            "model.conditioning": st.sampled_from([["initial"], ["first"], ["initial", "every"]]),
        },
    ),
    "answers": Family(
        *("question_answering", "stories", 6, 100),
        {
            "model.hidden": st.sampled_from([4, 6]),
            "model.hops": st.integers(1, 3),
            "model.memories": st.integers(5, 8),
            "model.sentence": st.sampled_from(["position", "place", "bag"]),
            "model.temporal": st.booleans(),
            "model.tying": st.sampled_from(["adjacent", "layerwise"]),
            "model.vacant": st.booleans(),
            "model.spread": st.just(0.5),
        },
    ),
    "forecasting": Family(
        *("forecasting", "table", 1, 100),
        {
            **STACK,
            "model.ahead": st.sampled_from(["direct", "attention", "recursive"]),
            "model.output": st.sampled_from(["gaussian", "quantiles", "squared_error", "student_t", "mixture"]),
            "model.embedding": st.sampled_from([0, 4]),
            "data.future": st.sampled_from([[], ["price"]]),
            "data.static": st.sampled_from([[], ["size"], ["size", "town"]]),
            "data.season": st.just(4),
            "data.time": st.just("time"),
            "data.series": st.just("shop"),
            "data.values": st.just(["sold"]),
            "decoding.horizon": st.integers(1, 4),
        },
    ),
    "counts": Family(
        *("forecasting", "counts", 1, 100),
        {
            **STACK,
            "model.ahead": st.sampled_from(["direct", "attention", "recursive"]),
            "model.output": st.sampled_from(["poisson", "negative_binomial"]),
            "model.embedding": st.just(0),
            "data.scaling": st.sampled_from(["columns", "series"]),
            "data.season": st.just(4),
            "data.time": st.just("time"),
            "data.series": st.just("shop"),
            "data.values": st.just(["sold"]),
            "decoding.horizon": st.integers(1, 4),
        },
    ),
    "frames to classes": Family(
        *("classification", "frames", 5, 100),
        {**STACK, **TWO_WAYS, "model.summary": st.sampled_from(["last", "mean", "max", "attention"])},
    ),
    "frames to text": Family(
        *("seq2seq", "spoken", 1, 100),
        {**{name: each for name, each in WRITES.items() if name != "data.source.tokens"}, **ENCODED},
    ),
}
"""Kinds of models by name."""

TEXTS = {
    "pairs.tsv": "".join(f"{text}\t{text[::-1]}\n" for text in ("a b c d", "b b a", "d", "c a d b a", "e a")),
    "places.tsv": "a b c d\t4 3 2 1\nb b a\t1 2\nd\t1\nc a d b a\t5 4 1\n",
    "tags.conll": "a\tX\nbe\tY\nc\tX\n\nc\tZ\na\tX\n\n",
    "labels.tsv": "text\tlabel\na be c\tyes\nc d\tno\na\tperhaps\n",
    "lines.txt": "a b c d a b\nc c b a\nd\n",
    "colours.tsv": "255 0 0\tred\n0 255 0\tmint\n9 9 9\tink\n180 60 10\trust\n",
}
ASKED: dict[str, Sequence[Any]] = {
    **dict.fromkeys(("pairs", "tags", "labels", "lines"), ("a", "c b a", "a b be d e a c", "unknown d")),
    "places": ("a", "c b a", "a b d c a c"),
    "colours": ("0 0 0", "255 120 3", "10 10 250"),
}


def series(steps: int, width: int, seed: int) -> list[list[float]]:
    found: list[list[float]] = np.random.default_rng(seed).normal(size=(steps, width)).round(3).tolist()
    return found


def story(*sentences: str) -> dict[str, Any]:
    return {"context": [*sentences], "question": "where is ann"}


STORIES = (
    story("ann went home", "bob went out"),
    story("ann went out"),
    story("bob is here", "ann went home", "bob went home", "ann went up", "bob left"),
)


def questions(data: str) -> list[Any]:
    """What models are asked, as the task takes it."""
    if data in ("frames", "spoken", "grids"):
        return [series(steps, 3, steps) for steps in (1, 4, 9)]
    return [*STORIES] if data == "stories" else [*ASKED[data]]


def written(folder: Path, data: str) -> Path:
    """The file of training data."""
    rows: list[Any] = []
    for number, answer in enumerate(("ab", "b", "ba", "cab")):
        each = series(3 + 2 * number, 3, number)
        rows.append({"frames": each, "label": answer[0], "target": answer})
    unwanted = {"frames": "target", "spoken": "label", "grids": "label"}
    if data in unwanted:
        rows = [{name: value for name, value in row.items() if name != unwanted[data]} for row in rows]
    elif data == "stories":
        rows = [{**each, "answer": answer} for each, answer in zip(STORIES, ("home", "out", "up"), strict=True)]
    elif data in ("table", "counts"):
        return table(folder / f"{data}.csv", whole=data == "counts")
    else:
        [name] = [name for name in TEXTS if name.split(".")[0] == data]
        (folder / name).write_text(TEXTS[name])
        return folder / name
    path = folder / f"{data}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table(path: Path, *, whole: bool = False) -> Path:
    """A table of two shops, one with many more sales where these are counts; of the last steps the price is known."""
    draw = np.random.default_rng(1)
    lines = ["shop,time,sold,price,size,town"]
    for shop, town, steps in (("a", "x", 40), ("b", "y", 33)):
        for t in range(steps):
            level = 20 + 5 * (t % 4) + draw.normal()
            own = f"{max(0, level * 100 if shop == 'b' else level - 20):.0f}" if whole else f"{level:.3f}"
            sold = "" if t >= steps - 4 else own
            lines.append(f"{shop},{t},{sold},{draw.integers(0, 3)},{steps},{town}")
    path.write_text("\n".join(lines) + "\n")
    return path
