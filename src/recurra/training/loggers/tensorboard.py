"""TensorBoard: RUN/tensorboard/, where TensorBoard is installed."""

from __future__ import annotations

import importlib
import itertools
import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import ClassVar, final

from recurra.training.log import EventLine, Line, Logger, numbers_in


@final
class TensorBoard(Logger):
    """An event file, by TensorBoard's own record writer and messages: they need neither torch nor tensorflow."""

    _numbers: ClassVar = itertools.count()

    def __init__(self, folder: Path, messages: ModuleType, values: ModuleType, records: ModuleType) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # TensorBoard reads the files of a folder in the order of their names and looks for 'tfevents' in them.
        name = f"events.out.tfevents.{time.time_ns():020d}.{os.getpid()}.{next(self._numbers)}"
        self._messages, self._values = messages, values
        self._records = records.RecordWriter((folder / name).open("xb", buffering=0))

    @classmethod
    def open(cls, run: Path, known: Sequence[Line]) -> TensorBoard | None:
        """None where TensorBoard is missing or broken: training does not need it."""
        try:
            messages = importlib.import_module("tensorboard.compat.proto.event_pb2")
            values = importlib.import_module("tensorboard.compat.proto.summary_pb2")
            records = importlib.import_module("tensorboard.summary.writer.record_writer")
        except Exception:  # beside ImportError: its generated messages raise TypeError with a protobuf they do not fit
            return None
        board = cls(run / "tensorboard", messages, values, records)
        board._event(file_version="brain.Event:2")
        # What earlier files say about later steps does not hold.
        first_new = max((line.step for line in known), default=-1) + 1
        # "A session starts": TensorBoard forgets what earlier files of the folder say about this step and later ones.
        board._event(step=first_new, session_log=messages.SessionLog(status=messages.SessionLog.START))
        return board

    def write(self, line: Line) -> None:
        if isinstance(line, EventLine):
            return
        value = self._values.Summary.Value
        found = [value(tag=name, simple_value=x) for name, x in numbers_in(line).items()]
        self._event(step=line.step, summary=self._values.Summary(value=found))

    def _event(self, **content: object) -> None:
        self._records.write(self._messages.Event(wall_time=time.time(), **content).SerializeToString())

    def close(self) -> None:
        self._records.close()
