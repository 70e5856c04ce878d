"""Task: the interface between a problem and everything that trains, asks, scores, explains or serves its models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar, cast, final

import numpy as np
from numpy.typing import NDArray

from recurra.config.common import has_memory, training_differs
from recurra.data.batches import Batches
from recurra.data.formats.reader import Row
from recurra.data.shards import with_shards
from recurra.data.store import Encoded, Rows
from recurra.errors import ConfigError, DataError, RecurraError
from recurra.frozen import NamedTuple
from recurra.reading.asked import asked_row, read_by, sent_row
from recurra.reading.samples import easy, spread
from recurra.reading.schema import Schema
from recurra.reading.tables import rows_of, task_rows
from recurra.settings import table_of
from recurra.views.prediction import AnswerKind, Prediction
from recurra.views.purpose import Purpose
from recurra.views.viewer import GATES, REMEMBERED, Asked, Viewer

if TYPE_CHECKING:
    from torch import Tensor, nn

    from recurra.analysis.anatomy import Anatomy
    from recurra.analysis.backtests import Backtest
    from recurra.analysis.exposure import Exposure
    from recurra.analysis.gates import Gates, Stack
    from recurra.data.mixed import Mixed
    from recurra.generation.generated import Manner, TextSource
    from recurra.predictors.predictor import Predictor
    from recurra.predictors.streaming import AnyStream
    from recurra.scoring.counted import Counted
    from recurra.scoring.scores import Scores
    from recurra.views.table import Table
    from recurra.views.view import View

__all__ = [
    "START",
    "AnswerKind",
    "Asked",
    "Axes",
    "Carried",
    "Judgement",
    "Loss",
    "Moment",
    "Prediction",
    "Purpose",
    "Schema",
    "Scores",
    "Task",
    "View",
    "Viewer",
]

Axes: TypeAlias = tuple[tuple[str, ...] | None, ...]
"""The tokens that the rows, columns, … of a parameter belong to; None where they belong to none."""

Example = TypeVar("Example")
Batch = TypeVar("Batch")
Output = TypeVar("Output")


Carried: TypeAlias = "tuple[Tensor, ...]"
"""What one batch of training leaves to the next, without its history: the states of a text that is read in chunks."""


class Loss(NamedTuple):
    """A summed loss and the number of predictions in it."""

    total: Tensor
    labels: int
    carried: Carried = ()
    weight: float = 1.0  # of the learning rate: a chunk of half the length moves the weights half as far
    logged: Mapping[str, float] = MappingProxyType({})  # by name; goes to the log and, as curves, to the report


class Recurring(NamedTuple):
    """A batch of a size that occurs again, and what its loss says beside tensors.

    A GPU records the training step of such a batch once for its size and replays it for others: they may differ in what
    tensors hold, and in nothing else that their loss depends on.
    """

    batch: Any
    labels: int  # as in Loss
    weight: float = 1.0


class Moment(NamedTuple):
    """The point in training (step, progress) at which a loss is computed."""

    step: int = 0  # updates made so far
    carried: Carried = ()  # what the batch before left, () at the start
    stalled: int = 0  # most validations in a row, so far, without a lower loss than ever before
    varying: Tensor | None = None  # the numbers of `Task.varying` on a GPU, where the step is recorded
    progress: float = 0.0  # the share of training that is done


START = Moment()


class Judgement(NamedTuple):
    """Whether a prediction is correct and, if not, an explanation."""

    is_right: bool
    mistakes: str = ""


class Task(ABC, Generic[Example, Batch, Output]):
    """The interface between a problem and the trainer: settings, vocabularies, encoding, loss and scores.

    Seven methods must be written; all others have defaults that work. In the order in which they are used:

        settings   Settings, name       prepared, save, load where something is learned from the data
        data       schema               what an input is;  read, questions, sent: where examples are not rows of files
                   encode  batch        an example to arrays, rows of arrays to tensors
        model      build  loss          a network, and what training makes small
        answers    predict  answer      outputs of a batch, and what the user sees of one
        scores     counted              counts of each example: scores, intervals and comparisons are sums of them
        views      viewers              what there is to see of an answer, by name; gates come by themselves

    A task never changes; `prepared` makes one from training data, `load` from a run folder. What is not marked needs no
    torch, so that files can be checked and answers scored without it.
    """

    Settings: ClassVar[type]
    name: ClassVar[str]

    reads_apart: ClassVar[bool] = False
    """Whether `read` gives of each part of a file what it gives of the whole, so that processes can share files out.

    It is not inherited by a class that does not say so itself.
    """

    settings: Any

    # Settings

    @classmethod
    def fitting(cls, table: Mapping[str, Any]) -> type[Task[Any, Any, Any]]:
        """The task that a config file means by this one's name: one name may serve data of several kinds."""
        return cls

    @classmethod
    def resolved(cls, settings: Any) -> Any:
        """The settings with what only a look at the first example can tell, such as which columns there are."""
        return settings

    @classmethod
    def encoding(cls, settings: Any) -> object:
        """Settings beside those of data that change how an example is encoded, as JSON has them: the cache asks."""
        return None

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @classmethod
    def prepared(cls, settings: Any) -> Self:
        """The task after one look at all training data; the settings are resolved. By default nothing is learned."""
        return cls(settings)

    @classmethod
    def prepared_from(cls, settings: Any, base: Self) -> Self:
        """`prepared` where training starts from a run, whose task is the base: what that learned stays as it is.

        Its vocabularies, tokenizers and scales are kept, and what only the new data has is added. By default all is
        learned anew.
        """
        return cls.prepared(settings)

    @classmethod
    def load(cls, settings: Any, folder: Path) -> Self:
        """The task out of a run folder."""
        return cls(settings)

    def save(self, folder: Path) -> None:
        """Write what `load` needs besides the settings; by default nothing."""
        return

    def with_settings(self, settings: Any, folder: Path) -> Self:
        """The same task, answering and scored by other settings of [evaluation] and [decoding].

        A task that need not be loaded for that from its folder again says so here.
        """
        return type(self).load(settings, folder)

    def check(self) -> None:  # most settings are checked when they are read
        """Refuse, before training, settings by which the trained model could not be asked or scored."""
        return

    # Data: files, lines and JSON to examples, examples to arrays

    def read(self, files: Sequence[str | Path]) -> Iterator[Example]:
        """The examples of some files, with their answers; by default the rows of the files."""
        return cast(Iterator[Example], rows_of(files, self.settings.data))

    def in_folders(self, files: Iterable[str | Path]) -> list[str | Path]:
        """Files to be read, where a folder is replaced by the data files in it, in the order of their names."""
        return with_shards(files)

    def questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Example]:
        """Examples without answers: those of a file in a known format, or one a line, a text or its words.

        By default they are rows: those of the file, or of each line what `schema` says, with tabs between the columns
        of a text and anything else as JSON.
        """
        by = read_by(file, self.settings.data)
        if file is not None and by is not None:
            return cast(Iterator[Example], task_rows(file, by))
        schema, name = self.schema(), file or "input"
        asked = (asked_row(line, schema, f"{name}:{number}", number) for number, line in enumerate(lines, 1))
        return cast(Iterator[Example], asked)

    @property
    def cuts_text(self) -> bool:
        """Whether `cut` finds examples in raw text."""
        return False

    def cut(self, model: nn.Module, pieces: Iterable[str]) -> Iterator[Example]:
        """The examples of raw text, which arrives in pieces: a model finds where they begin and end. (torch)"""
        raise ConfigError(f"--raw is for taggers that find tokens and sentences; {self.name} does not: leave it out.")

    def schema(self) -> Schema:
        """What one input looks like, whichever way it arrives; by default a text."""
        return Schema("text")

    def sent(self, example: Example) -> object | None:
        """An example as JSON, as `questions` takes it in place of a line; None: it cannot be sent."""
        return sent_row(example, self.schema()) if isinstance(example, Row) else None

    def samples(self, examples: Sequence[Example], count: int) -> list[object]:
        """A few inputs worth asking with, as JSON, from all over some examples."""
        found: list[object] = []
        if self.schema().kind == "text":
            texts = (self.sent(example) for example in examples)
            found += easy([str(text) for text in texts if text is not None], count)
            return found
        for example in spread(examples, count):
            try:
                value = self.sent(example)
            except RecurraError:  # a picture that it names is gone
                continue
            found += [] if value is None else [value]
        return found

    @abstractmethod
    def encode(self, example: Example) -> Encoded:
        """An example as arrays."""

    def encode_all(self, examples: Iterable[Example]) -> Iterator[Encoded]:
        """Each example as `encode` gives it, in order; a task that computes much for each does so for many at once."""
        return map(self.encode, examples)

    def not_in_vocabulary(self, example: Example) -> list[str]:  # numbers and pictures need no vocabulary
        """The tokens or characters of an input that the model has never seen and reads as <unk>, each once.

        Only what is lost counts: a word without a vector of its own is not, where its characters are read.
        """
        return []

    def left_out(self, row: Encoded) -> str | None:  # most tasks train with all there is
        """Why an encoded example is not trained with; None: it is."""
        return None

    def lengths(self, rows: Any) -> NDArray[np.int64]:
        """How much each row of a store counts against the budget of a batch; by default its longest array."""
        if not len(rows):
            return np.zeros(0, np.int64)
        longest: NDArray[np.int64] = np.max([rows.lengths(name) for name in rows[0] if name != "place"], axis=0)
        return longest

    def batches(self, rows: Any, epoch: int) -> Batches:
        """Which rows make the batches of an epoch: a pure function of the settings and the epoch."""
        training = self.settings.training
        size = training.batch_size
        tokens = None if size is not None else training.batch_tokens
        return Batches(self.lengths(rows), tokens=tokens, rows=size, seed=training.seed, epoch=epoch)

    def replayed(self, both: Mixed, epoch: int) -> Any:
        """What an epoch reads of new data and of old: by default all new rows, and old ones that are drawn."""
        return both.of_epoch(epoch)

    def chosen(self, store: Any, numbers: NDArray[np.int64]) -> Sequence[Encoded]:
        """What one of `batches` means: by default the numbers of the store's rows.

        Only training asks: a task may mark here what it does to rows in training alone. What it then draws in `batch`
        or `loss` must be drawn by torch, which is seeded by the step before `batch` is called.
        """
        found: Sequence[Encoded] = store.take(numbers)
        return found

    def share(self, store: Any, numbers: NDArray[np.int64], which: slice) -> Sequence[Encoded]:
        """Of one of `batches` what one of several processes trains with: `chosen` of those numbers, by default."""
        return self.chosen(store, numbers[which])

    def unshared(self) -> str | None:  # most losses are sums over rows
        """Why several processes cannot share out the rows of a batch, in a sentence; None: they can."""
        return None

    @property
    def carries_rows(self) -> bool:
        """Whether what a batch leaves to the next has a row for each of its rows; otherwise it is of the batch."""
        return True

    @abstractmethod
    def batch(self, rows: Sequence[Encoded]) -> Batch:
        """Rows as tensors. (torch)"""

    @property
    def draws_in_batch(self) -> bool:
        """Whether `batch` may draw from torch's generator; if not, training calls it ahead of the step, in a thread."""
        return True

    def noticed(self, examples: Sequence[Example]) -> str | None:  # most tasks have nothing to say
        """What is odd about examples that training does not see, in a sentence."""

    def preceded(self, examples: Sequence[Example]) -> str | None:  # most tasks read files alone
        """What else was read with some examples of a file, such as the steps before them, in a sentence."""

    def preceded_by(self, file: str | Path) -> Self:
        """The same task, with the steps of a file before those that are read."""
        raise ConfigError(f"--history is for series that go on with another file: {self.name} has none. Leave it out.")

    def noticed_in_training(self, rows: Any) -> str | None:  # most tasks have nothing to say
        """What is odd about the store of encoded examples that training sees, in a sentence."""

    def held_out(self, part: Rows, parts: Sequence[Any]) -> str:
        """How much a part is of all parts of the training files, and how it was chosen, where a share is held out.

        By default these are examples that were drawn: `rows_of` and `read` give those of the part that is asked for.
        """
        return f"{len(part):,} of {sum(map(len, parts)):,} examples, drawn by seed {self.settings.data.seed}"

    def place(self, row: Encoded) -> str:
        """file:line of an encoded example of training: where `encode` keeps its `origin` as "place"."""
        if "place" not in row:
            return "a row"
        file, line = row["place"].tolist()
        return f"{self.settings.data.files('train')[file]}:{line}"

    # Model

    @abstractmethod
    def build(self) -> nn.Module:
        """A model with random weights. (torch)"""

    def initialise(self, model: nn.Module) -> str | None:  # most tasks have nothing to add
        """Put what is known beforehand, such as word vectors, into a new model; said in a sentence. (torch)"""

    def first_guess(self, model: nn.Module, store: Any) -> str | None:  # most tasks have none
        """Put weights that follow from the encoded training data by a formula into a new model; said in a sentence.

        Only `runs.begin` asks, after `initialise`. (torch)
        """

    def axes(self) -> Mapping[str, Axes]:
        """For parameters whose rows or columns belong to tokens: the parameter's name, and the tokens of each axis.

        Only --from asks. Without it, rows of a table of vectors would go to other tokens of the same number.
        """
        raise ConfigError(
            "--from needs the method `axes`, which says which weights belong to which tokens, but "
            f"{type(self).__name__} does not have it: write that method, or train without --from."
        )

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch, moment: Moment = START) -> Loss:
        """What training makes small at a moment of it. (torch)"""

    def recurring(self, batch: Batch) -> Recurring | None:
        """A batch of training padded to a size that occurs again; None: its loss cannot be recorded. (torch)

        Only where the loss depends on no numbers but those of tensors, lengths and `varying`: not otherwise on the
        step, and not on what Python or NumPy draw.
        """
        return None

    def varying(self, step: int) -> Mapping[str, float]:
        """Numbers by name that the loss of a step depends on beside its batch; they go to the log."""
        return {}

    @property
    def truncation(self) -> int | None:
        """Steps after which gradients are cut off in training; None: they go through whole rows."""
        return None

    def while_training(self) -> Task[Example, Batch, Output]:
        """The task as it is validated during training, where a quicker way to its answers will do.

        Which weights are kept is decided by that; the scores of a run are those of the task itself.
        """
        return self

    def training_differs(self) -> list[str]:
        """Why the loss in training is not that of validation, in clauses such as 'dropout is on in training only'."""
        return training_differs(self.settings)

    def for_prediction(self, model: nn.Module) -> nn.Module:
        """The model as it answers fastest, sharing its weights. (torch)"""
        return model

    def reread(self, model: nn.Module, batch: Batch) -> object:
        """Run a model over inputs without answers so that each cell makes its steps in their order. (torch)

        A model whose answers are searched for reads the answers that it found.
        """
        return self.predict(model, batch)

    def together(self, models: Sequence[nn.Module]) -> nn.Module:
        """Several models of this task that answer as one, where they must agree at every step of a search. (torch)

        A task whose models answer by themselves, so that their outputs can be combined, writes `combined` instead.
        """
        raise ConfigError(f"models for {self.name} cannot be combined into an ensemble: give one run.")

    @final
    @property
    def combines(self) -> bool:
        """Whether models of this task answer by themselves, and then as one."""
        return type(self).combined is not Task.combined

    def combined(self, example: Example, outputs: Sequence[Output]) -> Output:
        """What several runs say together of an example, out of what each says by itself, in detail."""
        raise ConfigError(f"models for {self.name} cannot be combined into an ensemble: give one run.")

    def to_combine(self, model: nn.Module, batch: Batch) -> list[Output]:
        """Outputs of one of several runs, with all that `combined` needs of them; by default in detail. (torch)"""
        return self.predict(model, batch, detail=True)

    def units(self) -> object:
        """What the numbers of an output stand for: only runs for which this is equal can be combined."""
        return None

    def described(self) -> str:
        """The model in words, one line; by default its settings."""
        from recurra.views.table import in_words

        model = table_of(self.settings).get("model", {})
        return ", ".join(f"{name} {in_words(value)}" for name, value in model.items()) or self.name

    def purpose(self) -> Purpose:
        """What a model of this task is for, in the words of a card."""
        return Purpose()

    # Answers

    @abstractmethod
    def predict(self, model: nn.Module, batch: Batch, *, detail: bool = False) -> list[Output]:
        """A plain output for each row; with detail, also probabilities and what else costs time. (torch)"""

    def outputs(self, model: nn.Module, rows: Sequence[Encoded], *, device: str) -> list[Output] | None:
        """Outputs to be scored, where rows follow on each other and cannot be predicted apart; None: they can. (torch)

        The model is in evaluation mode.
        """
        return None

    def outputs_together(self, models: Sequence[nn.Module], rows: Sequence[Encoded]) -> list[Output] | None:
        """Outputs of several models to be scored as one, where `combined` cannot make them of each model's own. (torch)

        None: it can. The models are in evaluation mode.
        """
        return None

    @abstractmethod
    def answer(self, example: Example, output: Output) -> Prediction:
        """What the user sees."""

    def format_of(self, ending: str) -> str | None:
        """The file format that the ending of `recurra predict --out` means; None: answers beside the input's."""
        return ending if ending in ("conllu", "conll") else None

    def printed(self, answer: Prediction, format: str, number: int) -> str:
        """The answer to input `number`, from 1, in a file format; what `recurra predict --format` prints."""
        kind = {"csv": "forecasters", "conllu": "taggers", "conll": "taggers"}.get(format)
        if kind is None:
            raise ConfigError(f"--format {format} is not known: forecasters write csv, taggers conllu or conll.")
        raise ConfigError(f"--format {format} is for {kind}; {self.name} prints plain answers, or JSON with --json.")

    def printed_file(self, file: str | Path | None, answers: Iterable[Prediction], format: str) -> Iterator[str]:
        """The answers to all inputs of a file, or to lines where there is none, in a file format."""
        return (f"{self.printed(answer, format, number)}\n" for number, answer in enumerate(answers, 1))

    def printed_raw(
        self, model: Any, pieces: Iterable[str], format: str, told: Callable[[int, Sequence[str]], None]
    ) -> Iterator[str] | None:
        """What `printed_file` makes of the answers to the sentences of raw text, if there is a shorter way; else None.

        `told` hears of each sentence with symbols that the model has never seen: its number, and these.
        """
        return None

    def tabled(self, answers: Sequence[Prediction]) -> Table:
        """Answers as rows of a table: by default one row each, with its input, its output and its score."""
        from recurra.views.answer_table import answer_table

        return answer_table(answers, self.answer_kind())

    def answer_kind(self) -> AnswerKind:
        """How the page draws an answer; `AnswerKind` lists what each kind needs in `detail`."""
        return "text"

    @property
    def decoding(self) -> Any:
        """The settings of [decoding], by which answers are searched for; None where there are none."""
        return getattr(self.settings, "decoding", None)

    @property
    def unused_in_scores(self) -> Collection[str]:
        """Names of settings of [decoding] that cannot change a score of this model."""
        return ()

    @property
    def unused_decoding(self) -> Collection[str]:
        """Names of settings of [decoding] that cannot change an answer of this model: a page does not offer them."""
        return ()

    def most_written(self, lengths: Sequence[int]) -> float:
        """Tokens or steps that all hypotheses may have together for inputs of such lengths: what a search may cost."""
        return 0.0

    def writer(self, model: nn.Module, manner: Manner) -> TextSource | None:  # most models write no text
        """What writes texts with a model, in some manner; None where a model of this task writes none. (torch)"""
        return None

    def predictor(self) -> Predictor[Output]:
        """How a model of this task is exported, and answers without torch."""
        raise ConfigError(f"models for {self.name} cannot be exported yet.")

    def offline(self) -> Mapping[str, Any]:
        """What a page in one file must know to answer with an exported model; see recurra.predictors.offline."""
        raise ConfigError(f"models for {self.name} cannot be exported to a page yet. Export it to C.")

    # Scores

    def scores_of_parts(self, model: nn.Module, examples: Sequence[Example]) -> Mapping[str, float]:
        """How good parts of a model are that share nothing with the rest, by their names in it; higher is better.

        In training the weights of each are kept from the validation at which it was best itself, whatever the whole
        was worth then. The model is in evaluation mode. By default there are none. (torch)
        """
        return {}

    def calibrated(
        self, model: nn.Module, examples: Sequence[Example], rows: Sequence[Encoded], outputs: Sequence[Output]
    ) -> Self:
        """The task that also knows what a trained model got wrong on validation data, which `save` writes.

        It is asked for once, after training; most tasks have no use for it.
        """
        return self

    @abstractmethod
    def counted(self, examples: Sequence[Example], outputs: Sequence[Output]) -> Counted:
        """Outputs against the answers of the examples: counts of each item, and the scores that are made of them."""

    @final
    def score(self, examples: Sequence[Example], outputs: Sequence[Output]) -> Scores:
        """The scores and tables that follow from what was counted."""
        return self.counted(examples, outputs).scores()

    def rolling(
        self,
        model: nn.Module,
        files: Sequence[str | Path],
        *,
        windows: int,
        step: int,
        back: Sequence[int] | None = None,
    ) -> Backtest:
        """Forecasts of the end of each example, from so many origins so many steps apart, or from those named."""
        raise ConfigError(f"recurra backtest is for forecasting, but this is a {self.name} model.")

    def origins_back(self, files: Sequence[str | Path], *, windows: int, step: int) -> list[int]:
        """How many steps before the end of each example its windows begin, the earliest first."""
        raise ConfigError(f"recurra backtest is for forecasting, but this is a {self.name} model.")

    def stream(self, model: nn.Module, state: bytes | None = None) -> AnyStream:
        """What reads endless input element by element and answers after each, from a saved state too. (torch)"""
        from recurra.models.saved import fingerprint
        from recurra.models.together import pairs_of
        from recurra.predictors.in_torch import InTorch
        from recurra.predictors.streaming import Reader, Stream

        readers, pairs = list[Reader](), pairs_of(self, model)
        for number, (task, network) in enumerate(pairs, 1):
            which = f"run {number} of this ensemble" if len(pairs) > 1 else "this run"
            try:
                predictor = task.predictor()
            except ConfigError as error:
                raise ConfigError(f"{which} cannot read a stream, since it cannot be exported: {error}") from error
            if (reason := predictor.refusal_of_streams(network)) is not None:
                raise ConfigError(f"{which} cannot read a stream: {reason}.")
            device = next(network.parameters()).device
            readers.append(Reader(task, predictor, InTorch(predictor.functions(network), device)))
        return Stream(readers, fingerprint(*(network for _, network in pairs)), state)

    def element(self, element: object, number: int) -> tuple[Example, Encoded]:
        """The element of a stream that has this number, as an example and as arrays; by default as `questions` asks."""
        from recurra.predictors.streaming import frame_of

        place = f"element {number}"
        if self.schema().kind == "frames":
            [example] = self.questions(None, [frame_of(element, place)])  # type: ignore[list-item]  # numbers
        elif isinstance(element, str):
            [example] = self.questions(None, [element])
        else:
            raise DataError(f"{place}: an element of this stream is a text, but is {element!r:.60}.")
        encoded = self.encode(example)
        if not int(self.lengths(Rows.of([encoded]))[0]):
            raise DataError(f"{place}: there is nothing to read in {element!r:.60}.")
        return example, encoded

    def streamed(self, example: Example, output: Output) -> Prediction:
        """The answer after an element of a stream."""
        return self.answer(example, output)

    def anomalies(self, model: nn.Module, files: Sequence[str | Path]) -> Table:
        """Every observed value, and how improbable it was given those before it."""
        raise ConfigError(f"--anomalies is for forecasting, but this is a {self.name} model.")

    def free_running(self, model: nn.Module, examples: Sequence[Example]) -> Exposure:
        """What it costs a model in evaluation mode to read its own outputs in place of the right ones. (torch)"""
        raise ConfigError(
            f"a {self.name} model never reads its own outputs, so there is no free running to compare with."
        )

    # Views of one answer

    def viewers(self) -> dict[str, Viewer]:
        """How each view of an answer is made, the most telling first. A RecurraError of one says why there is none."""
        gates = Viewer(lambda asked: self.gates(asked).view(), longest=60, title=GATES, layered=True)
        return {**self.memory_viewer(), "gates": gates}

    def memory_viewer(self) -> dict[str, Viewer]:
        """What a cell with an external memory wrote and read, where one reads the input; otherwise none."""
        model = getattr(self.settings, "model", None)
        cell = getattr(getattr(model, "encoder", None), "cell", None) or getattr(model, "cell", None)
        return {"memory": Viewer(self.memory, longest=60, title=REMEMBERED)} if has_memory(cell) else {}

    def steps(self, example: Example) -> list[str]:
        """What the steps that are read of an example are called; by default they are counted from 1."""
        return [str(number) for number in range(1, int(self.lengths(Rows.of([self.encode(example)]))[0]) + 1)]

    def stacks(self, model: nn.Module) -> Mapping[str, Stack]:
        """The recurrent stacks of a model by name, first the one that reads `steps`; by default all of them. (torch)"""
        from recurra.analysis.gates import stacks_of

        return stacks_of(model)

    def gates(self, asked: Asked) -> Gates:
        """Gates and states of the first of `stacks` while it read. (torch)"""
        from recurra.analysis.gates import gates_of

        stacks = self.stacks(asked.model)
        if not stacks:
            raise ConfigError(
                f"the run {asked.run} has no recurrent encoder ({self.described()}), so there are no gates to show."
            )
        batch = self.copies(asked)(1)
        return gates_of(
            next(iter(stacks.values())),
            self.steps(asked.example),
            lambda: self.predict(asked.model, batch),
            layer=asked.layer,
            direction=asked.direction,
        )

    def memory(self, asked: Asked) -> View:
        """Where the external memory of the first of `stacks` was written and read. (torch)"""
        from recurra.analysis.memory import memory_view

        return memory_view(self.gates(asked))

    def anatomy(self, model: nn.Module) -> Anatomy:
        """The parts of a model that `recurra info --draw` shows. (torch)"""
        from recurra.analysis.anatomy import Anatomy, UnrolledLevel, levels_of

        stacks = list(self.stacks(model).values())
        return Anatomy(levels_of(stacks[0]) if stacks else [UnrolledLevel(type(model).__name__)])

    def check_explained(self, example: Example) -> None:  # most tasks answer whatever they can read
        """Refuse an example that gets no answer to explain."""
        return

    def headline(self, read: str, answer: str) -> str:
        """What was read and what was answered, in one line."""
        return f"{read} → {answer}"

    def copies(self, asked: Asked, row: Encoded | None = None) -> Callable[[int], Batch]:
        """Batches of so many rows, all of them the example that is asked about, as the model takes them. (torch)"""
        from recurra.padding import fitted

        one = self.encode(asked.example) if row is None else row

        def batch(rows: int) -> Batch:
            found: Batch = fitted(self.batch([one] * rows), asked.model)
            return found

        return batch

    def answered(self, asked: Asked) -> Prediction:
        """The answer that is asked about, in detail. (torch, but of an exported model)"""
        return self.answer(asked.example, self.output_asked(asked))

    def output_asked(self, asked: Asked) -> Output:
        """The output behind the answer that is asked about. (torch, but of an exported model)"""
        if asked.exported:
            found: Output = asked.model.output(self.encode(asked.example))
            return found
        from recurra.models.together import Together

        if isinstance(asked.model, Together):
            pairs = ((task, asked._replace(model=model)) for task, model in asked.model.pairs)
            outputs = [task.to_combine(own.model, task.copies(own)(1))[0] for task, own in pairs]
            return self.combined(asked.example, outputs)
        [output] = self.predict(asked.model, self.copies(asked)(1), detail=True)
        return output

    # Examples that a report shows

    def portions(self, examples: Sequence[Example], count: int) -> list[tuple[Example, int]] | None:
        """Pieces of examples to show in their place, so many or more, with their lengths; None: whole ones are."""
        return None

    def shortened(self, example: Example, elements: int) -> Example:
        """A beginning of an example of about so many elements; the whole where it cannot be cut."""
        return example

    def extent(self, row: Encoded, output: Output) -> int:
        """Elements that are read or written, whichever are more: how large a picture of an answer is."""
        return int(self.lengths(Rows.of([row]))[0])

    def origin(self, example: Example) -> tuple[int, int]:
        """Which of the files that were read an example is from, counted from 0, and its line."""
        return cast(Any, example).file, cast(Any, example).line

    def judge(self, examples: Sequence[Example]) -> Callable[[Example, Prediction], Judgement | None]:
        """What tells right answers from wrong ones, given all examples; None where that cannot be told."""
        return lambda example, answer: None
