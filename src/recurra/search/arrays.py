"""What a search on the host does to arrays, of torch and of NumPy alike: an exported model is searched without torch.

Both have the same methods for most of it (sum, argmax and cumsum along an axis, comparisons, indexing); here is what
differs. Torch is imported by whoever has a tensor already.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Array: TypeAlias = Any
"""A Tensor or an NDArray."""


def is_numpy(array: Array) -> bool:
    return isinstance(array, np.ndarray)


def without_gradients(like: Array) -> contextlib.AbstractContextManager[object]:
    """Inside, torch records nothing for a backward pass."""
    if is_numpy(like):
        return contextlib.nullcontext()
    import torch

    return torch.no_grad()


def array_like(numbers: Any, like: Array, dtype: type = np.int64) -> Array:
    """Numbers as an array where another one is: in NumPy, or on the device of a tensor.

    >>> array_like([1, 2], np.zeros(3)).tolist()
    [1, 2]
    """
    found: NDArray[Any] = np.asarray(numbers, dtype)
    if is_numpy(like):
        return found
    import torch

    from recurra.padding import longest

    numbers_here = torch.from_numpy(np.ascontiguousarray(found))
    return numbers_here.to(like.device, longest(like.device) if dtype is np.float64 else None)


def numbers_of(array: Array) -> NDArray[Any]:
    """An array in NumPy, on the host."""
    found: NDArray[Any] = array if is_numpy(array) else array.cpu().numpy()
    return found


def on_host(array: Array) -> Array:
    return array if is_numpy(array) else array.cpu()


def copied(array: Array) -> Array:
    return array.copy() if is_numpy(array) else array.clone()


def doubled(array: Array) -> Array:
    """float64; of a device that has none, float32."""
    if is_numpy(array):
        return array.astype(np.float64)
    from recurra.padding import lengthened

    return lengthened(array)


def at_least_single(array: Array) -> Array:
    """float64 as it is, all other numbers as float32."""
    if is_numpy(array):
        return array if array.dtype == np.float64 else array.astype(np.float32, copy=False)
    import torch

    return array if array.dtype == torch.float64 else array.float()


def picked(array: Array, ids: Array) -> Array:
    """(B,): of each row (B, V) the number at its id, (B,)."""
    if is_numpy(array):
        return np.take_along_axis(array, ids[:, None], 1)[:, 0]
    return array.gather(1, ids.unsqueeze(1)).squeeze(1)


def lists_of(values: Array, ids: Array) -> tuple[list[float], list[int]]:
    """Numbers and ids as lists; a device is waited for once."""
    if is_numpy(values):
        return values.tolist(), ids.tolist()
    import torch

    # Both at once, since a device is waited for each time; ids are below 2^24, which float32 holds exactly.
    found, numbers = torch.stack([values, ids.to(values.dtype)]).tolist()
    return found, [int(number) for number in numbers]


def largest(array: Array, count: int) -> tuple[Array, Array]:
    """The largest so many of each row (B, V), largest first, and their places; which of equals is not said."""
    if not is_numpy(array):
        found = array.topk(count, dim=1)
        return found.values, found.indices
    if count < array.shape[1]:
        places = np.argpartition(-array, count - 1, axis=1)[:, :count]
    else:
        places = np.broadcast_to(np.arange(array.shape[1]), array.shape)
    order = np.argsort(-np.take_along_axis(array, places, 1), axis=1, kind="stable")
    places = np.take_along_axis(places, order, 1)
    return np.take_along_axis(array, places, 1), places


def falling(array: Array) -> tuple[Array, Array]:
    """Each row from its largest number to its smallest, and their places; of equals, the first places first."""
    if not is_numpy(array):
        found = array.sort(dim=1, descending=True, stable=True)
        return found.values, found.indices
    places = np.argsort(-array, axis=1, kind="stable")
    return np.take_along_axis(array, places, 1), places


def back_in_place(array: Array, places: Array) -> Array:
    """What `falling` has put into order, where it came from."""
    if not is_numpy(array):
        return array.new_zeros(array.shape).scatter(1, places, array)
    found = np.zeros_like(array)
    np.put_along_axis(found, places, array, 1)
    return found


def where(condition: Array, one: Array, other: float) -> Array:
    return np.where(condition, one, other) if is_numpy(one) else one.masked_fill(~condition, other)


def most(array: Array) -> Array:
    """(B, 1): the largest number of each row."""
    return array.max(axis=1, keepdims=True) if is_numpy(array) else array.amax(1, keepdim=True)


def exp(array: Array) -> Array:
    return np.exp(array) if is_numpy(array) else array.exp()


def log_softmax(array: Array) -> Array:
    if not is_numpy(array):
        return array.log_softmax(1)
    array = array - array.max(axis=1, keepdims=True)
    return array - np.log(np.exp(array).sum(axis=1, keepdims=True))


def clipped_log(array: Array, least: float, highest: float) -> Array:
    """log of numbers that are brought between two others."""
    return np.log(np.clip(array, least, highest)) if is_numpy(array) else array.clamp(least, highest).log()


def stacked(arrays: Sequence[Array]) -> Array:
    if is_numpy(arrays[0]):
        return np.stack(arrays)
    import torch

    return torch.stack(list(arrays))


def repeated(array: Array, times: int) -> Array:
    """Each row so many times, one after the other."""
    return np.repeat(array, times, axis=0) if is_numpy(array) else array.repeat_interleave(times, 0)


def searched_right(sums: Array, bounds: Array) -> Array:
    """(B,): how many of the rising numbers of each row (B, V) are at most its bound, (B, 1)."""
    if is_numpy(sums):
        return (sums <= bounds).sum(axis=1)
    import torch

    return torch.searchsorted(sums, bounds, right=True).squeeze(1)


def just_below(array: Array) -> Array:
    """The next smaller numbers."""
    if is_numpy(array):
        return np.nextafter(array, np.zeros_like(array))
    import torch

    return array.nextafter(torch.zeros_like(array))


def smaller(one: Array, other: Array) -> Array:
    if is_numpy(one):
        return np.minimum(one, other)
    import torch

    return torch.minimum(one, other)


def with_columns(array: Array, ids: Iterable[int], value: float) -> Array:
    """An array (B, V) with one number in some columns."""
    found = copied(array)
    found[:, array_like(list(ids), array)] = value
    return found


def mapped(tree: Any, change: Callable[[Array], Array]) -> Any:
    """The same tuples with every array changed; what is neither stays as it is.

    >>> mapped((np.array([1, 2]), (None, 3)), lambda each: each + 1)
    (array([2, 3]), (None, 3))
    """
    if isinstance(tree, tuple):
        parts = [mapped(part, change) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return change(tree) if is_numpy(tree) or hasattr(tree, "index_select") else tree


def selected(tree: Any, rows: NDArray[np.int64] | Tensor) -> Any:
    """Some rows of every array in a tuple of arrays, however deep.

    >>> a, (b, nothing) = selected((np.array([1, 2]), (np.eye(2), None)), np.array([1, 1, 0]))
    >>> a.tolist(), b.tolist(), nothing
    ([2, 2, 1], [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], None)
    """
    own: dict[str, Any] = {}  # the rows where tensors are: found once

    def change(leaf: Array) -> Array:
        if is_numpy(leaf):
            return leaf[rows]
        if "rows" not in own:
            own["rows"] = array_like(rows, leaf) if is_numpy(rows) else rows
        return leaf.index_select(0, own["rows"])

    return mapped(tree, change)
