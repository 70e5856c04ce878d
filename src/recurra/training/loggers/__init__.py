"""Loggers: where the lines of a log go besides metrics.jsonl; training.loggers names them."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import final

from recurra.errors import ConfigError, RecurraError
from recurra.training.log import Line, Logger, Opening
from recurra.training.loggers.tensorboard import TensorBoard

HELP = {
    "mlflow": "Let MLFLOW_TRACKING_URI name a server, as http://127.0.0.1:5000, or a folder, as file:mlruns, with "
    "MLFLOW_ALLOW_FILE_STORE=true; a database, as sqlite:///mlflow.db, needs pip install mlflow.",
    "wandb": "Log in by `wandb login`, or set WANDB_MODE=offline.",
}
"""What to do where a library cannot be opened."""


def openings(names: Sequence[str], settings: Mapping[str, object]) -> list[Opening]:
    """How TensorBoard, where it is installed, and the loggers of these names are opened for a run of these settings."""
    found: list[Opening] = [TensorBoard.open]
    for name in names:
        opening: Callable[[Path, Sequence[Line], Mapping[str, object]], Logger]
        opening = importlib.import_module(f"recurra.training.loggers.{name}").opened
        found.append(partial(_guarded, name, opening, settings))
    return found


def _guarded(
    name: str,
    opening: Callable[[Path, Sequence[Line], Mapping[str, object]], Logger],
    settings: Mapping[str, object],
    folder: Path,
    known: Sequence[Line],
) -> Logger:
    try:
        return Guarded(name, opening(folder, known, settings))
    except RecurraError:
        raise
    except Exception as error:  # no server, no account, a store that the library does not write any more
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(
            f"training.loggers: {name} cannot be opened ({reason:.300}). {HELP.get(name, '')} Or leave it out: "
            "metrics.jsonl has every number."
        ) from error


@final
class Guarded(Logger):
    """A logger of another library, whose failures do not end a training: it is closed at the first, with a warning."""

    def __init__(self, name: str, logger: Logger) -> None:
        self.name = name
        self.logger: Logger | None = logger

    def write(self, line: Line) -> None:
        try:
            if self.logger is not None:
                self.logger.write(line)
        except Exception as error:  # a server that is gone, a disk that is full: metrics.jsonl has it all
            self.logger = None
            warnings.warn(
                f"recurra: {self.name} cannot be written ({error}): it is told nothing more of this run, whose "
                "metrics.jsonl has everything.",
                RuntimeWarning,
                stacklevel=2,
            )

    def close(self) -> None:
        logger, self.logger = self.logger, None
        try:
            if logger is not None:
                logger.close()
        except Exception as error:
            warnings.warn(f"recurra: {self.name} cannot be closed ({error}).", RuntimeWarning, stacklevel=2)
