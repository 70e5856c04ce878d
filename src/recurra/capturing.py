"""What kernels launch, captured as a CUDA graph, and torch as it was before where that fails.

When a capture fails at its end, because something in it waited for the GPU or memory was short, torch 2.11 leaves
three things behind. Its allocator of the GPU's memory goes on recording: it frees no cached memory, refuses the pool,
and asks the graph about every stream. Its allocator of the host's memory does so too, and nobody can tell it of the
end, so that the pool is lost. And its generator of random numbers takes itself for captured, so that the next draw or
the next replay of any graph fails ("Offset increment outside graph capture encountered unexpectedly"), until a later
capture succeeds.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, final

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

Result = TypeVar("Result")


@final
class Pool:
    """Memory of a GPU that graphs share, of which one runs at a time; another piece once a capture to it has failed."""

    def __init__(self) -> None:
        self.handles: list[Any] = [torch.cuda.graph_pool_handle()]

    @property
    def handle(self) -> Any:
        """What torch knows the memory by, to which graphs are captured now."""
        return self.handles[-1]

    def leave(self) -> None:
        """Capture later graphs to other memory; that of earlier ones stays."""
        self.handles.append(torch.cuda.graph_pool_handle())

    @property
    def held(self) -> int:
        """Bytes of the GPU."""
        own = {tuple(each) for each in self.handles}
        segments: list[Any] = torch.cuda.memory_snapshot()
        return sum(each["total_size"] for each in segments if tuple(each["segment_pool_id"]) in own)


@contextmanager
def capturing(pool: Pool | None = None) -> Iterator[torch.cuda.CUDAGraph]:
    """The graph of what is launched inside, on the current stream; other threads may use the GPU meanwhile."""
    graph, pool = torch.cuda.CUDAGraph(), Pool() if pool is None else pool
    with uncollected(), undone(graph, pool):
        graph.capture_begin(pool=pool.handle, capture_error_mode="thread_local")
        try:
            yield graph
        except BaseException:
            with suppress(RuntimeError):  # what went wrong first is what matters
                graph.capture_end()
            raise
        graph.capture_end()


@contextmanager
def uncollected() -> Iterator[None]:
    """Inside, Python collects no garbage: a capture fails where an earlier graph is freed."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_failed: list[torch.cuda.CUDAGraph] = []  # the allocator of the host's memory still asks them: they are not freed


@contextmanager
def undone(graph: torch.cuda.CUDAGraph, pool: Pool) -> Iterator[None]:
    """Inside, a graph is captured: if that fails, nothing of torch that later captures need still waits for its end."""
    try:
        yield
    except BaseException:
        _failed.append(graph)
        with suppress(RuntimeError, AttributeError):  # the allocator has heard of the end, or torch names it otherwise
            torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), pool.handle)
        pool.leave()
        with suppress(RuntimeError), torch.cuda.stream(torch.cuda.Stream()):
            another = torch.cuda.CUDAGraph()
            another.capture_begin(capture_error_mode="thread_local")
            torch.zeros((), device=torch.cuda.current_device())  # torch warns of graphs that are empty
            another.capture_end()
        raise


class Recorder:
    """Records what functions compute, to be computed again in the same tensors.

    On a GPU as CUDA graphs, which share one pool of memory, on a stream of their own. Elsewhere there is nothing to
    record: Python calls the function again, and what it returns then is copied to where the first results lie.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.pool = Pool() if device.type == "cuda" else None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Inside, all is launched on the stream where things are recorded, after what was launched before."""
        if self.stream is None:
            yield
            return
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            yield
        torch.cuda.current_stream(self.device).wait_stream(self.stream)

    def record(self, run: Callable[[], Result]) -> tuple[Callable[[], None], Result]:
        """What computes a function again, and its results, where they will be each time."""
        if self.stream is not None:
            with self.aside(), capturing(self.pool) as graph:
                found = run()
            return graph.replay, found
        first = run()

        def again() -> None:
            for old, new in zip(tree_leaves(first), tree_leaves(run()), strict=True):
                if isinstance(old, Tensor) and old is not new:
                    with torch.no_grad():
                        old.detach().copy_(new)

        return again, first

    @property
    def held(self) -> int:
        """Bytes of the GPU that its pool holds."""
        return 0 if self.pool is None else self.pool.held
