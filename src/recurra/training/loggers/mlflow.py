"""MLflow: a run of the experiment "recurra", where MLFLOW_TRACKING_URI says."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

from recurra.errors import ConfigError
from recurra.training.log import EventLine, Line, Logger, numbers_in

EXPERIMENT = "recurra"

RUN = "mlflow.txt"
"""The file of a run folder that names the run of MLflow, which a resumed run goes on with."""

LONGEST = 500
"""Characters of a parameter that every version of MLflow takes."""


def opened(folder: Path, known: Sequence[Line], settings: Mapping[str, object]) -> Logger:
    """A new run of MLflow, or that of the run that is resumed."""
    try:
        from mlflow.entities import Metric, Param, RunTag
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise ConfigError(
            "training.loggers: mlflow is not installed: pip install 'recurra[mlflow]', or leave it out."
        ) from error
    client = MlflowClient()
    if known and (folder / RUN).is_file():
        return MLflow(client, Metric, (folder / RUN).read_text("utf-8").strip())
    experiment = client.get_experiment_by_name(EXPERIMENT)
    number = client.create_experiment(EXPERIMENT) if experiment is None else experiment.experiment_id
    run = client.create_run(number, run_name=folder.name)
    params = [Param(name, str(value)[:LONGEST]) for name, value in settings.items()]
    for first in range(0, len(params), 100):  # as many as one call takes
        client.log_batch(run.info.run_id, params=params[first : first + 100])
    client.log_batch(run.info.run_id, tags=[RunTag("recurra.folder", str(folder))])
    (folder / RUN).write_text(run.info.run_id + "\n", "utf-8")
    return MLflow(client, Metric, run.info.run_id)


@final
class MLflow(Logger):
    """One run of MLflow."""

    def __init__(self, client: Any, metric: Any, run: str) -> None:
        self._client, self._metric, self._run = client, metric, run

    def write(self, line: Line) -> None:
        if not isinstance(line, EventLine):
            now = int(1000 * time.time())
            found = [self._metric(name, x, now, line.step) for name, x in numbers_in(line).items()]
            self._client.log_batch(self._run, metrics=found)

    def close(self) -> None:
        self._client.set_terminated(self._run)
