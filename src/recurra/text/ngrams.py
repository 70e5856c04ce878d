"""What a text is made of, whatever its order: its words, their pieces and its phrases, as rows of one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError

BASIS, PRIME, BITS = 0x811C9DC5, 0x01000193, 0xFFFFFFFF

REMEMBERED = 1 << 17
"""So many words, and so many phrases, are looked up and not computed again."""


def fnv1a(text: str, start: int = BASIS) -> int:
    """The FNV-1a hash, 32 bits, of the UTF-8 bytes of a text: h ← (h xor byte) · 16777619 mod 2³².

    The same on every machine and in every process; `start` is the hash of what goes before.

    >>> hex(fnv1a("foobar")), fnv1a("bar", fnv1a("foo")) == fnv1a("foobar")
    ('0xbf9cf968', True)
    """
    found = start
    for byte in text.encode("utf-8", "surrogatepass"):
        found = (found ^ byte) * PRIME & BITS
    return found


@final
class Ngrams:
    """The features of a text: a number for each of its words, word n-grams and character n-grams.

        word               its id in the vocabulary, below V; an unknown word has none of its own
        n words in a row   V + fnv1a("w₁ w₂ … wₙ") mod buckets,   n = 2 … words
        n characters       V + fnv1a(them) mod buckets, of "<word>",   characters[0] ≤ n ≤ characters[1]

    What shares a bucket shares a vector, so no list of n-grams has to be kept.

    >>> of = Ngrams({"play": 0, "music": 1}, words=2, characters=None, buckets=100)
    >>> of.ids(["play", "some", "music"]).tolist(), of.rows
    ([0, 1, 91, 84], 102)
    """

    def __init__(
        self, vocabulary: Mapping[str, int], *, words: int, characters: Sequence[int] | None, buckets: int
    ) -> None:
        check(words, characters, buckets)
        self.longest = words
        self.characters = tuple(characters) if characters else None
        self.buckets = buckets if words > 1 or characters else 0
        self.known = max(vocabulary.values(), default=-1) + 1
        self._vocabulary = dict(vocabulary)
        self._words: dict[str, list[int]] = {}
        self._phrases: dict[tuple[str, ...], int] = {}

    @property
    def rows(self) -> int:
        """How many different features there are."""
        return self.known + self.buckets

    def ids(self, words: Sequence[str]) -> NDArray[np.int32]:
        """The features of a text: each word followed by its pieces, then the phrases."""
        try:
            found = self._looked_up(words)
        except KeyError:
            self._learn(words)
            found = self._looked_up(words)
        return np.array(found, np.int32)

    def _looked_up(self, words: Sequence[str]) -> list[int]:
        of_word, of_phrase = self._words, self._phrases
        found = [feature for word in words for feature in of_word[word]]
        for size in range(2, self.longest + 1):
            found += [of_phrase[phrase] for phrase in phrases(words, size)]
        return found

    def _learn(self, words: Sequence[str]) -> None:
        """Remember what the text has that was not seen before; all is forgotten when it is too much."""
        for seen in (self._words, self._phrases):
            if len(seen) >= REMEMBERED:
                seen.clear()
        self._words |= {word: self.of_word(word) for word in words if word not in self._words}
        for size in range(2, self.longest + 1):
            new = [phrase for phrase in phrases(words, size) if phrase not in self._phrases]
            self._phrases |= {phrase: self.bucket(" ".join(phrase)) for phrase in new}

    def bucket(self, text: str) -> int:
        return self.known + fnv1a(text) % self.buckets

    def of_word(self, word: str) -> list[int]:
        """The features of a word alone."""
        number = self._vocabulary.get(word)
        found = [] if number is None else [number]
        if self.characters is None:
            return found
        least, most = self.characters
        marked = f"<{word}>"
        for start in range(len(marked) - least + 1):
            hashed = fnv1a(marked[start : start + least - 1])  # then one character more, and one more
            for character in marked[start + least - 1 : start + most]:
                hashed = fnv1a(character, hashed)
                found.append(self.known + hashed % self.buckets)
        return found


def phrases(words: Sequence[str], size: int) -> Iterable[tuple[str, ...]]:
    """So many words in a row.

    >>> list(phrases(["a", "b", "c"], 2))
    [('a', 'b'), ('b', 'c')]
    """
    if size == 2:  # by far the most frequent, and twice as fast
        return pairwise(words)
    return zip(*(words[start:] for start in range(size)), strict=False)


def check(words: int, characters: Sequence[int] | None, buckets: int) -> None:
    """Refuse what gives no features."""
    if words < 1:
        raise ConfigError(f"word n-grams need a length of at least 1, but the longest has {words}.")
    if characters and not (len(characters) == 2 and 1 <= characters[0] <= characters[1]):
        raise ConfigError(
            f"character n-grams need their shortest and longest length, as in [3, 5], but found {list(characters)}."
        )
    if buckets < 1:
        raise ConfigError(f"hashed n-grams need at least 1 bucket, but there are {buckets}.")
