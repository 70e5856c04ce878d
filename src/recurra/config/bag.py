"""Settings of a bag of n-grams."""

from __future__ import annotations

from dataclasses import dataclass

from recurra.settings import SettingError, above_zero, at_least, rates, setting


@dataclass(frozen=True)
class BagModel:
    """A text as the mean of the vectors of its words, their pieces and its phrases."""

    size: int = setting(64, "size of a vector")
    words: int = setting(3, "the longest phrase with a vector of its own, in words; 1: single words")
    characters: list[int] | None = setting([2, 6], "shortest and longest piece of a word, in letters; none: no pieces")
    buckets: int = setting(100_000, "vectors that all phrases and pieces share, by their hash")
    gain: float = setting(8.0, "the mean is multiplied by it: a vector is met seldom, so it must learn fast")
    dropout: float = setting(0.4, "share of the words, phrases and pieces that are left out, in training")
    sparse: bool = setting(True, "a step changes only the vectors it has met; adam, adagrad and sgd can do so")

    def __post_init__(self) -> None:
        at_least(1, "model.bag", self, "size", "words", "buckets")
        above_zero("model.bag", self, "gain")
        rates("model.bag", self, "dropout")
        given = self.characters
        if given is not None and not (len(given) == 2 and 1 <= given[0] <= given[1]):
            raise SettingError(
                f"model.bag.characters must be the least and the greatest length, as in [3, 5], but is {given}.",
                ("model", "bag", "characters"),
            )
