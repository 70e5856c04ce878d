"""Gold and predicted labels must lie side by side: as many sentences, each as long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recurra.errors import DataError

Labelled = Sequence[Sequence[str]]
"""One sequence of labels per sentence."""


def check_parallel(gold: Labelled, predicted: Labelled) -> None:
    """Nothing, or a DataError that names the first sentence where gold and predicted differ in length.

    >>> check_parallel([["O", "O"]], [["O"]])
    Traceback (most recent call last):
    recurra.errors.DataError: sentence 1 has 2 gold labels but 1 predicted: each step needs one of both.
    """
    if len(gold) != len(predicted):
        raise DataError(
            f"gold has {len(gold)} sentences but predicted has {len(predicted)}: each sentence needs both. "
            f"Sentence {min(len(gold), len(predicted)) + 1} is the first without a partner."
        )
    for number, (right, said) in enumerate(zip(gold, predicted, strict=True), start=1):
        for side, labels in (("gold", right), ("predicted", said)):
            if isinstance(labels, str):
                raise DataError(f"sentence {number} of {side} is the string {labels!r}, not a list of labels.")
        if len(right) != len(said):
            raise DataError(
                f"sentence {number} has {len(right)} gold labels but {len(said)} predicted: "
                f"each step needs one of both."
            )


def steps(gold: Labelled, predicted: Labelled) -> Iterator[tuple[str, str]]:
    """Each step's gold and predicted label, through all sentences.

    >>> list(steps([["a"], ["b", "b"]], [["a"], ["b", "a"]]))
    [('a', 'a'), ('b', 'b'), ('b', 'a')]
    """
    check_parallel(gold, predicted)
    for right, said in zip(gold, predicted, strict=True):
        yield from zip(right, said, strict=True)
