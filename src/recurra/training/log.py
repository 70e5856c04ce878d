"""What a training run writes down as it goes: metrics.jsonl, one JSON object a line; loggers are told the same."""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, BinaryIO, NamedTuple, Self, TypeAlias, final

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


class Logger(ABC):
    """What is told each line of a log besides metrics.jsonl."""

    @abstractmethod
    def write(self, line: Line) -> None:
        """One more line."""

    def close(self) -> None:
        """Training has ended, however it did."""
        return


Opening: TypeAlias = Callable[[Path, Sequence[Line]], Logger | None]
"""Opens a logger of a run folder, whose log holds some lines already if it is resumed; None: there is none."""


def numbers_in(line: TrainLine | ValidLine) -> dict[str, float]:
    """The numbers of a line by names such as train/loss and valid/accuracy; unknown ones are left out.

    >>> numbers_in(ValidLine(4, 1.0, {"accuracy": 0.5}, best=True))
    {'valid/accuracy': 0.5}
    """
    kind = "train" if isinstance(line, TrainLine) else "valid"
    numbers = {name: x for name, x in line._asdict().items() if name in TrainLine._fields[2:-2]}
    numbers |= line.scores if isinstance(line, ValidLine) else line.logged
    return {f"{kind}/{name}": float(x) for name, x in numbers.items() if math.isfinite(x)}


class Lines(ABC):
    """Where the lines of a training go."""

    @property
    @abstractmethod
    def position(self) -> int:
        """Bytes written and flushed so far: the `keep` of a run that resumes from here."""

    @abstractmethod
    def write(self, line: Line) -> None:
        """Append a line; it is in the file when this returns."""


@final
class NoLog(Lines):
    """Lines that another process writes."""

    @property
    def position(self) -> int:
        return 0

    def write(self, line: Line) -> None:
        return


_KINDS: dict[str, type[Line]] = {"train": TrainLine, "valid": ValidLine, "event": EventLine}


@final
class Log(Lines):
    """RUN/metrics.jsonl, and the loggers that are opened with it.

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

    def __init__(
        self, folder: str | os.PathLike[str], keep: int | None = None, loggers: Sequence[Opening] = ()
    ) -> None:
        self.path = Path(folder) / FILE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch()
            os.truncate(self.path, _whole_lines(self.path, keep or 0))
            known = read_log(self.path)
            # Unbuffered: what a full disk refuses is not tried again when the file is closed.
            self._file = self.path.open("ab", buffering=0)
        except OSError as error:
            raise DataError(
                f"the log {self.path} cannot be written: {error.strerror}. Choose another folder."
            ) from error
        self._loggers: list[Logger] = []
        try:
            for opening in loggers:
                if (logger := opening(self.path.parent, known)) is not None:
                    self._loggers.append(logger)
        except BaseException:
            self.close()
            raise

    @property
    def position(self) -> int:
        return self._file.tell()

    def write(self, line: Line) -> None:
        try:
            rest = memoryview(_to_json(line).encode() + b"\n")
            while rest:
                rest = rest[self._file.write(rest) :]
            for logger in self._loggers:
                logger.write(line)
        except OSError as error:
            raise DataError(
                f"the log {self.path} cannot be written: {error.strerror}. Make room, then resume the run."
            ) from error

    def close(self) -> None:
        self._file.close()
        for logger in self._loggers:
            logger.close()

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
