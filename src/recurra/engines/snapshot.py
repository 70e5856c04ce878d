"""Whether a cell is still as it was when its step was traced: a trace turns every Python attribute into a constant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import is_
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import Tensor, nn

from recurra.cells import AnyCell

PLAIN = (bool, int, float, complex, str, bytes, type(None))
WITHOUT_PARTS = (*PLAIN, type, FunctionType, BuiltinFunctionType, MethodType, ModuleType)
HOOKS = frozenset(name for name, value in vars(nn.Module()).items() if isinstance(value, dict) and "hook" in name)


class Snapshot:
    """The attributes of a cell, of its modules and of what these hold, down to plain values.

    Watched are the attributes of objects, the members of dicts, lists and sets, the class of a user's own module,
    hooks, and the shapes of weights, but not the numbers in them: those are given to every run of a plan. Global
    variables that a step reads are not watched.

    >>> from recurra.cells import build
    >>> gru = build("gru", 3, 4)
    >>> before = Snapshot(gru)
    >>> before.holds()
    True
    >>> gru.update = "keep"
    >>> before.holds()
    False
    """

    def __init__(self, cell: AnyCell) -> None:
        self.mappings: list[tuple[Mapping[str, Any], tuple[str, ...], tuple[Any, ...]]] = []
        self.collections: list[tuple[Collection[Any], tuple[Any, ...]]] = []
        self.weights: list[tuple[Mapping[str, Tensor | None], list[object]]] = []
        self.versions: list[tuple[Tensor, int]] = []
        self.hooks: list[Mapping[int, Any]] = []  # those that are empty
        self.seen: set[int] = set()
        self.watch(cell)

    def watch(self, value: Any) -> None:
        """Remember all that belongs to a value and could change without the value becoming another."""
        if isinstance(value, WITHOUT_PARTS) or id(value) in self.seen:
            return
        self.seen.add(id(value))
        if isinstance(value, Tensor):
            self.versions.append((value, value._version))
        elif isinstance(value, nn.Module):
            self.watch_module(value)
        elif isinstance(value, Mapping):
            self.watch_mapping(value)
        elif isinstance(value, list | tuple | set | frozenset):
            self.collections.append((value, tuple(value)))
            for each in value:
                self.watch(each)
        elif hasattr(value, "__dict__"):
            self.watch_mapping(vars(value))

    def watch_module(self, module: nn.Module) -> None:
        own = vars(module)
        self.mappings.append((own, tuple(own), tuple(own.values())))
        for name, value in own.items():
            if name in ("_parameters", "_buffers"):
                self.weights.append((value, kinds(value)))
            elif name in HOOKS and not value:
                self.hooks.append(value)
            else:
                self.watch(value)
        for kind in type(module).__mro__:
            if kind.__module__.partition(".")[0] not in ("recurra", "torch", "builtins", "abc", "typing"):
                self.mappings.append((vars(kind), tuple(vars(kind)), tuple(vars(kind).values())))

    def watch_mapping(self, mapping: Mapping[Any, Any]) -> None:
        self.mappings.append((mapping, tuple(mapping), tuple(mapping.values())))
        for each in mapping.values():
            self.watch(each)

    def holds(self) -> bool:
        """Whether everything is the very same object as before. Asked at every call of an engine, so it is quick."""
        if any(self.hooks):
            return False
        for mapping, names, values in self.mappings:
            if tuple(mapping) != names or not all(map(is_, mapping.values(), values)):
                return False
        for collection, values in self.collections:
            if len(collection) != len(values) or not all(map(is_, collection, values)):
                return False
        if self.versions and any(tensor._version != version for tensor, version in self.versions):
            return False
        return all(kinds(mapping) == before for mapping, before in self.weights)

    def is_like(self, other: Snapshot) -> bool:
        """Whether another snapshot of the same cell shows the same values, be they other objects."""
        return (
            same(self.mappings, other.mappings)
            and same(self.collections, other.collections)
            and [kinds for _, kinds in self.weights] == [kinds for _, kinds in other.weights]
            and len(self.versions) == len(other.versions)
            and all(a is b and m == n for (a, m), (b, n) in zip(self.versions, other.versions, strict=True))
        )


def kinds(weights: Mapping[str, Tensor | None]) -> list[object]:
    """Shape and type of each weight, by name."""
    return [name if each is None else (name, each.shape, each.dtype) for name, each in weights.items()]


def same(some: list[tuple[Any, ...]], others: list[tuple[Any, ...]]) -> bool:
    """Whether what was watched of one cell at two moments has equal plain values, and is the same object elsewhere."""
    if len(some) != len(others):
        return False
    for (_, *before), (_, *after) in zip(some, others, strict=True):
        if [len(each) for each in before] != [len(each) for each in after]:
            return False
        pairs = ((a, b) for old, new in zip(before, after, strict=True) for a, b in zip(old, new, strict=True))
        if not all(a is b or (type(a) is type(b) and type(a) in PLAIN and repr(a) == repr(b)) for a, b in pairs):
            return False
    return True
