"""Settings and commands that were renamed: the old name works for a while, with a notice that tells the new one."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_type_hints

from recurra.frozen import NamedTuple
from recurra.settings import SettingError
from recurra.version import __version__

PACKAGE = str(Path(__file__).parent.parent)


class Renamed(NamedTuple):
    """A name that is no longer used, the one that is, and the version in which the old one stops working."""

    old: str
    new: str
    until: str


SETTINGS = (Renamed("model.context", "model.wiring", "0.4"),)
"""Every renamed setting. One applies to the tasks whose settings have the new name and not the old one."""

COLUMN = Renamed("data.{}.column", "data.{}", "0.4")
"""The column of a role that is a section. In a file it stays `column`: TOML gives no value to a section itself."""

COMMANDS: tuple[Renamed, ...] = ()
"""Every renamed command of the command line."""


class RenamedWarning(FutureWarning):
    """An old name was used, which a later version will refuse."""


def renamed_setting(keys: Sequence[str], settings: type, table: Iterable[Renamed] = SETTINGS) -> Renamed | None:
    """The renaming that a setting falls under, for a task with these settings.

    >>> from recurra.config import Seq2SeqSettings, TaggingSettings
    >>> renamed_setting(["model", "context"], Seq2SeqSettings).new
    'model.wiring'
    >>> renamed_setting(["model", "context"], TaggingSettings) is None
    True
    """
    for one in table:
        old, new = one.old.split("."), one.new.split(".")
        if list(keys[: len(old)]) == old and _has(settings, new) and not _has(settings, old):
            return one
    return None


def renamed_column(keys: Sequence[str]) -> Renamed | None:
    """The renaming of a column that is given at length, by --set or in Python.

    >>> renamed_column(["data", "text", "column"]).new, renamed_column(["data", "text", "tokens"])
    ('data.text', None)
    """
    if len(keys) != 3 or (keys[0], keys[2]) != ("data", "column"):
        return None
    return Renamed(COLUMN.old.format(keys[1]), COLUMN.new.format(keys[1]), COLUMN.until)


def under_its_new_name(keys: Sequence[str], one: Renamed) -> tuple[str, ...]:
    """The keys of a setting, or of an option of it, under the new name.

    >>> under_its_new_name(["model", "context", "name"], SETTINGS[0])
    ('model', 'wiring', 'name')
    """
    return (*one.new.split("."), *keys[len(one.old.split(".")) :])


def tell(one: Renamed, where: str = "", *, version: str = __version__) -> None:
    """Say that an old name was used, once for each place in the user's code; refuse it where its time is over."""
    place = f"{where}: " if where else ""
    if is_over(one, version):
        raise SettingError(f"{place}'{one.old}' was renamed in an earlier version: write '{one.new}'.")
    warnings.warn(
        f"{place}'{one.old}' is now called '{one.new}'. The old name works until recurra {one.until}.",
        RenamedWarning,
        stacklevel=_frames_of_the_package(),
    )


def is_over(one: Renamed, version: str = __version__) -> bool:
    """Whether a version no longer knows the old name.

    >>> is_over(Renamed("a", "b", "0.4"), "0.3.9"), is_over(Renamed("a", "b", "0.4"), "0.10.0")
    (False, True)
    """
    return _numbers(version) >= _numbers(one.until)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _has(settings: type, keys: Sequence[str]) -> bool:
    """Whether settings have a setting under these keys."""
    for number, key in enumerate(keys, 1):
        hint = get_type_hints(settings).get(key)
        if hint is None:
            return False
        if number < len(keys):
            if not dataclasses.is_dataclass(hint) or not isinstance(hint, type):
                return False
            settings = hint
    return True


def _frames_of_the_package() -> int:
    """How many calls up the user's own code is, as warnings.warn counts them from the function that asks."""
    count, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        count, frame = count + 1, frame.f_back
    return count
