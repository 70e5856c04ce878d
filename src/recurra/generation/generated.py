"""How a text is to be written, and what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

MOST_ROWS = 256
"""Texts that are written together."""


class Generated(NamedTuple):
    """A generated text and its log-probability."""

    prompt: str  # a text, or what was given, in words
    text: str  # what follows on the prompt, without what ended it; a model that reads backward writes what is before it
    whole: str  # both together
    tokens: list[str]  # those drawn, in the order in which they were; the one that ended the text is among them
    log_probability: float  # of the tokens given the prompt, in nats, before temperature, top_k and top_p
    ended: bool  # false: cut off at the length


class Manner(NamedTuple):
    """How a text is sampled; None: the value of the run's [decoding]."""

    seed: int = 1
    length: int | None = None  # tokens at most
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    until: str | None = None  # the text before which to stop
    allow_unknown: bool = False  # whether <unk> may be read and written


class TextSource(Protocol):
    """A trained model that writes texts from prompts."""

    between: str
    """What stands between two texts on a terminal."""

    def texts(self, prompts: Sequence[Any], *, count: int = 1) -> list[Generated]:
        """`count` texts for each prompt, one prompt after the other."""

    def several(self, asked: Sequence[tuple[Any, int]]) -> list[list[Generated]]:
        """Prompts, each with a number of texts, written together: for each what `texts` gives for it alone."""

    def pieces(self, prompt: str) -> Iterator[str]:
        """The prompt and its first text, bit by bit as it is written."""

    def continued(
        self, lines: Iterable[tuple[int, str]], *, where: str, has_arrived: Callable[[], bool] = lambda: True
    ) -> Iterator[tuple[int, Generated]]:
        """The first text of each numbered line of a file, many of them written together.

        `has_arrived` says whether the next line is there already: before one has to be waited for, all that came
        before it are continued.
        """
