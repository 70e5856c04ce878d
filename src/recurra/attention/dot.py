"""A product of query and key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from torch import Tensor

from recurra.attention.attention import Attention, LookSpec, TermSpec
from recurra.attention.products import compared
from recurra.errors import ConfigError


@final
class Dot(Attention):
    """score(q, k) = q · k, for a query and a memory of one size (Luong et al. 2015). It has no weights."""

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        *,
        values: int | None = None,
        terms: Sequence[TermSpec] = (),
        look: LookSpec | None = None,
        gate: bool = False,
    ) -> None:
        super().__init__(query_size, memory_size, values=values, terms=terms, look=look, gate=gate)
        check_equal("dot", query_size, memory_size)

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return compared(query, keys)


def check_equal(name: str, query_size: int, memory_size: int) -> None:
    """Refuse sizes of query and memory that differ."""
    if query_size != memory_size:
        raise ConfigError(
            f"attention '{name}' needs a decoder state and a memory of the same size, but the decoder has "
            f"{query_size} features and the memory {memory_size}: set model.decoder.hidden = {memory_size}, or use "
            "attention 'bilinear' or 'projected_dot', which accept different sizes."
        )
