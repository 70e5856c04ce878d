"""Several: views of the same thing under one title, such as one answer explained by two methods."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, ClassVar, Self

from recurra.errors import DataError
from recurra.views.scene import Scene, together
from recurra.views.table import Table
from recurra.views.view import WIDTH, View, captioned


@dataclasses.dataclass(frozen=True, eq=False)
class Several(View):
    """Several views, chosen by title. A picture shows the first `drawn` of them, the terminal the first, a page all.

    `choice` says what a reader chooses among, such as "Method".
    """

    kind: ClassVar[str] = "several"

    views: Sequence[View]
    choice: str = ""
    drawn: int = 0  # 0: all

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.views:
            raise DataError("Several needs at least one view.")
        if self.drawn not in range(len(self.views) + 1):
            raise DataError(f"drawn = {self.drawn}, but there are {len(self.views)} views.")

    @property
    def script(self) -> str:  # type: ignore[override]
        """The scripts of all views, each once."""
        return "\n".join(dict.fromkeys(view.script for view in self.views if view.script))

    @property
    def _drawn(self) -> int:
        return self.drawn or len(self.views)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The view whose json() was given."""
        from recurra.views.kinds import view_of  # which names this kind too

        return super().from_json({**given, "views": [view_of(each) for each in given["views"]]})

    def text(self) -> str:
        """For the terminal: what a reader would choose among; without a choice, one view under the other."""
        shown = self.views[:1] if self.choice else self.views
        return captioned(self.caption, "\n\n".join(view.text() for view in shown))

    def scene(self, width: float = WIDTH) -> Scene:
        """The views beside each other and in rows, as the width allows; those to choose among one below the other."""
        scenes = [view.scene(width) for view in self.views[: self._drawn]]
        return together(scenes, 0.0 if self.choice else width)

    def figure(self) -> str:
        """The pictures; those that are not drawn at first are folded."""
        pieces = [view.figure() for view in self.views[: self._drawn]]
        pieces += [
            f"<details><summary>{escape(view.title)}</summary>{view.figure()}</details>"
            for view in self.views[self._drawn :]
        ]
        return "\n".join(pieces)

    def tables(self) -> dict[str, Table]:
        """The tables of all views; those that are called the same are numbered."""
        found: dict[str, Table] = {}
        for view in self.views:
            for name, table in view.tables().items():
                title = f"{view.title}: {name[0].lower()}{name[1:]}" if view.title else name
                numbered = (f"{title} ({number})" for number in itertools.count(2))
                found[next(each for each in itertools.chain([title], numbered) if each not in found)] = table
        return found
