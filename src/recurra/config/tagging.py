"""Settings of tagging."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, Self

from recurra.config.common import (
    Data,
    Idle,
    Training,
    check_direction,
    check_layers,
    idle_batch_tokens,
    idle_of_stack,
    idle_section,
    idle_without_validation,
)
from recurra.config.convolution import NON_LOCAL_SETTING, StepConvolutionModel
from recurra.config.transformer import (
    USUAL_CELL,
    TransformerModel,
    check_no_cells,
    check_transformer,
    idle_transformer,
    suited,
)
from recurra.frozen import dataclass
from recurra.named import did_you_mean
from recurra.settings import Part, SettingError, at_least, name_of, rates, section, setting

OF_STATES = ("last", "last_cell", "ends")
"""Summaries that are made of the states of cells."""

NOT_SPELT = "model.characters.cell is 'none', so words are not read by their characters"


@dataclass(frozen=True)
class TaggingData(Data):
    """Where sentences and their tags come from."""

    tokens: str | None = setting(None, "column with the words; none: `tokens` or `text`")
    frames: str | None = setting(None, "column with rows of numbers, one per step, as input instead of words")
    tags: list[str] | None = setting(
        None,
        "columns with one tag per element; feats:Case is one key of a column of Key=Value pairs, feats:* each of them; "
        "none: `upos` of CoNLL-U or `tags`",
    )
    edits: list[str] | None = setting(
        None, "those of data.tags that are learned as edits of the words, as lemmas are; none: `lemma`"
    )
    scheme: Literal["bio", "bioes", "iob1"] | None = setting(
        None, "read tags of spans in this scheme, whichever of the three they are written in; none: as they are"
    )
    values: list[str] | None = setting(None, "columns with one number per element, to predict instead of tags")
    label: str | None = setting(None, "column with one label for the whole; none: `label`, if there is one")
    lowercase: bool = setting(True, "lower-case words for word embeddings; character embeddings keep case")
    min_count: int = setting(1, "words that occur less often become <unk>; their characters are still read")
    max_words: int | None = setting(None, "maximum number of word embeddings; the most frequent words are kept")
    vectors: str | None = setting(
        None,
        "file with pretrained word vectors: the text format of word2vec or GloVe, or fastText's binary format (.bin)",
    )
    raw: bool | None = setting(
        None,
        "also learn to find tokens and sentences in raw text, for `recurra predict --raw`; none: if the training data "
        "is CoNLL-U",
    )
    cut: Literal["blanks", "signs"] | None = setting(
        None,
        "how a text to tag is cut into tokens: at blanks, or also around each sign that is no letter or digit; none: "
        "as spans that are marked in texts are (signs), else at blanks",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, "data", self, "min_count", "max_words")
        if self.tokens is not None and self.frames is not None:
            raise SettingError(
                "data.tokens and data.frames cannot be used together: a tagger reads either words or numbers.",
                ("data", "frames"),
            )
        for name in self.tags or ():
            if (self.tags or ()).count(name) > 1:
                raise SettingError(f"data.tags names '{name}' twice. Name each column once.", ("data", "tags"))
        for name in self.edits or ():
            if self.tags is not None and name not in self.tags:
                raise SettingError(
                    f"data.edits names '{name}', which is not in data.tags. {did_you_mean(name, self.tags)}",
                    ("data", "edits"),
                )
        if self.edits and self.frames is not None:
            raise SettingError(
                "data.edits are edits of words, but data.frames reads numbers. Leave one of them out.",
                ("data", "edits"),
            )
        if self.tags and self.values:
            raise SettingError(
                "data.tags and data.values cannot be used together: a tagger predicts either labels or numbers.",
                ("data", "values"),
            )
        if self.scheme is not None and self.values:
            raise SettingError("data.scheme is for tags of spans, but data.values holds numbers.", ("data", "scheme"))
        if self.cut is not None and self.frames is not None:
            raise SettingError("data.cut cuts text into words, but data.frames holds numbers.", ("data", "cut"))
        if self.raw and self.frames is not None:
            raise SettingError("data.raw = true needs words, but data.frames holds numbers.", ("data", "raw"))


@dataclass(frozen=True)
class SplitterModel:
    """What finds tokens and sentences in raw text, by its characters."""

    cell: Part = dataclasses.field(
        default_factory=lambda: {"name": "gru", "reset": "after"}, metadata={"about": "cell of the character network"}
    )
    embedding: int = setting(64, "size of the character embeddings")
    hidden: int = setting(64, "size of each direction")
    layers: int = setting(1, "layers")
    dropout: float = setting(0.1, "dropout on inputs, between layers and on outputs; one mask per row")

    def __post_init__(self) -> None:
        at_least(1, "model.splitter", self, "embedding", "hidden", "layers")
        rates("model.splitter", self, "dropout")


@dataclass(frozen=True)
class SpellingModel:
    """How the characters of a word become a vector."""

    cell: Part = setting("lstm", "cell of the character network; none: only word embeddings")
    embedding: int = setting(64, "size of the character embeddings")
    hidden: int = setting(150, "size of each direction")
    layers: int = setting(1, "layers")

    def __post_init__(self) -> None:
        at_least(1, "model.characters", self, "embedding", "hidden", "layers")


def idle_of_spelling(why: str, *, cell: bool = False) -> Idle:
    """Settings of spellings that are not read; the cell too, unless it is what says so."""
    return idle_section(SpellingModel(), ("model", "characters"), why, but=() if cell else ("cell",))


@dataclass(frozen=True)
class TaggingModel:
    """The tagger."""

    encoder: Literal["rnn", "cnn", "transformer"] = setting(
        "rnn", "what reads the elements: a recurrent network, convolutions over time, or a Transformer (self-attention)"
    )
    embedding: int = setting(128, "size of the word embeddings; 0: only character-based embeddings")
    freeze_embedding: bool = setting(
        False, "keep the vectors of data.vectors as they are; words without one are read as zeros"
    )
    characters: SpellingModel = section(SpellingModel, "character-based word embeddings from a recurrent network")
    features: list[str] = setting(
        [],
        "runs of language models over characters whose states become features of words: one, or a forward and a "
        "backward one",
    )
    features_layer: int = setting(0, "size of a linear layer over the features; 0: no such layer")
    features_disk: float = setting(
        8.0,
        "gigabytes of disk for the features of the training data; if they need more, each epoch computes them",
    )
    splitter: SplitterModel = section(SplitterModel, "what finds tokens and sentences in raw text (data.raw)")
    cell: Part = setting(
        "lstm", "any cell listed by `recurra cells`, your own as package.module:Class, or a table with options"
    )
    hidden: int | list[int] = setting(
        256, "hidden size of each direction, or width of a Transformer; a list sets one per layer"
    )
    layers: int | None = setting(None, "number of layers, if hidden is one number; none: 1 (Transformer 2)")
    bidirectional: bool = setting(True, "read both ways; in a Transformer, steps also attend to later steps")
    direction: Literal["forward", "backward"] = setting(
        "forward", "backward: read the sequence from the end; with bidirectional = false"
    )
    merge: str = setting("concat", "how the two directions are combined")
    mix: Literal["last", "concat", "mean", "learned"] = setting(
        "last", "output of the stack: its last layer, or the concat, mean or learned weighted mean of all layers"
    )
    skip: Literal["none", "residual", "highway"] = setting(
        "none", "skip connections around the second and later layers"
    )
    convolution: StepConvolutionModel = section(StepConvolutionModel, "the convolutions of encoder = cnn")
    transformer: TransformerModel = section(TransformerModel, "the layers of encoder = transformer")
    non_local: Part = setting("none", NON_LOCAL_SETTING)
    dropout: float = setting(0.5, "dropout on inputs, between layers and on outputs; one mask per row")
    word_dropout: float = setting(0.3, "fraction of words replaced by <unk> in training")
    head: Part = setting(
        "auto",
        "softmax or crf, or a table with its options; auto: for each column, crf where tags mark spans or are few, "
        "else softmax",
    )
    heads: dict[str, Part] = setting(
        {}, "the heads of columns that have another one than model.head, by their names: {lemma = 'softmax'}"
    )
    together: list[str] = setting(
        [],
        "columns of tags that are chosen as one, such as ['upos', 'xpos', 'feats']: only combinations of training are "
        "answered; their heads are softmax",
    )
    loss_weights: dict[str, float] = setting(
        {}, "weights of columns in the loss, by their names: {lemma = 2.0}; 1 where none is given"
    )
    summary: Part = setting("max", "pooling over time, for the label of the whole sequence: max, mean, last, …")
    label_weight: float = setting(1.0, "weight of the label of the whole sequence in the loss")
    engine: str = setting(
        "auto", "single, vendor, planned, scan or loop; auto selects the fastest that supports the cell"
    )

    def __post_init__(self) -> None:
        at_least(0, "model", self, "embedding", "label_weight", "features_layer", "features_disk")
        at_least(1, "model", self, "layers")
        rates("model", self, "dropout", "word_dropout")
        for name, weight in self.loss_weights.items():
            if not 0 <= weight < float("inf"):
                raise SettingError(
                    f"model.loss_weights: the weight of '{name}' must be at least 0, but is {weight!r}.",
                    ("model", "loss_weights", name),
                )
        check_layers(self.hidden, self.layers)
        check_direction(self.direction, bidirectional=self.bidirectional)
        if self.encoder != "rnn" and name_of(self.summary) in OF_STATES:
            raise SettingError(
                f"model.summary = '{name_of(self.summary)}' needs the last state of a recurrent network, which "
                f"model.encoder = '{self.encoder}' does not have: set model.summary to mean, max or attention.",
                ("model", "summary"),
            )
        if self.encoder != "transformer":
            idle_transformer(self.transformer, self.encoder)
            return
        usual = {
            "cell": USUAL_CELL,
            "direction": ("forward",),
            "merge": ("concat",),
            "mix": ("last",),
            "skip": ("none",),
        }
        check_no_cells(self, usual, "model.encoder = 'transformer' has no cells")
        own = self.transformer
        check_transformer("transformer", own.heads, own.feed_forward, self.widths, "model.transformer", "model.hidden")

    @property
    def widths(self) -> list[int]:
        """The size of each layer of a Transformer."""
        return self.hidden if isinstance(self.hidden, list) else [self.hidden] * (self.layers or 2)


@dataclass(frozen=True)
class TaggingEvaluation:
    """How a tagger is scored."""

    raw: bool = setting(
        False, "score from raw text: tokens and sentences are found first, and words are compared where they agree"
    )


@dataclass(frozen=True)
class TaggingDecoding:
    """How answers are written."""

    scheme: Literal["bio", "bioes", "iob1"] | None = setting(
        None, "write tags of spans in this scheme, whichever the run has learned; none: as it has learned them"
    )


@dataclass(frozen=True)
class TaggingSettings:
    """All settings of tagging."""

    task: str = setting("tagging", "the task")
    data: TaggingData = section(TaggingData, "the data")
    model: TaggingModel = section(TaggingModel, "the network")
    training: Training = dataclasses.field(
        default_factory=lambda: Training(
            epochs=20, batch_tokens=500, learning_rate=4e-3, average={"name": "ema", "decay": 0.998}
        ),
        metadata={"about": "training"},
    )
    evaluation: TaggingEvaluation = section(TaggingEvaluation, "evaluation")
    decoding: TaggingDecoding = section(TaggingDecoding, "how answers are written")

    @classmethod
    def usual(cls, table: Mapping[str, Any]) -> Self:
        """What holds where a table says nothing."""
        settings, model = cls(), table.get("model")
        asked = model.get("encoder") if isinstance(model, Mapping) else None
        return dataclasses.replace(settings, training=suited(settings.training, asked))

    def __post_init__(self) -> None:
        if self.task != "tagging" and ":" not in self.task:  # one of your own may take these settings
            raise SettingError(f"task = '{self.task}', but these are the settings of tagging.", ("task",))
        if self.model.features and self.data.frames is not None:
            raise SettingError(
                "model.features are features of words, but the inputs are numbers (data.frames): leave one of the two "
                "settings out.",
                ("model", "features"),
            )
        is_blind = self.model.embedding == 0 and self.model.characters.cell == "none" and not self.model.features
        if is_blind and self.data.frames is None:
            raise SettingError(
                "model.embedding = 0 and model.characters.cell = 'none' disable both word and character embeddings. "
                "Enable one of them.",
                ("model", "embedding"),
            )

    def _idle_of_encoder(self) -> Idle:
        model = self.model
        idle: Idle = {}
        if model.encoder == "rnn":
            idle |= idle_of_stack(model.hidden, model.layers, bidirectional=model.bidirectional)
        else:
            why = f"model.encoder = '{model.encoder}' has no recurrent layers"
            idle |= {("model", name): why for name in ("cell", "direction", "merge", "mix", "skip")}
            if model.characters.cell == "none" or self.data.frames is not None:
                idle["model", "engine"] = why
        if model.encoder == "cnn":
            idle |= {("model", name): "model.convolution sets its sizes" for name in ("hidden", "layers")}
            idle["model", "bidirectional"] = "convolutions see both sides of a step"
        else:
            idle |= idle_section(model.convolution, ("model", "convolution"), f"model.encoder is '{model.encoder}'")
        return idle

    def without_effect(self) -> Idle:
        """Settings that the others leave without effect, and why."""
        idle = self._idle_of_encoder()
        idle |= idle_batch_tokens(self.training) | idle_without_validation(self.data)
        if self.data.vectors is None:
            idle["model", "freeze_embedding"] = "there are no vectors to keep: set data.vectors"
        if not self.model.features:
            idle |= {("model", name): "model.features is empty" for name in ("features_layer", "features_disk")}
        if self.model.embedding == 0:
            idle["model", "word_dropout"] = "model.embedding = 0 leaves words without vectors"
        if self.model.characters.cell == "none":
            idle |= idle_of_spelling(NOT_SPELT)
        if self.data.frames is not None:
            why = "the inputs are numbers (data.frames), not words"
            idle |= {("data", name): why for name in ("lowercase", "min_count", "max_words", "vectors")}
            idle |= {("model", name): why for name in ("embedding", "freeze_embedding", "word_dropout")}
            idle |= idle_of_spelling(why, cell=True)
        if not self.data.raw and self.data.raw is not None:
            idle |= idle_section(self.model.splitter, ("model", "splitter"), "data.raw is false")
        if self.data.values and self.model.head != "crf":  # which was the usual head, and stands in saved settings
            idle["model", "head"] = "the targets are numbers (data.values), not tags"
        return idle
