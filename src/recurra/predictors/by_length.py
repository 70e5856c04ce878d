"""A function of a program called for rows of like length together, so that little of what it computes is padding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.data.batches import in_order_of_length
from recurra.programs.inputs import Running, called
from recurra.programs.program import Value, output_values
from recurra.programs.sizes import Size

TOGETHER = 256
"""Steps, padding among them, that are computed together: beyond, what lies between two layers leaves the cache."""

ROWS, STEPS = Size.named("B"), Size.named("T")


def called_by_length(
    running: Running, name: str, given: Mapping[str, NDArray[Any]], lengths: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """What `called` gives for rows (B) of so many steps (T) each; behind the last step of a row anything."""
    groups = in_order_of_length(lengths, tokens=TOGETHER)
    if len(groups) < 2 or name not in running.program.functions:
        return called(running, name, given)
    function = running.program.functions[name]
    values = {each.name: each.value for each in function.inputs}
    results = dict(
        zip((output for output, _ in function.outputs), output_values(function, running.program), strict=True)
    )
    most = max(
        array.shape[dim]
        for each, array in given.items()
        if each in values
        for dim, size in enumerate(values[each].shape)
        if size == STEPS
    )
    found: dict[str, NDArray[Any]] = {}
    for rows in groups:
        longest = int(lengths[rows].max(initial=0))
        some = {each: part(array, values[each], rows, longest) for each, array in given.items() if each in values}
        for output, array in called(running, name, some).items():
            shape = results[output].shape
            if output not in found:
                sizes = {ROWS: len(lengths), STEPS: most}
                found[output] = np.zeros(
                    [sizes.get(size, there) for size, there in zip(shape, array.shape, strict=True)], array.dtype
                )
            at: list[Any] = [slice(0, there) for there in array.shape]
            if ROWS in shape:
                at[shape.index(ROWS)] = rows
            found[output][tuple(at)] = array
    return found


def part(array: NDArray[Any], value: Value, rows: NDArray[np.int64], longest: int) -> NDArray[Any]:
    """Some rows of an input, up to a length; what has no rows of its own is left as it is."""
    if ROWS in value.shape:
        array = np.take(array, rows, value.shape.index(ROWS))
    if STEPS in value.shape:
        array = array[tuple(slice(0, longest) if size == STEPS else slice(None) for size in value.shape)]
    return array
