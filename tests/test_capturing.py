"""A capture that fails leaves torch as it was; a GPU tests it with torch itself (tests/engines/test_on_gpu.py).

Without one, the generator and the allocator of torch 2.11 are played by a few lines.
"""

from __future__ import annotations

import contextlib
import gc
from typing import Any

import pytest
import torch

from recurra.capturing import Pool, capturing, undone


class Torch:
    """What torch 2.11 keeps of captures on their way: it is cleared only by an end that succeeds."""

    def __init__(self) -> None:
        self.draws_into_graph = False
        self.recording_to: set[int] = set()  # as the allocator of the GPU's memory has it
        self.of_host: set[int] = set()  # as that of the host's memory has it, which nobody can tell of an end
        self.pools = 0
        self.fails_at_end = 0  # so many ends from now on
        self.ended = 0

    def pool(self) -> int:
        self.pools += 1
        return self.pools

    def graph(self) -> Any:
        this = self

        class Graph:
            def capture_begin(self, pool: int | None = None, capture_error_mode: str = "global") -> None:
                self.into = this.pool() if pool is None else pool
                this.draws_into_graph = True
                if self.into in this.recording_to | this.of_host:
                    raise RuntimeError("already recording to this pool")
                this.recording_to.add(self.into)
                this.of_host.add(self.into)

            def capture_end(self) -> None:
                this.fails_at_end -= 1
                if this.fails_at_end >= 0:
                    raise RuntimeError("operation failed due to a previous error during capture")
                this.recording_to.remove(self.into)
                this.of_host.remove(self.into)
                this.draws_into_graph = False
                this.ended += 1

        return Graph()

    def end_allocation(self, device: object, pool: int) -> None:
        if pool not in self.recording_to:
            raise RuntimeError("not recording to this pool")
        self.recording_to.remove(pool)

    def draw(self) -> None:
        if self.draws_into_graph:
            raise RuntimeError("Offset increment outside graph capture encountered unexpectedly.")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Torch:
    found = Torch()
    monkeypatch.setattr(torch.cuda, "CUDAGraph", found.graph)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", found.pool)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: "cpu")
    monkeypatch.setattr(torch.cuda, "Stream", lambda: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", found.end_allocation, raising=False)
    return found


@pytest.mark.parametrize("is_shared", [False, True])
def test_after_a_capture_that_fails_at_its_end_torch_draws_and_frees_memory_again(
    played: Torch, is_shared: bool
) -> None:
    pool = Pool() if is_shared else None
    played.fails_at_end = 1
    with pytest.raises(RuntimeError, match="due to a previous error during capture"), capturing(pool):
        pass
    played.draw()
    assert not played.recording_to
    with capturing(pool):  # to the same pool
        assert played.draws_into_graph
    assert played.ended == 2


def test_a_pool_counts_the_memory_of_graphs_from_before_a_capture_that_failed(
    played: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, played.pool()))
    pool = Pool()
    pool.leave()
    sizes = {(0, 1): 3, (0, 2): 40, (0, 3): 500}
    monkeypatch.setattr(
        torch.cuda,
        "memory_snapshot",
        lambda: [{"segment_pool_id": each, "total_size": size} for each, size in sizes.items()],
    )
    assert (pool.handle, pool.held) == ((0, 2), 43)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("was_on", [False, True])
def test_no_garbage_is_collected_while_a_graph_is_captured(played: Torch, was_on: bool, fails: bool) -> None:
    assert not played.ended
    try:
        (gc.enable if was_on else gc.disable)()
        with contextlib.suppress(ValueError), capturing():
            assert not gc.isenabled()
            if fails:
                raise ValueError
        assert gc.isenabled() == was_on
    finally:
        gc.enable()


def test_what_fails_inside_a_capture_is_raised_though_its_end_fails_too(played: Torch) -> None:
    played.fails_at_end = 1
    with pytest.raises(ValueError, match="what went wrong first"), capturing():
        raise ValueError("what went wrong first")
    played.draw()
    assert not played.recording_to


def test_where_torch_cannot_be_set_right_the_first_error_is_told(played: Torch) -> None:
    played.fails_at_end = 9
    with pytest.raises(ValueError, match="what went wrong first"), undone(played.graph(), Pool()):
        raise ValueError("what went wrong first")


def test_a_capture_that_succeeds_is_the_only_one(played: Torch) -> None:
    with capturing():
        pass
    assert played.ended == 1
