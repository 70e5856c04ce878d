"""Settings of forecasting: sequences of vectors, each step predicted from those before it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from recurra.config.common import Data, Training, check_layers, idle_of_stack
from recurra.settings import Part, SettingError, at_least, rates, section, setting


@dataclass(frozen=True)
class ForecastingData(Data):
    """Where sequences of vectors come from: one a row, or a table with a row for each step."""

    frames: str | None = setting(None, "column with a whole sequence, a list of frames; none: `frames`, if there")
    time: str | None = setting(
        None, "column by which the rows of a table are in order; none: `time` or `date`, if there"
    )
    series: str | None = setting(None, "column that says which series a row belongs to; none: `series`, if there")
    values: list[str] | None = setting(None, "columns to predict; none: all others that hold numbers")
    missing: Literal["refuse", "previous"] = setting(
        "refuse", "previous: in place of a missing value the one before is read, and nothing is scored there"
    )
    difference: bool = setting(False, "read and predict the change from step to step: for values with a trend")
    window: int | None = setting(
        None, "steps read together in training; none: 128 of a table, whole sequences of frames"
    )
    overlap: int | None = setting(None, "steps that one window shares with the next; none: half of them")

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(2, "data", self, "window")
        at_least(0, "data", self, "overlap")
        if self.overlap is not None and self.window is not None and self.overlap > self.window - 1:
            raise SettingError(
                f"data.overlap = {self.overlap} must be below data.window = {self.window}: otherwise windows would "
                f"not advance.",
                ("data", "overlap"),
            )
        of_a_table = [name for name in ("time", "series", "values") if getattr(self, name) is not None]
        if self.frames is not None and of_a_table:
            raise SettingError(
                f"data.frames and data.{of_a_table[0]} cannot be used together: a row is either a whole sequence or "
                f"one step of a table.",
                ("data", of_a_table[0]),
            )
        if self.frames is not None and self.difference:
            raise SettingError(
                "data.difference is for the series of a table: the first frame of data.frames, which is predicted too, "
                "has none before it.",
                ("data", "difference"),
            )


@dataclass(frozen=True)
class ForecastingModel:
    """The forecaster."""

    embedding: int = setting(0, "size of a linear layer between the values and the network; 0: none")
    cell: Part = setting("lstm", "any cell of `recurra cells`, yours as package.module:Class, or a table with options")
    hidden: int | list[int] = setting(128, "size of the state; or one per layer")
    layers: int | None = setting(None, "layers, where hidden is one number")
    bidirectional: bool = setting(False, "refused: what is to be predicted must not be read")
    skip: Literal["none", "residual", "highway"] = setting("none", "a way past the second layer and those above it")
    dropout: float = setting(0.1, "of the linear layer, between layers and of outputs; one mask for a whole row")
    input_dropout: float = setting(0.0, "share of single input values that are set to 0, in training")
    output: Part | None = setting(
        None, "gaussian, squared_error or bernoulli; none: bernoulli where all values are 0 or 1, else gaussian"
    )
    engine: str = setting("auto", "single, vendor, planned, scan or loop; auto takes the fastest that can")

    def __post_init__(self) -> None:
        at_least(0, "model", self, "embedding")
        at_least(1, "model", self, "layers")
        rates("model", self, "dropout", "input_dropout")
        if self.bidirectional:
            raise SettingError(
                "model.bidirectional must be false: a backward pass over time would see the values to be predicted.",
                ("model", "bidirectional"),
            )
        check_layers(self.hidden, self.layers)


@dataclass(frozen=True)
class ForecastingDecoding:
    """How a sequence is continued."""

    horizon: int = setting(12, "steps ahead, each fed back to predict the next")
    paths: int = setting(0, "continuations to draw; their median and 90 % are the answer; 0: the mean is fed back")
    seed: int = setting(1, "of what is drawn")

    def __post_init__(self) -> None:
        at_least(1, "decoding", self, "horizon")
        at_least(0, "decoding", self, "paths", "seed")


@dataclass(frozen=True)
class ForecastingEvaluation:
    """How forecasts are scored."""

    context: int = setting(1, "steps at the beginning of a series that are read and not scored; frames are all scored")
    season: int = setting(0, "steps after which the seasonal baseline repeats itself; 0: there is none")
    stride: int = setting(1, "a forecast begins at every so-many-th step")

    def __post_init__(self) -> None:
        at_least(1, "evaluation", self, "context", "stride")
        at_least(0, "evaluation", self, "season")


@dataclass(frozen=True)
class ForecastingSettings:
    """All settings of forecasting."""

    task: str = setting("forecasting", "what kind of problem this is")
    data: ForecastingData = section(ForecastingData, "where the examples come from")
    model: ForecastingModel = section(ForecastingModel, "the network")
    training: Training = dataclasses.field(
        default_factory=lambda: Training(
            epochs=100, batch_tokens=500, learning_rate=5e-3, clip=1.0, average={"name": "ema", "decay": 0.99}
        ),
        metadata={"about": "how the weights are found"},
    )
    decoding: ForecastingDecoding = section(ForecastingDecoding, "how a sequence is continued")
    evaluation: ForecastingEvaluation = section(ForecastingEvaluation, "how forecasts are scored")

    def __post_init__(self) -> None:
        known = ("forecasting", "language_model")  # a language whose tokens are vectors
        if self.task not in known and ":" not in self.task:  # one of your own may take these settings
            raise SettingError(f"task = '{self.task}', but these are the settings of forecasting.", ("task",))

    def without_effect(self) -> dict[tuple[str, ...], str]:
        """Settings that the others leave without effect, and why."""
        return idle_of_stack(self.model.hidden, self.model.layers)
