"""Settings of language models over text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from recurra.config.common import (
    Data,
    ForcedTraining,
    Idle,
    Text,
    check_layers,
    idle_forcing,
    idle_without_validation,
    one_batch_size,
)
from recurra.config.share import FilePart
from recurra.config.transformer import FORM_SETTING, HEADS, USUAL_CELL, Form, check_no_cells, check_transformer, suited
from recurra.errors import DataError
from recurra.frozen import dataclass
from recurra.settings import Part, SettingError, at_least, name_of, rates, section, setting

TEXT_FILES = (".txt", ".text", ".txt.gz", ".text.gz", ".txt.zst", ".text.zst")

USUAL = {"rnn": (512, 2), "transformer": (256, 4)}
"""Size of a layer and number of layers, where nothing is said: about as many weights."""

CONTEXT = 256
WEIGHT_DROP = 0.2
"""The usual share of recurrent weights that is dropped."""


@dataclass(frozen=True)
class LanguageModelData(Data):
    """Where the text comes from; a folder stands for all text files in it."""

    text: Text = dataclasses.field(
        default_factory=lambda: Text(tokens="characters"), metadata={"about": "the text and its tokenization"}
    )
    independent: bool = setting(False, "every line is a separate text; no state is carried to the next line")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.text.check("data.text")

    def files(self, which: str) -> list[str]:
        """The files of train, valid or test, those of folders among them in the order of their names."""
        return text_files(super().files(which))


def text_files(paths: list[str]) -> list[str]:
    """Paths in which a folder is replaced by the text files in it and in folders in it, in the order of their names."""
    found: list[str] = []
    for path in paths:
        if not Path(path).is_dir():
            found.append(path)
            continue
        inside = sorted(str(file) for file in Path(path).rglob("*") if file.name.lower().endswith(TEXT_FILES))
        if isinstance(path, FilePart):
            inside = [path.like(file) for file in inside]
        if not inside:
            raise DataError(f"the folder {path} contains no text files (names that end in {', '.join(TEXT_FILES)}).")
        found += inside
    return found


@dataclass(frozen=True)
class LanguageModelDecoder:
    """What reads the tokens so far."""

    kind: Literal["rnn", "transformer"] = setting("rnn", "rnn (recurrent cells) or transformer")
    heads: int = setting(HEADS, "number of attention heads of a Transformer")
    feed_forward: int | None = setting(None, "feed-forward size of a Transformer; none: 4 × its width")
    form: Form = setting("pre_norm", FORM_SETTING)
    context: int | None = setting(
        CONTEXT, "previous tokens that a Transformer attends to; none: all, only with data.independent"
    )

    def __post_init__(self) -> None:
        at_least(1, "model.decoder", self, "context")
        if self.kind != "transformer" and self.context != CONTEXT:
            raise SettingError(
                f"model.decoder.context = {'none' if self.context is None else self.context} has no effect: "
                f"model.decoder.kind = '{self.kind}' has a recurrent state instead of a context window. Leave it "
                "out.",
                ("model", "decoder", "context"),
            )


@dataclass(frozen=True)
class LanguageModelModel:
    """The network."""

    decoder: LanguageModelDecoder = section(LanguageModelDecoder, "the network over the previous tokens")
    embedding: int = setting(128, "size of the token embeddings")
    cell: Part = setting(
        "lstm", "any cell listed by `recurra cells`, your own as package.module:Class, or a table with options"
    )
    hidden: int | list[int] | None = setting(
        None, "hidden size; a list sets one per layer; none: 512 (Transformer 256)"
    )
    layers: int | None = setting(None, "number of layers, if hidden is one number; none: 2 (Transformer 4)")
    direction: Literal["forward", "backward"] = setting("forward", "backward: read the text from its end")
    bidirectional: bool = setting(False, "must be false: a bidirectional model would see the token it predicts")
    mix: Literal["last", "concat", "mean", "learned"] = setting(
        "last", "output of the stack: its last layer, or the concat, mean or learned weighted mean of all layers"
    )
    skip: Literal["none", "residual", "highway"] = setting(
        "none", "skip connections around the second and later layers"
    )
    token_dropout: float = setting(0.1, "fraction of token embeddings set to zero in training")
    embedding_dropout: float = setting(0.0, "fraction of the vocabulary whose embeddings are zero for a whole batch")
    input_dropout: float = setting(0.0, "dropout on token embeddings; one mask per row")
    dropout: float = setting(
        0.3, "dropout between layers, one mask per row; in a Transformer, on each sublayer, a new mask at each step"
    )
    weight_drop: float | None = setting(
        None,
        "dropout on the recurrent weights U (DropConnect), one mask per batch; none: 0.2, or 0 if the cell has no U",
    )
    output_dropout: float = setting(0.3, "dropout on the last layer; one mask per row")
    activation_regularization: float = setting(0.0, "α: adds α mean(h²) to the loss; h is the last layer after dropout")
    temporal_regularization: float = setting(0.0, "β: adds β mean((h_t − h_t+1)²) to the loss; h is the last layer")
    output: Part = setting("softmax", "softmax, adaptive_softmax or mixture_of_softmaxes, or a table with options")
    tied: bool = setting(False, "share weights of output and embedding; the last layer must have the same size")
    engine: str = setting(
        "auto", "single, vendor, planned, scan or loop; auto selects the fastest that supports the cell"
    )

    def __post_init__(self) -> None:
        at_least(1, "model", self, "embedding", "layers")
        at_least(0, "model", self, "activation_regularization", "temporal_regularization")
        rates("model", self, "token_dropout", "embedding_dropout", "input_dropout", "dropout", "output_dropout")
        if self.weight_drop is not None:
            rates("model", self, "weight_drop")
        if self.hidden is not None:
            check_layers(self.hidden, self.layers)
        widths = self.widths
        if self.bidirectional:
            raise SettingError(
                "model.bidirectional = true is not possible here: a bidirectional language model has already seen "
                "the token it should predict. Train two, one with model.direction = 'backward', and add their "
                "scores.",
                ("model", "bidirectional"),
            )
        self._check_decoder()
        if self.weight_drop and self.cell_drops_weights:
            raise SettingError(
                "weight_drop is set twice, by model.weight_drop and in model.cell. To keep the one in model.cell, "
                "set model.weight_drop = 0.",
                ("model", "weight_drop"),
            )
        if self.tied and name_of(self.output) == "softmax" and self.mix == "concat" and len(widths) > 1:
            raise SettingError(
                "model.tied = true shares one matrix between embedding and output, so both must have the same size, "
                f"but model.mix = 'concat' gives the output all layers ({' + '.join(map(str, widths))} units): set "
                "model.mix to mean or learned, or model.tied = false.",
                ("model", "tied"),
            )
        if self.tied and name_of(self.output) == "softmax" and widths[-1] != self.embedding:
            first = list(widths[:-1]) or [widths[-1]]
            raise SettingError(
                "model.tied = true shares one matrix between embedding and output, so the embedding "
                f"({self.embedding}) and the last layer ({widths[-1]}) must have the same size. Set "
                f"model.embedding = {widths[-1]}, or model.hidden = {[*first, self.embedding]}.",
                ("model", "tied"),
            )

    def _check_decoder(self) -> None:
        """Refuse what a Transformer cannot be, or has no place for; what is as it usually is may stay."""
        own = self.decoder
        if own.kind == "transformer":
            usual = {
                "cell": USUAL_CELL,
                "mix": ("last",),
                "skip": ("none",),
                "weight_drop": (None, 0, WEIGHT_DROP),
                "engine": ("auto",),
            }
            check_no_cells(self, usual, "model.decoder.kind = 'transformer' has no cells")
        check_transformer(
            own.kind, own.heads, own.feed_forward, self.widths, "model.decoder", "model.hidden", form=own.form
        )

    @property
    def cell_drops_weights(self) -> bool:
        """Whether model.cell has weight drop of its own."""
        return not isinstance(self.cell, str) and "weight_drop" in str(self.cell.get("wrap"))

    @property
    def widths(self) -> tuple[int, ...]:
        """The size of each layer."""
        size, layers = USUAL[self.decoder.kind]
        if isinstance(self.hidden, list):
            return tuple(self.hidden)
        return (size if self.hidden is None else self.hidden,) * (self.layers or layers)


@dataclass(frozen=True)
class LanguageModelReading:
    """How a running text is read in training: by truncated back-propagation through time."""

    steps: int = setting(100, "truncated backpropagation: tokens per stream in a batch")
    vary_steps: bool = setting(
        True, "draw the number of tokens at random for each batch, around `steps` or sometimes half of it"
    )
    carry: float = setting(1.0, "probability that the state is carried into the next batch instead of being reset")

    def __post_init__(self) -> None:
        at_least(1, "reading", self, "steps")
        if not 0 <= self.carry <= 1:
            raise SettingError(f"reading.carry must lie between 0 and 1, but is {self.carry}.", ("reading", "carry"))


@dataclass(frozen=True)
class LanguageModelEvaluation:
    """How a text is scored."""

    manner: Literal["carried", "windowed", "last_word"] = setting(
        "carried",
        "carried: the state is kept through the whole text; windowed: it is reset in each window; last_word: "
        "only the last word of each line, read by itself, is predicted, as in LAMBADA",
    )
    streams: int = setting(32, "carried: number of parts of the text that are read in parallel")
    window: int = setting(256, "windowed: tokens per window; carried: context tokens before each part")
    stride: int = setting(64, "windowed: tokens from the start of one window to the start of the next")
    cache: float = setting(
        0.0,
        "last_word: share λ of the probability that a cache gives to the words of the passage, those that followed "
        "where the network's state was alike; 0: none",
    )
    cache_sharpness: float = setting(0.3, "θ: how much more the cache gives to a word for a state that is more alike")

    def __post_init__(self) -> None:
        at_least(1, "evaluation", self, "streams", "window", "stride")
        at_least(0, "evaluation", self, "cache_sharpness")
        rates("evaluation", self, "cache")
        if self.cache and self.manner != "last_word":
            raise SettingError(
                f"evaluation.cache = {self.cache:g} has no effect: only evaluation.manner = 'last_word' has a cache of "
                f"the words of a passage, and evaluation.manner = '{self.manner}'. Leave evaluation.cache out.",
                ("evaluation", "cache"),
            )


@dataclass(frozen=True)
class LanguageModelDecoding:
    """How a text is written, unless `recurra generate` is told otherwise."""

    temperature: float = setting(1.0, "below 1 less random, above 1 more random; 0: always the most probable token")
    top_k: int | None = setting(None, "draw from this many of the most probable tokens")
    top_p: float | None = setting(None, "draw from the smallest set of tokens with this total probability")
    max_length: int = setting(500, "maximum number of tokens of a text")

    def __post_init__(self) -> None:
        at_least(0, "decoding", self, "temperature")
        at_least(1, "decoding", self, "top_k", "max_length")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise SettingError(
                f"decoding.top_p must be above 0 and at most 1, but is {self.top_p}.", ("decoding", "top_p")
            )


@dataclass(frozen=True)
class LanguageModelSettings:
    """All settings of language models over text."""

    task: str = setting("language_model", "the task")
    data: LanguageModelData = section(LanguageModelData, "the data")
    model: LanguageModelModel = section(LanguageModelModel, "the network")
    reading: LanguageModelReading = section(LanguageModelReading, "how continuous text is read in training")
    training: ForcedTraining = dataclasses.field(
        default_factory=lambda: ForcedTraining(
            epochs=20,
            batch_size=64,
            optimizer={"name": "adamw", "weight_decay": 0.1},
            learning_rate=2e-3,
            clip=1.0,
            average={"name": "ema", "decay": 0.998},
        ),
        metadata={
            "about": "training; batch_size is the number of parallel streams; with a Transformer, the defaults of "
            "learning_rate and warmup are 0.001 and 300"
        },
    )
    evaluation: LanguageModelEvaluation = section(LanguageModelEvaluation, "how a text is scored")
    decoding: LanguageModelDecoding = section(LanguageModelDecoding, "how text is generated")

    @classmethod
    def usual(cls, table: Mapping[str, Any]) -> Self:
        """What holds where a table says nothing."""
        settings, model = cls(), table.get("model")
        asked = model.get("decoder") if isinstance(model, Mapping) else None
        return dataclasses.replace(settings, training=suited(settings.training, asked))

    def without_effect(self) -> Idle:
        """Settings that the others leave without effect, and why."""
        idle = idle_without_validation(self.data) | idle_forcing(self.training)
        if self.model.decoder.kind == "rnn" and len(self.model.widths) == 1:
            idle["model", "dropout"] = "it lies between layers, and there is one"
            idle |= {("model", name): "there is only one layer" for name in ("mix", "skip")}
        if self.data.independent:
            why = "data.independent = true reads each line by itself, whole"
            idle |= {("reading", name): why for name in ("vary_steps", "carry")}
            idle |= {("evaluation", name): why for name in ("streams", "window", "stride")}
        elif self.evaluation.manner == "last_word":
            why = "evaluation.manner = 'last_word' reads each line by itself, whole"
            idle |= {("evaluation", name): why for name in ("streams", "window", "stride")}
        elif self.evaluation.manner == "windowed":
            idle["evaluation", "streams"] = "evaluation.manner = 'windowed' reads windows, not parallel parts"
        else:
            idle["evaluation", "stride"] = "evaluation.manner = 'carried' has no windows that move by it"
        if not self.evaluation.cache:
            idle["evaluation", "cache_sharpness"] = "evaluation.cache = 0 leaves the cache out"
        if self.decoding.temperature == 0:
            why = "decoding.temperature = 0 always takes the most probable token"
            idle |= {("decoding", name): why for name in ("top_k", "top_p")}
        return idle

    def __post_init__(self) -> None:
        if self.task != "language_model" and ":" not in self.task:  # one of your own may take these settings
            raise SettingError(f"task = '{self.task}', but these are the settings of language_model.", ("task",))
        text = self.data.text
        if name_of(text.tokens) == "subwords" and (text.min_count > 1 or text.max_size is not None):
            wrong = "min_count" if text.min_count > 1 else "max_size"
            raise SettingError(
                f"data.text.{wrong} has no effect on subwords: set the size of their vocabulary by "
                f"data.text.tokens = {{name = 'subwords', size = …}}. Leave data.text.{wrong} out.",
                ("data", "text", wrong),
            )
        one_batch_size(self.training)
        if self.data.independent and self.evaluation.manner == "windowed":
            raise SettingError(
                "evaluation.manner = 'windowed' is for continuous text, but with data.independent = true each "
                "line is scored separately. Leave evaluation.manner out.",
                ("evaluation", "manner"),
            )
        if self.evaluation.manner == "last_word" and self.model.direction == "backward":
            raise SettingError(
                "evaluation.manner = 'last_word' predicts the last word from those before it, but model.direction = "
                "'backward' reads the last word first. Leave evaluation.manner out, or train a forward model.",
                ("evaluation", "manner"),
            )
        if not self.data.independent and self.model.decoder.context is None:
            raise SettingError(
                "model.decoder.context = none keeps all previous tokens, which needs unlimited memory on "
                "continuous text. Set a number, or set data.independent = true to start anew at each line.",
                ("model", "decoder", "context"),
            )
        if not self.data.independent and self.training.batch_size is None:
            raise SettingError(
                "training.batch_size must be a number: continuous text is read as that many parallel streams. "
                "training.batch_tokens works only with data.independent = true.",
                ("training", "batch_size"),
            )
