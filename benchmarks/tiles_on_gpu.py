"""How the steps of a cell run fastest on a GPU: one kernel with which tiles, or step by step; microseconds a step.

    python benchmarks/tiles_on_gpu.py                GRU, LSTM and layer norm at the shapes of cells_on_gpu.py
    python benchmarks/tiles_on_gpu.py --cells gru --shapes 32x64x512 --types bf16 tf32

Each direction by itself, without the projection of inputs and without gradients of weights. A tile is
rows x units, warps; `k128/3` says that matrices are read in chunks of 128 rows, three ahead, and `p128` that they stay
on the chip as tiles of 128 rows. `steps` is the time step by step, a vendor's product and a row pass each, inside a
CUDA graph. The choice that the engine makes of it: TABLE in src/recurra/engines/tiles.py.

Kernels are compiled by several processes first, which takes longer than all else.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("src", ".")]

import torch  # noqa: E402

from recurra.cells import build  # noqa: E402
from recurra.engines.engine import DirectedCell  # noqa: E402
from recurra.engines.plan import Plan  # noqa: E402
from recurra.engines.planning import PLANS, split_fixed  # noqa: E402
from recurra.engines.tiles import Tile  # noqa: E402
from recurra.engines.workspace import Whole, Workspace, persistent_of  # noqa: E402
from recurra.reports.speed_on_gpu import TYPES, numbers  # noqa: E402

SHAPES = ["1x64x512", "32x64x512", "128x50x512", "64x64x1024", "256x50x1024", "64x64x768", "16x64x2048"]
CELLS = ["gru", "lstm", "layer_norm_lstm"]
ON_CHIP = 200 << 10

RESIDENT = [(16, 8, 4), (16, 16, 4), (32, 8, 4), (32, 16, 4), (32, 16, 8), (64, 8, 4), (64, 16, 8)]
SPLIT = [(16, 8, 4), (32, 16, 4), (32, 16, 8)]
READ = [
    *((16, 8, 4, 128, 3), (16, 16, 4, 128, 3), (16, 16, 4, 256, 3), (32, 16, 4, 128, 3), (32, 16, 8, 128, 3)),
    *((32, 32, 4, 128, 3), (64, 16, 4, 128, 3), (64, 32, 4, 128, 3), (64, 32, 8, 64, 3), (64, 32, 8, 128, 3)),
    *((64, 8, 4, 128, 3), (16, 16, 4, 128, 5), (16, 16, 8, 256, 3)),
]


class Job(NamedTuple):
    cell: str
    shape: tuple[int, int, int]
    type: str
    direction: Any
    tile: Tile


def candidates(shape: tuple[int, int, int], terms: int, size: int) -> Iterator[Tile]:
    """Tiles of which all programs fit on an H200."""
    B, _, H = shape
    found = [Tile(*each, part=part) for each in RESIDENT for part in (512, 128) if part == 512 or each in SPLIT]
    found += [Tile(rows, units, warps, chunk, stages) for rows, units, warps, chunk, stages in READ]
    for tile in found:
        across, down = tile.grid(H, B)
        held = 0 if tile.chunk else (terms * tile.units + tile.rows * H) * size
        if across * down <= 132 and tile.rows <= max(16, B) and held <= ON_CHIP:
            yield tile


def quick(cell: str) -> dict[str, str]:
    """Initial values that are found at once, unlike orthogonal matrices."""
    return {"name": cell, "state_init": "uniform"}


class Steps:
    """A cell's steps with memory of their own."""

    def __init__(self, cell: str, shape: tuple[int, int, int], kind: str, steps: int) -> None:
        B, _, H = shape
        torch.manual_seed(0)
        dtype = TYPES[kind]
        built = build(quick(cell), H, H).to("cuda", dtype)
        x = torch.randn(B, steps, H, device="cuda", dtype=dtype)
        with torch.no_grad():
            reader = DirectedCell(built, built.start(B, x), built.fixed(B, x))
            plan = PLANS.plan(reader, x)
            assert isinstance(plan, Plan), plan
            self.plan = plan
            self.given = built.project(x, reader.fixed)
            rows, weights = split_fixed(self.plan, reader)
            self.space = Workspace(self.plan, B, steps, dtype, torch.device("cuda"))
            self.space.load("forward", weights, reader.state, rows)
        self.absent = tuple(self.plan.d_outputs[1:])
        gradients = [torch.randn(B, steps, H, device="cuda", dtype=dtype), *[None] * len(self.absent)]
        self.space.load_gradients(gradients, [None] * len(gradients), B, steps)
        self.steps = steps

    def use(self, direction: Any, tile: Tile | None) -> bool:
        """Run a direction so from now on; False where it cannot be."""
        absent = self.absent if direction == "backward" else ()
        kernel = None if tile is None else persistent_of(self.plan, direction, absent, tile.part)
        self.space.wholes[direction, absent] = None if kernel is None or tile is None else Whole(kernel, tile)
        return tile is None or kernel is not None

    def run(self, direction: Any) -> None:
        if direction == "backward":
            self.space.run_backward(self.steps, False, self.absent)
        else:
            self.space.run_forward("forward", self.given, False)

    def is_whole(self, direction: Any) -> bool:
        """Whether the GPU had room for the kernel."""
        return self.space.wholes[direction, self.absent if direction == "backward" else ()] is not None


def compile_all(jobs: list[Job]) -> str:
    """Kernels of one cell, number of units and direction; what went wrong."""
    torch.set_num_threads(1)
    problems = ""
    job = jobs[0]
    with numbers(job.type), torch.no_grad():
        steps = Steps(job.cell, job.shape, job.type, 2)
        for job in jobs:
            try:
                if steps.use(job.direction, job.tile):
                    steps.run(job.direction)
                    torch.cuda.synchronize()
            except Exception as reason:
                problems += f"{job}: {type(reason).__name__} {str(reason)[:100]}\n"
    return problems


def microseconds(work: Callable[[], object], steps: int, *, graph: bool) -> float:
    for _ in range(2):
        work()
    torch.cuda.synchronize()
    run = work
    if graph:
        stream = torch.cuda.Stream()
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream):
            work()
            with torch.cuda.graph(recorded, stream=stream):
                work()
        torch.cuda.synchronize()
        run = recorded.replay
        run()
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(9)]
    for first, last in pairs:
        first.record()
        run()
        last.record()
    torch.cuda.synchronize()
    return statistics.median(first.elapsed_time(last) for first, last in pairs) * 1000 / steps


def name_of(tile: Tile) -> str:
    how = f"k{tile.chunk}/{tile.stages}" if tile.chunk else f"p{tile.part}"
    return f"{tile.rows}x{tile.units},{tile.warps} {how}"


def jobs_of(cell: str, shape: tuple[int, int, int], kind: str) -> list[Job]:
    built, x = build(quick(cell), shape[2], shape[2]), torch.zeros(1, 1, shape[2])
    plan: Any = PLANS.plan(DirectedCell(built, built.start(1, x), built.fixed(1, x)), x)
    found = []
    for direction in ("forward", "backward"):
        kernel = persistent_of(plan, direction, tuple(plan.d_outputs[1:]) if direction == "backward" else ())
        if kernel is not None:
            size = torch.empty((), dtype=TYPES[kind]).element_size()
            found += [Job(cell, shape, kind, direction, tile) for tile in candidates(shape, kernel.terms, size)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="+", default=CELLS)
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help="rows x steps x units")
    parser.add_argument("--types", nargs="+", default=["bf16"])
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--compile-seconds", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=150)
    given = parser.parse_args()
    began = time.monotonic()
    shapes = [tuple(int(part) for part in text.split("x")) for text in given.shapes]
    cases = [(cell, shape, kind) for kind in given.types for shape in shapes for cell in given.cells]
    jobs = [job for case in cases for job in jobs_of(*case)]  # type: ignore[arg-type]
    # A kernel of another number of rows is the same kernel.
    distinct = {(j.cell, j.shape[2], j.type, j.direction, j.tile, j.shape[0] % 16 == 0): j for j in jobs}
    groups: dict[Any, list[Job]] = {}
    for key, job in distinct.items():
        groups.setdefault((*key[:4], key[5], job.tile.chunk > 0), []).append(job)
    pool = multiprocessing.get_context("spawn").Pool(given.processes)
    results = pool.imap_unordered(compile_all, sorted(groups.values(), key=len, reverse=True))
    done = 0
    try:
        for _ in groups:
            left = given.compile_seconds - (time.monotonic() - began)
            problem = results.next(timeout=max(left, 0.1))
            done += 1
            if problem:
                print(problem, flush=True)
    except multiprocessing.TimeoutError:
        pass
    pool.terminate()
    pool.join()
    taken = time.monotonic() - began
    print(f"{done} of {len(groups)} groups, {len(distinct)} kernels, compiled in {taken:.0f} s", flush=True)
    for cell, shape, kind in cases:
        with numbers(kind), torch.no_grad():
            mine = [job for job in jobs if job[:3] == (cell, shape, kind)]
            for line in measured(Steps(cell, shape, kind, shape[1]), mine, until=began + given.seconds):  # type: ignore[arg-type]
                print(f"{cell:16}{kind:5}{'x'.join(map(str, shape)):12}{line}", flush=True)
        torch.cuda.empty_cache()


def measured(steps: Steps, jobs: list[Job], until: float) -> Iterator[str]:
    """A line for each direction: step by step, and the fastest tiles."""
    for direction in ("forward", "backward"):
        if time.monotonic() > until:
            return

        def run(direction: str = direction) -> None:
            steps.run(direction)

        steps.use("forward", None)
        steps.use("backward", None)
        if direction == "backward":
            steps.run("forward")
        by_step = microseconds(run, steps.steps, graph=True)
        found = []
        for job in jobs:
            if job.direction == direction and time.monotonic() < until and steps.use(direction, job.tile):
                taken = microseconds(run, steps.steps, graph=False)
                steps.space.check()
                if steps.is_whole(direction):
                    found.append((taken, name_of(job.tile)))
        best = "; ".join(f"{taken:.2f} {name}" for taken, name in sorted(found)[:6])
        yield f"{direction:9} steps {by_step:6.2f}  {best}"


if __name__ == "__main__":
    main()
