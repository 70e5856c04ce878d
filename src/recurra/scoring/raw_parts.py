"""Sentences of a treebank as one raw text, and what was found in it, each sentence with the part that begins in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.metrics.conllu_alignment import Place, aligned_words, same_places
from recurra.reading.sentences import Sentence
from recurra.scoring.raw_scores import Segmented
from recurra.text.written import Written


def code_points(text: str) -> NDArray[np.uint32]:
    """A text as numbers, which `text_of` reads back."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def text_of(points: NDArray[Any]) -> str:
    """The text of code points.

    >>> text_of(code_points("a😀"))
    'a😀'
    """
    return points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def as_written(examples: Sequence[Sentence]) -> list[Segmented]:
    """What is right of each sentence, in the text that all make together."""
    found, place = [], 0
    for example in examples:
        assert example.written is not None, "raw text is scored where it is known"
        written = example.written
        start = place + written.in_text.index(written.text)
        found.append(_segmented(written._replace(start=start), example.tokens, example.tags))
        place += len(written.in_text)
    return found


def parted(
    lengths: Sequence[int], found: Sequence[Sentence], tags: Sequence[Sequence[Sequence[str]]], *, columns: int
) -> list[Segmented]:
    """What was found in a text, by the parts of such lengths that it is made of; each goes where it begins."""
    starts = [0, *accumulate(lengths)]
    result = [Segmented([], [], [], [[] for _ in range(columns)]) for _ in lengths]

    def part(start: int) -> Any:  # its lists are filled here
        return result[min(bisect_right(starts, start) - 1, len(result) - 1)]

    for sentence, its_tags in zip(found, tags, strict=True):
        assert sentence.written is not None
        whole = _segmented(sentence.written, sentence.tokens, its_tags)
        for place in whole.sentences:
            part(place[0]).sentences.append(place)
        for place in whole.tokens:
            part(place[0]).tokens.append(place)
        for number, word in enumerate(whole.words):
            owner = part(word.start)
            owner.words.append(word)
            for column, values in zip(owner.tags, whole.tags, strict=True):
                column.append(values[number])
    return result


def found_alike(examples: Sequence[Sentence], found: Sequence[Sentence]) -> float:
    """How alike sentences are to what was found in the text that they make together.

    The mean of the F1 of tokens, of sentences and of words.
    """
    gold = as_written(examples)
    said = [_segmented(each.written, each.tokens, ()) for each in found if each.written is not None]
    tokens, sentences = (
        [[place for part in side for place in places(part)] for side in (gold, said)]
        for places in (_tokens, _sentences)
    )
    words = [[word for part in side for word in part.words] for side in (gold, said)]
    agreed = sum(same_places(*tokens)), sum(same_places(*sentences)), len(aligned_words(*words))
    sizes = [sum(map(len, sides)) for sides in (tokens, sentences, words)]
    return sum(2 * same / max(size, 1) for same, size in zip(agreed, sizes, strict=True)) / len(sizes)


def _tokens(part: Segmented) -> Sequence[tuple[int, int]]:
    return part.tokens


def _sentences(part: Segmented) -> Sequence[tuple[int, int]]:
    return part.sentences


def _segmented(written: Written, words: Sequence[str], tags: Sequence[Sequence[str]]) -> Segmented:
    """A sentence at its place; its end is that of its last token."""
    start = written.start
    tokens = [(start + token.start, start + token.end) for token in written.tokens]
    parts = [token.words > 1 for token in written.tokens for _ in range(token.words)]
    places = [Place(*place, word, part) for place, word, part in zip(written.word_places(), words, parts, strict=True)]
    return Segmented(tokens, [(tokens[0][0], tokens[-1][1])], places, tags)
