"""Settings of sequence to sequence."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

from recurra.config.augmentation import Augmentation
from recurra.config.common import (
    Data,
    ForcedTraining,
    Idle,
    Text,
    idle_forcing,
    idle_section,
    idle_without_validation,
    one_batch_size,
)
from recurra.config.forcing import Forcing
from recurra.config.seq2seq_model import RECURRENT, Seq2SeqModel
from recurra.config.writer_model import WriterModel, look_of
from recurra.frozen import dataclass
from recurra.settings import Part, SettingError, at_least, name_of, section, setting

BATCH_TOKENS = 1000

OF_DRAWING = ("temperature", "top_k", "top_p")
"""Settings of decoding that `recurra generate` draws by, whatever the search is."""


@dataclass(frozen=True)
class Seq2SeqData(Data):
    """Where the pairs come from: tables, or two parallel files as in "train.en,train.de".

    A table without names has a source, a target and perhaps features, in this order. tokens = "auto" looks at the first
    pairs: single words are cut into characters, pronunciations (K AE T) into symbols, and all else into subwords, or
    into words where there are fewer than 5,000 pairs.
    """

    source: Text = dataclasses.field(default_factory=lambda: Text(tokens="auto"), metadata={"about": "the source"})
    target: Text = dataclasses.field(default_factory=lambda: Text(tokens="auto"), metadata={"about": "the target"})
    frames: str | None = setting(
        None, "column with a series of numbers, one or several per step, as input instead of text"
    )
    features: list[str] | None = setting(
        None, "columns with features or a language; each value becomes a special token before the source"
    )
    joint: bool = setting(False, "one vocabulary and one subword model for both sides")
    max_length: int | None = setting(
        None, "training pairs with a longer side are left out, with a notice; none: keep all"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, "data", self, "max_length")
        self.source.check("data.source")
        self.target.check("data.target")
        if self.frames is not None and self.source.column is not None:
            raise SettingError(
                "data.source and data.frames cannot be used together: the source is either text or numbers.",
                ("data", "frames"),
            )
        if self.frames is not None and self.joint:
            raise SettingError(
                "data.joint = true makes one vocabulary for both sides, but with data.frames the source is "
                "numbers: leave it out.",
                ("data", "joint"),
            )


@dataclass(frozen=True)
class Seq2SeqTraining(ForcedTraining):
    """How the weights are found."""

    r_drop: float = setting(
        0.0, "R-Drop: two passes with different dropout should agree; adds α (KL + KL) / 4 to the loss"
    )
    doubly_stochastic: float = setting(
        0.0, "adds λ Σ_i (1 − Σ_t α_ti)² to the loss: attention looks at each place of the source once in all"
    )
    validate_with: Literal["greedy", "decoding"] = setting(
        "greedy", "search method of validation during training; decoding: as set in [decoding], which is slower"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(0, "training", self, "r_drop", "doubly_stochastic")


@dataclass(frozen=True)
class Seq2SeqEvaluation:
    """How answers are scored."""

    first: str | None = setting(
        None,
        "the score for early stopping: bleu, chrf, word_error_rate, symbol_error_rate, perplexity, …; none: bleu "
        "for words and subwords (symbol_error_rate where most targets have fewer than four words), word_error_rate for "
        "characters and symbols",
    )
    shape: Literal["sequence", "tree", "hull", "triangles", "tour"] = setting(
        "sequence",
        "what answers are: sequence; tree: brackets, of which F1 is scored too; with model.pointer, of points: hull (a "
        "polygon, wherever it begins), triangles (three points each, in any order) or tour (through all points)",
    )
    bleu_tokenize: str = setting("13a", "tokenization for BLEU: 13a, none, char, intl, …; none: split at spaces")
    lowercase: bool = setting(False, "BLEU ignores case")


@dataclass(frozen=True)
class Seq2SeqDecoding:
    """From a model to an answer."""

    search: Literal["beam", "greedy", "sampling", "exhaustive", "path", "given"] = setting(
        "beam",
        "beam, greedy, sampling or exhaustive; path: what the most probable alignment of CTC writes; given: no "
        "search, score the given target",
    )
    width: int = setting(5, "beam width")
    best: int = setting(1, "number of answers per source, best first; with more than one use --json")
    length_penalty: float = setting(1.0, "length penalty α: scores are divided by ((5 + length) / 6)^α; 0: no penalty")
    coverage_penalty: float = setting(0.0, "coverage penalty β: adds β Σ_j log min(1, Σ_i α_ij) to a score")
    max_length: int = setting(200, "maximum length of an answer in tokens, including the end token")
    max_ratio: float | None = setting(
        3.0, "maximum length relative to the source: max_ratio × its length + 10; none: only max_length"
    )
    min_length: int = setting(0, "minimum length of an answer in tokens")
    no_repeat: int = setting(0, "no n-gram of this length may occur twice in an answer; 0: no limit")
    unknown: bool = setting(False, "allow <unk> in answers")
    elements: Literal["any", "once", "all"] = setting(
        "any",
        "with model.pointer: once: no element of the source twice in an answer; all: each exactly once, as in a tour",
    )
    brackets: Literal["free", "balanced", "tree"] = setting(
        "free",
        "balanced: every bracket, ( [ { or a token such as (NP, is closed in its order, by )NP or ); tree: one bracket "
        "also holds all else; free: no rule",
    )
    banned: list[str] = setting([], "tokens that must not occur in answers")
    forced: list[str] = setting([], "tokens that must occur in every answer")
    prefix: str = setting("", "text that every answer must start with")
    temperature: float = setting(1.0, "sampling: below 1 less random, above 1 more random")
    top_k: int | None = setting(None, "sampling: draw from this many of the most probable tokens")
    top_p: float | None = setting(None, "sampling: draw from the smallest set of tokens with this total probability")
    seed: int = setting(1, "sampling: random seed")

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
        if self.brackets == "tree" and self.max_length < 3:
            raise SettingError(
                f"decoding.brackets = 'tree' needs room for a bracket and the end, but decoding.max_length = "
                f"{self.max_length}: set it to 3 or more.",
                ("decoding", "max_length"),
            )
        if self.search in ("greedy", "path") and self.best > 1:
            finds = "greedy search" if self.search == "greedy" else "decoding.search = 'path'"
            raise SettingError(
                f"decoding.best = {self.best} asks for {self.best} answers, but {finds} finds only one: set "
                f"decoding.search = 'beam' or 'sampling', or decoding.best = 1.",
                ("decoding", "best"),
            )
        if self.search == "beam" and self.best > self.width:
            raise SettingError(
                f"decoding.best = {self.best} answers need a beam of at least that width, but decoding.width = "
                f"{self.width}: set decoding.width = {self.best}.",
                ("decoding", "best"),
            )


@dataclass(frozen=True)
class Seq2SeqSettings:
    """All settings of sequence to sequence."""

    task: str = setting("seq2seq", "the task")
    data: Seq2SeqData = section(Seq2SeqData, "the data")
    model: Seq2SeqModel = section(Seq2SeqModel, "the network")
    augmentation: Augmentation = section(Augmentation, "random changes of a series in training")
    training: Seq2SeqTraining = dataclasses.field(
        default_factory=lambda: Seq2SeqTraining(
            epochs=60, batch_tokens=BATCH_TOKENS, learning_rate=2e-3, clip=1.0, average={"name": "ema", "decay": 0.998}
        ),
        metadata={"about": "training"},
    )
    evaluation: Seq2SeqEvaluation = section(Seq2SeqEvaluation, "how answers are scored")
    decoding: Seq2SeqDecoding = section(Seq2SeqDecoding, "how answers are searched")

    def without_effect(self) -> Idle:
        """Settings that the others leave without effect, and why."""
        model, data = self.model, self.data
        own, written = model.encoder, model.decoder
        cells = (model.cell, own.cell, written.cell)
        idle = idle_of_search(self.decoding) | idle_of_writer(model, self.augmentation, cells)
        idle |= idle_of_writing(self.training, self.decoding) | idle_without_validation(data)
        if not model.bidirectional:
            idle["model", "merge"] = "model.bidirectional = false leaves one direction, and nothing to merge"
        stacks = [model.encoder_widths] * (own.kind == "rnn") + [model.decoder_widths] * (written.kind == "rnn")
        if all(len(widths) == 1 for widths in stacks):
            idle["model", "skip"] = "there is one layer on either side, and a way past the second needs more"
            idle["model", "mix"] = "there is one layer on either side, and nothing to mix"
        elif own.kind == "rnn" and not model.sees_outputs and (written.kind != "rnn" or len(model.decoder_widths) == 1):
            why = "the decoder has no layers to mix, and takes of the encoder the states alone (model.attention = none)"
            idle["model", "mix"] = why
            if len(model.encoder_widths) == 2:
                idle["model", "skip"] = f"{why}, which no way past the last layer enters"
        if own.hidden is not None and written.hidden is not None:
            idle["model", "hidden"] = "model.encoder.hidden and model.decoder.hidden set the sizes"
        is_deep = own.layers is not None or isinstance(own.hidden, list) or own.kind == "pyramid"
        if is_deep and (written.layers is not None or isinstance(written.hidden, list)):
            idle["model", "layers"] = "the encoder and the decoder have numbers of layers of their own"
        reads = own.kind in RECURRENT and own.cell is None
        if model.has_cells and not reads and (written.kind != "rnn" or written.cell is not None):
            idle["model", "cell"] = "no layer uses it: model.encoder and model.decoder have cells of their own, or none"
        if data.frames is not None:
            names = ("tokens", "lowercase", "min_count", "max_size")
            idle |= {("data", "source", name): "the source is numbers (data.frames), not text" for name in names}
        if model.pointer is not None:
            why = "with model.pointer the target is numbers of elements, and has no vocabulary"
            idle |= {("data", "target", name): why for name in ("lowercase", "min_count", "max_size")}
            idle["decoding", "unknown"] = why
            why = "answers of numbers are not scored as text"
            idle |= {("evaluation", name): why for name in ("bleu_tokenize", "lowercase")}
        if written.kind == "ctc":
            why = "model.decoder.kind = 'ctc' has no decoder that reads what it wrote"
            idle |= {("training", name): why for name in ("forcing", "r_drop")}
            idle["model", "label_smoothing"] = "model.decoder.kind = 'ctc' has no target at each step to smooth"
            if own.hidden is not None:
                idle["model", "hidden"] = "model.encoder.hidden sets the size"
            if own.layers is not None or isinstance(own.hidden, list) or own.kind == "pyramid":
                idle["model", "layers"] = "the encoder has a number of layers of its own"
        return idle

    def _check_pointer(self) -> None:
        if self.model.pointer is None:
            check_no_elements(self.decoding, self.evaluation)
            return
        if self.data.joint:
            raise SettingError(
                "data.joint = true makes one vocabulary for both sides, but with model.pointer the target has none: "
                "leave one of them out.",
                ("data", "joint"),
            )
        if self.data.target.tokens not in ("auto", "symbols"):
            raise SettingError(
                f"data.target.tokens = '{name_of(self.data.target.tokens)}' has no effect: with model.pointer a target "
                "is the numbers of elements, with blanks between them. Leave it out.",
                ("data", "target", "tokens"),
            )
        if self.data.frames is None and _is_cut_anew(self.data.source.tokens):
            raise SettingError(
                "model.pointer chooses tokens of the source by their numbers, but data.source.tokens with dropout cut "
                "it anew in every epoch: leave one of them out.",
                ("data", "source", "tokens"),
            )
        named = {name: getattr(self.decoding, name) for name in ("banned", "forced", "prefix")}
        named["brackets"] = self.decoding.brackets != "free"
        for name in (name for name, given in named.items() if given):
            raise SettingError(
                f"decoding.{name} is about tokens, but with model.pointer answers are elements of the source: leave it "
                f"out.",
                ("decoding", name),
            )
        if self.evaluation.shape == "tree":
            raise SettingError(
                "evaluation.shape = 'tree' scores brackets, but with model.pointer answers are elements of the source: "
                "leave it out.",
                ("evaluation", "shape"),
            )
        if self.evaluation.shape != "sequence" and self.data.source.column is not None:
            raise SettingError(
                f"evaluation.shape = '{self.evaluation.shape}' scores points, but data.source is a text: set "
                "data.frames to the column of the points, or leave it out.",
                ("evaluation", "shape"),
            )

    def __post_init__(self) -> None:
        if self.task != "seq2seq" and ":" not in self.task:  # one of your own may take these settings
            raise SettingError(f"task = '{self.task}', but these are the settings of seq2seq.", ("task",))
        one_batch_size(self.training, BATCH_TOKENS)
        if self.model.tied == "all" and not self.data.joint:
            raise SettingError(
                "model.tied = 'all' shares one matrix between both embeddings, which needs a joint vocabulary: "
                "set data.joint = true, or model.tied = 'output'.",
                ("model", "tied"),
            )
        check_forcing(self.model, self.training)
        check_doubly_stochastic(self.model, self.training)
        attends = self.model.attends or self.model.pointer is not None
        if self.decoding.coverage_penalty and not attends:
            why = "model.decoder.kind is ctc" if self.model.decoder.kind == "ctc" else "model.attention is none"
            raise SettingError(
                f"decoding.coverage_penalty uses attention weights, but {why}: remove the penalty.",
                ("decoding", "coverage_penalty"),
            )
        self._check_pointer()
        if self.decoding.search == "path" and self.model.decoder.kind != "ctc":
            raise SettingError(
                "decoding.search = 'path' takes the most probable alignment of CTC, but model.decoder.kind = "
                f"'{self.model.decoder.kind}': use 'greedy' or 'beam'.",
                ("decoding", "search"),
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
                "model.copy = true copies tokens of the source, but with data.frames the source is numbers: leave "
                "one of them out.",
                ("model", "copy"),
            )


def check_no_elements(decoding: Seq2SeqDecoding, evaluation: Seq2SeqEvaluation) -> None:
    """Refuse settings of elements of the source, where none is pointed at."""
    for section_name, name, value, usual in (
        ("decoding", "elements", decoding.elements, ("any",)),
        ("evaluation", "shape", evaluation.shape, ("sequence", "tree")),
    ):
        if value not in usual:
            raise SettingError(
                f"{section_name}.{name} = '{value}' is about elements of the source, but this model writes tokens: set "
                f"model.pointer, which only seq2seq has, or leave it out.",
                (section_name, name),
            )


def idle_of_search(decoding: Seq2SeqDecoding, *, generates: bool = False) -> Idle:
    """Settings that no search makes use of; a task that generates also draws, whatever its search is."""
    search = f"decoding.search = '{decoding.search}'"
    if decoding.search == "given":
        why = f"{search} scores a given target, and searches nothing"
        if generates:
            return {("decoding", name): why for name in ("width", "best", "seed")}
        return idle_section(decoding, ("decoding",), why, but=("search",))
    idle: Idle = {}
    if decoding.search == "path":
        return idle_section(
            decoding,
            ("decoding",),
            f"{search} takes the most probable alignment, whatever it writes",
            but=("search", "length_penalty"),
        )
    if decoding.search != "beam":
        idle["decoding", "width"] = f"{search} keeps no beam"
    if decoding.search != "sampling":
        names = ("seed",) if generates else (*OF_DRAWING, "seed")
        idle |= {("decoding", name): f"{search} draws nothing" for name in names}
    elif decoding.temperature == 0:
        why = "decoding.temperature = 0 always takes the most probable token"
        idle |= {("decoding", name): why for name in ("top_k", "top_p", "seed")}
    return idle


def idle_of_writing(training: Seq2SeqTraining, decoding: Seq2SeqDecoding) -> Idle:
    """Settings of training that make no difference to how answers are written in it."""
    idle = idle_forcing(training)
    if decoding.search == "greedy" and not decoding.forced:
        idle["training", "validate_with"] = "decoding.search is 'greedy' already"
    return idle


def idle_of_writer(
    model: WriterModel, augmentation: Augmentation, cells: Sequence[Part | None], dropout: float = 0.0
) -> Idle:
    """Settings of a network that writes, and of its training, that have no effect.

    `cells` are all that it has, and `dropout` is that of what reads a picture.
    """
    rates = (model.dropout, model.embedding_dropout, model.token_dropout, dropout)
    idle: Idle = {}
    if not model.dropout and not model.embedding_dropout:
        idle["model", "locked"] = "there is no dropout whose masks it could lock"
    is_drawn = any(rates) or augmentation != Augmentation()
    if not is_drawn and not any(isinstance(cell, Mapping) for cell in cells):  # which may drop something inside
        idle["training", "r_drop"] = "two passes without dropout are the same"
    return idle


def check_doubly_stochastic(model: WriterModel, training: Seq2SeqTraining) -> None:
    """Refuse to look everywhere where nothing looks, or at one place at a time."""
    if not training.doubly_stochastic:
        return
    why = "there is no attention" if not model.attends else ""
    if look_of(model.attention) == "hard":
        why = "hard attention draws places, which have no gradient"
    if why:
        raise SettingError(
            f"training.doubly_stochastic = {training.doubly_stochastic:g} is a cost of attention weights, but {why}. "
            "Leave it out.",
            ("training", "doubly_stochastic"),
        )


def check_forcing(model: WriterModel, training: Seq2SeqTraining) -> None:
    """Refuse what cannot be trained step by step, where it must be."""
    if model.locked and model.dropout and not Forcing.of(training.forcing).is_always:
        raise SettingError(
            "model.locked = true uses one dropout mask per row, but training.forcing below 1 trains step by step: "
            "remove one of the two settings.",
            ("training", "forcing"),
        )


def _is_cut_anew(tokens: Part) -> bool:
    return isinstance(tokens, Mapping) and bool(tokens.get("dropout"))
