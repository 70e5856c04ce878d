"""A decoder on a random batch: everything it answers and every gradient, by its kernels and by its own loop."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from recurra import Padded
from recurra.named import built
from recurra.wirings import Shape, Source, Wiring, WiringState
from recurra.wirings.wiring import Features

LENGTHS = [5, 3, 0]
"""Real places of each row; the last row has nothing to look at."""


class Decoding:
    """A wiring and a batch of odd sizes for it. Its weights neither shrink a state nor stretch it, on average: larger
    ones make of what was rounded at one step an error ten times as large at the last, in any order of sums."""

    def __init__(
        self,
        wiring: str,
        cell: Any,
        attention: Any,
        *,
        layers: int = 1,
        summary: int = 0,
        dropout: float = 0.0,
        sizes: tuple[int, int, int, int] = (5, 6, 6, 7),
        steps: int = 4,
        device: str = "cpu",
    ) -> None:
        torch.manual_seed(0)
        inputs, width, memory, features = sizes
        shape = Shape(cell, inputs, (width,) * layers, memory, summary, features, attention, dropout=dropout)
        self.wiring: Any = built(Wiring, wiring, shape).float()
        for parameter in self.wiring.parameters():
            nn.init.normal_(parameter, std=width**-0.5)
        self.wiring.to(device)
        B, S = len(LENGTHS), max(LENGTHS)
        self.x = torch.randn(B, steps, inputs, device=device, requires_grad=True)
        self.memory = torch.randn(B, S, memory, device=device, requires_grad=True)
        self.mask = torch.arange(S, device=device) < torch.tensor(LENGTHS, device=device).unsqueeze(1)
        self.summary = torch.randn(B, summary, device=device, requires_grad=True) if summary else None
        starts = [layer.start(B, self.x) for layer in self.wiring.layers]
        self.starts = tuple(
            type(state)(*(torch.rand_like(field).requires_grad_() for field in state)) for state in starts
        )
        self.random = [torch.randn(B, steps, n, device=device) for n in (features, S)]

    def begun(self) -> tuple[WiringState, Source]:
        source = Source(self.wiring.remember(self.memory, self.mask), self.summary)
        return self.wiring.start(self.starts, source), source

    def is_fused(self) -> bool:
        return self.wiring.fused(self.x, *self.begun()) is not None

    def run(self, engine: str = "auto") -> Features:
        self.wiring.shape = self.wiring.shape._replace(engine=engine)
        state, source = self.begun()
        found: Features = self.wiring(Padded.full(self.x), state, source)
        return found

    @property
    def sources(self) -> dict[str, Tensor]:
        starts = {f"start {n}": field for n, field in enumerate(f for state in self.starts for f in state)}
        summary = {} if self.summary is None else {"summary": self.summary}
        return {"x": self.x, "memory": self.memory, **starts, **summary, **dict(self.wiring.named_parameters())}

    def answers(self, engine: str = "auto") -> dict[str, Tensor | None]:
        """Features, weights, and the gradients of something that depends on both."""
        values, weights, _ = self.run(engine)
        assert weights is not None
        total = (values.float() * self.random[0]).sum() + (weights.float().square() * self.random[1]).sum()
        found = torch.autograd.grad(total, list(self.sources.values()), allow_unused=True)
        # Without their history, which holds on to the streams in which it was made.
        return {"values": values.detach(), "weights": weights.detach(), **dict(zip(self.sources, found, strict=True))}


def assert_alike(ours: dict[str, Tensor | None], theirs: dict[str, Tensor | None], most: float) -> None:
    """The same names, and for each a relative norm of the difference below `most`."""
    assert list(ours) == list(theirs)
    scale = max(each.norm().item() for name, each in theirs.items() if each is not None and name not in ("values",))
    for name, expected in theirs.items():
        found = ours[name]
        if expected is None:
            assert found is None or not found.any(), name
            continue
        assert found is not None, name
        assert torch.isfinite(found).all(), name
        # Gradients that are nothing but rounding, as that of a shift of all scores, have no digits to compare.
        norm = max(expected.norm().item(), 1e-2 * scale if name not in ("values", "weights") else 0.0)
        wrong = (found.double() - expected.double()).norm().item()
        assert wrong <= most * norm, f"{name} differs by {wrong / norm:.2e} of its norm, which is above {most:.2e}"
