"""Settings of forecasting: sequences of vectors, each step predicted from those before it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, Self

from recurra.config.common import (
    Data,
    ForcedTraining,
    Idle,
    check_layers,
    idle_batch_tokens,
    idle_forcing,
    idle_of_stack,
    idle_without_validation,
)
from recurra.config.forcing import Forcing
from recurra.config.frequency import IRREGULAR, Frequency, checked_zone
from recurra.config.transformer import (
    USUAL_CELL,
    CausalTransformerModel,
    check_no_cells,
    check_transformer,
    idle_transformer,
    suited,
)
from recurra.config.writer_model import look_of
from recurra.frozen import dataclass
from recurra.settings import Part, SettingError, about, at_least, name_of, rates, section, setting
from recurra.toml import shown

Calendar = Literal["hour", "weekday", "day", "day_of_year", "week", "month", "quarter", "holiday"]

COUNTS = ("poisson", "negative_binomial")
"""Outputs for whole numbers from 0."""

POSITIVE = ("log_normal",)
"""Outputs for numbers above 0."""

POINTS = ("squared_error",)
"""Outputs without quantiles, so that nothing can be drawn."""

AT_ONCE = ("direct", "attention")
"""Values of model.ahead by which all steps of a horizon are predicted at once."""

USUAL_EPOCHS, USUAL_UPDATES, USUAL_PATIENCE = 100, 1000, 10
"""How long a forecaster is trained; the last two where it starts from a fit of its autoregression."""

WITHOUT_LOG_P = (*POINTS, "quantiles")
"""Outputs whose loss is not −log p."""


@dataclass(frozen=True)
class ForecastingData(Data):
    """Where sequences of vectors come from: one a row, or a table with a row for each step."""

    frames: str | None = setting(None, "column with a whole sequence, a list of frames; none: `frames`, if it exists")
    time: str | None = setting(
        None,
        "column with the time, by which the rows of a table are ordered; none: `time`, `date`, `ds`, … if it exists",
    )
    series: str | None = setting(
        None, "column with the name of the series that a row belongs to; none: `series`, `unique_id`, … if it exists"
    )
    values: list[str] | None = setting(None, "columns to predict; none: all other columns with numbers")
    layout: Literal["long", "wide"] = setting(
        "long", "long: columns are values of one step; wide: each column of data.values is a series of its own"
    )
    frequency: str | float | None = setting(
        None,
        "step between times: 30s, 15min, 1h, 1d, 1b (weekdays), 1w, 1mo, 1q, 1y, a number, or irregular (rows are "
        "counted); none: found in the training data",
    )
    timezone: str | None = setting(
        None, "time zone of the times, such as Europe/Istanbul; none: as written, without summer time"
    )
    future: list[str] = setting([], "columns known ahead, such as prices: the table has rows for coming steps")
    past: list[str] = setting([], "columns known only up to now, which help to predict")
    static: list[str] = setting([], "columns that are the same for all steps of a series")
    categories: list[str] | None = setting(
        None, "columns of future, past and static whose cells are names; none: those that hold no numbers"
    )
    calendar: list[Calendar] = setting(
        [], "parts of the date to read: hour, weekday, day, day_of_year, week, month, quarter, holiday"
    )
    holidays: str | None = setting(None, "file with the dates of holidays, one a line, for calendar = holiday")
    elapsed: bool = setting(False, "read the time since the last step, for irregular times")
    scaling: Literal["columns", "series"] | None = setting(
        None,
        "columns: by the mean and spread of a column over all series; series: of each series by itself; none: series "
        "if there are several",
    )
    missing: Literal["refuse", "previous"] = setting(
        "previous", "previous: fill a missing value with the previous one, and do not score it; refuse: stop"
    )
    difference: bool = setting(
        False, "model the difference from step to step instead of the value, for series with a trend"
    )
    log: bool | None = setting(
        None,
        "model the logarithm of the values; none: if all are above 0, or 0, and it makes the changes of a season more "
        "even; with model.ahead = recursive false",
    )
    season: int | None = setting(
        None,
        "steps after which series repeat themselves, 1: they do not; none: by the step between times (24 of hours, 7 "
        "of days, 12 of months, …), else found in the training data",
    )
    origins: int | None = setting(
        20_000,
        "with model.ahead = direct or attention, steps in an epoch from which forecasts start, drawn anew for each; "
        "none: all",
    )
    window: int | None = setting(
        None,
        "window length in training, in steps; none: 128 for a table, whole sequences for frames; with model.ahead = "
        "direct or attention, the steps before an origin that a window has, none: model.lags",
    )
    overlap: int | None = setting(None, "overlap of consecutive windows, in steps; none: half a window")
    drop_last: int = setting(0, "steps at the end of each series that are not read")

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(2, "data", self, "window")
        at_least(1, "data", self, "season", "origins")
        at_least(0, "data", self, "overlap", "drop_last")
        if self.overlap is not None and self.window is not None and self.overlap > self.window - 1:
            raise SettingError(
                f"data.overlap = {self.overlap} must be below data.window = {self.window}: otherwise windows would "
                f"not advance.",
                ("data", "overlap"),
            )
        of_a_table = [name for name in ("time", "series", "values") if getattr(self, name) is not None]
        of_a_table += [
            name
            for name in ("future", "past", "static", "calendar", "elapsed", "frequency", "timezone", "scaling")
            if getattr(self, name)
        ]
        self._check_covariates()
        if self.frames is not None and of_a_table:
            raise SettingError(
                f"data.frames and data.{of_a_table[0]} cannot be used together: a row is either a whole sequence or "
                f"one step of a table.",
                ("data", of_a_table[0]),
            )
        if self.frames is not None and self.drop_last:
            raise SettingError(
                "data.drop_last works only for series in a table, not with data.frames. Leave it out.",
                ("data", "drop_last"),
            )
        if self.frames is not None and self.difference:
            raise SettingError(
                "data.difference works only for series in a table, not with data.frames: the first frame has no "
                "earlier value to subtract. Leave it out.",
                ("data", "difference"),
            )

    def _check_covariates(self) -> None:
        roles = {name: getattr(self, name) or [] for name in ("values", "future", "past", "static")}
        named: dict[str, str] = {}
        for role, columns in roles.items():
            for column in columns:
                if column in named:
                    twice = f"data.{role} names '{column}' twice" if named[column] == role else None
                    raise SettingError(
                        (twice or f"'{column}' is named by data.{named[column]} and by data.{role}")
                        + ": a column has one role. Leave it out of one of them.",
                        ("data", role),
                    )
                named[column] = role
        for column in self.categories or ():
            if column not in named or named[column] == "values":
                raise SettingError(
                    f"data.categories names '{column}', which is not in data.future, data.past or data.static. Name it "
                    "there too.",
                    ("data", "categories"),
                )
        if self.frequency is not None and self.frequency != IRREGULAR:
            with about("data", "frequency"):
                Frequency.of(str(self.frequency))
        if self.timezone is not None:
            with about("data", "timezone"):
                checked_zone(self.timezone)
        if ("holiday" in self.calendar) != (self.holidays is not None):
            raise SettingError(
                "data.calendar names holiday, so data.holidays must name the file of their dates."
                if self.holidays is None
                else f"data.holidays = '{self.holidays}' has no effect: data.calendar does not name holiday. Add it.",
                ("data", "holidays"),
            )
        if len({*self.calendar}) < len(self.calendar):
            raise SettingError("data.calendar names a part of the date twice.", ("data", "calendar"))
        if self.layout == "wide" and (self.series is not None or self.static):
            other = "series" if self.series is not None else "static"
            raise SettingError(
                f'data.layout = "wide" makes each column a series, so data.{other} has no meaning. Leave it out.',
                ("data", other),
            )

    @property
    def predicted(self) -> list[str]:
        """What the values of one step are called; of a wide table each step has one, whichever column it is from."""
        return ["value"] if self.layout == "wide" else list(self.values or [])

    @property
    def covariates(self) -> list[str]:
        """Columns that are read and not predicted."""
        return [*self.future, *self.past, *self.static]

    @property
    def words(self) -> list[str]:
        """Columns of names among them."""
        return [column for column in self.covariates if column in (self.categories or ())]

    @property
    def future_numbers(self) -> list[str]:
        return [column for column in self.future if column not in self.words]

    @property
    def past_numbers(self) -> list[str]:
        return [column for column in self.past if column not in self.words]

    @property
    def static_numbers(self) -> list[str]:
        return [column for column in self.static if column not in self.words]

    @property
    def static_words(self) -> list[str]:
        return [column for column in self.static if column in self.words]

    @property
    def words_by_role(self) -> dict[str, list[str]]:
        """The columns of names that change from step to step."""
        return {role: [column for column in getattr(self, role) if column in self.words] for role in ("future", "past")}

    @property
    def has_coming(self) -> bool:
        """Whether rows at the end of a series without values are those of coming steps."""
        return bool(self.future) or self.elapsed

    @property
    def has_future(self) -> bool:
        """Whether anything is known ahead."""
        return self.has_coming or bool(self.calendar)


@dataclass(frozen=True)
class AheadDecoder:
    """The decoder of a forecaster that looks back."""

    cell: Part | None = setting(None, "cell of the decoder of ahead = attention; none: model.cell")
    hidden: int = setting(64, "hidden size of the decoder")
    layers: int = setting(1, "number of layers of the decoder")

    def __post_init__(self) -> None:
        at_least(1, "model.decoder", self, "hidden", "layers")


@dataclass(frozen=True)
class ForecastingModel:
    """The forecaster."""

    ahead: Literal["direct", "attention", "recursive"] | None = setting(
        None,
        "direct: all steps of the horizon at once, added to an autoregression; attention: the same by a decoder that "
        "looks back at the past; recursive: each step is fed back; none: direct for tables of real values",
    )
    lags: int | None = setting(
        None,
        "steps that the autoregression of ahead = direct or attention reads, and that are looked at; none: seven "
        "seasons, or two horizons if there is no season",
    )
    horizon: int | None = setting(
        None, "steps that ahead = direct or attention predicts at once; none: decoding.horizon"
    )
    attention: Part = setting(
        "scaled_dot",
        "how the decoder of ahead = attention compares its state with the past: additive, bilinear, dot, scaled_dot or "
        "projected_dot, or a table with options",
    )
    wiring: Literal["outside", "inside", "feeding", "conditional"] = setting(
        "outside", "where attention enters that decoder; all but outside train step by step"
    )
    decoder: AheadDecoder = section(AheadDecoder, "the decoder of ahead = attention")
    encoder: Literal["rnn", "transformer"] = setting(
        "rnn", "what reads the steps so far: a recurrent network, or a Transformer (self-attention)"
    )
    embedding: int = setting(0, "size of a linear input layer; 0: no such layer")
    cell: Part = setting(
        "lstm", "any cell listed by `recurra cells`, your own as package.module:Class, or a table with options"
    )
    hidden: int | list[int] = setting(128, "hidden size, or width of a Transformer; a list sets one per layer")
    layers: int | None = setting(None, "number of layers, if hidden is one number; none: 1 (Transformer 2)")
    direction: Literal["forward", "backward"] = setting(
        "forward", "backward: read a sequence from its end and predict the steps before it"
    )
    bidirectional: bool = setting(False, "must be false: the model must not see the values it predicts")
    mix: Literal["last", "concat", "mean", "learned"] = setting(
        "last", "output of the stack: its last layer, or the concat, mean or learned weighted mean of all layers"
    )
    skip: Literal["none", "residual", "highway"] = setting(
        "none", "skip connections around the second and later layers"
    )
    transformer: CausalTransformerModel = section(CausalTransformerModel, "the layers of encoder = transformer")
    dropout: float = setting(0.1, "dropout on the input layer, between layers and on the output; one mask per row")
    input_dropout: float = setting(0.0, "fraction of input values that are set to 0 in training")
    output: Part | None = setting(
        None,
        "gaussian, student_t, mixture, quantiles or squared_error; of positive values log_normal, of counts "
        "negative_binomial or poisson; bernoulli; none: bernoulli if all values are 0 or 1, else quantiles (gaussian "
        "with ahead = recursive)",
    )
    engine: str = setting(
        "auto", "single, vendor, planned, scan or loop; auto selects the fastest that supports the cell"
    )

    def __post_init__(self) -> None:
        at_least(0, "model", self, "embedding")
        at_least(1, "model", self, "layers", "lags", "horizon")
        rates("model", self, "dropout", "input_dropout")
        if self.bidirectional:
            raise SettingError(
                "model.bidirectional must be false: a backward pass over time would see the values to be predicted.",
                ("model", "bidirectional"),
            )
        check_layers(self.hidden, self.layers)
        self._check_attention()
        if self.encoder != "transformer":
            idle_transformer(self.transformer, self.encoder)
            return
        check_no_cells(
            self,
            {"cell": USUAL_CELL, "mix": ("last",), "skip": ("none",), "engine": ("auto",)},
            "model.encoder = 'transformer' has no cells",
        )
        own = self.transformer
        check_transformer("transformer", own.heads, own.feed_forward, self.widths, "model.transformer", "model.hidden")

    def _check_attention(self) -> None:
        """Refuse what is said of attention where there is none, and looks that this loss does not train."""
        if self.ahead == "attention":
            if look_of(self.attention) == "hard":
                raise SettingError(
                    "model.attention has look = 'hard', which needs a loss of its own that forecasting does not have. "
                    "Leave the look out.",
                    ("model", "attention"),
                )
            return
        usual = {"attention": "scaled_dot", "wiring": "outside"}
        given: list[tuple[str, ...]] = [
            ("model", name) for name, value in usual.items() if getattr(self, name) != value
        ]
        given += [
            ("model", "decoder", field.name)
            for field in dataclasses.fields(self.decoder)
            if getattr(self.decoder, field.name) != field.default
        ]
        if given:
            path = given[0]
            value = getattr(self if len(path) == 2 else self.decoder, path[-1])
            raise SettingError(
                f"{'.'.join(path)} = {shown(value)} has no effect: it belongs to model.ahead = 'attention'. Set that "
                "too, or leave it out.",
                path,
            )

    @property
    def is_at_once(self) -> bool:
        """Whether all steps of a horizon are predicted at once."""
        return self.ahead in AT_ONCE

    @property
    def widths(self) -> list[int]:
        """The size of each layer of a Transformer."""
        return self.hidden if isinstance(self.hidden, list) else [self.hidden] * (self.layers or 2)


@dataclass(frozen=True)
class ForecastingDecoding:
    """How a sequence is continued."""

    horizon: int = setting(12, "forecast horizon in steps")
    paths: int = setting(
        0, "number of sampled paths; the answer is their median and 90 % interval; 0: feed the mean back"
    )
    coverage: float | None = setting(
        None,
        "share of values that intervals should hold, such as 0.9: their width is corrected by the errors on the "
        "validation data; none: 0.9 of the sampled paths, without a correction",
    )
    adaptation: float = setting(
        0.05,
        "with decoding.coverage, how fast intervals follow the errors of a series after the training data: the share "
        "of the usual spread of errors by which one value that lies outside moves them; 0: not at all",
    )
    seed: int = setting(1, "random seed")

    def __post_init__(self) -> None:
        at_least(1, "decoding", self, "horizon")
        rates("decoding", self, "adaptation")
        at_least(0, "decoding", self, "paths", "seed")
        if self.coverage is not None and not 0 < self.coverage < 1:
            raise SettingError(
                f"decoding.coverage must be between 0 and 1, such as 0.9, but is {self.coverage:g}.",
                ("decoding", "coverage"),
            )


@dataclass(frozen=True)
class ForecastingEvaluation:
    """How forecasts are scored."""

    context: int = setting(1, "steps at the start of a series that are not scored; frames are all scored")
    season: int | None = setting(
        None,
        "season length in steps, for the naive seasonal baseline and the scale of mase; 0: no baseline, a scale of 1; "
        "none: data.season, or 0 if that is 1",
    )
    stride: int = setting(1, "steps between forecast origins")
    paths: int = setting(
        0, "sampled paths from each origin, by which intervals over the horizon are scored (crps, coverage); 0: none"
    )
    score: Literal["mae", "scaled_mae", "rmse", "mase", "rmsse", "smape", "mape", "crps"] | None = setting(
        None,
        "the score that training goes by; none: mase of several series, else mae, or scaled_mae of several columns",
    )

    def __post_init__(self) -> None:
        at_least(1, "evaluation", self, "context", "stride")
        at_least(0, "evaluation", self, "season", "paths")
        if self.score == "crps" and not self.paths:
            raise SettingError(
                "evaluation.score = 'crps' needs sampled paths: set evaluation.paths, such as 100.",
                ("evaluation", "score"),
            )


@dataclass(frozen=True)
class ForecastingTraining(ForcedTraining):
    """How a forecaster is trained."""

    epochs: int | None = setting(
        None,
        "maximum number of epochs; if neither epochs, steps nor minutes are set: 100, with model.ahead = direct or "
        "attention at most 1,000 updates, and patience = 10 if there is validation data",
    )

    def _check_limits(self) -> None:
        """How long a model without any limit is trained is found with the rest of what is left open."""

    def limited(self, *, at_once: bool, validated: bool) -> Self:
        """With the usual limits, where none is set; patience needs validation data."""
        if self.has_limit:
            return self
        if not at_once:
            return dataclasses.replace(self, epochs=USUAL_EPOCHS)
        patience = USUAL_PATIENCE if validated and self.patience is None else self.patience
        return dataclasses.replace(self, epochs=USUAL_EPOCHS, steps=USUAL_UPDATES, patience=patience)


@dataclass(frozen=True)
class ForecastingSettings:
    """All settings of forecasting."""

    task: str = setting("forecasting", "the task")
    data: ForecastingData = section(ForecastingData, "the data")
    model: ForecastingModel = section(ForecastingModel, "the network")
    training: ForecastingTraining = dataclasses.field(
        default_factory=lambda: ForecastingTraining(
            batch_tokens=500, learning_rate=5e-3, clip=1.0, average={"name": "ema", "decay": 0.99}
        ),
        metadata={"about": "training"},
    )
    decoding: ForecastingDecoding = section(ForecastingDecoding, "how forecasts are made")
    evaluation: ForecastingEvaluation = section(ForecastingEvaluation, "how forecasts are scored")

    @classmethod
    def usual(cls, table: Mapping[str, Any]) -> Self:
        """What holds where a table says nothing."""
        settings, model = cls(), table.get("model")
        asked = model.get("encoder") if isinstance(model, Mapping) else None
        return dataclasses.replace(settings, training=suited(settings.training, asked))

    def __post_init__(self) -> None:
        known = ("forecasting", "language_model")  # a language whose tokens are vectors
        if self.task not in known and ":" not in self.task:  # one of your own may take these settings
            raise SettingError(f"task = '{self.task}', but these are the settings of forecasting.", ("task",))
        data = self.data
        if self.model.direction == "backward" and (data.covariates or data.calendar or data.elapsed):
            raise SettingError(
                "model.direction = 'backward' reads no covariates: leave data.future, data.past, data.static, "
                "data.calendar and data.elapsed out.",
                ("model", "direction"),
            )
        is_drawn = Forcing.of(self.training.forcing).replacement == "sampled"
        if is_drawn and self.model.output is not None and name_of(self.model.output) == "squared_error":
            raise SettingError(
                "training.forcing with replacement = 'sampled' draws the values that are read, but model.output = "
                "'squared_error' predicts no distribution: set replacement = 'greedy', or model.output = 'gaussian'.",
                ("training", "forcing"),
            )

        output = None if self.model.output is None else name_of(self.model.output)
        if self.data.difference and output in (*COUNTS, *POSITIVE):
            raise SettingError(
                f"data.difference = true models changes, which may be negative, but model.output = '{output}' is for "
                f"{'counts' if output in COUNTS else 'positive values'}. Use 'gaussian', or data.difference = false.",
                ("data", "difference"),
            )

        if self.model.is_at_once:
            self._check_at_once(output)

    def _check_at_once(self, output: str | None) -> None:
        """Refuse what belongs to steps that are fed back, and logarithms of what is not shifted."""
        if self.data.log and output in (*COUNTS, *POSITIVE):
            raise SettingError(
                f"data.log = true predicts logarithms, but model.output = '{output}' is a density of "
                f"{'counts' if output in COUNTS else 'positive values'} themselves. Leave data.log out.",
                ("data", "log"),
            )
        given = {
            ("data", "frames"): self.data.frames is not None,
            ("data", "difference"): self.data.difference,
            ("model", "direction"): self.model.direction == "backward",
            ("model", "output"): output == "bernoulli",
            ("training", "forcing"): Forcing.of(self.training.forcing) != Forcing(),
            ("decoding", "paths"): self.decoding.paths > 0,
            ("evaluation", "paths"): self.evaluation.paths > 0,
        }
        for (part, name), is_given in given.items():
            if is_given:
                raise SettingError(
                    f"model.ahead = '{self.model.ahead}' predicts all steps at once, which {part}.{name} = "
                    f"{getattr(getattr(self, part), name)!r} does not go with. Leave it out, or train with "
                    "model.ahead = 'recursive'.",
                    (part, name),
                )

    @property
    def season(self) -> int:
        """The season of the rules that forecasts are compared with; 0: none."""
        if self.evaluation.season is not None:
            return self.evaluation.season
        return self.data.season if self.data.season is not None and self.data.season > 1 else 0

    def without_effect(self) -> Idle:
        """Settings that the others leave without effect, and why."""
        data, is_binary = self.data, self.model.output is not None and name_of(self.model.output) == "bernoulli"
        idle = idle_batch_tokens(self.training) | idle_forcing(self.training)
        if self.model.encoder == "rnn":
            idle |= idle_of_stack(self.model.hidden, self.model.layers)
        idle |= idle_without_validation(data)
        if self.decoding.coverage is None:
            idle["decoding", "adaptation"] = "decoding.coverage is none, so intervals are those of the model"
        if self.decoding.paths == 0 and self.evaluation.paths == 0:
            idle["decoding", "seed"] = "decoding.paths = 0 draws nothing"
        if data.frames is not None and data.window is None:
            idle["data", "overlap"] = "data.window is none, so whole sequences of data.frames are read"
        if is_binary:
            why = "with model.output = 'bernoulli' each step is scored given those before it, without a forecast"
            idle |= {("evaluation", name): why for name in ("season", "stride", "paths", "score")}
            if data.frames is not None:
                idle["evaluation", "context"] = "with model.output = 'bernoulli' all steps of data.frames are scored"
        return idle
