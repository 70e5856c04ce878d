"""Text: tokenizers, vocabularies and word vectors. None of it needs torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from recurra.errors import ConfigError, DataError, RecurraError, TrustError
from recurra.named import find
from recurra.settings import about
from recurra.text.json_file import read_json
from recurra.text.tokenizers.tokenizer import Tokenizer, build
from recurra.text.vocabulary import END, START, UNKNOWN, Vocabulary

if TYPE_CHECKING:
    from recurra.text.tokenizers import Characters, Subwords, Symbols, Words
    from recurra.text.vectors import Coverage, Vectors, covered, read_vectors

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

# Imported when first touched.
_HOMES = {
    **dict.fromkeys(("Characters", "Subwords", "Symbols", "Words"), "tokenizers"),
    **dict.fromkeys(("Coverage", "Vectors", "covered", "read_vectors"), "vectors"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'recurra.text' has no attribute {name!r}")
    return getattr(import_module(f"recurra.text.{_HOMES[name]}"), name)


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
    options = {key: value for key, value in spec.items() if key != "name"}
    with about("tokens"):
        kind = find(Tokenizer, name)  # type: ignore[arg-type]  # find says what is wrong with a name that is no string
        return build(kind, str(name), options)


def load_tokenizer(path: str | os.PathLike[str], own: str | Mapping[str, object] | None = None) -> Tokenizer:
    """The tokenizer that `Tokenizer.save` wrote.

    A tokenizer of your own is named a second time, by `own`, as settings name it: 'package.module:Class'. A file says
    which tokenizer it is of, but code is never imported because a file names it.
    """
    value = read_json(path)
    if not isinstance(value, dict) or not {"name", "model"} & value.keys():
        raise DataError(f'{path}: a tokenizer must be a JSON object with a "name", or with the "model" of subwords.')
    name = value.get("name", "subwords")
    if isinstance(name, str) and ":" in name:
        wanted = own if isinstance(own, str) or own is None else own.get("name")
        if not isinstance(wanted, str) or ":" not in wanted:
            raise TrustError(
                f"{path} names the tokenizer '{name}', code from outside recurra, which is not imported because a file "
                f"names it. In Python: load_tokenizer(path, '{name}'); a run must name it in its config.toml too."
            )
        name = wanted
    try:
        kind = find(Tokenizer, name if "name" in value else "subwords")
        return kind.from_json(value)
    except RecurraError as error:
        raise DataError(f"{path}: {error}") from error
