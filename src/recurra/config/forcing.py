"""Teacher forcing: how likely the decoder reads the right token, and not its own, at each step of training."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Literal, final

from recurra.frozen import dataclass
from recurra.named import did_you_mean
from recurra.settings import SettingError
from recurra.toml import shown

SHAPES: dict[str, dict[str, float]] = {
    "constant": {"k": 1.0},
    "linear": {"k": 1.0, "c": 5e-5, "floor": 0.0},
    "exponential": {"k": 0.9999, "floor": 0.0},
    "inverse_sigmoid": {"k": 2000.0, "floor": 0.0},
}
"""Ways in which the probability falls, each with its numbers and their defaults."""

WORDS = {"unit": ("token", "sequence"), "replacement": ("greedy", "sampled")}
"""Options that every shape has, each with its values, the usual one first."""

_PLACE = ("training", "forcing")


@final
@dataclass(frozen=True)
class Forcing:
    """The probability p of teacher forcing over the updates i of a training (Bengio et al. 2015).

        constant         p = k
        linear           p = max(ε, k - c i)
        exponential      p = max(ε, k^i)
        inverse_sigmoid  p = max(ε, k / (k + e^(i / k)))

    ε is `floor`, usually 0. A coin with p is thrown for each token, or once for a whole sequence; where it says no, the
    decoder reads its own most probable token, or one that it draws.

    >>> forcing = Forcing.of({"name": "linear", "c": 0.001, "floor": 0.25})
    >>> [forcing.probability(step) for step in (0, 500, 10_000)]
    [1.0, 0.5, 0.25]
    >>> Forcing.of(0.75).probability(10_000)
    0.75
    """

    shape: str = "constant"
    k: float = 1.0
    c: float = 0.0
    floor: float = 0.0
    unit: Literal["token", "sequence"] = "token"
    replacement: Literal["greedy", "sampled"] = "greedy"

    @classmethod
    def of(cls, given: object) -> Forcing:
        """What `training.forcing` means: a number is a constant; a name, or a table of a name and options, a shape."""
        if isinstance(given, int | float) and not isinstance(given, bool):
            if not 0 <= given <= 1:
                raise SettingError(f"training.forcing must be at least 0 and at most 1, but is {shown(given)}.", _PLACE)
            return cls(k=float(given))
        table = {"name": given} if isinstance(given, str) else given
        if not isinstance(table, Mapping) or "name" not in table:
            raise SettingError(
                f"training.forcing must be a number from 0 to 1, or a table with a name, such as {{name = 'linear', "
                f"c = 1e-4}}, but is {shown(given)}.",
                _PLACE,
            )
        name = table["name"]
        if name not in SHAPES:
            raise SettingError(
                f"training.forcing = {shown(name)} is not known. {did_you_mean(str(name), SHAPES)}", _PLACE
            )
        options = {str(key): value for key, value in table.items() if key != "name"}
        for option, value in options.items():
            _check(name, option, value)
        found = {**SHAPES[name], **options}
        if name == "linear" and found["floor"] > found["k"]:
            raise _wrong(
                "floor", f"training.forcing.floor = {found['floor']} is above k = {found['k']}, where it begins."
            )
        k, c, floor = (float(found.get(number, 0.0)) for number in ("k", "c", "floor"))
        unit, replacement = (options.get(word, values[0]) for word, values in WORDS.items())
        return cls(name, k, c, floor, unit, replacement)

    def varying(self, step: int) -> dict[str, float]:
        """What a log keeps of it after so many updates: p, unless that is always 1."""
        return {} if self.is_always else {"forcing": self.probability(step)}

    @property
    def is_always(self) -> bool:
        """Whether p is 1 all the time, so that no step needs what the one before it answered."""
        return self.shape == "constant" and self.k == 1

    def probability(self, step: int) -> float:
        """p after so many updates."""
        if self.shape == "constant":
            return self.k
        if self.shape == "linear":
            p = self.k - self.c * step
        elif self.shape == "exponential":
            p = self.k**step
        else:  # divided by e^(i / k), which would soon be too large for a float
            share = self.k * math.exp(-step / self.k)
            p = share / (share + 1)
        return max(self.floor, p)


def _check(name: str, option: str, value: object) -> None:
    """Refuse an option that a shape does not have, or a value that an option does not take."""
    if option not in {**SHAPES[name], **WORDS}:
        known = ["name", *SHAPES[name], *WORDS]
        raise _wrong(option, f"training.forcing = '{name}' has no option '{option}'. {did_you_mean(option, known)}")
    if option in WORDS:
        if value not in WORDS[option]:
            known = list(WORDS[option])
            raise _wrong(
                option, f"training.forcing.{option} = {shown(value)} is not known. {did_you_mean(str(value), known)}"
            )
        return
    is_slope, is_scale = option == "c", name == "inverse_sigmoid" and option == "k"
    least, most = (1 if is_scale else 0), (sys.float_info.max if is_slope or is_scale else 1)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        wanted = f"at least {least}" + (" and at most 1" if most == 1 else "")
        raise _wrong(option, f"training.forcing.{option} must be {wanted}, but is {shown(value)}.")


def _wrong(option: str, message: str) -> SettingError:
    return SettingError(message, (*_PLACE, option))
