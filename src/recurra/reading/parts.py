"""The examples of a part of the training files, where a share of them is held out, as in valid = "10%"."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

from recurra.config.share import HELD_OUT, FilePart
from recurra.errors import DataError

Example = TypeVar("Example")

COUNTED = 100_000
"""Examples up to which a share is counted, and not only drawn: of more, chance comes as near to it."""


def drawn(
    files: Sequence[str | Path], examples: Callable[[], Iterator[Example]], key: Callable[[Example], bytes]
) -> Iterator[Example]:
    """Of the examples of some files those that belong to the part that is asked for; all, where whole files are.

    Those with equal keys, such as the same question with two answers, belong to the same part. Of COUNTED examples at
    most, a share is exact but for these.
    """
    parts = [file for file in files if isinstance(file, FilePart)]
    if not parts:
        yield from examples()
        return
    order = sorted(parts[0].draw(key(example)) for example in islice(examples(), COUNTED + 1))
    is_empty = True
    for example in examples():
        position = parts[0].draw(key(example))
        if len(order) <= COUNTED:
            position = (bisect_left(order, position) + 0.5) / len(order)
        if parts[0].holds(position):
            is_empty = False
            yield example
    if is_empty:
        different = len(set(order))
        equal = f" ({different:,} different: equal ones stay together)" if different < len(order) else ""
        raise nothing_left(parts, f"{len(order):,} example{'s' * (len(order) != 1)}{equal}")


def nothing_left(parts: Sequence[FilePart], what: str) -> DataError:
    """What is said where a part has no example: `what` there is in the whole files."""
    [part, *_] = parts
    given = [f"data.{name} = {part.shares.of_part(name) * 100:g}%" for name in HELD_OUT if part.shares.of_part(name)]
    files = ", ".join(parts)
    if part.name == "train":
        return DataError(
            f"{files}: {' and '.join(given)} leave{'s' * (len(given) == 1)} nothing of {what} to train on. Take a "
            f"smaller share, or add examples."
        )
    share = f"data.{part.name} = {part.shares.of_part(part.name) * 100:g}%"
    return DataError(f"{files}: {share} holds out nothing of {what}. Take a larger share, or name a file.")
