"""Prediction: an answer as the user sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.frozen import NamedTuple

MOST_CLASSES = 10
"""Probabilities of classes that a notebook shows of one answer, the largest."""

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

    def _repr_html_(self) -> str:
        """What a notebook shows: the input, the output, its score, and the numbers and texts of the detail.

        >>> shown = Prediction("good", "yes", -0.1, 1, {"probabilities": {"yes": 0.9, "no": 0.1}})._repr_html_()
        >>> "<td>probability_yes</td><td>0.9000</td>" in shown
        True
        """
        from recurra.views.page import in_notebook, table_in_html
        from recurra.views.table import Table

        rows: list[list[Any]] = [["input", self.input], ["output", self.output], ["score", self.score]]
        for name, value in self.detail.items():
            if name == "probabilities" and isinstance(value, Mapping):
                most = sorted(value.items(), key=lambda item: -item[1])[:MOST_CLASSES]
                rows += [[f"probability_{label}", share] for label, share in most]
            elif isinstance(value, int | float) and not isinstance(value, bool):
                rows.append([name, value])
        return in_notebook(table_in_html(Table(["answer", ""], rows)))
