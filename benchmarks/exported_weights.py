"""Size and quality of exported models with weights of 32, 16 and 8 bits, on test files.

    python benchmarks/exported_weights.py RUN=FILE [RUN=FILE …] [--rows N] [--scores NAME,…]

Each RUN is exported three times and evaluated on FILE (of two parallel files, both with a comma between), by C on one
thread. Printed are the size of weights.bin, the scores, and what is lost beside float32.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import get_args

os.environ["OMP_NUM_THREADS"] = "1"


def main() -> None:
    import torch

    from recurra.exported import WEIGHTS, load_exported
    from recurra.exporting.folder import export
    from recurra.programs.narrowing import Width

    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN=FILE")
    parser.add_argument("--scores", default="bleu,symbol_error_rate,word_error_rate,accuracy,nll,perplexity")
    options = parser.parse_args()
    for given in options.runs:
        run, file = given.split("=", 1)
        plain: dict[str, float] = {}
        for width in get_args(Width):
            with tempfile.TemporaryDirectory() as place:
                report = export(run, Path(place) / "exported", weights=width)
                began = time.process_time()
                scores = load_exported(report.folder, by="c").evaluate(file).values
                seconds = time.process_time() - began
            plain = plain or dict(scores)
            found = [
                f"{name} {scores[name]:.4f} ({scores[name] - plain[name]:+.4f})"
                for name in options.scores.split(",")
                if name in scores
            ]
            size = report.bytes[WEIGHTS] / 1e6
            print(f"{run} {width}: {size:.2f} MB, {seconds:.1f} s of CPU; {', '.join(found)}", flush=True)
            if report.narrow is not None:
                print("".join(f"    {line}\n" for line in report.narrow.lines()), end="", flush=True)


if __name__ == "__main__":
    main()
