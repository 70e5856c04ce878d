"""C text to a loaded library: compiled once, kept in a cache folder under the hash of all that went into it."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

import torch
from torch import Tensor

from recurra.cache import cache_folder

FLAGS = ("-O3", "-march=native", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")
"""No -ffast-math: NaN and infinity must stay what they are."""


class NoCompiler(Exception):
    """There is no library to be had; the message is the reason, in words."""


@functools.cache
def compiler() -> tuple[str, ...] | None:
    """The C compiler and its own arguments: $CC, split as a shell does ("ccache gcc"); or cc, gcc or clang."""
    wanted = os.environ.get("CC")
    commands = [["cc"], ["gcc"], ["clang"]] if wanted is None else [split(wanted)]
    return next(((path, *rest) for name, *rest in filter(None, commands) if (path := shutil.which(name))), None)


def split(command: str) -> list[str]:
    """A command line as a shell splits it; one with an open quote, which no shell would run, is no command."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


@functools.lru_cache(maxsize=256)
def library(text: str) -> ctypes.CDLL:
    """The compiled text. A broken file in the cache is compiled anew; one can do without a cache to write to."""
    command = compiler()
    if command is None:
        raise NoCompiler("no C compiler was found")
    folder = cache_folder()
    path = folder / f"{key(command, text)}.so"
    if path.exists():
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            notice(f"recurra: {path} is broken and is compiled again.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return compiled(command, text, folder, path)
    except OSError as error:
        notice(f"recurra: the cache folder {folder} cannot be used ({error}); compiling for this process alone.")
    with tempfile.TemporaryDirectory(prefix="recurra-") as private:
        return compiled(command, text, Path(private), Path(private) / "rows.so")


def compiled(command: tuple[str, ...], text: str, folder: Path, path: Path) -> ctypes.CDLL:
    """Compile beside the goal and rename: another process never sees half a file."""
    number, name = tempfile.mkstemp(suffix=".c", dir=folder)
    built = Path(name).with_suffix(".so")
    try:
        with os.fdopen(number, "w") as file:
            file.write(text)
        done = subprocess.run(
            [*command, *FLAGS, "-o", str(built), name, "-lm"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise NoCompiler(f"{shlex.join(command)} failed: {(done.stderr.strip().splitlines() or ['no word'])[0]}")
        os.replace(built, path)
    finally:
        for leftover in (Path(name), built):
            leftover.unlink(missing_ok=True)
    return ctypes.CDLL(str(path))


def can_read(dtype: torch.dtype, *tensors: Tensor) -> bool:
    """Whether C can read these where they lie: numbers of this type without gaps, in the memory of the CPU.

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
        return platform.machine() + platform.processor()
    return platform.machine() + next((line for line in lines if line.startswith(("flags", "Features"))), "")


def key(command: tuple[str, ...], text: str) -> str:
    return hashlib.sha256("\0".join([*command, *FLAGS, machine(), text]).encode()).hexdigest()[:32]


def notice(message: str) -> None:
    """One line, once."""
    warnings.warn(message, RuntimeWarning, stacklevel=2)
