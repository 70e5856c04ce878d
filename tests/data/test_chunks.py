"""Chunks of a running text: what they cover, that they follow on each other, and that an epoch draws them anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.data.chunks import Chunk, Chunks

SIZES = st.integers(2, 400)


def chunks(tokens: int, **changed: object) -> list[Chunk]:
    options = {"streams": 4, "steps": 10, "vary": True, "seed": 1, "epoch": 0, **changed}
    return [Chunk(*chunk.tolist()) for chunk in Chunks(tokens, **options)]  # type: ignore[arg-type]


@given(SIZES, st.integers(1, 9), st.integers(1, 30), st.booleans(), st.integers(0, 3))
def test_no_token_is_predicted_twice_and_few_are_left_out(
    tokens: int, streams: int, steps: int, vary: bool, epoch: int
) -> None:
    found = chunks(tokens, streams=streams, steps=steps, vary=vary, epoch=epoch)
    predicted = np.concatenate([start + 1 + np.arange(c.last - c.first) for c in found for start in c.starts])
    assert len(set(predicted.tolist())) == len(predicted)
    assert predicted.min() >= 1
    assert predicted.max() < tokens
    assert len(predicted) > tokens - 1 - found[0].streams - min(steps, 1 + tokens // 8)


@given(SIZES, st.integers(1, 30), st.booleans())
def test_each_chunk_begins_where_the_one_before_it_ended(tokens: int, steps: int, vary: bool) -> None:
    found = chunks(tokens, steps=steps, vary=vary)
    assert [c.first for c in found] == [0, *(c.last for c in found[:-1])]
    assert found[-1].last == found[0].length
    assert all(c.last > c.first for c in found)
    assert [c.number for c in found] == list(range(len(found)))


@given(st.integers(12, 400))
def test_a_stream_is_at_least_a_chunk_long(tokens: int) -> None:
    [streams] = {chunk.streams for chunk in chunks(tokens, streams=64, vary=False)}
    assert streams == min(64, max(1, (tokens - 1) // 10))


def test_lengths_vary_around_the_usual_one_and_now_and_then_its_half() -> None:
    found = chunks(1_000_000, streams=1, steps=70)
    lengths = np.array([c.last - c.first for c in found[:-1]])
    halved = lengths < 53
    assert lengths.min() >= 5
    assert halved.mean() == pytest.approx(0.05, abs=0.01)
    assert lengths[~halved].mean() == pytest.approx(69.5, abs=0.5)  # rounded down
    assert lengths[~halved].std() == pytest.approx(5, abs=0.3)


def test_short_chunks_are_not_drawn_below_their_usual_length_or_five() -> None:
    assert min(c.last - c.first for c in chunks(5000, streams=1, steps=8)[:-1]) == 5
    assert min(c.last - c.first for c in chunks(5000, streams=1, steps=3)[:-1]) == 3


def test_an_epoch_is_a_pure_function_of_the_seed_and_its_number() -> None:
    assert chunks(3000) == chunks(3000)
    assert len({tuple(chunks(3000, epoch=epoch)) for epoch in range(5)}) == 5
    assert chunks(3000) != chunks(3000, seed=2)
    assert {chunks(3000, epoch=epoch, vary=False)[0].offset for epoch in range(200)} == set(range(10))


def test_a_slice_of_chunks_and_their_shapes() -> None:
    whole = Chunks(100, streams=2, steps=20, vary=False, seed=1, epoch=0)
    assert [part.tolist() for part in whole[1:3]] == [whole[1].tolist(), whole[2].tolist()]
    assert [whole.shape(number) for number in range(len(whole))] == [
        (2, c.last - c.first) for c in chunks(100, streams=2, steps=20, vary=False)
    ]
    assert whole[-1].tolist() == whole[len(whole) - 1].tolist()
