"""How fast cells and engines run on this machine, beside torch.nn.LSTM of the same shape."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import nn

from recurra.cells import Spec
from recurra.errors import ConfigError
from recurra.padding import Padded
from recurra.stacks.recurrent import Recurrent


class Size(NamedTuple):
    """One layer's work: rows, steps, input size, hidden size."""

    B: int
    T: int
    I: int  # noqa: E741  # the letters of the equations
    H: int

    @classmethod
    def parse(cls, text: str) -> Size:
        """
        >>> Size.parse("32x30x256x256")
        Size(B=32, T=30, I=256, H=256)
        """
        try:
            shape = cls(*(int(size) for size in text.split("x")))
        except (TypeError, ValueError):
            raise ConfigError(
                f"a shape must be rows x steps x input x hidden, such as 32x30x256x256, but is '{text}'."
            ) from None
        if min(shape) < 1:
            raise ConfigError(f"every size of a shape must be at least 1, but found '{text}'.")
        return shape

    def __str__(self) -> str:
        return "x".join(map(str, self))


class Timing(NamedTuple):
    """A cell on an engine at a shape; or why it cannot run there."""

    cell: str
    engine: str
    shape: Size
    milliseconds: float | None = None  # rows of full length
    to_lstm: float | None = None  # that time over torch.nn.LSTM's
    to_loop: float | None = None  # that time over the loop's
    ragged: float | None = None  # the time with ragged rows over that with full ones
    refusal: str | None = None


DEFAULT_SHAPES = (Size(32, 30, 256, 256), Size(64, 50, 512, 512), Size(1, 1000, 512, 512))


def measure(
    cells: Sequence[Spec],
    shapes: Sequence[Size] = DEFAULT_SHAPES,
    *,
    engines: Sequence[str] | None = None,
    backward: bool = True,
    device: str = "cpu",
    repeats: int = 15,
    seconds: float = 2.0,
) -> Iterator[Timing]:
    """Time every cell on every engine at every shape, float32, forward and (if wanted) backward.

    Two things are compared turn by turn, at least 3 turns and then up to `repeats` or until `seconds` have gone by;
    a ratio is the median of the turns' own ratios, so that a machine that slows down for a moment slows both sides.
    Ragged rows have lengths drawn evenly from half of T to T.
    """
    models = [[Recurrent(cell, shape.I, shape.H) for cell in cells] for shape in shapes]
    names = [cell if isinstance(cell, str) else " ".join(map(str, cell.values())) for cell in cells]
    return (
        timing
        for shape, of_shape in zip(shapes, models, strict=True)
        for timing in _measure(
            shape, list(zip(names, of_shape, strict=True)), engines, backward, device, repeats, seconds
        )
    )


def _measure(
    shape: Size,
    models: Sequence[tuple[str, Recurrent]],
    engines: Sequence[str] | None,
    backward: bool,
    device: str,
    repeats: int,
    seconds: float,
) -> Iterator[Timing]:
    full, ragged = _batch(shape, device), _ragged(_batch(shape, device))
    reference = _work(_TorchLSTM(shape).to(device), full, backward)
    for name, rnn in models:
        rnn.to(device)
        with torch.set_grad_enabled(backward):  # an engine without a way back refuses where gradients are recorded
            [layer] = rnn.engine_report(full).layers
        in_loop = _work(rnn, full, backward, "loop")
        for engine, refusal in layer.refusals:
            if engines is not None and engine not in engines:
                continue
            if refusal is not None:
                yield Timing(name, engine, shape, refusal=refusal)
                continue
            on_full, on_ragged = _work(rnn, full, backward, engine), _work(rnn, ragged, backward, engine)
            seconds_taken, to_lstm = _turns(on_full, reference, repeats, seconds)
            _, to_full = _turns(on_ragged, on_full, repeats, seconds)
            to_loop = 1.0 if engine == "loop" else _turns(on_full, in_loop, repeats, seconds)[1]
            yield Timing(name, engine, shape, seconds_taken * 1000, to_lstm, to_loop, to_full)


class _TorchLSTM(nn.Module):
    """torch.nn.LSTM behind the same call."""

    def __init__(self, shape: Size) -> None:
        super().__init__()
        self.lstm = nn.LSTM(shape.I, shape.H, batch_first=True)

    def forward(self, x: Padded) -> tuple[Padded, object]:
        outputs, states = self.lstm(x.values)
        return Padded(outputs, x.lengths), states


def _batch(shape: Size, device: str) -> Padded:
    generator = torch.Generator().manual_seed(0)
    return Padded.full(torch.randn(shape.B, shape.T, shape.I, generator=generator).to(device))


def _ragged(x: Padded) -> Padded:
    rows, steps = x.values.shape[:2]
    lengths = torch.randint((steps + 1) // 2, steps + 1, (rows,), generator=torch.Generator().manual_seed(0))
    lengths[0] = steps if rows > 1 else max(1, steps - 1)
    return Padded(x.values, lengths)


def _work(module: nn.Module, x: Padded, backward: bool, engine: str | None = None) -> Callable[[], None]:
    weight = torch.randn(*x.values.shape[:2], 1).to(x.values)

    def choose() -> None:
        if isinstance(module, Recurrent) and engine is not None:
            module.engine = engine

    def train() -> None:
        choose()
        module.zero_grad()
        outputs, _ = module(Padded(x.values.detach().requires_grad_(), x.lengths))
        (outputs.values * weight).sum().backward()

    @torch.no_grad()
    def infer() -> None:
        choose()
        module(x)

    return train if backward else infer


def _turns(
    ours: Callable[[], None], reference: Callable[[], None], repeats: int, seconds: float
) -> tuple[float, float]:
    """Median time of ours, and its median ratio to the reference, taken turn by turn."""
    ours()
    reference()
    times: list[float] = []
    ratios: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (len(times) < repeats and time.perf_counter() < end):
        mine, theirs = _timed(ours), _timed(reference)
        times.append(mine)
        ratios.append(mine / theirs)
    return statistics.median(times), statistics.median(ratios)


def _timed(work: Callable[[], None]) -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started
