"""The JSON API in its own words, as OpenAPI has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import recurra


def described(runs: Sequence[str]) -> dict[str, Any]:
    """The document that /openapi.json answers with, for runs of these names."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "recurra serve", "version": recurra.__version__, "description": ", ".join(runs)},
        "paths": {},
    }
