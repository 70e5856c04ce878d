"""Settings of classification."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from recurra.config.augmentation import Augmentation
from recurra.config.bag import BagModel
from recurra.config.common import Data, Text, Training, check_layers, idle_of_stack, one_batch_size
from recurra.config.image import ImageData
from recurra.config.image_model import ImageModel
from recurra.config.tagging import SpellingModel
from recurra.config.transformer import HEADS, USUAL_CELL, check_no_cells, check_transformer, suited
from recurra.settings import Part, SettingError, at_least, name_of, rates, section, setting

MEMBERS = ("rnn", "pyramid", "transformer", "cnn", "bag")
"""What an ensemble may be made of."""

USUAL_LAYERS = {"pyramid": 3, "transformer": 2}
"""Of those that have more than one, where nothing is said."""

OF_STATES = ("last", "last_cell", "ends")
"""Summaries that are made of the states of cells."""


@dataclass(frozen=True)
class ClassificationData(Data):
    """Where texts, series or pictures and their classes come from."""

    text: Text = dataclasses.field(
        default_factory=lambda: Text(lowercase=True), metadata={"about": "what is read: a text"}
    )
    frames: str | None = setting(None, "column with a series of numbers, one or several a step, in place of a text")
    image: ImageData = section(ImageData, "pictures, in place of a text")
    label: str | None = setting(None, "column with one class; none: `label`, if there is one")
    labels: str | None = setting(None, "column with any number of classes: a list, or separated by commas or blanks")
    targets: list[str] | None = setting(None, "columns with a number to be predicted; none: `target` or `score`")
    positive: str | None = setting(None, "of two classes the one to detect; none: 1, true, yes, …, or the rarer one")
    vectors: str | None = setting(None, "file of word vectors to start from, as word2vec or GloVe writes text")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.text.check("data.text")
        read = {
            "data.text.column": self.text.column,
            "data.frames": self.frames,
            "data.image.column": self.image.column,
            "data.image.strokes": self.image.strokes,
        }
        named = [name for name, value in read.items() if value is not None]
        if len(named) > 1:
            raise SettingError(
                f"{named[0]} and {named[1]} cannot be used together: a classifier reads either text, numbers or "
                f"pictures.",
                tuple(named[1].split(".")),
            )
        given = [name for name in ("label", "labels", "targets") if getattr(self, name)]
        if len(given) > 1:
            raise SettingError(
                f"data.{given[0]} and data.{given[1]} cannot be used together: a classifier predicts one class "
                f"(label), several (labels) or numbers (targets).",
                ("data", given[1]),
            )


@dataclass(frozen=True)
class ConvolutionModel:
    """Convolutions over time, of several widths side by side."""

    widths: list[int] = setting([1, 2, 3], "steps that a filter sees; each width has filters of its own")
    filters: int = setting(512, "filters of each width")
    layers: int = setting(1, "layers")
    pooling: Literal["max", "mean"] = setting("max", "how steps become one vector")

    def __post_init__(self) -> None:
        at_least(1, "model.convolution", self, "filters", "layers")
        if not self.widths or min(self.widths) < 1:
            raise SettingError(
                f"model.convolution.widths must hold widths of at least 1, but is {self.widths}.",
                ("model", "convolution", "widths"),
            )


@dataclass(frozen=True)
class TransformerModel:
    """Layers in which all steps look at one another; model.hidden is their width, model.layers their number."""

    heads: int = setting(HEADS, "of each attention")
    feed_forward: int | None = setting(None, "inner size of a layer; none: 4 × its width")
    dropout: float = setting(0.1, "of what each part of a layer adds, anew for each step")

    def __post_init__(self) -> None:
        rates("model.transformer", self, "dropout")


@dataclass(frozen=True)
class ClassificationModel:
    """The classifier."""

    encoder: Literal["rnn", "pyramid", "transformer", "cnn", "bag", "ensemble", "image"] = setting(
        "rnn",
        "a recurrent network, one that halves the time in each layer, a Transformer, convolutions, a bag of n-grams, "
        "or members of these kinds that vote; pictures are always read by image",
    )
    embedding: int = setting(256, "size of a token's vector; 0: the spellings of words alone")
    characters: SpellingModel = section(SpellingModel, "the spelling of a word, read by a recurrent network")
    cell: Part = setting("lstm", "any cell of `recurra cells`, yours as package.module:Class, or a table with options")
    hidden: int | list[int] = setting(256, "size of each direction, or width of a Transformer; or one per layer")
    layers: int | None = setting(
        None, "layers, where hidden is one number; none: 1, of a pyramid 3, of a Transformer 2"
    )
    bidirectional: bool = setting(True, "read both ways; a Transformer's steps see those after them too")
    merge: str = setting("concat", "how two directions become one")
    skip: Literal["none", "residual", "highway"] = setting("none", "a way past the second layer and those above it")
    summary: Part = setting("max", "last, last_cell, ends, mean, max or attention, or a table with options")
    convolution: ConvolutionModel = section(ConvolutionModel, "the convolutions of encoder = cnn and ensemble")
    transformer: TransformerModel = section(TransformerModel, "the layers of encoder = transformer and ensemble")
    bag: BagModel = section(BagModel, "the n-grams of encoder = bag and ensemble")
    image: ImageModel = section(ImageModel, "the convolutions of encoder = image")
    members: list[str] = setting(["cnn", "rnn"], "of an ensemble: any number of rnn, pyramid, transformer, cnn and bag")
    share: bool = setting(False, "the members of an ensemble read words by the same vectors and spellings")
    dropout: float = setting(0.5, "of word vectors, between layers and of the summary; one mask for a whole row")
    word_dropout: float = setting(0.2, "share of tokens whose vector is that of the unknown one, in training")
    label_smoothing: float = setting(0.0, "share of the probability that is spread over all classes, in training")
    class_weights: Literal["none", "balanced"] | dict[str, float] = setting(
        "none", "balanced: each class weighs the same in all; or a table of classes and weights"
    )
    engine: str = setting("auto", "single, vendor, planned, scan or loop; auto takes the fastest that can")

    @property
    def encoders(self) -> list[str]:
        """The kind of each member; one where there is no ensemble."""
        return self.members if self.encoder == "ensemble" else [self.encoder]

    def layers_of(self, encoder: str) -> int | None:
        """How many layers a member of that kind has; None: as many as `hidden` lists, or one."""
        return USUAL_LAYERS.get(encoder) if self.layers is None and isinstance(self.hidden, int) else self.layers

    def __post_init__(self) -> None:
        at_least(0, "model", self, "embedding")
        at_least(1, "model", self, "layers")
        rates("model", self, "dropout", "word_dropout", "label_smoothing")
        check_layers(self.hidden, self.layers)
        if self.encoder == "pyramid" and self.skip != "none":
            raise SettingError(
                f"model.skip = '{self.skip}' adds what a layer reads to what it gives, but the layers of model.encoder "
                f"= 'pyramid' differ in time: leave one of them out.",
                ("model", "skip"),
            )
        self._check_transformer()
        if self.encoder == "image" and name_of(self.summary) in OF_STATES:
            raise SettingError(
                f"model.summary = '{name_of(self.summary)}' is the end of a sequence, but a picture has none: set "
                f"model.summary to mean, max or attention.",
                ("model", "summary"),
            )
        if not self.members or not {*self.members} <= {*MEMBERS}:
            raise SettingError(
                f'model.members must name {", ".join(MEMBERS[:-1])} and {MEMBERS[-1]}, as in ["cnn", "rnn"], but is '
                f"{self.members}.",
                ("model", "members"),
            )
        if isinstance(self.class_weights, dict) and any(not 0 <= w < float("inf") for w in self.class_weights.values()):
            raise SettingError(
                f"model.class_weights must be at least 0, but are {self.class_weights}.", ("model", "class_weights")
            )

    def _check_transformer(self) -> None:
        """Refuse what a Transformer cannot be or has no place for; what is as it usually is may stay."""
        if "transformer" not in self.encoders:
            for field in dataclasses.fields(self.transformer):
                if getattr(self.transformer, field.name) != field.default:
                    raise SettingError(
                        f"model.transformer.{field.name} has no effect: model.encoder = '{self.encoder}' has no "
                        f"Transformer. Leave it out.",
                        ("model", "transformer", field.name),
                    )
            return
        if name_of(self.summary) in OF_STATES:
            raise SettingError(
                f"model.summary = '{name_of(self.summary)}' needs the last state of a recurrent network, which a "
                "Transformer does not have: set model.summary to mean, max or attention.",
                ("model", "summary"),
            )
        if self.encoder == "transformer":
            usual = {"cell": USUAL_CELL, "merge": ("concat",), "skip": ("none",)}
            check_no_cells(self, usual, "model.encoder = 'transformer' has no cells")
        widths = self.hidden if isinstance(self.hidden, list) else [self.hidden]
        own = self.transformer
        check_transformer("transformer", own.heads, own.feed_forward, widths, "model.transformer", "model.hidden")


@dataclass(frozen=True)
class ClassificationDecoding:
    """From probabilities to an answer."""

    abstain: float = setting(0.0, "below this probability of the best class the answer is -, none of them")
    threshold: float = setting(0.5, "of several classes, those at least so probable are answered")
    alternatives: int = setting(5, "so many of the best classes are listed by predict --json")

    def __post_init__(self) -> None:
        rates("decoding", self, "abstain", "threshold")
        at_least(0, "decoding", self, "alternatives")


@dataclass(frozen=True)
class ClassificationSettings:
    """All settings of classification."""

    task: str = setting("classification", "what kind of problem this is")
    data: ClassificationData = section(ClassificationData, "where the examples come from")
    model: ClassificationModel = section(ClassificationModel, "the network")
    augmentation: Augmentation = section(Augmentation, "small changes of series and pictures, drawn anew in training")
    training: Training = dataclasses.field(
        default_factory=lambda: Training(
            epochs=20, batch_size=32, learning_rate=3e-3, average={"name": "ema", "decay": 0.998}
        ),
        metadata={
            "about": "how the weights are found; with a Transformer learning_rate is 0.001 and warmup 300, unless they "
            "are given"
        },
    )
    decoding: ClassificationDecoding = section(ClassificationDecoding, "from probabilities to an answer")

    @classmethod
    def usual(cls, table: Mapping[str, Any]) -> Self:
        """What holds where a table says nothing."""
        settings, model = cls(), table.get("model")
        model = model if isinstance(model, Mapping) else {}
        members = model.get("members") if model.get("encoder") == "ensemble" else None
        asked = members if isinstance(members, list) else [members or model.get("encoder")]
        return dataclasses.replace(settings, training=suited(settings.training, *asked))

    def __post_init__(self) -> None:
        if self.task != "classification" and ":" not in self.task:  # one of your own may take these settings
            raise SettingError(f"task = '{self.task}', but these are the settings of classification.", ("task",))
        one_batch_size(self.training)
        self._refuse_what_has_no_effect()
        spells = self.data.text.tokens == "words" or (
            isinstance(self.data.text.tokens, dict) and self.data.text.tokens.get("name") == "words"
        )
        spells = spells and self.model.characters.cell != "none"
        reads_text = self.data.frames is None and self.data.image.given is None
        if self.model.embedding == 0 and reads_text and not spells:
            raise SettingError(
                "model.embedding = 0 needs character embeddings instead: use words as tokens and set "
                "model.characters.cell.",
                ("model", "embedding"),
            )

    def _refuse_what_has_no_effect(self) -> None:
        """A setting for one kind of answer, given where another is wanted, is a mistake rather than nothing."""
        data = self.data
        other = "data.labels are any number of classes" if data.labels is not None else "data.targets are numbers"
        if data.labels is not None or data.targets:
            if self.decoding.abstain > 0:
                raise SettingError(
                    f"decoding.abstain is for one class, but {other}: leave it out.", ("decoding", "abstain")
                )
            if data.positive is not None:
                raise SettingError(
                    f"data.positive is for two classes, but {other}: leave it out.", ("data", "positive")
                )
        if data.targets and self.model.label_smoothing > 0:
            raise SettingError(
                "model.label_smoothing is for classes, but data.targets are numbers: leave it out.",
                ("model", "label_smoothing"),
            )

    def without_effect(self) -> dict[tuple[str, ...], str]:
        """Settings that the others leave without effect, and why. Sizes may stay, for they are often shared by runs."""
        model = self.model
        kinds = {"image"} if self.data.image.given is not None else {*model.encoders}
        read = "what reads pictures" if "image" in kinds else f"model.encoder = '{model.encoder}'"
        idle: dict[tuple[str, ...], str] = {}
        if model.encoder != "ensemble":
            idle |= {("model", name): "model.encoder is not 'ensemble'" for name in ("members", "share")}
        if not kinds & {"rnn", "pyramid", "transformer"}:
            idle |= {("model", name): f"{read} has no recurrent layers" for name in ("cell", "merge", "skip")}
        elif kinds == {"rnn"}:
            idle |= idle_of_stack(model.hidden, model.layers, bidirectional=model.bidirectional)
        return idle
