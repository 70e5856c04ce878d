"""Two texts in classification: what a question with both looks like, and classes that are named in a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.config import ClassificationSettings
from recurra.config.classification import USUAL_PAIRING
from recurra.errors import DataError
from recurra.reading.labelled import LabelledSequence
from recurra.settings import SettingError, name_of


def with_pairing(settings: ClassificationSettings) -> ClassificationSettings:
    """The settings, the columns of which are known, unless two texts are wanted where there is one."""
    name, data = name_of(settings.model.pairing), settings.data
    if data.second is None and settings.model.pairing != USUAL_PAIRING:
        read = data.text.column or data.frames or data.image.given
        raise SettingError(
            f"model.pairing = '{name}' reads two texts together, but only '{read}' is read. Name the second text: "
            'data.second = "…"; or leave model.pairing out.',
            ("model", "pairing"),
        )
    return settings


def asked_texts(line: str | Sequence[str], columns: Sequence[str], place: str, number: int) -> LabelledSequence:
    r"""A question with two texts: a line with a tab between them, or a list of both.

    >>> asked_texts("a man sleeps\ta man rests", ["premise", "hypothesis"], "input:1", 1).second
    'a man rests'
    """
    texts = line.split("\t") if isinstance(line, str) else [str(each) for each in line]
    if len(texts) != 2:
        raise DataError(
            f"{place}: found {len(texts)} text{'s' * (len(texts) != 1)}, but this model reads two, {columns[0]} and "
            f"{columns[1]}, with a tab between them."
        )
    return LabelledSequence(texts[0], None, None, (), None, 0, number, second=texts[1])


def in_one_line(text: str) -> str:
    """A text in which nothing looks like the tab or the end of a question."""
    return " ".join(text.split())


class NamedClasses(NamedTuple):
    """Classes as the tokens of their names, to be found in a text.

    >>> classes = NamedClasses.of(["Ada", "New York"], lambda name: name.lower().split())
    >>> classes.among("she flew to new york".split()).tolist(), classes.among("a new ada".split()).tolist()
    ([False, True], [True, False])
    """

    places: dict[tuple[str, ...], list[int]]  # from tokens to the classes that are written so
    lengths: tuple[int, ...]  # that names have, in tokens
    classes: int

    @classmethod
    def of(cls, labels: Sequence[str], split: Callable[[str], Sequence[str]]) -> NamedClasses:
        places: dict[tuple[str, ...], list[int]] = {}
        for number, label in enumerate(labels):
            places.setdefault(tuple(split(label)), []).append(number)
        return cls(places, tuple(sorted({len(name) for name in places if name})), len(labels))

    def among(self, tokens: Sequence[str]) -> NDArray[np.bool_]:
        """Which classes are named by tokens that stand side by side in a text."""
        found = np.zeros(self.classes, np.bool_)
        for length in self.lengths:
            for start in range(len(tokens) - length + 1):
                found[self.places.get(tuple(tokens[start : start + length]), [])] = True
        return found
