"""Whether Triton is installed: it comes with torch for CUDA."""

from __future__ import annotations

import functools
import importlib.util


@functools.cache
def has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
