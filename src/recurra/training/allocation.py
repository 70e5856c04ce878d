"""Memory that every step of training asks for anew."""

from __future__ import annotations

import ctypes
import os

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>, and what they are called in the environment: MALLOC_…_."""

MOST = 2**31 - 1
LARGE = 32 * 2**20
"""Bytes. The C library lets no larger block stay in its heap."""


def keep_freed_memory() -> None:
    """Keep in the process what it has freed, for its next step.

    A step needs copies of the largest weights for a moment. Given back to the system after each, they make the memory
    of the process go up and down; kept, it is flat. This is for a process that does nothing but train. Where the C
    library is not glibc, or was told otherwise by the environment, nothing changes.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(MMAP_THRESHOLD, LARGE)
    mallopt(TRIM_THRESHOLD, MOST)
