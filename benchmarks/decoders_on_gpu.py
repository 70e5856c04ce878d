"""Attention decoders on a GPU: a training step of the decoder alone, its kernels, and its errors.

    python benchmarks/decoders_on_gpu.py
    python benchmarks/decoders_on_gpu.py --parts       besides, the time of each kernel, and of kernels with other tiles

128 rows, sources of 50 places, targets of 50 steps, 512 units, bfloat16 by autocast. `replayed` is the median between
CUDA events around a forward and a backward pass that are replayed from CUDA graphs, `launched` the same without graphs,
`loop` the wiring's own loop. `kernels` are those that run at every step, forward and backward, by torch.profiler.
Errors are relative norms against the wiring's own loop in float64, the largest of outputs and all gradients: in
bfloat16 at 512 units, in float32 with rows, places and steps that are not what a graph is recorded for.
"""

from __future__ import annotations

import argparse
import copy
import functools
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("src", ".")]

from recurra import Padded  # noqa: E402
from recurra.attention.stepping import AttentionSteps, Tiles  # noqa: E402
from recurra.engines.stepping import Part, Room, multiplied  # noqa: E402
from recurra.named import built  # noqa: E402
from recurra.reports.speed_on_gpu import captured, timed  # noqa: E402
from recurra.wirings import Shape, Source, Wiring  # noqa: E402

DECODERS = {  # wiring, cell, attention, and how many milliseconds are asked for
    "feeding, LSTM, bilinear": ("feeding", "lstm", "bilinear", 2.5),
    "inside, GRU, additive": ("inside", "gru", "additive", 3.5),
    "conditional, GRU, additive": ("conditional", "gru", "additive", 5.0),
    "outside, LSTM, bilinear": ("outside", "lstm", "bilinear", None),  # see `alone`
}

MOST_OVER_CUDNN = 1.15
"""What is asked of the decoder without a loop: so many times the time of cuDNN's LSTM alone."""


class Step:
    """A decoder, a batch for it, and its training step."""

    def __init__(self, name: str, B: int, S: int, T: int, H: int) -> None:
        wiring, cell, attention, _ = DECODERS[name]
        torch.manual_seed(0)
        shape = Shape(cell, H, (H,), H, 0, H, attention)
        self.wiring: Any = built(Wiring, wiring, shape).cuda()
        self.x = torch.randn(B, T, H, device="cuda", requires_grad=True)
        self.memory = torch.randn(B, S, H, device="cuda", requires_grad=True)
        self.mask = torch.arange(S, device="cuda") < torch.randint(S // 2, S + 1, (B, 1), device="cuda")
        self.gradient = torch.randn(B, T, H, device="cuda")
        self.steps = T

    @property
    def sources(self) -> dict[str, Tensor]:
        return {"x": self.x, "memory": self.memory, **dict(self.wiring.named_parameters())}

    def features(self) -> Tensor:
        source = Source(self.wiring.remember(self.memory, self.mask), None)
        starts = tuple(cell.start(len(self.x), self.x) for cell in self.wiring.layers)
        state = self.wiring.start(starts, source)
        found: Tensor = self.wiring(Padded.full(self.x), state, source).values
        return found

    def run(self) -> list[Tensor]:
        features = self.features()
        gradient = self.gradient.to(features.dtype)
        return [features, *torch.autograd.grad(features, list(self.sources.values()), gradient)]

    def run_loop(self) -> list[Tensor]:
        """The same by the wiring's own loop."""
        shape = self.wiring.shape
        self.wiring.shape = shape._replace(engine="loop")
        try:
            return self.run()
        finally:
            self.wiring.shape = shape

    def run_launched(self) -> list[Tensor]:
        """The same by its kernels, without graphs."""
        wiring = self.wiring
        source = Source(wiring.remember(self.memory, self.mask), None)
        starts = tuple(cell.start(len(self.x), self.x) for cell in wiring.layers)
        found = wiring.fused(self.x, wiring.start(starts, source), source)
        assert found is not None, "there are no kernels for it"
        return list(torch.autograd.grad(found[0].float().sum(), [self.x, self.memory]))

    def doubled(self) -> Step:
        other = copy.copy(self)
        other.wiring = copy.deepcopy(self.wiring).double()
        other.x, other.memory = (each.detach().double().requires_grad_() for each in (self.x, self.memory))
        other.gradient = self.gradient.double()
        return other


def errors(name: str, sizes: tuple[int, int, int, int], dtype: torch.dtype) -> tuple[float, str]:
    """The largest relative norm of a difference, and of what."""
    step = Step(name, *sizes)
    exact = step.doubled().run_loop()
    with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
        for _ in range(3):
            found = step.run()
    names = ["outputs", *step.sources]
    pairs = zip(found, exact, strict=True)
    wrong = [((a.double() - b).norm() / b.norm().clamp_min(1e-30)).item() for a, b in pairs]
    assert all(torch.isfinite(each).all() for each in found)
    return max(zip(wrong, names, strict=True))


def kernels(function: Callable[[], object]) -> tuple[Counter[str], Counter[str]]:
    """How often each kernel runs, and for how many microseconds."""
    function()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        function()
        torch.cuda.synchronize()
    counts: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for event in found.events():
        if event.device_type.name == "CUDA":
            counts[event.name] += 1
            times[event.name] += event.time_range.elapsed_us()
    return counts, times


def alone(B: int, T: int, H: int) -> dict[str, float]:
    """Milliseconds of a forward and a backward pass of torch.nn.LSTM, which is cuDNN's: called, and in a CUDA graph."""
    found = {}
    for name, dtype in (("bfloat16", torch.bfloat16), ("float16", torch.float16)):
        lstm = torch.nn.LSTM(H, H, batch_first=True).to("cuda", dtype)
        x = torch.randn(B, T, H, device="cuda", dtype=dtype, requires_grad=True)
        gradient, sources = torch.randn_like(x), [x, *lstm.parameters()]
        work = functools.partial(passes, lstm, x, sources, gradient)
        found[f"{name} called"] = timed(work, most=40, seconds=0.5)
        found[f"{name} in a graph"] = timed(captured(work), most=40, seconds=0.5)
    return found


def passes(lstm: torch.nn.LSTM, x: Tensor, sources: list[Tensor], gradient: Tensor) -> object:
    return torch.autograd.grad(lstm(x)[0], sources, gradient)


def at_every_step(counts: Counter[str], steps: int) -> int:
    return sum(count // steps for count in counts.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decoders", nargs="+", default=list(DECODERS))
    parser.add_argument("--parts", action="store_true", help="print the time of each kernel, and of other tiles")
    given = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(
        f"{'decoder':28}{'replayed':>10}{'goal':>8}{'launched':>10}{'loop':>9}{'first':>8}{'memory':>9}{'kernels':>12}"
        f"  bfloat16 error, float32 error"
    )
    for name in given.decoders:
        step = Step(name, 128, 50, 50, 512)
        goal = DECODERS[name][-1]
        with torch.autocast("cuda", torch.bfloat16):
            began = time.perf_counter()
            for _ in range(2):
                step.run()
            torch.cuda.synchronize()
            first = time.perf_counter() - began
            torch.cuda.reset_peak_memory_stats()
            replayed = timed(step.run, most=40, seconds=1.0)
            memory = torch.cuda.max_memory_allocated() / 2**20
            forward, _ = kernels(step.features)
            counts, times = kernels(step.run)
            loop = timed(step.run_loop, most=5) if goal else float("nan")
            launched = timed(step.run_launched, most=5) if goal else float("nan")
        there = at_every_step(forward, step.steps)
        each_way = f"{there} + {at_every_step(counts, step.steps) - there}"
        half = errors(name, (32, 50, 50, 512), torch.bfloat16)
        single = errors(name, (37, 21, 13, 64), torch.float32)
        print(
            f"{name:28}{replayed:8.2f}ms{goal or float('nan'):6.1f}ms{launched:8.1f}ms{loop:7.0f}ms{first:7.1f}s"
            f"{memory:6.0f}MiB{each_way:>12}  {half[0]:.1e} ({half[1]}), {single[0]:.1e} ({single[1]})",
            flush=True,
        )
        if not goal:
            cudnn = alone(128, 50, 512)
            called, best = min(v for k, v in cudnn.items() if "called" in k), min(cudnn.values())
            print("    cuDNN's LSTM alone, ms: " + ", ".join(f"{k} {v:.2f}" for k, v in cudnn.items()))
            print(
                f"    {replayed / called:.2f} times the best called, {replayed / best:.2f} times the best of all; "
                f"asked: {MOST_OVER_CUDNN}"
            )
            print(f"    {step.wiring.cells.engine_report(Padded.full(step.x))}")
        if given.parts:
            total = sum(times.values())
            print(f"    {sum(counts.values())} kernels, {total / 1e3:.2f} ms in them")
            for kernel, spent in times.most_common(24):
                print(
                    f"    {counts[kernel]:5} x {spent / counts[kernel]:7.2f} µs = {spent / 1e3:6.3f} ms  {kernel[:110]}"
                )
    if given.parts:
        time_apart()
        time_tiles()
        time_products()


def time_apart() -> None:
    """Input feeding with kernels of their own for the attention and for the row pass of the cell."""
    known = AttentionSteps.is_next_to_query
    AttentionSteps.is_next_to_query = property(lambda self: False)  # type: ignore[assignment,method-assign]
    step = Step("feeding, LSTM, bilinear", 128, 50, 50, 512)
    with torch.autocast("cuda", torch.bfloat16):
        print(
            f"feeding with a row pass apart from attention: {timed(step.run, most=40, seconds=1.0):.2f} ms", flush=True
        )
    AttentionSteps.is_next_to_query = known  # type: ignore[method-assign]


def fifty(function: Callable[[int], object]) -> float:
    """Microseconds of one of fifty calls in a CUDA graph."""

    def run() -> None:
        for t in range(50):
            function(t)

    return 20 * timed(captured(run), most=20, seconds=0.1)


def time_tiles() -> None:
    """The kernels of attention with other tiles."""
    B, S, H = 128, 50, 512
    room = Room(B, 50, torch.bfloat16, torch.device("cuda"))
    for name in ("bilinear", "additive"):
        wiring: Any = built(Wiring, "inside", Shape("gru", H, (H,), H, 0, H, name)).cuda()
        attention = wiring.attention
        mask = torch.arange(S, device="cuda") < torch.randint(S // 2, S + 1, (B, 1), device="cuda")
        memory = attention.remember(torch.randn(B, S, H, device="cuda"), mask)
        for full in (False, True):
            if full:
                memory = memory._replace(mask=torch.ones_like(mask))
            for tiles in (
                Tiles(64, 512, 512, 8, AHEAD=True),
                Tiles(64, 512, 512, 8, AHEAD=False),
                Tiles(64, 512, 512, 16, AHEAD=True),
                Tiles(64, 256, 256, 8, AHEAD=False),
                Tiles(64, 128, 128, 8, AHEAD=False),
                Tiles(64, 128, 128, 4, AHEAD=False),
            ):
                query, context = room.sequence(H).normal_(), room.sequence(H)
                v = attention.v.detach() if name == "additive" else None
                steps = AttentionSteps(attention, room, memory, v, None, query, [context])
                steps.tiles = tiles
                steps.prepare()
                steps.begin_backward()
                steps.prepare_backward([Part(room.sequence(H).normal_(), is_sequence=True)], None)
                try:
                    times = [fifty(steps.forward), fifty(steps.backward)]
                except Exception as reason:
                    print(f"{name} {tiles}: {type(reason).__name__} {str(reason)[:100]}")
                    continue
                print(
                    f"{name}, {'all' if full else '3/4 of the'} places, {tiles}: forward {times[0]:.2f}, backward "
                    f"{times[1]:.2f} µs",
                    flush=True,
                )
            for block in (
                ((16, 64), (16, 128), (32, 64), (8, 128), (16, 32), (64, 16)) if name == "additive" else ((0, 0),)
            ):
                steps.block = block
                after = 1000 * timed(captured(steps.memory_gradients), most=20, seconds=0.1)
                print(f"{name}: gradients of the memory in blocks of {block}: {after:.1f} µs", flush=True)


def multiply(operand: Tensor, matrix: Tensor, out: Tensor, t: int) -> None:
    multiplied(operand[t], matrix, out)


def time_products() -> None:
    """The products of steps, whole and as partial sums."""
    for terms, width in (
        (1024, 2048), (2048, 1024), (1024, 512), (512, 1024), (512, 1536), (1536, 512), (512, 512), (512, 1024),
        (1024, 1024), (1024, 1536), (1536, 1024),
    ):  # fmt: skip
        operand = torch.randn(50, 128, terms, device="cuda").bfloat16()
        found = []
        for layout in ("nn", "nt"):
            matrix = torch.randn(terms, width, device="cuda").bfloat16()
            if layout == "nt":
                matrix = matrix.t().contiguous().t()
            for parts in (1, 2, 3, 4):
                if terms % parts:
                    continue
                out = torch.zeros(parts, 128, width, device="cuda").bfloat16()
                spent = fifty(functools.partial(multiply, operand, matrix, out))
                found.append(f"{layout}/{parts}: {spent:.2f}")
        print(f"128 x {terms} x {width}, µs: {', '.join(found)}", flush=True)


if __name__ == "__main__":
    main()
