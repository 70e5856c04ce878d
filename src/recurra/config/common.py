"""What every task has: where the examples come from, and how the weights are found."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from recurra.config.fine_tuning import FineTuning
from recurra.config.forcing import Forcing
from recurra.config.share import FilePart, Shares
from recurra.frozen import dataclass
from recurra.settings import Part, SettingError, above_zero, at_least, section, setting

Idle: TypeAlias = dict[tuple[str, ...], str]
"""Settings that the others leave without effect, by their keys, each with the reason."""


@dataclass(frozen=True)
class Data:
    """Settings of the data files."""

    train: str | list[str] = setting("", "training file or files")
    valid: str | list[str] = setting(
        "", "validation file or files, for early stopping and model selection; or 10%: a share of train"
    )
    test: str | list[str] = setting("", "test file or files, scored once at the end; or 10%: a share of train")
    seed: int = setting(1, 'random seed of the split by valid = "10%" or test = "10%"; independent of training.seed')
    format: Part | None = setting(
        None, "conllu, conll, tsv, csv, jsonl, parquet, npz, fasttext or text; none: by the extension"
    )
    columns: list[str] | None = setting(None, "what each column of a table holds, or the names in its header")
    empty: Literal["refuse", "keep"] = setting("refuse", "what to do with empty examples")
    cache: bool = setting(True, "cache encoded examples on disk, so that the next run starts faster")
    processes: int | None = setting(
        None,
        "processes that count and encode the training files, which does not change the result; none: as many as cores "
        "for files of 64 MB and more, else one",
    )

    def __post_init__(self) -> None:
        at_least(0, "data", self, "seed")
        at_least(1, "data", self, "processes")
        if self.shares is None and self.seed != 1:
            raise SettingError(
                f"data.seed = {self.seed} has no effect: neither data.valid nor data.test is a share such as 10%. "
                f"Leave it out.",
                ("data", "seed"),
            )

    @property
    def shares(self) -> Shares | None:
        """How much of the training files is held out; None where nothing is."""
        return Shares.of(self.valid, self.test, self.seed)

    def files(self, which: str) -> list[str]:
        """The files of train, valid or test, as a list. Where a share is held out, each is a part of a training file.

        >>> Data(train="a.tsv").files("train"), Data().files("valid"), Data(train="a.tsv", valid="10%").files("valid")
        (['a.tsv'], [], ['a.tsv'])
        """
        shares = self.shares
        is_part = shares is not None and shares.of_part(which) > 0
        given = self.train if is_part else getattr(self, which)
        listed = [given] if isinstance(given, str) and given else list(given)
        return listed if shares is None or not is_part else [FilePart(path, which, shares) for path in listed]


LOGGERS = ("csv", "mlflow", "wandb")
"""The names of training.loggers."""


@dataclass(frozen=True)
class Training:
    """Settings of training."""

    epochs: int | None = setting(None, "maximum number of epochs")
    steps: int | None = setting(None, "maximum number of updates")
    minutes: float | None = setting(
        None, "maximum time in minutes, including validation; such a run is not exactly reproducible"
    )
    batch_tokens: int = setting(1000, "maximum number of elements in a batch, including padding")
    batch_size: int | None = setting(None, "number of rows in a batch, instead of batch_tokens")
    accumulate: int = setting(1, "gradient accumulation: batches per update")
    loss: Literal["mean", "sequence", "sum"] = setting(
        "mean",
        "what an update makes small: the mean loss of all labels (tokens), the summed loss of each sequence, averaged "
        "over sequences, or the sum of all; gradients, and with them clip, grow accordingly",
    )
    optimizer: Part = setting("adam", "adam, adamw, sgd, asgd, …, or a table with its options")
    learning_rate: float = setting(2e-3, "maximum learning rate")
    schedule: Part = setting(
        "cosine", "constant, linear, cosine, inverse_sqrt, plateau or halving, or a table with its options"
    )
    warmup: int = setting(
        100, "updates over which the learning rate rises to its maximum; at most a tenth of all updates"
    )
    clip: float | None = setting(5.0, "gradient clipping: maximum norm")
    clip_value: float | None = setting(None, "gradient clipping: maximum absolute value")
    average: Part | None = setting(
        None, "weight averaging: ema, mean, triggered or checkpoints, or a table with its options"
    )
    precision: Literal["float32", "float64", "tf32", "bfloat16", "float16"] = setting(
        "float32",
        "numeric precision; with bfloat16 and float16, weights stay float32; tf32: float32, but a GPU multiplies with "
        "10 bits after the point, several times as fast",
    )
    device: str = setting("auto", "cpu, cuda, cuda:1, …; auto: a GPU if there is one")
    threads: int | None = setting(None, "threads for torch on the CPU; none: all cores")
    deterministic: bool = setting(True, "use deterministic algorithms, so that a run is reproducible on a GPU too")
    replay: bool = setting(
        True, "on a GPU, record the steps of a batch size as a CUDA graph when it comes again, and replay it"
    )
    seed: int = setting(1, "random seed")
    patience: int | None = setting(None, "early stopping: validations without improvement before training stops")
    validate: int | None = setting(None, "updates between validations; none: once per epoch")
    save_minutes: float = setting(5.0, "minutes between checkpoints; one is also written at each validation")
    loggers: list[str] = setting([], "where metrics go besides metrics.jsonl and TensorBoard: csv, mlflow and wandb")
    fine_tuning: FineTuning = section(FineTuning, "training that starts from another run")

    def __post_init__(self) -> None:
        at_least(1, "training", self, "epochs", "steps", "batch_tokens", "batch_size", "accumulate", "threads")
        at_least(1, "training", self, "patience", "validate")
        at_least(0, "training", self, "warmup", "seed", "save_minutes")
        above_zero("training", self, "learning_rate", "clip", "clip_value", "minutes")
        self._check_limits()
        for name in self.loggers:
            if name not in LOGGERS:
                raise SettingError(
                    f"training.loggers: {name!r} is not known: choose from {', '.join(LOGGERS)}. TensorBoard needs no "
                    "name: it is written where it is installed.",
                    ("training", "loggers"),
                )

    @property
    def has_limit(self) -> bool:
        """Whether anything says when training ends."""
        return self.epochs is not None or self.steps is not None or self.minutes is not None

    def _check_limits(self) -> None:
        if not self.has_limit:
            raise SettingError(
                "training has no limit: set training.epochs, training.steps or training.minutes.",
                ("training", "epochs"),
            )


@dataclass(frozen=True)
class ForcedTraining(Training):
    """Settings of training where a model reads what it should have said before, or what it said itself."""

    forcing: Part | float = setting(
        1.0,
        "teacher forcing: probability that the model reads the right token or value instead of its own; or constant, "
        "linear, exponential or inverse_sigmoid, or a table with options",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        Forcing.of(self.forcing)  # refuses what it cannot use


def idle_forcing(training: ForcedTraining) -> Idle:
    """Options of teacher forcing that is never anything else."""
    forcing = Forcing.of(training.forcing)
    if not forcing.is_always or forcing == Forcing():
        return {}
    return {("training", "forcing"): "with probability 1 the model never reads its own outputs"}


@dataclass(frozen=True)
class Text:
    """Settings of tokenization and vocabulary."""

    column: str | None = setting(
        None,
        'column with the text, for short data.text = "…" (data.source, data.target); none: that of this name, or the '
        "only one left",
    )
    tokens: Part = setting(
        "words",
        "tokenizer: characters, words, symbols or subwords, or a table with options; auto (for pairs): chosen "
        "from the data",
    )
    lowercase: bool = setting(False, "convert text to lower case")
    min_count: int = setting(1, "tokens that occur less often in training become <unk>")
    max_size: int | None = setting(None, "maximum vocabulary size; the most frequent tokens are kept")

    def check(self, where: str) -> None:
        """Refuse what a section of this name, such as data.text, cannot hold."""
        at_least(1, where, self, "min_count", "max_size")


MEMORY_CELLS = ("ntm", "dnc")
"""Cells with an external memory."""


def has_memory(cell: object) -> bool:
    """Whether a cell, as settings name it, has an external memory.

    >>> has_memory("lstm"), has_memory({"name": "ntm", "rows": 8})
    (False, True)
    """
    return (cell.get("name") if isinstance(cell, Mapping) else cell) in MEMORY_CELLS


MOST_LAYERS = 1000
"""No recurrent network in use has a tenth as many; to build a million takes hours and all memory."""


def check_layers(hidden: int | list[int], layers: int | None, where: str = "model") -> None:
    """Refuse a stack without layers, layers without width, or two numbers of layers."""
    widths = hidden if isinstance(hidden, list) else [hidden]
    if not widths or min(widths) < 1:
        raise SettingError(
            f"{where}.hidden must be at least 1, for one layer or each of several, but is {hidden}.",
            (*where.split("."), "hidden"),
        )
    if max(layers or 1, len(widths)) > MOST_LAYERS:
        raise SettingError(
            f"{where}.layers must be at most {MOST_LAYERS:,}, but is {max(layers or 1, len(widths)):,}.",
            (*where.split("."), "layers" if (layers or 1) > MOST_LAYERS else "hidden"),
        )
    if isinstance(hidden, list) and layers not in (None, len(widths)):
        raise SettingError(
            f"{where}.hidden = {hidden} gives {len(widths)} layers, but {where}.layers is {layers}. "
            f"Leave {where}.layers out.",
            (*where.split("."), "layers"),
        )


def idle_section(section: object, keys: tuple[str, ...], why: str, *, but: tuple[str, ...] = ()) -> Idle:
    """All settings of a section, but some, as settings that have no effect."""
    names = [field.name for field in dataclasses.fields(section)]  # type: ignore[arg-type]  # a dataclass
    return {(*keys, name): why for name in names if name not in but}


def idle_of_words(*, where: tuple[str, ...], why: str) -> Idle:
    """Settings of a model that reads no words, and of the words in this section of the data."""
    model = ("embedding", "word_dropout")
    data = ("tokens", "lowercase", "min_count", "max_size")
    return {("model", name): why for name in model} | {(*where, name): why for name in data}


def idle_without_validation(data: Data) -> Idle:
    """What waits for a better score of validation, where there is none."""
    return {} if data.valid else {("training", "patience"): "there is no validation data (data.valid)"}


def idle_batch_tokens(training: Training) -> Idle:
    """The limit of a batch in elements, where there is one in rows."""
    if training.batch_size is None:
        return {}
    return {("training", "batch_tokens"): f"training.batch_size = {training.batch_size} limits a batch in its place"}


def idle_of_stack(hidden: int | list[int], layers: int | None, *, bidirectional: bool | None = None) -> Idle:
    """Settings of a stack that have no effect, and why; None as bidirectional: there is no such setting."""
    idle: Idle = {}
    if bidirectional is False:
        idle["model", "merge"] = "model.bidirectional = false leaves only one direction"
    if (len(hidden) if isinstance(hidden, list) else layers or 1) == 1:
        idle |= {("model", name): "there is only one layer" for name in ("skip", "mix")}
    return idle


def check_direction(direction: str, *, bidirectional: bool) -> None:
    """Refuse one direction where both are read."""
    if direction == "backward" and bidirectional:
        raise SettingError(
            "model.direction = 'backward' reads from the end only, but model.bidirectional = true reads both ways: set "
            "model.bidirectional = false, or leave model.direction out.",
            ("model", "direction"),
        )


def training_differs(settings: Any, *parts: Any) -> list[str]:
    """Why the loss in training is not that of validation: what is on in training alone, in clauses of a sentence.

    `parts` are sections of the model, beside itself, that are in use. A user's own task need not have any of these.

    >>> from types import SimpleNamespace as Settings
    >>> training_differs(Settings(model=Settings(dropout=0.5, label_smoothing=0.1)))
    ['dropout and label smoothing are on in training only']
    """
    model, training = getattr(settings, "model", None), getattr(settings, "training", None)
    augmentation = getattr(settings, "augmentation", None)
    set_here = {name: value for part in (model, *parts) for name, value in _values(part).items() if value}
    drops = any("dropout" in name or name == "weight_drop" for name in set_here)
    wraps = any(isinstance(value, dict) and value.get("wrap") for value in set_here.values())
    forcing = Forcing.of(getattr(training, "forcing", 1.0))
    is_on = {
        "dropout": drops or wraps,
        "label smoothing": "label_smoothing" in set_here,
        "regularization of activations": any(name.endswith("_regularization") for name in set_here),
        "augmentation": any(_values(augmentation).values()),
        "scheduled sampling": not forcing.is_always,
        "the term of R-Drop": bool(getattr(training, "r_drop", 0)),
        "the doubly stochastic term": bool(getattr(training, "doubly_stochastic", 0)),
    }
    *others, last = [name for name, value in is_on.items() if value] or [""]
    named = f"{', '.join(others)} and {last}" if others else last
    clauses = [f"{named} {'are' if others else 'is'} on in training only"] if named else []
    if getattr(training, "average", None) is not None:
        clauses.append("validation uses an average of the weights")
    return clauses


def _values(section: object) -> dict[str, Any]:
    values: dict[str, Any] = getattr(section, "__dict__", {})
    return values


def one_batch_size(training: Training, usual: int = 1000) -> None:
    """Refuse a batch_tokens that was given for nothing: beside batch_size it has no effect."""
    if training.batch_size is not None and training.batch_tokens != usual:
        raise SettingError(
            f"training.batch_tokens = {training.batch_tokens} has no effect beside training.batch_size = "
            f"{training.batch_size}: leave it out, or set training.batch_size = none.",
            ("training", "batch_tokens"),
        )
