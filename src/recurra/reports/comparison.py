"""Runs of one task side by side on the same data: how far apart they are, and how sure that is: `recurra compare`."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from recurra.analysis.lengths import ByLength
from recurra.config.given import Changes
from recurra.errors import ConfigError, DataError
from recurra.metrics.lengths import buckets
from recurra.metrics.resampling import Difference, Sampled, difference, interval
from recurra.scoring.counted import Counted
from recurra.scoring.scores import Scores
from recurra.settings import table_of
from recurra.training.trained import Trained, load

Place: TypeAlias = str | os.PathLike[str]

LEVEL = 0.95
RESAMPLES = 1000

MOST_SETTINGS = 5
"""So many settings that differ are named."""


class Judged(NamedTuple):
    """A run with its scores; those that are numbers on all samples have intervals."""

    name: str  # the folder's, or more of its path where two are called the same
    folder: str
    description: str
    scores: Scores
    intervals: dict[str, tuple[float, float]]


class Apart(NamedTuple):
    """How far the scores of a run lie above those of another, on the same samples of the data."""

    first: str
    second: str
    scores: dict[str, Difference]


class Comparison(NamedTuple):
    """Runs of one task on the same data."""

    task: str
    data: str
    items: int | None  # that are drawn again; None where the runs have different ones
    runs: list[Judged]
    apart: list[Apart]  # the first run beside each of the others
    by_length: ByLength | None
    notes: list[str]  # what should be known when reading the figures
    level: float = LEVEL
    resamples: int = RESAMPLES

    def _repr_html_(self) -> str:
        """What a notebook shows: what stands on the page of `recurra compare --out`."""
        from recurra.reports.comparison_page import pieces
        from recurra.views.page import in_notebook

        return in_notebook("\n".join(pieces(self)))

    def json(self) -> dict[str, Any]:
        """As JSON has it: what is no number is left out."""
        return {
            "task": self.task,
            "data": self.data,
            "items": self.items,
            "level": self.level,
            "resamples": self.resamples,
            "runs": [
                {
                    "name": run.name,
                    "folder": run.folder,
                    "scores": {name: value for name, value in run.scores.values.items() if math.isfinite(value)},
                    "intervals": {name: list(ends) for name, ends in run.intervals.items()},
                }
                for run in self.runs
            ],
            "differences": [
                {
                    "first": pair.first,
                    "second": pair.second,
                    "scores": {name: found._asdict() for name, found in pair.scores.items()},
                }
                for pair in self.apart
            ],
            "by_length": None if self.by_length is None else _by_length_in_json(self.by_length),
            "notes": self.notes,
        }


def compare(
    runs: Sequence[Place | Trained],
    data: Place | Sequence[Place],
    *,
    settings: Changes = (),
    device: str = "cpu",
    resamples: int = RESAMPLES,
    seed: int = 0,
    trust: bool = False,
) -> Comparison:
    """Compare two or more runs on the same files: scores and differences with 95 % confidence intervals.

    Intervals are computed by bootstrap resampling of the data; two runs are scored on the same samples. `settings`
    are as for Trained.with_settings, `trust` as for load.

    >>> import recurra, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.conll").write_text("the\\tDET\\ncat\\tNOUN\\n\\na\\tDET\\ncat\\tNOUN\\n")
    >>> few = {"model.hidden": 4, "data.cache": False, "training.steps": 1}
    >>> for name in ("one", "two"):
    ...     _ = recurra.train("tagging", train=str(folder / "train.conll"), out=folder / name, settings=few)
    >>> found = compare([folder / "one", folder / "two"], folder / "train.conll")
    >>> found.apart[0].scores["accuracy"]
    Difference(value=0.0, low=0.0, high=0.0, better=0.5)
    """
    if isinstance(runs, str | os.PathLike) or len(runs) < 2:
        raise ConfigError(
            "compare needs at least two runs: recurra compare RUN RUN … DATA. For one, use recurra evaluate RUN DATA."
        )
    files = [Path(file) for file in ([data] if isinstance(data, str | os.PathLike) else data)]
    if not files:
        raise ConfigError("compare needs a labelled data file, but no file was given.")
    for file in files:
        if (file / "config.toml").is_file():
            raise ConfigError(
                f"the last argument must be the data, but {file} is a run: recurra compare RUN RUN … DATA."
            )
    models = [run if isinstance(run, Trained) else load(run, device=device, trust=trust) for run in runs]
    first = models[0]
    for other in models[1:]:
        if other.task.name != first.task.name:
            raise ConfigError(
                f"only runs of the same task can be compared, but {first.folder} is a run of {first.task.name} and "
                f"{other.folder} "
                f"one of {other.task.name}."
            )
    folders = [str(run.folder) if isinstance(run, Trained) else str(run) for run in runs]
    names = _names(folders)
    first.check_used(settings, scoring=True)
    files = [Path(file) for file in first.in_folders(files)]
    counts = [_counted(model.with_settings(settings), files) for model in models]
    judged = [each.scores() for each in counts]
    shared = set.intersection(*({*scores.values} - {"count"} for scores in judged))
    if not shared:
        raise DataError(
            f"{first.folder} and the others have no score in common: they were trained to predict different things."
        )
    is_same = all(each.items == counts[0].items for each in counts)
    samples = [_sampled(each, seed=seed, resamples=resamples) for each in counts]
    apart = [
        Apart(names[0], name, _differences(counts[0], samples[0], other))
        for name, other in zip(names[1:], samples[1:], strict=True)
        if is_same
    ]
    return Comparison(
        task=first.task.name,
        data=", ".join(map(str, files)),
        items=len(counts[0].items) if is_same else None,
        runs=[
            Judged(
                name,
                folder,
                description,
                scores,
                {score: interval(each, level=LEVEL) for score, each in sampled.items()},
            )
            for name, folder, description, scores, sampled in zip(
                names, folders, _descriptions(models), judged, samples, strict=True
            )
        ],
        apart=[pair for pair in apart if pair.scores],
        by_length=_by_length(names, counts) if is_same else None,
        notes=_notes(names, judged, counts, is_same=is_same),
        resamples=resamples,
    )


def _counted(model: Trained, files: Sequence[Path]) -> Counted:
    return model.task.counted(*model.to_score(files))


def _descriptions(models: Sequence[Trained]) -> list[str]:
    """Each network in a line; where all lines are the same, with the settings that are not."""
    lines = [model.task.described() for model in models]
    if len({*lines}) > 1:
        return lines
    tables = [_flat(table_of(model.task.settings)) for model in models]
    known = dict.fromkeys(key for table in tables for key in table if not key.startswith("data."))
    apart = [key for key in known if any(table.get(key) != tables[0].get(key) for table in tables[1:])][:MOST_SETTINGS]
    said = [[f"{key} = {_in_words(table.get(key))}" for key in apart] for table in tables]
    return [", ".join([line, *settings]) for line, settings in zip(lines, said, strict=True)]


def _flat(table: Mapping[str, object], before: str = "") -> dict[str, object]:
    """A table of sections as one, by dotted names; a part with its options stays whole.

    >>> _flat({"task": "x", "model": {"hidden": 3, "cell": {"name": "gru"}}})
    {'task': 'x', 'model.hidden': 3, 'model.cell': {'name': 'gru'}}
    """
    found: dict[str, object] = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and "name" not in value:
            found |= _flat(value, f"{before}{key}.")
        else:
            found[f"{before}{key}"] = value
    return found


def _in_words(value: object) -> str:
    return "none" if value is None else str(value)


def _names(folders: Sequence[str]) -> list[str]:
    """The last part of each path; the whole where that is not enough; a number where one is there twice.

    >>> _names(["runs/a", "runs/b,runs/c"]), _names(["old/a", "new/a"]), _names(["a", "a"])
    (['a', 'b,c'], ['old/a', 'new/a'], ['a', 'a (2)'])
    """
    last = [",".join(Path(one).resolve().name for one in folder.split(",")) for folder in folders]
    found = last if len({*last}) == len({*folders}) else list(folders)
    seen: Counter[str] = Counter()
    for number, name in enumerate(found):
        seen[name] += 1
        found[number] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return found


def _notes(names: Sequence[str], scores: Sequence[Scores], counts: Sequence[Counted], *, is_same: bool) -> list[str]:
    notes = []
    single = [name for name, each in zip(names, counts, strict=True) if len(each.items) < 2]
    if single:
        notes.append(f"{', '.join(single)}: the data is scored as a single item. Intervals need several items.")
    if not is_same:
        notes.append("The runs score different items of the data, so they are not compared item by item.")
    numbers = [each.values["count"] for each in scores if "count" in each.values]
    if len({*numbers}) > 1:
        shown = ", ".join(f"{name} {number:,.0f}" for name, number in zip(names, numbers, strict=False))
        notes.append(
            f"The runs count different units ({shown}), so scores per token, such as perplexity, cannot be compared."
        )
    return notes


def _sampled(counts: Counted, *, seed: int, resamples: int) -> dict[str, Sampled]:
    """Each score that is a number on all samples; of a single item all samples are the same."""
    return counts.sampled(seed=seed, resamples=resamples) if len(counts.items) > 1 else {}


def _differences(counts: Counted, first: dict[str, Sampled], second: dict[str, Sampled]) -> dict[str, Difference]:
    return {
        name: difference(sampled, second[name], higher_is_better=counts.is_higher_better(name), level=LEVEL)
        for name, sampled in first.items()
        if name in second
    }


def _by_length(names: Sequence[str], counts: Sequence[Counted]) -> ByLength | None:
    """One score of all runs in the same buckets of items, by the lengths that the first run gives them."""
    first, lengths = counts[0].first, counts[0].lengths
    shared = [name for name in counts[0].formulas if all(name in each.formulas for each in counts)]
    if not shared or lengths is None or not len(lengths):
        return None
    score = first if first in shared else shared[0]
    parts = buckets(lengths)
    return ByLength(
        [part.label for part in parts],
        [len(part.items) for part in parts],
        {name: [each.value(score, part.items) for part in parts] for name, each in zip(names, counts, strict=True)},
        score=score,
        axis="length",
    )


def _by_length_in_json(by: ByLength) -> dict[str, Any]:
    runs = {name: [value if math.isfinite(value) else None for value in values] for name, values in by.runs.items()}
    return {"score": by.score, "lengths": list(by.buckets), "items": list(by.items), "runs": runs}
