"""The space of a sweep: for each setting that varies, a list of choices or a range of numbers.

[sweep]
model.cell = ["gru", "lstm"]
model.hidden = {from = 32, to = 256, step = 32}
training.learning_rate = {from = 1e-4, to = 1e-2, log = true}
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from recurra.config.given import Assignment, Given, Keys, Origin
from recurra.errors import ConfigError
from recurra.named import did_you_mean, fits
from recurra.settings import SettingError, field_type
from recurra.toml import dotted, shown, toml_value

SECTION = "sweep"
"""The table of a config file that holds the space."""

RANGE = ("from", "to", "step", "log")
"""What a range is made of."""

MEASURING: tuple[Keys, ...] = (("data", "valid"), ("data", "test"), ("data", "seed"), ("evaluation",), ("task",))
"""Settings, and sections of them, that decide what is measured: trials that differ in them cannot be compared."""

Label: TypeAlias = "str | int | float | bool"
"""A value as the journal has it: what is no single value is written as TOML."""


class Choices(NamedTuple):
    """One of several values."""

    values: Sequence[Any]

    @property
    def labels(self) -> list[Label]:
        """Each value as the journal has it.

        >>> Choices(["gru", {"name": "gru", "reset": "after"}]).labels
        ['gru', '{name = "gru", reset = "after"}']
        """
        return [label_of(value) for value in self.values]

    @property
    def ends(self) -> Sequence[Any]:
        """Values to try whether settings take them: all."""
        return self.values

    def value(self, label: Label) -> Any:
        """What a label means."""
        return self.values[self.labels.index(label)]

    def has(self, value: object) -> bool:
        """Whether this is one of the choices."""
        return any(value == each and isinstance(value, bool) is isinstance(each, bool) for each in self.values)


class Range(NamedTuple):
    """A number between two ends, both of which it may be."""

    low: float
    high: float
    step: float | None = None
    log: bool = False
    whole: bool = False

    @property
    def ends(self) -> Sequence[float]:
        """Values to try whether settings take them: the first and the last."""
        return [self.low, self.high]

    def value(self, label: Label) -> Any:
        """A number as a setting takes it."""
        return label

    def has(self, value: object) -> bool:
        """Whether a number can be drawn.

        >>> Range(32, 128, step=32, whole=True).has(96), Range(32, 128, step=32, whole=True).has(100)
        (True, False)
        """
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return False
        steps = 0.0 if self.step is None else (value - self.low) / self.step
        return math.isclose(steps, round(steps), abs_tol=1e-9) and (isinstance(value, int) or not self.whole)


class Varied(NamedTuple):
    """A setting that varies."""

    keys: Keys
    values: Choices | Range
    origin: Origin

    @property
    def name(self) -> str:
        return dotted(self.keys)

    def at(self, value: object) -> Assignment:
        """The setting with one of its values."""
        return Assignment(self.keys, value, self.origin, replaces=True)


def label_of(value: object) -> Label:
    """A value as the journal has it."""
    return value if isinstance(value, str | int | float | bool) else toml_value(value)


def without_space(given: Given) -> tuple[Given, list[Assignment]]:
    """What was given without the table of the space, and the assignments that make the space."""
    spaces = [each for each in given.assignments if each.keys[0] == SECTION]
    rest = tuple(each for each in given.assignments if each.keys[0] != SECTION)
    return Given(rest, given.is_run), spaces


def space_of(spaces: Sequence[Assignment], settings: type) -> list[Varied]:
    """The space that tables give, each setting with the place where it was given; those of a later table count."""
    found: dict[Keys, Varied] = {}
    for space in spaces:
        origin = space.origin or Origin(SECTION)
        inside = space.keys[1:]
        for path, keys, value in _leaves(inside, (), space.value):
            place = Origin(origin.words, origin.file, (*origin.keys, *path), None)
            if origin.file is None:
                place = origin.inside(path)._replace(source=None)
            _check_name(keys, place)
            found[keys] = Varied(keys, _values(keys, value, settings, place), place)
    if not found:
        raise ConfigError(
            "there is nothing to vary: name settings and their values in a table [sweep] of the config file, such as\n"
            '[sweep]\nmodel.cell = ["gru", "lstm"]\ntraining.learning_rate = {from = 1e-4, to = 1e-2, log = true}'
        )
    return list(found.values())


def table_of_space(space: Sequence[Varied]) -> dict[str, Any]:
    """The space as its file could have it."""

    def written(values: Choices | Range) -> Any:
        if isinstance(values, Choices):
            return list(values.values)
        found: dict[str, Any] = {"from": values.low, "to": values.high}
        found |= {} if values.step is None else {"step": values.step}
        return found | ({"log": True} if values.log else {})

    return {varied.name: written(varied.values) for varied in space}


def _leaves(keys: Keys, path: Keys, value: object) -> Iterator[tuple[Keys, Keys, object]]:
    """The settings in a table of tables: how each stands there, its name, and its choices or its range."""
    if isinstance(value, Mapping) and value and not (value.keys() & {"from", "to"}):
        for key, inner in value.items():
            yield from _leaves((*keys, *str(key).split(".")), (*path, str(key)), inner)
    elif keys:
        yield path, keys, value
    elif not isinstance(value, Mapping):
        raise ConfigError(f"[sweep] must be a table of settings that vary, but is {shown(value)}.")


def _check_name(keys: Keys, place: Origin) -> None:
    for measuring in MEASURING:
        if keys[: len(measuring)] == measuring:
            raise ConfigError(
                f"{place.place()}: {dotted(keys)} decides what is measured, so trials that differ in it could not be "
                "compared. Leave it out of [sweep]."
            )


def _values(keys: Keys, value: object, settings: type, origin: Origin) -> Choices | Range:
    """The choices or the range of one setting."""
    where = f"{origin.place()}: {dotted(keys)}"
    if isinstance(value, list | tuple):
        if len(value) < 2:
            count = "no choice" if not value else "1 choice"
            raise ConfigError(f"{where} has {count}: give at least two, or leave it out.")
        for number, each in enumerate(value):
            label_of(each)  # which refuses what TOML cannot have
            if Choices(value[:number]).has(each):
                raise ConfigError(f"{where} has the choice {shown(each)} twice.")
        return Choices([*value])
    if not isinstance(value, Mapping) or not value:
        raise ConfigError(
            f"{where} must be a list of choices, [16, 32], or a range, {{from = 16, to = 64}}, but is {shown(value)}."
        )
    for key in value:
        if key not in RANGE:
            raise ConfigError(f"{where}: a range has no '{key}'. {did_you_mean(str(key), RANGE)}")
    return _range(value, field_type(settings, keys), where)


def _range(table: Mapping[str, Any], hint: Any, where: str) -> Range:
    for key in ("from", "to"):
        if key not in table:
            raise ConfigError(f"{where}: the range has no '{key}': write {{from = …, to = …}}.")
    numbers = {key: table[key] for key in ("from", "to", "step") if key in table}
    for key, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise ConfigError(f"{where}: '{key}' must be a number, but is {shown(number)}.")
    log = table.get("log", False)
    if not isinstance(log, bool):
        raise ConfigError(f"{where}: 'log' must be true or false, but is {shown(log)}.")
    takes_fractions = hint is not None and fits(0.5, hint)
    takes_whole = hint is not None and fits(1, hint)
    if hint is not None and not takes_fractions and not takes_whole:
        raise ConfigError(f"{where} is no number, so it has no range: give a list of choices.")
    whole = not takes_fractions if hint is not None else all(isinstance(number, int) for number in numbers.values())
    if whole and not all(isinstance(number, int) for number in numbers.values()):
        raise ConfigError(f"{where} is a whole number: the range must be of whole numbers.")
    low, high, step = table["from"], table["to"], table.get("step")
    if not low < high:
        raise ConfigError(f"{where}: the range must go upwards, but goes from {low:g} to {high:g}.")
    if step is not None and not 0 < step <= high - low:
        raise ConfigError(f"{where}: the step of {step:g} does not lead from {low:g} to {high:g}.")
    if log and step is not None:
        raise ConfigError(f"{where}: a range with 'log' has no step, for its numbers lie close where they are small.")
    if log and low <= 0:
        raise ConfigError(f"{where}: a range with 'log' begins above 0, but this one at {low:g}.")
    if not whole:
        return Range(float(low), float(high), None if step is None else float(step), log)
    if step is not None:
        high -= (high - low) % step
    return Range(low, high, step, log, whole=True)


def check_fits(given: Given, space: Sequence[Varied], settings: type) -> None:
    """Refuse names and values that the settings do not take; whether they go with each other, a trial will tell."""
    for varied in space:
        for value in varied.values.ends:
            try:
                Given((*given.assignments, varied.at(value)), given.is_run).settings(settings)
            except SettingError as error:
                length = min(len(error.keys), len(varied.keys))
                if length and error.keys[:length] == varied.keys[:length] and not error.is_idle:
                    raise
