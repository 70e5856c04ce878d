"""Sequence to sequence: what is read on one side is written anew on the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from recurra.config import Seq2SeqSettings
from recurra.data.store import Encoded
from recurra.errors import ConfigError, DataError
from recurra.forcing import Forcing
from recurra.metrics.cutting import cut
from recurra.metrics.ter import ter
from recurra.named import choose
from recurra.settings import name_of
from recurra.tasks.counted import Counted
from recurra.tasks.pair_columns import place_of
from recurra.tasks.pair_decoding import CANNOT_BE_SCORED, check_search, named_tokens
from recurra.tasks.pair_remarks import described, longer_than_a_batch, padded_to_the_longest, unknown_targets
from recurra.tasks.pair_scores import NAMES as SCORES
from recurra.tasks.pair_scores import PairAnswers, pair_counts, pair_scores
from recurra.tasks.pair_texts import PairTexts
from recurra.tasks.pairs import Pair, asked, key_of, pairs, with_columns
from recurra.tasks.task import START, Axes, Loss, Moment, Prediction, Scores, Task
from recurra.tasks.written import Answer, Written
from recurra.text import Subwords
from recurra.text.vocabulary import END, UNKNOWN
from recurra.text.vocabulary import START as FIRST

if TYPE_CHECKING:
    from recurra.models.searching import Words
    from recurra.models.seq2seq import PairBatch, SequenceToSequence
    from recurra.search.search import Hypothesis

CUT_ANEW = "cut anew"
"""Marks rows of training whose subwords are cut by chance each time they are seen."""

SPELLED = ("characters", "symbols")
"""Where these are written, an answer is right as a whole or not at all."""


class Seq2Seq(Task[Pair, "PairBatch", Written]):
    """Any pair of sequences: translation, pronunciation, inflection, summaries, code."""

    Settings: ClassVar[type] = Seq2SeqSettings
    name: ClassVar[str] = "seq2seq"

    def __init__(self, settings: Seq2SeqSettings, texts: PairTexts, *, quick: bool = False) -> None:
        self.settings = settings
        self.texts = texts
        self.forcing = Forcing.of(settings.training.forcing)
        self.quick = quick

    @classmethod
    def resolved(cls, settings: Seq2SeqSettings) -> Seq2SeqSettings:
        return dataclasses.replace(settings, data=with_columns(settings.data))

    @classmethod
    def encoding(cls, settings: Seq2SeqSettings) -> object:
        return settings.model.copy

    @classmethod
    def prepared(cls, settings: Seq2SeqSettings) -> Self:
        return cls(settings, PairTexts.of(settings.data))

    def check(self) -> None:
        choose(SCORES, self.first, "evaluation.first")
        if self.first == "ter":
            ter([["there"]], ["there"])  # it needs what may not be installed
        cut(self.settings.evaluation.bleu_tokenize)
        check_search(self.settings, self.texts.target)

    def save(self, folder: Path) -> None:
        self.texts.save(folder)

    @classmethod
    def load(cls, settings: Seq2SeqSettings, folder: Path) -> Self:
        return cls(settings, PairTexts.load(folder))

    def while_training(self) -> Seq2Seq:
        if self.settings.training.validate_with == "decoding":
            return Seq2Seq(self.settings, self.texts, quick=True)
        greedy = dataclasses.replace(self.settings.decoding, search="greedy", best=1, forced=[])
        return Seq2Seq(dataclasses.replace(self.settings, decoding=greedy), self.texts, quick=True)

    def read(self, files: Sequence[str | Path]) -> Iterator[Pair]:
        return self.texts.checked(pairs(files, self.settings.data), files)

    def noticed(self, examples: Sequence[Pair]) -> str | None:
        return None if self.settings.model.copy else unknown_targets(self.texts.target, examples)

    def noticed_in_training(self, rows: Any) -> str | None:
        training = self.settings.training
        lengths, place = self.lengths(rows), lambda row: self.place(rows[row])
        if training.batch_size is not None:
            return padded_to_the_longest(lengths, training.batch_size, place)
        return longer_than_a_batch(lengths, training.batch_tokens, place)

    def questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Pair]:
        found = self.texts.checked(asked(file, lines, self.settings.data), [file or "input"])
        return self.texts.with_known_features(found, file or "input")

    # Encoding

    def encode(self, example: Pair) -> Encoded:
        texts = self.texts
        row: dict[str, NDArray[Any]] = {"place": np.array([example.file, example.line], np.int64)}
        if texts.source is None:
            row["frames"] = texts.source_frames(example)
        else:
            row["source"] = texts.source_ids(example)
        if example.target is not None:
            row["target"] = texts.target_ids(example.target)
        if self.settings.model.copy:
            words, row["copied"] = self._copied(example)
            if example.target is not None:
                unknown = texts.target.vocabulary.id(UNKNOWN)
                tokens = texts.target_tokens(example.target)
                written = [
                    words[token] if number == unknown and token in words else number
                    for token, number in zip(tokens, row["target"].tolist(), strict=True)
                ]
                row["target"] = np.array(written, np.int32)
        return row

    def _copied(self, example: Pair) -> tuple[dict[str, int], NDArray[np.int32]]:
        """The words of a source that the target's vocabulary lacks, with numbers of their own; and what each of its
        tokens is called in the target."""
        size, unknown = len(self.texts.target.vocabulary), self.texts.target.vocabulary.id(UNKNOWN)
        tokens = self.texts.source_tokens(example)
        called = self.texts.copied(self.texts.source_ids(example)).tolist()
        first = len(example.features)  # a feature is never written
        words: dict[str, int] = {}
        for place, token in enumerate(tokens[first:-1], first):
            if called[place] == unknown and token != "<sep>":
                called[place] = words.setdefault(token, size + len(words))
        return words, np.array(called, np.int32)

    def left_out(self, row: Encoded) -> str | None:
        source = row["frames" if self.texts.source is None else "source"]
        if not self.texts.too_long(source, row["target"], self.settings.data):
            return None
        return f"a side is longer than data.max_length = {self.settings.data.max_length}"

    def lengths(self, rows: Any) -> NDArray[np.int64]:
        read: NDArray[np.int64] = rows.lengths("frames" if self.texts.source is None else "source")
        try:
            longest: NDArray[np.int64] = np.maximum(read, rows.lengths("target"))
        except KeyError:  # questions
            return read
        return longest

    def chosen(self, store: Any, numbers: NDArray[np.int64]) -> Sequence[Encoded]:
        rows = super().chosen(store, numbers)
        return [{**row, CUT_ANEW: row["place"][:0]} for row in rows] if self._cuts_anew else rows

    @cached_property
    def _cuts_anew(self) -> bool:
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

    def _recut(self, row: Encoded, *seeds: int) -> Encoded:
        sides = [side for side in ("source", "target") if side in row]
        return {**row, **{s: self.texts.recut(row[s], s, seed) for s, seed in zip(sides, seeds, strict=False)}}  # type: ignore[arg-type]

    def place(self, row: Encoded) -> str:
        file, line = row["place"].tolist()
        return place_of(self.settings.data.files("train")[file], line)

    # The model

    def build(self) -> SequenceToSequence:
        from recurra.models.seq2seq import SequenceToSequence, Sizes

        texts, vocabulary = self.texts, self.texts.target.vocabulary
        sizes = Sizes(
            source=None if texts.source is None else len(texts.source.vocabulary),
            target=len(vocabulary),
            frames=None if texts.frames is None else len(texts.frames.mean),
            unknown=vocabulary.id(UNKNOWN),
            start=vocabulary.id(FIRST),
        )
        return SequenceToSequence(self.settings.model, sizes)

    def for_prediction(self, model: Any) -> Any:
        from recurra.packing import packed

        return packed(model, *(f"{member}{part}" for member in _members(model) for part in ("decoder", "output")))

    def together(self, models: Sequence[Any]) -> Any:
        from recurra.models.searching import Ensemble

        if len({model.pointer is None for model in models}) > 1:
            raise ConfigError(
                "of these runs some may copy words from the source (model.copy) and others not, so they do not choose "
                "among the same: take runs that agree."
            )
        return Ensemble(models)

    def axes(self) -> Mapping[str, Axes]:
        target = self.texts.target.vocabulary.tokens
        found: dict[str, Axes] = {
            "decoder.embedding.weight": (target, None),
            "output.readout.weight": (target, None),
            "output.readout.bias": (target,),
        }
        if self.texts.source is not None:
            found["embedding.weight"] = (self.texts.source.vocabulary.tokens, None)
        return found

    def loss(self, model: Any, batch: PairBatch, moment: Moment = START) -> Loss:
        from recurra.models.seq2seq import Forced

        if batch.target is None:
            raise DataError("there is nothing to learn from a source without a target.")
        training, forcing = self.settings.training, self.forcing
        p = forcing.probability(moment.step)
        total = model.loss(batch, forced=Forced(p, forcing.unit, forcing.replacement), r_drop=training.r_drop)
        logged = {} if p >= 1 and forcing.shape == "constant" else {"forcing": p}
        return Loss(total, int(batch.target.lengths.sum()), logged=logged)

    # Answers

    @cached_property
    def words(self) -> Words:
        """The ids that [decoding] means."""
        from recurra.models.searching import Words

        vocabulary = self.texts.target.vocabulary
        written = (END, UNKNOWN) if self.settings.decoding.unknown else (END,)
        never = tuple(vocabulary.id(token) for token in vocabulary.specials if token not in written)
        return Words(end=vocabulary.id(END), never=never, **named_tokens(self.settings.decoding, self.texts.target))

    def predict(self, model: Any, batch: PairBatch, *, detail: bool = False) -> list[Written]:
        import torch

        from recurra.models.searching import searched
        from recurra.models.seq2seq import of_rows

        golds: list[tuple[float, int] | None] = [None] * len(batch.source.lengths)
        given = self.settings.decoding.search == "given"
        with torch.no_grad():
            if batch.target is not None:
                sums = of_rows(model.token_log_likelihoods(batch), batch.target.lengths)
                golds = list(zip(sums.tolist(), batch.target.lengths.tolist(), strict=True))
            elif given:
                raise DataError(
                    "decoding.search = 'given' tells how likely a given target is, but some row has none: give rows "
                    "with a source and a target."
                )
            found: list[list[Hypothesis]] = [[] for _ in golds]
            if not given:
                attends = name_of(self.settings.model.attention) != "none"
                watch = attends and (detail or batch.target is None)  # what is asked, and not scored, is shown
                found = searched(model, batch, self.settings.decoding, self.words, watch=watch)
        lengths = batch.source.lengths.tolist()
        return [
            Written(tuple(self._answer(each, length) for each in row), gold)
            for row, gold, length in zip(found, golds, lengths, strict=True)
        ]

    def _answer(self, found: Hypothesis, length: int) -> Answer:
        """An answer whose copied words are still numbers: only with its source can they be spelled."""
        ids = found.tokens[:-1] if found.ended else found.tokens
        vocabulary = self.texts.target.vocabulary
        tokens = [vocabulary.tokens[number] if number < len(vocabulary) else f"\0{number}" for number in ids]
        text = self.texts.target.tokenizer.join(tokens)
        weights = None if found.watched is None else found.watched[:, :length].double().numpy()
        return Answer(tokens, text, found.score, found.log_probability, found.ended, weights)

    def _spelled(self, example: Pair, answer: Answer) -> Answer:
        """The answer with the words that it copied from its source."""
        if not self.settings.model.copy or not any(token.startswith("\0") for token in answer.tokens):
            return answer
        words = {f"\0{number}": token for token, number in self._copied(example)[0].items()}
        tokens = [words.get(token, token) for token in answer.tokens]
        return answer._replace(tokens=tokens, text=self.texts.target.tokenizer.join(tokens))

    def answer(self, example: Pair, output: Written) -> Prediction:
        source = "\t".join((*example.source, " ".join(example.features))).rstrip("\t")
        if self.settings.decoding.search == "given":
            assert output.gold is not None, "`predict` has refused a row without a target"
            total, count = output.gold
            detail: dict[str, Any] = {"target": example.target, "nll": -total / count}
            return Prediction(source, f"{total:.4f}\t{count}", total, example.line, detail)
        if self.settings.data.empty == "refuse" and is_empty(example):  # training has seen no such thing
            return Prediction(source, "", 0.0, example.line, {"tokens": [], "alternatives": []})
        best, *others = [self._spelled(example, each) for each in output.answers]
        detail = best.to_json()
        del detail["output"], detail["score"]
        if best.weights is not None and self.texts.source is not None:
            detail["source_tokens"] = self.texts.source_tokens(example)
        detail["alternatives"] = [other.to_json() for other in others]
        return Prediction(source, best.text, best.score, example.line, detail)

    @property
    def first(self) -> str:
        """The score that training stops on."""
        wanted = self.settings.evaluation.first
        if wanted is not None:
            return wanted
        return "word_error_rate" if self.texts.target.tokenizer.name in SPELLED else "bleu"

    def score(self, examples: Sequence[Pair], outputs: Sequence[Written]) -> Scores:
        if self.settings.decoding.search == "given":
            raise ConfigError(CANNOT_BE_SCORED)
        return pair_scores(self._scored(examples, outputs), first=self.first, quick=self.quick)

    def counted(self, examples: Sequence[Pair], outputs: Sequence[Written]) -> Counted:
        return pair_counts(self._scored(examples, outputs))

    def _scored(self, examples: Sequence[Pair], outputs: Sequence[Written]) -> PairAnswers:
        """What scores are made of."""
        best = [self._spelled(example, output.answers[0]) for example, output in zip(examples, outputs, strict=True)]
        golds = [example.target or "" for example in examples]
        evaluation, target = self.settings.evaluation, self.texts.target
        likelihood = [output.gold for output in outputs if output.gold is not None]
        return PairAnswers(
            golds=golds,
            sources=[key_of(example) for example in examples],
            answers=[answer.text for answer in best],
            gold_tokens=[target.split(gold) for gold in golds],
            answer_tokens=[answer.tokens for answer in best],
            source_lengths=[self._source_length(example) for example in examples],
            likelihood=likelihood if len(likelihood) == len(outputs) else None,
            tokenize=evaluation.bleu_tokenize,
            lowercase=evaluation.lowercase,
        )

    def _source_length(self, example: Pair) -> int:
        """Words, where the source has blanks; otherwise its letters or frames."""
        if example.frames is not None:
            return len(example.frames)
        words = sum(len(text.split()) for text in example.source)
        assert self.texts.source is not None, "there are tokens where there are no frames"
        return sum(map(len, example.source)) if self.texts.source.tokenizer.name == "characters" else words

    def described(self) -> str:
        return described(self.settings.model, self.texts)


def is_empty(example: Pair) -> bool:
    """Whether there is nothing to read."""
    return not (
        example.features or "".join(example.source).strip() or (example.frames is not None and len(example.frames))
    )


def _members(model: Any) -> list[str]:
    """What the names of the modules of each network begin with."""
    return [f"members.{number}." for number in range(len(model.members))] if hasattr(model, "members") else [""]
