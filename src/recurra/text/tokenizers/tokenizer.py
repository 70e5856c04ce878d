"""What every tokenizer does: text to tokens and back."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Self, TypeVar, cast, final

from recurra.errors import ConfigError, DataError
from recurra.named import check_options, made, options_of
from recurra.text.json_file import write_json

K = TypeVar("K", bound="Tokenizer")


class Tokenizer(ABC):
    """Splits a text into tokens and joins tokens to a text.

        tokens = split(text)        text' = join(tokens)

    `text'` is the text, but for what a tokenizer says that it forgets (blanks, capitals). The keyword-only parameters
    of a tokenizer are its options in a config file, and its attributes of the same names. One that learns from texts
    overrides `trained`, `to_json` and `from_json`; the others are ready as they are made.
    """

    @abstractmethod
    def split(self, text: str) -> list[str]:
        """The tokens of a text."""

    @abstractmethod
    def join(self, tokens: Iterable[str]) -> str:
        """The text of tokens."""

    def trained(self, texts: Iterable[str]) -> Self:
        """The tokenizer that has learnt from the texts; where there is nothing to learn, itself, the texts unread."""
        return self

    @property
    def name(self) -> str:
        """What a config file calls this tokenizer: 'words', or 'my.lab:MyTokenizer'."""
        return _name_of(type(self))

    def to_json(self) -> dict[str, object]:
        """The tokenizer as a JSON object: its name and options, as a config file would write them."""
        return {"name": self.name, **{option: getattr(self, option) for option in options_of(type(self))}}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The tokenizer that `to_json` wrote."""
        name = _name_of(cls)
        if not isinstance(value, Mapping) or value.get("name") != name:
            raise DataError(f'this is not the JSON of a \'{name}\' tokenizer, which holds "name": "{name}".')
        options = {str(key): option for key, option in value.items() if key != "name"}
        try:
            return build(cls, name, options)
        except ConfigError as error:
            raise DataError(str(error)) from error

    @final
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tokenizer as JSON; a crash leaves the old file or the new one."""
        write_json(path, self.to_json())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return type(self) is type(other) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        options = (f"{option}={getattr(self, option)!r}" for option in options_of(type(self)))
        return f"{type(self).__name__}({', '.join(options)})"


def build(kind: type[K], name: str, options: Mapping[str, object]) -> K:
    """A tokenizer of that kind with those options, or a ConfigError that says which cannot be."""
    check_options(kind, name, options)
    # An option may be called 'kind', as the parameter of `made` is.
    return made(cast("type[K]", partial(kind, **options)), name)


@cache
def _name_of(kind: type[Tokenizer]) -> str:
    home, _, file = kind.__module__.rpartition(".")
    return file if home == __name__.rpartition(".")[0] else f"{kind.__module__}:{kind.__name__}"
