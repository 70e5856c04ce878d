"""Several right answers for an item: each item has a list of references, often of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from recurra.errors import DataError

Tokens: TypeAlias = Sequence[str]
"""An answer in parts: words, characters or symbols."""

References: TypeAlias = Sequence[Sequence[str]]
"""The right texts of each item."""


def check_references(gold: Sequence[Sequence[object]], predicted: Sequence[object]) -> None:
    """Nothing, or a DataError that names the first item without a reference or without an answer.

    >>> check_references([["a cat", "one cat"], []], ["a cat", "a dog"])
    Traceback (most recent call last):
    recurra.errors.DataError: item 2 has no reference: each item needs at least one.
    """
    if len(gold) != len(predicted):
        raise DataError(
            f"gold has {len(gold)} items but predicted has {len(predicted)}: each item needs both. Item "
            f"{min(len(gold), len(predicted)) + 1} is the first without a counterpart."
        )
    if not gold:
        raise DataError("a score needs at least one item, but gold and predicted are empty.")
    for number, references in enumerate(gold, start=1):
        if isinstance(references, str):
            raise DataError(
                f"item {number} of gold is the text {references!r:.60}, but must be a list of references: write "
                f"[{references!r:.60}]."
            )
        if not references:
            raise DataError(f"item {number} has no reference: each item needs at least one.")
