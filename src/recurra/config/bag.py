"""Settings of a bag of n-grams."""

from __future__ import annotations

from recurra.frozen import dataclass
from recurra.settings import SettingError, above_zero, at_least, rates, setting


@dataclass(frozen=True)
class BagModel:
    """A text as the mean of the vectors of its words, their pieces and its phrases."""

    size: int = setting(64, "size of an embedding")
    words: int = setting(3, "longest word n-gram with an embedding of its own; 1: single words")
    characters: list[int] | None = setting([2, 6], "shortest and longest character n-gram; none: no character n-grams")
    buckets: int = setting(100_000, "number of embeddings shared by all n-grams through hashing")
    gain: float = setting(8.0, "factor on the mean embedding; above 1, rare n-grams learn faster")
    dropout: float = setting(0.4, "fraction of the n-grams that are dropped in training")
    sparse: bool = setting(
        True, "sparse gradients: an update changes only the embeddings in the batch; works with adam, adagrad and sgd"
    )

    def __post_init__(self) -> None:
        at_least(1, "model.bag", self, "size", "words", "buckets")
        above_zero("model.bag", self, "gain")
        rates("model.bag", self, "dropout")
        given = self.characters
        if given is not None and not (len(given) == 2 and 1 <= given[0] <= given[1]):
            raise SettingError(
                f"model.bag.characters must be the shortest and the longest n-gram, as in [3, 5], but is {given}.",
                ("model", "bag", "characters"),
            )
