"""Scores from raw text: tokens, sentences and words that were found, and the tags of words that agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from recurra.metrics.conllu_alignment import Place, aligned_words, same_places
from recurra.scoring.counted import Counted, OfItems, Tally
from recurra.scoring.formulas import Formula, found_and_right, ratio, total


class Segmented(NamedTuple):
    """A part of a text as one side sees it; all places are in the whole text."""

    tokens: Sequence[tuple[int, int]]
    sentences: Sequence[tuple[int, int]]
    words: Sequence[Place]
    tags: Sequence[Sequence[str]]  # per column, of each word


def raw_scores(
    items: Sequence[object], gold: Sequence[Segmented], said: Sequence[Segmented], columns: Sequence[str]
) -> Counted:
    """One text in parts, each an item, as it should be and as it was found.

    F1 of tokens, sentences and words, and of each column: its words are right where they are aligned and have the tag.
    """
    counts: dict[str, ArrayLike | Tally] = {}
    scores: dict[str, Formula | OfItems] = {}
    for number, name in enumerate(("tokens", "sentences")):
        right = same_places(_joined(gold, number), _joined(said, number))
        owner = np.repeat(np.arange(len(items)), [len(part[number]) for part in gold])
        counts[f"{name}_right"] = np.bincount(owner[np.array(right, bool)], minlength=len(items))
        counts[f"{name}_gold"] = [len(part[number]) for part in gold]
        counts[f"{name}_said"] = [len(part[number]) for part in said]
        scores[f"{name}_f1"] = found_and_right(f"{name}_")["f1"]
    pairs = aligned_words(
        [word for part in gold for word in part.words], [word for part in said for word in part.words]
    )
    owner = np.repeat(np.arange(len(items)), [len(part.words) for part in gold])
    ours = np.array([one for one, _ in pairs], np.int64)
    counts["words_right"] = np.bincount(owner[ours], minlength=len(items))
    counts["words_gold"] = [len(part.words) for part in gold]
    counts["words_said"] = [len(part.words) for part in said]
    scores["words_f1"] = found_and_right("words_")["f1"]
    for number, name in enumerate(columns):
        true, found = ([tag for part in side for tag in part.tags[number]] for side in (gold, said))
        is_right = np.array([true[one] == found[other] for one, other in pairs], bool)
        counts[f"{name}_right"] = np.bincount(owner[ours[is_right]], minlength=len(items))
        counts |= {f"{name}_gold": counts["words_gold"], f"{name}_said": counts["words_said"]}
        scores[f"{name}_f1"] = found_and_right(f"{name}_")["f1"]
        scores[f"{name}_aligned_accuracy"] = ratio(f"{name}_right", "words_right")
    lengths = np.array([len(part.words) for part in gold], np.int64)
    first = f"{columns[0]}_f1" if columns else "words_f1"
    return Counted.of(items, counts, scores, first=first, lengths=lengths, sizes={"count": total("words_gold")})


def _joined(parts: Sequence[Segmented], which: int) -> list[tuple[int, int]]:
    return [place for part in parts for place in part[which]]  # type: ignore[misc]
