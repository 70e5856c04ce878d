"""What a token looks like on a screen, and how much room it takes there."""

from __future__ import annotations

import unicodedata

LONGEST = 24
"""So many columns of a token are shown."""

JOINERS = "\u200c\u200d"
"""Signs without width that some scripts are written with."""


def shown(token: str) -> str:
    """A token with nothing in it that cannot be seen or that moves the cursor, cut where it is long.

    >>> shown("a b"), shown("\\n"), shown(""), shown("so " * 20)
    ('a␣b', '↵', '∅', 'so␣so␣so␣so␣so␣so␣so␣so…')
    """
    whole = without_controls(token.replace("\n", "↵").replace(" ", "␣"))
    if columns(whole) <= LONGEST:
        return whole or "∅"
    fitting = (whole[:size] for size in range(LONGEST, 0, -1))
    return next(start for start in fitting if columns(start) < LONGEST) + "…"


def without_controls(text: str) -> str:
    """A text in which � stands for whatever a terminal or a browser might obey instead of showing it.

    >>> without_controls("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join(c if c.isprintable() or c in JOINERS else "�" for c in text)


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: two for a Chinese character, none for an accent of its own.

    >>> columns("tea"), columns("お茶"), columns("cafe\u0301")
    (3, 4, 4)
    """
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
