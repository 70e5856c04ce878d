"""What came of a sweep: its trials, in words, in a table, as a page with pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from recurra.errors import CheckpointError
from recurra.reports.summary import time_in_words
from recurra.sweeping.journal import Journal, Metric, importances
from recurra.sweeping.pictures import importance_scene, parallel_scene
from recurra.sweeping.space import Label, Varied, table_of_space
from recurra.toml import toml_value
from recurra.views.lines import Curve, Lines, Panel
from recurra.views.page import in_notebook, page, section, table_in_html, write_whole
from recurra.views.scene import Scene
from recurra.views.svg import as_svg
from recurra.views.table import Table, in_words
from recurra.views.view import PAGE, PHONE

if TYPE_CHECKING:
    from recurra.training.trained import Trained

BEST, ROWS, PAGE_FILE = "best", "trials.jsonl", "sweep.html"
"""In the folder of a sweep: the run of the best trial, a line of JSON a trial, and the page."""

STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "running", "WAITING": "waiting"}


class Trial(NamedTuple):
    """One trial: what was set, and what came of it."""

    number: int
    state: str  # complete, pruned, failed, running or waiting; given up: its process was cut off
    score: float | None  # on the validation data; of a trial that was pruned, the last one
    settings: Mapping[str, Label]
    as_given: bool = False  # nothing was drawn: the settings as they are
    seconds: float | None = None
    steps: int | None = None
    validations: int = 0
    same_as: int | None = None  # the trial before with the same settings, from which the score was taken over
    why: str = ""  # it failed

    @property
    def settings_in_words(self) -> str:
        """What was drawn."""
        drawn = ", ".join(f"{name} = {in_words(value)}" for name, value in self.settings.items())
        return "the settings as they are" if self.as_given else drawn


class Sweep(NamedTuple):
    """A sweep as it stands."""

    folder: Path
    metric: str
    higher_is_better: bool
    trials: Sequence[Trial]
    space: Sequence[Varied]
    importances: Mapping[str, float]

    @property
    def complete(self) -> list[Trial]:
        """The trials that were trained to their end."""
        return [each for each in self.trials if each.state == "complete" and each.score is not None]

    @property
    def best(self) -> Trial | None:
        """The best trial, the first of equals; None where none is complete."""
        sign = -1 if self.higher_is_better else 1
        return min(self.complete, key=lambda each: sign * (each.score or 0.0), default=None)

    @property
    def as_given(self) -> Trial | None:
        """The trial with the settings as they are, if it was trained to its end."""
        return next((each for each in self.complete if each.as_given), None)

    def load(self, *, device: str = "cpu") -> Trained:
        """The model of the best trial."""
        from recurra.training.trained import load

        if self.best is None:
            raise CheckpointError(f"no trial of {self.folder} is complete yet, so there is no model to load.")
        return load(self.folder / BEST, device=device)

    def in_words(self) -> str:
        """How many trials there were, and the best."""
        counts = {state: sum(each.state == state for each in self.trials) for state in STATES.values()}
        said = [f"{counts['complete']} complete"]
        said += [
            f"{count} {state}" for state, count in counts.items() if count and state not in ("complete", "waiting")
        ]
        count = sum(counts.values()) - counts["waiting"]
        text = f"{count} trial{'' if count == 1 else 's'}: {', '.join(said)}."
        best, given = self.best, self.as_given
        if best is None:
            return text if count else "no trial is complete yet."
        beside = "" if given is None or given is best else f" ({given.score:.4f} with the settings as they are)"
        text += f" Best: {self.metric} {best.score:.4f}{beside}, trial {best.number}: {best.settings_in_words}."
        return f"{text} Its run: {self.folder / BEST}"

    def trial_in_words(self, trial: Trial) -> str:
        """A line for whoever watches."""
        best = self.best
        mark = " (best so far)" if best is not None and best.number == trial.number else ""
        came = {
            "pruned": f"pruned after {trial.validations} validations",
            "failed": f"failed: {trial.why}",
        }.get(trial.state, trial.state if trial.score is None else f"{self.metric} {trial.score:.4f}{mark}")
        again = "" if trial.same_as is None else f" (as trial {trial.same_as})"
        return f"trial {trial.number}: {came}{again}  {trial.settings_in_words}"

    def table(self) -> Table:
        """A row for each trial, the best first, then those that were pruned and those that failed."""
        names = [varied.name for varied in self.space]
        sign = -1 if self.higher_is_better else 1
        order = list(STATES.values())

        def rank(trial: Trial) -> tuple[int, float]:
            unknown = trial.score is None or not math.isfinite(trial.score)
            return order.index(trial.state), math.inf if unknown else sign * (trial.score or 0.0)

        rows: list[list[Any]] = []
        for each in sorted(self.trials, key=rank):
            values = [in_words(each.settings[name]) if name in each.settings else "–" for name in names]
            score = "–" if each.score is None else f"{each.score:.4f}"
            took = "–" if each.seconds is None else time_in_words(each.seconds)
            rows.append([str(each.number), each.state, score, *values, took])
        return Table(["trial", "state", self.metric, *names, "time"], rows)

    def json(self) -> dict[str, Any]:
        """All of it, as `recurra sweep --json` prints it."""
        best = self.best
        return {
            "folder": str(self.folder),
            "metric": self.metric,
            "higher_is_better": self.higher_is_better,
            "best": None if best is None else _finite(best._asdict()),
            "importances": dict(self.importances),
            "space": table_of_space(self.space),
            "trials": [_finite(each._asdict()) for each in self.trials],
        }

    def history(self) -> Lines:
        """The score of each trial, and the best so far."""
        known = self.complete
        best: list[float] = []
        for each in known:
            score = each.score or 0.0
            worse = best and (best[-1] > score if self.higher_is_better else best[-1] < score)
            best.append(best[-1] if worse else score)
        numbers = [each.number for each in known]
        curves = [
            Curve("each complete trial", [each.score or 0.0 for each in known], numbers, look="faint", dots=True),
            Curve("best so far", best, numbers, look="one"),
        ]
        return Lines([Panel(self.metric, curves)] if known else [], "trial", title="Scores of the trials")

    def __repr__(self) -> str:
        return f"<Sweep in {self.folder}, {self.in_words()}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return in_notebook("\n".join(self._pieces()))

    def _pieces(self) -> list[str]:
        best = self.best
        chosen = [] if best is None else [[name, in_words(value)] for name, value in best.settings.items()]
        given = self.as_given
        facts = [
            (
                f"Best {self.metric}",
                None if best is None else best.score,
                "" if best is None else f"trial {best.number}",
            ),
            ("Settings as they are", None if given is None else given.score, ""),
            *((state.capitalize(), count, "") for state in STATES.values() if (count := self._count(state))),
        ]
        importance = ""
        if self.importances:
            importance = _figure(lambda width: importance_scene(self.importances, width)) + (
                '<p class="soft">How differently each setting is distributed among the best trials and among all '
                f"(PED-ANOVA), as shares of 1; of {len(self.complete)} complete trials. A setting of little "
                "importance did not matter within its range.</p>"
            )
        return [
            f'<dl class="facts">{"".join(_fact(*each) for each in facts if each[1] is not None)}</dl>',
            section("Best settings", table_in_html(Table(["setting", "value"], chosen))),
            section("Scores of the trials", self.history().figure() if self.complete else ""),
            section("Importance of the settings", importance),
            section(
                "Settings and scores",
                _figure(lambda width: parallel_scene(self, width))
                + '<p class="soft">A line is a trial: its settings from left to right, and at the right its score; the '
                "stronger, the better. Dashed: pruned.</p>"
                if self.complete
                else "",
            ),
            section("Trials", table_in_html(self.table())),
        ]

    def page(self) -> str:
        """A page that works offline."""
        name = self.folder.resolve().name
        return page(f"{name}: sweep", [f"<h1>{escape(name)}</h1>", *self._pieces()])

    def _count(self, state: str) -> int:
        return sum(each.state == state for each in self.trials)


def swept(folder: Path, journal: Journal, space: Sequence[Varied]) -> Sweep:
    """What the journal says."""
    metric = journal.metric
    found = [_trial(each, metric) for each in journal.trials if not _is_given_up(each)]
    shares = importances(journal.study)
    known = {varied.name: shares[varied.name] for varied in space if varied.name in shares}
    ordered = dict(sorted(known.items(), key=lambda each: -each[1]))
    return Sweep(folder, metric.name, metric.higher_is_better, found, space, ordered)


def _is_given_up(trial: Any) -> bool:
    """Whether its process was cut off; where its settings were queued again, another trial has them."""
    return trial.state.name == "FAIL" and "why" not in trial.user_attrs


def _trial(found: Any, metric: Metric) -> Trial:
    told, state = found.user_attrs, STATES[found.state.name]
    last = found.intermediate_values.get(max(found.intermediate_values, default=0))
    score = found.value if state == "complete" else None if last is None else last if metric.agrees else -last
    return Trial(
        number=found.number,
        state=state,
        score=score,
        settings=told.get("settings", {}),
        as_given="as_given" in told,
        seconds=told.get("seconds"),
        steps=told.get("steps"),
        validations=len(found.intermediate_values),
        same_as=told.get("same_as"),
        why=told.get("why", ""),
    )


def write(found: Sweep) -> None:
    """Write the trials as lines of JSON, and the page."""
    lines = [json.dumps(_finite(each._asdict()), ensure_ascii=False, allow_nan=False) for each in found.trials]
    write_whole(found.folder / ROWS, "".join(f"{line}\n" for line in lines))
    write_whole(found.folder / PAGE_FILE, found.page())


def _finite(table: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows neither NaN nor infinity."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in table.items()
    }


def _fact(name: str, value: object, more: str) -> str:
    small = f" <small>{escape(more)}</small>" if more else ""
    return f"<div><dt>{escape(name)}</dt><dd>{escape(in_words(value))}{small}</dd></div>"


def _figure(scene: Any) -> str:
    """A picture in a wide form and in one for phones."""
    forms: list[tuple[str, Scene]] = [("wide", scene(PAGE)), ("narrow", scene(PHONE))]
    parts = "".join(f'<div class="{name}">{as_svg(each)}</div>' for name, each in forms)
    return f'<figure class="fits">{parts}</figure>'


__all__ = ["BEST", "Sweep", "Trial", "swept", "toml_value", "write"]
