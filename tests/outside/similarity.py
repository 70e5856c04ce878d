"""How alike two texts are: one network reads both, and a number is answered (a siamese LSTM).

A row of TSV is a text, another text and a number; a line of questions is the two texts with a tab between them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from recurra import DataError, Padded, Recurrent, pad
from recurra.extend import (
    START,
    AnswerKind,
    Asked,
    Axes,
    Counted,
    Data,
    Encoded,
    Loss,
    Moment,
    Part,
    Prediction,
    Probe,
    Purpose,
    Row,
    Schema,
    Sums,
    Task,
    Training,
    View,
    Viewer,
    Vocabulary,
    contributions,
    root,
    rows_of,
    section,
    setting,
)

PAIR = ["first", "second"]


@dataclass(frozen=True)
class Model:
    cell: Part = setting("lstm", "any cell of `recurra cells`")
    hidden: int = setting(64, "its size, in each direction")
    embedding: int = setting(64, "size of the vectors of words")


@dataclass(frozen=True)
class SimilaritySettings:
    task: str = setting("tests.outside.similarity:Similarity", "what kind of problem this is")
    data: Data = section(lambda: Data(columns=[*PAIR, "value"]), "where the examples come from")
    model: Model = section(Model, "the network")
    training: Training = section(lambda: Training(epochs=20), "how the weights are found")


class Batch(NamedTuple):
    words: Padded  # (B, T), of the first text and then of the second
    first: list[int]  # (B,), words of the first text
    value: Tensor  # (B,), NaN where it is not known


class Network(nn.Module):
    def __init__(self, model: Model, words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, model.embedding)
        self.recurrent = Recurrent(model.cell, model.embedding, model.hidden, bidirectional=True)
        self.readout = nn.Linear(4 * model.hidden, 1)

    def forward(self, batch: Batch) -> Tensor:
        """(B, 1): how alike the texts of each row are."""
        vectors, ends = self.embedding(batch.words.values), batch.words.lengths.tolist()
        pairs = zip(vectors, batch.first, ends, strict=True)
        texts = pad([text for both, first, end in pairs for text in (both[:first], both[first:end])])
        read, _ = self.recurrent(texts)
        means = read.values.sum(1) / texts.lengths.clamp(min=1).to(read.values)[:, None]
        one, other = means[0::2], means[1::2]
        return self.readout(torch.cat([(one - other).abs(), one * other], -1))


class Similarity(Task[Row, Batch, float]):
    Settings = SimilaritySettings
    name = "similarity"

    def __init__(self, settings: SimilaritySettings, words: Vocabulary, mean: float, spread: float) -> None:
        self.settings, self.words, self.mean, self.spread = settings, words, mean, spread

    # From files to arrays

    @classmethod
    def prepared(cls, settings: SimilaritySettings) -> Self:
        words, values = Counter[str](), list[float]()
        for row in rows_of(settings.data.files("train"), settings.data):
            words.update(words_of(row, "first") + words_of(row, "second"))
            values.append(value(row))
        return cls(settings, Vocabulary.counted(words), float(np.mean(values)), float(np.std(values)) or 1.0)

    def save(self, folder: Path) -> None:
        self.words.save(folder / "vocabulary.words.json")
        (folder / "scales.json").write_text(json.dumps({"value": {"mean": [self.mean], "spread": [self.spread]}}))

    @classmethod
    def load(cls, settings: SimilaritySettings, folder: Path) -> Self:
        scale = json.loads((folder / "scales.json").read_text())["value"]
        return cls(settings, Vocabulary.load(folder / "vocabulary.words.json"), scale["mean"][0], scale["spread"][0])

    def schema(self) -> Schema:
        return Schema("text", PAIR)

    def encode(self, example: Row) -> Encoded:
        words, first = self.words.ids(self.steps(example)), np.array([len(words_of(example, "first"))])
        scaled = np.array([(value(example) - self.mean) / self.spread], np.float32)
        return {"words": words, "first": first, "value": scaled, "place": np.array([example.file, example.line])}

    # From arrays to answers

    def batch(self, rows: Sequence[Encoded]) -> Batch:
        words = pad([torch.from_numpy(row["words"]) for row in rows])
        return Batch(words, [int(row["first"][0]) for row in rows], torch.tensor([row["value"][0] for row in rows]))

    def build(self) -> Network:
        return Network(self.settings.model, len(self.words))

    def loss(self, model: nn.Module, batch: Batch, moment: Moment = START) -> Loss:
        return Loss((model(batch)[:, 0] - batch.value).square().sum(), len(batch.value))

    @torch.no_grad()
    def predict(self, model: nn.Module, batch: Batch, *, detail: bool = False) -> list[float]:
        return [self.mean + self.spread * each for each in model(batch)[:, 0].tolist()]

    def answer(self, example: Row, output: float) -> Prediction:
        return Prediction(str(self.sent(example)), f"{output:.4f}", 0.0, example.line, {"values": [output]})

    def answer_kind(self) -> AnswerKind:
        return "numbers"

    def counted(self, examples: Sequence[Row], outputs: Sequence[float]) -> Counted:
        x, y = np.array([value(example) for example in examples]), np.array(outputs)
        columns = {"square": (x - y) ** 2, "x": x, "y": y, "xx": x * x, "yy": y * y, "xy": x * y}
        return Counted.of(
            [(example.file, example.line) for example in examples],
            columns,
            {"rmse": root("square", "items"), "pearson": pearson},
            first="rmse",
            lengths=[len(self.steps(example)) for example in examples],
        )

    # Views, and what is said about it

    def steps(self, example: Row) -> list[str]:
        return words_of(example, "first") + words_of(example, "second")

    def viewers(self) -> dict[str, Viewer]:
        saliency = Viewer(self.saliency, longest=30, work=lambda words: words, title="What mattered")
        return {"saliency": saliency, **super().viewers()}

    def saliency(self, asked: Asked) -> View:
        """What each word adds to the number."""
        probe = Probe(
            self.steps(asked.example),
            ["similarity"],
            asked.model,
            lambda network: [network.embedding],  # type: ignore[list-item]  # a Network
            self.copies(asked),
            lambda network, batch: self.mean + self.spread * network(batch),
            "similarity",
        )
        return contributions(probe)

    def purpose(self) -> Purpose:
        return Purpose("tells how alike two texts are", rows="pairs", python='answers = model.predict(["one\\tother"])')

    def axes(self) -> dict[str, Axes]:
        return {"embedding.weight": (self.words.tokens, None)}


def words_of(row: Row, column: str) -> list[str]:
    return str(row.values[column]).lower().split()


def value(row: Row) -> float:
    """The number of a row; NaN of a question."""
    given: Any = row.values.get("value", "nan")
    try:
        return float(given)
    except (TypeError, ValueError):
        raise DataError(f"line {row.line}: the third column is a number, but found {given!r:.40}.") from None


def pearson(sums: Sums) -> Any:
    """The correlation of x and y from their sums; NaN where all are alike."""
    n = sums["items"]
    with np.errstate(invalid="ignore", divide="ignore"):
        spreads = (n * sums["xx"] - sums["x"] ** 2) * (n * sums["yy"] - sums["y"] ** 2)
        return (n * sums["xy"] - sums["x"] * sums["y"]) / np.sqrt(spreads)
