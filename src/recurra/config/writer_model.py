"""Settings of a network that writes a sequence, whatever it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from recurra.config.common import check_layers
from recurra.config.transformer import FORM_SETTING, HEADS, USUAL_CELL, Form, check_no_cells, check_transformer
from recurra.frozen import dataclass
from recurra.named import did_you_mean
from recurra.settings import Part, SettingError, at_least, name_of, rates, section, setting

WIRINGS = ("outside", "between", "inside", "feeding", "conditional")
"""Where attention may meet the decoder."""

WIRINGS_WITH_A_CHOICE = ("outside", "between")
"""Where attention may look from the state before or after a step."""


@dataclass(frozen=True)
class DecoderModel:
    """What writes the target."""

    kind: Literal["rnn", "transformer", "window", "ctc"] = setting(
        "rnn",
        "rnn (recurrent cells), transformer, window (a feed-forward network that reads the last few tokens), or ctc "
        "(no decoder: each encoder step names a token or nothing)",
    )
    cell: Part | None = setting(None, "none: model.cell")
    hidden: int | list[int] | None = setting(None, "hidden size; a list sets one per layer; none: model.hidden")
    layers: int | None = setting(
        None, "number of layers; none: model.layers, but at least 2 for a Transformer or wiring = between"
    )
    heads: int = setting(HEADS, "number of attention heads of a Transformer")
    feed_forward: int | None = setting(None, "feed-forward size of a Transformer; none: 4 × its width")
    window: int = setting(5, "number of last tokens that a window reads")
    around: int = setting(2, "a window looks at places together with so many on either side; 0: one by one")
    expand: int = setting(1, "ctc: into how many steps each encoder step is split, for targets longer than sources")
    form: Form = setting("pre_norm", FORM_SETTING)
    direction: Literal["forward", "backward"] | None = setting(
        None,
        "backward: write the target from its end, and turn answers round again; none: forward, in vec2seq as "
        "model.direction says",
    )

    def __post_init__(self) -> None:
        at_least(1, "model.decoder", self, "layers", "window", "expand")
        at_least(0, "model.decoder", self, "around")
        for name, usual in (("window", 5), ("around", 2)):
            if self.kind != "window" and getattr(self, name) != usual:
                raise SettingError(
                    f"model.decoder.{name} = {getattr(self, name)} has no effect: model.decoder.kind = '{self.kind}'. "
                    "Leave it out.",
                    ("model", "decoder", name),
                )
        if self.hidden is not None:
            check_layers(self.hidden, self.layers, "model.decoder")
        if self.kind == "ctc" and self.direction == "backward":
            raise SettingError(
                "model.decoder.direction = 'backward' writes from the end, but model.decoder.kind = 'ctc' writes "
                "nothing step by step: its tokens stand in the order of the encoder's steps. Leave it out.",
                ("model", "decoder", "direction"),
            )
        if self.kind == "ctc":
            for name in ("cell", "hidden", "layers"):
                if getattr(self, name) is not None:
                    raise SettingError(
                        f"model.decoder.{name} has no effect: model.decoder.kind = 'ctc' has no layers of its own. "
                        "Leave it out.",
                        ("model", "decoder", name),
                    )
        elif self.expand != 1:
            raise SettingError(
                f"model.decoder.expand = {self.expand} splits the steps of CTC, but model.decoder.kind = "
                f"'{self.kind}'. Leave it out, or set model.decoder.kind = 'ctc'.",
                ("model", "decoder", "expand"),
            )


@dataclass(frozen=True)
class WriterModel:
    """The decoder and all that stands around it."""

    PLACES: ClassVar[tuple[str, ...]] = ("first", "every", "output")
    """Where a vector of the whole may enter."""

    embedding: int = setting(128, "size of the token embeddings")
    cell: Part = setting(
        "lstm", "any cell listed by `recurra cells`, your own as package.module:Class, or a table with options"
    )
    hidden: int = setting(256, "size of the decoder and of the encoder output")
    layers: int = setting(1, "layers")
    mix: Literal["last", "concat", "mean", "learned"] = setting(
        "last",
        "output of a stack of layers: its last layer, or the concat, mean or learned weighted mean of all layers",
    )
    skip: Literal["none", "residual", "highway"] = setting(
        "none", "none, residual or highway: skip connections around the second and later layers"
    )
    decoder: DecoderModel = section(DecoderModel, "the decoder, where it differs from [model]")
    attention: Part = setting(
        "projected_dot",
        "additive, bilinear, dot, scaled_dot, projected_dot or none, or a table with options, terms, a look and a gate",
    )
    wiring: Part = setting(
        "outside",
        "outside, between, inside, feeding or conditional: where attention enters the decoder; the last three "
        "train step by step; or your own wiring, as package.module:Class",
    )
    readout: Literal["tanh", "maxout"] = setting(
        "tanh",
        "what the output sees of the decoder's state and the context: tanh (Luong), or maxout of these and the last "
        "token (Bahdanau)",
    )
    query: Literal["previous", "current"] | None = setting(
        None,
        "query of the attention: the state before (previous) or after (current) a step; none: the wiring's default",
    )
    conditioning: list[str] = setting([], "where a summary of the whole input enters")
    tied: str = setting("none", "output: share the weights of output and target embedding")
    dropout: float = setting(0.25, "dropout between layers and before the output; in a Transformer, on each sublayer")
    embedding_dropout: float | None = setting(None, "dropout on token embeddings; none: as dropout")
    locked: bool = setting(False, "use one dropout mask for all steps of a row (not inside a Transformer)")
    token_dropout: float = setting(0.0, "fraction of tokens replaced by <unk> in training")
    label_smoothing: float | None = setting(
        0.1, "label smoothing: fraction of the target probability spread over all tokens"
    )
    engine: str = setting(
        "auto", "single, vendor, planned, scan or loop; auto selects the fastest that supports the cell"
    )

    def __post_init__(self) -> None:
        at_least(1, "model", self, "embedding", "hidden", "layers")
        rates("model", self, "dropout", "token_dropout")
        for name in ("embedding_dropout", "label_smoothing"):
            if getattr(self, name) is not None:
                rates("model", self, name)
        if not {*self.conditioning} <= {*self.PLACES}:
            *others, last = self.PLACES
            raise SettingError(
                f'model.conditioning must name {", ".join(others)} and {last}, as in ["every", "output"], but is '
                f"{self.conditioning}.",
                ("model", "conditioning"),
            )
        is_own = ":" in name_of(self.wiring)
        if not is_own and self.wiring not in WIRINGS:
            name = name_of(self.wiring)
            raise SettingError(
                f"model.wiring = '{name}' has no options: write its name alone."
                if name in WIRINGS
                else f"model.wiring = '{name}' is not known. {did_you_mean(name, WIRINGS)} A wiring of your own is "
                f"named as 'package.module:Class'.",
                ("model", "wiring"),
            )
        attends = name_of(self.attention) != "none"
        self._check_transformer()
        if not attends and self.wiring != "outside":
            raise SettingError(
                f"model.wiring = '{self.wiring}' sets where attention enters the decoder, but model.attention is "
                "none: leave one of them out.",
                ("model", "wiring"),
            )
        if self.query is not None and (not attends or not (is_own or self.wiring in WIRINGS_WITH_A_CHOICE)):
            why = "there is no attention" if not attends else f"wiring = '{self.wiring}' has its own query"
            raise SettingError(f"model.query = '{self.query}' has no effect: {why}. Leave it out.", ("model", "query"))
        if self.wiring == "between" and self.decoder_widths == self.decoder_widths[:1]:
            raise SettingError(
                "model.wiring = 'between' puts attention between two decoder layers, but there is one: set "
                "model.decoder.layers = 2.",
                ("model", "decoder", "layers"),
            )
        if self.locked and self.dropout and (self.wiring == "feeding" or "first" in self.conditioning):
            what = "model.wiring = 'feeding'" if self.wiring == "feeding" else "model.conditioning = ['first', …]"
            raise SettingError(
                f"model.locked = true uses one dropout mask per row, but {what} trains step by step: remove one of "
                f"the two settings.",
                ("model", "locked"),
            )

    def _check_transformer(self) -> None:
        """Refuse what a Transformer that writes has no place for."""
        own = self.decoder
        hidden = "model.hidden" if own.hidden is None else None
        check_transformer(
            own.kind, own.heads, own.feed_forward, self.decoder_widths, "model.decoder", hidden, form=own.form
        )
        if own.kind == "rnn":
            return
        if not self.has_cells:
            of_cells = {"cell": USUAL_CELL, "mix": ("last",), "skip": ("none",), "engine": ("auto",)}
            check_no_cells(self, of_cells, "there are no cells")
        if own.cell is not None:
            raise SettingError(
                f"model.decoder.cell = '{name_of(own.cell)}' has no effect: model.decoder.kind = '{own.kind}' has no "
                f"cells. Leave one of them out.",
                ("model", "decoder", "cell"),
            )
        if own.kind == "window":
            self._check_window()
            return
        if own.kind == "ctc":
            self._check_ctc()
            return
        if self.attention not in ("auto", "projected_dot", "none"):
            raise SettingError(
                f"model.attention = '{name_of(self.attention)}' has no effect: a Transformer decoder has its own "
                f"attention heads in every layer. Leave it out, or set none.",
                ("model", "attention"),
            )
        if self.readout != "tanh":
            raise SettingError(
                f"model.readout = '{self.readout}' has no effect: a Transformer decoder has its own output layer. "
                "Leave it out.",
                ("model", "readout"),
            )
        for name, value, usual in (("wiring", self.wiring, "outside"), ("query", self.query, None)):
            if value != usual:
                raise SettingError(
                    f"model.{name} = '{name_of(value) if value else value}' has no effect: a Transformer decoder "
                    f"attends to the source in every layer. Leave it out.",
                    ("model", name),
                )
        if "initial" in self.conditioning:
            raise SettingError(
                'model.conditioning has "initial", but a Transformer has no state to start from: set '
                'model.conditioning = ["first"], or [] where there is something to attend to.',
                ("model", "conditioning"),
            )

    def _check_window(self) -> None:
        """Refuse what a feed-forward decoder has no place for."""
        if name_of(self.attention) == "none":
            raise SettingError(
                "model.decoder.kind = 'window' knows of the source what its attention sees, but model.attention is "
                "none: set bilinear, or another.",
                ("model", "attention"),
            )
        if self.embedding % 2:
            raise SettingError(
                f"model.decoder.kind = 'window' reads one half of an embedding and looks from the other, but "
                f"model.embedding = {self.embedding} is odd: set {self.embedding + 1}.",
                ("model", "embedding"),
            )
        others: list[tuple[str, object, object]] = [
            ("wiring", self.wiring, "outside"),
            ("readout", self.readout, "tanh"),
            ("query", self.query, None),
            ("conditioning", self.conditioning, []),
            ("tied", self.tied, "none"),
        ]
        for name, value, usual in others:
            if value != usual:
                raise SettingError(
                    f"model.{name} = {value!r} has no effect: model.decoder.kind = 'window' has no cells, no state and "
                    "no matrix to share. Leave it out.",
                    ("model", name),
                )
        if len(self.decoder_widths) > 1:
            raise SettingError(
                f"model.decoder.kind = 'window' has one layer, but {len(self.decoder_widths)} are set: set "
                "model.decoder.layers = 1.",
                ("model", "decoder", "layers"),
            )

    def _check_ctc(self) -> None:
        """Refuse what is said of a decoder where there is none."""
        usual: dict[str, tuple[object, ...]] = {
            "attention": ("projected_dot", "auto", "none"),
            "wiring": ("outside",),
            "readout": ("tanh",),
            "query": (None,),
            "conditioning": ([],),
            "tied": ("none",),
        }
        check_no_cells(self, usual, "model.decoder.kind = 'ctc' has no decoder")

    @property
    def attends(self) -> bool:
        """Whether there is an attention."""
        return name_of(self.attention) != "none" and self.decoder.kind != "ctc"

    @property
    def started(self) -> list[str] | None:
        """Which states of the decoder begin from a vector; None: those that it can give."""
        return None

    @property
    def writes_backward(self) -> bool:
        """Whether the target is written from its end."""
        return self.decoder.direction == "backward"

    @property
    def has_cells(self) -> bool:
        """Whether there are layers of cells."""
        return self.decoder.kind == "rnn"

    @property
    def decoder_widths(self) -> tuple[int, ...]:
        """The size of each layer of the decoder."""
        own = self.decoder
        if isinstance(own.hidden, list):
            return tuple(own.hidden)
        if own.kind == "ctc":
            return ()
        several = own.kind == "transformer" or self.wiring == "between"
        layers = own.layers or (max(2, self.layers) if several else self.layers)
        return (own.hidden or self.hidden,) * layers


def look_of(attention: Part) -> str | None:
    """The look of an attention, where it has one.

    >>> look_of({"name": "additive", "look": {"name": "local", "reach": 5}}), look_of("dot")
    ('local', None)
    """
    look = None if isinstance(attention, str) else attention.get("look")
    name = look.get("name") if isinstance(look, Mapping) else look
    return name if isinstance(name, str) else None
