"""config.toml of a run: its format, the version that wrote it, and all settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recurra.errors import ConfigError
from recurra.settings import SettingError, toml_text
from recurra.toml import shown
from recurra.version import __version__

FORMAT = 3
"""The number of the format that this version writes; it reads this one and all below.

1  up to 0.1, which wrote no number
2  with `format` and `version`; `model.context` is called `model.wiring`
3  beside a manifest.json
"""


WITH_MANIFEST = 3
"""Runs of this format and later ones have a manifest."""


ADDED: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "question_answering": {"model": {"vacant": False}},
    "forecasting": {"model": {"ahead": "recursive"}},
}
"""By task, settings that came later and change what a model computes, with the values that keep a run of before."""


def as_begun(table: Mapping[str, Any]) -> dict[str, Any]:
    """The saved settings of a run with those that did not exist when it was begun. A run saves all settings.

    >>> as_begun({"task": "question_answering", "model": {"hidden": 8}})
    {'task': 'question_answering', 'model': {'vacant': False, 'hidden': 8}}
    """
    begun = dict(table)
    for section, values in ADDED.get(str(table.get("task")), {}).items():
        given = table.get(section, {})
        if isinstance(given, Mapping):  # anything else is refused with the other settings
            begun[section] = {**values, **given}
    return begun


def run_text(settings: object) -> str:
    """What config.toml of a run holds."""
    return f'format = {FORMAT}\nversion = "{__version__}"\n{toml_text(settings)}'


def check_format(table: Mapping[str, object], what: str) -> None:
    """Refuse a file that a later version wrote in a format of its own. One without a number is of the first format."""
    found = table.get("format", 1)
    if not isinstance(found, int) or isinstance(found, bool):
        raise SettingError(
            f"format must be the version number of this file's format, but is {shown(found)}. To set the format of "
            "the data, use data.format.",
            ("format",),
        )
    if found > FORMAT:
        version = table.get("version")
        writer = f"recurra {version}" if isinstance(version, str) else "a later recurra"
        raise ConfigError(
            f"{what} was written by {writer} (format {found}); this is recurra {__version__}, which reads "
            f"formats up to {FORMAT}. Upgrade recurra."
        )
