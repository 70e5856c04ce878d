"""The frozen dataclasses and named tuples of recurra behave as those of Python."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import typing
from typing import Any

import pytest

from recurra import frozen


def _sections(decorate: Any) -> tuple[type[Any], type[Any]]:
    class Section:
        """A section."""

        size: int = 3
        names: list[str] = dataclasses.field(default_factory=list)
        kept: dict[str, int] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)

        def __post_init__(self) -> None:
            if self.size < 0:
                raise ValueError("size")

    one: Any = decorate(frozen=True)(Section)

    class Wider(one):  # type: ignore[misc]
        """A section with more."""

        last: str

        def __repr__(self) -> str:
            return "wider"

    Wider.last = "z"
    return one, decorate(frozen=True)(Wider)


@pytest.mark.parametrize("make", [lambda kind: kind(), lambda kind: kind(5, names=["a"]), lambda kind: kind(names=[])])
def test_sections_are_those_of_dataclasses(make: Any) -> None:
    (own, own_wider), (usual, usual_wider) = _sections(frozen.dataclass), _sections(dataclasses.dataclass)
    for one, other in ((own, usual), (own_wider, usual_wider)):
        mine, theirs = make(one), make(other)
        assert dataclasses.asdict(mine) == dataclasses.asdict(theirs)
        assert repr(mine) == repr(theirs)
        assert mine == make(one) == copy.deepcopy(mine)
        assert mine != theirs
        assert dataclasses.replace(mine, size=7).size == 7
        assert mine != dataclasses.replace(mine, size=7)
        assert [each.name for each in dataclasses.fields(one)] == [each.name for each in dataclasses.fields(other)]
        with pytest.raises(dataclasses.FrozenInstanceError):
            mine.size = 1
        with pytest.raises(dataclasses.FrozenInstanceError):
            del mine.size


@pytest.mark.parametrize("given", [{"sise": 1}, {"kept": {}}])
@pytest.mark.parametrize("decorate", [frozen.dataclass, dataclasses.dataclass])
def test_sections_refuse_what_they_do_not_have(decorate: Any, given: dict[str, Any]) -> None:
    one, _ = _sections(decorate)
    with pytest.raises(TypeError):
        one(**given)
    with pytest.raises(TypeError):
        one(1, [], 2, 3, 4)
    with pytest.raises(TypeError):
        one(1, size=1)
    with pytest.raises(ValueError, match="size"):
        one(-1)


def test_what_has_no_default_must_be_given() -> None:
    class Point:
        """A point."""

        x: int

    kind: Any = frozen.dataclass(frozen=True)(Point)
    with pytest.raises(TypeError, match="lacks a value for 'x'"):
        kind()
    assert hash(kind(1)) == hash(kind(1))


def test_either_kind_may_inherit_from_a_section() -> None:
    one: Any = _sections(frozen.dataclass)[0]

    @dataclasses.dataclass(frozen=True)
    class Usual(one):  # type: ignore[misc]
        """One of a user's own."""

        more: int = 1

    assert Usual(size=4, more=2).more == 2
    assert one.__dataclass_params__.frozen
    with pytest.raises(dataclasses.FrozenInstanceError):
        Usual().size = 1


class Pair(frozen.NamedTuple):
    """Two."""

    left: int
    right: str = "r"

    @property
    def both(self) -> str:
        return f"{self.left}{self.right}"

    @classmethod
    def of(cls, left: int) -> Pair:
        return cls(left)


def test_named_tuples_are_those_of_typing() -> None:
    assert Pair.of(1) == (1, "r") == Pair(1)
    assert repr(Pair(1)) == "Pair(left=1, right='r')"
    assert Pair(1)._replace(right="q").both == "1q"
    assert Pair._fields == ("left", "right")
    assert Pair.__doc__ == "Two."
    assert pickle.loads(pickle.dumps(Pair(2))) == Pair(2)
    assert typing.get_type_hints(Pair) == {"left": int, "right": str}
    with pytest.raises(TypeError):
        Pair()  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Pair(1).left = 2  # type: ignore[misc]
