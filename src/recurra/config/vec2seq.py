"""Settings of vector to sequence."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

from recurra.config.augmentation import Augmentation
from recurra.config.common import Data, Idle, Text, idle_section, idle_without_validation, one_batch_size
from recurra.config.image import ImageData
from recurra.config.image_model import ImageModel
from recurra.config.seq2seq import (
    Seq2SeqDecoding,
    Seq2SeqEvaluation,
    Seq2SeqTraining,
    check_doubly_stochastic,
    check_forcing,
    check_no_elements,
    idle_of_search,
    idle_of_writer,
    idle_of_writing,
)
from recurra.config.writer_model import WriterModel, look_of
from recurra.frozen import dataclass
from recurra.settings import Part, SettingError, at_least, name_of, section, setting


@dataclass(frozen=True)
class Vec2SeqData(Data):
    """Where the examples come from: a vector, a picture or features of places, and the text to be written of it."""

    vector: list[str] | None = setting(None, "columns that form the vector, or one column with lists; none: detected")
    frames: str | None = setting(None, "column with features of places to attend to, of shape S × F or H × W × F")
    image: ImageData = section(ImageData, "pictures as input instead of a vector")
    target: Text = dataclasses.field(default_factory=lambda: Text(tokens="auto"), metadata={"about": "the target"})
    max_length: int | None = setting(None, "training examples with a longer target are left out, with a notice")

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, "data", self, "max_length")
        self.target.check("data.target")
        given = {
            "data.vector": self.vector,
            "data.frames": self.frames,
            "data.image": self.image.column,
            "data.image.strokes": self.image.strokes,
        }
        named = [name for name, value in given.items() if value is not None]
        if len(named) > 1:
            raise SettingError(
                f"{named[0]} and {named[1]} cannot be used together: the input is either a vector, a list of feature "
                f"vectors or a picture.",
                ("data", "image", "column") if named[1] == "data.image" else tuple(named[1].split(".")),
            )


@dataclass(frozen=True)
class GivenModel:
    """What a vector, or the features of each place, go through first."""

    layers: int = setting(1, "number of layers tanh(W x + b); 0: none")
    hidden: int | None = setting(None, "size of these layers; none: model.hidden")

    def __post_init__(self) -> None:
        at_least(0, "model.encoder", self, "layers")
        at_least(1, "model.encoder", self, "hidden")


@dataclass(frozen=True)
class Vec2SeqModel(WriterModel):
    """The network."""

    PLACES: ClassVar[tuple[str, ...]] = ("initial", "first", "every", "output")

    attention: Part = setting(
        "auto",
        "attention over a picture or places: additive, bilinear, dot, scaled_dot, projected_dot or none, or a "
        "table with options and terms; auto: none for a vector, projected_dot otherwise",
    )
    encoder: GivenModel = section(GivenModel, "layers applied to the vector, or to each place")
    image: ImageModel = section(ImageModel, "the convolutions that read a picture")
    conditioning: list[str] = setting(
        ["initial"],
        "where the vector (or the mean over places) enters the decoder: initial (state), first (input), every "
        "(input), output",
    )
    direction: Literal["forward", "backward"] = setting(
        "forward", "backward: write the target from its end, and turn answers round again"
    )
    direct: bool = setting(
        False, "use the vector directly as state or first input, if sizes agree; false: through a learned layer"
    )
    starts: list[str] | None = setting(
        None,
        "the states that begin from the vector with conditioning = initial: h, c (the cell state of an LSTM) or both; "
        "none: h and c through a learned layer, h with direct = true",
    )
    label_smoothing: float | None = setting(
        None,
        "label smoothing: fraction of the target probability spread over all tokens; none: 0 for a vector, else 0.1",
    )
    tied: Literal["none", "output"] = setting("none", "output: share the weights of output and target embedding")

    def __post_init__(self) -> None:
        if self.decoder.kind == "window":
            raise SettingError(
                "model.decoder.kind = 'window' reads texts, and only seq2seq has it: set 'rnn' or 'transformer'.",
                ("model", "decoder", "kind"),
            )
        if self.decoder.kind == "ctc":
            raise SettingError(
                "model.decoder.kind = 'ctc' reads a sequence step by step, but vec2seq reads a vector or a picture: "
                "use the task seq2seq with data.frames.",
                ("model", "decoder", "kind"),
            )
        super().__post_init__()
        if self.direct and not {*self.conditioning} & {"initial", "first"}:
            raise SettingError(
                f"model.direct = true has no effect: model.conditioning = {self.conditioning} has neither initial nor "
                f"first. Leave it out.",
                ("model", "direct"),
            )

        if self.starts is not None and "initial" not in self.conditioning:
            raise SettingError(
                f"model.starts = {self.starts} has no effect: model.conditioning = {self.conditioning} has no initial. "
                "Leave it out.",
                ("model", "starts"),
            )
        if self.starts is not None and not (self.starts and {*self.starts} <= {"h", "c"}):
            raise SettingError(
                f'model.starts must name h, c or both, as in ["c"], but is {self.starts}.', ("model", "starts")
            )

    @property
    def started(self) -> list[str] | None:
        return self.starts

    @property
    def writes_backward(self) -> bool:
        """What is read has no order, so that direction is that of the one sequence there is, as of a language model."""
        return (self.decoder.direction or self.direction) == "backward"

    @property
    def bridge(self) -> Literal["direct", "map"]:
        """How a vector becomes the decoder's first states."""
        return "direct" if self.direct else "map"


@dataclass(frozen=True)
class Vec2SeqSettings:
    """All settings of vector to sequence."""

    task: str = setting("vec2seq", "the task")
    data: Vec2SeqData = section(Vec2SeqData, "the data")
    model: Vec2SeqModel = section(Vec2SeqModel, "the network")
    augmentation: Augmentation = section(Augmentation, "random changes of the inputs in training")
    training: Seq2SeqTraining = dataclasses.field(
        default_factory=lambda: Seq2SeqTraining(
            epochs=60, batch_size=64, learning_rate=2e-3, clip=1.0, average={"name": "ema", "decay": 0.998}
        ),
        metadata={"about": "training"},
    )
    evaluation: Seq2SeqEvaluation = section(Seq2SeqEvaluation, "how answers are scored")
    decoding: Seq2SeqDecoding = dataclasses.field(
        default_factory=lambda: Seq2SeqDecoding(max_ratio=None), metadata={"about": "how answers are searched"}
    )

    def without_effect(self) -> Idle:
        """Settings that the others leave without effect, and why."""
        model, image = self.model, self.data.image
        own, written = model.encoder, model.decoder
        reads_numbers = bool(self.data.vector) or self.data.frames is not None
        dropout = 0.0 if reads_numbers else model.image.dropout
        idle = idle_of_search(self.decoding, generates=True) | idle_of_writing(self.training, self.decoding)
        idle |= idle_of_writer(model, self.augmentation, (model.cell, written.cell, model.image.rows), dropout)
        idle |= idle_without_validation(self.data)
        if written.layers is not None or isinstance(written.hidden, list):
            idle["model", "layers"] = "model.decoder has a number of layers of its own"
        if written.kind == "rnn" and written.cell is not None:
            idle["model", "cell"] = "model.decoder.cell is the decoder's cell"
        if written.hidden is not None and (image.given is not None or own.layers == 0 or own.hidden is not None):
            idle["model", "hidden"] = "no layer takes its size from it; model.decoder.hidden is that of the decoder"
        if written.direction is not None:
            idle["model", "direction"] = "model.decoder.direction is the order in which the target is written"
        if own.layers == 0:
            idle["model", "encoder", "hidden"] = "model.encoder.layers = 0 leaves no layer of this size"
        if model.decoder.kind == "rnn" and len(model.decoder_widths) == 1:
            idle["model", "skip"] = "there is one layer, and a way past the second and those above it needs more"
            idle["model", "mix"] = "there is one layer, and nothing to mix"
        if reads_numbers:
            what = "vectors (data.vector)" if self.data.vector else "places (data.frames)"
            why = f"the inputs are {what}, not pictures"
            idle |= idle_section(image, ("data", "image"), why) | idle_section(model.image, ("model", "image"), why)
        if image.given is not None:
            idle |= idle_section(model.encoder, ("model", "encoder"), "pictures are read by model.image")
        if image.column is not None:
            why = "pictures are read from files, and no strokes are drawn"
            idle |= {("data", "image", name): why for name in ("stroke", "thickness")}
        return idle

    def __post_init__(self) -> None:
        if self.task != "vec2seq" and ":" not in self.task:  # one of your own may take these settings
            raise SettingError(f"task = '{self.task}', but these are the settings of vec2seq.", ("task",))
        one_batch_size(self.training)
        check_forcing(self.model, self.training)
        check_no_elements(self.decoding, self.evaluation)
        check_doubly_stochastic(self.model, self.training)
        if look_of(self.model.attention) == "local" and self.data.image.given is not None:
            raise SettingError(
                "model.attention has look = 'local', which needs a sequence, but places of a picture have rows and "
                "columns: leave the look out.",
                ("model", "attention"),
            )
        if self.decoding.coverage_penalty and name_of(self.model.attention) == "none":
            raise SettingError(
                "decoding.coverage_penalty uses attention weights, but model.attention is none: remove the penalty.",
                ("decoding", "coverage_penalty"),
            )
        if self.decoding.search == "path":
            raise SettingError(
                "decoding.search = 'path' takes the most probable alignment of CTC, which vec2seq has not: use "
                "'greedy' or 'beam'.",
                ("decoding", "search"),
            )
        if self.decoding.max_ratio is not None:
            raise SettingError(
                "decoding.max_ratio limits answers by the length of the source, but a vector or picture has no "
                "length: set "
                "decoding.max_length.",
                ("decoding", "max_ratio"),
            )
