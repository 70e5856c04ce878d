"""Settings of vector to sequence."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

from recurra.config.augmentation import Augmentation
from recurra.config.common import Data, Text, one_batch_size
from recurra.config.image import ImageData
from recurra.config.image_model import ImageModel
from recurra.config.seq2seq import Seq2SeqDecoding, Seq2SeqEvaluation, Seq2SeqTraining, check_forcing
from recurra.config.writer_model import WriterModel
from recurra.settings import Part, SettingError, at_least, name_of, section, setting


@dataclass(frozen=True)
class Vec2SeqData(Data):
    """Where the examples come from: a vector, a picture or features of places, and the text to be written of it."""

    vector: list[str] | None = setting(None, "columns that make a vector, or one that holds it; none: as they look")
    frames: str | None = setting(None, "column with features of places to attend to, S × F numbers or H × W × F")
    image: ImageData = section(ImageData, "pictures, in place of a vector")
    target: Text = dataclasses.field(default_factory=lambda: Text(tokens="auto"), metadata={"about": "what is written"})
    max_length: int | None = setting(None, "an example with a longer target is left out of training, which is said")

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, "data", self, "max_length")
        self.target.check("data.target")
        given = {
            "data.vector": self.vector,
            "data.frames": self.frames,
            "data.image.column": self.image.column,
            "data.image.strokes": self.image.strokes,
        }
        named = [name for name, value in given.items() if value is not None]
        if len(named) > 1:
            raise SettingError(
                f"{named[0]} and {named[1]} cannot be used together: the input is either a vector, a list of feature "
                f"vectors or a picture.",
                tuple(named[1].split(".")),
            )


@dataclass(frozen=True)
class GivenModel:
    """What a vector, or the features of each place, go through first."""

    layers: int = setting(1, "layers of tanh(W x + b); 0: they stay as they are")
    hidden: int | None = setting(None, "their size; none: model.hidden")

    def __post_init__(self) -> None:
        at_least(0, "model.encoder", self, "layers")
        at_least(1, "model.encoder", self, "hidden")


@dataclass(frozen=True)
class Vec2SeqModel(WriterModel):
    """The network."""

    PLACES: ClassVar[tuple[str, ...]] = ("initial", "first", "every", "output")

    attention: Part = setting(
        "auto",
        "what looks at a picture or at places: additive, bilinear, dot, scaled_dot, projected_dot or none, or a table "
        "with options and terms; auto: none for a vector, projected_dot otherwise",
    )
    encoder: GivenModel = section(GivenModel, "what a vector, or each place, goes through first")
    image: ImageModel = section(ImageModel, "the convolutions that read a picture")
    conditioning: list[str] = setting(
        ["initial"],
        "where the vector, or the mean over all places, enters: initial (state), first, every (inputs), output",
    )
    direct: bool = setting(False, "initial and first take it as it is, where sizes agree; false: by a learned map")
    label_smoothing: float | None = setting(
        None,
        "share of the probability that is spread over all tokens, in training; none: 0 for a vector, which has many "
        "right answers whose likelihood counts, 0.1 otherwise",
    )
    tied: Literal["none", "output"] = setting("none", "output: its weights are the target's embedding")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.direct and not {*self.conditioning} & {"initial", "first"}:
            raise SettingError(
                f"model.direct = true has no effect: model.conditioning = {self.conditioning} has neither initial nor "
                f"first. Leave it out.",
                ("model", "direct"),
            )

    @property
    def bridge(self) -> Literal["direct", "map"]:
        """How a vector becomes the decoder's first states."""
        return "direct" if self.direct else "map"


@dataclass(frozen=True)
class Vec2SeqSettings:
    """All settings of vector to sequence."""

    task: str = setting("vec2seq", "what kind of problem this is")
    data: Vec2SeqData = section(Vec2SeqData, "where the examples come from")
    model: Vec2SeqModel = section(Vec2SeqModel, "the network")
    augmentation: Augmentation = section(Augmentation, "small changes of what is given, drawn anew in training")
    training: Seq2SeqTraining = dataclasses.field(
        default_factory=lambda: Seq2SeqTraining(
            epochs=60, batch_size=64, learning_rate=2e-3, clip=1.0, average={"name": "ema", "decay": 0.998}
        ),
        metadata={"about": "how the weights are found"},
    )
    evaluation: Seq2SeqEvaluation = section(Seq2SeqEvaluation, "how answers are scored")
    decoding: Seq2SeqDecoding = dataclasses.field(
        default_factory=lambda: Seq2SeqDecoding(max_ratio=None), metadata={"about": "from a model to an answer"}
    )

    def __post_init__(self) -> None:
        if self.task != "vec2seq" and ":" not in self.task:  # one of your own may take these settings
            raise SettingError(f"task = '{self.task}', but these are the settings of vec2seq.", ("task",))
        one_batch_size(self.training)
        check_forcing(self.model, self.training)
        if self.decoding.coverage_penalty and name_of(self.model.attention) == "none":
            raise SettingError(
                "decoding.coverage_penalty uses attention weights, but model.attention is none: leave it out.",
                ("decoding", "coverage_penalty"),
            )
        if self.decoding.max_ratio is not None:
            raise SettingError(
                "decoding.max_ratio limits answers by the length of the source, but a vector or picture has no "
                "length: set "
                "decoding.max_length.",
                ("decoding", "max_ratio"),
            )
