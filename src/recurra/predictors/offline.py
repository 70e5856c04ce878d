"""What a page in one file must know of a task to answer with an exported program; src/recurra/page/offline answers.

`kind` names the model of models.js that answers, `views` and `controls` the views and the settings of [decoding] that
it has; all else is what that model reads. What a page cannot do yet is refused by a ConfigError.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recurra.errors import ConfigError
from recurra.text import Tokenizer
from recurra.text.vocabulary import END, Vocabulary

if TYPE_CHECKING:
    from recurra.config import Seq2SeqDecoding
    from recurra.search.decoding import SearchTokens
    from recurra.sequences.pair_texts import PairTexts

SEARCHES = ("beam", "greedy", "sampling")

SEARCHED_BY = (
    *("search", "width", "best", "length_penalty", "coverage_penalty", "max_length", "max_ratio", "min_length"),
    *("no_repeat", "unknown", "banned", "temperature", "top_k", "top_p", "seed"),
)
"""Settings of [decoding] that the search of a page has."""


def not_yet(what: str) -> ConfigError:
    return ConfigError(f"{what} cannot be exported to a page yet. Export it to C, or use `recurra serve`.")


def writing(
    texts: PairTexts, decoding: Seq2SeqDecoding, tokens: SearchTokens, *, first: int, columns: int, copies: bool
) -> dict[str, Any]:
    """A model that reads one text and writes another."""
    if texts.source is None:
        raise not_yet("a model that reads numbers or pictures")
    if copies or columns > 1:
        raise not_yet("a model that copies words or points at them" if copies else "a model of several columns")
    if decoding.search not in SEARCHES:
        raise ConfigError(f"a page has no search '{decoding.search}': set decoding.search to one of {SEARCHES}.")
    for field in dataclasses.fields(decoding):
        value = getattr(decoding, field.name)
        if field.name not in SEARCHED_BY and value and value != field.default:
            raise not_yet(f"a model with decoding.{field.name} = {value!r}")
    source, target = texts.source, texts.target
    return {
        "kind": "writing",
        "source": text(source.tokenizer, source.vocabulary, lowercase=source.lowercase),
        "target": text(target.tokenizer, target.vocabulary, lowercase=False),
        "source_end": source.vocabulary.id(END),
        "first": first,
        "end": tokens.end,
        "never": [number for number, token in enumerate(target.vocabulary.specials) if token != END],
        "decoding": plain(decoding, SEARCHED_BY),
        "views": ["attention", "probabilities", "tree"],
        "controls": SEARCHED_BY,
    }


def language(tokenizer: Tokenizer, vocabulary: Vocabulary, decoding: Any, *, lowercase: bool, end: int) -> Any:
    """A model that scores texts and goes on with them."""
    controls = ("temperature", "top_k", "top_p", "max_length")
    return {
        "kind": "language",
        "text": text(tokenizer, vocabulary, lowercase=lowercase),
        "end": end,
        "decoding": plain(decoding, controls),
        "views": ["probabilities"],
        "controls": controls,
    }


def tagging(
    words: Vocabulary, characters: Vocabulary | None, tags: Sequence[tuple[str, Vocabulary]], *, lowercase: bool
) -> dict[str, Any]:
    """A model that says something of each word."""
    return {
        "kind": "tagging",
        "words": known(words),
        "characters": None if characters is None else known(characters),
        "lowercase": lowercase,
        "columns": [{"name": name, "tags": list(each.tokens)} for name, each in tags],
        "views": [],
        "controls": (),
    }


def classification(
    tokenizer: Tokenizer,
    words: Vocabulary,
    characters: Vocabulary | None,
    classes: Sequence[str],
    decoding: Any,
    *,
    lowercase: bool,
) -> dict[str, Any]:
    """A model that puts a text into a class."""
    controls = ("abstain", "alternatives")
    return {
        "kind": "classification",
        "text": text(tokenizer, words, lowercase=False),
        "words": known(words),
        "characters": None if characters is None else known(characters),
        "lowercase": lowercase,
        "classes": list(classes),
        "decoding": plain(decoding, controls),
        "views": [],
        "controls": controls,
    }


def text(tokenizer: Tokenizer, vocabulary: Vocabulary, *, lowercase: bool) -> dict[str, Any]:
    """How a text is cut, and the ids of its tokens."""
    if tokenizer.name not in ("characters", "words", "symbols"):
        raise not_yet(f"a model whose texts are cut into {tokenizer.name}")
    lower = bool(lowercase or getattr(tokenizer, "lowercase", False))
    return {"kind": tokenizer.name, "lowercase": lower, "vocabulary": known(vocabulary)}


def known(vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "tokens": list(vocabulary.tokens),
        "specials": len(vocabulary.specials),
        "unknown": vocabulary.unknown,
    }


def plain(settings: Any, names: Sequence[str]) -> dict[str, Any]:
    """Settings by their names, as JSON has them."""
    found = {name: getattr(settings, name) for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}
