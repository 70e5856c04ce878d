"""All runs of a folder side by side, by what they keep about themselves: `recurra compare runs/`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from recurra.config.run_file import as_begun
from recurra.errors import CheckpointError, RecurraError
from recurra.reports.overview import Overview, Row, differing
from recurra.runs import flattened, is_run, summary_of
from recurra.settings import read_toml

NOT_COMPARED = ("format", "version", "task")
"""What stands in every config.toml and is no setting."""

DEEPEST = 4
"""Folders inside of folders that are looked into."""


def overview(folder: str | os.PathLike[str]) -> Overview:
    """What is known of the runs in a folder and in folders inside of it; no weights and no code are loaded.

    >>> import recurra, tempfile
    >>> home = Path(tempfile.mkdtemp())
    >>> _ = (home / "train.conll").write_text("the\\tDET\\ncat\\tNOUN\\n")
    >>> for size in (3, 4):
    ...     few = {"model.hidden": size, "data.cache": False, "training.steps": 1}
    ...     _ = recurra.train("tagging", train=home / "train.conll", out=home / f"size-{size}", settings=few)
    >>> [(run.name, dict(run.settings)) for run in overview(home).runs]
    [('size-3', {'model.hidden': 3}), ('size-4', {'model.hidden': 4})]
    """
    home = Path(folder)
    if not home.is_dir():
        raise CheckpointError(f"there is no folder {home}.")
    if is_run(home):
        raise CheckpointError(
            f"{home} is one run. To compare runs on the same data: recurra compare RUN RUN … DATA. To see all runs of "
            f"a folder: recurra compare FOLDER."
        )
    folders = sorted(runs_in(home))
    if not folders:
        raise CheckpointError(f"there are no runs in {home}: a run is a folder created by `recurra train --out`.")
    found = [read(each, str(each.relative_to(home))) for each in folders]
    known = differing([row.settings for row in found])
    rows = [
        row._replace(settings={name: row.settings[name] for name in known if name in row.settings}) for row in found
    ]
    return Overview(str(home), rows)


def runs_in(folder: Path, depth: int = DEEPEST) -> Iterator[Path]:
    """The run folders in a folder; what lies inside of a run is not looked at, nor what a link leads to."""
    with os.scandir(folder) as entries:
        inside = sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    for path in map(Path, inside):
        if is_run(path):
            yield path
        elif depth > 1 and not path.name.startswith("."):
            yield from runs_in(path, depth - 1)


def read(folder: Path, name: str) -> Row:
    """One run; a damaged one has its reason as its state."""
    try:
        summary = summary_of(folder)
        table = as_begun(read_toml(folder / "config.toml"))
    except (RecurraError, OSError) as error:
        return Row(name, "", f"damaged: {error}", None, None, {}, {}, None, None, None, {})
    is_finished = summary["stopped"] is not None
    return Row(
        name=name,
        task=str(summary["task"]),
        state="finished" if is_finished else "not finished",
        created=summary.get("created"),
        first=summary.get("first_metric"),
        valid=_scores(summary.get("best")),
        test=_scores(summary.get("test")),
        parameters=summary.get("parameters"),
        seconds=summary.get("seconds"),
        steps=summary.get("steps"),
        settings={key: value for key, value in flattened(table).items() if key not in NOT_COMPARED},
    )


def _scores(part: object) -> dict[str, float]:
    found = part.get("scores") if isinstance(part, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}
