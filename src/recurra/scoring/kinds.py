"""Tables of scores per kind: of classes, tags, types of spans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recurra.scoring.counted import Counted
from recurra.scoring.formulas import found_and_right
from recurra.views.table import Table


def kinds_table(counted: Counted, prefix: str, what: str, kinds: Sequence[str], *, in_order: bool = False) -> Table:
    """Precision, recall and F1 of each kind: those that occur, the most frequent first, or all in their order."""
    sums, scores = counted.sums(), found_and_right(prefix)
    gold, said = sums[f"{prefix}gold"], sums[f"{prefix}said"]
    columns = [scores[name](sums).round(4).tolist() for name in ("precision", "recall", "f1")]
    places = list(range(len(kinds)))
    if not in_order:
        places = sorted(np.flatnonzero(gold + said).tolist(), key=lambda place: (-gold[place], kinds[place]))
    rows = [[kinds[place], *(column[place] for column in columns), int(gold[place])] for place in places]
    return Table([what, "precision", "recall", "f1", "count"], rows)
