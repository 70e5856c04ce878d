"""Shares of the training files that are held out, as in valid = "10%": which examples belong to which part."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from typing import Self

from recurra.frozen import NamedTuple
from recurra.settings import SettingError

HELD_OUT = ("valid", "test")


class Shares(NamedTuple):
    """How much of the training files is held out for validation and for the test, 0 to 1, and the seed of the draw."""

    valid: float
    test: float
    seed: int

    @classmethod
    def of(cls, valid: str | Sequence[str], test: str | Sequence[str], seed: int) -> Self | None:
        """The shares that data.valid and data.test mean; None where both are files or not given.

        >>> Shares.of(["10%"], "test.tsv", seed=1)
        Shares(valid=0.1, test=0.0, seed=1)
        """
        found = cls(_share(valid, "valid"), _share(test, "test"), seed)
        if found.valid + found.test >= 1:
            raise SettingError(
                f"data.valid = '{_in_words(valid)}' and data.test = '{_in_words(test)}' leave nothing to train on: "
                f"take smaller shares.",
                ("data", "test"),
            )
        return found if found.valid or found.test else None

    def of_part(self, name: str) -> float:
        """How much belongs to one part."""
        return 1 - self.valid - self.test if name == "train" else self.valid if name == "valid" else self.test


class FilePart(str):
    """The path of a training file of which only one part is read. It is a path like any other for all who name it.

    >>> part = FilePart("a.tsv", "train", Shares(valid=0.1, test=0.1, seed=1))
    >>> part, [part.holds(position) for position in (0.0, 0.79, 0.81, 0.95)], part.span(20)
    ('a.tsv', [True, True, False, False], (0, 16))
    """

    name: str
    shares: Shares

    def __new__(cls, path: str, name: str, shares: Shares) -> Self:
        part = super().__new__(cls, path)
        part.name, part.shares = name, shares
        return part

    def like(self, path: str) -> FilePart:
        """The same part of another file."""
        return FilePart(path, self.name, self.shares)

    @property
    def _bounds(self) -> tuple[float, float]:
        """Where training ends and where the test begins, rounded: 1 - 0.2 - 0.1 is to be 0.7."""
        return round(1 - self.shares.valid - self.shares.test, 12), round(1 - self.shares.test, 12)

    def holds(self, position: float) -> bool:
        """Whether a position belongs to this part: of 0 to 1, the first belong to training, the last to the test."""
        until_valid, until_test = self._bounds
        found = "train" if position < until_valid else "valid" if position < until_test else "test"
        return found == self.name

    def draw(self, key: bytes) -> float:
        """A position that is drawn by the seed; that of equal keys is the same."""
        digest = hashlib.blake2b(b"%d %b" % (self.shares.seed, key), digest_size=6).digest()
        return int.from_bytes(digest) / (1 << 48)

    def span(self, steps: int) -> tuple[int, int]:
        """Which of so many steps, in the order of time, belong to this part: the first, and the one after the last."""
        ends = [0, *(round(steps * bound) for bound in self._bounds), steps]
        number = ("train", *HELD_OUT).index(self.name)
        return ends[number], ends[number + 1]


def _share(given: str | Sequence[str], name: str) -> float:
    """The share that a setting means; 0 where it is a file or nothing."""
    listed = [given] if isinstance(given, str) else list(given)
    keys = ("data", name)
    if len(listed) == 1 and re.fullmatch(r"0?\.\d+", listed[0]) and not os.path.exists(listed[0]):
        meant = f"{100 * float(listed[0]):g}%"
        raise SettingError(f"data.{name} = '{listed[0]}' is not a file: for a share of the data write {meant}.", keys)
    if not any(each.rstrip().endswith("%") for each in listed):
        return 0.0
    if len(listed) > 1:
        raise SettingError(
            f"data.{name} = {listed} is more than a share: give either one share of the training data, such as 10%, "
            f"or files.",
            keys,
        )
    text = listed[0]
    if not re.fullmatch(r"\d+(\.\d+)?%", text):
        is_near = re.fullmatch(r"\s*\d+(\.\d+)?\s*%\s*", text)
        how = f"write {''.join(text.split())}, without a blank" if is_near else "write a number, such as 10%"
        raise SettingError(f"data.{name} = '{text}' is not a share of the training data: {how}.", keys)
    share = float(text.removesuffix("%")) / 100
    if not 0 < share < 1:
        raise SettingError(
            f"data.{name} = '{text}' must be above 0% and below 100% of the training data: take 10%, for example.", keys
        )
    return share


def _in_words(given: str | Sequence[str]) -> str:
    return given if isinstance(given, str) else ", ".join(given)
