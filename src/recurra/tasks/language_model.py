"""Language modelling: how likely each token of a text is, given those before it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from recurra.config import ClassificationSettings, LanguageModelData, LanguageModelSettings, TaggingSettings
from recurra.config.forcing import Forcing
from recurra.config.given import Given
from recurra.config.in_words import cell_in_words, layers_in_words, output_in_words
from recurra.data.batches import in_order_of_length
from recurra.data.chunks import Chunk, Chunks
from recurra.data.store import Encoded, Rows
from recurra.errors import ConfigError, DataError
from recurra.manifest import digest_of, read_manifest, seal, verify
from recurra.opening import read_file
from recurra.reading.asked import is_like, read_by
from recurra.reading.pieces import over_pieces
from recurra.reading.samples import beginnings, spread
from recurra.reading.tables import task_rows
from recurra.reading.texts import Passage, passages, text_of, with_column
from recurra.scoring.counted import Counted
from recurra.scoring.formulas import perplexity, ratio, total
from recurra.settings import SettingError, name_of
from recurra.tasks.task import (
    START,
    AnswerKind,
    Asked,
    Axes,
    Loss,
    Moment,
    Prediction,
    Purpose,
    Recurring,
    Task,
    Viewer,
)
from recurra.text import Characters, Subwords, Tokenizer, Vocabulary, load_tokenizer, tokenizer
from recurra.text.code_points import CodePoints
from recurra.text.json_file import read_json
from recurra.text.tokenizers.subword_training import MARK
from recurra.text.vocabulary import UNKNOWN
from recurra.views.viewer import MATTERED, SURE

if TYPE_CHECKING:
    from recurra.analysis.anatomy import Anatomy
    from recurra.analysis.exposure import Exposure
    from recurra.analysis.gates import Stack
    from recurra.analysis.probabilities import Probabilities
    from recurra.analysis.saliency import Probe
    from recurra.data.mixed import Mixed
    from recurra.generation.generated import Manner
    from recurra.generation.writer import Writer
    from recurra.models.character_features import CharacterFeatures, CharacterReader
    from recurra.models.language_model import NextToken, TextBatch
    from recurra.predictors.predictor import Predictor
    from recurra.views.view import View

END_OF_LINE = "<eos>"
"""Where tokens are not characters, it ends each line."""

NEWLINE = "\n"
WEIGHTS = "model.safetensors"
FEATURES = "features"
"""Where a run keeps its own copies of the language models that it takes features from."""

NO_FEATURES = "models whose words have features of language models (model.features) cannot be exported yet."

IN_THE_TEXT = -1
"""In place of a file's number: what follows is a token's place in the whole text."""

STRETCH, STRETCHES = 160, 1000
"""Tokens of a stretch of running text that a report shows, and how many stretches it chooses from."""

CARRY_DRAW = 1
"""Sets what is drawn for states apart from what is drawn for lengths."""


FOLLOWING = 5
"""Tokens that are named as the next ones after an element of a stream."""


class Scored(NamedTuple):
    """How likely a text was."""

    nats: float  # −log p of all that was predicted
    predicted: int  # tokens
    tokens: int  # of the text
    unknown: int  # of them, unknown to the vocabulary
    log_probabilities: NDArray[np.float64] | None = None  # of each token in the order of the text
    backward: bool = False  # whether it was read from its end
    readings: int = 1  # directions in which it was read, whose scores are added
    following: NDArray[Any] | None = None  # (V,): log p of what comes next, in a stream
    is_right: bool = False  # where only the last word is predicted: whether it was the most probable

    @property
    def nll(self) -> float:
        """Nats per prediction; of two directions, the mean."""
        return self.nats / self.predicted / self.readings

    @property
    def perplexity(self) -> float:
        """e^(nats per prediction); infinite where that is more than a float holds."""
        return math.exp(self.nll) if self.nll < 700 else math.inf


def _lines(data: LanguageModelData, files: Sequence[str]) -> Iterator[str]:
    """The lines of the text of some files."""
    for passage in passages(files, data):
        yield from (passage.text.lower() if data.text.lowercase else passage.text).split(NEWLINE)


def _counted(data: LanguageModelData, split: Tokenizer, files: Sequence[str]) -> Counter[str]:
    """The tokens of the text of some files."""
    counts: Counter[str] = Counter()
    for line in _lines(data, files):
        counts.update(split.split(line))
    return counts


class LanguageModel(Task[Passage, "TextBatch", Scored]):
    """Words, characters or pieces of words, each predicted from those before it."""

    Settings: ClassVar[type] = LanguageModelSettings
    name: ClassVar[str] = "language_model"
    reads_apart: ClassVar[bool] = True

    def __init__(self, settings: LanguageModelSettings, split: Tokenizer, vocabulary: Vocabulary) -> None:
        self.settings = settings
        self.tokenizer = split
        self.vocabulary = vocabulary
        self.end = vocabulary.id(vocabulary.specials[1])
        self.forcing = Forcing.of(settings.training.forcing)
        self._code_points = CodePoints(vocabulary) if isinstance(split, Characters) else None

    @classmethod
    def fitting(cls, table: Mapping[str, Any]) -> type[Task[Any, Any, Any]]:
        """Frames and values instead of text are the matter of forecasting."""
        data = table.get("data")
        if isinstance(data, Mapping) and (data.get("frames") or data.get("values")):
            from recurra.tasks.forecasting import Forecasting

            return Forecasting
        return cls

    @classmethod
    def resolved(cls, settings: LanguageModelSettings) -> LanguageModelSettings:
        data = settings.data
        path = data.files("train")[0]
        first = next(task_rows(path, data, data.text.column))
        return dataclasses.replace(settings, data=with_column(data, first, path))

    @classmethod
    def prepared(cls, settings: LanguageModelSettings) -> Self:
        return cls._learned(settings, None)

    @classmethod
    def prepared_from(cls, settings: LanguageModelSettings, base: Self) -> Self:
        return cls._learned(settings, base)

    @classmethod
    def _learned(cls, settings: LanguageModelSettings, base: Self | None) -> Self:
        """The tokens of the training text; those of a base that is cut the same way are kept, with its tokenizer."""
        data = settings.data
        text = data.text
        split = tokenizer(text.tokens)
        base = base if base is not None and base.tokenizer.name == split.name else None
        split = split.trained(_lines(data, data.files("train"))) if base is None else base.tokenizer
        specials = (UNKNOWN, NEWLINE if isinstance(split, Characters) else END_OF_LINE)
        if isinstance(split, Subwords) and base is None:
            return cls(settings, split, split.vocabulary(specials=specials))
        counts: Counter[str] = Counter()
        for found in over_pieces(data.files("train"), data.format, partial(_counted, data, split)):
            counts.update(found)
        known = Vocabulary(specials=specials) if base is None else base.vocabulary
        vocabulary = known.extended(counts, min_count=text.min_count, max_size=text.max_size)
        if counts and len(vocabulary) == len(specials):
            raise DataError(
                f"no token of {', '.join(data.files('train'))} would be in the vocabulary: the most frequent, "
                f"{counts.most_common(1)[0][0]!r}, occurs {max(counts.values()):,} times, but data.text.min_count = "
                f"{text.min_count} and data.text.max_size = {'none' if text.max_size is None else text.max_size}."
            )
        return cls(settings, split, vocabulary)

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder / "tokenizer.json")
        self.vocabulary.save(folder / "vocabulary.json")

    @classmethod
    def load(cls, settings: LanguageModelSettings, folder: Path) -> Self:
        cut = load_tokenizer(folder / "tokenizer.json", settings.data.text.tokens)
        return cls(settings, cut, Vocabulary.load(folder / "vocabulary.json"))

    def with_settings(self, settings: LanguageModelSettings, folder: Path) -> Self:
        return type(self)(settings, self.tokenizer, self.vocabulary)

    def in_folders(self, files: Iterable[str | Path]) -> list[str | Path]:
        return list(files)  # `read` takes the text files of a folder, and of folders in it

    def read(self, files: Sequence[str | Path]) -> Iterator[Passage]:
        return passages(files, self.settings.data)

    def noticed(self, examples: Sequence[Passage]) -> str | None:
        known = {*self.vocabulary, NEWLINE}
        strange: Counter[str] = Counter()
        for example in examples:
            strange.update(token for token in self.tokens(example.text) if token not in known)
        if not strange:
            return None
        shown = ", ".join(repr(token) for token, _ in strange.most_common(5))
        return (
            f"{sum(strange.values()):,} tokens of the validation text are not in the vocabulary, such as {shown}: "
            f"they are read as {UNKNOWN}"
        )

    def questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Passage]:
        if file is not None and (by := read_by(file, self.settings.data)) is not None:
            if not is_like(file, by):  # its text may have another name
                by = dataclasses.replace(by, text=dataclasses.replace(by.text, column=None))
            yield from passages([file], dataclasses.replace(by, independent=True))
            return
        for number, line in enumerate(lines, 1):
            yield Passage(text_of(line, f"{file or 'input'}:{number}"), 0, number)

    def sent(self, example: Passage) -> object:
        return example.text

    def samples(self, examples: Sequence[Passage], count: int) -> list[object]:
        lines = [line for example in examples for line in beginnings(example.text)]
        return list(spread(list(dict.fromkeys(lines)), count))

    def encode(self, example: Passage) -> Encoded:
        return {"tokens": self.ids(example.text), "place": np.array([example.file, example.line], np.int64)}

    def ids(self, text: str) -> NDArray[np.int32]:
        """The tokens of a text; each of its lines, the last too, ends in the symbol that ends a line."""
        if self._code_points is not None:
            return self._code_points.ids("".join(self.tokens(text)))
        tokens = self.tokens(text)
        found = self.vocabulary.ids(tokens)
        found[[number for number, token in enumerate(tokens) if token == NEWLINE]] = self.end
        return found

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, each of its lines, the last too, followed by a line end."""
        text = text.lower() if self.settings.data.text.lowercase else text
        if isinstance(self.tokenizer, Characters):
            return self.tokenizer.split(f"{text}\n")
        found: list[str] = []
        for line in text.split(NEWLINE):
            found += self.tokenizer.split(line)
            found.append(NEWLINE)
        return found

    def not_in_vocabulary(self, example: Passage) -> list[str]:
        return [token for token in self.vocabulary.unknown_among(self.tokens(example.text)) if token != NEWLINE]

    def lengths(self, rows: Any) -> NDArray[np.int64]:
        found: NDArray[np.int64] = rows.lengths("tokens")
        return found

    def held_out(self, part: Rows, parts: Sequence[Any]) -> str:
        tokens, total = part.size("tokens"), sum(each.size("tokens") for each in parts)
        what = "whole lines at the end of the text" if self.settings.data.independent else "the end of the text"
        return f"{tokens:,} of {total:,} tokens, {what}"

    def place(self, row: Encoded) -> str:
        file, line = row["place"].tolist()
        return super().place(row) if file != IN_THE_TEXT else f"the text from token {line:,} on"

    # Batches

    def batches(self, rows: Any, epoch: int) -> Any:
        if self.settings.data.independent:
            return super().batches(rows, epoch)
        tokens = rows.size("tokens")
        if tokens < 2:
            raise DataError(
                f"{', '.join(self.settings.data.files('train'))} is too short to train on: it contains {tokens} token."
            )
        reading, training = self.settings.reading, self.settings.training
        assert training.batch_size is not None, "checked by the settings"
        return Chunks(
            tokens,
            streams=training.batch_size,
            steps=reading.steps,
            vary=reading.vary_steps,
            seed=training.seed,
            epoch=epoch,
        )

    def replayed(self, both: Mixed, epoch: int) -> Any:
        return (
            super().replayed(both, epoch) if self.settings.data.independent else both.stretch_of_epoch(epoch, "tokens")
        )

    def chosen(self, store: Any, numbers: NDArray[np.int64]) -> Sequence[Encoded]:
        if self.settings.data.independent:
            return super().chosen(store, numbers)
        chunk = Chunk(*numbers.tolist())
        size = chunk.last - chunk.first + 1
        starts = chunk.starts
        if self.is_backward:  # the text as if it had been written from its end
            starts = store.size("tokens") - starts - size
        spans = [store.span("tokens", start, start + size) for start in starts.tolist()]
        if self.is_backward:
            spans = [span[::-1] for span in spans]
        kept, places = self._kept(chunk), np.stack([np.full(len(starts), IN_THE_TEXT), starts], axis=1)
        return [
            {"tokens": span[1:], "before": span[:1], "kept": kept[row : row + 1], "place": places[row]}
            for row, span in enumerate(spans)
        ]

    def share(self, store: Any, numbers: NDArray[np.int64], which: slice) -> Sequence[Encoded]:
        """A chunk has rows of all streams: each process reads some streams, and carries their states on.

        Lines come with the numbers of tokens and of neighbours of the whole batch: the mean that
        model.temporal_regularization adds is over all of them.
        """
        if not self.settings.data.independent:
            return self.chosen(store, numbers)[which]
        if not self.settings.model.temporal_regularization:
            return super().share(store, numbers, which)
        rows = self.chosen(store, numbers)
        lengths = np.array([len(row["tokens"]) for row in rows])
        whole = np.array([lengths.sum(), np.maximum(lengths - 1, 0).sum()])
        return [{**row, "whole": whole} for row in rows[which]]

    def _kept(self, chunk: Chunk) -> NDArray[np.bool_]:
        """Which streams go on with the state that the chunk before left: none at the beginning of an epoch."""
        carry = self.settings.reading.carry
        if chunk.number == 0 or carry in (0.0, 1.0):
            return np.full(chunk.streams, chunk.number > 0 and carry == 1.0)
        draw = np.random.default_rng([self.settings.training.seed, chunk.epoch, chunk.number, CARRY_DRAW])
        return draw.random(chunk.streams) < carry

    def batch(self, rows: Sequence[Encoded]) -> TextBatch:
        from recurra.models.language_model import chunks_batched, lines_batched

        if "before" in rows[0]:
            return chunks_batched(rows)
        batch = lines_batched([self._in_order(row["tokens"]) for row in rows], end=self.end)
        return batch.within([row["whole"] for row in rows]) if "whole" in rows[0] else batch

    @property
    def draws_in_batch(self) -> bool:
        return False

    def _in_order(self, line: NDArray[Any]) -> NDArray[Any]:
        """A line in the order in which it is read; its end comes last both ways. Done twice, it is as it was."""
        return np.append(line[-2::-1], line[-1:]) if self.is_backward else line

    # The model

    def build(self) -> NextToken:
        from recurra.models.language_model import NextToken

        return NextToken(self.settings.model, tokens=len(self.vocabulary))

    def initialise(self, model: Any) -> str | None:
        from recurra.models.language_model import weight_drop_of

        settings = self.settings.model
        has_cells = settings.decoder.kind != "transformer" and not settings.cell_drops_weights
        if settings.weight_drop is not None or not has_cells or weight_drop_of(settings):
            return None
        return f"no weight drop: the cell '{name_of(settings.cell)}' has no recurrent weights that could be dropped"

    def axes(self) -> Mapping[str, Axes]:
        tokens = self.vocabulary.tokens
        parts = {"readout": tokens}
        output = self.settings.model.output
        if name_of(output) == "adaptive_softmax":
            from recurra.outputs.adaptive_softmax import edges_of

            edges = edges_of(len(tokens), None if isinstance(output, str) else output.get("cutoffs"))
            clusters = [tokens[first:last] for first, last in pairwise(edges)]
            parts = {f"tails.{number}": cluster for number, cluster in enumerate(clusters)}
            parts["readout"] = (*tokens[: edges[0]], *(f"cluster {number}" for number in range(len(clusters))))
        found: dict[str, Axes] = {"embedding.weight": (tokens, None)}
        for name, rows in parts.items():
            found |= {f"output.{name}.weight": (rows, None), f"output.{name}.bias": (rows,)}
        return found

    def loss(self, model: Any, batch: TextBatch, moment: Moment = START) -> Loss:
        from recurra.models.forcing import Forced

        continues = moment.carried and batch.kept is not None
        states = model.nested(moment.carried, batch.kept) if continues else None
        forced = Forced.at(self.forcing, moment.step, moment.varying)
        total, states = model.loss(batch, states, forced=forced)
        count, logged = int(batch.inputs.lengths.sum()), self.varying(moment.step)
        if batch.kept is None:
            return Loss(total, count, logged=logged)
        carried = model.flat(states) if self.settings.reading.carry else ()
        return Loss(total, count, carried, batch.targets.shape[1] / self.settings.reading.steps, logged)

    def varying(self, step: int) -> Mapping[str, float]:
        return self.forcing.varying(step)

    def recurring(self, batch: TextBatch) -> Recurring | None:
        from recurra.models.language_model import recurring_text

        model = self.settings.model
        if batch.kept is None and (model.activation_regularization or model.temporal_regularization):
            return None  # these are means over so many numbers as the lines of a batch have
        weight = 1.0 if batch.kept is None else batch.targets.shape[1] / self.settings.reading.steps
        return Recurring(recurring_text(batch), int(batch.inputs.lengths.sum()), weight)

    def predict(self, model: Any, batch: TextBatch, *, detail: bool = False) -> list[Scored]:
        import torch

        with torch.no_grad():
            logs = model.log_likelihoods(batch)[0].cpu().double().numpy()
        unknown = batch.targets.eq(self.vocabulary.id(UNKNOWN)).sum(1).tolist()
        found = []
        for row, (length, count) in enumerate(zip(batch.inputs.lengths.tolist(), unknown, strict=True)):
            each = self._in_order(logs[row, :length])
            kept = each if detail else None
            found.append(Scored(-float(each.sum()), length, length, count, kept, self.is_backward))
        return found

    def predictor(self) -> Predictor[Scored]:
        from recurra.predictors.language_model import LanguageModelPredictor

        return LanguageModelPredictor(
            self, tokens=len(self.vocabulary), in_order=self._in_order, scored=self._scored, whole=self._scored_whole
        )

    def offline(self) -> Mapping[str, Any]:
        from recurra.predictors import offline

        if self.is_backward:
            raise offline.not_yet("a model that reads backward")
        if self.settings.model.decoder.kind == "transformer":
            raise offline.not_yet("a Transformer that writes")
        return offline.language(
            self.tokenizer,
            self.vocabulary,
            self.settings.decoding,
            lowercase=self.settings.data.text.lowercase,
            end=self.end,
        )

    def _scored_whole(
        self, rows: Sequence[Encoded], carried: Callable[[NDArray[np.int64], int, int], NDArray[np.float64]]
    ) -> list[Scored] | None:
        """A running text whose states are carried on, as an exported model scores it; None: lines are scored apart."""
        manner = self.settings.evaluation
        if self.predicts_last_words or (manner.manner == "windowed" and not self.settings.data.independent):
            raise ConfigError(
                f"evaluation.manner = '{manner.manner}' needs the run: an exported model scores texts as they go on."
            )
        if self.settings.data.independent:
            return None
        whole = self._whole(rows)
        logs = carried(whole, manner.streams, manner.window)
        unknown = int((whole == self.vocabulary.id(UNKNOWN)).sum())
        return [Scored(-float(logs.sum()), len(logs), len(whole), unknown, logs, self.is_backward)]

    def _whole(self, rows: Sequence[Encoded]) -> NDArray[np.int64]:
        """All tokens of a running text, in the order in which it is read."""
        whole = np.concatenate([row["tokens"] for row in rows]).astype(np.int64) if rows else np.zeros(0, np.int64)
        if len(whole) < 2:
            raise DataError(
                f"this text has only {len(whole)} token, so there is nothing to predict: the first token is not "
                "scored. Use a longer text, or score each line separately: data.independent = true."
            )
        return whole[::-1].copy() if self.is_backward else whole

    def element(self, element: object, number: int) -> tuple[Passage, Encoded]:
        if self.is_backward:
            raise ConfigError("a stream is read forward, but this run reads texts from their end.")
        text = text_of(element, f"element {number}")
        ids = self.ids(text)[:-1]  # a piece of text does not end a line
        if not len(ids):
            raise DataError(f"element {number}: there is no token in {text!r:.60}.")
        return Passage(text, 0, number), {"tokens": ids}

    def streamed(self, example: Passage, output: Scored) -> Prediction:
        """How likely the tokens of a piece of text were, and what is most likely to follow it."""
        answer = self.answer(example, output)
        answer.detail["tokens"] = answer.detail["tokens"][:-1]
        if output.following is not None:
            best = np.argsort(-output.following, kind="stable")[:FOLLOWING]
            tokens = self.vocabulary.tokens_of(best)
            answer.detail["following"] = {
                token: round(float(np.exp(output.following[number])), 6)
                for token, number in zip(tokens, best, strict=True)
            }
        return answer

    def _scored(
        self, logs: NDArray[np.float64], targets: NDArray[Any], detail: bool, following: NDArray[Any] | None = None
    ) -> Scored:
        """A line by log p of each of its tokens, in the order of the text."""
        unknown = int((targets == self.vocabulary.id(UNKNOWN)).sum())
        kept = logs if detail else None
        found = Scored(-float(logs.sum()), len(logs), len(logs), unknown, kept, self.is_backward)
        return found if following is None else found._replace(following=following)

    def combined(self, example: Passage, outputs: Sequence[Scored]) -> Scored:
        """Of models that read the same way the mean probability of each token; scores of both directions are added.

        log p(w) = Σ_t log (1/M) Σ_m p_m(w_t | w_1 … w_{t-1})  +  Σ_t log (1/N) Σ_n p_n(w_t | w_{t+1} … w_T)
        """
        ways = [[output for output in outputs if output.backward == way] for way in (False, True)]
        logs = [[output.log_probabilities for output in way if output.log_probabilities is not None] for way in ways]
        means = [np.logaddexp.reduce(way, axis=0) - math.log(len(way)) for way in logs if way]
        each: NDArray[np.float64] = np.sum(means, axis=0)
        follow = [output.following for output in outputs if output.following is not None]
        following = np.logaddexp.reduce(follow, axis=0) - math.log(len(follow)) if follow else None
        nats = -float(each.sum())
        return outputs[0]._replace(nats=nats, log_probabilities=each, readings=len(means), following=following)

    def units(self) -> object:
        data = self.settings.data
        return self.vocabulary.tokens, name_of(data.text.tokens), data.text.lowercase, data.independent

    @property
    def is_backward(self) -> bool:
        """Whether a text is read from its end."""
        backward: bool = self.settings.model.direction == "backward"
        return backward

    def outputs(self, model: Any, rows: Sequence[Encoded], *, device: str) -> list[Scored] | None:
        if self.predicts_last_words:
            return self._last_words([model], rows)
        if self.settings.data.independent:
            return None
        import torch

        from recurra.models import likelihood

        whole = self._whole(rows)
        tokens = torch.from_numpy(whole).to(device)
        manner = self.settings.evaluation
        if manner.manner == "windowed":
            found = likelihood.windowed(model, tokens, window=manner.window, stride=manner.stride)
        else:
            found = likelihood.carried(model, tokens, streams=manner.streams, ahead=manner.window)
        unknown = int((whole == self.vocabulary.id(UNKNOWN)).sum())
        return [Scored(found.nats, found.predicted, len(whole), unknown, found.each.numpy(), self.is_backward)]

    def outputs_together(self, models: Sequence[Any], rows: Sequence[Encoded]) -> list[Scored] | None:
        """The most probable word of several models is that of the mean of what they say of every word."""
        return self._last_words(models, rows) if self.predicts_last_words else None

    def free_running(self, model: Any, examples: Sequence[Passage]) -> Exposure:
        """Lines from their beginning; of a running text windows, the first half of which is read as it is."""
        from recurra.analysis.exposure import Exposed, Exposure
        from recurra.models.language_model import TextBatch, lines_batched
        from recurra.models.likelihood import TOKENS, run_free
        from recurra.padding import Padded, fitted

        model, rows = self._as_one(model, "run free in one"), list(self.encode_all(examples))
        items: list[Exposed] = []
        if self.settings.data.independent:
            for numbers in in_order_of_length(self.lengths(Rows.of(rows)), tokens=TOKENS):
                lines = [self._in_order(rows[number]["tokens"]) for number in numbers]
                items += run_free(model, fitted(lines_batched(lines, end=self.end), model))
            return Exposure.of(items, "nll")
        import torch

        whole = np.concatenate([row["tokens"] for row in rows]).astype(np.int64) if rows else np.zeros(0, np.int64)
        whole = whole[::-1].copy() if self.is_backward else whole
        window = min(self.settings.evaluation.window, len(whole) - 1)
        if window < 2:
            raise DataError(f"this text has only {len(whole)} tokens, too few to run free in.")
        windows = torch.from_numpy(whole).unfold(0, window + 1, window)
        for part in windows.split(max(1, TOKENS // window)):
            batch = TextBatch(Padded.full(part[:, :-1].contiguous()), part[:, 1:].contiguous(), None)
            items += run_free(model, fitted(batch, model), context=window // 2)
        return Exposure.of(items, "nll")

    @property
    def predicts_last_words(self) -> bool:
        """Whether lines are scored by their last words alone."""
        return self.settings.evaluation.manner == "last_word"

    def _lines(self, tokens: NDArray[Any]) -> list[NDArray[Any]]:
        """The lines that have words, without their ends and without blanks after the last word."""
        lines = np.split(tokens, np.flatnonzero(tokens == self.end) + 1)
        found = [line[line != self.end] for line in lines]
        if self._code_points is not None:
            found = [line[: 1 + np.flatnonzero(~self._is_blank[line]).max(initial=-1)] for line in found]
        return [line for line in found if len(line)]

    @cached_property
    def _is_blank(self) -> NDArray[np.bool_]:
        return np.array([token.isspace() for token in self.vocabulary.tokens])

    def _last_words(self, models: Sequence[Any], rows: Sequence[Encoded]) -> list[Scored]:
        from recurra.models.likelihood import last_words
        from recurra.models.text_cache import TextCache

        lines = [line for row in rows for line in self._lines(row["tokens"])]
        if not lines:
            raise DataError("this text has no words: evaluation.manner = 'last_word' needs a passage on each line.")
        starts = [self._start_of_last_word(line) for line in lines]
        unknown = self.vocabulary.id(UNKNOWN)
        has_unknown = [unknown in line[start:] for line, start in zip(lines, starts, strict=True)]
        how = self.settings.evaluation
        cache = TextCache(how.cache, how.cache_sharpness, unknown) if how.cache else None
        words = last_words(models, lines, starts, end=self.end, unknown=unknown, cache=cache)
        return [
            Scored(word.nats, 1, len(line) - start, int(strange), is_right=word.is_best and not strange)
            for line, start, strange, word in zip(lines, starts, has_unknown, words, strict=True)
        ]

    def _start_of_last_word(self, line: NDArray[Any]) -> int:
        """The place of its first token; of tokens that are words, the last."""
        if self._code_points is not None:
            return 1 + int(np.flatnonzero(self._is_blank[line]).max(initial=-1))
        if isinstance(self.tokenizer, Subwords):
            pieces = self.vocabulary.tokens_of(line.tolist())
            return max((place for place, piece in enumerate(pieces) if piece.startswith(MARK)), default=0)
        return len(line) - 1

    # Answers

    def answer(self, example: Passage, output: Scored) -> Prediction:
        detail: dict[str, Any] = {"nll": output.nll, "perplexity": output.perplexity}
        if output.readings > 1:
            detail["readings"] = output.readings
        if output.log_probabilities is not None:
            detail["tokens"] = self.vocabulary.tokens_of(self.ids(example.text))
            detail["log_probabilities"] = [round(float(number), 6) for number in output.log_probabilities]
        detail["unknown"] = output.unknown
        return Prediction(example.text, f"{-output.nats:.4f}\t{output.predicted}", -output.nats, example.line, detail)

    def answer_kind(self) -> AnswerKind:
        return "likelihood"

    @property
    def unused_in_scores(self) -> Collection[str]:
        return [field.name for field in dataclasses.fields(self.settings.decoding)]  # a text is read, none is written

    def writer(self, model: Any, manner: Manner) -> Writer:
        from recurra.generation.voice import NetworkVoice
        from recurra.generation.writer import Writer

        return Writer(self, NetworkVoice(self._as_one(model, "write one")), manner)

    def _as_one(self, model: Any, doing: str) -> Any:
        """The network, or several that agree on every token before the next."""
        from recurra.models.language_model import Mixture
        from recurra.models.together import Together

        if not isinstance(model, Together):
            return model
        if len({task.is_backward for task in model.tasks}) > 1:
            raise ConfigError(
                f"these runs read in opposite directions, so they can score a text together, but not {doing}: name "
                "runs with the same model.direction."
            )
        members: Any = model.members
        return Mixture(members)

    def counted(self, examples: Sequence[Passage], outputs: Sequence[Scored]) -> Counted:
        """Of lines that are read alone, each is an item; a text that is read as a whole is one."""
        if self.predicts_last_words:
            return self._counted_last_words(examples, outputs)
        items: list[object] = [(example.file, example.line) for example in examples]
        characters = [len(example.text) + 1 for example in examples]
        if not self.settings.data.independent:
            items, characters = [tuple(items)], [sum(characters)]
        columns = {field: [getattr(output, field) for output in outputs] for field in Scored._fields[1:4]}
        columns["nats"] = [output.nats / output.readings for output in outputs]
        nll = ratio("nats", "predicted")
        sizes = {"count": total("predicted"), "characters": total("characters")}
        if any(columns["unknown"]):
            sizes["unknown"] = total("unknown")
        return Counted.of(
            items,
            {**columns, "characters": characters},
            {
                "perplexity": perplexity("nats", "predicted"),
                "bits_per_character": lambda sums: nll(sums) / math.log(2) * sums["tokens"] / sums["characters"],
                "nll": nll,
            },
            first="perplexity",
            lengths=columns["predicted"] if self.settings.data.independent else None,
            sizes=sizes,
            loss=nll,
        )

    def _counted_last_words(self, examples: Sequence[Passage], outputs: Sequence[Scored]) -> Counted:
        """Each passage is an item. A last word that is not in the vocabulary is predicted as <unk>, and never right."""
        lines = [(example, line) for example in examples for line in enumerate(self._lines(self.ids(example.text)))]
        known = [1 - output.unknown for output in outputs]
        nats = [output.nats for output in outputs]
        scores = {"accuracy": ratio("right", "predicted"), "perplexity": perplexity("nats", "predicted")}
        sizes = {"count": total("predicted")}
        if not all(known):
            scores["known_perplexity"] = perplexity("known_nats", "known")
            sizes["unknown"] = total("unknown")
        return Counted.of(
            [(example.file, example.line, number) for example, (number, _) in lines],
            {
                "right": [int(output.is_right) for output in outputs],
                "nats": nats,
                "predicted": [output.predicted for output in outputs],
                "unknown": [output.unknown for output in outputs],
                "known": known,
                "known_nats": [cost * is_known for cost, is_known in zip(nats, known, strict=True)],
            },
            {**scores, "nll": ratio("nats", "predicted")},
            first="perplexity",
            lengths=[len(line) for _, (_, line) in lines],
            sizes=sizes,
            loss=ratio("nats", "predicted"),
        )

    # Views

    def steps(self, example: Passage) -> list[str]:
        """The tokens that are read: the end of the line before, then all but the last."""
        batch = self.batch([self.encode(example)])
        return self.vocabulary.tokens_of(batch.inputs.values[0].tolist())

    def stacks(self, model: Any) -> dict[str, Stack]:
        return {} if model.recurrent is None else {"recurrent": model.recurrent}

    def viewers(self) -> dict[str, Viewer]:
        return {
            "probabilities": Viewer(
                lambda asked: self.probabilities(asked).view(), longest=200, title=SURE, of_several=True
            ),
            "saliency": Viewer(self.contributions, longest=30, work=lambda n: n * n, telling=False, title=MATTERED),
            **super().viewers(),
        }

    def probabilities(self, asked: Asked) -> Probabilities:
        """How probable each token was. (torch)"""
        from recurra.analysis.probabilities import Probabilities

        detail = self.answered(asked).detail
        mean = f"{detail['nll'] / math.log(2):.2f} bits a token"
        readings = detail.get("readings", 1)
        both = ", the mean of both directions" if readings > 1 else ""
        return Probabilities(detail["tokens"], [log_p / readings for log_p in detail["log_probabilities"]], mean + both)

    def contributions(self, asked: Asked) -> View:
        """What speaks for the answer. (torch)"""
        from recurra.analysis.saliency import contributions

        return contributions(self.probe(asked))

    def probe(self, asked: Asked) -> Probe:
        """What speaks for each token. (torch)"""
        model: Any = asked.model
        return model.probe(self.copies(asked), self.steps(asked.example), self.vocabulary.tokens_of)

    def headline(self, read: str, answer: str) -> str:
        return read  # the answer is a number

    def anatomy(self, model: Any) -> Anatomy:
        from recurra.analysis.anatomy import Anatomy, UnrolledLevel, levels_of

        stacks = list(self.stacks(model).values())
        reader = levels_of(stacks[0]) if stacks else [UnrolledLevel(str(self.settings.model.decoder.kind))]
        return Anatomy(reader, answers="ahead")

    def portions(self, examples: Sequence[Passage], count: int) -> list[tuple[Passage, int]]:
        """Lines of a text; as many together as fit a page where they follow on each other."""
        return list(islice(self._stretches(examples), STRETCHES))

    def _stretches(self, passages: Sequence[Passage]) -> Iterator[tuple[Passage, int]]:
        together = not self.settings.data.independent
        for passage in passages:
            kept, tokens, start = list[str](), 0, 0
            for number, line in enumerate([*passage.text.split(NEWLINE), None]):
                size = 0 if line is None else len(self.ids(line))
                if kept and (line is None or not together or tokens + size > STRETCH):
                    yield Passage(NEWLINE.join(kept), passage.file, start), tokens
                    kept, tokens = [], 0
                if line is not None and line.strip() and size <= STRETCH:
                    start = start if kept else passage.line + number
                    kept.append(line)
                    tokens += size

    def shortened(self, example: Passage, elements: int) -> Passage:
        """The first line of several."""
        first, newline, _ = example.text.partition(NEWLINE)
        return example._replace(text=first) if newline else example

    def purpose(self) -> Purpose:
        return Purpose(
            "says how likely a text is, and continues it",
            rows="lines" if self.settings.data.independent else "",
            generate="--length 200",
            python="[text] = recurra.generate(model, length=200)\nprint(text.whole)",
        )

    @property
    def truncation(self) -> int:
        return self.settings.reading.steps

    def described(self) -> str:
        model = self.settings.model
        kind = name_of(self.settings.data.text.tokens)
        stack = layers_in_words(cell_in_words(model.cell), model.widths, mix=model.mix)
        if model.decoder.kind == "transformer":
            back = model.decoder.context
            context = "unlimited context" if back is None else f"a context of {back} tokens"
            stack = f"{layers_in_words('Transformer', model.widths)} with {context}"
        parts = [
            f"{len(self.vocabulary):,} {kind.removesuffix('s')} embeddings of size {model.embedding}",
            ("backward " if model.direction == "backward" else "") + stack,
            ("tied " if model.tied else "") + output_in_words(model.output),
        ]
        return ", ".join(parts)


def reading_characters(folder: Path, device: str) -> CharacterReader:
    """The trained language model of a run as a reader of characters, whose states are features of words. (torch)

    It keeps what it was made of, so that other runs have copies of their own.
    """
    import torch

    from recurra.models.character_features import CharacterReader
    from recurra.models.saved import put_weights, read_tensors

    task = _of_characters(folder)
    mark = weights_of(folder)
    config, weights = read_file(folder / "config.toml"), (folder / WEIGHTS).read_bytes()
    model = task.build().eval().requires_grad_(False)
    put_weights(model, read_tensors(folder / WEIGHTS)[0], folder / WEIGHTS)
    if device != "cpu" and torch.cuda.is_available():
        model.to("cuda" if device == "auto" else device)

    def save(new: Path) -> None:
        new.mkdir(parents=True, exist_ok=True)
        task.save(new)
        (new / "config.toml").write_bytes(config)
        (new / WEIGHTS).write_bytes(weights)
        seal(new)

    lowercase = task.settings.data.text.lowercase or getattr(task.tokenizer, "lowercase", False)
    assert task._code_points is not None, "its tokens are characters"
    return CharacterReader(model, task._code_points.ids, task.end, bool(lowercase), task.is_backward, save, mark)


def _of_characters(folder: Path) -> LanguageModel:
    """The task of a run, if it is a language model of characters."""
    refused = functools.partial(SettingError, keys=("model", "features"))
    if not (folder / "config.toml").is_file():
        raise refused(
            f"model.features names '{folder}', but there is no run (config.toml). Train one: recurra train "
            f"language_model --train text.txt --out {folder}"
        )
    verify(folder, lambda name: name in ("config.toml", "tokenizer.json", "vocabulary.json", WEIGHTS))
    given = Given.of_run(folder)
    if given.task != "language_model" or LanguageModel.fitting(given.table(LanguageModelSettings)) is not LanguageModel:
        raise refused(f"model.features names '{folder}', a run of {given.task}: only runs of language_model read text.")
    if code := given.code(LanguageModelSettings):
        raise refused(
            f"model.features names '{folder}', whose settings name code from outside recurra ({code[0].name}): such "
            "code is not copied into another run. Use a language model of recurra's own cells."
        )
    task = LanguageModel.load(given.settings(LanguageModelSettings), folder)
    if not isinstance(task.tokenizer, Characters):
        raise refused(
            f"model.features names '{folder}', a language model of {name_of(task.settings.data.text.tokens)}: features "
            "of words are read from characters. Train one with data.text.tokens = characters."
        )
    if not (folder / WEIGHTS).is_file():
        raise refused(f"model.features names '{folder}', which has no weights yet: finish its training first.")
    return task


def weights_of(folder: Path) -> str:
    """A mark of the weights of a run, which changes when it is trained anew."""
    entry = (read_manifest(folder) or {}).get(WEIGHTS)
    return entry.sha256 if entry is not None else digest_of(folder / WEIGHTS)


def features_marks(settings: TaggingSettings | ClassificationSettings) -> list[object]:
    """What features of words depend on, for the cache: the weights of the language models, and where they are kept."""
    runs = [Path(run) for run in settings.model.features]
    marks = [weights_of(run) for run in runs if (run / WEIGHTS).is_file()]
    return [*marks, settings.model.features_disk] if runs else []


def features_of(settings: TaggingSettings | ClassificationSettings, words: int) -> CharacterFeatures | None:
    """What the language models that settings name know of words, of which training reads so many. (torch)"""
    found = _features_in([Path(run) for run in settings.model.features], settings.training.device)
    return None if found is None else found.within(settings.model.features_disk, words)


def saved_features(settings: TaggingSettings | ClassificationSettings, folder: Path) -> CharacterFeatures | None:
    """The features of which a run has the language models in its folder; None: it has none. (torch)"""
    folder = folder / FEATURES
    runs = [folder / str(number) for number in range(len(settings.model.features))]
    found = _features_in(runs, settings.training.device)
    if found is not None:
        found.kept = bool(read_json(folder / "kept.json"))
    return found


def _features_in(folders: Sequence[Path], device: str) -> CharacterFeatures | None:
    """The language models of some runs, at most one for each direction; None: no runs."""
    if not folders:
        return None
    from recurra.models.character_features import CharacterFeatures

    readers = [reading_characters(folder, device) for folder in folders]
    ways = [reader.backward for reader in readers]
    if len(ways) > len({*ways}):
        way, other = ("backward", "forward") if all(ways) else ("forward", "backward")
        same = [str(folder) for folder, each in zip(folders, ways, strict=True) if each == (way == "backward")]
        raise SettingError(
            f"model.features names {len(same)} language models that read {way}: {', '.join(same)}. Give one of each "
            f"direction: train the other with model.direction = {other}.",
            ("model", "features"),
        )
    return CharacterFeatures(readers)
