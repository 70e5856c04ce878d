"""When two cells take the same steps: then one plan serves both, and a stack of many layers is planned once."""

from __future__ import annotations

from collections.abc import Hashable
from types import BuiltinFunctionType, FunctionType

from torch import Tensor, nn

from recurra.cells import AnyCell

BARE = nn.Module().__dict__
"""What torch gives to every module."""


class Unlike(Exception):
    """A cell has an attribute that cannot be compared between cells."""


def likeness(cell: AnyCell) -> Hashable | None:
    """All that the steps of a cell can depend on, but for the numbers in its weights; None where it cannot be told.

    It is told of the cells of this package alone: what a user's own step calls may be defined anew between two cells.

    >>> from recurra.cells import build
    >>> lstm, other, larger = (build("lstm", 3, size) for size in (4, 4, 5))
    >>> likeness(lstm) == likeness(other), likeness(lstm) == likeness(larger)
    (True, False)
    """
    seen: dict[Tensor, int] = {}  # a weight that stands in two places must stand in both of the other cell as well
    try:
        return tuple((name, of_module(module, seen)) for name, module in cell.named_modules(remove_duplicate=False))
    except Unlike:
        return None


def of_module(module: nn.Module, seen: dict[Tensor, int]) -> Hashable:
    tensors = {**module._parameters, **module._buffers}
    shapes = tuple(
        (name, None if each is None else (seen.setdefault(each, len(seen)), each.shape, each.dtype))
        for name, each in tensors.items()
    )
    known = {"_parameters", "_buffers", "_modules", *(name for name in BARE if module.__dict__[name] == BARE[name])}
    rest = {name: value for name, value in module.__dict__.items() if name not in known}
    return plain(type(module)), shapes, plain(rest)


def plain(value: object) -> Hashable:
    """A value as something that can be compared, with its type: 1 and True are not the same."""
    if isinstance(value, int | float | str | None):
        return type(value), repr(value)  # and 0.0 is not -0.0
    if isinstance(value, dict):
        return dict, tuple((plain(key), plain(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return type(value), tuple(plain(each) for each in value)
    if isinstance(value, type | FunctionType | BuiltinFunctionType) and is_ours(value):
        return value
    raise Unlike


def is_ours(value: type | FunctionType | BuiltinFunctionType) -> bool:
    return (value.__module__ or "torch").partition(".")[0] in ("recurra", "torch")
