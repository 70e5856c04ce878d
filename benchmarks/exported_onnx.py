"""Recurrent layers in onnxruntime: ONNX's own operators beside a Scan, torch and C; runs exported to ONNX beside C.

    python benchmarks/exported_onnx.py [RUN …] [--hidden 256] [--steps 50] [--count 64]

An LSTM is an operator of ONNX, and so is one with peepholes whose output gate sees the new cell. If that gate sees the
cell before, the layer is a Scan, which computes as much. Times are CPU seconds of one thread, the best of several.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

LAYERS: dict[str, dict[str, Any]] = {
    "LSTM": {"name": "lstm"},
    "LSTM with peepholes": {"name": "peephole_lstm"},
    "the same, o sees the cell before": {"name": "peephole_lstm", "output_sees": "previous"},
    "GRU": {"name": "gru"},
}


def seconds(work: Callable[[], object], times: int = 7) -> float:
    work()
    found = []
    for _ in range(times):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def layer(spec: dict[str, Any], hidden: int, steps: int, rows: int, folder: Path) -> str:
    """Microseconds a step in torch, C and onnxruntime, and the operator there."""
    import torch

    from recurra.exporting.joining import program_of
    from recurra.exporting.recording import record
    from recurra.padding import Padded
    from recurra.programs.in_c import InC
    from recurra.programs.in_onnx import InOnnx
    from recurra.programs.inputs import Input, Recordable
    from recurra.programs.onnx_file import write_graphs
    from recurra.programs.onnx_functions import graphs
    from recurra.programs.weights import read_weights, write_weights
    from recurra.stacks.recurrent import Recurrent

    rnn = Recurrent(spec, hidden, hidden).eval()
    with torch.no_grad():  # peepholes of 0, as they are at first, would make all of them plain LSTMs
        for parameter in rnn.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)

    def call(x: torch.Tensor, lengths: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"outputs": rnn(Padded(x, lengths))[0].values}

    inputs = [Input("x", ("B", "T", hidden)), Input("lengths", ("B",), "lengths", along="T")]
    program, weights = program_of({"read": record(rnn, Recordable("read", inputs, call))})
    printed = graphs(program, weights)
    write_graphs(folder, printed)
    write_weights(folder / "weights.bin", program, weights)
    content, _ = read_weights(folder / "weights.bin", program)
    x, lengths = torch.randn(rows, steps, hidden), torch.full((rows,), steps)
    arrays = [x.numpy(), lengths.numpy()]
    with torch.no_grad():
        ways: list[Callable[[], object]] = [
            lambda: rnn(Padded(x, lengths)),
            partial(InC(program, content).run, "read", arrays),
            partial(InOnnx(program, folder).run, "read", arrays),
        ]
        found = [seconds(way) / steps * 1e6 for way in ways]
    [kind] = [node.kind for node in printed["read"].nodes if node.kind in ("RNN", "GRU", "LSTM", "Scan")]
    return f"{found[0]:8.1f} {found[1]:8.1f} {found[2]:12.1f}   {kind}"


def in_parts(model: Any, parts: list[list[Any]]) -> None:
    for part in parts:
        model.predict(part)


def answers(run: Path, count: int) -> None:
    """Answers a second of a run and of both kinds of exported folders."""
    from recurra.exported import load_exported
    from recurra.exporting.folder import export, sample_inputs
    from recurra.training.trained import load

    model = load(run)
    inputs = (sample_inputs(model) * count)[:count]
    with tempfile.TemporaryDirectory() as place:
        ways: dict[str, Any] = {"torch": model}
        for to in ("c", "onnx"):
            report = export(run, Path(place, to), to=to)
            ways[to] = load_exported(Path(place, to))
            print(f"{run} to {to}: {sum(report.bytes.values()) / 1e6:.2f} MB, difference {report.largest_error:.1e}")
        for rows in (1, 32):
            rates = []
            for name, each in ways.items():
                parts = [inputs[first : first + rows] for first in range(0, len(inputs), rows)]
                rates.append(f"{name} {count / seconds(partial(in_parts, each, parts), 3):,.0f}")
            print(f"  {rows} at once, answers a second of CPU: {', '.join(rates)}")


def main() -> None:
    import torch

    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--count", type=int, default=64)
    options = parser.parse_args()
    print(f"microseconds of CPU a step, {options.hidden} units, {options.steps} steps")
    print(f"{'':34} rows    torch        C  onnxruntime   operator")
    for name, spec in LAYERS.items():
        for rows in (1, 32):
            with tempfile.TemporaryDirectory() as place:
                found = layer(spec, options.hidden, options.steps, rows, Path(place))
            print(f"{name:34} {rows:4} {found}")
    for run in options.runs:
        answers(run, options.count)


if __name__ == "__main__":
    main()
