"""Settings that a Transformer needs, wherever one may stand in place of cells."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

from recurra.config.common import Training
from recurra.frozen import dataclass
from recurra.settings import SettingError, at_least, rates, setting
from recurra.toml import shown

AnyTraining = TypeVar("AnyTraining", bound=Training)

Form = Literal["pre_norm", "vaswani"]

FORM = "pre_norm"
FORM_SETTING = (
    "form of a Transformer's layers: pre_norm (norms first, GELU, rotary positions) or vaswani (norms last, ReLU, "
    "sinusoidal positions, as in 2017)"
)

HEADS = 4
"""So many, where nothing is said."""

USUAL_CELL = ("lstm", {"name": "lstm"})
"""What model.cell says where nothing is said."""


def suited(training: AnyTraining, *asked: object) -> AnyTraining:
    """How a model is usually trained, some part of which a table asks to be a Transformer, or all to be cells.

    A Transformer wants a lower learning rate than cells do, and longer to warm up: on the questions of clinc150, after
    as many updates, 58 % were right with 0.001 and 7 % with 0.003, by which cells got 57 %.

    >>> suited(Training(epochs=1), {"kind": "transformer", "heads": 8}).learning_rate
    0.001
    """
    kinds = [each.get("kind", each.get("name")) if isinstance(each, Mapping) else each for each in asked]
    return dataclasses.replace(training, learning_rate=1e-3, warmup=300) if "transformer" in kinds else training


def check_no_cells(model: object, usual: Mapping[str, Sequence[object]], why: str) -> None:
    """Refuse what is said of cells where there are none; what is as it usually is may stay."""
    for name, values in usual.items():
        if (value := getattr(model, name)) not in values:
            raise SettingError(f"model.{name} = {shown(value)} has no effect: {why}. Leave it out.", ("model", name))


def check_transformer(
    kind: str,
    heads: int,
    feed_forward: int | None,
    widths: Sequence[int],
    where: str,
    hidden: str | None = None,
    *,
    form: str = FORM,
) -> None:
    """Refuse the sizes that the Transformer of a section such as model.encoder cannot have, or a part without one uses.

    `hidden` is the setting that its width comes from, where it is not that section's own.
    """
    path = tuple(where.split("."))
    for name, size in (("heads", heads), ("feed_forward", feed_forward)):
        if size is not None and size < 1:
            raise SettingError(f"{where}.{name} must be at least 1, but is {size}.", (*path, name))
    if kind != "transformer":
        given: dict[str, tuple[object, object]] = {
            "heads": (heads, HEADS),
            "feed_forward": (feed_forward, None),
            "form": (form, FORM),
        }
        for name, (value, usual) in given.items():
            if value != usual:
                raise SettingError(
                    f"{where}.{name} = {value!r} has no effect: {where}.kind = '{kind}' is not a Transformer. Leave "
                    "it out.",
                    (*path, name),
                )
        return
    hidden = f"{where}.hidden" if hidden is None else hidden
    if len({*widths}) > 1:
        raise SettingError(
            f"{hidden} = {shown(list(widths))} sets layers of different sizes, but all layers of a Transformer "
            f"have the same size: give one size, and set {hidden.removesuffix('hidden')}layers.",
            tuple(hidden.split(".")),
        )
    if widths[0] % (2 * heads):
        nearest = max(1, round(widths[0] / (2 * heads))) * 2 * heads
        raise SettingError(
            f"{hidden} = {widths[0]} is not a multiple of {2 * heads}, which a Transformer with {where}.heads = "
            f"{heads} needs: set {nearest}, or change the number of heads.",
            tuple(hidden.split(".")),
        )


@dataclass(frozen=True)
class TransformerModel:
    """Layers in which all steps look at one another; model.hidden is their width, model.layers their number."""

    heads: int = setting(HEADS, "number of attention heads")
    feed_forward: int | None = setting(None, "size of the feed-forward layer; none: 4 × hidden")
    dropout: float = setting(0.1, "dropout on the output of each sublayer, with a new mask at each step")
    form: Form = setting("pre_norm", FORM_SETTING)

    def __post_init__(self) -> None:
        rates("model.transformer", self, "dropout")


@dataclass(frozen=True)
class CausalTransformerModel(TransformerModel):
    """Layers in which each step looks at those before it."""

    context: int = setting(256, "previous steps that a step attends to")

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, "model.transformer", self, "context")


def idle_transformer(model: TransformerModel, encoder: str) -> None:
    """Refuse settings of a Transformer where there is none."""
    for field in dataclasses.fields(model):
        if getattr(model, field.name) != field.default:
            raise SettingError(
                f"model.transformer.{field.name} has no effect: model.encoder = '{encoder}' has no Transformer. Leave "
                "it out.",
                ("model", "transformer", field.name),
            )
