"""Settings of classification."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, Self

from recurra.config.augmentation import Augmentation
from recurra.config.bag import BagModel
from recurra.config.common import (
    Data,
    Idle,
    Text,
    Training,
    check_direction,
    check_layers,
    idle_of_stack,
    idle_of_words,
    idle_section,
    idle_without_validation,
    one_batch_size,
)
from recurra.config.convolution import NON_LOCAL_SETTING, ConvolutionModel
from recurra.config.image import ImageData
from recurra.config.image_model import ImageModel
from recurra.config.tagging import NOT_SPELT, OF_STATES, SpellingModel, idle_of_spelling
from recurra.config.transformer import (
    USUAL_CELL,
    TransformerModel,
    check_no_cells,
    check_transformer,
    idle_transformer,
    suited,
)
from recurra.frozen import dataclass
from recurra.settings import Part, SettingError, at_least, name_of, rates, section, setting

MEMBERS = ("rnn", "pyramid", "transformer", "cnn", "bag")
"""What an ensemble may be made of."""

USUAL_LAYERS = {"pyramid": 3, "transformer": 2}
"""Of those that have more than one, where nothing is said."""

SIZES = {
    "image": "model.image sets its sizes",
    "cnn": "model.convolution sets its sizes",
    "bag": "model.bag sets its sizes",
}
"""Where the sizes of encoders without a stack of layers are set."""


USUAL_PAIRING = "siamese"

WITHOUT_CELLS = "decomposable"
"""The pairing that has recurrent layers only where its option `read` is set."""


@dataclass(frozen=True)
class ClassificationData(Data):
    """Where texts, series or pictures and their classes come from."""

    text: Text = dataclasses.field(default_factory=lambda: Text(lowercase=True), metadata={"about": "the input text"})
    second: str | None = setting(
        None,
        "column with a second text, such as a hypothesis or a question, that is read together with data.text by "
        "model.pairing",
    )
    frames: str | None = setting(
        None, "column with a series of numbers, one or several per step, as input instead of text"
    )
    missing: Literal["refuse", "mean"] = setting(
        "refuse",
        "mean: read a missing number of a series (null) as the mean of training; model.cell = gru_d is told so",
    )
    image: ImageData = section(ImageData, "pictures as input instead of text")
    label: str | None = setting(None, "column with one class; none: `label`, if there is one")
    labels: str | None = setting(None, "column with any number of classes: a list, or separated by commas or blanks")
    targets: list[str] | None = setting(None, "columns with numbers to predict; none: `target` or `score`")
    leave_out: list[str] = setting([], 'classes whose rows are left out, such as "-" for no majority in SNLI')
    positive: str | None = setting(None, "with two classes, the one to detect; none: 1, true, yes, …, or the rarer one")
    vectors: str | None = setting(
        None,
        "file with pretrained word vectors: the text format of word2vec or GloVe, or fastText's binary format (.bin)",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.text.check("data.text")
        read = {
            "data.text": self.text.column,
            "data.frames": self.frames,
            "data.image": self.image.column,
            "data.image.strokes": self.image.strokes,
        }
        named = [name for name, value in read.items() if value is not None]
        if len(named) > 1:
            raise SettingError(
                f"{named[0]} and {named[1]} cannot be used together: a classifier reads either text, numbers or "
                f"pictures.",
                ("data", "image", "column") if named[1] == "data.image" else tuple(named[1].split(".")),
            )
        if self.second is not None and named and named[0] != "data.text":
            raise SettingError(
                f"data.second is a second text, but the input is {named[0]}: leave one of them out.", ("data", "second")
            )
        if self.second is not None and self.second == self.text.column:
            raise SettingError(
                f"data.second = '{self.second}' is the column of data.text too: name the column of the other text.",
                ("data", "second"),
            )
        given = [name for name in ("label", "labels", "targets") if getattr(self, name)]
        if len(given) > 1:
            raise SettingError(
                f"data.{given[0]} and data.{given[1]} cannot be used together: a classifier predicts one class "
                f"(label), several (labels) or numbers (targets).",
                ("data", given[1]),
            )


@dataclass(frozen=True)
class ClassificationModel:
    """The classifier."""

    encoder: Literal["rnn", "pyramid", "transformer", "cnn", "bag", "ensemble", "image"] = setting(
        "rnn",
        "recurrent network, pyramid (halves the length in each layer), Transformer, CNN, bag of n-grams, or an "
        "ensemble of these; pictures always use image",
    )
    embedding: int = setting(256, "size of the token embeddings; 0: only character-based word embeddings")
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
        8.0, "gigabytes of disk for the features of the training data; if they need more, each epoch computes them"
    )
    cell: Part = setting(
        "lstm", "any cell listed by `recurra cells`, your own as package.module:Class, or a table with options"
    )
    hidden: int | list[int] = setting(
        256, "hidden size of each direction, or width of a Transformer; a list sets one per layer"
    )
    layers: int | None = setting(None, "number of layers, if hidden is one number; none: 1 (pyramid 3, Transformer 2)")
    bidirectional: bool = setting(True, "read in both directions; in a Transformer, steps also attend to later steps")
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
    summary: Part = setting(
        "max",
        "how the sequence becomes one vector: last, last_cell, ends, mean, max or attention, or a table with options",
    )
    pairing: Part = setting(
        USUAL_PAIRING,
        "how two texts (data.second) are read together: siamese, conditional, word_by_word, decomposable, attentive or "
        "impatient, or a table with options",
    )
    candidates: Literal["all", "text"] = setting(
        "all", "classes that can be answered: all; or text: only those whose names occur in data.text"
    )
    non_local: Part = setting("none", NON_LOCAL_SETTING)
    convolution: ConvolutionModel = section(ConvolutionModel, "the convolutions of encoder = cnn and ensemble")
    transformer: TransformerModel = section(TransformerModel, "the layers of encoder = transformer and ensemble")
    bag: BagModel = section(BagModel, "the n-grams of encoder = bag and ensemble")
    image: ImageModel = section(ImageModel, "the convolutions of encoder = image")
    members: list[str] = setting(
        ["cnn", "rnn"], "members of an ensemble: any number of rnn, pyramid, transformer, cnn and bag"
    )
    share: bool = setting(False, "the members of an ensemble share their word embeddings")
    dropout: float = setting(0.5, "dropout on embeddings, between layers and on the summary; one mask per row")
    word_dropout: float = setting(0.2, "fraction of tokens that are replaced by <unk> in training")
    label_smoothing: float = setting(0.0, "fraction of the target probability spread over all classes in training")
    class_weights: Literal["none", "balanced"] | dict[str, float] = setting(
        "none", "balanced: every class has the same total weight; or a table of classes and weights"
    )
    engine: str = setting(
        "auto", "single, vendor, planned, scan or loop; auto selects the fastest that supports the cell"
    )

    @property
    def encoders(self) -> list[str]:
        """The kind of each member; one where there is no ensemble."""
        return self.members if self.encoder == "ensemble" else [self.encoder]

    def layers_of(self, encoder: str) -> int | None:
        """How many layers a member of that kind has; None: as many as `hidden` lists, or one."""
        return USUAL_LAYERS.get(encoder) if self.layers is None and isinstance(self.hidden, int) else self.layers

    def __post_init__(self) -> None:
        at_least(0, "model", self, "embedding", "features_layer", "features_disk")
        at_least(1, "model", self, "layers")
        rates("model", self, "dropout", "word_dropout", "label_smoothing")
        check_layers(self.hidden, self.layers)
        check_direction(self.direction, bidirectional=self.bidirectional)
        if self.encoder == "pyramid":
            uses = {"skip": "adds the input of a layer to its output", "mix": "combines the outputs of all layers"}
            for name, use in uses.items():
                if (value := getattr(self, name)) not in ("none", "last"):
                    raise SettingError(
                        f"model.{name} = '{value}' {use}, but the layers of model.encoder = 'pyramid' change the "
                        "sequence length: leave one of the two settings out.",
                        ("model", name),
                    )
        self._check_transformer()
        if self.encoder == "image" and name_of(self.summary) in OF_STATES:
            raise SettingError(
                f"model.summary = '{name_of(self.summary)}' needs a sequence, but a picture is not one: set "
                "model.summary to mean, max or attention.",
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
            idle_transformer(self.transformer, self.encoder)
            return
        if name_of(self.summary) in OF_STATES:
            raise SettingError(
                f"model.summary = '{name_of(self.summary)}' needs the last state of a recurrent network, which a "
                "Transformer does not have: set model.summary to mean, max or attention.",
                ("model", "summary"),
            )
        if self.encoder == "transformer":
            usual = {
                "cell": USUAL_CELL,
                "direction": ("forward",),
                "merge": ("concat",),
                "mix": ("last",),
                "skip": ("none",),
            }
            check_no_cells(self, usual, "model.encoder = 'transformer' has no cells")
        widths = self.hidden if isinstance(self.hidden, list) else [self.hidden]
        own = self.transformer
        check_transformer("transformer", own.heads, own.feed_forward, widths, "model.transformer", "model.hidden")


@dataclass(frozen=True)
class ClassificationDecoding:
    """From probabilities to an answer."""

    abstain: float = setting(0.0, "if the best class is less probable than this, the answer is - (none of the classes)")
    threshold: float = setting(0.5, "with data.labels: classes with at least this probability are predicted")
    alternatives: int = setting(5, "number of best classes listed by predict --json")

    def __post_init__(self) -> None:
        rates("decoding", self, "abstain", "threshold")
        at_least(0, "decoding", self, "alternatives")


@dataclass(frozen=True)
class ClassificationSettings:
    """All settings of classification."""

    task: str = setting("classification", "the task")
    data: ClassificationData = section(ClassificationData, "the data")
    model: ClassificationModel = section(ClassificationModel, "the network")
    augmentation: Augmentation = section(Augmentation, "random changes of series and pictures in training")
    training: Training = dataclasses.field(
        default_factory=lambda: Training(
            epochs=20, batch_size=32, learning_rate=3e-3, average={"name": "ema", "decay": 0.998}
        ),
        metadata={"about": "training; with a Transformer, the defaults of learning_rate and warmup are 0.001 and 300"},
    )
    decoding: ClassificationDecoding = section(ClassificationDecoding, "how probabilities become an answer")

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
        if self.model.embedding == 0 and reads_text and not spells and not self.model.features:
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
                    f"decoding.abstain works only where one class is predicted, but {other}: leave it out.",
                    ("decoding", "abstain"),
                )
            if data.positive is not None:
                raise SettingError(
                    f"data.positive works only with two classes, but {other}: leave it out.", ("data", "positive")
                )
        self._refuse_pairs()
        if self.model.candidates == "text":
            why = None
            if data.targets or data.labels is not None:
                why = f"one class is predicted, but {other}"
            elif data.frames is not None or data.image.given is not None:
                why = "a text is read, but data.text is not"
            elif self.model.label_smoothing > 0:
                why = "model.label_smoothing is 0: it spreads probability over all classes"
            if why is not None:
                raise SettingError(
                    f"model.candidates = 'text' works only where {why}. Leave one of the two settings out.",
                    ("model", "candidates"),
                )
        if data.targets and self.model.label_smoothing > 0:
            raise SettingError(
                "model.label_smoothing works only with classes, but data.targets are numbers: leave it out.",
                ("model", "label_smoothing"),
            )

    def _refuse_pairs(self) -> None:
        """Refuse an encoder that cannot read two texts."""
        if self.data.second is None:
            return
        model, name = self.model, name_of(self.model.pairing)
        if name == USUAL_PAIRING and model.encoder in ("bag", "ensemble", "image"):
            raise SettingError(
                f"model.encoder = '{model.encoder}' cannot read two texts (data.second): set model.encoder to rnn, "
                "pyramid, transformer or cnn.",
                ("model", "encoder"),
            )
        if name != USUAL_PAIRING and model.encoder != "rnn":
            raise SettingError(
                f"model.encoder = '{model.encoder}' reads one text at a time, which only model.pairing = "
                f"'{USUAL_PAIRING}' does, but that is '{name}': leave one of the two settings out.",
                ("model", "encoder"),
            )

    def _idle_of_pairs(self) -> Idle:
        """Settings of a pairing where there is one text, and what a pairing has no use for."""
        data, pairing = self.data, self.model.pairing
        read = data.text.column or data.frames or data.image.given
        if data.second is None:
            return {} if read is None else {("model", "pairing"): "there is no second text (data.second)"}
        name = name_of(pairing)
        if name == USUAL_PAIRING:
            return {}
        idle: Idle = {("model", "summary"): f"model.pairing = '{name}' has a vector of its own"}
        if name == WITHOUT_CELLS and not (isinstance(pairing, dict) and pairing.get("read")):
            layers = ("cell", "hidden", "layers", "bidirectional", "direction", "merge", "mix", "skip")
            why = f"model.pairing = '{name}' has recurrent layers only with its option read = true"
            idle |= {("model", each): why for each in layers}
        return idle

    def without_effect(self) -> Idle:
        """Settings that the others leave without effect, and why."""
        model = self.model
        kinds = {"image"} if self.data.image.given is not None else {*model.encoders}
        read = "what reads pictures" if "image" in kinds else f"model.encoder = '{model.encoder}'"
        idle = idle_without_validation(self.data)
        if model.encoder != "ensemble":
            idle |= {("model", name): "model.encoder is not 'ensemble'" for name in ("members", "share")}
        elif len(model.members) - model.members.count("bag") < 2 or self.data.frames is not None:
            idle["model", "share"] = "no two members have word embeddings"
        if "cnn" not in kinds:
            idle |= idle_section(model.convolution, ("model", "convolution"), f"{read} has no convolutions over time")
        if "bag" not in kinds:
            idle |= idle_section(model.bag, ("model", "bag"), f"{read} has no bag of n-grams")
        if not kinds - {"image", "bag"}:
            idle["model", "non_local"] = f"{read} does not read steps one after the other"
        elif self.data.second is not None:
            idle["model", "non_local"] = "two texts (data.second) are read by model.pairing"
        if not kinds - {"cnn", "bag"}:
            idle["model", "summary"] = f"{read} sums up a text in a way of its own"
        idle |= self._idle_of_pairs()
        return idle | self._idle_of_layers(kinds, read) | self._idle_of_input(kinds) | self._idle_of_answer()

    def _idle_of_layers(self, kinds: set[str], read: str) -> Idle:
        """Settings of recurrent layers and of a Transformer, where there are none of these."""
        model, cells = self.model, kinds & {"rnn", "pyramid"}
        idle: Idle = {}
        if not cells and "transformer" not in kinds:
            sizes = " and ".join(SIZES[kind] for kind in SIZES if kind in kinds)
            idle |= {("model", name): f"{read} has no recurrent layers; {sizes}" for name in ("hidden", "layers")}
        if not cells:
            names = ("cell", "direction", "merge", "mix", "skip")
            idle |= {("model", name): f"{read} has no recurrent layers" for name in names}
            if not self._spells(kinds):
                idle["model", "engine"] = f"{read} has no recurrent layers"
        elif not model.bidirectional:
            idle["model", "merge"] = "model.bidirectional = false leaves only one direction"
        if cells == {"rnn"}:
            idle |= idle_of_stack(model.hidden, model.layers)
            idle |= self._idle_of_states()
        return idle

    def _idle_of_states(self) -> Idle:
        """What of a stack's outputs nobody sees, where its last state stands for a whole text."""
        model, pairing = self.model, self.model.pairing
        layers = len(model.hidden) if isinstance(model.hidden, list) else model.layers or 1
        if name_of(pairing) == "conditional":
            look = "none" if isinstance(pairing, str) else name_of(pairing.get("attention", "none"))
            why = "model.pairing = 'conditional' without attention takes the last layer's state"
            is_of_states = look == "none"
        else:
            why = f"model.summary = '{name_of(model.summary)}' takes the last layer's state"
            is_of_states = name_of(pairing) == USUAL_PAIRING and name_of(model.summary) in OF_STATES
        if not is_of_states or layers == 1 or model.encoder != "rnn":
            return {}
        idle: Idle = {("model", "mix"): f"{why}, not what a mix makes of the layers' outputs"}
        if layers == 2:
            idle["model", "skip"] = (
                f"{why}, and there is no third layer to see what is added to the second one's output"
            )
        return idle

    def _spells(self, kinds: set[str]) -> bool:
        """Whether words are read by their characters."""
        reads = self.data.image.given is None and self.data.frames is None and kinds != {"bag"}
        return reads and name_of(self.data.text.tokens) == "words" and self.model.characters.cell != "none"

    def _idle_of_input(self, kinds: set[str]) -> Idle:
        """Settings of words, spellings and pictures, where the inputs are said to be something else.

        Where nothing is said, the columns of the data decide.
        """
        model, data = self.model, self.data
        idle: Idle = {}
        if not model.features:
            idle |= {("model", name): "model.features is empty" for name in ("features_layer", "features_disk")}
        if data.text.column is not None or data.image.given is not None:
            idle["data", "missing"] = "the inputs are no series of numbers (data.frames)"
        if data.vectors is None:
            idle["model", "freeze_embedding"] = "there are no vectors to keep: set data.vectors"
        if data.text.column is not None or data.frames is not None:
            why = "the inputs are texts (data.text)" if data.frames is None else "the inputs are numbers (data.frames)"
            idle |= idle_section(data.image, ("data", "image"), f"{why}, not pictures")
            idle |= idle_section(model.image, ("model", "image"), f"{why}, not pictures")
        if data.image.column is not None:
            why = "pictures are read from files, and no strokes are drawn"
            idle |= {("data", "image", name): why for name in ("stroke", "thickness")}
        if data.image.given is not None or data.frames is not None:
            why = "the inputs are " + ("pictures (data.image)" if data.frames is None else "numbers (data.frames)")
            idle |= idle_of_words(where=("data", "text"), why=f"{why}, not words")
            idle |= idle_of_spelling(f"{why}, not words", cell=True)
        elif kinds == {"bag"}:
            why = "model.encoder = 'bag' has vectors of its own, of size model.bag.size"
            idle |= {("model", name): why for name in ("embedding", "word_dropout")} | idle_of_spelling(why, cell=True)
        elif not self._spells(kinds):
            tokens = name_of(data.text.tokens)
            not_words = f"data.text.tokens = '{tokens}' are not words with characters of their own"
            idle |= idle_of_spelling(NOT_SPELT) if tokens == "words" else idle_of_spelling(not_words, cell=True)
        elif model.embedding == 0:
            idle["model", "word_dropout"] = "model.embedding = 0 leaves words without vectors"
        return idle

    def _idle_of_answer(self) -> Idle:
        """Settings of decoding that are for other kinds of answers."""
        if self.data.targets:
            why = "the targets are numbers (data.targets), not classes"
            return {("data", "leave_out"): why, **idle_section(self.decoding, ("decoding",), why)}
        if self.data.label is not None:
            return {("decoding", "threshold"): "each input has one class (data.label), not several"}
        if self.data.labels is not None:
            return {("data", "leave_out"): "each input has any number of classes (data.labels)"}
        return {}
