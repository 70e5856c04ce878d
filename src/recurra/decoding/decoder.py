"""Decoder: a target, one token after the other, given a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, final

import torch
from torch import Tensor, nn

from recurra.attention import Attention
from recurra.config import WriterModel
from recurra.decoding.bridge import Bridge, How
from recurra.decoding.pointing import chosen_elements
from recurra.encoders.dropout import Dropout
from recurra.encoders.memory import Encoder, Read
from recurra.errors import ConfigError
from recurra.named import built
from recurra.padding import Padded
from recurra.settings import name_of
from recurra.wirings import Features, Shape, Source, Wiring, WiringState
from recurra.wirings.advancing import Advance, reading_of
from recurra.wirings.wiring import rows_like, stacked

Next: TypeAlias = Callable[[Tensor, Tensor | None, int], Tensor]
"""Features (B, F) of a step, its weights (B, S) and its number -> the tokens (B,) that are read at the next one."""


class Started(NamedTuple):
    """A decoder before its first step."""

    state: WiringState
    source: Source


@final
class Decoder(nn.Module):
    """Features h̃_1 … h̃_T, from which the output predicts y_1 … y_T, out of <s>, y_1 … y_{T-1} and a source.

    x_t = E[y_{t-1}]                 tied: times √ its size; with conditioning = "every": [E[y_{t-1}]; summary];
                                     of an element of the source that was pointed at: what the encoder has read there
    h̃_t = wiring(x_1 … x_t, source)  started from the bridge; with "first", the summary is read before any token
    """

    def __init__(
        self,
        settings: WriterModel,
        encoder: Encoder,
        embedding: nn.Embedding,
        *,
        bridge: How = "auto",
    ) -> None:
        super().__init__()
        own = settings.decoder
        size = settings.embedding
        self.embedding = embedding
        self.scale = size**0.5 if settings.tied != "none" else 1.0  # what is also the output's matrix is small
        self.conditioning = tuple(settings.conditioning)
        summary = encoder.summary_size
        attends = name_of(settings.attention) != "none"
        shape = Shape(
            cell=settings.cell if own.cell is None else own.cell,
            input_size=size + (summary if "every" in self.conditioning else 0),
            widths=settings.decoder_widths,
            memory_size=encoder.output_size,
            summary_size=summary if "output" in self.conditioning else 0,
            features=features_of(settings, encoder.output_size),
            attention=settings.attention if attends else None,
            query=settings.query,
            skip=settings.skip,
            dropout=settings.dropout,
            locked=settings.locked,
            engine=settings.engine,
            heads=own.heads,
            feed_forward=own.feed_forward,
            window=own.window,
            around=own.around,
            form=own.form,
            mix=settings.mix,
            readout=settings.readout,
        )
        wiring = settings.wiring if attends else "alone"
        self.wiring: Wiring = built(Wiring, wiring if own.kind == "rnn" else own.kind, shape)
        self.output_size = shape.features
        self.bridge = Bridge(
            encoder.end_sizes,
            encoder.recurrent,
            self.wiring.layers,
            bridge,
            are_last=encoder.ends_are_last,
            states=settings.started,
        )
        self.first: nn.Module | None = None
        if "first" in self.conditioning:
            self.first = nn.Linear(summary, shape.input_size) if bridge != "direct" else nn.Identity()
            if bridge == "direct" and summary != shape.input_size:
                raise ConfigError(
                    f"model.direct = true uses the vector of {summary} numbers as the first input without a "
                    f"learned map, but an input has size {shape.input_size}: set model.embedding to match, or "
                    "model.direct = false."
                )
        rate = settings.dropout if settings.embedding_dropout is None else settings.embedding_dropout
        self.dropout = Dropout(rate, locked=settings.locked)

    @property
    def attention(self) -> Attention | None:
        """What looks at the source."""
        found: Attention | None = getattr(self.wiring, "attention", None)
        return found

    def start(self, read: Read) -> Started:
        """The state before the first token, and what stays the same for all of them."""
        source = Source(self.wiring.remember(*read.memory), read.summary, read.elements)
        like, rows = read.memory.values, len(read.memory.mask)
        starts = tuple(cell.start(rows, like) for cell in self.wiring.layers)
        state = self.wiring.start(self.bridge(read, starts), source)
        if self.first is not None:
            assert read.summary is not None, "the encoder makes a summary where one is wanted"
            x = self.first(read.summary).to(self.embedding.weight.dtype)  # where autocast has lowered it
            _, state = self.wiring.step(x, state, source)
        return Started(state, source)

    def step(self, tokens: Tensor, state: WiringState, source: Source, fixed: Any = None) -> tuple[Tensor, WiringState]:
        """Features (N, F) after one more token (N,) of each row; `fixed` is what the wiring keeps over a sequence."""
        x = self._with_summary(self.dropout(self._embedded(tokens, source.elements)), source)
        return self.wiring.step(x, state, source, fixed)

    def advancing(self, state: WiringState, source: Source) -> Advance | None:
        """`step` by few kernels on a GPU, for a search; None where there are none."""
        summary = source.summary if "every" in self.conditioning else None
        reading = reading_of(self.embedding, self.scale, summary)
        return None if reading is None else self.wiring.advancing(reading, state, source)

    def forward(self, inputs: Padded, started: Started) -> Features:
        """Features (B, T, F) after each of the tokens (B, T) that are read."""
        x = self.dropout(self._embedded(inputs.values, started.source.elements))
        x = self._with_summary(x, started.source)
        return self.wiring(Padded(x, inputs.lengths), *started)

    def led(self, first: Tensor, steps: int, started: Started, choose: Next) -> Features:
        """Features (B, T, F) where each next token is chosen on the way: scheduled sampling, free running."""
        state, source = started
        fixed = self.wiring.fixed(len(first), state.cells[0][0])  # masks that last a sequence are drawn once
        tokens, features, weights, chances = first, [], [], []
        for number in range(steps):
            h, state = self.step(tokens, state, source, fixed)
            features.append(h)
            weights.append(state.weights)
            chances.append(state.chance)
            if number + 1 < steps:
                tokens = choose(h, state.weights, number)
        seen, drawn = stacked(weights), stacked(chances)
        return Features(torch.stack(features, dim=1), seen[0] if seen else None, drawn[0] if drawn else None)

    def _embedded(self, tokens: Tensor, elements: Tensor | None) -> Tensor:
        specials = self.embedding.num_embeddings
        x: Tensor = self.embedding(tokens if elements is None else tokens.clamp_max(specials - 1))
        x = x if self.scale == 1.0 else self.scale * x
        if elements is None:
            return x
        chosen = chosen_elements(tokens, elements, specials).to(x.dtype)
        return torch.where((tokens >= specials).unsqueeze(-1), chosen, x)

    def _with_summary(self, x: Tensor, source: Source) -> Tensor:
        if "every" not in self.conditioning or source.summary is None:
            return x
        return torch.cat([x, rows_like(source.summary, x)], dim=-1)


def features_of(settings: WriterModel, memory: int) -> int:
    """The size of what the output sees: a window's is the tokens it has read and what they look at, side by side."""
    if settings.decoder.kind == "window":
        attention = settings.attention if isinstance(settings.attention, Mapping) else {}
        values = attention.get("values")
        return settings.decoder_widths[-1] + (values if isinstance(values, int) else memory)
    return settings.embedding if settings.tied != "none" else settings.decoder_widths[-1]
