"""Whether a source has enough steps for CTC to write a target."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from recurra.config import Seq2SeqModel
from recurra.errors import DataError


def needed_steps(tokens: Sequence[int]) -> int:
    """How many steps a target needs: one for each token, and a blank between equal neighbours.

    >>> needed_steps([5, 5, 7])
    4
    """
    return len(tokens) + sum(one == other for one, other in pairwise(tokens))


def check_steps(tokens: Sequence[int], steps: int, model: Seq2SeqModel, place: str) -> None:
    """Refuse a pair whose source has too few steps for the tokens of its target."""
    expand, together = model.decoder.expand, model.steps_in_a_place
    needed, found = needed_steps(tokens), expand * -(-steps // together)
    if needed <= found:
        return
    between = ", and one between equal neighbours" if needed > len(tokens) else ""
    counted = ""
    if together > 1 or expand > 1:
        changed = [f"a pyramid merges {together} into one"] * (together > 1)
        changed += [f"model.decoder.expand = {expand} splits each"] * (expand > 1)
        counted = f" ({steps} of the source; {' and '.join(changed)})"
    cures = [f"set model.decoder.expand = {-(-needed * expand // found)}" if found else "remove the row"]
    cures += ["use fewer layers of the pyramid"] * (together > 1)
    cures += ["use a decoder with attention (model.decoder.kind = 'rnn')"]
    cures[-1] = f"or {cures[-1]}"
    raise DataError(
        f"{place}: CTC needs {needed} steps to write this target, one for each of {len(tokens)} tokens{between}, but "
        f"there are {found}{counted}. {cures[0][0].upper()}{', '.join(cures)[1:]}."
    )
