"""Values of formats that have arrays and numbers, checked one by one: what JSONL and Parquet share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from recurra.data.formats.reader import Value
from recurra.errors import ConfigError, DataError
from recurra.named import did_you_mean

DEEPEST = 3


def wanted(columns: Mapping[str, str] | Sequence[str] | None) -> dict[str, str] | None:
    """From the name that a row gives a value to the name that the file gives it; None: all, as they are."""
    if columns is None:
        return None
    roles = dict(columns) if isinstance(columns, Mapping) else {name: name for name in columns}
    if not roles or len(roles) < len(columns):
        raise ConfigError(f"columns must name at least one column and none twice, but is {columns!r}.")
    return roles


def missing(place: str, key: str, known: Sequence[str]) -> DataError:
    return DataError(
        f"{place}: there is no column '{key}'. {did_you_mean(key, known)} Set data.columns to choose others."
    )


def value(raw: object, name: str, place: str) -> Value:
    """The value itself; true and false become words, since they are labels; else a DataError.

    >>> value([[1, 2.5], []], "ink", "a.jsonl:1")
    [[1, 2.5], []]
    >>> value(True, "label", "a.jsonl:1")
    'true'
    """
    what = f"{place}: the value of '{name}'"
    if not isinstance(raw, list):
        return _single(raw, what)
    kinds: set[type] = set()
    checked = _array(raw, what, DEEPEST, kinds)
    if len(kinds) > 1:
        raise DataError(f"{what} mixes texts and numbers in one array. Keep them in two columns.")
    return cast(Value, checked)


def _single(raw: object, what: str) -> str | float | None:
    if raw is None:
        return None
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, str):
        if not raw.isascii():
            try:
                raw.encode("utf-8")
            except UnicodeEncodeError as error:
                raise DataError(
                    f"{what} contains half of a surrogate pair, which is not a valid character. Correct its \\u "
                    "escapes."
                ) from error
        return raw
    if isinstance(raw, int | float):
        try:
            finite = math.isfinite(raw)
        except OverflowError:
            finite = False
        if not finite:
            raise DataError(
                f"{what} is infinite or NaN. Correct it, remove the row, or write null if missing values are allowed."
            )
        return raw
    kind = "an object" if isinstance(raw, Mapping) else f"a {type(raw).__name__}"
    raise DataError(
        f"{what} is {kind}; only texts, numbers and arrays of them are supported. List only the columns that you "
        "need in data.columns."
    )


def _are_finite_numbers(raw: list[Any]) -> bool:
    """True for numbers alone whose sum is finite, for then each is: most arrays are so, and need no closer look."""
    if not raw or not {*map(type, raw)} <= {int, float}:
        return False
    try:
        return math.isfinite(sum(raw))
    except OverflowError:
        return False


def _array(raw: list[object], what: str, deepest: int, kinds: set[type]) -> list[object]:
    """The array, its parts checked; kinds gathers whether texts or numbers were seen."""
    if deepest == 0:
        raise DataError(f"{what} is nested deeper than {DEEPEST} levels.")
    if _are_finite_numbers(raw):
        kinds.add(float)
        return raw
    nested = [isinstance(part, list) for part in raw]
    if any(nested):
        if not all(nested):
            raise DataError(f"{what} mixes arrays with other values in one array.")
        return [_array(cast("list[object]", part), what, deepest - 1, kinds) for part in raw]
    parts = [_single(part, what) for part in raw]
    # A null inside an array is a value that is not known; the task says whether it can do without.
    kinds.update(str if isinstance(part, str) else float for part in parts if part is not None)
    return list(parts)
