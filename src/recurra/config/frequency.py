"""How far apart the steps of a series are, and where its clocks stand, as settings name them."""

from __future__ import annotations

import dataclasses
import re
import zoneinfo
from typing import Final

from recurra.errors import ConfigError

SECONDS: Final = {"s": 1, "min": 60, "h": 3600}
DAYS: Final = {"d": 1, "w": 7}
MONTHS: Final = {"mo": 1, "q": 3, "y": 12}
UNITS: Final = (*SECONDS, *DAYS, "b", *MONTHS)

IRREGULAR: Final = "irregular"
"""What data.frequency says of times that keep no step: rows are counted."""


@dataclasses.dataclass(frozen=True)
class Frequency:
    """How far apart steps are: 15 minutes, a month, or, of times that are numbers, 0.5.

    >>> str(Frequency.of("15min")), str(Frequency.of("mo")), str(Frequency(2.0, ""))
    ('15min', '1mo', '2')
    """

    count: float
    unit: str  # one of UNITS; "" where times are numbers

    @classmethod
    def of(cls, text: str) -> Frequency:
        """The frequency that a setting names."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)?\s*([a-z]*)", text.strip().lower())
        count = float(found[1] or 1) if found is not None else 0.0
        is_known = found is not None and (found[2] in UNITS or (not found[2] and found[1]))
        if found is None or not is_known or not count or (found[2] not in ("", *SECONDS) and count % 1):
            raise ConfigError(
                f"data.frequency = '{text}' is not a step between times. Write a number and a unit: 30s, 15min, 1h, "
                f"1d, 1b (weekdays), 1w, 1mo, 1q or 1y; of times that are numbers the number alone; or {IRREGULAR}."
            )
        return cls(count, found[2])

    def __str__(self) -> str:
        return f"{self.count:g}{self.unit}"

    def in_words(self) -> str:
        """A step in words.

        >>> Frequency(1, "h").in_words(), Frequency(15, "min").in_words(), Frequency(1, "b").in_words()
        ('an hour', '15 minutes', 'a weekday')
        """
        if not self.unit:
            return f"{self.count:g}"
        name = {"s": "second", "min": "minute", "h": "hour", "d": "day", "b": "weekday", "w": "week"} | {
            "mo": "month",
            "q": "quarter",
            "y": "year",
        }
        if self.count == 1:
            return f"{'an' if self.unit == 'h' else 'a'} {name[self.unit]}"
        return f"{self.count:g} {name[self.unit]}s"


def checked_zone(name: str) -> None:
    """Refuse a time zone that nobody knows."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"data.timezone = '{name}' is not a known time zone. Write one as Europe/Istanbul or UTC; on Windows, "
            "pip install tzdata."
        ) from error
