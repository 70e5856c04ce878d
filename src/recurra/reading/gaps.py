"""Which cells are given the values of a step that were observed, and the time since the step before.

That is known without torch of recurra's own cells; tests compare it with the cells.
"""

from __future__ import annotations

from recurra.settings import Part, name_of

GAP_CELLS = ("gru_d",)


def cell_reads_gaps(cell: Part) -> bool:
    """Whether a cell, as settings name it, reads gaps; a class of your own is imported to be asked.

    >>> cell_reads_gaps("lstm"), cell_reads_gaps({"name": "gru_d"})
    (False, True)
    """
    name = name_of(cell)
    if ":" not in name:
        return name in GAP_CELLS
    from recurra.cells import reads_gaps

    return reads_gaps(cell)
