"""Problems that only a memory solves, and a network of one cell that learns them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from recurra.cells import Spec
from recurra.padding import Padded
from recurra.stacks.recurrent import Recurrent


class Problem(Protocol):
    """Sequences drawn at random, and how wrong an answer is."""

    @property
    def input_size(self) -> int: ...

    @property
    def output_size(self) -> int: ...

    def draw(self, rows: int, generator: Generator) -> tuple[Padded, Tensor]: ...

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor: ...

    @property
    def without_memory(self) -> float:
        """The loss of the best answer that ignores the past."""


class Adding(NamedTuple):
    """The adding problem (Hochreiter & Schmidhuber 1997): of T numbers in [0, 1), two are marked; tell their sum.

    One mark lies in each half. Always answering 1 has a mean squared error of 1/6.

    >>> x, y = Adding(steps=6).draw(1, Generator().manual_seed(0))
    >>> number, mark = x.values[0].unbind(1)
    >>> bool(y[0, 0] == (number * mark).sum()), mark[:3].sum().item(), mark[3:].sum().item()
    (True, 1.0, 1.0)
    """

    steps: int
    input_size: int = 2
    output_size: int = 1

    def draw(self, rows: int, generator: Generator) -> tuple[Padded, Tensor]:
        half = self.steps // 2
        numbers = torch.rand(rows, self.steps, generator=generator)
        first = torch.randint(0, half, (rows, 1), generator=generator)
        second = torch.randint(half, self.steps, (rows, 1), generator=generator)
        marks = torch.zeros(rows, self.steps).scatter_(1, torch.cat([first, second], 1), 1.0)
        return Padded.full(torch.stack([numbers, marks], -1)), (numbers * marks).sum(1, keepdim=True)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return functional.mse_loss(outputs[:, -1], target)

    @property
    def without_memory(self) -> float:
        return 1 / 6


class CopyMemory(NamedTuple):
    """Copy memory (Hochreiter & Schmidhuber 1997; Arjovsky et al. 2016): say ten symbols again after T blanks.

    Ten symbols of 1..8, blanks (0), a delimiter (9) and ten blanks, during which the symbols are due: T + 20 steps.
    Knowing all but the symbols costs 10 ln 8 / (T + 20) nats a step.

    >>> x, y = CopyMemory(blanks=4).draw(1, Generator().manual_seed(0))
    >>> symbols = x.values[0].argmax(1)
    >>> symbols[10:].tolist()
    [0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    >>> torch.equal(y[0, 14:], symbols[:10]), y[0, :14].unique().tolist()
    (True, [0])
    """

    blanks: int
    input_size: int = 10
    output_size: int = 9

    def draw(self, rows: int, generator: Generator) -> tuple[Padded, Tensor]:
        symbols = torch.randint(1, 9, (rows, 10), generator=generator)
        blank = torch.zeros(rows, self.blanks + 10, dtype=torch.long)
        x = torch.cat([symbols, blank], 1)
        x[:, self.blanks + 9] = 9
        return Padded.full(functional.one_hot(x, 10).float()), torch.cat([blank, symbols], 1)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(outputs.flatten(0, 1), target.flatten())

    @property
    def without_memory(self) -> float:
        return 10 * math.log(8) / (self.blanks + 20)


class Progress(NamedTuple):
    """Where a network stands after some updates."""

    updates: int
    loss: float  # on sequences that it has not seen
    seconds: float


class Answering(nn.Module):
    """A network of layers of one cell, and an answer after each step: y_t = W h_t + b."""

    def __init__(self, cell: Spec, input_size: int, hidden: int, output_size: int, *, layers: int = 1) -> None:
        super().__init__()
        self.rnn = Recurrent(cell, input_size, hidden, layers=layers)
        self.head = nn.Linear(hidden, output_size)

    def forward(self, x: Padded) -> Tensor:
        y: Tensor = self.head(self.rnn(x)[0].values)
        return y

    @property
    def device(self) -> torch.device:
        return self.head.weight.device

    @torch.no_grad()
    def answers(self, x: Padded) -> Tensor:
        """(B, T): the number of the largest output at each step."""
        return self(Padded(x.values.to(self.device), x.lengths)).argmax(2).cpu()


def network_for(
    problem: Problem, cell: Spec, *, hidden: int, seed: int = 0, layers: int = 1, device: str = "cpu"
) -> Answering:
    """A network for a problem with the weights of a seed."""
    torch.manual_seed(seed)
    return Answering(cell, problem.input_size, hidden, problem.output_size, layers=layers).to(device)


def learn(
    problem: Problem,
    cell: Spec,
    *,
    hidden: int,
    rows: int = 32,
    learning_rate: float = 1e-3,
    clip: float = 1.0,
    seed: int = 0,
    look_every: int = 100,
    network: Answering | None = None,
) -> Iterator[Progress]:
    """A network h_t → W h_t + b learning by Adam, without end: stop when you have seen enough.

    Every batch is new, and so are the sequences of each look; the same seed gives the same course. `network` is one
    that was made by `network_for`, for callers that need it afterwards.

    >>> course = learn(Adding(steps=4), "gru", hidden=8, look_every=5)
    >>> next(course).updates, next(course).updates
    (0, 5)
    """
    network = network_for(problem, cell, hidden=hidden, seed=seed) if network is None else network
    generator, device = Generator().manual_seed(seed), network.device
    parameters = list(network.parameters())
    optimizer = torch.optim.Adam(parameters, lr=learning_rate)

    def drawn(rows: int, generator: Generator) -> tuple[Padded, Tensor]:
        x, target = problem.draw(rows, generator)
        return Padded(x.values.to(device), x.lengths), target.to(device)

    held_out = drawn(1000, Generator().manual_seed(seed + 1))
    updates, started = 0, time.perf_counter()
    while True:
        network.eval()
        with torch.no_grad():
            loss = problem.loss(network(held_out[0]), held_out[1])
        yield Progress(updates, loss.item(), time.perf_counter() - started)
        network.train()
        for _ in range(look_every):
            x, target = drawn(rows, generator)
            optimizer.zero_grad()
            problem.loss(network(x), target).backward()
            nn.utils.clip_grad_norm_(parameters, clip)
            optimizer.step()
        updates += look_every
