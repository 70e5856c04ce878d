"""CTC: symbols from frames, where nobody has said which frame belongs to which symbol (Graves et al. 2006).

A row of JSONL is {"frames": [[0.1, 0.7], …], "target": "a b"}. At each frame the network says a symbol or blank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from recurra import DataError, Padded, Recurrent, pad
from recurra.extend import (
    SERIES,
    START,
    AnswerKind,
    Asked,
    Counted,
    Data,
    Encoded,
    HeatMap,
    Judgement,
    Loss,
    Moment,
    Part,
    Prediction,
    Purpose,
    Row,
    Schema,
    Task,
    Training,
    Viewer,
    Vocabulary,
    edit_distance,
    matrix,
    ratio,
    rows_of,
    section,
    setting,
)

BEST_PATH = "The best path over the frames"


@dataclass(frozen=True)
class Model:
    cell: Part = setting("lstm", "any cell of `recurra cells`")
    hidden: int = setting(64, "its size in each direction")


@dataclass(frozen=True)
class CTCSettings:
    task: str = setting("tests.outside.ctc:CTC", "what kind of problem this is")
    data: Data = section(Data, "where the examples come from")
    model: Model = section(Model, "the network")
    training: Training = section(lambda: Training(epochs=20), "how the weights are found")


class Batch(NamedTuple):
    frames: Padded  # (B, T, d)
    target: Padded  # (B, L)


class BestPath(NamedTuple):
    """The best path over the frames of a row, and what it means."""

    numbers: list[int]  # (T,)
    logs: NDArray[np.float64]  # (T,), log-probabilities of its symbols

    @property
    def symbols(self) -> list[tuple[int, list[int]]]:
        """Each symbol that it means, with the frames at which it stands."""
        runs = groupby(range(len(self.numbers)), key=self.numbers.__getitem__)
        return [(number, list(frames)) for number, frames in runs if number != 0]


class Network(nn.Module):
    def __init__(self, model: Model, size: int, symbols: int) -> None:
        super().__init__()
        self.recurrent = Recurrent(model.cell, size, model.hidden, bidirectional=True)
        self.readout = nn.Linear(2 * model.hidden, symbols)

    def forward(self, frames: Padded) -> Tensor:
        """(B, T, symbols): log-probabilities."""
        features, _ = self.recurrent(frames)
        return self.readout(features.values).log_softmax(-1)


class CTC(Task[Row, Batch, BestPath]):
    Settings = CTCSettings
    name = "ctc"

    def __init__(self, settings: CTCSettings, symbols: Vocabulary, size: int) -> None:
        self.settings, self.symbols, self.size = settings, symbols, size

    # From files to arrays

    @classmethod
    def prepared(cls, settings: CTCSettings) -> Self:
        symbols, size = Counter[str](), 0
        for row in rows_of(settings.data.files("train"), settings.data):
            symbols.update(spelt(row))
            size = size or frames_of(row).shape[1]
        return cls(settings, Vocabulary.counted(symbols, specials=("<blank>",)), size)

    def save(self, folder: Path) -> None:
        self.symbols.save(folder / "vocabulary.symbols.json")
        (folder / "frames.txt").write_text(str(self.size))

    @classmethod
    def load(cls, settings: CTCSettings, folder: Path) -> Self:
        size = int((folder / "frames.txt").read_text())
        return cls(settings, Vocabulary.load(folder / "vocabulary.symbols.json"), size)

    def schema(self) -> Schema:
        return Schema("frames")

    def encode(self, example: Row) -> Encoded:
        frames = frames_of(example)
        if len(frames) and frames.shape[1] != self.size:
            raise DataError(f"line {example.line}: {frames.shape[1]} numbers a frame, but training has {self.size}.")
        target = [number for symbol in spelt(example) if (number := self.symbols.get(symbol, 0))]
        place = np.array([example.file, example.line])
        return {"frames": frames.reshape(-1, self.size), "target": np.array(target, np.int32), "place": place}

    def left_out(self, row: Encoded) -> str | None:
        target = row["target"].tolist()
        needed = len(target) + sum(one == other for one, other in pairwise(target))  # a blank between equals
        return f"{len(target)} symbols need {needed} frames" if needed > len(row["frames"]) else None

    # From arrays to answers

    def batch(self, rows: Sequence[Encoded]) -> Batch:
        return Batch(*(pad([torch.from_numpy(row[name]) for row in rows]) for name in ("frames", "target")))

    def build(self) -> Network:
        return Network(self.settings.model, self.size, len(self.symbols))

    def loss(self, model: nn.Module, batch: Batch, moment: Moment = START) -> Loss:
        spoken, (target, lengths) = model(batch.frames).transpose(0, 1), batch.target
        total = nn.functional.ctc_loss(spoken, target.long(), batch.frames.lengths, lengths, reduction="sum")
        return Loss(total, int(lengths.sum()))

    @torch.no_grad()
    def predict(self, model: nn.Module, batch: Batch, *, detail: bool = False) -> list[BestPath]:
        best = model(batch.frames).double().max(-1)
        rows = zip(best.indices.tolist(), best.values.cpu().numpy(), batch.frames.lengths.tolist(), strict=True)
        return [BestPath(numbers[:end], logs[:end]) for numbers, logs, end in rows]

    def written(self, output: BestPath) -> list[str]:
        return [self.symbols.tokens[number] for number, _ in output.symbols]

    def answer(self, example: Row, output: BestPath) -> Prediction:
        detail = {"path": [self.symbols.tokens[number] for number in output.numbers]}
        return Prediction("", " ".join(self.written(output)), float(output.logs.sum()), example.line, detail)

    def answer_kind(self) -> AnswerKind:
        return "written"

    def counted(self, examples: Sequence[Row], outputs: Sequence[BestPath]) -> Counted:
        gold, found = [spelt(example) for example in examples], [self.written(output) for output in outputs]
        errors = [edit_distance(right, said) for right, said in zip(gold, found, strict=True)]
        return Counted.of(
            [(example.file, example.line) for example in examples],
            {"errors": errors, "symbols": [len(right) for right in gold], "right": [error == 0 for error in errors]},
            {"symbol_error_rate": ratio("errors", "symbols"), "exact_match": ratio("right", "items")},
            first="symbol_error_rate",
            lengths=[len(right) for right in gold],
        )

    # Views, and what is said about it

    def viewers(self) -> dict[str, Viewer]:
        return {"alignment": Viewer(self.alignment, title=BEST_PATH), **super().viewers()}

    def alignment(self, asked: Asked) -> HeatMap:
        """At which frames the best path stands on each symbol, and how probable it is there."""
        [output] = self.predict(asked.model, self.copies(asked)(1))
        if not output.symbols:
            raise DataError("the best path is blank at every frame, so there are no symbols to align.")
        weights = np.zeros((len(output.symbols), len(output.numbers)))
        for row, (_, frames) in enumerate(output.symbols):
            weights[row, frames] = np.exp(output.logs[frames])
        return HeatMap(self.written(output), self.steps(asked.example), weights, title=BEST_PATH)

    def judge(self, examples: Sequence[Row]) -> Callable[[Row, Prediction], Judgement | None]:
        return lambda row, answer: Judgement(answer.output.split() == spelt(row), f"right is {row.values['target']}")

    def purpose(self) -> Purpose:
        return SERIES._replace(does="spells out the symbols that frames stand for")


def frames_of(row: Row) -> NDArray[Any]:
    return matrix(row.values.get("frames"), f"line {row.line}", "frames", np.float32)


def spelt(row: Row) -> list[str]:
    return str(row.values.get("target") or "").split()
