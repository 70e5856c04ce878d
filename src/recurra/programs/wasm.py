"""A program compiled to WebAssembly, for pages: by Zig's C compiler, which brings all that C needs there."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from recurra.errors import ConfigError

FLAGS = (
    "--target=wasm32-wasi",
    "-mexec-model=reactor",
    "-O3",
    "-msimd128",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-s",
)
"""No -ffast-math: NaN and infinity must stay what they are."""

ALWAYS = ("malloc", "free", "recurra_open", "recurra_close")


@functools.cache
def zig() -> tuple[str, ...]:
    """The command that runs Zig: that of the package `ziglang`, or one that is installed; a ConfigError without one."""
    if importlib.util.find_spec("ziglang") is not None:
        return sys.executable, "-m", "ziglang"
    if (found := shutil.which("zig")) is not None:
        return (found,)
    raise ConfigError(
        "a page needs WebAssembly, which is compiled by Zig, and there is none here. Run pip install ziglang."
    )


def compiled(text: str, functions: Sequence[str]) -> bytes:
    """The module of a printed program, which exports memory, malloc, free and these functions, and imports nothing."""
    with tempfile.TemporaryDirectory(prefix="recurra-") as private:
        source, built = Path(private, "model.c"), Path(private, "model.wasm")
        source.write_text(text, "utf-8")
        exported = [f"-Wl,--export={name}" for name in (*ALWAYS, *functions)]
        command = [*zig(), "cc", *FLAGS, *exported, "-o", str(built), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no word"])[0]
            raise ConfigError(f"the program cannot be compiled to WebAssembly: {reason}.")
        return built.read_bytes()
