"""Any cell on a GPU beside cuDNN's LSTM: forward and backward of one layer, input projection included.

    python benchmarks/cells_on_gpu.py                       all cells and shapes, on the engine that `auto` takes
    python benchmarks/cells_on_gpu.py --cells gru lstm --engines graph --types bf16 tf32 fp32 --shapes 16x4096x256x256
    python benchmarks/cells_on_gpu.py --processes 14        the same, all kernels compiled by processes first

The table of `recurra bench --device cuda`, with the cell of docs/your_cell.md beside those of the house. How it is
measured: src/recurra/reports/speed_on_gpu.py.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("src", ".")]

import torch  # noqa: E402

from recurra import Padded, Recurrent  # noqa: E402
from recurra.errors import RecurraError  # noqa: E402
from recurra.reports.speed import Size  # noqa: E402
from recurra.reports.speed_on_gpu import (  # noqa: E402
    DEFAULT_SHAPES,
    TYPES,
    OnGPU,
    heading,
    line_of,
    measure,
    numbers,
    pass_of,
    summary,
)

CELLS = {
    "lstm": "lstm",
    "peephole": "peephole_lstm",
    "coupled": "coupled_lstm",
    "own": "lab:Shortcut",  # the cell of docs/your_cell.md
    "gru": "gru",
    "layer_norm": "layer_norm_lstm",
    "slstm": "slstm",
    "min_gru": "min_gru",
}


def users_cell(folder: Path) -> None:
    """Write lab.py, the file of docs/your_cell.md, and let it be found."""
    page = (Path(__file__).parents[1] / "docs" / "your_cell.md").read_text()
    (folder / "lab.py").write_text(page.split("```python\n", 1)[1].split("```", 1)[0])
    sys.path.insert(0, str(folder))


def compile_one(task: tuple[str, Size, str, str, Path]) -> str:
    """Run a layer over a few steps, so that its kernels are compiled and kept on disk; what went wrong."""
    spec, shape, engine, kind, folder = task
    sys.path.insert(0, str(folder))
    torch.set_num_threads(1)
    try:
        with numbers(kind), torch.device("cuda"):
            rnn = Recurrent(spec, shape.I, shape.H, engine=engine).to(TYPES[kind])
            x = torch.randn(shape.B, 4, shape.I, dtype=TYPES[kind])
            pass_of(rnn, Padded(x, torch.full((shape.B,), 4, device="cpu")), True)()
            torch.cuda.synchronize()
        return ""
    except (RecurraError, RuntimeError) as reason:
        return f"{spec} {shape}: {reason}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="+", default=list(CELLS))
    parser.add_argument("--engines", nargs="+", default=["auto"])
    parser.add_argument("--types", nargs="+", default=["bf16"])
    parser.add_argument("--shapes", nargs="+", help="by number from 0, or as rows x steps x inputs x units")
    parser.add_argument("--seconds", type=float, default=400, help="begin no new measurement after so long")
    parser.add_argument("--processes", type=int, default=0, help="compile all kernels by so many processes first")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    users_cell(folder)
    wanted = given.shapes or [str(number) for number in range(len(DEFAULT_SHAPES) - 1)]
    shapes = [DEFAULT_SHAPES[int(text)] if text.isdigit() else Size.parse(text) for text in wanted]
    if given.processes:
        tasks = [
            (CELLS.get(c, c), s, e, k, folder)
            for s in shapes
            for c in given.cells
            for e in given.engines
            for k in given.types
        ]
        with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
            for problem in pool.imap_unordered(compile_one, tasks):
                print(problem, end="", flush=True)
    print(heading())
    timings = []
    cells = [(name, CELLS.get(name, name)) for name in given.cells]
    until = time.monotonic() + given.seconds
    for found in measure(cells, shapes, engines=given.engines, types=given.types, until=until):
        print(line_of(found), flush=True)
        if isinstance(found, OnGPU):
            timings.append(found)
    print("", *summary(timings), sep="\n")


if __name__ == "__main__":
    main()
