"""Weights & Biases: a run of the project "recurra", or of WANDB_PROJECT; offline with WANDB_MODE=offline."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

from recurra.errors import ConfigError
from recurra.training.log import EventLine, Line, Logger, numbers_in

PROJECT = "recurra"

RUN = "wandb.txt"
"""The file of a run folder that names the run of W&B, which a resumed run goes on with."""


def opened(folder: Path, known: Sequence[Line], settings: Mapping[str, object]) -> Logger:
    """A new run of W&B, or that of the run that is resumed."""
    try:
        import wandb
    except ImportError as error:
        raise ConfigError(
            "training.loggers: wandb is not installed: pip install 'recurra[wandb]', or leave it out."
        ) from error
    is_known = bool(known) and (folder / RUN).is_file()
    name = (folder / RUN).read_text("utf-8").strip() if is_known else uuid.uuid4().hex[:8]
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        name=folder.name,
        id=name,
        resume="allow" if is_known else None,
        dir=str(folder),
        config={key: str(value) for key, value in settings.items()},
        reinit="create_new",
    )
    (folder / RUN).write_text(name + "\n", "utf-8")
    return WandB(run)


@final
class WandB(Logger):
    """One run of W&B."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def write(self, line: Line) -> None:
        if not isinstance(line, EventLine):
            self._run.log(numbers_in(line), step=line.step)

    def close(self) -> None:
        self._run.finish()
