"""Writing a sequence: all that does not depend on what it is written from."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from recurra.config.common import has_memory
from recurra.config.forcing import Forcing
from recurra.config.writer_model import look_of
from recurra.data.batches import in_order_of_length
from recurra.data.store import Encoded, Rows
from recurra.errors import ConfigError, DataError
from recurra.frozen import NamedTuple
from recurra.named import choose
from recurra.reading.pair_columns import place_of
from recurra.search.arrays import numbers_of
from recurra.sequences.pair_decoding import CANNOT_BE_SCORED, brackets_of, check_search, named_tokens
from recurra.sequences.pair_texts import PairTexts
from recurra.sequences.written import Answer, Written
from recurra.settings import about, name_of
from recurra.tasks.task import (
    START,
    AnswerKind,
    Asked,
    Judgement,
    Loss,
    Moment,
    Prediction,
    Recurring,
    Task,
    Viewer,
)
from recurra.text.vocabulary import END, UNKNOWN
from recurra.text.vocabulary import START as FIRST
from recurra.views.viewer import LOOKED, SEARCHED, SURE, WRITTEN, WRITTEN_REMEMBERED

if TYPE_CHECKING:
    from recurra.analysis.anatomy import Anatomy
    from recurra.analysis.exposure import Exposure
    from recurra.analysis.gates import Gates
    from recurra.analysis.probabilities import Probabilities
    from recurra.config import Seq2SeqSettings, Vec2SeqSettings
    from recurra.data.extents import Extents
    from recurra.generation.describer import Draw
    from recurra.generation.generated import Manner, TextSource
    from recurra.models.seq2seq import PairBatch, Sizes
    from recurra.predictors.predictor import Predictor
    from recurra.scoring.counted import Counted
    from recurra.scoring.pair_scores import PairAnswers
    from recurra.search.decoding import SearchTokens
    from recurra.search.search import Hypothesis
    from recurra.search.tree import Tree
    from recurra.views.tree import BeamTree
    from recurra.views.view import View

CUT_ANEW = "cut anew"
"""Marks rows of training whose subwords are cut by chance each time they are seen."""

SPELLED = ("characters", "symbols")
"""Where these are written, an answer is right as a whole or not at all."""


TOKENS = 8192
"""Elements of pairs that run free together."""

LOOKS = 250
"""To look at so many tokens takes as long as to write one."""


class WithTarget(Protocol):
    """An example of what is to be written."""

    @property
    def target(self) -> str | None:
        """None in a question."""

    @property
    def line(self) -> int:
        """Where it stands in its file."""


AnyExample = TypeVar("AnyExample", bound=WithTarget)


class ToSequence(Task[AnyExample, "PairBatch", Written]):
    """A task whose answers are sequences, written token by token; a task of its kind says what they are written from.

    `texts` holds the target's tokenizer and vocabulary, and the source's or the scale of its numbers.
    """

    length_of: ClassVar[str] = "source"
    """Whose lengths scores go by: of the source or of the target."""

    def __init__(self, settings: Seq2SeqSettings | Vec2SeqSettings, texts: PairTexts, *, quick: bool = False) -> None:
        self.settings = settings
        self.texts = texts
        self.forcing = Forcing.of(settings.training.forcing)
        self.quick = quick

    # What it is written from

    @abstractmethod
    def shown(self, example: AnyExample) -> str:
        """What a prediction calls its input."""

    @abstractmethod
    def key(self, example: AnyExample) -> str:
        """What is the same for examples with the same source, which are several references of one answer."""

    @abstractmethod
    def source_length(self, example: AnyExample) -> int:
        """What scores by length go by, as `length_of` says."""

    @abstractmethod
    def is_empty(self, example: AnyExample) -> bool:
        """Whether there is nothing to read."""

    def spelled(self, example: AnyExample, answer: Answer) -> Answer:
        """The answer with what only its source can spell."""
        return answer

    def source_tokens(self, example: AnyExample) -> list[str] | None:
        """What the places that were looked at are called; None where they have no names."""
        return None

    def check(self) -> None:
        from recurra.metrics.cutting import cut
        from recurra.metrics.ter import ter

        with about("evaluation", "first"):
            self.check_first()
            if self.first == "ter":
                ter([["there"]], ["there"])  # it needs what may not be installed
        with about("evaluation", "bleu_tokenize"):
            cut(self.settings.evaluation.bleu_tokenize)
        check_search(self.settings, self.texts.target)

    def check_first(self) -> None:
        """Refuse a score to stop on that there is none of."""
        from recurra.scoring.pair_scores import NAMES as SCORES
        from recurra.scoring.pair_scores import OF_TREES

        is_tree = self.settings.evaluation.shape == "tree"
        choose((*SCORES, *OF_TREES) if is_tree else SCORES, self.first, "evaluation.first")

    def save(self, folder: Path) -> None:
        self.texts.save(folder)

    @classmethod
    def load(cls, settings: Any, folder: Path) -> Self:
        return cls(settings, PairTexts.load(folder, settings.data))

    def with_settings(self, settings: Any, folder: Path) -> Self:
        return type(self)(settings, self.texts, quick=self.quick)

    def while_training(self) -> Self:
        if self.settings.training.validate_with == "decoding":
            return type(self)(self.settings, self.texts, quick=True)
        greedy = dataclasses.replace(self.settings.decoding, search="greedy", best=1, forced=[])
        return type(self)(dataclasses.replace(self.settings, decoding=greedy), self.texts, quick=True)

    def noticed(self, examples: Sequence[AnyExample]) -> str | None:
        from recurra.sequences.pair_remarks import unknown_targets

        return unknown_targets(self.texts.target, [example.target or "" for example in examples])

    def noticed_in_training(self, rows: Any) -> str | None:
        from recurra.sequences.pair_remarks import longer_than_a_batch, padded_to_the_longest

        training = self.settings.training
        lengths, place = self.lengths(rows), lambda row: self.place(rows[row])
        if training.batch_size is not None:
            return padded_to_the_longest(lengths, training.batch_size, place)
        return longer_than_a_batch(lengths, training.batch_tokens, place)

    def chosen(self, store: Any, numbers: NDArray[np.int64]) -> Sequence[Encoded]:
        rows = super().chosen(store, numbers)
        return [{**row, CUT_ANEW: row["place"][:0]} for row in rows] if self._cuts_anew else rows

    @property
    def carries_rows(self) -> bool:
        """The baseline of hard attention is a mean over all rows."""
        return look_of(self.settings.model.attention) != "hard"

    @cached_property
    def _cuts_anew(self) -> bool:
        from recurra.text import Subwords

        sides = (self.texts.source, self.texts.target)
        return any(
            isinstance(side.tokenizer, Subwords) and side.tokenizer.dropout > 0 for side in sides if side is not None
        )

    def batch(self, rows: Sequence[Encoded]) -> PairBatch:
        from recurra.models.seq2seq import pairs_batched

        if CUT_ANEW in rows[0]:
            import torch

            seeds = torch.randint(1 << 31, (len(rows), 2)).tolist()  # the trainer has seeded torch for this step
            rows = [self._recut(row, *pair) for row, pair in zip(rows, seeds, strict=True)]
        return pairs_batched(rows, vocabulary=len(self.texts.target.vocabulary))

    @property
    def draws_in_batch(self) -> bool:
        return self._cuts_anew

    def _recut(self, row: Encoded, *seeds: int) -> Encoded:
        sides = [side for side in ("source", "target") if side in row]
        row = self.in_order_of_writing(row)  # in which texts are cut
        row = {**row, **{s: self.texts.recut(row[s], s, seed) for s, seed in zip(sides, seeds, strict=False)}}  # type: ignore[arg-type]
        return self.in_order_of_writing(row)

    def place(self, row: Encoded) -> str:
        file, line = row["place"].tolist()
        return place_of(self.settings.data.files("train")[file], line)

    @property
    def writes_backward(self) -> bool:
        """Whether targets are written from their end."""
        return bool(self.settings.model.writes_backward)

    def in_order_of_writing(self, row: Encoded) -> Encoded:
        """A row whose target stands as it is read, as one whose target stands as it is written; and the other way."""
        if not self.writes_backward or "target" not in row:
            return row
        return {**row, "target": self.texts.turned(row["target"])}

    def in_order_of_reading(self, tokens: list[str]) -> list[str]:
        """Tokens, without the end, as they were written, as a text has them."""
        return tokens[::-1] if self.writes_backward else tokens

    # The model

    def sizes(self, *, channels: int | None = None) -> Sizes:
        """What the data say of a network. (torch)"""
        from recurra.models.seq2seq import Sizes

        texts, vocabulary = self.texts, self.texts.target.vocabulary
        return Sizes(
            source=None if texts.source is None else len(texts.source.vocabulary),
            target=len(vocabulary),
            frames=None if texts.frames is None else len(texts.frames.mean),
            unknown=vocabulary.id(UNKNOWN),
            start=vocabulary.id(FIRST),
            channels=channels,
            end=vocabulary.id(END),
        )

    def for_prediction(self, model: Any) -> Any:
        from recurra.products.packing import packed

        if self.settings.model.decoder.kind == "ctc":  # whose products have many rows
            return model
        return packed(model, *(f"{member}{part}" for member in _members(model) for part in ("decoder", "output")))

    def together(self, models: Sequence[Any]) -> Any:
        from recurra.models.searching import Ensemble

        if len({model.pointer is None for model in models}) > 1:
            raise ConfigError(
                "some of these runs copy words from the source (model.copy) and others do not, so they cannot form "
                "an ensemble: use runs with the same model.copy."
            )
        if len({model.writes_backward for model in models}) > 1:
            raise ConfigError(
                "some of these runs write from the beginning and others from the end, so they cannot write together: "
                "use runs with the same model.decoder.direction (vec2seq: model.direction)."
            )
        return Ensemble(models)

    def loss(self, model: Any, batch: PairBatch, moment: Moment = START) -> Loss:
        from recurra.models.forcing import Forced

        if batch.target is None:
            raise DataError("a training example needs a target, but this one has only a source.")
        training = self.settings.training
        total, baseline = model.costs(
            batch,
            forced=Forced.at(self.forcing, moment.step, moment.varying),
            r_drop=training.r_drop,
            everywhere=training.doubly_stochastic,
            baseline=moment.carried[0] if moment.carried else None,
        )
        carried = () if baseline is None else (baseline,)
        return Loss(total, int(batch.target.lengths.sum()), carried, logged=self.varying(moment.step))

    def varying(self, step: int) -> Mapping[str, float]:
        return self.forcing.varying(step)

    def recurring(self, batch: PairBatch) -> Recurring | None:
        """None for CTC, whose loss takes lengths from the CPU, and for hard attention, whose rewards are sums of rows
        that are counted there; the loops of decoders are recorded all the same."""
        from recurra.models.seq2seq import recurring_pairs

        model = self.settings.model
        if model.decoder.kind == "ctc" or look_of(model.attention) == "hard":
            return None
        found = recurring_pairs(batch)
        return None if found is None or batch.target is None else Recurring(found, int(batch.target.lengths.sum()))

    def free_running(self, model: Any, examples: Sequence[Any]) -> Exposure:
        from recurra.analysis.exposure import Exposed, Exposure
        from recurra.models.searching import run_free
        from recurra.padding import fitted

        rows, items = list(self.encode_all(examples)), list[Exposed]()
        for numbers in in_order_of_length(self.lengths(Rows.of(rows)), tokens=TOKENS):
            batch = fitted(self.batch([rows[number] for number in numbers]), model)
            if batch.target is None:
                raise DataError("free running is compared with given targets, but a row has no target.")
            items += run_free(model, batch)
        return Exposure.of(items, "nll")

    # Answers

    @cached_property
    def search_tokens(self) -> SearchTokens:
        """The ids that [decoding] means."""
        from recurra.search.decoding import SearchTokens

        vocabulary = self.texts.target.vocabulary
        written = (END, UNKNOWN) if self.settings.decoding.unknown else (END,)
        never = tuple(vocabulary.id(token) for token in vocabulary.specials if token not in written)
        named = named_tokens(self.settings.decoding, self.texts.target)
        brackets, unmatched = brackets_of(self.settings.decoding, self.texts.target, backward=self.writes_backward)
        return SearchTokens(
            end=vocabulary.id(END),
            never=(*never, *unmatched),
            banned=named["banned"],
            forced=named["forced"],
            prefix=named["prefix"],
            specials=len(vocabulary),
            brackets=brackets,
        )

    def predict(self, model: Any, batch: PairBatch, *, detail: bool = False) -> list[Written]:
        import torch

        from recurra.models.ctc import Transcriber
        from recurra.models.searching import searched
        from recurra.models.seq2seq import of_rows

        golds: list[tuple[float, int] | None] = [None] * len(batch.source.values)
        given = self.settings.decoding.search == "given"
        with torch.no_grad():
            if batch.target is not None:
                sums = of_rows(model.token_log_likelihoods(batch), batch.target.lengths)
                golds = list(zip(sums.tolist(), batch.target.lengths.tolist(), strict=True))
            elif given:
                raise DataError(
                    "decoding.search = 'given' scores given targets, but a row has no target: give rows with a "
                    "source and a target."
                )
            found: list[list[Hypothesis]] = [[] for _ in golds]
            is_shown = (detail or batch.target is None) and not given  # what is asked, not scored, is shown
            watch, align = is_shown and self.attends, is_shown and isinstance(model, Transcriber)
            # Which refuses networks that see different places.
            extents = model.extents(batch.source) if watch or align else None
            if not given:
                found = searched(model, batch, self.settings.decoding, self.search_tokens, watch=watch)
                found = model.aligned(batch, found) if align else found
        return self.written(found, golds, extents)

    def predictor(self) -> Predictor[Written]:
        from recurra.predictors.to_sequence import ToSequencePredictor

        texts, kind = self.texts, ToSequencePredictor
        if self.settings.model.decoder.kind == "ctc":
            from recurra.predictors.transcription import TranscriptionPredictor

            kind = TranscriptionPredictor
        return kind(
            self,
            source=None if texts.source is None else len(texts.source.vocabulary),
            frames=None if texts.frames is None else len(texts.frames.mean),
            tokens=len(texts.target.vocabulary),
            start=texts.target.vocabulary.id(FIRST),
            copies=self.names_places,
            **self.of_pictures,
        )

    @property
    def of_pictures(self) -> dict[str, Any]:
        """How pictures are read, where the source is one: `image` and `channels`."""
        return {}

    def describer(self, draw: Draw, manner: Manner) -> TextSource | None:
        """What writes texts by drawing them; None where the task answers in place of that."""
        return None

    def offline(self) -> Mapping[str, Any]:
        from recurra.predictors import offline

        if (kind := self.settings.model.decoder.kind) != "rnn":
            raise offline.not_yet("a model of CTC" if kind == "ctc" else "a Transformer that writes")
        if self.writes_backward:
            raise offline.not_yet("a model that writes from the end")
        return offline.writing(
            self.texts,
            self.settings.decoding,
            self.search_tokens,
            first=self.texts.target.vocabulary.id(FIRST),
            columns=len(self.schema().columns),
            copies=self.names_places,
        )

    @property
    def names_places(self) -> bool:
        """Whether places of the source have names of their own in the target: words are copied, or pointed at."""
        return False

    def written(
        self,
        found: Sequence[Sequence[Hypothesis]],
        golds: Sequence[tuple[float, int] | None],
        extents: Extents | None,
    ) -> list[Written]:
        """Outputs out of the hypotheses of each source, best first, and what is known of the targets."""
        return [
            Written(tuple(self._answer(each, number, extents) for each in row), gold)
            for number, (row, gold) in enumerate(zip(found, golds, strict=True))
        ]

    def _answer(self, found: Hypothesis, row: int, extents: Extents | None) -> Answer:
        """An answer whose copied words are still numbers: only with its source can they be spelled."""
        ids = found.tokens[:-1] if found.ended else found.tokens
        vocabulary = self.texts.target.vocabulary
        tokens = [vocabulary.tokens[number] if number < len(vocabulary) else f"\0{number}" for number in ids]
        tokens = self.in_order_of_reading(tokens)
        text = self.texts.target.tokenizer.join(tokens)
        weights, columns = None, None
        if found.watched is not None and extents is not None and len(found.watched):
            weights = looked_at(numbers_of(found.watched), extents.each[row], extents.columns)
            if self.writes_backward:
                weights = np.concatenate([weights[len(ids) - 1 :: -1][: len(ids)], weights[len(ids) :]])
            columns = None if extents.columns is None else extents.each[row][1]
        return Answer(tokens, text, found.score, found.log_probability, found.ended, weights, columns)

    @property
    def unused_decoding(self) -> Collection[str]:
        return () if self.attends else ("coverage_penalty",)

    def most_written(self, lengths: Sequence[int]) -> float:
        decoding = self.settings.decoding
        rows = {"beam": decoding.width, "sampling": decoding.best}.get(decoding.search, 1)
        longest = math.inf if decoding.max_ratio is None else decoding.max_ratio * max(lengths) + 10
        return rows * min(decoding.max_length, longest) * (len(lengths) + sum(lengths) / LOOKS)

    def answer_kind(self) -> AnswerKind:
        return "written"

    def answer(self, example: AnyExample, output: Written) -> Prediction:
        source = self.shown(example)
        if self.settings.decoding.search == "given":
            assert output.gold is not None, "`predict` has refused a row without a target"
            total, count = output.gold
            detail: dict[str, Any] = {"target": example.target, "nll": -total / count}
            return Prediction(source, f"{total:.4f}\t{count}", total, example.line, detail)
        if self.settings.data.empty == "refuse" and self.is_empty(example):  # training has seen no such thing
            return Prediction(source, "", 0.0, example.line, {"tokens": [], "alternatives": []})
        best, *others = [self.spelled(example, each) for each in output.answers]
        detail = best.to_json()
        del detail["output"], detail["score"]
        if best.weights is not None and (names := self.source_tokens(example)) is not None:
            detail["source_tokens"] = names
        detail["alternatives"] = [other.to_json() for other in others]
        return Prediction(source, best.text, best.score, example.line, detail)

    @property
    def first(self) -> str:
        """The score that training stops on."""
        wanted = self.settings.evaluation.first
        if wanted is not None:
            return wanted
        if self.settings.evaluation.shape == "tree":
            return "bracket_f1"
        return "word_error_rate" if self.texts.target.tokenizer.name in SPELLED else "bleu"

    def counted(self, examples: Sequence[AnyExample], outputs: Sequence[Written]) -> Counted:
        from recurra.scoring.pair_scores import pair_scores

        if self.settings.decoding.search == "given":
            raise ConfigError(CANNOT_BE_SCORED)
        return pair_scores(self._scored(examples, outputs), first=self.first, quick=self.quick)

    def _scored(self, examples: Sequence[AnyExample], outputs: Sequence[Written]) -> PairAnswers:
        """What scores are made of."""
        from recurra.scoring.pair_scores import PairAnswers, with_words

        best = [self.spelled(example, output.answers[0]) for example, output in zip(examples, outputs, strict=True)]
        golds = [example.target or "" for example in examples]
        evaluation, target = self.settings.evaluation, self.texts.target
        likelihood = [output.gold for output in outputs if output.gold is not None]
        given = PairAnswers(
            golds=golds,
            sources=[self.key(example) for example in examples],
            answers=[answer.text for answer in best],
            gold_tokens=[target.split(gold) for gold in golds],
            answer_tokens=[answer.tokens for answer in best],
            source_lengths=[self.source_length(example) for example in examples],
            likelihood=likelihood if len(likelihood) == len(outputs) else None,
            tokenize=evaluation.bleu_tokenize,
            lowercase=evaluation.lowercase,
            shown=[self.shown(example) for example in examples],
            length_of=self.length_of,
            trees=evaluation.shape == "tree",
        )
        return with_words(given, target.tokenizer)

    # Views

    @property
    def attends(self) -> bool:
        """Whether there is anything to look at, and an attention that does."""
        return self.settings.model.attends

    def viewers(self) -> dict[str, Viewer]:
        is_beam = self.settings.decoding.search == "beam"
        looked = {
            "attention": Viewer(self.looked, telling=self.attends, title=LOOKED, possible=self.attends, of_several=True)
        }
        others = {
            "probabilities": Viewer(
                lambda asked: self.probabilities(asked).view(), longest=200, title=SURE, of_several=True
            ),
            "tree": Viewer(self.tree, longest=30, telling=is_beam, title=SEARCHED, of_several=True),
            "decoder": Viewer(
                lambda asked: self.decoder_gates(asked).view(),
                longest=60,
                title=WRITTEN,
                layered=True,
                possible=self.settings.model.decoder.kind == "rnn",
            ),
        }
        model = self.settings.model
        if model.decoder.kind == "rnn" and has_memory(model.decoder.cell or model.cell):
            others["decoder_memory"] = Viewer(self.decoder_memory, longest=60, title=WRITTEN_REMEMBERED)
        return {**looked, **others} if self.attends else {**others, **looked}

    def looked(self, asked: Asked) -> View:
        """Where the model looked, token by token. (torch)"""
        from recurra.analysis.alignment import alignment_of

        answer = self.best_answer(asked)
        return alignment_of(answer, self.headline(answer.input, answer.output))

    def best_answer(self, asked: Asked) -> Prediction:
        """The answer that is asked about, with where the model looked. (torch)"""
        if not self.attends:
            raise ConfigError(
                f"the run {asked.run} was trained with model.attention = none, so there are no attention weights: "
                f"train without that setting to get them."
            )
        return self.chosen_answer(asked)

    def chosen_answer(self, asked: Asked) -> Prediction:
        """The answer that is asked about, which may not be the first. (torch)"""
        answer = self.answered(asked)
        every = [answer.detail, *answer.alternatives]
        if len(every) < asked.best:
            raise DataError(f"--best {asked.best}: the search found {len(every)} answer{'s' * (len(every) != 1)}.")
        if asked.best == 1:
            return answer
        chosen = every[asked.best - 1]
        detail = {**chosen, "source_tokens": answer.detail.get("source_tokens")}
        return answer._replace(
            output=chosen["output"],
            score=chosen["score"],
            detail={name: value for name, value in detail.items() if value is not None},
        )

    def probabilities(self, asked: Asked) -> Probabilities:
        """How probable each token of the answer was. (torch, but of an exported model)"""
        from recurra.analysis.probabilities import Probabilities

        found = self.hypothesis(asked)
        model: Any = asked.model
        if asked.exported:
            logs = model.predictor.token_log_likelihoods(model.running, found.row)
        else:
            import torch

            with torch.no_grad():
                logs = model.token_log_likelihoods(self.copies(asked, found.row)(1)).cpu().double().numpy()
        title = f"{self.headline(self.shown(asked.example), found.text)}, p {math.exp(logs.sum()):.4g}"
        if self.writes_backward:  # shown as a text is read, each with its probability given those after it
            title += ", written from the end"
            order = [*range(len(found.tokens))]
            last = order.pop() if found.tokens[-1] == END else None
            order = order[::-1] + ([] if last is None else [last])
            return Probabilities([found.tokens[place] for place in order], logs[order], title)
        return Probabilities(found.tokens, logs, title)

    def decoder_gates(self, asked: Asked) -> Gates:
        """Gates and states of the decoder while it wrote the answer. (torch)"""
        from recurra.analysis.gates import gates_of_decoder
        from recurra.padding import fitted

        kind = self.settings.model.decoder.kind
        if kind != "rnn":
            raise ConfigError(
                f"the run {asked.run} has no recurrent decoder (model.decoder.kind = {kind}), so there are no gates of "
                "a decoder to show."
            )
        if asked.direction == ("forward" if self.writes_backward else "backward"):
            way = "from its end" if self.writes_backward else "forward"
            raise ConfigError(f"--direction {asked.direction}: a decoder reads {way} only.")
        found = self.hypothesis(asked)

        def read(model: Any) -> None:
            model.token_log_likelihoods(fitted(self.batch([found.row]), model))

        return gates_of_decoder(asked.model, [FIRST, *found.tokens[:-1]], read, layer=asked.layer)

    def decoder_memory(self, asked: Asked) -> View:
        """Where the external memory of the decoder was written and read while it wrote the answer. (torch)"""
        from recurra.analysis.memory import memory_view

        return memory_view(self.decoder_gates(asked), WRITTEN_REMEMBERED)

    def reread(self, model: Any, batch: PairBatch) -> object:
        import torch

        from recurra.models.searching import searched
        from recurra.padding import beside, pad

        decoding = self.settings.decoding
        if decoding.search == "given":
            decoding = dataclasses.replace(decoding, search="greedy", best=1)
        with torch.no_grad():
            found = searched(model, batch, decoding, self.search_tokens)
        written = pad([torch.tensor(hypotheses[0].tokens) for hypotheses in found])
        target = written._replace(values=beside(written.values, batch.source.values))
        return model.token_log_likelihoods(batch._replace(target=target))

    def tree(self, asked: Asked) -> BeamTree:
        """The search of a beam, step by step. (torch, but of an exported model)"""
        from recurra.analysis.beam_tree import beam_tree
        from recurra.views.view import labels

        decoding = self.settings.decoding
        if decoding.search != "beam":
            raise ConfigError(
                f"decoding.search = '{decoding.search}': only beam search has a tree to show. Add "
                f"--set decoding.search=beam."
            )
        record: list[Tree] = []
        self._hypotheses(asked, self._question(asked.example), record=record)
        ids = sorted({token for layer in record[0].layers for token in layer.tokens})
        names = dict(zip(ids, labels(self._named(asked.example, ids)), strict=True))
        return beam_tree(record[0], names, f"A beam of width {decoding.width}")

    def hypothesis(self, asked: Asked) -> Found:
        """The answer that is asked about as a search finds it. (torch, but of an exported model)"""
        self.check_explained(asked.example)
        row = self._question(asked.example)
        found = self._hypotheses(asked, row)
        if len(found) < asked.best:
            raise DataError(f"--best {asked.best}: the search found {len(found)} answer{'s' * (len(found) != 1)}.")
        ids = found[asked.best - 1].tokens
        tokens = self._named(asked.example, ids)
        read = self.in_order_of_reading([token for token in tokens if token != END])
        text = self.texts.target.tokenizer.join(read)
        return Found(tokens, text, {**row, "target": np.array(ids)})

    def _hypotheses(self, asked: Asked, row: Encoded, record: list[Tree] | None = None) -> list[Hypothesis]:
        """What a search finds for one source, best first; a beam writes its way down in `record`."""
        if asked.exported:
            exported: list[Hypothesis] = asked.model.predictor.hypotheses(asked.model.running, row, record=record)
            return exported
        import torch

        from recurra.models.searching import searched

        with torch.no_grad():
            [found] = searched(
                asked.model, self.copies(asked, row)(1), self.settings.decoding, self.search_tokens, record=record
            )
        return found

    def _question(self, example: AnyExample) -> Encoded:
        """An example as arrays, without its answer."""
        return {name: value for name, value in self.encode(example).items() if name != "target"}

    def _named(self, example: AnyExample, ids: Sequence[int]) -> list[str]:
        """What written ids are called, copied words included."""
        tokens = self.texts.target.vocabulary.tokens
        names = [tokens[number] if number < len(tokens) else f"\0{number}" for number in ids]
        return list(self.spelled(example, Answer(names, "", 0.0, 0.0)).tokens)

    def anatomy(self, model: Any) -> Anatomy:
        from recurra.analysis.anatomy import Anatomy, UnrolledLevel, cell_in_words

        settings = self.settings.model
        if settings.decoder.kind == "ctc":
            return Anatomy([], is_aligned=True)
        levels = [UnrolledLevel(cell_in_words(cell), ("forward",)) for cell in model.decoder.wiring.layers]
        attention = f"attention: {name_of(settings.attention)}, {settings.wiring}" if self.attends else ""
        if settings.decoder.kind == "transformer":
            attention = "attention in every layer"
        elif settings.decoder.kind == "window":
            attention = f"attention: {name_of(settings.attention)}, from the last {settings.decoder.window} tokens"
        writer = levels or [UnrolledLevel(str(settings.decoder.kind))]
        wiring = name_of(settings.wiring) if settings.decoder.kind == "rnn" else ""
        return Anatomy(
            [],
            writer,
            enters=", ".join(settings.conditioning),
            attention=attention,
            wiring=wiring,
            is_turned=self.writes_backward,
        )

    def extent(self, row: Encoded, output: Written) -> int:
        return max(super().extent(row, output), len(output.answers[0].tokens) if output.answers else 0)

    def judge(self, examples: Sequence[AnyExample]) -> Callable[[AnyExample, Prediction], Judgement | None]:
        """An answer is right if it is any of those to the same source: a word may be said in more than one way."""
        references: dict[str, list[str]] = {}
        for example in examples:
            references.setdefault(self.key(example), []).append(example.target or "")
        split = self.texts.target.split

        def verdict(example: AnyExample, answer: Prediction) -> Judgement | None:
            if example.target is None:
                return None
            said = answer.output
            is_right = any(said == each or split(said) == split(each) for each in references[self.key(example)])
            return Judgement(is_right, f"{example.target} is right")

        return verdict

    def check_explained(self, example: AnyExample) -> None:
        if self.settings.decoding.search == "given":
            raise DataError("there is no answer to explain: decoding.search = given generates no output.")
        if self.settings.data.empty == "refuse" and self.is_empty(example):
            raise DataError("there is no answer to explain: the input is empty.")


class Found(NamedTuple):
    """A written answer: its tokens, with the end where it has one, its text, and the row of both sides."""

    tokens: list[str]
    text: str
    row: Encoded


def _members(model: Any) -> list[str]:
    """What the names of the modules of each network begin with."""
    return [f"members.{number}." for number in range(len(model.members))] if hasattr(model, "members") else [""]


def looked_at(watched: NDArray[Any], extent: tuple[int, int], columns: int | None) -> NDArray[np.float64]:
    """(T, rows · columns) from weights (T, S) over the places of a padded memory: those of one source alone.

    >>> looked_at(np.array([[0.5, 0.0, 0.5, 0.0]]), (2, 1), 2).tolist()
    [[0.5, 0.5]]
    """
    rows, width = extent
    seen = watched[:, None, :width] if not columns else watched.reshape(len(watched), -1, columns)[:, :rows, :width]
    return seen.reshape(len(watched), -1).astype(np.float64)
