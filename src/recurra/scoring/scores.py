"""Scores: what a model reached on some data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import NamedTuple, final

from recurra.views.page import in_notebook, table_in_html
from recurra.views.table import Table


class Scores(NamedTuple):
    """The scores of a model on some data. `first` names the score used for early stopping."""

    values: dict[str, float]
    first: str
    tables: Mapping[str, Table]
    higher_is_better: bool = True
    loss: float | None = None  # per label, where scoring has found it on the way
    notes: tuple[str, ...] = ()  # what whoever reads the scores should know

    def beats(self, other: float | None) -> bool:
        """Whether the first score is better than another; anything beats nothing, and NaN beats nothing."""
        value = self.values[self.first]
        if other is None or value != value:
            return other is None
        return value > other if self.higher_is_better else value < other

    def _repr_html_(self) -> str:
        """What a notebook shows: the scores, that which decides first, and the tables folded away."""
        names = sorted(self.values, key=lambda name: name != self.first)
        pieces = [table_in_html(Table(["score", "value"], [[name, self.values[name]] for name in names]))]
        pieces += [f'<p class="soft">{escape(note)}</p>' for note in self.notes]
        for title, table in self.tables.items():
            pieces.append(f"<details><summary>{escape(title)}</summary>{table_in_html(table)}</details>")
        return in_notebook("\n".join(pieces))


@final
class Tables(Mapping[str, Table]):
    """Tables by their titles, each made when it is first asked for: most validations show none.

    >>> tables = Tables({"squares": lambda: Table(["n", "n²"], [[2, 4]])})
    >>> list(tables), tables["squares"].rows
    (['squares'], [[2, 4]])
    """

    def __init__(self, made: Mapping[str, Callable[[], Table]]) -> None:
        self._made = made
        self._known: dict[str, Table] = {}

    def __getitem__(self, title: str) -> Table:
        if title not in self._known:
            self._known[title] = self._made[title]()
        return self._known[title]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)
