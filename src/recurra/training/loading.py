"""The task of a run folder, or of an exported one, without its weights; torch is not needed for that."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recurra.config.given import Given
from recurra.errors import CheckpointError, ConfigError, TrustError, is_lack_of_memory
from recurra.manifest import MANIFEST, notice_unverified, verify
from recurra.named import with_place
from recurra.tasks.task import Task
from recurra.training.permission import allowed

MODEL = "model.safetensors"

EXPORT = "export.json"
"""What an exported folder has, and no other: what it holds."""

SWEEP = "sweep.toml"
"""What the folder of a sweep has, and no run."""

NOT_OF_TASK = ("summary.json", "samples.json", "program.json", EXPORT, MANIFEST)
"""Files that a run or an exported folder has, but its task did not write."""

NOT_FOR_LOADING = (MODEL, "last/checkpoint.safetensors", "metrics.jsonl", "report.html", "card.md")
"""Files of a run that are verified by whoever reads them, or are read by people alone."""


def load_task(folder: Path, *, trust: bool = False, verified: bool = False) -> Task[Any, Any, Any]:
    """The task of a run folder, without its weights. Whoever loads a run comes through here."""
    if not verified and (folder / MANIFEST).exists():
        verify(folder, lambda name: name not in NOT_FOR_LOADING)
    if not (folder / "config.toml").is_file():
        refuse_elsewhere(folder)
        what = "there is no folder" if not folder.exists() else "there is no config.toml in"
        runs = sorted(str(path.parent) for path in folder.glob("seed-*/config.toml"))
        seeds = (
            f" {folder} contains one run per seed: name one of them, or all as an ensemble: {','.join(runs)}."
            if runs
            else ""
        )
        one = " This command takes one run, not several." if "," in str(folder) and not folder.exists() else ""
        raise CheckpointError(f"{what} {folder}: a run is a folder created by `recurra train --out`.{seeds}{one}")
    given = Given.of_run(folder)
    notice_unverified(folder)
    with _saying_what_is_kept(folder):
        kind = allowed(given, folder / "config.toml", trust=trust)
        settings: Any = given.settings(kind.Settings)
    if not settings.data.files("train"):  # by whose ending later files are read
        raise CheckpointError(f"{folder / 'config.toml'} names no training data (data.train). Restore it from a copy.")
    with whole(folder, kind):
        return kind.load(settings, folder)


def is_url(source: object) -> bool:
    """Whether something else than a folder of this machine is meant.

    >>> is_url("https://example.org/a.zip"), is_url("hf://owner/name"), is_url("runs/first"), is_url("C:/runs")
    (True, True, False, False)
    """
    return isinstance(source, str) and "://" in source and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", source) is not None


def refuse_elsewhere(folder: Path) -> None:
    """Refuse a packed run, a URL and a sweep in words that say how to come to a run."""
    if (folder / SWEEP).is_file():
        raise CheckpointError(f"{folder} is a sweep: the run of its best trial is {folder / 'best'}.")
    if folder.is_file():
        raise CheckpointError(
            f"{folder} is a file, and a run is a folder. If `recurra pack` wrote it, unpack it first: recurra unpack "
            f"{folder} FOLDER"
        )
    if re.match(r"(https?|file|hf):/", str(folder)):
        url = re.sub(r":/+", ":///" if str(folder).startswith("file") else "://", str(folder), count=1)
        raise CheckpointError(
            f"{url} is a URL, and nothing is fetched before you ask for it: recurra pull {url} FOLDER. Fetch what you "
            "trust alone."
        )


@contextlib.contextmanager
def _saying_what_is_kept(folder: Path) -> Iterator[None]:
    """Code that a run names and that cannot be imported, or may not be, is told of with where its source is kept."""
    try:
        yield
    except (ConfigError, TrustError) as error:
        from recurra.training.own_code import kept_in_words

        if (kept := kept_in_words(folder)) and kept not in str(error):
            error.args = (f"{error}{kept}", *error.args[1:])
        raise


@contextlib.contextmanager
def whole(folder: Path, kind: type) -> Iterator[None]:
    """Inside, files that do not fit together may fail in any way; so may a user's code, which keeps its traceback."""
    try:
        with _saying_what_is_kept(folder):
            yield
    except (AssertionError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
        if not kind.__module__.startswith("recurra.") or is_lack_of_memory(error):
            raise
        raise CheckpointError(
            f"the files of {folder} do not fit together ({with_place(error)}). Restore the run from a copy."
        ) from error


def files_of_vocabulary(folder: Path) -> list[Path]:
    """The files in which a task keeps what it learned of its data: what its model means by a token or a number."""
    return sorted(file for file in folder.glob("*.json") if file.name not in NOT_OF_TASK)
