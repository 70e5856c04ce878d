"""What a replayed decoder is given, and in which memory; that it computes what its loop does, a GPU tests."""

from __future__ import annotations

import torch

from recurra.attention import Memory
from recurra.wirings import Source
from recurra.wirings.looping import call_of, type_of
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
