"""How fast cells run on a GPU beside the vendor's LSTM, and how exactly.

One layer, input projection included, forward and backward or forward alone. The yardstick is torch.nn.LSTM of the same
shape in bfloat16, float16 and tf32, each inside a CUDA graph; a ratio is a time over the best of them, in the same run.
A layer is timed as it is called from Python, and inside a CUDA graph, as the yardstick is. Medians by CUDA events.

The error is that of outputs and all gradients against the loop in float64, the largest relative norm, for full and for
ragged rows: at up to 40 rows and few steps of the same width, so that the float64 loop ends soon.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from recurra.cells import Spec
from recurra.errors import RecurraError
from recurra.padding import Padded
from recurra.reports.speed import Size
from recurra.stacks.recurrent import Recurrent

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "tf32": torch.float32, "fp32": torch.float32}
YARDSTICK = ("bf16", "fp16", "tf32")
LIMITS = {"bf16": 1e-2, "fp16": 1e-2, "tf32": 1e-3, "fp32": 1e-5}
"""Errors above these are marked: what rounding alone comes to is below them."""

DEFAULT_CELLS = ("lstm", "peephole_lstm", "coupled_lstm", "gru", "layer_norm_lstm", "slstm", "min_gru")
DEFAULT_SHAPES = tuple(
    Size(B, T, H, H)
    for B, T, H in (
        (1, 128, 512),
        (32, 64, 512),
        (128, 50, 512),
        (64, 64, 1024),
        (256, 100, 1024),
        (64, 512, 768),
        (16, 1024, 2048),
        (16, 4096, 256),
    )
)


class Yardstick(NamedTuple):
    """torch.nn.LSTM at a shape: milliseconds by type of number."""

    shape: Size
    milliseconds: dict[str, float]

    @property
    def best(self) -> float:
        return min(self.milliseconds.values())


class OnGPU(NamedTuple):
    """A cell on an engine at a shape in one type of number; or why it was not measured."""

    cell: str
    asked: str  # the engine that was asked for
    shape: Size
    type: str
    engine: str = ""  # the one that ran
    call: float | None = None  # milliseconds when called from Python
    graph: float | None = None  # milliseconds inside a CUDA graph
    ratio: float | None = None  # that time over the best yardstick's; the time of a call where it cannot be recorded
    ratios: dict[str, float] = {}  # noqa: RUF012  # the same over each yardstick
    error: float | None = None
    refusal: str | None = None


def measure(
    cells: Sequence[tuple[str, Spec]],
    shapes: Sequence[Size] = DEFAULT_SHAPES,
    *,
    engines: Sequence[str] = ("auto",),
    types: Sequence[str] = ("bf16",),
    backward: bool = True,
    seconds: float = 0.4,
    until: float = math.inf,
) -> Iterator[Yardstick | OnGPU]:
    """Time every cell on every engine in every type, after the yardstick of its shape.

    cells      a name to show, and the cell
    seconds    about how long one time is taken for
    until      nothing new begins after this moment of time.monotonic()
    """
    for _, spec in cells:  # a mistake in a cell is said before anything is measured
        Recurrent(spec, shapes[0].I, shapes[0].H)
    return _measure(cells, shapes, engines, types, backward, seconds, until)


def _measure(
    cells: Sequence[tuple[str, Spec]],
    shapes: Sequence[Size],
    engines: Sequence[str],
    types: Sequence[str],
    backward: bool,
    seconds: float,
    until: float,
) -> Iterator[Yardstick | OnGPU]:
    for shape in shapes:
        if time.monotonic() > until:
            return
        found = yardstick(shape, backward, seconds)
        yield found
        for name, spec in cells:
            for engine in engines:
                for kind in types:
                    if time.monotonic() > until:
                        return
                    yield timing(name, spec, shape, engine, kind, found, backward, seconds)


def timing(
    name: str, spec: Spec, shape: Size, engine: str, kind: str, cudnn: Yardstick, backward: bool, seconds: float
) -> OnGPU:
    """One cell on one engine in one type."""
    found = OnGPU(name, engine, shape, kind)
    try:
        with numbers(kind):
            torch.manual_seed(0)
            with torch.device("cuda"):  # where orthogonal matrices are found at once
                rnn = restless(Recurrent(spec, shape.I, shape.H, engine=engine)).to("cuda", TYPES[kind])
            x = Padded.full(torch.randn(shape.B, shape.T, shape.I, device="cuda").to(TYPES[kind]))
            with torch.set_grad_enabled(backward):
                [layer] = rnn.engine_report(x).layers
            found = found._replace(engine=layer.engine.name)
            work = pass_of(rnn, x, backward)
            found = found._replace(call=timed(work, seconds))
            found = found._replace(graph=timed_in_graph(work, seconds))
            taken = found.graph or found.call or math.nan
            ratios = {of: taken / ms for of, ms in cudnn.milliseconds.items()}
            steps = 100 if found.engine == "scan" else 9
            wrong = error(spec, Size(min(shape.B, 40), steps, shape.I, shape.H), engine, TYPES[kind], "cuda")
            return found._replace(ratio=taken / cudnn.best, ratios=ratios, error=wrong)
    except torch.cuda.OutOfMemoryError:
        return found._replace(refusal="out of GPU memory")
    except RecurraError as reason:
        return found._replace(refusal=str(reason))


def yardstick(shape: Size, backward: bool = True, seconds: float = 0.4) -> Yardstick:
    """torch.nn.LSTM inside a CUDA graph, in each type."""
    found = {}
    for kind in YARDSTICK:
        with numbers(kind):
            lstm = torch.nn.LSTM(shape.I, shape.H).to("cuda", TYPES[kind])
            x = torch.randn(shape.T, shape.B, shape.I, device="cuda", dtype=TYPES[kind], requires_grad=backward)
            gradient = torch.randn(shape.T, shape.B, shape.H, device="cuda", dtype=TYPES[kind])
            sources = [x, *lstm.parameters()]

            def work(lstm: Any = lstm, x: Tensor = x, sources: Any = sources, gradient: Tensor = gradient) -> object:
                with torch.set_grad_enabled(backward):
                    outputs = lstm(x)[0]
                    return torch.autograd.grad(outputs, sources, gradient) if backward else outputs

            taken = timed_in_graph(work, seconds)
            found[kind] = timed(work, seconds) if taken is None else taken
    return Yardstick(shape, found)


def pass_of(rnn: Recurrent, x: Padded, backward: bool) -> Callable[[], object]:
    """Forward, and backward if wanted, as a function."""
    values = x.values.detach().requires_grad_(backward)
    with torch.no_grad():
        gradient = torch.randn_like(rnn(x)[0].values)
    sources = [values, *rnn.parameters()]

    def work() -> object:
        with torch.set_grad_enabled(backward):
            outputs = rnn(Padded(values, x.lengths))[0].values
            return torch.autograd.grad(outputs, sources, gradient, allow_unused=True) if backward else outputs

    return work


def restless(rnn: Recurrent) -> Recurrent:
    """Every vector moved from where it starts: zeros would hide a missing term."""
    with torch.no_grad():
        for parameter in rnn.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return rnn


def error(spec: Spec, shape: Size, engine: str, dtype: torch.dtype, device: str) -> float:
    """The largest relative norm of a difference from the loop in float64, of outputs and all gradients."""
    torch.manual_seed(0)
    with torch.device(device):
        rnn = restless(Recurrent(spec, shape.I, shape.H, engine=engine)).to(device, dtype)
        exact = Recurrent(spec, shape.I, shape.H, engine="loop").to(device, torch.float64)
    exact.load_state_dict({name: weight.double() for name, weight in rnn.state_dict().items()})
    x = torch.randn(shape.B, shape.T, shape.I, device=device).to(dtype)
    gradient = torch.randn(shape.B, shape.T, shape.H, device=device).to(dtype)
    worst = 0.0
    for lengths in (torch.full((shape.B,), shape.T), torch.arange(shape.B) % shape.T + 1):
        answers = []
        for model, of in ((rnn, dtype), (exact, torch.float64)):
            values = x.to(of).requires_grad_()
            outputs = model(Padded(values, lengths))[0].values
            found = torch.autograd.grad(
                outputs, [values, *model.parameters()], gradient.to(of), allow_unused=True, materialize_grads=True
            )
            answers.append([outputs, *found])
        for ours, theirs in zip(*answers, strict=True):
            difference = (ours.double() - theirs).norm() / theirs.norm().clamp_min(1e-30)
            worst = max(worst, difference.item()) if difference.isfinite() else math.inf
    return worst


@contextmanager
def numbers(kind: str) -> Iterator[None]:
    """Products of float32 by tf32, or in full where fp32 is asked for."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = kind != "fp32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def timed(work: Callable[[], object], seconds: float = 0.4, most: int = 25) -> float:
    """The median of the milliseconds between CUDA events around a call."""
    for _ in range(2):
        work()
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    count = int(max(5, min(most, seconds / max(time.perf_counter() - began, 1e-6))))
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
    for first, last in pairs:
        first.record()
        work()
        last.record()
    torch.cuda.synchronize()
    return statistics.median(first.elapsed_time(last) for first, last in pairs)


def timed_in_graph(work: Callable[[], object], seconds: float) -> float | None:
    """The same inside a CUDA graph; None where the work cannot be recorded, as where it waits for the GPU."""
    try:
        return timed(captured(work), seconds)
    except RuntimeError as reason:
        if isinstance(reason, torch.cuda.OutOfMemoryError):
            raise
        torch.cuda.synchronize()
        return None


def captured(work: Callable[[], object]) -> Callable[[], object]:
    """What a function launches, as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def heading() -> str:
    """What ran where, and what the columns mean."""
    device, cudnn = torch.cuda.get_device_name(), torch.backends.cudnn.version()
    columns = f"{'call':>9}{'graph':>9}{'×':>7}{'×bf16':>7}{'×fp16':>7}{'×tf32':>7}{'error':>10}"
    return "\n".join(
        [
            f"{device}, torch {torch.__version__}, cuDNN {cudnn}",
            "call: milliseconds when called from Python; graph: inside a CUDA graph; ×: over the best torch.nn.LSTM of",
            "that shape inside a CUDA graph, and over those in bf16, fp16, tf32; error: against float64, ! where above "
            + ", ".join(f"{limit:.0e} in {kind}" for kind, limit in LIMITS.items()),
            "",
            f"{'shape':>18} {'cell':18}{'engine':9}{'type':5}{columns}",
        ]
    )


def line_of(found: Yardstick | OnGPU) -> str:
    """One line of the table.

    >>> line_of(Yardstick(Size(1, 2, 3, 3), {"bf16": 1.5, "fp16": 1.25}))
    '           1x2x3x3 torch.nn.LSTM         bf16 1.500, fp16 1.250 ms'
    """
    start = f"{found.shape!s:>18} "
    if isinstance(found, Yardstick):
        times = ", ".join(f"{kind} {taken:.3f}" for kind, taken in found.milliseconds.items())
        return f"{start}{'torch.nn.LSTM':18}    {times} ms"
    start += f"{found.cell:18}{found.engine or found.asked:9}{found.type:5}"
    if found.refusal is not None:
        return f"{start}  not measured: {found.refusal}"
    assert found.call is not None
    assert found.ratio is not None
    assert found.error is not None
    graph = f"{'-':>9}" if found.graph is None else f"{found.graph:9.3f}"
    ratios = "".join(f"{found.ratios[kind]:7.2f}" for kind in YARDSTICK)
    mark = "!" if found.error > LIMITS[found.type] else " "
    return f"{start}{found.call:9.3f}{graph}{found.ratio:7.2f}{ratios}{found.error:9.1e}{mark}"


def summary(found: Sequence[OnGPU]) -> list[str]:
    """The geometric mean and the largest ratio of each cell over the shapes."""
    ratios: dict[tuple[str, str, str], list[float]] = {}
    for each in found:
        if each.ratio is not None:
            ratios.setdefault((each.cell, each.asked, each.type), []).append(each.ratio)
    return [
        f"{cell:18} {engine:9}{kind:5} geometric mean {statistics.geometric_mean(of):.2f}, "
        f"largest {max(of):.2f}, of {len(of)} shape{'s' if len(of) > 1 else ''}"
        for (cell, engine, kind), of in ratios.items()
    ]
