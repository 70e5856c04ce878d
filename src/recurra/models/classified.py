"""What a classifier says of an example, and what several say of it together; torch is not needed for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.models.alike import mean_of_alike


class ClassifierOutput(NamedTuple):
    """What was found for one example."""

    values: NDArray[np.float64]  # (L,) probabilities of the classes, or (k,) numbers, scaled
    steps: int  # how long the example is
    attention: NDArray[np.float64] | None  # (K, T): what each query looked at; of the first member that has any
    columns: int | None = None  # of a picture: its T places stand row after row, so many a row
    looked: NDArray[np.float64] | None = None  # of two texts: what the second, or each of its words, looked at, (·, T₁)
    looked_back: NDArray[np.float64] | None = None  # and what each word of the first looked at, (T₁, T₂)


def combined(outputs: Sequence[ClassifierOutput]) -> ClassifierOutput:
    """The mean of what several classifiers say, p = (1/M) Σ_m p_m; and of their attention, where all have the same.

    >>> both = combined([ClassifierOutput(np.array([p, 1 - p]), 3, None) for p in (0.5, 1.0)])
    >>> both.values.tolist()
    [0.75, 0.25]
    """
    return outputs[0]._replace(
        values=np.mean([output.values for output in outputs], axis=0),
        attention=mean_of_alike([output.attention for output in outputs]),
        looked=mean_of_alike([output.looked for output in outputs]),
        looked_back=mean_of_alike([output.looked_back for output in outputs]),
    )
