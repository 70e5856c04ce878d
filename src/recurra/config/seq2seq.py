"""Settings of sequence to sequence."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from recurra.config.augmentation import Augmentation
from recurra.config.common import Data, Text, Training, one_batch_size
from recurra.config.forcing import Forcing
from recurra.config.seq2seq_model import Seq2SeqModel
from recurra.config.writer_model import WriterModel
from recurra.settings import Part, SettingError, at_least, name_of, section, setting

BATCH_TOKENS = 1000


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
        super().__post_init__()
        at_least(1, "data", self, "max_length")
        self.source.check("data.source")
        self.target.check("data.target")
        if self.frames is not None and self.source.column is not None:
            raise SettingError(
                "data.source.column and data.frames cannot be used together: the source is either text or numbers.",
                ("data", "frames"),
            )
        if self.frames is not None and self.joint:
            raise SettingError(
                "data.joint = true makes one vocabulary for both sides, but data.frames are numbers: leave it out.",
                ("data", "joint"),
            )


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
        "beam",
        "beam, greedy, sampling or exhaustive; given: no search, the log-probability of the target beside the source",
    )
    width: int = setting(5, "hypotheses that a beam keeps")
    best: int = setting(1, "so many answers for each source, the best first; more than one are listed by --json")
    length_penalty: float = setting(1.0, "α: scores are divided by ((5 + length) / 6)^α; 0: plain sums")
    coverage_penalty: float = setting(0.0, "β: adds β Σ_j log min(1, Σ_i α_ij) to a score")
    max_length: int = setting(200, "tokens of an answer, its end among them, at most")
    max_ratio: float | None = setting(
        3.0, "tokens of an answer for each of the source, at most, plus ten; none: max_length alone"
    )
    min_length: int = setting(0, "tokens of an answer, at least")
    no_repeat: int = setting(0, "an answer holds no run of so many tokens twice; 0: it may")
    unknown: bool = setting(False, "an answer may hold <unk>, for what the targets of training do not have")
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
        if self.length_penalty > 20:  # of a long answer, the power would be more than a number can be
            raise SettingError(
                f"decoding.length_penalty must be at most 20, but is {self.length_penalty:g}.",
                ("decoding", "length_penalty"),
            )
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise SettingError(
                f"decoding.top_p must be above 0 and at most 1, but is {self.top_p}.", ("decoding", "top_p")
            )
        if self.min_length > self.max_length:
            raise SettingError(
                f"decoding.min_length = {self.min_length} is above decoding.max_length = {self.max_length}.",
                ("decoding", "min_length"),
            )
        if self.search == "greedy" and self.best > 1:
            raise SettingError(
                f"decoding.best = {self.best} answers, but decoding.search = 'greedy' finds one: use 'beam' or "
                f"'sampling'.",
                ("decoding", "best"),
            )
        if self.search == "beam" and self.best > self.width:
            raise SettingError(
                f"decoding.best = {self.best} answers need a beam at least so wide, but decoding.width = {self.width}: "
                f"set decoding.width = {self.best}.",
                ("decoding", "best"),
            )


@dataclass(frozen=True)
class Seq2SeqSettings:
    """All settings of sequence to sequence."""

    task: str = setting("seq2seq", "what kind of problem this is")
    data: Seq2SeqData = section(Seq2SeqData, "where the pairs come from")
    model: Seq2SeqModel = section(Seq2SeqModel, "the network")
    augmentation: Augmentation = section(Augmentation, "small changes of a series, drawn anew in training")
    training: Seq2SeqTraining = dataclasses.field(
        default_factory=lambda: Seq2SeqTraining(
            epochs=60, batch_tokens=BATCH_TOKENS, learning_rate=2e-3, clip=1.0, average={"name": "ema", "decay": 0.998}
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
        check_forcing(self.model, self.training)
        if self.decoding.coverage_penalty and name_of(self.model.attention) == "none":
            raise SettingError(
                "decoding.coverage_penalty uses attention weights, but model.attention is none: leave it out.",
                ("decoding", "coverage_penalty"),
            )
        dropped = [side for side in ("source", "target") if _is_cut_anew(getattr(self.data, side).tokens)]
        if self.model.copy and dropped:
            raise SettingError(
                "model.copy = true copies tokens of the source, which needs a fixed tokenization, but "
                f"data.{dropped[0]}.tokens with dropout change it in every epoch: leave one of them out.",
                ("data", dropped[0], "tokens"),
            )
        if self.data.frames is not None and self.model.copy:
            raise SettingError(
                "model.copy = true writes tokens of the source, but data.frames are numbers.", ("model", "copy")
            )


def check_forcing(model: WriterModel, training: Seq2SeqTraining) -> None:
    """Refuse what cannot be trained step by step, where it must be."""
    forcing = Forcing.of(training.forcing)
    if model.locked and model.dropout and (forcing.shape != "constant" or forcing.k < 1):
        raise SettingError(
            "model.locked = true uses one dropout mask per row, but training.forcing below 1 trains step by step: "
            "remove one of the two settings.",
            ("training", "forcing"),
        )


def _is_cut_anew(tokens: Part) -> bool:
    return isinstance(tokens, Mapping) and bool(tokens.get("dropout"))
