"""Settings that a Transformer needs, wherever one may stand in place of cells."""

from __future__ import annotations

from collections.abc import Sequence

from recurra.settings import SettingError

HEADS = 4
"""So many, where nothing is said."""


def check_transformer(
    kind: str, heads: int, feed_forward: int | None, widths: Sequence[int], where: str, hidden: str | None = None
) -> None:
    """Refuse the sizes that the Transformer of a section such as model.encoder cannot have, or a part without one uses.

    `hidden` is the setting that its width comes from, where it is not that section's own.
    """
    path = tuple(where.split("."))
    for name, value in (("heads", heads), ("feed_forward", feed_forward)):
        if value is not None and value < 1:
            raise SettingError(f"{where}.{name} must be at least 1, but is {value}.", (*path, name))
    if kind != "transformer":
        for name, value, usual in (("heads", heads, HEADS), ("feed_forward", feed_forward, None)):
            if value != usual:
                raise SettingError(
                    f"{where}.{name} = {value} has no effect: {where}.kind = '{kind}' is no Transformer. Leave it out.",
                    (*path, name),
                )
        return
    hidden = f"{where}.hidden" if hidden is None else hidden
    if len({*widths}) > 1:
        raise SettingError(
            f"{hidden} gives layers of {', '.join(map(str, widths))}, but those of a Transformer are equally wide: "
            f"give one size, and {where}.layers.",
            tuple(hidden.split(".")),
        )
    if widths[0] % (2 * heads):
        nearest = max(1, round(widths[0] / (2 * heads))) * 2 * heads
        raise SettingError(
            f"{hidden} = {widths[0]} is not a multiple of {2 * heads}, as a Transformer with {where}.heads = {heads} "
            f"needs it, since each head turns pairs of features: set {nearest}, or other heads.",
            tuple(hidden.split(".")),
        )
