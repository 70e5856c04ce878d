"""Prediction: an answer as the user sees it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

AnswerKind: TypeAlias = Literal["text", "tags", "classes", "numbers", "likelihood", "written", "series"]
"""How the page draws an answer, and what `detail` must hold for that; without it, the page shows the output.

text        the output as it is
tags        tokens with their tags: "tokens", and a list of tags by the name of each column; or "values" of each token
classes     "label" or a list "labels", and "probabilities" by the names of the classes
numbers     "values", a list of numbers
likelihood  how surprising a text is: "tokens", the last of them its end, "log_probabilities", "nll", "perplexity"
written     a new text; "alternatives" may hold other answers, each with "output", "score" and "log_probability"
series      the next steps of a series: "values", a list of numbers for each step
"""


class Prediction(NamedTuple):
    """A prediction. `output` is what `recurra predict` prints; `detail` is added by --json.

    Where the input holds what the model has never seen, `not_in_vocabulary` lists it.

    >>> answer = Prediction("ab", "B", -0.1, 1, {"alternatives": [{"output": "C"}], "alignment": [[0.2, 0.8]]})
    >>> answer.text, answer.alternatives, answer.alignment
    ('B', [{'output': 'C'}], array([[0.2, 0.8]]))
    """

    input: str
    output: str
    score: float
    line: int
    detail: dict[str, Any]

    @property
    def text(self) -> str:
        """What is answered."""
        return self.output

    @property
    def alternatives(self) -> list[Any]:
        """What else might be answered, the best first; empty where the task or its settings look for one answer."""
        return list(self.detail.get("alternatives", ()))

    @property
    def not_in_vocabulary(self) -> list[str]:
        """The tokens or characters of the input that the model has never seen and read as <unk>, each once."""
        return list(self.detail.get("not_in_vocabulary", ()))

    @property
    def alignment(self) -> NDArray[np.float64] | None:
        """(written tokens and end, read tokens): where attention looked, each row a share of 1; None without it."""
        found = self.detail.get("alignment")
        return None if found is None else np.array(found, np.float64)
