"""Forecasting: every step of a sequence of vectors from the steps before it, and the steps that will follow."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.config import ForecastingSettings
from recurra.config.common import has_memory
from recurra.config.forcing import Forcing
from recurra.config.forecasting import COUNTS, ForecastingDecoding
from recurra.config.in_words import cell_in_words, layers_in_words, output_in_words
from recurra.data.batches import Batches
from recurra.data.files import extension
from recurra.data.normal import Normal
from recurra.data.store import Encoded, Rows
from recurra.data.unit import Unit
from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.forecasts.anomalies import anomalies, check_distribution
from recurra.forecasts.answers import answer
from recurra.forecasts.backtesting import backtest, origins_back
from recurra.forecasts.conventions import Conventions, in_order_of, reads_gaps_in
from recurra.forecasts.intervals import Intervals
from recurra.forecasts.learned import learned
from recurra.forecasts.pictures import NO_FILE, decoder_gates, forecast, looked
from recurra.forecasts.reviews import first_scored, origins_before, places, reviews, with_past
from recurra.forecasts.several import Member, combined, free_running
from recurra.forecasts.windows import batches_of, cut_out, windows_of
from recurra.opening import read_file
from recurra.reading.asked import read_by
from recurra.reading.facts import Facts, Manner, facts_in_words
from recurra.reading.history import continued
from recurra.reading.outlook import with_outlook
from recurra.reading.samples import spread, windows
from recurra.reading.schema import Schema
from recurra.reading.series import SHORTEST, Steps, sequences, with_columns
from recurra.reading.steps_asked import asked_steps, sent_steps
from recurra.scoring.counted import Counted
from recurra.scoring.forecast_scores import Measures, frame_scores, value_scores
from recurra.settings import name_of
from recurra.tasks.task import START, AnswerKind, Axes, Loss, Moment, Prediction, Purpose, Recurring, Task, Viewer
from recurra.views.forecast_table import forecast_csv, forecast_table
from recurra.views.purpose import SERIES
from recurra.views.table import Table
from recurra.views.viewer import FORECAST, FORESEEN, LOOKED, WRITTEN_REMEMBERED, Asked

if TYPE_CHECKING:
    from recurra.analysis.anatomy import Anatomy
    from recurra.analysis.backtests import Backtest
    from recurra.analysis.exposure import Exposure
    from recurra.analysis.gates import Stack
    from recurra.forecasts.stream import Stream
    from recurra.models.forecast import Forecast, Review
    from recurra.models.forecaster import Forecaster
    from recurra.models.series_batch import ForecasterBatch
    from recurra.predictors.predictor import Predictor
    from recurra.views.view import View

Output: TypeAlias = "Forecast | Review"

NAMED = 8
"""Values that are listed in a notice; of more, the first and the last."""

SAMPLED = 60
"""Steps of a sample that is kept with what is known beside them."""


class Forecasting(Task[Steps, "ForecasterBatch", Output]):
    """Sequences of vectors: series of measurements, piano rolls.

    `conventions` say how series are read, scaled and named; `intervals` how wide forecasts are. All that is done with
    them is in `recurra.forecasts`.
    """

    Settings: ClassVar[type] = ForecastingSettings
    name: ClassVar[str] = "forecasting"

    def __init__(self, conventions: Conventions, intervals: Intervals | None = None) -> None:
        self.conventions = conventions
        self.intervals = intervals or Intervals(conventions)
        self.settings = conventions.settings
        self.forcing = Forcing.of(self.settings.training.forcing)

    @classmethod
    def resolved(cls, settings: ForecastingSettings) -> ForecastingSettings:
        data, evaluation = with_columns(settings.data, settings.data.files("train")[0]), settings.evaluation
        if evaluation.score is None and (data.series is not None or data.layout == "wide"):
            # Series may have different levels: each error is measured by what is usual in its own.
            evaluation = dataclasses.replace(evaluation, score="mase")
        return with_outlook(dataclasses.replace(settings, data=data, evaluation=evaluation))

    @classmethod
    def encoding(cls, settings: ForecastingSettings) -> object:
        data = settings.data
        # Of what is known ahead, as many steps are kept as the horizon has.
        ahead = {"horizon": settings.decoding.horizon} if data.has_future else {}
        way = "backward" if settings.model.direction == "backward" else ahead or None
        output = settings.model.output
        more = ["gaps"] if reads_gaps_in(settings) else []
        more += ["unit"] if output is not None and name_of(output) in COUNTS else []
        return [way, *more] if more else way

    @classmethod
    def prepared(cls, settings: ForecastingSettings) -> Self:
        scale, is_binary, facts = learned(settings)
        return cls(Conventions(settings, scale, is_binary=is_binary, facts=facts or Facts()))

    @classmethod
    def prepared_from(cls, settings: ForecastingSettings, base: Self) -> Self:
        """With the scales of the base, and its words: the network has an input for each of them, and for no other."""
        scale, is_binary, facts = learned(settings)
        own, facts = base.conventions, facts or Facts()
        if is_binary == own.is_binary:
            scale = scale.or_kept(own.scale)
        scales = {role: each.or_kept(own.facts.covariates.get(role)) for role, each in facts.covariates.items()}
        words = {column: own.facts.words.get(column, each) for column, each in facts.words.items()}
        usual = facts.usual if own.facts.usual is None or facts.usual is None else own.facts.usual
        facts = dataclasses.replace(facts, covariates=scales, words=words, usual=usual)
        return cls(Conventions(settings, scale, is_binary=is_binary, facts=facts))

    def save(self, folder: Path) -> None:
        known = {"values": self.conventions.scale.to_json()}
        (folder / "scales.json").write_text(json.dumps(known), "utf-8")
        (folder / "kind.json").write_text(json.dumps({"is_binary": self.conventions.is_binary}), "utf-8")
        self.conventions.facts.save(folder)
        self.intervals.save(folder)

    @classmethod
    def load(cls, settings: ForecastingSettings, folder: Path) -> Self:
        try:
            scale = Normal.load_all(folder / "scales.json")["values"]
            is_binary = bool(json.loads(read_file(folder / "kind.json"))["is_binary"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CheckpointError(
                f"{folder / 'kind.json'} cannot be read ({error}): the run folder is incomplete."
            ) from error
        conventions = Conventions(settings, scale, is_binary=is_binary, facts=Facts.load(folder))
        return cls(conventions, Intervals.load(conventions, folder))

    def with_settings(self, settings: ForecastingSettings, folder: Path) -> Self:
        return self._knowing(settings, self.conventions.facts)

    def decoding_by(self, decoding: ForecastingDecoding) -> Self:
        """The task that answers by other settings of [decoding]."""
        return self._knowing(dataclasses.replace(self.settings, decoding=decoding), self.conventions.facts)

    def _knowing(self, settings: ForecastingSettings, facts: Facts) -> Self:
        own = self.conventions
        conventions = Conventions(settings, own.scale, is_binary=own.is_binary, facts=facts)
        return type(self)(conventions, Intervals(conventions, self.intervals.calibrations))

    # Data

    def read(self, files: Sequence[str | Path]) -> Iterator[Steps]:
        first = first_scored(self.conventions)
        for steps in self._continued(sequences(files, self.conventions.data)):
            yield in_order_of(self.settings, dataclasses.replace(steps, origin=max(first, steps.lead)))

    @property
    def _goes_on(self) -> bool:
        """Whether series may go on with those of another file."""
        return not self.conventions.from_nothing and not self.conventions.is_backward

    def _continued(self, series: Iterable[Steps]) -> Iterator[Steps]:
        """Series of a table with the steps before them, where these are known."""
        if not self._goes_on:
            return iter(series)
        return continued(series, self.conventions.facts.ends, longest=self.settings.data.window or 0)

    def preceded_by(self, file: str | Path) -> Self:
        data, facts = self.conventions.data, self.conventions.facts
        if not self._goes_on or data.time is None:
            raise ConfigError("--history needs series with times that are read forward, which this run does not have.")
        by = read_by(file, data) or data
        series = continued(sequences([file], by), facts.ends, longest=data.window or 0)
        ends = {steps.name: steps for steps in series}
        return self._knowing(self.settings, dataclasses.replace(facts, ends=ends, source=str(file)))

    def preceded(self, examples: Sequence[Steps]) -> str | None:
        own = [steps for steps in examples if steps.preceding]
        if not own:
            return None
        most, file = max(steps.preceding for steps in own), self.conventions.facts.source
        of = "the series" if len(examples) == 1 else f"{len(own):,} of {len(examples):,} series"
        source = f"'{file}'" if file is not None else "the training data"
        go = "goes" if len(own) == 1 else "go"
        return f"{of} {go} on with {source}: up to {most:,} steps before are read and not scored"

    def questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Steps]:
        for steps in self._continued(self._questions(file, lines)):
            if not len(steps) and steps.later is not None:
                raise DataError(
                    f"{steps.place}: there is no value of the series '{steps.name}' to start from: give some steps of "
                    "it, or the file before it by --history FILE."
                )
            yield in_order_of(self.settings, steps)

    def _questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Steps]:
        if file is not None and (by := read_by(file, self.conventions.data)) is not None:
            yield from sequences([file], by)
            return
        for number, line in enumerate(lines, 1):
            place = f"{file or NO_FILE}:{number}"
            try:
                given = json.loads(line or "[]") if isinstance(line, str) else line
            except (json.JSONDecodeError, RecursionError) as error:
                raise DataError(
                    f"{place}: each line must be a JSON list of steps, each a number or a list of numbers."
                ) from error
            yield asked_steps(given, self.conventions.data, number, place)

    def schema(self) -> Schema:
        data = self.settings.data
        return Schema("series", data.predicted, series=data.series or "")

    def sent(self, example: Steps) -> object:
        return sent_steps(in_order_of(self.settings, example), self.conventions.data)

    def samples(self, examples: Sequence[Steps], count: int) -> list[object]:
        examples = [in_order_of(self.settings, example) for example in examples[:count]]
        if not self.conventions.widths.are_any:
            return list(spread([cut for example in examples for cut in windows(example.values, count)], count))
        horizon = self.settings.decoding.horizon
        ends = [(steps, len(steps) - horizon) for steps in examples if len(steps) > horizon + 1]
        return [sent_steps(steps.cut(max(0, end - SAMPLED), end), self.conventions.data) for steps, end in ends][:count]

    def encode(self, example: Steps) -> Encoded:
        found = self.conventions.encode(example)
        if not self.intervals.adapts or example.origin is not None:  # else it is to be answered
            return found
        first = self.intervals.first_unseen(example)
        return {**found, "unseen": np.array([-1 if first is None else first], np.int64)}

    def left_out(self, row: Encoded) -> str | None:
        if self.conventions.from_nothing or len(row["values"]) >= SHORTEST:
            return None
        return f"a series needs at least {SHORTEST} steps to learn from"

    def lengths(self, rows: Any) -> NDArray[np.int64]:
        found: NDArray[np.int64] = rows.lengths("values")
        return found

    def noticed_in_training(self, rows: Any) -> str | None:
        """What the columns of a table are taken for."""
        data = self.settings.data
        if data.frames is not None or not data.values:
            return None
        many = f"{data.values[0]} to {data.values[-1]}" if len(data.values) > NAMED else ", ".join(data.values)
        time = f"time: {data.time}" if data.time is not None else "no column is the time, the rows are in order"
        series = f"; series: {data.series}" if data.series is not None else ""
        if data.layout == "wide":
            series = "; each column is a series"
        season = f"; a season has {data.season} steps" if data.season is not None and data.season > 1 else ""
        log = "; their logarithms are predicted" if data.log else ""
        training = self.settings.training
        both = training.epochs is not None and training.steps is not None
        limits = f"; trained for {training.steps:,} updates, at most {training.epochs:,} epochs" if both else ""
        if both and training.patience is not None:
            limits += f", or until {training.patience} validations bring nothing better"
        return f"{time}{series}; values: {many}{log}{facts_in_words(data, self.conventions.facts)}{season}{limits}"

    def held_out(self, part: Rows, parts: Sequence[Any]) -> str:
        if self.settings.data.frames is not None:
            return super().held_out(part, parts).replace("examples", "whole sequences")
        total = int(self.lengths(parts[0]).sum()) + sum(map(self._steps_held_out, parts[1:]))
        series = f"each of {len(part):,} series" if len(part) > 1 else "the series"
        return f"{self._steps_held_out(part):,} of {total:,} steps, the end of {series}"

    def _steps_held_out(self, rows: Rows) -> int:
        """Steps of series without those that only lead up to them; a change is known one step later than a value."""
        is_backward = self.conventions.is_backward
        leads = [int((row["known"][::-1] if is_backward else row["known"]).any(1).argmax()) for row in rows]
        return int(rows.lengths("values").sum()) - sum(
            lead - (lead > 0 and self.settings.data.difference) for lead in leads
        )

    def batches(self, rows: Any, epoch: int) -> Batches:
        found = windows_of(self.conventions, self.lengths(rows))
        return super().batches(rows, epoch) if found is None else batches_of(self.conventions, found, epoch)

    def chosen(self, store: Any, numbers: NDArray[np.int64]) -> Sequence[Encoded]:
        lengths = self.lengths(store)
        found = windows_of(self.conventions, lengths)
        if found is None:
            return super().chosen(store, numbers)
        return cut_out(self.conventions, store, lengths, found, numbers)

    def batch(self, rows: Sequence[Encoded]) -> ForecasterBatch:
        from recurra.models.series_batch import batched

        return batched(rows)

    @property
    def draws_in_batch(self) -> bool:
        return False

    # Model

    def build(self) -> Forecaster:
        from recurra.encoders.covariates import Covariates
        from recurra.models.forecaster import Forecaster

        widths, scale = self.conventions.widths, self.conventions.scale
        model = Forecaster(
            self.settings.model,
            output=self.conventions.output,
            size=self.conventions.size,
            from_nothing=self.conventions.from_nothing,
            covariates=Covariates(**widths._asdict()) if widths.are_any else None,
            season=self.settings.data.season or 1,
        )
        model.density.measured_in(scale.spread.tolist())
        return model

    def axes(self) -> Mapping[str, Axes]:
        data, words = self.conventions.data, self.conventions.facts.words
        names = () if data.frames is not None else data.static_words
        return {
            f"covariates.embeddings.{number}.weight": (("<unknown>", *words[name]), None)
            for number, name in enumerate(names)
        }

    def first_guess(self, model: Any, store: Any) -> str | None:
        from recurra.forecasts.first_guess import first_guess

        return first_guess(self.conventions, model, store)

    def loss(self, model: Any, batch: ForecasterBatch, moment: Moment = START) -> Loss:
        from recurra.models.forcing import Forced

        forced = Forced.at(self.forcing, moment.step, moment.varying)
        total, count = model.loss(batch, forced=forced)
        return Loss(total, count, logged=self.varying(moment.step))

    def varying(self, step: int) -> Mapping[str, float]:
        return self.forcing.varying(step)

    def recurring(self, batch: ForecasterBatch) -> Recurring | None:
        from recurra.models.series_batch import recurring_series

        if self.conventions.is_direct:
            return Recurring(recurring_series(batch), batch.starts)
        predicted = batch.values.lengths if self.conventions.from_nothing else (batch.values.lengths - 1).clamp_min(0)
        return Recurring(recurring_series(batch), int(predicted.sum()))

    # Answers

    def predict(self, model: Any, batch: ForecasterBatch, *, detail: bool = False) -> list[Output]:
        decoding = self.settings.decoding
        self.intervals.check()
        found = model.predict(batch, horizon=decoding.horizon, paths=decoding.paths, seed=decoding.seed)
        return with_past(self.conventions, model, batch, found)

    def predictor(self) -> Predictor[Any]:
        from recurra.predictors.forecasting import ForecastingPredictor

        self.intervals.check()
        decoding = self.settings.decoding
        return ForecastingPredictor(self, size=self.conventions.size, horizon=decoding.horizon, paths=decoding.paths)

    def widths_beside(self) -> Mapping[str, int]:
        """How many numbers are read beside the values of a step, by the names of encoded arrays."""
        own = self.conventions.widths
        gaps = self.conventions.size + 1 if self.conventions.reads_gaps else 0
        sizes = {"static_numbers": own.static, "static_names": len(own.categories), "gaps": gaps}
        return {"future": own.future, "past": own.past, **sizes}

    def origins_before(self, row: Encoded) -> NDArray[np.int64]:
        """From where a series is forecast again, where intervals adapt to how good these forecasts were."""
        unseen = int(row["unseen"][0]) if "unseen" in row else -1
        return origins_before(self.conventions, unseen, len(row["values"]))

    @property
    def is_at_once(self) -> bool:
        """Whether all steps of a horizon are forecast at once, each with quantiles."""
        return self.conventions.is_direct

    def unit_of_row(self, row: Encoded) -> NDArray[np.float64]:
        """(d,): how much a value of 1 of an encoded series stands for; of counts, each series may have its own."""
        found: NDArray[np.float64] = row.get("unit", self.conventions.scale.spread)
        return found

    def places(self, rows: Sequence[Encoded]) -> list[NDArray[np.int64]]:
        """From where the steps of each row are forecast to be scored."""
        if self.conventions.gives_coins:
            raise ConfigError("frames are scored by −log p, which needs the run: an exported forecaster only predicts.")
        if self.settings.evaluation.paths:
            raise ConfigError("evaluation.paths needs the run: an exported model draws no paths. Leave it out.")
        return places(self.conventions, rows)

    def answer(self, example: Steps, output: Any) -> Prediction:
        return answer(self.conventions, self.intervals, example, output)

    def combined(self, example: Steps, outputs: Sequence[Any]) -> Any:
        from recurra.models.forecast import Forecast, combined_forecast

        if isinstance(outputs[0], Forecast):
            return combined_forecast(outputs, coins=self.conventions.gives_coins)
        return combined(self.conventions, self.encode(example), outputs)

    def units(self) -> object:
        own = self.conventions
        # −log p of a count is none of a density.
        kind = own.is_binary, own.has_density, own.gives_coins, name_of(own.output) in COUNTS
        scales = own.scale.to_json(), own.facts.means.tolist(), own.facts.spreads.tolist(), dict(own.facts.names)
        manner = Manner.of(self.settings) if own.facts.by_series else self.settings.data.difference
        return scales, manner, own.from_nothing, own.is_backward, kind

    @property
    def unused_in_scores(self) -> Collection[str]:
        # The mean is fed back; what is drawn is scored only with evaluation.paths.
        return ("paths",) if self.settings.evaluation.paths else ("paths", "seed")

    def most_written(self, lengths: Sequence[int]) -> float:
        decoding = self.settings.decoding
        return max(1, decoding.paths) * decoding.horizon * len(lengths)

    def format_of(self, ending: str) -> str | None:
        # A row of frames has one answer, which may stand beside it; a row of a table is only a step.
        return "csv" if ending == "csv" and not self.conventions.from_nothing else super().format_of(ending)

    def printed_file(self, file: str | Path | None, answers: Iterable[Prediction], format: str) -> Iterator[str]:
        if format != "csv":
            return super().printed_file(file, answers, format)
        return forecast_csv(answers, self.conventions.columns, backward=self.conventions.is_backward)

    def tabled(self, answers: Sequence[Prediction]) -> Table:
        return forecast_table(answers, self.conventions.columns, backward=self.conventions.is_backward)

    def stream(self, model: Any, state: bytes | None = None) -> Stream:
        if self.conventions.is_backward:
            raise ConfigError("a stream is read forward, but this run reads series from their end.")
        from recurra.forecasts.networks import NetworkReader
        from recurra.forecasts.stream import Stream
        from recurra.models.saved import fingerprint
        from recurra.models.together import pairs_of

        pairs: Any = pairs_of(self, model)
        members = [(task, NetworkReader(network)) for task, network in pairs]
        return Stream(self, members, fingerprint(*(network for _, network in pairs)), state)

    def refusal_of_streams(self) -> str | None:
        """Why an exported model cannot read a stream; None: it can."""
        if self.conventions.is_backward:
            return "a stream is read forward, but the run reads series from their end"
        if self.settings.model.encoder == "transformer":
            return "the states of a Transformer have one column more after each row; name the run that was exported"
        return None

    def asked(self, row: Any, *, is_first: bool) -> Steps:
        """The steps of a row that a stream is given; before the first, those of training that it goes on with."""
        [steps] = self.questions(None, [row]) if is_first else self._questions(None, [row])
        return steps

    def with_unit(self, name: str, unit: Unit) -> Self:
        """The task that scales the series of a name by a unit, whatever else is known of it."""
        facts = self.conventions.facts
        return self._knowing(self.settings, facts.with_unit(name, unit)) if facts.by_series else self

    @property
    def steps_remembered(self) -> int:
        """The last steps of a series that a forecast is made from, beside the states of the network."""
        return max(self.settings.model.lags or 0, self.intervals.steps_remembered) + 1

    # Scores

    def outputs(self, model: Any, rows: Sequence[Encoded], *, device: str) -> list[Output]:
        origins = places(self.conventions, rows)
        return reviews(self.conventions, model, rows, origins, paths=self.settings.evaluation.paths)

    def counted(self, examples: Sequence[Steps], outputs: Sequence[Any]) -> Counted:
        if self.conventions.gives_coins:
            return frame_scores(examples, outputs, settings=self.settings)
        return value_scores(examples, outputs, measures=self.measures, settings=self.settings)

    @property
    def measures(self) -> Measures:
        """How outputs become values in the unit of the data."""
        own = self.conventions
        return Measures(
            own.unit_of,
            own.scale.spread,
            has_sizes=name_of(own.output) not in COUNTS,
            has_density=own.has_density,
            has_quantiles=own.has_quantiles,
            calibrated=self.intervals.of_review,
            usual_errors=own.facts.errors_of,
        )

    def calibrated(
        self, model: Any, examples: Sequence[Steps], rows: Sequence[Encoded], outputs: Sequence[Any]
    ) -> Self:
        return type(self)(self.conventions, self.intervals.calibrated(model, examples, rows, outputs))

    def origins_back(self, files: Sequence[str | Path], *, windows: int, step: int) -> list[int]:
        return origins_back(self.conventions, files, windows=windows, step=step)

    def rolling(
        self,
        model: Any,
        files: Sequence[str | Path],
        *,
        windows: int,
        step: int,
        back: Sequence[int] | None = None,
    ) -> Backtest:
        back = self.origins_back(files, windows=windows, step=step) if back is None else back
        return backtest(self._members(model), self.intervals, files, back)

    def anomalies(self, model: Any, files: Sequence[str | Path]) -> Table:
        members = self._members(model)
        for member in members:
            check_distribution(member.conventions)
        return anomalies(members, list(self.read(files)))

    def free_running(self, model: Any, examples: Sequence[Steps]) -> Exposure:
        return free_running(self._members(model), examples)

    def _members(self, model: Any) -> list[Member]:
        """The network, or those of several runs, each with how its own run reads series."""
        from recurra.models.together import pairs_of

        return [Member(task.conventions, network) for task, network in pairs_of(self, model)]

    # Views

    def steps(self, example: Steps) -> list[str]:
        return self.conventions.steps(example)

    def stacks(self, model: Any) -> dict[str, Stack]:
        return {} if model.recurrent is None else {"recurrent": model.recurrent}

    def viewers(self) -> dict[str, Viewer]:
        gates = {**self.memory_viewer(), "gates": super().viewers()["gates"]._replace(telling=False)}
        if self.conventions.gives_coins:
            return gates
        ahead = Viewer(lambda asked: forecast(self, asked).view(), longest=sys.maxsize, title=FORECAST, of_several=True)
        found = {"forecast": ahead}
        if self.settings.model.ahead == "attention":
            own = self.settings.model.decoder.cell or self.settings.model.cell
            found["attention"] = Viewer(
                lambda asked: looked(self.conventions, asked), longest=sys.maxsize, title=LOOKED
            )
            if has_memory(own):
                gates["decoder_memory"] = Viewer(self._decoder_memory, longest=sys.maxsize, title=WRITTEN_REMEMBERED)
            gates["decoder"] = Viewer(
                lambda asked: decoder_gates(self.conventions, asked).view(),
                longest=sys.maxsize,
                telling=False,
                title=FORESEEN,
                layered=True,
            )
        return {**found, **gates}

    def _decoder_memory(self, asked: Asked) -> View:
        """Where the external memory of the decoder was written and read while it forecast. (torch)"""
        from recurra.analysis.memory import memory_view

        return memory_view(decoder_gates(self.conventions, asked), WRITTEN_REMEMBERED)

    def anatomy(self, model: Any) -> Anatomy:
        from recurra.analysis.anatomy import UnrolledLevel

        found = super().anatomy(model)._replace(answers="ahead")
        return found if self.stacks(model) else found._replace(reader=[UnrolledLevel(self.settings.model.encoder)])

    def portions(self, examples: Sequence[Steps], count: int) -> list[tuple[Steps, int]]:
        """Series whose ends are forecast; of few series, also of earlier parts."""
        horizon = self.settings.decoding.horizon
        ends = [
            (each, len(each) - back * horizon)
            for back in range(count)
            for each in examples
            if len(each) - (back + 1) * horizon >= 2
        ][:count]
        return [(each.cut(0, end), end) for each, end in ends]

    def answer_kind(self) -> AnswerKind:
        return "text" if self.conventions.is_backward else "series"  # which the page draws after the input

    def purpose(self) -> Purpose:
        what = "frames of a sequence" if self.conventions.from_nothing else "steps of a series"
        kind = extension(self.settings.data.files("train")[0])
        which = "the earlier" if self.conventions.is_backward else "the next"
        return SERIES._replace(does=f"predicts {which} {what}", asked=f"input.{kind}")

    def _beside_in_words(self) -> str:
        """What is read beside the values."""
        data = self.settings.data
        names = [*data.covariates, *data.calendar, *(["time elapsed"] if data.elapsed else [])]
        if not names:
            return ""
        return f" with {len(names)} covariates" if len(names) > NAMED else f" with {', '.join(names)}"

    def described(self) -> str:
        model = self.settings.model
        what = "frames of" if self.conventions.from_nothing else "series of"
        size = self.conventions.size
        under = f", linear layer {model.embedding}" if model.embedding else ""
        values = f"{what} {size} value{'s' if size > 1 else ''}{self._beside_in_words()}"
        cell = cell_in_words(model.cell, direction=model.direction)
        stack = layers_in_words(cell, model.hidden, model.layers, model.mix)
        if model.encoder == "transformer":
            name = f"{'backward ' if self.conventions.is_backward else ''}Transformer"
            stack = layers_in_words(name, model.widths[0], len(model.widths))
        if model.ahead == "attention":
            own = model.decoder
            decoder = layers_in_words(cell_in_words(own.cell or model.cell), own.hidden, own.layers)
            stack += f", {decoder} decoder with attention over {model.lags} steps"
        return f"{values}{under}, {stack}, {output_in_words(self.conventions.output)} output"
