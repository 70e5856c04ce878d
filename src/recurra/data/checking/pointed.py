"""Whether targets name elements of a series by their numbers, as pointer networks write them."""

from __future__ import annotations

from collections.abc import Mapping

from recurra.data.checking.tasks import Service
from recurra.data.formats.reader import Value

POINTER = "--set model.pointer=additive"


class PointSurvey:
    """Sees rows with a series and a target: whether every target is numbers of its elements, from 1.

    >>> survey = PointSurvey()
    >>> survey.see({"frames": [[0.1, 0.7], [0.4, 0.2], [0.9, 0.5]], "target": "1 2 3"})
    >>> survey.holds
    True
    >>> survey.see({"frames": [[0.1, 0.7], [0.4, 0.2]], "target": "3 1"})
    >>> survey.holds
    False
    """

    def __init__(self) -> None:
        self.rows = self.named = self.numbers = 0

    def see(self, values: Mapping[str, Value]) -> None:
        self.rows += 1
        if self.named < self.rows - 1:  # it does not hold already
            return
        series = [value for value in values.values() if isinstance(value, list) and value]
        targets = [value for value in values.values() if isinstance(value, str)]
        if len(series) != 1 or len(targets) != 1:
            return
        words, most = targets[0].split(), len(series[0])
        self.numbers += len(words)
        self.named += all(word.isascii() and word.isdigit() and 1 <= int(word) <= most for word in words)

    @property
    def holds(self) -> bool:
        """Numbers of digits that are spoken may lie in the range by chance: several a row do not."""
        return self.rows == self.named and self.numbers >= 2 * self.rows > 0


def pointing(service: Service, survey: PointSurvey) -> Service:
    """What a task says, with the setting that makes it point where all targets are elements."""
    if service.task != "seq2seq" or service.command is None or not survey.holds:
        return service
    return service._replace(command=f"{service.command} {POINTER}")
