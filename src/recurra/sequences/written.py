"""What a sequence-to-sequence model writes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.frozen import NamedTuple


class Answer(NamedTuple):
    """One way to write the target."""

    tokens: list[str]  # without the end
    text: str
    score: float  # what answers are ordered by
    log_probability: float
    ended: bool = True  # false where it was cut off at its greatest length
    weights: NDArray[np.float64] | None = None  # (tokens and end, source tokens or places): where each looked
    columns: int | None = None  # places of a picture stand row after row, so many a row

    def to_json(self) -> dict[str, Any]:
        """All of it, as `recurra predict --json` names it."""
        found: dict[str, Any] = {"output": self.text, "score": self.score, "log_probability": self.log_probability}
        found["tokens"] = self.tokens
        if not self.ended:
            found["cut_off"] = True
        if self.weights is not None:
            found["alignment"] = self.weights
        if self.columns is not None:
            found["columns"] = self.columns
        return found


class Written(NamedTuple):
    """The answers to one source, best first; and log p of the target that stands beside it, with its tokens."""

    answers: tuple[Answer, ...]
    gold: tuple[float, int] | None
