"""What a replayed decoder is given, and in which memory; that it computes what its loop does, a GPU tests."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from recurra.attention import Memory
from recurra.wirings import Source
from recurra.wirings.looping import LOOPS, Room, call_of, type_of
from recurra.wirings.wiring import WiringState


def test_keys_that_are_the_values_are_given_once_and_a_memory_is_never_what_is_read() -> None:
    x, mask, state = torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.bool), torch.zeros(2, 4)
    for memory in (torch.randn(2, 5, 3), x):
        call = call_of(x, WiringState(((state,),), (), None, None), Source(Memory(memory, memory, mask), None))
        assert call.tensors[0] is x
        assert [each is memory for each in call.tensors[1:]].count(True) == 1
        others = [torch.zeros_like(each) for each in call.tensors]
        read, _, source = call.filled(others)
        assert read is others[0]
        assert source.memory.keys is source.memory.values
        assert source.memory.keys is not read
        assert source.memory.mask.dtype == torch.bool


def test_keys_and_values_alone_are_kept_in_the_type_of_autocast() -> None:
    assert type_of(torch.zeros(2, 5, 3)) == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert type_of(torch.zeros(2, 5, 3)) == torch.bfloat16
        assert type_of(torch.zeros(2, 3)) == torch.float32, "a state keeps all its digits"
        assert type_of(torch.zeros(2, 5, 3, dtype=torch.float64)) == torch.float64
        assert type_of(torch.zeros(2, 5, dtype=torch.bool)) == torch.bool


class Recorded(NamedTuple):
    """In the place of graphs, which need a GPU."""

    size: int


def test_a_size_has_graphs_from_its_second_time_on_and_those_used_longest_ago_are_dropped() -> None:
    room, made = Room(most_graphs=2), list[str]()

    def found(key: str, most_bytes: float = 1e9, size: int = 10) -> bool:
        def make() -> Any:
            made.append(key)
            return Recorded(size)

        return room.found((key,), make, most_bytes) is not None

    assert [found(key) for key in "aabbab"] == [False, True, False, True, True, True]
    assert made == ["a", "b"]
    assert [found(key) for key in "cc"] == [False, True]
    assert made == ["a", "b", "c"]
    assert [key for (key,) in room.graphs] == ["b", "c"]
    assert [found("a"), found("a")] == [False, True], "it was dropped"
    assert [key for (key,) in room.graphs] == ["c", "a"]


def test_the_graphs_of_a_room_take_no_more_bytes_than_they_may_but_for_the_last() -> None:
    room = Room()
    for key, size in (("a", 40), ("b", 40), ("c", 30), ("d", 200)):
        for _ in range(2):
            room.found((key,), lambda size=size: Recorded(size), 100.0)  # type: ignore[misc, arg-type]
        if key == "c":
            assert room.size == 70
            assert [key for (key,) in room.graphs] == ["b", "c"]
    assert [key for (key,) in room.graphs] == ["d"]


def test_a_size_that_cannot_be_recorded_is_tried_once() -> None:
    room, tried = Room(), list[int]()

    def make() -> str:
        tried.append(1)
        return "something waits for the GPU"

    assert [room.found(("a",), make, 1e9) for _ in range(4)] == [None] * 4
    assert len(tried) == 1
    assert room.size == 0


def test_all_loops_are_forgotten_at_once() -> None:
    class Wiring:
        pass

    wiring, room = Wiring(), Room()
    LOOPS.forget()
    for _ in range(2):
        room.found(("a",), lambda: Recorded(3), 1e9)  # type: ignore[arg-type, return-value]
    LOOPS.known[wiring] = [room]
    assert LOOPS.forget()
    assert wiring not in LOOPS.known
    assert not LOOPS.forget()
