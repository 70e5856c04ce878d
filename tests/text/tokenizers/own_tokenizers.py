"""Tokenizers as a user would write them."""

from __future__ import annotations

from collections.abc import Iterable

from recurra.text import Tokenizer


class Commas(Tokenizer):
    """Whatever stands between commas."""

    def __init__(self, *, strip: bool = True) -> None:
        self.strip = strip

    def split(self, text: str) -> list[str]:
        return [part.strip() if self.strip else part for part in text.split(",")]

    def join(self, tokens: Iterable[str]) -> str:
        return ",".join(tokens)
