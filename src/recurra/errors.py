"""What can go wrong, as one small tree. The command line prints these without a traceback and exits with 2.

RecurraError
├── ConfigError      a name, an option or a size that cannot be used
├── DataError        a file, values or lengths that do not fit what they are given to
├── EngineError      an engine was asked for by name and cannot run the cell
├── CheckpointError  a run folder that cannot be read or written
├── TrustError       a run folder that would run code which the user has not allowed
├── TrainingError    a training that cannot go on
└── WorkerError      one of several processes that work together ended before its work was done
"""

from __future__ import annotations

import os


class RecurraError(Exception):
    """Base class of all errors caused by the user's input: what is wrong, where, why and what to do."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in place of a traceback: the lines of the user that led here, and the message.

        The lines of recurra and other packages tell nothing about a mistake in what they were given; %debug has them.
        """
        import traceback
        from pathlib import Path

        others = tuple(f"{Path(file).parent}{os.sep}" for file in (__file__, os.__file__))  # recurra, Python's library
        shown = []
        for frame in traceback.extract_tb(self.__traceback__):
            if not frame.filename.startswith(others) and not {"site-packages", "IPython"} & {
                *Path(frame.filename).parts
            }:
                place = f"{frame.filename}:{frame.lineno}" if Path(frame.filename).is_file() else f"line {frame.lineno}"
                shown.append(f"{place}: {frame.line}")
        kind = next(each.__name__ for each in type(self).__mro__ if each.__module__ == __name__)  # one of the tree
        return [*shown, f"\x1b[31m{kind}\x1b[39m: {self}"]


class ConfigError(RecurraError):
    """Raised for a setting, option, name or size that cannot be used."""


class DataError(RecurraError):
    """Raised for data files or values that cannot be used."""


class EngineError(RecurraError):
    """Raised when an engine that was requested by name cannot run the cell."""


class CheckpointError(RecurraError):
    """Raised when a run folder cannot be read or written."""


class TrustError(RecurraError):
    """Raised when a run folder names code from outside recurra and is not trusted."""


class TrainingError(RecurraError):
    """Raised when training cannot continue, for example because the loss is not finite."""


class WorkerError(RecurraError):
    """Raised when a worker process cannot be started, or ended before its work was done."""


def is_lack_of_memory(error: Exception) -> bool:
    """Whether Python, the CPU's allocator or the device says that there is no memory left."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "can't allocate memory" in str(error)
    )


def lacking(error: ImportError) -> str | None:
    """What to install, where something is missing that exported models do without; None where it is another thing.

    >>> lacking(ModuleNotFoundError("No module named 'torch'", name="torch"))
    'this needs torch, which is not installed: pip install recurra. Exported models answer without it.'
    """
    from importlib.util import find_spec

    name = (error.name or "").partition(".")[0]
    is_half = name == "recurra" and find_spec("recurra.padding") is None  # recurra-run is installed, and not the rest
    if not is_half and name not in ("torch", "safetensors", "rich"):
        return None
    what = "the whole of recurra" if is_half else name
    return f"this needs {what}, which is not installed: pip install recurra. Exported models answer without it."
