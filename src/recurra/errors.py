"""What can go wrong, as one small tree. The command line prints these without a traceback and exits with 2.

RecurraError
├── ConfigError      a name, an option or a size that cannot be used
├── DataError        a file, values or lengths that do not fit what they are given to
├── EngineError      an engine was asked for by name and cannot run the cell
├── CheckpointError  a run folder that cannot be read or written
└── TrainingError    a training that cannot go on
"""


class RecurraError(Exception):
    """The base of every error that is the user's to mend: what, where, why and what to do."""


class ConfigError(RecurraError):
    """A name, an option or a size that cannot be used."""


class DataError(RecurraError):
    """A file, values or lengths that do not fit what they are given to."""


class EngineError(RecurraError):
    """An engine was asked for by name and cannot run the cell."""


class CheckpointError(RecurraError):
    """A run folder that cannot be read or written."""


class TrainingError(RecurraError):
    """A training that cannot go on."""


def is_lack_of_memory(error: Exception) -> bool:
    """Whether Python, the CPU's allocator or the device says that there is no memory left."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "can't allocate memory" in str(error)
    )
