"""Task: what the training room knows of a problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from recurra.data.batches import Batches
from recurra.data.store import Encoded
from recurra.errors import ConfigError
from recurra.scoring.scores import Scores

if TYPE_CHECKING:
    from torch import Tensor, nn

    from recurra.scoring.counted import Counted

Axes: TypeAlias = tuple[tuple[str, ...] | None, ...]
"""The tokens that the rows, columns, … of a parameter belong to; None where they belong to none."""

Example = TypeVar("Example")
Batch = TypeVar("Batch")
Output = TypeVar("Output")


Carried: TypeAlias = "tuple[Tensor, ...]"
"""What one batch of training leaves to the next, without its history: the states of a text that is read in chunks."""


class Loss(NamedTuple):
    """Summed over what was predicted, and how many that were."""

    total: Tensor
    labels: int
    carried: Carried = ()
    weight: float = 1.0  # of the learning rate: a chunk of half the length moves the weights half as far
    logged: Mapping[str, float] = MappingProxyType({})  # by name; goes to the log and, as curves, to the report


class Moment(NamedTuple):
    """When in a training a loss is asked for."""

    step: int = 0  # updates made so far
    carried: Carried = ()  # what the batch before left, () at the start


START = Moment()


class Task(ABC, Generic[Example, Batch, Output]):
    """A problem with its settings and all that was learned from the data before training: vocabularies, scales.

    A task never changes; `prepared` makes one from training data, `load` from a run folder. What is not marked needs no
    torch, so that files can be checked and answers scored without it.
    """

    Settings: ClassVar[type]
    name: ClassVar[str]

    settings: Any

    @classmethod
    def fitting(cls, table: Mapping[str, Any]) -> type[Task[Any, Any, Any]]:
        """The task that a config file means by this one's name: one name may serve data of several kinds."""
        return cls

    @classmethod
    @abstractmethod
    def resolved(cls, settings: Any) -> Any:
        """The settings with what only a look at the first example can tell, such as which columns there are."""

    @classmethod
    def encoding(cls, settings: Any) -> object:
        """Settings beside those of data that change how an example is encoded, as JSON has them: the cache asks."""
        return None

    @classmethod
    @abstractmethod
    def prepared(cls, settings: Any) -> Self:
        """The task after one look at all training data; the settings are resolved."""

    @classmethod
    @abstractmethod
    def load(cls, settings: Any, folder: Path) -> Self:
        """The task out of a run folder."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write what `load` needs besides the settings."""

    def with_settings(self, settings: Any, folder: Path) -> Self:
        """The same task, answering and scored by other settings of [evaluation] and [decoding].

        A task that need not be loaded for that from its folder again says so here.
        """
        return type(self).load(settings, folder)

    def check(self) -> None:  # most settings are checked when they are read
        """Refuse, before training, settings by which the trained model could not be asked or scored."""
        return

    @abstractmethod
    def read(self, files: Sequence[str | Path]) -> Iterator[Example]:
        """The examples of some files, with their answers."""

    def noticed(self, examples: Sequence[Example]) -> str | None:  # most tasks have nothing to say
        """What is odd about examples that training does not see, in a sentence."""

    def noticed_in_training(self, rows: Any) -> str | None:  # most tasks have nothing to say
        """What is odd about the store of encoded examples that training sees, in a sentence."""

    @abstractmethod
    def questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Example]:
        """Examples without answers: those of a file in a known format, or one a line, a text or its words."""

    @abstractmethod
    def encode(self, example: Example) -> Encoded:
        """An example as arrays."""

    def left_out(self, row: Encoded) -> str | None:  # most tasks train with all there is
        """Why an encoded example is not trained with; None: it is."""
        return None

    @abstractmethod
    def lengths(self, rows: Any) -> NDArray[np.int64]:
        """How much each row of a store counts against the budget of a batch."""

    def batches(self, rows: Any, epoch: int) -> Batches:
        """Which rows make the batches of an epoch: a pure function of the settings and the epoch."""
        training = self.settings.training
        size = training.batch_size
        tokens = None if size is not None else training.batch_tokens
        return Batches(self.lengths(rows), tokens=tokens, rows=size, seed=training.seed, epoch=epoch)

    def chosen(self, store: Any, numbers: NDArray[np.int64]) -> Sequence[Encoded]:
        """What one of `batches` means: by default the numbers of the store's rows.

        Only training asks: a task may mark here what it does to rows in training alone. What it then draws in `batch`
        or `loss` must be drawn by torch, which is seeded by the step before `batch` is called.
        """
        found: Sequence[Encoded] = store.take(numbers)
        return found

    @abstractmethod
    def batch(self, rows: Sequence[Encoded]) -> Batch:
        """Rows as tensors. (torch)"""

    @abstractmethod
    def build(self) -> nn.Module:
        """A model with random weights. (torch)"""

    def initialise(self, model: nn.Module) -> str | None:  # most tasks have nothing to add
        """Put what is known beforehand, such as word vectors, into a new model; said in a sentence. (torch)"""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch, moment: Moment = START) -> Loss:
        """What training makes small at a moment of it. (torch)"""

    def while_training(self) -> Task[Example, Batch, Output]:
        """The task as it is validated during training, where a quicker way to its answers will do.

        Which weights are kept is decided by that; the scores of a run are those of the task itself.
        """
        return self

    @abstractmethod
    def predict(self, model: nn.Module, batch: Batch, *, detail: bool = False) -> list[Output]:
        """A plain output for each row; with detail, also probabilities and what else costs time. (torch)"""

    def outputs(self, model: nn.Module, rows: Sequence[Encoded], *, device: str) -> list[Output] | None:
        """Outputs to be scored, where rows follow on each other and cannot be predicted apart; None: they can. (torch)

        The model is in evaluation mode.
        """
        return None

    def for_prediction(self, model: nn.Module) -> nn.Module:
        """The model as it answers fastest, sharing its weights. (torch)"""
        return model

    def together(self, models: Sequence[nn.Module]) -> nn.Module:
        """Several models of this task that answer as one. (torch)"""
        raise ConfigError(f"models for {self.name} cannot answer together: give one run.")

    @abstractmethod
    def answer(self, example: Example, output: Output) -> Prediction:
        """What the user sees."""

    @abstractmethod
    def counted(self, examples: Sequence[Example], outputs: Sequence[Output]) -> Counted:
        """Outputs against the answers of the examples: counts of each item, and the scores that are made of them."""

    @final
    def score(self, examples: Sequence[Example], outputs: Sequence[Output]) -> Scores:
        """The scores and tables that follow from what was counted."""
        return self.counted(examples, outputs).scores()

    @abstractmethod
    def place(self, row: Encoded) -> str:
        """file:line of an encoded example."""

    @abstractmethod
    def described(self) -> str:
        """The model in words, one line."""

    @abstractmethod
    def axes(self) -> Mapping[str, Axes]:
        """For parameters whose rows or columns belong to tokens: the parameter's name, and the tokens of each axis."""


class Prediction(NamedTuple):
    """An answer. `output` is what `recurra predict` prints; `detail` is what --json adds.

    >>> answer = Prediction("ab", "B", -0.1, 1, {"alternatives": [{"output": "C"}], "alignment": [[0.2, 0.8]]})
    >>> answer.text, answer.alternatives, answer.alignment
    ('B', [{'output': 'C'}], array([[0.2, 0.8]]))
    """

    input: str
    output: str
    score: float
    line: int
    detail: dict[str, Any]

    @property
    def text(self) -> str:
        """What is answered."""
        return self.output

    @property
    def alternatives(self) -> list[Any]:
        """What else might be answered, the best first; empty where the task or its settings look for one answer."""
        return list(self.detail.get("alternatives", ()))

    @property
    def alignment(self) -> NDArray[np.float64] | None:
        """(written tokens and end, read tokens): where attention looked, each row a share of 1; None without it."""
        found = self.detail.get("alignment")
        return None if found is None else np.array(found, np.float64)
