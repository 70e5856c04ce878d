"""What tokens = "auto" means for pairs: decided once, by a look at the first of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeVar

from recurra.config import Seq2SeqData, Text
from recurra.settings import Part, SettingError, name_of

LOOKED_AT = 1000
"""Texts of a side that are looked at."""

ENOUGH = 5000
"""Pairs from which subwords can be learnt."""

MOSTLY = 0.75
LONGEST_WORD = 30
LONGEST_SYMBOL = 4
BLEU_WORDS = 4

T = TypeVar("T")


def with_tokens(data: Seq2SeqData, sources: Sequence[str], targets: Sequence[str], count: int) -> Seq2SeqData:
    """The settings with tokens that are named, on both sides.

    By the first 1,000 pairs, where three quarters and more are as said:

        one side has parts of at most 4 letters, two and more for each word of the other    symbols, characters
        a side is one word of at most 30 letters                                            characters
        otherwise, 5,000 pairs and more                                                     subwords
        fewer                                                                               words

    The first are pronunciations, as in cat = K AE T. With one vocabulary both sides have the same tokens: those that
    one of them was given, or else what fits them both.
    """
    if data.joint:
        data = _as_one(data)
    read, written = data.source.tokens, data.target.tokens
    sources, targets = sources[:LOOKED_AT], targets[:LOOKED_AT]
    usual = "subwords" if count >= ENOUGH else "words"
    if data.joint and read == "auto":
        is_one = mostly(is_word, sources) and mostly(is_word, targets)
        read = written = "characters" if is_one else usual
    elif not data.joint:
        read = _tokens(sources, targets, usual) if read == "auto" else read
        written = _tokens(targets, sources, usual) if written == "auto" else written
    if data.frames is not None and data.source.tokens == "auto":
        read = "auto"  # there is nothing to cut
    return dataclasses.replace(
        data,
        source=dataclasses.replace(data.source, tokens=read),
        target=dataclasses.replace(data.target, tokens=written),
    )


def is_word(text: str) -> bool:
    """Whether a text is one word.

    >>> is_word("cat"), is_word("K AE T")
    (True, False)
    """
    return 0 < len(text) <= LONGEST_WORD and len(text.split()) == 1


def is_spelt(symbols: str, text: str) -> bool:
    """Whether the first is a text in other symbols: short, with blanks between them, and several for each word.

    >>> is_spelt("K AE T", "cat"), is_spelt("a little cat", "un petit chat"), is_spelt("cat", "cats")
    (True, False, False)
    """
    parts = symbols.split()
    return len(parts) >= 2 * max(1, len(text.split())) and mostly(_is_symbol, parts)


def are_short(tokens: Part, texts: Iterable[str]) -> bool:
    """Whether texts are cut into words but mostly have fewer than the four of which BLEU makes its score.

    >>> are_short("words", ["a red square"]), are_short("words", ["a small red square"])
    (True, False)
    """
    if name_of(tokens) not in ("words", "subwords"):
        return False
    return mostly(lambda text: len(text.split()) < BLEU_WORDS, list(islice(texts, LOOKED_AT)))


def _is_symbol(part: str) -> bool:
    return len(part) <= LONGEST_SYMBOL


def _tokens(texts: Sequence[str], others: Sequence[str], usual: str) -> Part:
    """What a side is cut into, beside the other; of a source with several texts there is no telling whose is whose."""
    pairs = list(zip(texts, others, strict=True)) if len(texts) == len(others) else []
    if mostly(lambda pair: is_spelt(*pair), pairs):
        return "symbols"
    is_spelling = mostly(lambda pair: is_spelt(*reversed(pair)), pairs)
    return "characters" if is_spelling or mostly(is_word, texts) else usual


def mostly(holds: Callable[[T], bool], items: Sequence[T]) -> bool:
    return sum(map(holds, items)) >= MOSTLY * len(items) > 0


def _as_one(data: Seq2SeqData) -> Seq2SeqData:
    """Both sides with what one of them was given."""

    def agreed(name: str, read: T, written: T, usual: T) -> T:
        given = [value for value in (read, written) if value != usual]
        if len(given) == 2 and read != written:
            raise SettingError(
                f"data.joint = true makes one vocabulary for both sides, but data.source.{name} is {read!r} and "
                f"data.target.{name} is {written!r}. Set both to the same value, or leave one of them out.",
                ("data", "target", name),
            )
        return given[0] if given else usual

    source, target, usual = data.source, data.target, Text(tokens="auto")
    shared = Text(
        tokens=agreed("tokens", source.tokens, target.tokens, usual.tokens),
        lowercase=agreed("lowercase", source.lowercase, target.lowercase, usual.lowercase),
        min_count=agreed("min_count", source.min_count, target.min_count, usual.min_count),
        max_size=agreed("max_size", source.max_size, target.max_size, usual.max_size),
    )
    return dataclasses.replace(
        data,
        source=dataclasses.replace(shared, column=source.column),
        target=dataclasses.replace(shared, column=target.column),
    )
