"""Tokenizers: how a text becomes tokens. The file name is the config name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from recurra.text.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from recurra.text.tokenizers.characters import Characters
    from recurra.text.tokenizers.subwords import Subwords
    from recurra.text.tokenizers.symbols import Symbols
    from recurra.text.tokenizers.words import Words

__all__ = ["Characters", "Subwords", "Symbols", "Tokenizer", "Words"]


def __getattr__(name: str) -> object:
    """A tokenizer by the name of its class, imported when first touched: a model needs one or two of them."""
    if name not in __all__:
        raise AttributeError(f"module 'recurra.text.tokenizers' has no attribute {name!r}")
    return getattr(import_module(f"recurra.text.tokenizers.{name.lower()}"), name)
