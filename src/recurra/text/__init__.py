"""Text: tokenizers, vocabularies and word vectors. None of it needs torch."""

from __future__ import annotations

import os
from collections.abc import Mapping

from recurra.errors import ConfigError, DataError, RecurraError
from recurra.named import find
from recurra.text.json_file import read_json
from recurra.text.tokenizers import Characters, Subwords, Symbols, Tokenizer, Words
from recurra.text.tokenizers.tokenizer import build
from recurra.text.vectors import Coverage, Vectors, covered, read_vectors
from recurra.text.vocabulary import END, START, UNKNOWN, Vocabulary

__all__ = [
    "END",
    "START",
    "UNKNOWN",
    "Characters",
    "Coverage",
    "Subwords",
    "Symbols",
    "Tokenizer",
    "Vectors",
    "Vocabulary",
    "Words",
    "covered",
    "load_tokenizer",
    "read_vectors",
    "tokenizer",
]


def tokenizer(spec: str | Mapping[str, object]) -> Tokenizer:
    """The tokenizer that a config file means: a name, or a table of a name and options.

    >>> tokenizer({"name": "words", "lowercase": True}).split("Good Day")
    ['good', 'day']

    Subwords come untrained. `trained` is there for every tokenizer, so that nobody needs to ask which must learn:

    >>> tokenizer({"name": "subwords", "size": 5}).trained(["ab ab"]).split("ab")
    ['▁', 'ab']
    """
    if isinstance(spec, str):
        spec = {"name": spec}
    if not isinstance(spec, Mapping) or "name" not in spec:
        raise ConfigError(
            f"a tokenizer is a name or a table with a name, such as {{name = 'words'}}, but found {spec!r}."
        )
    name = spec["name"]
    kind = find(Tokenizer, name)  # type: ignore[arg-type]  # find says what is wrong with a name that is no string
    options = {key: value for key, value in spec.items() if key != "name"}
    return build(kind, str(name), options)


def load_tokenizer(path: str | os.PathLike[str]) -> Tokenizer:
    """The tokenizer that `Tokenizer.save` wrote."""
    value = read_json(path)
    if not isinstance(value, dict) or not {"name", "model"} & value.keys():
        raise DataError(f'{path}: a tokenizer must be a JSON object with a "name", or with the "model" of subwords.')
    try:
        kind = find(Tokenizer, value["name"]) if "name" in value else Subwords
        return kind.from_json(value)
    except RecurraError as error:
        raise DataError(f"{path}: {error}") from error
