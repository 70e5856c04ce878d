"""What kernels launch, captured as a CUDA graph, and torch as it was before where that fails.

When a capture fails at its end, because something in it waited for the GPU or memory was short, torch leaves two things
behind. Its allocator goes on recording: it frees no cached memory, refuses the pool, and asks the graph about every
stream. And, in torch 2.11, its generator of random numbers takes itself for captured, so that the next draw or the next
replay of any graph fails ("Offset increment outside graph capture encountered unexpectedly"), until a later capture
succeeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch


@contextmanager
def capturing(pool: Any = None) -> Iterator[torch.cuda.CUDAGraph]:
    """The graph of what is launched inside, on the current stream; other threads may use the GPU meanwhile."""
    graph = torch.cuda.CUDAGraph()
    pool = torch.cuda.graph_pool_handle() if pool is None else pool
    with undone(graph, pool):
        graph.capture_begin(pool=pool, capture_error_mode="thread_local")
        try:
            yield graph
        except BaseException:
            with suppress(RuntimeError):  # what went wrong first is what matters
                graph.capture_end()
            raise
        graph.capture_end()


_failed: list[torch.cuda.CUDAGraph] = []  # the allocator of the host's memory may still ask them: they are not freed


@contextmanager
def undone(graph: torch.cuda.CUDAGraph, pool: Any) -> Iterator[None]:
    """Inside, a graph is captured to a pool of memory: if that fails, nothing of torch still waits for its end."""
    try:
        yield
    except BaseException:
        _failed.append(graph)
        with suppress(RuntimeError, AttributeError):  # the allocator has heard of the end, or torch names it otherwise
            torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), pool)
        with suppress(RuntimeError), torch.cuda.stream(torch.cuda.Stream()):
            another = torch.cuda.CUDAGraph()
            another.capture_begin(capture_error_mode="thread_local")
            torch.zeros((), device=torch.cuda.current_device())  # torch warns of graphs that are empty
            another.capture_end()
        raise
