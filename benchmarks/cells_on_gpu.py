"""Any cell on a GPU beside cuDNN's LSTM: forward and backward of one layer, input projection included.

    python benchmarks/cells_on_gpu.py                       all cells, engines and shapes
    python benchmarks/cells_on_gpu.py --cells gru lstm --engines graph --seconds 60

The yardstick is torch.nn.LSTM in bfloat16, float16 and tf32, each replayed from a CUDA graph; × is the time over the
best of them. Each engine is timed as it is called from Python, and once more inside a CUDA graph that holds the whole
forward and backward pass, as the yardstick's does. Medians by CUDA events. The error is that of outputs and all
gradients against the loop in float64, the largest relative norm, at up to 40 rows and 9 steps of the same width.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("src", ".")]

from recurra import Padded, Recurrent  # noqa: E402

SHAPES = [
    (1, 128, 512),
    (32, 64, 512),
    (128, 50, 512),
    (64, 64, 1024),
    (256, 100, 1024),
    (64, 512, 768),
    (16, 1024, 2048),
]
CELLS: dict[str, Any] = {
    "lstm": "lstm",
    "peephole": "peephole_lstm",
    "coupled": "coupled_lstm",
    "own": "lab:Shortcut",  # the cell of docs/your_cell.md
    "gru": "gru",
    "layer_norm": "layer_norm_lstm",
    "slstm": "slstm",
}
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "tf32": torch.float32}


def users_cell(folder: Path) -> None:
    """Write lab.py, the file of docs/your_cell.md, and let it be found."""
    page = (Path(__file__).parents[1] / "docs" / "your_cell.md").read_text()
    (folder / "lab.py").write_text(page.split("```python\n", 1)[1].split("```", 1)[0])
    sys.path.insert(0, str(folder))


def timed(function: Callable[[], object], most: int = 25, seconds: float = 0.4) -> float:
    """The median of the milliseconds between CUDA events around a call."""
    for _ in range(2):
        function()
    torch.cuda.synchronize()
    began = time.perf_counter()
    function()
    torch.cuda.synchronize()
    count = int(max(5, min(most, seconds / max(time.perf_counter() - began, 1e-6))))
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
    for first, last in pairs:
        first.record()
        function()
        last.record()
    torch.cuda.synchronize()
    return statistics.median(first.elapsed_time(last) for first, last in pairs)


def captured(function: Callable[[], object]) -> Callable[[], object]:
    """The same as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay


def yardstick(B: int, T: int, H: int) -> dict[str, float]:
    """cuDNN's LSTM, milliseconds by type of number."""
    found = {}
    for name, dtype in TYPES.items():
        lstm = torch.nn.LSTM(H, H).to("cuda", dtype)
        x = torch.randn(T, B, H, device="cuda", dtype=dtype, requires_grad=True)
        gradient = torch.randn(T, B, H, device="cuda", dtype=dtype)
        sources = [x, *lstm.parameters()]
        found[name] = timed(captured(lambda: torch.autograd.grad(lstm(x)[0], sources, gradient)))  # noqa: B023
    return found


def layer(spec: Any, B: int, T: int, H: int, dtype: torch.dtype, engine: str) -> Callable[[], tuple[Any, ...]]:
    """Forward and backward of one layer of recurra, as a function that returns outputs and gradients."""
    torch.manual_seed(0)
    rnn = Recurrent(spec, H, H, engine=engine).to("cuda", dtype)
    with torch.no_grad():
        for parameter in rnn.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    x = torch.randn(B, T, H, device="cuda").to(dtype).requires_grad_()
    gradient = torch.randn(B, T, H, device="cuda").to(dtype)
    sources = [x, *rnn.parameters()]

    def run() -> tuple[Any, ...]:
        outputs = rnn(Padded.full(x))[0].values
        return outputs.detach(), *torch.autograd.grad(outputs, sources, gradient)

    return run


def error(spec: Any, B: int, H: int, dtype: torch.dtype, engine: str) -> float:
    """The largest relative norm of a difference from the loop in float64."""
    torch.manual_seed(0)
    exact = Recurrent(spec, H, H, engine="loop").to("cuda", dtype)
    rnn = Recurrent(spec, H, H, engine=engine).to("cuda", dtype)
    rnn.load_state_dict(exact.state_dict())
    exact = exact.double()
    T = 9
    x = torch.randn(min(B, 40), T, H, device="cuda").to(dtype)
    gradient = torch.randn_like(x)
    lengths = torch.arange(min(B, 40)) % T + 1
    worst = 0.0
    for each in (None, lengths):
        answers = []
        for model in (rnn, exact):
            of = next(model.parameters()).dtype
            values = x.to(of).requires_grad_()
            batch = Padded.full(values) if each is None else Padded(values, each)
            outputs = model(batch)[0].values
            answers.append([outputs, *torch.autograd.grad(outputs, [values, *model.parameters()], gradient.to(of))])
        pairs = zip(*answers, strict=True)
        worst = max(worst, *(((a.double() - b).norm() / b.norm().clamp_min(1e-30)).item() for a, b in pairs))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="+", default=list(CELLS))
    parser.add_argument("--engines", nargs="+", default=["auto"])
    parser.add_argument("--types", nargs="+", default=["bf16"])
    parser.add_argument("--shapes", nargs="+", type=int, help="which of the shapes, by number from 0")
    parser.add_argument("--seconds", type=float, default=400, help="begin no new measurement after so long")
    given = parser.parse_args()
    began = time.time()
    users_cell(Path(tempfile.mkdtemp()))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    heads = f"{'call':>8}{'graph':>8}{'×':>7}{'×bf16':>7}{'×fp16':>7}{'error':>9}"
    print(f"{'shape':>16} {'cell':11}{'engine':11}{'type':5}{heads}")
    ratios: dict[tuple[str, str, str], list[float]] = {}
    for B, T, H in [SHAPES[number] for number in given.shapes] if given.shapes else SHAPES:
        if time.time() - began > given.seconds:
            break
        cudnn = yardstick(B, T, H)
        best = min(cudnn.values())
        print(f"{f'{B},{T},{H}':>16} cuDNN LSTM  " + "  ".join(f"{name} {ms:.3f}" for name, ms in cudnn.items()))
        for name in given.cells:
            for engine in given.engines:
                for of in given.types:
                    if time.time() - began > given.seconds:
                        continue
                    line = f"{f'{B},{T},{H}':>16} {name:11}{engine:11}{of:5}"
                    try:
                        call = layer(CELLS.get(name, name), B, T, H, TYPES[of], engine)
                        eager = timed(call)
                        graphed = timed(captured(call))
                        wrong = error(CELLS.get(name, name), B, H, TYPES[of], engine)
                        ratio = graphed / best
                        ratios.setdefault((name, engine, of), []).append(ratio)
                        line += f"{eager:8.3f}{graphed:8.3f}{ratio:7.2f}"
                        line += f"{graphed / cudnn['bf16']:7.2f}{graphed / cudnn['fp16']:7.2f}{wrong:9.1e}"
                    except Exception as failed:
                        line += f" {type(failed).__name__}: {str(failed).splitlines()[0][:120]}"
                    print(line, flush=True)
    for (name, engine, of), found in ratios.items():
        mean = math.exp(statistics.mean(map(math.log, found)))
        print(f"{name:11}{engine:11}{of:5} geometric mean {mean:.2f}, largest {max(found):.2f}, of {len(found)} shapes")


if __name__ == "__main__":
    main()
