"""Any cell on a GPU beside cuDNN's LSTM: forward and backward of one layer, input projection included.

    python benchmarks/cells_on_gpu.py                       all cells and shapes, on the engine that `auto` takes
    python benchmarks/cells_on_gpu.py --cells gru lstm --engines graph --types bf16 tf32 fp32 --shapes 16x4096x256x256

The table of `recurra bench --device cuda`, with the cell of docs/your_cell.md beside those of the house. How it is
measured: src/recurra/reports/speed_on_gpu.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("src", ".")]

from recurra.reports.speed import Size  # noqa: E402
from recurra.reports.speed_on_gpu import DEFAULT_SHAPES, OnGPU, heading, line_of, measure, summary  # noqa: E402

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="+", default=list(CELLS))
    parser.add_argument("--engines", nargs="+", default=["auto"])
    parser.add_argument("--types", nargs="+", default=["bf16"])
    parser.add_argument("--shapes", nargs="+", help="by number from 0, or as rows x steps x inputs x units")
    parser.add_argument("--seconds", type=float, default=400, help="begin no new measurement after so long")
    given = parser.parse_args()
    users_cell(Path(tempfile.mkdtemp()))
    wanted = given.shapes or [str(number) for number in range(len(DEFAULT_SHAPES) - 1)]
    shapes = [DEFAULT_SHAPES[int(text)] if text.isdigit() else Size.parse(text) for text in wanted]
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
