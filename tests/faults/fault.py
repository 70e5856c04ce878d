"""What goes wrong, and when: faults that shim.c makes in the system calls of a process."""

from __future__ import annotations

import ctypes
import enum
import errno
import platform
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).with_name("shim.c")
HEADER = struct.Struct("<IIIIqqQ")
"""Of a recorded change: struct record in shim.c."""


class Operation(enum.IntEnum):
    """Changes of files, numbered as in shim.c."""

    OPEN = 0
    WRITE = 1
    SYNC = 2
    RENAME = 3
    LINK = 4
    UNLINK = 5
    MKDIR = 6
    RMDIR = 7
    TRUNCATE = 8


EVERY = tuple(Operation)
GROWING = (Operation.OPEN, Operation.WRITE, Operation.MKDIR)
"""What a full disk refuses: the rest needs no new block."""


class Action(enum.IntEnum):
    """What becomes of the operation that is hit, numbered as in shim.c."""

    NOTHING = 0
    KILL = 1  # kill -9 before it
    TORN = 2  # kill -9 in the middle of it
    ERROR = 3  # it fails
    ERRORS = 4  # it fails, and all that follow
    SHORT = 5  # half is written, as write(2) may
    SIGNAL = 6  # a signal before it


@dataclass(frozen=True)
class Fault:
    """Hit the `at`-th of the `operations` on files inside `folder` with `match` in their paths."""

    folder: str
    action: Action = Action.NOTHING
    at: int = 0
    number: int = 0  # an errno or a signal
    again: int = 0  # so many operations later, a second signal
    match: str = ""
    operations: tuple[Operation, ...] = EVERY
    log: str = ""  # a file that is to hold every change, with its bytes
    told: str = ""  # a file that is to say which operation was hit

    @classmethod
    def full_disk(cls, folder: Path, at: int, **others: Any) -> Fault:
        return cls(str(folder), Action.ERRORS, at, errno.ENOSPC, operations=GROWING, **others)

    @classmethod
    def stop(cls, folder: Path, at: int, number: signal.Signals, again: int = 0, **others: Any) -> Fault:
        return cls(str(folder), Action.SIGNAL, at, number, again, **others)

    @classmethod
    def of(cls, table: dict[str, Any]) -> Fault:
        """What `asdict` and JSON have made of one."""
        operations = tuple(map(Operation, table["operations"]))
        return cls(**{**table, "action": Action(table["action"]), "operations": operations})

    def table(self) -> dict[str, Any]:
        return asdict(self)

    def begin(self, shim: ctypes.CDLL) -> None:
        """From here on the system calls of this process pass through the shim; there is no way back."""
        chosen = sum(1 << operation for operation in self.operations)
        words = [self.folder, self.match, self.log, self.told]
        folder, match, log, told = (word.encode() for word in words)
        at, again = ctypes.c_long(self.at), ctypes.c_long(self.again)
        failed = shim.faults_begin(folder, match, chosen, self.action, self.number, at, again, log, told)
        if failed:
            raise OSError(failed, "the shim cannot begin")


class Change(NamedTuple):
    """One change of the watched folder that was asked for, as the shim recorded it."""

    operation: Operation
    path: Path
    other: Path | None  # where a rename or a link leads
    flags: int  # of open
    offset: int  # of a write; the size that a truncation leaves
    result: int  # below 0 where the system refused it
    data: bytes


def read_changes(log: Path) -> Iterator[Change]:
    content = memoryview(log.read_bytes())
    at = 0

    def take(size: int) -> bytes:
        nonlocal at
        at += size
        return bytes(content[at - size : at])

    while at < len(content):
        operation, path_size, other_size, flags, offset, result, data_size = HEADER.unpack(take(HEADER.size))
        path, other = take(path_size).decode(), take(other_size).decode()
        goal = Path(other) if other else None
        yield Change(Operation(operation), Path(path), goal, flags, offset, result, take(data_size))


def why_no_shim() -> str | None:
    """Why faults cannot be made here, if they cannot."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "faults are made by seccomp on x86-64 Linux"
    if shutil.which("cc") is None:
        return "the shim that makes faults is written in C, and there is no compiler (cc)"
    return None


def build_shim(folder: Path) -> Path:
    built = folder / "shim.so"
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", built, SOURCE], check=True)
    return built
