"""What was written."""

from __future__ import annotations

from typing import NamedTuple

MOST_ROWS = 256
"""Texts that are written together."""


class Generated(NamedTuple):
    """What was written, and how probable the model finds it."""

    prompt: str  # a text, or what was given, in words
    text: str  # what follows on the prompt, without what ended it; a model that reads backward writes what is before it
    whole: str  # both together
    tokens: list[str]  # those drawn, in the order in which they were; the one that ended the text is among them
    log_probability: float  # of the tokens given the prompt, in nats, before temperature, top_k and top_p
    ended: bool  # false: cut off at the length
