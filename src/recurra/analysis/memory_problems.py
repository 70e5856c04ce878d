"""Three problems for a memory that is written and read (Graves et al. 2014), and a network that learns them.

Sequences are of random bits, of any length up to a longest one, so that longer ones can be asked for after training.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from recurra.cells import Spec
from recurra.padding import Padded, pad
from recurra.stacks.recurrent import Recurrent

NOTHING = -1.0
"""The target where no bit is due."""


class BitProblem(Protocol):
    """Rows of bits to read, and bits that are due at some steps."""

    @property
    def input_size(self) -> int: ...

    @property
    def output_size(self) -> int: ...

    def draw(self, rows: int, generator: Generator) -> tuple[Padded, Tensor]: ...

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor: ...

    @property
    def without_memory(self) -> float: ...


class CopyBits(NamedTuple):
    """Copy: read L vectors of bits and a mark, then write the vectors again, L from `shortest` to `steps`.

    >>> x, y = CopyBits(steps=3, shortest=3, bits=2).draw(1, Generator().manual_seed(0))
    >>> x.values.shape, x.values[0, :, 2].tolist()                       # the mark
    (torch.Size([1, 7, 3]), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    >>> torch.equal(y[0, 4:], x.values[0, :3, :2]), y[0, :4].unique().tolist()
    (True, [-1.0])
    """

    steps: int
    shortest: int = 1
    bits: int = 8

    @property
    def input_size(self) -> int:
        return self.bits + 1

    @property
    def output_size(self) -> int:
        return self.bits

    def draw(self, rows: int, generator: Generator) -> tuple[Padded, Tensor]:
        def one(length: int) -> tuple[Tensor, Tensor]:
            vectors = drawn_bits(length, self.bits, generator)
            x, target = blank(2 * length + 1, self.input_size, self.output_size)
            x[:length, :-1], x[length, -1], target[length + 1 :] = vectors, 1, vectors
            return x, target

        return drawn_rows(one, rows, self.shortest, self.steps, generator)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return loss_of_bits(outputs, target)

    @property
    def without_memory(self) -> float:
        return LOG_2


class RepeatCopy(NamedTuple):
    """Repeat copy: after L vectors, write them as often as a number says, and then an end.

    The number is read with the mark, as a share of `times`; the last bit of what is written is the end. L and the
    number are at most `steps` and `times`.

    >>> x, y = RepeatCopy(steps=2, shortest=2, bits=3, times=1).draw(1, Generator().manual_seed(0))
    >>> torch.equal(y[0, 3:5, :3], x.values[0, :2, :3]), y[0, 3:, 3].tolist()
    (True, [0.0, 0.0, 1.0])
    """

    steps: int
    shortest: int = 1
    bits: int = 6
    times: int = 3

    @property
    def input_size(self) -> int:
        return self.bits + 2

    @property
    def output_size(self) -> int:
        return self.bits + 1

    def draw(self, rows: int, generator: Generator) -> tuple[Padded, Tensor]:
        def one(length: int) -> tuple[Tensor, Tensor]:
            vectors = drawn_bits(length, self.bits, generator)
            times = int(torch.randint(1, self.times + 1, (), generator=generator))
            x, target = blank(length + 2 + times * length, self.input_size, self.output_size)
            x[:length, : self.bits], x[length, -2], x[length, -1] = vectors, 1, times / self.times
            target[length + 1 :] = 0
            target[length + 1 : -1, :-1] = vectors.repeat(times, 1)
            target[-1, -1] = 1
            return x, target

        return drawn_rows(one, rows, self.shortest, self.steps, generator)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return loss_of_bits(outputs, target)

    @property
    def without_memory(self) -> float:
        return LOG_2


class AssociativeRecall(NamedTuple):
    """Associative recall: of 2 to `steps` items of three vectors, one is shown again; write the one that followed it.

    A mark stands before each item, another before and after the item that is asked for.

    >>> x, y = AssociativeRecall(steps=2, shortest=2, bits=2).draw(1, Generator().manual_seed(0))
    >>> torch.equal(y[0, -3:], x.values[0, 5:8, :2]), torch.equal(x.values[0, 9:12, :2], x.values[0, 1:4, :2])
    (True, True)
    """

    steps: int
    shortest: int = 2
    bits: int = 6

    @property
    def input_size(self) -> int:
        return self.bits + 2

    @property
    def output_size(self) -> int:
        return self.bits

    def draw(self, rows: int, generator: Generator) -> tuple[Padded, Tensor]:
        def one(count: int) -> tuple[Tensor, Tensor]:
            items = drawn_bits(3 * count, self.bits, generator).unflatten(0, (count, 3))
            asked = int(torch.randint(0, count - 1, (), generator=generator))
            x, target = blank(4 * count + 8, self.input_size, self.output_size)
            shown = x[: 4 * count].view(count, 4, -1)
            shown[:, 0, -2], shown[:, 1:, : self.bits] = 1, items
            x[4 * count, -1], x[4 * count + 4, -1] = 1, 1
            x[4 * count + 1 : 4 * count + 4, : self.bits] = items[asked]
            target[-3:] = items[asked + 1]
            return x, target

        return drawn_rows(one, rows, max(2, self.shortest), max(2, self.steps), generator)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return loss_of_bits(outputs, target)

    @property
    def without_memory(self) -> float:
        return LOG_2


LOG_2 = 0.6931471805599453
"""Nats a bit where nothing is known."""


def drawn_bits(length: int, bits: int, generator: Generator) -> Tensor:
    return torch.randint(0, 2, (length, bits), generator=generator).float()


def blank(steps: int, inputs: int, outputs: int) -> tuple[Tensor, Tensor]:
    """An input of zeros, and a target without a bit that is due."""
    return torch.zeros(steps, inputs), torch.full((steps, outputs), NOTHING)


def drawn_rows(
    one: Callable[[int], tuple[Tensor, Tensor]], rows: int, shortest: int, longest: int, generator: Generator
) -> tuple[Padded, Tensor]:
    """Rows of one length, which is drawn: none is padded, and the next batch has another."""
    length = int(torch.randint(min(shortest, longest), longest + 1, (), generator=generator))
    inputs, targets = zip(*(one(length) for _ in range(rows)), strict=True)
    return pad(inputs), pad([target - NOTHING for target in targets]).values + NOTHING


def loss_of_bits(outputs: Tensor, target: Tensor) -> Tensor:
    """Nats for each bit that is due."""
    is_due = target != NOTHING
    each = functional.binary_cross_entropy_with_logits(outputs, target.clamp(min=0), reduction="none")
    return (each * is_due).sum() / is_due.sum()


def right_bits(outputs: Tensor, target: Tensor) -> float:
    """The share of bits that are right, of those that are due."""
    is_due = target != NOTHING
    return float((((outputs > 0) == (target > 0)) & is_due).sum() / is_due.sum())


class BitNetwork(nn.Module):
    """h_t of one cell → W h_t + b: a score for each bit."""

    def __init__(self, cell: Spec, problem: BitProblem, hidden: int, engine: str = "auto") -> None:
        super().__init__()
        self.recurrent = Recurrent(cell, problem.input_size, hidden, engine=engine)
        self.readout = nn.Linear(hidden, problem.output_size)

    def forward(self, x: Padded) -> Tensor:
        outputs: Tensor = self.readout(self.recurrent(x)[0].values)
        return outputs

    @torch.no_grad()
    def right(self, problem: BitProblem, rows: int = 200, seed: int = 1) -> float:
        """The share of bits that are right on new rows."""
        where = self.readout.weight.device
        x, target = problem.draw(rows, Generator().manual_seed(seed))
        was_training = self.training
        self.eval()
        found = right_bits(self(Padded(x.values.to(where), x.lengths.to(where))), target.to(where))
        self.train(was_training)
        return found


class Look(NamedTuple):
    """Where a network stands."""

    updates: int
    loss: float  # the mean over the updates since the look before
    seconds: float


def learn_bits(
    network: BitNetwork,
    problem: BitProblem,
    *,
    rows: int = 32,
    learning_rate: float = 3e-3,
    clip: float = 10.0,
    seed: int = 0,
    look_every: int = 100,
) -> Iterator[Look]:
    """Adam on new rows at each update, without end: stop when you have seen enough."""
    where = network.readout.weight.device
    generator = Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    updates, started = 0, time.perf_counter()
    while True:
        total = torch.zeros((), device=where)
        for _ in range(look_every):
            x, target = problem.draw(rows, generator)
            optimizer.zero_grad()
            loss = problem.loss(network(Padded(x.values.to(where), x.lengths.to(where))), target.to(where))
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), clip)
            optimizer.step()
            total += loss.detach()
        updates += look_every
        yield Look(updates, float(total) / look_every, time.perf_counter() - started)
