"""How BLEU cuts a text into tokens, each manner under the name that sacrebleu gives it."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable
from functools import cache

from recurra.errors import ConfigError
from recurra.named import did_you_mean

Cut = Callable[[str], list[str]]

KEPT_BY_13A = "',-."
"""ASCII punctuation that stays with its word, or that digits around it decide on."""

APART = str.maketrans({sign: f" {sign} " for sign in string.punctuation if sign not in KEPT_BY_13A})
ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
AFTER_NO_DIGIT = re.compile(r"([^0-9])([.,])")
BEFORE_NO_DIGIT = re.compile(r"([.,])([^0-9])")
DASH_AFTER_DIGIT = re.compile(r"([0-9])-")
INTERNATIONAL = ((re.compile("[^N]P"), "{} {} "), (re.compile("P[^N]"), " {} {}"), (re.compile("S"), " {} "))
"""Found among the classes of characters, one letter each."""


def cut(name: str) -> Cut:
    """The manner of that name; those that are not ours are sacrebleu's, where it is installed.

    >>> cut("13a")("Isn't it 3,000.50, or so?")
    ["Isn't", 'it', '3,000.50', ',', 'or', 'so', '?']
    """
    if name in OURS:
        return OURS[name]
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        raise ConfigError(
            f"bleu_tokenize = '{name}' needs sacrebleu. {did_you_mean(name, OURS)} More come with pip install "
            "'recurra[metrics]'."
        ) from None
    if name not in BLEU.TOKENIZERS:
        known = [*OURS, *(other for other in BLEU.TOKENIZERS if other not in OURS)]
        raise ConfigError(f"bleu_tokenize = '{name}' is not known. {did_you_mean(name, known)}")
    try:
        theirs: Callable[[str], str] = BLEU(tokenize=name).tokenizer
    except Exception as error:  # one of them needs a dictionary, another a download
        raise ConfigError(f"bleu_tokenize = '{name}' cannot be used: {' '.join(str(error).split())}") from error
    return lambda text: theirs(text).split()


def at_blanks(text: str) -> list[str]:
    return text.split()


def to_characters(text: str) -> list[str]:
    """Characters, without blanks.

    >>> to_characters("a cat")
    ['a', 'c', 'a', 't']
    """
    return [character for character in text if not character.isspace()]


def as_13a(text: str) -> list[str]:
    """As WMT's mteval-v13a does: punctuation apart; full stop and comma stay between digits, a dash before its word.

    >>> as_13a("A blue-green 4-4-2, &quot;so-called&quot;.")
    ['A', 'blue-green', '4', '-', '4', '-', '2', ',', '"', 'so-called', '"', '.']
    """
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    if "&" in text:
        for entity, sign in ENTITIES:
            text = text.replace(entity, sign)
    text = f" {text.translate(APART)} "
    text = AFTER_NO_DIGIT.sub(r"\1 \2 ", text)
    text = BEFORE_NO_DIGIT.sub(r" \1 \2", text)
    return DASH_AFTER_DIGIT.sub(r"\1 - ", text).split()


def as_intl(text: str) -> list[str]:
    """As mteval-v14 --international-tokenization does: all of Unicode's punctuation and symbols apart, but for those
    between digits.

    >>> as_intl("«Ça va?» 3,5 €")
    ['«', 'Ça', 'va', '?', '»', '3,5', '€']
    """
    for pattern, apart in INTERNATIONAL:
        kinds = "".join(map(_kind, text))
        pieces, end = [], 0
        for found in pattern.finditer(kinds):
            pieces += [text[end : found.start()], apart.format(*text[found.start() : found.end()])]
            end = found.end()
        text = "".join([*pieces, text[end:]])
    return text.split()


@cache
def _kind(character: str) -> str:
    """Unicode's class of a character: N a number, P punctuation, S a symbol, …"""
    return unicodedata.category(character)[0]


OURS: dict[str, Cut] = {"13a": as_13a, "none": at_blanks, "char": to_characters, "intl": as_intl}
