"""Tokens and their numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError, DataError
from recurra.text.json_file import read_json, write_json
from recurra.text.surrogates import has_surrogate

UNKNOWN = "<unk>"
START = "<s>"
END = "</s>"

T = TypeVar("T")


@final
class Vocabulary:
    """An immutable mapping between tokens and ids; special tokens come first.

    >>> words = Vocabulary.counted({"tea": 3, "cup": 5, "pot": 3}, specials=(UNKNOWN, END))
    >>> words.tokens
    ('<unk>', '</s>', 'cup', 'pot', 'tea')
    >>> words.ids(["tea", "kettle"]).tolist(), words.tokens_of([4, 1])
    ([4, 0], ['tea', '</s>'])

    A special is the program's, not the data's: a token of the data that is spelt like one is unknown to `ids`, so
    that a "</s>" in a text cannot end it. The program asks for a special by `id`.

    >>> words.ids(["</s>"]).tolist(), words.id(END)
    ([0], 1)
    """

    __slots__ = ("_ids", "_ordinary", "_special_count", "_tokens")

    def __init__(self, tokens: Iterable[str] = (), *, specials: Sequence[str] = (UNKNOWN,)) -> None:
        named = _checked(specials, "specials")
        self._tokens = (*named, *_checked(tokens, "tokens"))
        self._special_count = len(named)
        self._ids = {token: number for number, token in enumerate(self._tokens)}
        if len(self._ids) < len(self._tokens):
            raise DataError(_repetition(self._tokens, self._special_count))
        self._ordinary = {token: self._ids[token] for token in self._tokens[self._special_count :]}

    @classmethod
    def counted(
        cls,
        counts: Mapping[str, int],
        *,
        specials: Sequence[str] = (UNKNOWN,),
        min_count: int = 1,
        max_size: int | None = None,
    ) -> Vocabulary:
        """The tokens seen at least `min_count` times, the most frequent first and equals in the order of their letters.

        `max_size` bounds the length of the vocabulary, specials included. Tokens spelt like a special are left out.

        >>> Vocabulary.counted({"b": 2, "a": 2, "c": 9, "d": 1}, max_size=3).tokens
        ('<unk>', 'c', 'a')
        """
        if min_count < 1:
            raise ConfigError(f"min_count must be at least 1, but is {min_count}.")
        if max_size is not None and max_size < len(specials):
            raise ConfigError(f"max_size = {max_size} is too small for the {len(specials)} special tokens.")
        apart = set(specials)
        kept = [token for token in _checked(counts, "tokens") if counts[token] >= min_count and token not in apart]
        kept.sort(key=lambda token: (-counts[token], token))
        return cls(kept if max_size is None else kept[: max_size - len(specials)], specials=specials)

    def extended(
        self,
        counts: Mapping[str, int],
        *,
        specials: Sequence[str] = (),
        min_count: int = 1,
        max_size: int | None = None,
    ) -> Vocabulary:
        """This vocabulary, and after its tokens those of new data, as `counted` would take them; none is left out.

        >>> Vocabulary(["tea", "cup"]).extended({"cup": 9, "pot": 2, "jug": 1}, min_count=2).tokens
        ('<unk>', 'tea', 'cup', 'pot')
        """
        named = (*self.specials, *(each for each in specials if each not in self._ids))
        new = {token: count for token, count in counts.items() if token not in self._ids}
        room = max_size
        if room is not None and self._ordinary:
            room = max(len(named), room - len(self._ordinary))
        added = Vocabulary.counted(new, specials=named, min_count=min_count, max_size=room)
        return Vocabulary((*self._ordinary, *added._ordinary), specials=named)

    @property
    def tokens(self) -> tuple[str, ...]:
        """All tokens in the order of their ids, the specials first."""
        return self._tokens

    @property
    def specials(self) -> tuple[str, ...]:
        """The specials, whose ids are 0, 1, ..."""
        return self._tokens[: self._special_count]

    @property
    def unknown(self) -> int | None:
        """The id of "<unk>", where it is one of the specials."""
        return self._ids[UNKNOWN] if UNKNOWN in self.specials else None

    def ids(self, tokens: Iterable[str]) -> NDArray[np.int32]:
        """The ids of a text's tokens; what is not an ordinary token is unknown, or an error where there is no "<unk>".

        >>> Vocabulary(["NOUN", "VERB"], specials=()).ids(["VERB", "VERB", "NOUN"])
        array([1, 1, 0], dtype=int32)
        """
        if isinstance(tokens, str):
            raise DataError(f"ids takes a list of tokens, but got the text {_short(tokens)}: split it first.")
        tokens, unknown = list(tokens), self.unknown
        found = [self._ordinary.get(token, unknown) for token in tokens]
        if unknown is None and None in found:
            token = tokens[found.index(None)]
            why = "is the name of a special" if token in self._ids else "is not in the vocabulary"
            raise DataError(f"the token {_short(token)} {why}, and this vocabulary has no {UNKNOWN}.")
        return np.array(found, dtype=np.int32)

    def unknown_among(self, tokens: Iterable[str]) -> list[str]:
        """Those tokens of a text that `ids` reads as "<unk>", each once, in the order of the text.

        >>> Vocabulary(["tea", "cup"]).unknown_among(["pot", "tea", "pot", "<unk>"])
        ['pot', '<unk>']
        """
        return [token for token in dict.fromkeys(tokens) if token not in self._ordinary]

    def id(self, token: str) -> int:
        """The id of a token or a special that is there.

        >>> Vocabulary(["a"], specials=(UNKNOWN, START)).id(START)
        1
        """
        if token not in self._ids:
            raise DataError(f"{_short(token)} is not in this vocabulary of {len(self)} tokens.")
        return self._ids[token]

    def get(self, token: str, default: T) -> int | T:
        """The id of a token or a special, or the default.

        >>> Vocabulary(["a"]).get("b", None) is None
        True
        """
        return self._ids.get(token, default)

    def tokens_of(self, ids: Iterable[int] | NDArray[np.integer]) -> list[str]:
        """The tokens with these ids.

        >>> Vocabulary("abc", specials=()).tokens_of([2, 0])
        ['c', 'a']
        """
        numbers = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
        for number in numbers:
            if not isinstance(number, int | np.integer) or isinstance(number, bool):
                raise DataError(f"an id must be a whole number, but is {number!r}.")
            if not 0 <= number < len(self):
                raise DataError(
                    f"there is no token with id {number}: the ids of this vocabulary are 0 to {len(self) - 1}."
                )
        return [self._tokens[number] for number in numbers]

    def __len__(self) -> int:
        return len(self._tokens)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self._tokens == other._tokens and self._special_count == other._special_count

    def __hash__(self) -> int:
        return hash((self._tokens, self._special_count))

    def __repr__(self) -> str:
        return f"<Vocabulary of {len(self)} tokens, {self._special_count} of them special>"

    def to_json(self) -> dict[str, list[str]]:
        """The vocabulary as a JSON object.

        >>> Vocabulary(["a", "b"]).to_json()
        {'specials': ['<unk>'], 'tokens': ['a', 'b']}
        """
        return {"specials": list(self.specials), "tokens": list(self._ordinary)}

    @classmethod
    def from_json(cls, value: object) -> Vocabulary:
        """The vocabulary that `to_json` wrote."""
        if not isinstance(value, Mapping):
            raise DataError(f"a vocabulary must be a JSON object, but is {_short(value)}.")
        for key in ("specials", "tokens"):
            if key not in value:
                raise DataError(f"a vocabulary needs the key '{key}', which is missing.")
            if not isinstance(value[key], list):
                raise DataError(f"the {key} of a vocabulary must be a list of strings, but are {_short(value[key])}.")
        return cls(value["tokens"], specials=value["specials"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary as JSON; a crash leaves the old file or the new one."""
        write_json(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """The vocabulary in a file."""
        value = read_json(path)
        try:
            return cls.from_json(value)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error


def _checked(tokens: Iterable[object], what: str) -> list[str]:
    checked: list[str] = []
    for number, token in enumerate(tokens):
        if not isinstance(token, str):
            raise DataError(f"the {what} of a vocabulary must be strings, but number {number} is {_short(token)}.")
        if has_surrogate(token):
            raise DataError(f"{_short(token)}, number {number} of the {what}, is not valid Unicode (a lone surrogate).")
        checked.append(token)
    return checked


def _repetition(tokens: Sequence[str], special_count: int) -> str:
    seen: set[str] = set()
    for number, token in enumerate(tokens):
        if token in seen:
            first = tokens.index(token)
            if first < special_count <= number:
                return f"{_short(token)} is a special, so it cannot be an ordinary token as well."
            return f"the token {_short(token)} occurs twice, as id {first} and as id {number}."
        seen.add(token)
    raise AssertionError("no token occurs twice")


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:56]} ..."
