"""Every engine against the loop on a GPU: outputs, final states and every gradient, with ragged rows.

    python benchmarks/engines_on_gpu.py

Prints one line per variant and engine that runs there, with the largest difference in float64 and in float32, and then
the times of `recurra bench --device cuda`. Needs neither pytest nor hypothesis.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("src", ".")]

from tests.engines.comparison import everything  # noqa: E402
from tests.variants import EVERY, batch, model, random_states  # noqa: E402

from recurra import Padded, Recurrent  # noqa: E402
from recurra.cli import main  # noqa: E402
from recurra.engines import ENGINES  # noqa: E402


def largest_difference(rnn: Recurrent, engine: str, dtype: torch.dtype) -> float:
    rnn = rnn.to("cuda", dtype)
    start = random_states(rnn, 5)
    x = batch([7, 0, 1, 4, 7], 5)
    x = Padded(x.values.to("cuda", dtype), x.lengths)
    found, expected = everything(rnn, engine, x, start), everything(rnn, "loop", x, start)
    return max((found[name] - value).abs().max().item() for name, value in expected.items() if value.numel())


def check() -> bool:
    good = True
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Python {sys.version.split()[0]}")
    print(f"{'variant':28}{'engine':9}{'mode':12}{'float64':>10}{'float32':>10}")
    for variant, spec in EVERY.items():
        for training in (True, False):
            rnn = model(spec, 5, 6, layers=2, bidirectional=True).cuda().train(training)
            refusals = dict(rnn.engine_report().layers[0].refusals)
            for engine in ENGINES:
                if engine.name == "loop" or refusals[engine.name] is not None:
                    continue
                torch.manual_seed(0)
                fine = largest_difference(rnn, engine.name, torch.float64)
                coarse = largest_difference(rnn, engine.name, torch.float32)
                rnn.double()
                good &= fine < 1e-10 and coarse < 1e-3
                mode = "training" if training else "evaluation"
                print(f"{variant:28}{engine.name:9}{mode:12}{fine:10.1e}{coarse:10.1e}")
    print("all within 1e-10 (float64) and 1e-3 (float32)" if good else "TOO FAR APART")
    return good


if __name__ == "__main__":
    if not torch.cuda.is_available():
        sys.exit("this check needs a GPU")
    # The loop multiplies in float32 proper; cuDNN must not use tf32 beside it.
    torch.backends.cudnn.allow_tf32 = False
    agreed = check()
    main(["bench", "--device", "cuda", "--cells", "lstm", '{name = "gru", reset = "after"}', "elman", "--explain"])
    sys.exit(not agreed)
