"""Tokens, words, sentences and tags of one annotation against another of the same text, as CoNLL 2018 counts them.

Both sides have the same characters, blanks left out, and each token and sentence is a span of them.

    tokens, sentences   agree where their spans are the same
    words               are aligned as recurra.metrics.conllu_alignment says
    a column            agrees in aligned words with the same value

    precision = agreed / system      recall = agreed / gold      F1 = 2 agreed / (system + gold)
    aligned accuracy = agreed / aligned words

Of features the universal ones count alone, a lemma that gold leaves out ("_") is right whatever was said, and AllTags
is UPOS, XPOS and UFeats together.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from recurra.errors import DataError
from recurra.metrics.conllu_alignment import Place, aligned_words

UNIVERSAL = frozenset(
    {"Abbr", "Animacy", "Aspect", "Case", "Definite", "Degree", "Evident", "Foreign", "Gender", "Mood", "NumType"}
    | {"Number", "Person", "Polarity", "Polite", "Poss", "PronType", "Reflex", "Tense", "VerbForm", "Voice"}
)
"""Features that the shared task counts."""


class UDWord(NamedTuple):
    """A word with what is scored of it."""

    form: str
    lemma: str = "_"
    upos: str = "_"
    xpos: str = "_"
    feats: str = "_"


class UDToken(NamedTuple):
    """A token as it is written, and the words that it stands for: several of a multi-word token."""

    form: str
    words: tuple[UDWord, ...]


class Agreement(NamedTuple):
    """How many there are on each side and how many are the same."""

    gold: int
    system: int
    agreed: int
    aligned: int | None = None  # None of what is not a property of words

    @property
    def precision(self) -> float:
        """Of what the system said, how much is right."""
        return self.agreed / self.system if self.system else 0.0

    @property
    def recall(self) -> float:
        """Of what is right, how much the system said."""
        return self.agreed / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Their harmonic mean."""
        return 2 * self.agreed / (self.system + self.gold) if self.system + self.gold else 0.0

    @property
    def aligned_accuracy(self) -> float | None:
        """Of the aligned words, how many agree."""
        return None if self.aligned is None else self.agreed / self.aligned if self.aligned else 0.0


def agreements(gold: Iterable[Sequence[UDToken]], system: Iterable[Sequence[UDToken]]) -> dict[str, Agreement]:
    """How far two annotations of one text agree, sentence by sentence or not.

    >>> gold = [[UDToken("du", (UDWord("de"), UDWord("le"))), UDToken("thé", (UDWord("thé", upos="NOUN"),))]]
    >>> system = [[UDToken("du", (UDWord("du"),)), UDToken("thé", (UDWord("thé", upos="NOUN"),))]]
    >>> found = agreements(gold, system)
    >>> found["Tokens"].f1, found["Words"].agreed, found["UPOS"].aligned_accuracy
    (1.0, 1, 1.0)
    """
    right, said = _Laid.of(gold), _Laid.of(system)
    _check_characters(right.characters, said.characters)
    places = aligned_words(right.places(), said.places())
    pairs = [(right.words[one][2], said.words[other][2]) for one, other in places]

    def of_words(key: Callable[[UDWord], object]) -> Agreement:
        agreed = sum(key(one) == key(other) for one, other in pairs)
        return Agreement(len(right.words), len(said.words), agreed, len(pairs))

    lemmas = sum(one.lemma in ("_", other.lemma) for one, other in pairs)
    return {
        "Tokens": _of_spans(right.tokens, said.tokens),
        "Sentences": _of_spans(right.sentences, said.sentences),
        "Words": of_words(lambda word: None),
        "UPOS": of_words(lambda word: word.upos),
        "XPOS": of_words(lambda word: word.xpos),
        "UFeats": of_words(lambda word: universal_features(word.feats)),
        "AllTags": of_words(lambda word: (word.upos, word.xpos, universal_features(word.feats))),
        "Lemmas": Agreement(len(right.words), len(said.words), lemmas, len(pairs)),
    }


def universal_features(feats: str) -> frozenset[str]:
    """Those of a word's features that count.

    >>> sorted(universal_features("Number=Sing|Number[psor]=Plur|Typo=Yes"))
    ['Number=Sing']
    """
    return frozenset(each for each in feats.split("|") if each.partition("=")[0] in UNIVERSAL)


Span = tuple[int, int]


class _Laid(NamedTuple):
    """An annotation laid over its characters."""

    characters: str
    tokens: list[Span]
    sentences: list[Span]
    words: list[tuple[Span, bool, UDWord]]  # whether it is one of several words of a token

    @classmethod
    def of(cls, sentences: Iterable[Sequence[UDToken]]) -> _Laid:
        texts: list[str] = []
        found, place = cls("", [], [], []), 0
        for sentence in sentences:
            first = place
            for token in sentence:
                text = without_blanks(token.form)
                texts.append(text)
                span = place, place + len(text)
                found.tokens.append(span)
                # As the published script does, blanks count in the forms of words that share a token, but in no other.
                alone = len(token.words) == 1
                words = [token.words[0]._replace(form=text)] if alone else token.words
                found.words.extend((span, not alone, word) for word in words)
                place = span[1]
            found.sentences.append((first, place))
        return found._replace(characters="".join(texts))

    def places(self) -> list[Place]:
        """The words as they are aligned."""
        return [Place(*span, word.form, is_part) for span, is_part, word in self.words]


def without_blanks(text: str) -> str:
    """The characters of a token that count: all but blanks."""
    return "".join(each for each in text if unicodedata.category(each) != "Zs") if not text.isalnum() else text


def _check_characters(gold: str, system: str) -> None:
    if gold == system:
        return
    shorter = min(len(gold), len(system))
    place = next((n for n in range(shorter) if gold[n] != system[n]), shorter)
    one, other = (side[max(0, place - 15) : place + 15] for side in (gold, system))
    raise DataError(
        f"the texts differ from character {place + 1:,} on (blanks not counted): …{one}… on one side, …{other}… on the "
        "other. Both files must hold the same text."
    )


def _of_spans(gold: Sequence[Span], system: Sequence[Span]) -> Agreement:
    return Agreement(len(gold), len(system), len(set(gold) & set(system)))
