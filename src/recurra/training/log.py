"""What a training run writes down as it goes: metrics.jsonl, one JSON object a line, and the same for TensorBoard."""

from __future__ import annotations

import importlib
import itertools
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType, TracebackType
from typing import Any, BinaryIO, ClassVar, NamedTuple, Self, TypeAlias, final

from recurra.errors import DataError

FILE = "metrics.jsonl"

LONGEST = 1 << 20
"""Bytes of a line of a log."""

TABLES = {"scores", "logged"}
"""Fields of a line that hold numbers by name."""


class TrainLine(NamedTuple):
    """One optimiser step, or the mean of those since the line before. Unknown numbers are NaN."""

    step: int
    epoch: float
    loss: float
    learning_rate: float = math.nan
    gradient_norm: float = math.nan
    tokens_per_second: float = math.nan
    seconds: float = math.nan  # since the run began, those before a resumption counted
    logged: Mapping[str, float] = MappingProxyType({})  # what the task tells besides; absent where it is nothing


class ValidLine(NamedTuple):
    """One pass over the validation data."""

    step: int
    epoch: float
    scores: Mapping[str, float]
    loss: float = math.nan
    best: bool = False  # the best so far: what model.safetensors holds
    seconds: float = math.nan


class EventLine(NamedTuple):
    """Something that happened, in words: 'resumed from step 400'."""

    step: int
    text: str


Line: TypeAlias = TrainLine | ValidLine | EventLine

_KINDS: dict[str, type[Line]] = {"train": TrainLine, "valid": ValidLine, "event": EventLine}


@final
class Log:
    """RUN/metrics.jsonl, and RUN/tensorboard/ where TensorBoard is installed.

    A checkpoint records `position`; a run resumed from it opens its log with `keep` = that position, and whatever was
    written after the checkpoint is cut off, so that each step is there once. Without `keep` the log begins anew.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Log(folder) as log:
    ...         log.write(TrainLine(step=1, epoch=0.5, loss=2.25))
    ...         checkpoint = log.position
    ...         log.write(TrainLine(step=2, epoch=1.0, loss=2.0))
    ...     with Log(folder, keep=checkpoint) as log:
    ...         log.write(EventLine(step=1, text="resumed from step 1"))
    ...     [line.step for line in read_log(Path(folder) / "metrics.jsonl")]
    [1, 1]
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int | None = None) -> None:
        self.path = Path(folder) / FILE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch()
            os.truncate(self.path, _whole_lines(self.path, keep or 0))
            # What TensorBoard's earlier files say about later steps does not hold.
            first_new = max((line.step for line in read_log(self.path)), default=-1) + 1
            # Unbuffered: what a full disk refuses is not tried again when the file is closed.
            self._file = self.path.open("ab", buffering=0)
        except OSError as error:
            raise DataError(
                f"the log {self.path} cannot be written: {error.strerror}. Choose another folder."
            ) from error
        self._tensorboard = _TensorBoard.open(self.path.parent / "tensorboard", first_new)

    @property
    def position(self) -> int:
        """Bytes written and flushed so far: the `keep` of a run that resumes from here."""
        return self._file.tell()

    def write(self, line: Line) -> None:
        """Append a line; it is in the file when this returns."""
        try:
            rest = memoryview(_to_json(line).encode() + b"\n")
            while rest:
                rest = rest[self._file.write(rest) :]
            if self._tensorboard is not None:
                self._tensorboard.write(line)
        except OSError as error:
            raise DataError(
                f"the log {self.path} cannot be written: {error.strerror}. Make room, then resume the run."
            ) from error

    def close(self) -> None:
        self._file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def read_log(path: str | os.PathLike[str]) -> list[Line]:
    """The lines of a log. A last line that was only half written, as a killed run leaves it, is left out."""
    try:
        with open(path, "rb") as file:
            return list(_lines(file, path))
    except OSError as error:
        raise DataError(f"the log {path} cannot be read: {error.strerror}.") from error


def _lines(file: BinaryIO, path: str | os.PathLike[str]) -> Iterator[Line]:
    for number, text in enumerate(file, start=1):
        try:
            if text.strip():
                yield _from_json(text, f"{path}:{number}")
        except DataError:
            if text.endswith(b"\n"):
                raise


def _whole_lines(path: Path, keep: int) -> int:
    """The end of the last whole line within the first `keep` bytes."""
    with path.open("rb") as file:
        return file.read(max(keep, 0)).rfind(b"\n") + 1


def _to_json(line: Line) -> str:
    [kind] = [name for name, kind in _KINDS.items() if isinstance(line, kind)]
    values = {name: _plain(value) for name, value in line._asdict().items() if name != "logged" or value}
    return json.dumps({"kind": kind} | values, allow_nan=False)


def _plain(value: object) -> object:
    """JSON knows neither NaN nor infinity: they are written as null, and read as NaN."""
    if isinstance(value, Mapping):
        return {str(name): _plain(number) for name, number in value.items()}
    if hasattr(value, "item"):  # a numpy scalar, or a tensor of one value
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _from_json(text: bytes, where: str) -> Line:
    if len(text) > LONGEST:
        raise DataError(f"{where}: a line of a log has at most {LONGEST:,} bytes, but this one has more. Remove it.")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # not JSON, or not even UTF-8
        raise DataError(f"{where}: this line is not a JSON object, as each line of a log must be. Remove it.") from None
    kind = _KINDS.get(str(found.get("kind"))) if isinstance(found, dict) else None
    if kind is None:
        raise DataError(
            f"{where}: the kind of a log line must be one of {', '.join(_KINDS)}, but this line has none of them."
        )
    values: dict[str, Any] = {
        name: math.nan if found[name] is None else found[name] for name in kind._fields if name in found
    }
    for name in kind._fields:
        if name not in values and name not in kind._field_defaults:
            raise DataError(f"{where}: the {found['kind']} line has no '{name}'.")
        if name in values and not _fits(name, values[name]):
            value = json.dumps(found[name])
            raise DataError(f"{where}: '{name}' cannot be {value} in a {found['kind']} line of a log. Remove the line.")
    for tabled in TABLES & values.keys():
        values[tabled] = {name: math.nan if x is None else x for name, x in values[tabled].items()}
    return kind(**values)


def _fits(name: str, value: object) -> bool:
    if name in TABLES:
        return isinstance(value, dict) and all(x is None or _fits("score", x) for x in value.values())
    wanted = {"step": int, "text": str, "best": bool}.get(name, int | float)
    return isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))


@final
class _TensorBoard:
    """An event file, by TensorBoard's own record writer and messages: they need neither torch nor tensorflow."""

    _numbers: ClassVar = itertools.count()

    def __init__(self, folder: Path, messages: ModuleType, values: ModuleType, records: ModuleType) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # TensorBoard reads the files of a folder in the order of their names and looks for 'tfevents' in them.
        name = f"events.out.tfevents.{time.time_ns():020d}.{os.getpid()}.{next(self._numbers)}"
        self._messages, self._values = messages, values
        self._records = records.RecordWriter((folder / name).open("xb", buffering=0))

    @classmethod
    def open(cls, folder: Path, first_new: int) -> _TensorBoard | None:
        """None where TensorBoard is missing or broken: training does not need it."""
        try:
            messages = importlib.import_module("tensorboard.compat.proto.event_pb2")
            values = importlib.import_module("tensorboard.compat.proto.summary_pb2")
            records = importlib.import_module("tensorboard.summary.writer.record_writer")
        except Exception:  # beside ImportError: its generated messages raise TypeError with a protobuf they do not fit
            return None
        board = cls(folder, messages, values, records)
        board._event(file_version="brain.Event:2")
        # "A session starts": TensorBoard forgets what earlier files of the folder say about this step and later ones.
        board._event(step=first_new, session_log=messages.SessionLog(status=messages.SessionLog.START))
        return board

    def write(self, line: Line) -> None:
        if isinstance(line, EventLine):
            return
        kind = "train" if isinstance(line, TrainLine) else "valid"
        numbers = {name: x for name, x in line._asdict().items() if name in TrainLine._fields[2:-2]}
        numbers |= line.scores if isinstance(line, ValidLine) else line.logged
        value = self._values.Summary.Value
        found = [value(tag=f"{kind}/{name}", simple_value=x) for name, x in numbers.items() if math.isfinite(x)]
        self._event(step=line.step, summary=self._values.Summary(value=found))

    def _event(self, **content: object) -> None:
        self._records.write(self._messages.Event(wall_time=time.time(), **content).SerializeToString())

    def close(self) -> None:
        self._records.close()
