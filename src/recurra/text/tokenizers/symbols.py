"""Text that is tokenized already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from recurra.text.tokenizers.tokenizer import Tokenizer


@final
class Symbols(Tokenizer):
    """Whatever stands between blanks is a token: phonemes, tags, text tokenized by another program.

    How many blanks there were is forgotten.

    >>> Symbols().split("HH AH0  L OW1")
    ['HH', 'AH0', 'L', 'OW1']
    >>> Symbols().join(["HH", "AH0", "L", "OW1"])
    'HH AH0 L OW1'
    """

    def split(self, text: str) -> list[str]:
        return text.split()

    def join(self, tokens: Iterable[str]) -> str:
        return " ".join(tokens)
