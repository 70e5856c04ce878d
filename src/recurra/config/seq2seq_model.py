"""Settings of the network of sequence to sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from recurra.config.common import check_direction, check_layers
from recurra.config.tagging import OF_STATES
from recurra.config.transformer import FORM_SETTING, HEADS, Form, check_transformer
from recurra.config.writer_model import WriterModel, look_of
from recurra.frozen import dataclass
from recurra.settings import Part, SettingError, at_least, name_of, section, setting

RECURRENT = ("rnn", "pyramid")
"""Encoders that are made of cells."""

WIDTH = 3
"""Steps that a convolution sees, where nothing is said."""


@dataclass(frozen=True)
class EncoderModel:
    """What reads the source."""

    kind: Literal["rnn", "pyramid", "transformer", "cnn", "bag", "embeddings"] = setting(
        "rnn",
        "rnn, pyramid (recurrent layers that halve the length), transformer, cnn, bag (a layer on each embedding, "
        "without order), or embeddings (as they are)",
    )
    cell: Part | None = setting(None, "none: model.cell")
    hidden: int | list[int] | None = setting(
        None,
        "hidden size of each direction; a list sets one per layer; none: chosen so that the encoder output "
        "has size model.hidden",
    )
    layers: int | None = setting(None, "number of layers; none: model.layers (pyramid 3, Transformer at least 2)")
    width: int = setting(WIDTH, "width of the convolutions, in steps")
    heads: int = setting(HEADS, "number of attention heads of a Transformer")
    feed_forward: int | None = setting(None, "feed-forward size of a Transformer; none: 4 × its width")
    form: Form = setting("pre_norm", FORM_SETTING)

    def __post_init__(self) -> None:
        at_least(1, "model.encoder", self, "layers", "width")
        if self.kind != "cnn" and self.width != WIDTH:
            raise SettingError(
                f"model.encoder.width = {self.width} has no effect: model.encoder.kind = '{self.kind}' has no "
                f"convolutions. Leave it out.",
                ("model", "encoder", "width"),
            )
        if self.hidden is not None:
            check_layers(self.hidden, self.layers, "model.encoder")


@dataclass(frozen=True)
class Seq2SeqModel(WriterModel):
    """The network."""

    embedding: int = setting(128, "size of the token embeddings, on both sides")
    hidden: int = setting(
        256, "size of the decoder and of the encoder output; each direction of the encoder has half of it"
    )
    layers: int = setting(1, "number of layers of the encoder and of the decoder")
    bidirectional: bool = setting(
        True, "the source is read in both directions; in a Transformer, steps also attend to later steps"
    )
    direction: Literal["forward", "backward"] = setting(
        "forward",
        "backward: read the source from its end, as Sutskever et al. did; with bidirectional = false",
    )
    merge: str = setting("concat", "how the two directions are combined")
    encoder: EncoderModel = section(EncoderModel, "the encoder, where it differs from [model]")
    start: Literal["last", "mean", "max", "zeros"] = setting(
        "last", "initial decoder state: last, mean or max of the encoder's states, or zeros"
    )
    bridge: Literal["auto", "identity", "map"] = setting(
        "auto",
        "how encoder states become the decoder's initial state: identity, map (a learned layer), or auto "
        "(identity if sizes agree)",
    )
    conditioning: list[str] = setting(
        [], "where a summary of the source also enters: first (input), every (input), output; default: nowhere"
    )
    summary: Part = setting(
        "last", "the summary of the source for conditioning: last, last_cell, ends, mean, max or attention"
    )
    copy: bool = setting(False, "the decoder can also copy tokens of the source, which may not be in the vocabulary")
    pointer: Part | None = setting(
        None,
        "pointer network: answers are elements of the source, named by their numbers from 1, without a vocabulary; "
        "additive, bilinear, dot, scaled_dot or projected_dot: the score by which one is chosen; none: write tokens",
    )
    tied: Literal["none", "output", "all"] = setting(
        "none",
        "output: share the weights of output and target embedding; all: also the source embedding, with data.joint",
    )
    token_dropout: float = setting(0.0, "fraction of tokens, on both sides, replaced by <unk> in training")

    def __post_init__(self) -> None:
        super().__post_init__()
        if name_of(self.attention) == "none" and self.copy:
            raise SettingError("model.copy = true needs attention, but model.attention is none.", ("model", "copy"))
        if self.decoder.kind == "ctc" and self.copy:
            raise SettingError(
                "model.copy = true needs attention, but model.decoder.kind = 'ctc' has none: leave one of them out.",
                ("model", "copy"),
            )
        if self.copy and self.steps_in_a_place > 1:
            raise SettingError(
                "model.copy = true copies single source tokens, but model.encoder.kind = 'pyramid' merges "
                f"{self.steps_in_a_place} of them into one: leave one of the two settings out.",
                ("model", "copy"),
            )
        if self.pointer is not None:
            self._check_pointer()
        if self.copy and look_of(self.attention) == "local":
            raise SettingError(
                "model.copy = true shares the probability of copying by attention weights, but those of look = 'local' "
                "need not add up to 1: leave one of them out.",
                ("model", "copy"),
            )
        if looks_around_a_grid(self.attention):
            raise SettingError(
                "model.attention has a location term with dimensions = 2, which needs a grid such as a picture, "
                "but the source is a sequence: set dimensions = 1, or leave it out.",
                ("model", "attention"),
            )
        check_direction(self.direction, bidirectional=self.bidirectional)
        own = self.encoder
        hidden = "model.hidden" if own.hidden is None else None
        check_transformer(
            own.kind, own.heads, own.feed_forward, self.encoder_widths, "model.encoder", hidden, form=own.form
        )
        if own.kind == "embeddings" and (own.hidden is not None or own.layers is not None):
            name = "hidden" if own.hidden is not None else "layers"
            raise SettingError(
                f"model.encoder.{name} = {getattr(own, name)} has no effect: model.encoder.kind = 'embeddings' has no "
                "layers. Leave it out.",
                ("model", "encoder", name),
            )
        if self.decoder.kind != "rnn":
            for name, value, usual in (("start", self.start, "last"), ("bridge", self.bridge, "auto")):
                if value != usual:
                    raise SettingError(
                        f"model.{name} = '{value}' has no effect: model.decoder.kind = '{self.decoder.kind}' has no "
                        f"state to start from. Leave it out.",
                        ("model", name),
                    )
            for name, done in (("skip", "skipped"), ("mix", "mixed")):
                if own.kind == "pyramid" and (value := getattr(self, name)) not in ("none", "last"):
                    raise SettingError(
                        f"model.{name} = '{value}' has no effect: the layers of a pyramid change the sequence "
                        f"length, so they cannot be {done}. Leave it out.",
                        ("model", name),
                    )
        elif self.encoder.kind not in RECURRENT and self.start == "last":
            raise SettingError(
                f"model.encoder.kind = '{self.encoder.kind}' has no last state to start the decoder from: set "
                f"model.start = 'mean', 'max' or 'zeros'.",
                ("model", "start"),
            )
        if self.encoder.kind not in RECURRENT and self.encoder.cell is not None:
            raise SettingError(
                f"model.encoder.cell = '{name_of(self.encoder.cell)}' has no effect: model.encoder.kind = "
                f"'{self.encoder.kind}' has no cells. Leave one of them out.",
                ("model", "encoder", "cell"),
            )
        if self.encoder.kind not in RECURRENT and self.merge != "concat":
            raise SettingError(
                f"model.merge = '{self.merge}' has no effect: model.encoder.kind = '{self.encoder.kind}' has no "
                f"directions to merge. Leave it out.",
                ("model", "merge"),
            )
        if self.encoder.kind not in RECURRENT and self.direction != "forward":
            raise SettingError(
                f"model.direction = '{self.direction}' has no effect: model.encoder.kind = '{self.encoder.kind}' reads "
                f"all steps at once. Leave it out.",
                ("model", "direction"),
            )
        if self.start == "zeros" and self.bridge != "auto":
            raise SettingError(
                f"model.bridge = '{self.bridge}' has no effect: with model.start = 'zeros' no state is passed to "
                "the decoder. Leave it out.",
                ("model", "bridge"),
            )
        of_states = name_of(self.summary) in OF_STATES
        if self.encoder.kind not in RECURRENT and self.conditioning and of_states:
            raise SettingError(
                f"model.summary = '{name_of(self.summary)}' needs a recurrent encoder, but model.encoder.kind = "
                f"'{self.encoder.kind}': set model.summary = 'mean', 'max' or 'attention'.",
                ("model", "summary"),
            )
        if not self.conditioning and self.summary != "last":
            raise SettingError(
                f"model.summary = {self.summary!r} has no effect: model.conditioning is empty. Set that, as in "
                '["every"], or leave it out.',
                ("model", "summary"),
            )

    def _check_pointer(self) -> None:
        """Refuse what an answer of elements of the source has no place for."""
        if self.decoder.kind == "ctc":
            raise SettingError(
                "model.pointer needs a decoder that chooses elements, but model.decoder.kind = 'ctc' has none: leave "
                "one of them out.",
                ("model", "pointer"),
            )
        if self.copy:
            raise SettingError(
                "model.pointer writes elements of the source alone, and model.copy = true writes tokens beside them: "
                "leave one of the two settings out.",
                ("model", "copy"),
            )
        if self.steps_in_a_place > 1:
            raise SettingError(
                "model.pointer chooses single elements of the source, but model.encoder.kind = 'pyramid' merges "
                f"{self.steps_in_a_place} of them into one: leave one of the two settings out.",
                ("model", "pointer"),
            )
        if self.tied != "none":
            raise SettingError(
                f"model.tied = '{self.tied}' has no effect: with model.pointer there is no matrix of the output to "
                "share. Leave it out.",
                ("model", "tied"),
            )

    @property
    def has_cells(self) -> bool:
        """Whether there are layers of cells, on either side."""
        return super().has_cells or self.encoder.kind in RECURRENT

    @property
    def sees_outputs(self) -> bool:
        """Whether the decoder sees more of a recurrent encoder than its states."""
        pools = bool(self.conditioning) and name_of(self.summary) not in OF_STATES
        return self.attends or self.pointer is not None or pools or self.decoder.kind == "ctc"

    @property
    def steps_in_a_place(self) -> int:
        """So many steps of the source become one place of the memory."""
        return 2 ** (len(self.encoder_widths) - 1) if self.encoder.kind == "pyramid" else 1

    @property
    def encoder_widths(self) -> tuple[int, ...]:
        """The size of each layer of the encoder, in each direction."""
        own = self.encoder
        if isinstance(own.hidden, list):
            return tuple(own.hidden)
        two = self.bidirectional and self.merge == "concat" and own.kind in RECURRENT
        usual = {"pyramid": 3, "transformer": max(2, self.layers)}  # one layer of a Transformer is far behind two
        layers = own.layers or usual.get(own.kind, self.layers)
        return (own.hidden or max(1, self.hidden // 2 if two else self.hidden),) * layers


def looks_around_a_grid(attention: Part) -> bool:
    """Whether some part of an attention is only for places in rows and columns.

    >>> looks_around_a_grid({"name": "additive", "location": {"dimensions": 2}})
    True
    """
    if isinstance(attention, str):
        return False
    terms = attention.get("terms")
    parts = [attention.get("location"), *(terms if isinstance(terms, list) else [])]
    return any(isinstance(part, Mapping) and part.get("dimensions") == 2 for part in parts)
