"""Settings of question answering."""

from __future__ import annotations

import dataclasses
from typing import Literal

from recurra.config.classification import ClassificationDecoding
from recurra.config.common import (
    Data,
    Idle,
    Training,
    idle_batch_tokens,
    idle_of_stack,
    idle_without_validation,
    one_batch_size,
)
from recurra.frozen import dataclass
from recurra.settings import Part, SettingError, above_zero, at_least, rates, section, setting


@dataclass(frozen=True)
class QuestionAnsweringData(Data):
    """Where stories, questions and answers come from."""

    context: str | None = setting(
        None, "column with the story: a list of sentences, or a text, cut after . ! ? and at line breaks; none: "
        "`context` or `story`"
    )  # fmt: skip
    question: str | None = setting(None, "column with the question; none: `question`")
    answer: str | None = setting(None, "column with the answer, one class; none: `answer`")
    lowercase: bool = setting(True, "convert text to lower case")
    min_count: int = setting(1, "words that occur less often in training become <unk>")

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, "data", self, "min_count")
        named = [name for name in ("context", "question", "answer") if getattr(self, name) is not None]
        for first, second in ((a, b) for a in named for b in named if a < b):
            if getattr(self, first) == getattr(self, second):
                raise SettingError(
                    f"data.{first} and data.{second} are the same column, '{getattr(self, first)}': name two.",
                    ("data", second),
                )


@dataclass(frozen=True)
class QuestionAnsweringModel:
    """The end-to-end memory network."""

    hidden: int = setting(50, "size of memories, questions and word embeddings")
    hops: int = setting(3, "how often the sentences are looked at")
    memories: int = setting(50, "the last so many sentences are read")
    sentence: Literal["position", "place", "bag", "recurrent"] = setting(
        "place",
        "how words become a sentence: a sum weighted by position relative to its length, or by place, a plain sum, or "
        "the last state of a cell",
    )
    longest: int = setting(12, "words of a long sentence, with sentence = place; those after it weigh like the last")
    temporal: bool = setting(True, "learn a vector for each age of a sentence")
    tying: Literal["adjacent", "layerwise"] = setting(
        "adjacent",
        "shared embeddings: what a hop answers by is what the next one looks by, or the same in every hop",
    )
    vacant: bool = setting(
        True, "the softmax of a hop is over all places of the memory, so that it may look at those without a sentence"
    )
    noise: float = setting(0.1, "in training, up to this share of empty memories between the sentences")
    linear_start: int | None = setting(
        None,
        "at most so many updates without softmax in the hops; none: a tenth of training; it ends after 3 validations "
        "without a lower loss",
    )
    linear_rate: float = setting(1.0, "learning rate of the linear start, as a share of what it is otherwise")
    spread: float = setting(0.1, "standard deviation of the weights at the start")
    cell: Part = setting("gru", "cell that reads a sentence, with sentence = recurrent; any listed by `recurra cells`")
    layers: int = setting(1, "number of layers of cells that read a sentence")
    direction: Literal["forward", "backward"] = setting(
        "forward", "backward: cells read a sentence, and the question, from its end"
    )
    mix: Literal["last", "concat", "mean", "learned"] = setting(
        "last", "output of the layers: the last one, or the concat, mean or learned weighted mean of all"
    )
    skip: Literal["none", "residual", "highway"] = setting(
        "none", "skip connections around the second and later layers"
    )
    engine: str = setting(
        "auto", "single, vendor, planned, scan or loop; auto selects the fastest that supports the cell"
    )

    @property
    def reads(self) -> bool:
        """Whether a cell reads the sentences."""
        return self.sentence == "recurrent"

    def __post_init__(self) -> None:
        at_least(1, "model", self, "hidden", "hops", "memories", "longest", "layers")
        at_least(0, "model", self, "linear_start")
        above_zero("model", self, "spread", "linear_rate")
        rates("model", self, "noise")


@dataclass(frozen=True)
class QuestionAnsweringSettings:
    """All settings of question answering."""

    task: str = setting("question_answering", "the task")
    data: QuestionAnsweringData = section(QuestionAnsweringData, "the data")
    model: QuestionAnsweringModel = section(QuestionAnsweringModel, "the network")
    training: Training = dataclasses.field(
        default_factory=lambda: Training(epochs=60, batch_size=32, learning_rate=5e-3), metadata={"about": "training"}
    )
    decoding: ClassificationDecoding = section(ClassificationDecoding, "how probabilities become an answer")

    def __post_init__(self) -> None:
        if self.task != "question_answering" and ":" not in self.task:  # one of your own may take these settings
            raise SettingError(f"task = '{self.task}', but these are the settings of question answering.", ("task",))
        one_batch_size(self.training)

    def without_effect(self) -> Idle:
        """Settings that the others leave without effect, and why."""
        idle: Idle = {("decoding", "threshold"): "a question has one answer, not several"}
        idle |= idle_batch_tokens(self.training) | idle_without_validation(self.data)
        if self.model.sentence != "place":
            why = f"model.sentence = '{self.model.sentence}' does not count places"
            idle |= {("model", "longest"): why}
        if self.model.linear_start == 0:
            idle[("model", "linear_rate")] = "there is no linear start (model.linear_start = 0)"
        if not self.model.reads:
            why = f"model.sentence = '{self.model.sentence}' reads sentences without a cell"
            idle |= {("model", name): why for name in ("cell", "layers", "direction", "mix", "skip", "engine")}
        else:
            idle |= idle_of_stack(self.model.hidden, self.model.layers)
        return idle
