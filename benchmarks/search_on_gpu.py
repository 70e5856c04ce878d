"""Greedy and beam search beside a plain loop: tokens a second of an attention decoder.

    python benchmarks/search_on_gpu.py                      on a GPU, in under 90 seconds
    python benchmarks/search_on_gpu.py --profile            and the kernels of a replayed search
    python benchmarks/search_on_gpu.py --device cpu --small to try the script

The model is an LSTM decoder with input feeding and bilinear attention (embedding and H 512, V 8000) on sources of 50
tokens; every answer has 50 tokens, since it may not end before. What is timed is all that `searched` does after the
encoder: from the decoder's start to the answers as Python lists. CUDA events around it, the median of some runs.

    naive     a loop over torch's operations, written here, with the same weights and one copy at its end
    host      recurra's search on the host, which waits for the device at each step
    steps     recurra's search on the device, steps called by Python
    replayed  the same, recorded as CUDA graphs: what a GPU does by itself from the second batch of a shape on

Tokens of beam search are those of the best answers. The last columns say how many of the answers of `replayed` are
those of `host` and of `naive`, token by token; in bfloat16 ties are frequent, and products differ with their shapes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from recurra.config import Seq2SeqDecoding, Seq2SeqModel
from recurra.models.searching import PLACES, searched
from recurra.models.seq2seq import PairBatch, SequenceToSequence, Sizes
from recurra.padding import Padded
from recurra.search.continuing import FAILURES
from recurra.search.decoding import SearchTokens
from recurra.search.graphs import Graphs, graphs_of
from recurra.search.search import Hypothesis
from recurra.settings import settings_from

UNKNOWN, START, END = 0, 1, 2
WIDTH = 5
GOALS = {(1, "greedy"): 25e3, (64, "greedy"): 900e3, (512, "greedy"): 4e6}
GOALS |= {(1, "beam"): 12e3, (64, "beam"): 450e3, (512, "beam"): 1.5e6}


class Extent(NamedTuple):
    """How large everything is."""

    vocabulary: int
    hidden: int
    source: int
    target: int
    batches: tuple[int, ...]


LARGE = Extent(8000, 512, 50, 50, (1, 64, 512))
SMALL = Extent(300, 16, 9, 12, (1, 4))


class Begun(nn.Module):
    """A network whose sources were read already: what a search does after the encoder."""

    def __init__(self, model: SequenceToSequence, batch: PairBatch) -> None:
        super().__init__()
        self.model, self.batch = model, batch
        self.starts: dict[int, Any] = {multiple: model.start(batch, multiple=multiple) for multiple in (1, PLACES)}

    def start(self, batch: PairBatch, *, multiple: int = 1) -> Any:
        return self.starts[multiple]

    def stepping(self, extra: int = 0) -> Any:
        return self.model.stepping(extra)

    def weights(self, moving: Any) -> Tensor | None:
        return self.model.weights(moving)

    def extents(self, source: Any) -> Any:
        return self.model.extents(source)

    def token_log_likelihoods(self, batch: PairBatch) -> Tensor:
        return self.model.token_log_likelihoods(batch)


class Naive:
    """The decoder by hand, with the weights of a network."""

    def __init__(self, begun: Begun) -> None:
        model: Any = begun.model
        wiring = model.decoder.wiring
        cell = wiring.cells.cells[0][0]
        self.embedding = model.decoder.embedding.weight
        self.W, self.b, self.U = cell.from_input.weight, cell.from_input.bias, cell.from_state
        self.mix, self.output = wiring.readout.mix, model.output.readout
        _, state, fixed = begun.starts[1]
        self.h, self.c, self.fed = state.cells[0].h, state.cells[0].c, state.fed
        self.keys, self.values = fixed.source.memory.keys, fixed.source.memory.values

    def step(self, y: Tensor, h: Tensor, c: Tensor, fed: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        gates = functional.linear(torch.cat([self.embedding[y], fed], 1), self.W, self.b) + h @ self.U.T
        i, f, g, o = gates.chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        queries = h.view(len(self.keys), -1, h.shape[1])
        context = (queries @ self.keys.transpose(1, 2)).softmax(-1) @ self.values
        fed = torch.cat([h, context.flatten(0, 1)], 1)
        fed = self.mix(fed).tanh()
        return self.output(fed).float().log_softmax(1), h, c, fed

    def greedy(self, length: int) -> list[list[int]]:
        h, c, fed = self.h, self.c, self.fed
        y, found = torch.full((len(h),), START, device=h.device), []
        for _ in range(length):
            log_p, h, c, fed = self.step(y, h, c, fed)
            log_p[:, [START, END]] = -torch.inf
            y = log_p.argmax(1)
            found.append(y)
        return torch.stack(found, 1).tolist()

    def beam(self, length: int) -> list[list[int]]:
        rows, device = len(self.h), self.h.device
        h, c, fed = (each.repeat_interleave(WIDTH, 0) for each in (self.h, self.c, self.fed))
        y = torch.full((rows * WIDTH,), START, device=device)
        totals = torch.full((rows, WIDTH), -torch.inf, device=device)
        totals[:, 0] = 0
        offsets = torch.arange(rows, device=device).unsqueeze(1) * WIDTH
        past = torch.zeros(rows * WIDTH, 0, dtype=torch.long, device=device)
        for _ in range(length):
            log_p, h, c, fed = self.step(y, h, c, fed)
            log_p[:, [START, END]] = -torch.inf
            values, ids = log_p.topk(WIDTH, 1)
            totals, order = (totals.unsqueeze(2) + values.view(rows, WIDTH, WIDTH)).flatten(1).topk(WIDTH, 1)
            parents = (order // WIDTH + offsets).flatten()
            y = ids.view(rows, -1).gather(1, order).flatten()
            h, c, fed = (each.index_select(0, parents) for each in (h, c, fed))
            past = torch.cat([past.index_select(0, parents), y.unsqueeze(1)], 1)
        return past.view(rows, WIDTH, -1)[:, 0].tolist()


def network(extent: Extent, device: torch.device, dtype: torch.dtype) -> SequenceToSequence:
    torch.manual_seed(1)
    settings = settings_from(
        Seq2SeqModel,
        {
            "embedding": extent.hidden,
            "hidden": extent.hidden,
            "cell": "lstm",
            "wiring": "feeding",
            "attention": "bilinear",
            "dropout": 0.0,
        },
    )
    sizes = Sizes(source=extent.vocabulary, target=extent.vocabulary, frames=None, unknown=UNKNOWN, start=START)
    return SequenceToSequence(settings, sizes).eval().to(device, dtype)


def milliseconds(run: Callable[[], object], device: torch.device, repeats: int) -> float:
    """The median of some runs after one that does not count."""
    run()
    found = []
    for _ in range(repeats):
        if device.type == "cuda":
            torch.cuda.synchronize()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            end.synchronize()
            found.append(begin.elapsed_time(end))
        else:
            before = time.perf_counter()
            run()
            found.append(1e3 * (time.perf_counter() - before))
    return statistics.median(found)


def shared(found: list[list[int]], other: list[list[int]]) -> float:
    """How many answers are the same, as a share."""
    return sum(one == two for one, two in zip(found, other, strict=True)) / len(found)


def tokens_of(found: list[list[Hypothesis]]) -> list[list[int]]:
    return [row[0].tokens for row in found]


def measure(extent: Extent, device: torch.device, dtype: torch.dtype, given: argparse.Namespace) -> None:
    model = network(extent, device, dtype)
    for rows in extent.batches:
        chance = torch.Generator().manual_seed(rows)
        source = torch.randint(3, extent.vocabulary, (rows, extent.source), generator=chance)
        batch = PairBatch(Padded(source.to(device), torch.full((rows,), extent.source)), None, None)
        begun = Begun(model, batch).eval()
        graphs = graphs_of(begun) if device.type == "cuda" else Graphs()
        for search in ("greedy", "beam"):
            compare(begun, search, extent, graphs, given)
        memory = sum(room.size for room in graphs.rooms.values()) / 2**20
        reasons = ", ".join([*graphs.refusals, *FAILURES]) or "nothing refused"
        print(f"{'':16}{graphs.recorded} recordings, {memory:.0f} MiB of their tensors, {reasons}", flush=True)


def compare(begun: Begun, search: Any, extent: Extent, graphs: Graphs, given: argparse.Namespace) -> None:
    """One row of the table."""
    tokens, rows = begun.starts[1][0], len(begun.starts[1][0])
    decoding = Seq2SeqDecoding(
        search=search, width=WIDTH, max_length=extent.target, min_length=extent.target, max_ratio=None
    )
    words = SearchTokens(end=END, never=(START,))
    run = partial(searched, begun, begun.batch, decoding, words)
    by_hand: Callable[[], list[list[int]]] = partial(getattr(Naive(begun), search), extent.target)
    steps = partial(run, on_device=True, graphs=Graphs(from_visit=1 << 30))
    replayed = partial(run, on_device=True, graphs=graphs)
    replayed()
    before = time.perf_counter()
    replayed()  # records
    recording = time.perf_counter() - before
    few = max(1, given.repeats // 5)
    times = [
        milliseconds(by_hand, tokens.device, given.repeats),
        milliseconds(partial(run, on_device=False), tokens.device, few),
        milliseconds(steps, tokens.device, few),
        milliseconds(replayed, tokens.device, given.repeats),
    ]
    found = tokens_of(replayed())
    goal = GOALS.get((rows, search), float("nan")) if extent is LARGE else float("nan")
    print(
        f"{str(begun.model.output.readout.weight.dtype).removeprefix('torch.'):9}{rows:5}  {search:7}"
        + "".join(f"{1e3 * rows * extent.target / each:12,.0f}" for each in times)
        + f"{goal:12,.0f}{1e3 * times[-1] / extent.target:10.1f}{1e3 * recording:9.0f}"
        + f"{shared(found, tokens_of(run(on_device=False))):8.1%}{shared(found, by_hand()):8.1%}",
        flush=True,
    )
    if given.profile:
        show_kernels(replayed, tokens.device, extent.target)


def show_kernels(run: Callable[[], object], device: torch.device, steps: int) -> None:
    """What a search spends its time on, by kernel."""
    from torch.profiler import ProfilerActivity, profile

    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.type == "cuda" else [])
    with profile(activities=kinds) as found:
        run()
    key = "self_cuda_time_total" if device.type == "cuda" else "self_cpu_time_total"
    print(found.key_averages().table(sort_by=key, row_limit=40, max_name_column_width=70))
    if device.type == "cuda":
        kernels = [each for each in found.events() if str(each.device_type).endswith("CUDA")]
        busy = sum(each.device_time for each in kernels)
        print(f"{len(kernels)} kernels, {len(kernels) / steps:.1f} a step; {busy / steps:.1f} µs of kernels a step")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try the script")
    parser.add_argument("--profile", action="store_true", help="print the kernels of each replayed search")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float32"])
    given = parser.parse_args()
    device, extent = torch.device(given.device), SMALL if given.small else LARGE
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}; {extent}")
    print(
        f"{'':9}{'rows':>5}  {'search':7}"
        + "".join(f"{each:>12}" for each in ("naive", "host", "steps", "replayed", "goal"))
        + f"{'µs/step':>10}{'rec. ms':>9}{'=host':>8}{'=naive':>8}      tokens/s"
    )
    with torch.no_grad():
        for dtype in given.dtypes:
            measure(extent, device, getattr(torch, dtype), given)


if __name__ == "__main__":
    main()
