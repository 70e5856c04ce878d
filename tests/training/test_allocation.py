"""A process that trains keeps what its steps have freed."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys, numpy as np
from recurra.training.allocation import keep_freed_memory

def megabytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1000

if sys.argv[1] == "kept":
    keep_freed_memory()
before = megabytes()
arrays = [np.ones(2**21) for _ in range(8)]
del arrays
print(megabytes() - before)
"""


def grown_by(how: str, **environment: str) -> float:
    """Megabytes that a process has more after it has freed 134 of them."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", SCRIPT, how]
    done = subprocess.run(command, env={**plain, **environment}, capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="the C library is not glibc")
def test_what_was_freed_stays_unless_the_environment_says_otherwise() -> None:
    assert grown_by("as usual") < 40
    assert grown_by("kept") > 120
    assert grown_by("kept", MALLOC_TRIM_THRESHOLD_="100000") < 40
