"""A language model of torch as the voice of a writer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from recurra.models.language_model import Mixture, NextToken
from recurra.padding import Padded
from recurra.search.following import follow
from recurra.search.graphs import graphs_of, marks_of
from recurra.search.sampling import Filter
from recurra.search.search import Hypothesis, Step, selected

LONGEST = 1024
"""Tokens of a prompt that are read at once."""


@final
class NetworkVoice:
    """A network, or several that write as one."""

    def __init__(self, model: NextToken | Mixture) -> None:
        self.model = model
        self.on_device = model.embedding.weight.is_cuda

    def stepping(self) -> Step[Any, Any]:
        return self.model.stepping()

    def drawn(
        self,
        read: Sequence[Sequence[int]],
        *,
        length: int,
        ends: Sequence[int],
        keep: Filter,
        seed: int,
        numbers: Sequence[int],
    ) -> list[Hypothesis]:
        tokens, states = self.after(read)
        marks = marks_of(self.model)
        return follow(
            self.model.stepping,
            tokens,
            states,
            (),
            length=length,
            ends=ends,
            keep=keep,
            seed=seed,
            numbers=numbers,
            graphs=graphs_of(self.model) if tokens.is_cuda and marks.refusal is None else None,
            marks=marks.key,
        )

    @torch.no_grad()
    def after(self, read: Sequence[Sequence[int]]) -> tuple[Tensor, Any]:
        """The last token of each prompt, (B,), and the states after all before it; equal prompts are read once."""
        distinct = {tuple(tokens): number for number, tokens in enumerate(dict.fromkeys(map(tuple, read)))}
        device = self.model.embedding.weight.device
        lengths = torch.tensor([len(tokens) - 1 for tokens in distinct])
        values = np.zeros((len(distinct), int(lengths.max())), np.int64)
        for row, tokens in zip(values, distinct, strict=True):
            row[: len(tokens) - 1] = tokens[:-1]
        states: Any = self.model.start(len(distinct))
        for start in range(0, values.shape[1], LONGEST):
            part = torch.from_numpy(values[:, start : start + LONGEST]).to(device)
            _, states = self.model(Padded(part, (lengths - start).clamp(0, part.shape[1])), states)
        rows = torch.tensor([distinct[tuple(tokens)] for tokens in read], device=device)
        return torch.tensor([tokens[-1] for tokens in read], device=device), selected(states, rows)
