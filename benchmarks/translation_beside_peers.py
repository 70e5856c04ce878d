"""Translation beside OpenNMT-py's and JoeyNMT's recurrent models of the same shape: training and decoding, in turn.

    python ../shared/peers/data.py --out peers/data                # their working set, 200 sentences of test
    python benchmarks/translation_beside_peers.py --peers ../shared/peers --venvs peers/venvs --data peers/data/m30k

BiLSTM of 256 a direction, LSTM of 512, vectors of 256, 8,000 words a side, bilinear attention with input feeding; ours
also with attention outside the cells. Training: Adam, 64 sentences an update, target tokens a second over the second
half of the updates, as each program logs them. Decoding: 200 sentences, each made 15 tokens long, sentences a second as
each program reports them. Peers are run by their own command lines (see the README of --peers), one after the other.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CELLS = ((1, 1), (1, 32), (5, 1), (5, 32))
LENGTH = 15
SHAPE = [
    "data.source.tokens=symbols",
    "data.target.tokens=symbols",
    "data.source.max_size=8000",
    "data.target.max_size=8000",
    "data.cache=false",
    "model.embedding=256",
    "model.hidden=512",
    "model.attention=bilinear",
    "model.dropout=0.1",
    "model.label_smoothing=0",
    "training.batch_size=64",
    "training.learning_rate=1e-3",
    "training.clip=1",
    "training.average=none",
    "training.device=cpu",
    "evaluation.first=bleu",
    f"decoding.min_length={LENGTH}",
    f"decoding.max_length={LENGTH}",
    "decoding.max_ratio=100",
]


def ours(wiring: str, threads: int, updates: int, data: Path, repeat: int) -> None:
    """One of our wirings in this process; each figure is a line of JSON."""
    import torch

    torch.set_num_threads(threads)
    from recurra.runs import begin, setup
    from recurra.training.progress import Progress
    from recurra.training.trained import Trained, load

    class Timed(Progress):
        def __init__(self) -> None:
            self.times: list[float] = []

        def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None:
            self.times.append(time.perf_counter())

        def start(
            self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None
        ) -> None: ...
        def validating(self, done: int, total: int) -> None: ...
        def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None: ...
        def note(self, text: str) -> None: ...
        def stop(self) -> None: ...

    given = {"train": f"{data}/train.en,{data}/train.de"}
    own = [f"model.wiring={wiring}", f"training.steps={updates}", f"training.threads={threads}"]
    with tempfile.TemporaryDirectory() as folder:
        timed = Timed()
        begin(setup("seq2seq", given=given, overrides=[*SHAPE, *own]), Path(folder) / "run", timed)
        model = load(Path(folder) / "run")
        rows = [model.task.encode(pair) for pair in model.task.read([given["train"]])]
        chosen = model.task.batches(Lengths(model.task, rows), 0)[updates // 2 : updates]
        tokens = sum(len(rows[number]["target"]) for batch in chosen for number in batch)
        print(
            json.dumps({"what": "train", "rate": tokens / (timed.times[-1] - timed.times[updates // 2 - 1])}),
            flush=True,
        )
        lines = (data / "test.en").read_text("utf-8").rstrip("\n").split("\n")
        for width, batch in CELLS:
            search = "greedy" if width == 1 else "beam"
            asked: Trained = model.with_settings([f"decoding.search={search}", f"decoding.width={width}"])
            asked.predict(lines[:batch])
            best = 0.0
            for _ in range(repeat):
                began = time.perf_counter()
                for start in range(0, len(lines), batch):
                    found = asked.predict(lines[start : start + batch], batch_tokens=1 << 30)
                best = max(best, len(lines) / (time.perf_counter() - began))
            assert len(found[-1].detail["tokens"]) == LENGTH
            print(json.dumps({"what": f"{width}:{batch}", "rate": best}), flush=True)


@dataclasses.dataclass
class Lengths:
    """Rows as `batches` asks for them."""

    task: Any
    rows: list[Any]

    def lengths(self, field: str) -> Any:
        from recurra.data.store import Rows

        return Rows.of(self.rows).lengths(field)

    def __len__(self) -> int:
        return len(self.rows)


def measured(command: list[str], threads: int, prefix: str = "") -> dict[str, float]:
    """The figures that a process prints as lines of JSON."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    found: dict[str, float] = {}
    for line in done.stdout.splitlines():
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        if "rate" in row:
            found[row["what"]] = row["rate"]
        elif row.get("what") == "train":
            found["train"] = row["trg_tok_s"]
        elif row.get("what") == "decode":
            found[f"{row['beam']}:{row['batch']}"] = row["sent_s"]
    if not found:
        sys.exit(f"{prefix}{' '.join(command)} failed:\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}")
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--peers", type=Path, help="the folder with nmt.py")
    arguments.add_argument("--venvs", type=Path, help="their virtual environments, onmt and joeynmt")
    arguments.add_argument(
        "--data", type=Path, required=True, help="their working set, with train.en, train.de, test.en"
    )
    arguments.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    arguments.add_argument("--updates", type=int, default=40)
    arguments.add_argument("--repeat", type=int, default=2, help="the best of so many decodings")
    arguments.add_argument("--only", nargs="+", default=["onmt", "joeynmt", "feeding", "outside"])
    arguments.add_argument("--ours", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    data = options.data.resolve()
    if options.ours:
        ours(options.ours, options.threads[0], options.updates, data, options.repeat)
        return
    for threads in options.threads:
        rows: dict[str, dict[str, float]] = {}
        for name in options.only:
            if name in ("feeding", "outside"):
                command = [sys.executable, __file__, "--data", str(data), "--ours", name, "--threads", str(threads)]
            else:
                command = [sys.executable, str((options.peers / "nmt.py").resolve()), name, "--data", str(data)]
                command += ["--venvs", str(options.venvs.resolve()), "--work", tempfile.mkdtemp()]
                command += ["--threads", str(threads)]
            command += ["--updates", str(options.updates), "--repeat", str(options.repeat)]
            rows[name] = measured(command, threads)
            print(f"  {name}: {rows[name]}", file=sys.stderr, flush=True)
        print(
            f"\n{threads} thread{'s' * (threads > 1)}: target tokens a second in training, sentences a second in search"
        )
        heads = ["train", *(f"{width}:{batch}" for width, batch in CELLS)]
        print(f"{'':12}{'training':>10}{'greedy, 1':>12}{'greedy, 32':>12}{'beam 5, 1':>12}{'beam 5, 32':>12}")
        for name, row in rows.items():
            cells = "".join(
                f"{row.get(head, float('nan')):{12 if place else 10}.1f}" for place, head in enumerate(heads)
            )
            print(f"{name:12}{cells}")
        for peer in ("onmt", "joeynmt"):
            for name in ("feeding", "outside"):
                if peer in rows and name in rows:
                    ratios = [rows[name].get(head, 0.0) / rows[peer].get(head, float("nan")) for head in heads]
                    cells = "".join(f"{ratio:{12 if place else 10}.2f}" for place, ratio in enumerate(ratios))
                    print(f"{name + '/' + peer:16}{cells[4:]}")


if __name__ == "__main__":
    main()
