"""Frozen dataclasses and named tuples that take a fraction of the time to be made; their objects are the usual ones.

`dataclasses` writes six methods for each class and compiles them one by one, `typing.NamedTuple` compiles what its
fields are said to be. Both take most of the time in which a module of settings is imported. Here methods are written
once, which makes objects slower: these are for classes of which few objects are made.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from typing import NamedTuple as NamedTuple

S = TypeVar("S")


# What was given is put where `object` keeps it: a frozen object refuses to be assigned to.


def _begun(self: Any, /, *values: Any, **named: Any) -> None:
    fields = [each for each in dataclasses.fields(self) if each.init]
    if len(values) > len(fields):
        raise TypeError(f"{type(self).__name__}() takes {len(fields)} values, but {len(values)} were given")
    given = dict(zip((each.name for each in fields), values, strict=False))
    if twice := given.keys() & named.keys():
        raise TypeError(f"{type(self).__name__}() got two values for '{min(twice)}'")
    given.update(named)
    own = self.__dict__
    for each in dataclasses.fields(self):
        name = each.name
        if name in given and each.init:
            own[name] = given.pop(name)
        elif each.default is not dataclasses.MISSING:
            own[name] = each.default
        elif each.default_factory is not dataclasses.MISSING:
            own[name] = each.default_factory()
        else:
            raise TypeError(f"{type(self).__name__}() lacks a value for '{name}'")
    if given:
        raise TypeError(f"{type(self).__name__}() has no field '{min(given)}'")
    if (after := getattr(self, "__post_init__", None)) is not None:
        after()


def _values(section: Any) -> tuple[Any, ...]:
    return tuple(getattr(section, each.name) for each in dataclasses.fields(section) if each.compare)


def _shown(self: Any) -> str:
    shown = (each.name for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _same(self: Any, other: object) -> Any:
    return _values(self) == _values(other) if type(self) is type(other) else NotImplemented


def _hashed(self: Any) -> int:
    return hash(_values(self))


def _kept(_: Any, name: str, __: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _not_removed(_: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


_METHODS = {
    "__init__": _begun,
    "__repr__": _shown,
    "__eq__": _same,
    "__hash__": _hashed,
    "__setattr__": _kept,
    "__delattr__": _not_removed,
}

if not TYPE_CHECKING:

    def dataclass(*, frozen: Literal[True]) -> Callable[[type[S]], type[S]]:
        """What `dataclasses.dataclass(frozen=True)` makes of a class.

        Whoever inherits from such a class may use either.
        """

        def made(kind: type[S]) -> type[S]:
            above = [base.__dataclass_params__ for base in kind.__mro__[1:] if dataclasses.is_dataclass(base)]
            for each in above:  # one that is not frozen may not inherit from one that is; they are all made here
                each.frozen = False
            try:
                found = dataclasses.dataclass(init=False, repr=False, eq=False)(kind)
            finally:
                for each in above:
                    each.frozen = True
            found.__dataclass_params__.frozen = frozen  # else no frozen dataclass may inherit from it
            for name, method in _METHODS.items():
                if name not in kind.__dict__:
                    setattr(found, name, method)
            return found

        return made

    class _NamedTuples(type):
        """Makes of a class what `typing.NamedTuple` does, but for the types of its fields, which stay texts."""

        def __new__(cls, name: str, bases: tuple[type, ...], inside: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, inside)
            fields = inside.pop("__annotations__")
            defaults = [inside.pop(each) for each in fields if each in inside]
            found = namedtuple(name, fields, defaults=defaults, module=inside["__module__"])
            found.__annotations__ = fields
            for each, value in inside.items():
                if each not in ("__module__", "__classcell__"):
                    setattr(found, each, value)
            return found

    class NamedTuple(metaclass=_NamedTuples):
        pass
