"""Text as code points."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from recurra.text.tokenizers.tokenizer import Tokenizer


@final
class Characters(Tokenizer):
    """Every code point is a token, blanks and line ends too; nothing is forgotten, unless `lowercase` forgets capitals.

    >>> Characters().split("a ü")
    ['a', ' ', 'ü']
    >>> Characters().join(["a", " ", "ü"])
    'a ü'
    """

    def __init__(self, *, lowercase: bool = False) -> None:
        self.lowercase = lowercase

    def split(self, text: str) -> list[str]:
        return list(text.lower() if self.lowercase else text)

    def join(self, tokens: Iterable[str]) -> str:
        return "".join(tokens)
