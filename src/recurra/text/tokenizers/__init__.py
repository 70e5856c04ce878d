"""Tokenizers: how a text becomes tokens. The file name is the config name."""

from __future__ import annotations

from recurra.text.tokenizers.characters import Characters
from recurra.text.tokenizers.subwords import Subwords
from recurra.text.tokenizers.symbols import Symbols
from recurra.text.tokenizers.tokenizer import Tokenizer
from recurra.text.tokenizers.words import Words

__all__ = ["Characters", "Subwords", "Symbols", "Tokenizer", "Words"]
