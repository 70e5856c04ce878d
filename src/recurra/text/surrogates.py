"""Halves of surrogate pairs, which Python's strings can hold and UTF-8 cannot."""

from __future__ import annotations

import re


def has_surrogate(text: str) -> bool:
    """True where a text is not valid Unicode, so that it could never be saved.

    >>> has_surrogate("naïve 😀"), has_surrogate("\\ud83d")
    (False, True)
    """
    return not text.isascii() and re.search("[\ud800-\udfff]", text) is not None
