"""Settings of sequence to sequence."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from recurra.config.common import Data, Text, Training, check_layers, one_batch_size
from recurra.forcing import Forcing
from recurra.settings import Part, SettingError, at_least, name_of, rates, section, setting

BATCH_TOKENS = 2000

CONTEXTS_WITH_A_CHOICE = ("outside", "between")
"""Where attention may look from the state before or after a step."""


@dataclass(frozen=True)
class Seq2SeqData(Data):
    """Where the pairs come from: tables, or two parallel files as in "train.en,train.de".

    A table without names has a source, a target and perhaps features, in this order. tokens = "auto" looks at the first
    pairs: single words are cut into characters, pronunciations (K AE T) into symbols, and all else into subwords, or
    into words where there are fewer than 5,000 pairs.
    """

    source: Text = dataclasses.field(default_factory=lambda: Text(tokens="auto"), metadata={"about": "what is read"})
    target: Text = dataclasses.field(default_factory=lambda: Text(tokens="auto"), metadata={"about": "what is written"})
    frames: str | None = setting(None, "column with a series of numbers, one or several a step, in place of a text")
    features: list[str] | None = setting(
        None, "columns of features or a language, each value a symbol of its own before the source"
    )
    joint: bool = setting(False, "one vocabulary, and one set of subwords, for both sides")
    max_length: int | None = setting(
        None, "a training pair with a longer side is left out, which is said; none: all are kept"
    )

    def __post_init__(self) -> None:
        at_least(1, "data", self, "max_length")
        if self.frames is not None and self.source.column is not None:
            raise SettingError(
                "data.source.column and data.frames exclude each other: the source is a text or numbers.",
                ("data", "frames"),
            )
        if self.frames is not None and self.joint:
            raise SettingError(
                "data.joint = true makes one vocabulary for both sides, but data.frames are numbers: leave it out.",
                ("data", "joint"),
            )


@dataclass(frozen=True)
class EncoderModel:
    """What reads the source."""

    kind: Literal["rnn", "cnn", "bag"] = setting(
        "rnn", "a recurrent network, convolutions, or each token by itself, without order"
    )
    cell: Part | None = setting(None, "none: model.cell")
    hidden: int | list[int] | None = setting(
        None, "size of each direction; or one per layer; none: so that the memory is as wide as model.hidden"
    )
    layers: int | None = setting(None, "none: model.layers")
    width: int = setting(3, "steps that a convolution sees")

    def __post_init__(self) -> None:
        at_least(1, "model.encoder", self, "layers", "width")
        if self.hidden is not None:
            check_layers(self.hidden, self.layers)


@dataclass(frozen=True)
class DecoderModel:
    """What writes the target."""

    cell: Part | None = setting(None, "none: model.cell")
    hidden: int | list[int] | None = setting(None, "size of a layer; or one per layer; none: model.hidden")
    layers: int | None = setting(None, "none: model.layers, but two where the context is between layers")

    def __post_init__(self) -> None:
        at_least(1, "model.decoder", self, "layers")
        if self.hidden is not None:
            check_layers(self.hidden, self.layers)


@dataclass(frozen=True)
class Seq2SeqModel:
    """The network."""

    embedding: int = setting(128, "size of a token's vector, on both sides")
    cell: Part = setting("lstm", "any cell of `recurra cells`, yours as package.module:Class, or a table with options")
    hidden: int = setting(256, "size of the decoder and of the memory; each direction of the encoder has half of it")
    layers: int = setting(1, "layers of the encoder and of the decoder")
    bidirectional: bool = setting(True, "the source is read both ways")
    merge: str = setting("concat", "how two directions become one")
    skip: Literal["none", "residual", "highway"] = setting("none", "a way past the second layer and those above it")
    encoder: EncoderModel = section(EncoderModel, "what reads the source, where it differs")
    decoder: DecoderModel = section(DecoderModel, "what writes the target, where it differs")
    attention: Part = setting(
        "bilinear", "additive, bilinear, dot, scaled_dot, projected_dot or none, or a table with options and terms"
    )
    context: Literal["outside", "between", "inside", "feeding", "conditional"] = setting(
        "outside", "where attention meets the decoder; the last three train step by step"
    )
    query: Literal["previous", "current"] | None = setting(
        None, "attention looks from the state before or after a step; none: what the context asks for"
    )
    start: Literal["last", "mean", "max", "zeros"] = setting(
        "last", "what of the encoder's states the decoder starts from"
    )
    bridge: Literal["auto", "identity", "map"] = setting(
        "auto", "how they become its states: as they are, or by a learned map; auto: as they are where sizes agree"
    )
    conditioning: list[str] = setting(
        [], "where a summary of the source enters besides: first, every (inputs), output; none of them by default"
    )
    summary: Part = setting("last", "that summary: last, last_cell, ends, mean, max or attention")
    copy: bool = setting(False, "the output may also point at a token of the source and write that")
    tied: Literal["none", "output", "all"] = setting(
        "none", "output: its weights are the target's embedding; all: the source's embedding too, with data.joint"
    )
    dropout: float = setting(0.25, "of the memory, between layers and before the output")
    embedding_dropout: float | None = setting(None, "of token vectors; none: as dropout")
    locked: bool = setting(False, "one mask for a whole row")
    token_dropout: float = setting(0.0, "share of the tokens, on both sides, that are read as the unknown one")
    label_smoothing: float = setting(0.1, "share of the probability that is spread over all tokens, in training")
    engine: str = setting("auto", "single, vendor, planned, scan or loop; auto takes the fastest that can")

    def __post_init__(self) -> None:
        at_least(1, "model", self, "embedding", "hidden", "layers")
        rates("model", self, "dropout", "token_dropout", "label_smoothing")
        if self.embedding_dropout is not None:
            rates("model", self, "embedding_dropout")
        if not {*self.conditioning} <= {"first", "every", "output"}:
            raise SettingError(
                f'model.conditioning must name first, every and output, as in ["every", "output"], but is '
                f"{self.conditioning}.",
                ("model", "conditioning"),
            )
        attends = name_of(self.attention) != "none"
        if not attends and self.context != "outside":
            raise SettingError(
                f"model.context = '{self.context}' says where attention meets the decoder, but model.attention is "
                f"none: leave one of them out.",
                ("model", "context"),
            )
        if not attends and self.copy:
            raise SettingError("model.copy = true points by attention, but model.attention is none.", ("model", "copy"))
        if self.query is not None and (not attends or self.context not in CONTEXTS_WITH_A_CHOICE):
            why = "there is no attention" if not attends else f"context = '{self.context}' has its own query"
            raise SettingError(f"model.query = '{self.query}' has no effect: {why}. Leave it out.", ("model", "query"))
        if self.context == "between" and self.decoder_widths == self.decoder_widths[:1]:
            raise SettingError(
                "model.context = 'between' puts attention between two decoder layers, but there is one: set "
                "model.decoder.layers = 2.",
                ("model", "decoder", "layers"),
            )
        if self.encoder.kind != "rnn" and self.start == "last":
            raise SettingError(
                f"model.encoder.kind = '{self.encoder.kind}' has no last state to start the decoder from: set "
                f"model.start = 'mean', 'max' or 'zeros'.",
                ("model", "start"),
            )

        if self.encoder.kind != "rnn" and self.conditioning and name_of(self.summary) in ("last", "last_cell", "ends"):
            raise SettingError(
                f"model.summary = '{name_of(self.summary)}' is a state of a recurrent encoder, but "
                f"model.encoder.kind = '{self.encoder.kind}': set model.summary = 'mean', 'max' or 'attention'.",
                ("model", "summary"),
            )
        if self.locked and self.context == "feeding":
            raise SettingError(
                "model.locked = true has one mask for a whole row, but context = 'feeding' trains step by step: leave "
                "one of them out.",
                ("model", "locked"),
            )

    @property
    def decoder_widths(self) -> tuple[int, ...]:
        """The size of each layer of the decoder."""
        own = self.decoder
        if isinstance(own.hidden, list):
            return tuple(own.hidden)
        layers = own.layers or (max(2, self.layers) if self.context == "between" else self.layers)
        return (own.hidden or self.hidden,) * layers

    @property
    def encoder_widths(self) -> tuple[int, ...]:
        """The size of each layer of the encoder, in each direction."""
        own = self.encoder
        if isinstance(own.hidden, list):
            return tuple(own.hidden)
        two = self.bidirectional and self.merge == "concat" and own.kind == "rnn"
        return (own.hidden or max(1, self.hidden // 2 if two else self.hidden),) * (own.layers or self.layers)


@dataclass(frozen=True)
class Seq2SeqTraining(Training):
    """How the weights are found."""

    forcing: Part | float = setting(
        1.0,
        "chance that the decoder reads the right token and not its own; or constant, linear, exponential or "
        "inverse_sigmoid, or a table with options",
    )
    r_drop: float = setting(0.0, "α: two passes with different dropout are to agree; adds α (KL + KL) / 4 to the loss")
    validate_with: Literal["greedy", "decoding"] = setting(
        "greedy", "how validation in training searches; decoding: as [decoding] says, which takes longer"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(0, "training", self, "r_drop")
        Forcing.of(self.forcing)  # refuses what it cannot use


@dataclass(frozen=True)
class Seq2SeqEvaluation:
    """How answers are scored."""

    first: str | None = setting(
        None,
        "the score that training stops on: bleu, chrf, word_error_rate, symbol_error_rate, perplexity, …; none: bleu "
        "for words and subwords, word_error_rate for characters and symbols",
    )
    bleu_tokenize: str = setting("13a", "how BLEU cuts texts: 13a, none, char, intl, …; none: at blanks")
    lowercase: bool = setting(False, "BLEU does not see capitals")


@dataclass(frozen=True)
class Seq2SeqDecoding:
    """From a model to an answer."""

    search: Literal["beam", "greedy", "sampling", "exhaustive", "given"] = setting(
        "beam", "given: no search, the log-probability of the target that stands beside the source"
    )
    width: int = setting(5, "hypotheses that a beam keeps")
    best: int = setting(1, "so many answers for each source, the best first; more than one are listed by --json")
    length_penalty: float = setting(1.0, "α: scores are divided by ((5 + length) / 6)^α; 0: plain sums")
    coverage_penalty: float = setting(0.0, "β: adds β Σ_j log min(1, Σ_i α_ij) to a score")
    max_length: int = setting(200, "tokens of an answer, at most")
    max_ratio: float = setting(3.0, "tokens of an answer for each of the source, at most, plus ten")
    min_length: int = setting(0, "tokens of an answer, at least")
    no_repeat: int = setting(0, "an answer holds no run of so many tokens twice; 0: it may")
    banned: list[str] = setting([], "tokens that are never written")
    forced: list[str] = setting([], "tokens that must be written somewhere in the answer")
    prefix: str = setting("", "what every answer begins with")
    temperature: float = setting(1.0, "sampling: below 1 safer, above 1 bolder")
    top_k: int | None = setting(None, "sampling: draw from so many of the most probable tokens")
    top_p: float | None = setting(None, "sampling: draw from the fewest most probable tokens with so much probability")
    seed: int = setting(1, "sampling: of what is drawn")

    def __post_init__(self) -> None:
        at_least(1, "decoding", self, "width", "best", "max_length", "top_k")
        at_least(0, "decoding", self, "length_penalty", "coverage_penalty", "min_length", "no_repeat", "temperature")
        at_least(0, "decoding", self, "max_ratio")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise SettingError(
                f"decoding.top_p must be above 0 and at most 1, but is {self.top_p}.", ("decoding", "top_p")
            )
        if self.min_length > self.max_length:
            raise SettingError(
                f"decoding.min_length = {self.min_length} is above decoding.max_length = {self.max_length}.",
                ("decoding", "min_length"),
            )
        if self.search == "beam" and self.best > self.width:
            raise SettingError(
                f"decoding.best = {self.best} answers need a beam at least so wide, but decoding.width = {self.width}.",
                ("decoding", "best"),
            )


@dataclass(frozen=True)
class Seq2SeqSettings:
    """All settings of sequence to sequence."""

    task: str = setting("seq2seq", "what kind of problem this is")
    data: Seq2SeqData = section(Seq2SeqData, "where the pairs come from")
    model: Seq2SeqModel = section(Seq2SeqModel, "the network")
    training: Seq2SeqTraining = dataclasses.field(
        default_factory=lambda: Seq2SeqTraining(
            epochs=30, batch_tokens=BATCH_TOKENS, learning_rate=2e-3, clip=1.0, average={"name": "ema", "decay": 0.998}
        ),
        metadata={"about": "how the weights are found"},
    )
    evaluation: Seq2SeqEvaluation = section(Seq2SeqEvaluation, "how answers are scored")
    decoding: Seq2SeqDecoding = section(Seq2SeqDecoding, "from a model to an answer")

    def __post_init__(self) -> None:
        if self.task != "seq2seq" and ":" not in self.task:  # one of your own may take these settings
            raise SettingError(f"task = '{self.task}', but these are the settings of seq2seq.", ("task",))
        one_batch_size(self.training, BATCH_TOKENS)
        if self.model.tied == "all" and not self.data.joint:
            raise SettingError(
                "model.tied = 'all' makes one matrix of both embeddings, which needs one vocabulary: set "
                "data.joint = true, or model.tied = 'output'.",
                ("model", "tied"),
            )
        if self.data.frames is not None and self.model.copy:
            raise SettingError(
                "model.copy = true writes tokens of the source, but data.frames are numbers.", ("model", "copy")
            )
