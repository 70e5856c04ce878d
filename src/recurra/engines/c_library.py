"""C text to a loaded library: compiled once, kept in a cache folder under the hash of all that went into it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import stat
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recurra.cache import cache_folder

if TYPE_CHECKING:
    import torch
    from torch import Tensor

FLAGS = (
    "-O3",
    "-march=native",
    "-fopenmp-simd",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-shared",
    "-fPIC",
)
"""No -ffast-math: NaN and infinity must stay what they are."""


DIGEST = ".sha256"
"""Beside each library lies a file of this ending with the SHA-256 digest of the library."""

MOST_BYTES = 64 << 20
"""No library of ours is as large; what is larger is not read."""


MOST_SECONDS: float = 300
"""A compiler that takes longer is stopped: a program may be long, but none of ours takes a tenth of it."""


class NoCompiler(Exception):
    """There is no library to be had; the message is the reason, in words."""


class Unusable(Exception):
    """What lies in the cache must not be loaded; the message is the reason, in words."""


@functools.cache
def compiler() -> tuple[str, ...] | None:
    """The C compiler and its own arguments: $CC, split as a shell does ("ccache gcc"); or cc, gcc or clang."""
    wanted = os.environ.get("CC")
    commands = [["cc"], ["gcc"], ["clang"]] if wanted is None else [split(wanted)]
    return next(((path, *rest) for name, *rest in filter(None, commands) if (path := found_program(name))), None)


def found_program(name: str) -> str | None:
    """Where a program is, as `shutil.which` says; that is not imported, for it comes with all that packs files.

    >>> found_program("no such program") is None
    True
    """
    if os.name != "posix" or os.sep in name or not os.environ.get("PATH"):
        import shutil

        return shutil.which(name)
    paths = (os.path.join(folder, name) for folder in os.environ["PATH"].split(os.pathsep))
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def split(command: str) -> list[str]:
    """A command line as a shell splits it; one with an open quote, which no shell would run, is no command."""
    import shlex

    try:
        return shlex.split(command)
    except ValueError:
        return []


@functools.lru_cache(maxsize=256)
def library(text: str) -> ctypes.CDLL:
    """The compiled text, from the cache if what lies there is whole and ours; one can do without a cache."""
    return library_of(text, lambda: text)


def library_of(identity: str, printed: Callable[[], str]) -> ctypes.CDLL:
    """The same of a text that is printed where the cache has no library of its identity: what it is printed from."""
    command = compiler()
    if command is None:
        raise NoCompiler("no C compiler was found")
    try:
        return cached_or_compiled(command, identity, printed)
    except OSError as error:
        raise NoCompiler(f"compiled code cannot be written or loaded ({error})") from error


def cached_or_compiled(command: tuple[str, ...], identity: str, printed: Callable[[], str]) -> ctypes.CDLL:
    name = f"{key(command, identity)}.so"
    folder = cache_folder() / f"libraries-{user()}"
    try:
        opened = opened_folder(folder)
    except (OSError, Unusable) as error:
        notice(f"recurra: the cache folder {folder} cannot be used ({error}); compiling for this process alone.")
        return loaded(compiled(command, printed()))
    try:
        try:
            return loaded(verified(opened, name), folder)
        except FileNotFoundError:
            pass
        except (OSError, Unusable) as error:
            notice(f"recurra: {folder / name} is broken and is compiled again ({error}).")
        content = compiled(command, printed())
        try:
            keep(opened, name, content)
        except OSError as error:
            notice(f"recurra: {folder / name} cannot be written ({error}); compiling for this process alone.")
        return loaded(content, folder)
    finally:
        os.close(opened)


def user() -> int:
    """Each user has a folder of libraries, because a library that somebody else wrote runs with one's own rights."""
    return os.getuid() if hasattr(os, "getuid") else 0


def opened_folder(folder: Path) -> int:
    """The folder, made if need be and opened, so that the folder that is used is the one that was looked at."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    # Windows has neither flag, and opens no folder: there one does without the cache.
    opened = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0))
    try:
        refuse_strangers(os.fstat(opened))
    except Unusable:
        os.close(opened)
        raise
    return opened


def refuse_strangers(found: os.stat_result) -> None:
    """Only its user, and root, may have written what is to be run."""
    if found.st_uid not in (user(), 0):
        raise Unusable(f"it belongs to the user with the number {found.st_uid}, not to you")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unusable("other users may write to it")


def verified(folder: int, name: str) -> bytes:
    """What the library in the cache holds, once its digest has been found right."""
    content = read_own(folder, name, MOST_BYTES)
    try:
        digest = read_own(folder, name + DIGEST, 64)
    except FileNotFoundError:
        raise Unusable("its SHA-256 digest is missing") from None
    if digest != hashlib.sha256(content).hexdigest().encode():
        raise Unusable("it does not have the SHA-256 digest that was written with it")
    return content


def read_own(folder: int, name: str, most: int) -> bytes:
    """A file of one's own. O_NONBLOCK: a named pipe in its place must not wait for a writer."""
    number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with os.fdopen(number, "rb") as file:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            raise Unusable(f"{name} is not what recurra has written")
        refuse_strangers(found)
        return file.read(most)


def compiled(command: tuple[str, ...], text: str) -> bytes:
    """The bytes of a library; they do not depend on where it was compiled, so that two processes write the same."""
    import shlex
    import tempfile

    with tempfile.TemporaryDirectory(prefix="recurra-") as private:
        source, built = Path(private, "rows.c"), Path(private, "rows.so")
        source.write_text(text, "utf-8")
        status, said = finished([*command, *FLAGS, "-o", str(built), str(source), "-lm"])
        if status:
            lines = said.strip().splitlines() or ["no word"]
            first = next((line for line in lines if "error" in line), lines[0])  # gcc names the function before
            raise NoCompiler(f"{shlex.join(command)} failed: {first}")
        return built.read_bytes()


def finished(command: Sequence[str]) -> tuple[int, str]:
    """The status of a compiler and what it said; a NoCompiler if it takes too long, and then its children end too."""
    import signal
    import subprocess

    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        try:
            _, said = running.communicate(timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            if hasattr(os, "killpg"):
                os.killpg(running.pid, signal.SIGKILL)
            running.kill()
            raise NoCompiler(f"{command[0]} took longer than {MOST_SECONDS:g} seconds") from None
        return running.returncode, said


def keep(folder: int, name: str, content: bytes) -> None:
    """Write the library and its digest aside, sync and rename: another process never sees half a file."""
    import secrets

    digest = hashlib.sha256(content).hexdigest().encode()
    for goal, wanted in ((name, content), (name + DIGEST, digest)):
        aside = f"{goal}.{secrets.token_hex(4)}.part"
        try:
            number = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
            with os.fdopen(number, "wb") as file:
                file.write(wanted)
                file.flush()
                os.fsync(number)
            os.rename(aside, goal, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(aside, dir_fd=folder)
            raise
    os.fsync(folder)


def loaded(content: bytes, beside: Path | None = None) -> ctypes.CDLL:
    """Load these very bytes, from a copy that nobody else knows of: a file in the cache could be cut short or swapped
    while it is in use. The folder for temporary files may forbid to run what lies there: then the copy lies beside the
    cache's files."""
    try:
        return loaded_from(None, content)
    except OSError:
        if beside is None:
            raise
    return loaded_from(beside, content)


def loaded_from(place: Path | None, content: bytes) -> ctypes.CDLL:
    with private_folder(place) as private:
        copy = private / "rows.so"
        copy.write_bytes(content)
        return ctypes.CDLL(str(copy))


@contextlib.contextmanager
def private_folder(place: Path | None) -> Iterator[Path]:
    """A new folder that only this user may open, removed at the end.

    `tempfile` has the same, but to import it takes longer than to load a library.
    """
    folder = os.environ.get("TMPDIR") or "/tmp" if place is None else str(place)
    if os.name != "posix" or not os.access(folder, os.W_OK | os.X_OK):
        import tempfile

        # Windows does not remove a library that is in use.
        with tempfile.TemporaryDirectory(prefix="recurra-", dir=place, ignore_cleanup_errors=True) as private:
            yield Path(private)
        return
    own = Path(folder, f"recurra-{os.urandom(8).hex()}")
    own.mkdir(mode=0o700)
    try:
        yield own
    finally:
        with contextlib.suppress(OSError):
            for each in own.iterdir():
                each.unlink()
            own.rmdir()


def can_read(dtype: torch.dtype, *tensors: Tensor) -> bool:
    """Whether C can read these where they lie: numbers of this type without gaps, in the memory of the CPU.

    >>> import torch
    >>> can_read(torch.float32, torch.zeros(2, 3)), can_read(torch.float32, torch.zeros(2, 3).T)
    (True, False)
    """
    return all(t.dtype == dtype and t.device.type == "cpu" and t.is_contiguous() for t in tensors)


@functools.cache
def machine() -> str:
    """What -march=native depends on: a cache on a shared disk may serve unlike machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        import platform

        return platform.machine() + platform.processor()
    return os.uname().machine + next((line for line in lines if line.startswith(("flags", "Features"))), "")


def key(command: tuple[str, ...], identity: str) -> str:
    return hashlib.sha256("\0".join([*command, *FLAGS, machine(), identity]).encode()).hexdigest()[:32]


def notice(message: str) -> None:
    """One line, once."""
    warnings.warn(message, RuntimeWarning, stacklevel=2)
