"""Sequence to sequence: what is read on one side is written anew on the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from recurra.config import Seq2SeqSettings
from recurra.data.files import extension
from recurra.data.store import Encoded
from recurra.errors import ConfigError, DataError
from recurra.named import choose
from recurra.reading.pair_columns import place_of
from recurra.reading.pair_tokens import are_short
from recurra.reading.pairs import Pair, asked, key_of, pairs, with_columns
from recurra.reading.samples import typed
from recurra.reading.schema import Schema
from recurra.sequences.elements import elements_in, numbered
from recurra.sequences.pair_texts import PairTexts
from recurra.sequences.written import Answer, Written
from recurra.tasks.task import Asked, Axes, Judgement, Prediction, Purpose, Task, Viewer
from recurra.tasks.to_sequence import ToSequence
from recurra.text.vocabulary import END, UNKNOWN
from recurra.views.purpose import SERIES
from recurra.views.viewer import ALIGNED, MATTERED

if TYPE_CHECKING:
    from recurra.analysis.anatomy import Anatomy
    from recurra.analysis.gates import Stack
    from recurra.analysis.saliency import Probe
    from recurra.models.ctc import Transcriber
    from recurra.models.seq2seq import SequenceToSequence
    from recurra.scoring.counted import Counted
    from recurra.views.view import View


class Seq2Seq(ToSequence[Pair]):
    """Any pair of sequences: translation, pronunciation, inflection, summaries, code."""

    Settings: ClassVar[type] = Seq2SeqSettings
    name: ClassVar[str] = "seq2seq"
    reads_apart: ClassVar[bool] = True

    settings: Seq2SeqSettings

    @classmethod
    def resolved(cls, settings: Seq2SeqSettings) -> Seq2SeqSettings:
        data = settings.data
        if settings.model.pointer is not None:  # numbers of elements
            data = dataclasses.replace(data, target=dataclasses.replace(data.target, tokens="symbols"))
        data, evaluation = with_columns(data), settings.evaluation
        is_open = evaluation.first is None and evaluation.shape == "sequence"
        if is_open and are_short(data.target.tokens, (pair.target or "" for pair in pairs(data.files("train"), data))):
            evaluation = dataclasses.replace(evaluation, first="symbol_error_rate")
        return dataclasses.replace(settings, data=data, evaluation=evaluation)

    @classmethod
    def encoding(cls, settings: Seq2SeqSettings) -> object:
        model = settings.model
        if model.decoder.kind == "ctc":
            return ["ctc", model.decoder.expand, model.steps_in_a_place]
        read = model.copy if model.pointer is None else "elements"
        return ["turned", read] if model.writes_backward else read

    @classmethod
    def prepared(cls, settings: Seq2SeqSettings) -> Self:
        return cls(settings, PairTexts.of(settings.data, points=settings.model.pointer is not None))

    @classmethod
    def prepared_from(cls, settings: Seq2SeqSettings, base: Self) -> Self:
        return cls(settings, PairTexts.of(settings.data, points=settings.model.pointer is not None, base=base.texts))

    def check(self) -> None:
        super().check()
        shape, frames = self.settings.evaluation.shape, self.texts.frames
        if shape in ("hull", "triangles") and frames is not None and len(frames.mean) != 2:
            raise ConfigError(
                f"evaluation.shape = '{shape}' scores points of a plane, which have two numbers each, but "
                f"'{self.settings.data.frames}' has {len(frames.mean)} per element: leave it out."
            )
        if self.points and shape != "sequence" and frames is None:
            raise ConfigError(f"evaluation.shape = '{shape}' scores points, but the source is a text: leave it out.")

    def check_first(self) -> None:
        if not self.points:
            super().check_first()
        else:
            from recurra.scoring.point_scores import names_of

            choose(names_of(self.settings.evaluation.shape), self.first, "evaluation.first")

    def read(self, files: Sequence[str | Path]) -> Iterator[Pair]:
        found = self.texts.checked(pairs(files, self.settings.data), files)
        return self._with_elements(found, files) if self.points else found

    def noticed(self, examples: Sequence[Pair]) -> str | None:
        return None if self.settings.model.copy or self.points else super().noticed(examples)

    # Elements of the source, where answers are made of them

    @property
    def names_places(self) -> bool:
        return bool(self.settings.model.copy) or self.points

    @property
    def points(self) -> bool:
        """Whether answers are elements of the source."""
        return self.settings.model.pointer is not None

    def _with_elements(self, found: Iterable[Pair], files: Sequence[str | Path]) -> Iterator[Pair]:
        """The same pairs, where a target names elements that there are."""
        for pair in found:
            if pair.target is not None:
                elements_in(pair.target, self._elements(pair), place_of(files[pair.file], pair.line))
            yield pair

    def _numbered(self, example: Pair) -> NDArray[np.int32]:
        """The id by which each place of a source is pointed at."""
        specials = len(self.texts.target.vocabulary)
        if self.texts.source is None:
            steps = 0 if example.frames is None else len(example.frames)
            return np.arange(specials, specials + steps, dtype=np.int32)
        return numbered(self.texts.source_tokens(example), len(example.features), specials)

    def _elements(self, example: Pair) -> int:
        """How many elements a source has."""
        return int((self._numbered(example) > 0).sum())

    def _pointed(self, example: Pair, target: str) -> NDArray[np.int32]:
        """The ids of a target, and of the end."""
        vocabulary = self.texts.target.vocabulary
        found = [len(vocabulary) + number for number in elements_in(target, self._elements(example))]
        return np.array([*found, vocabulary.id(END)], np.int32)

    def questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Pair]:
        found = self.texts.checked(asked(file, lines, self.settings.data), [file or "input"])
        found = self._with_elements(found, [file or "input"]) if self.points else found
        return self.texts.with_known_features(found, file or "input")

    def schema(self) -> Schema:
        return Schema("frames") if self.settings.data.frames is not None else Schema("text", self._columns())

    def sent(self, example: Pair) -> object:
        """The texts of a pair with tabs between them; all its features stand in the first column of them."""
        if example.frames is not None:
            return typed(example.frames)
        data, sources, features = self.settings.data, iter(example.source), " ".join(example.features)
        found = []
        for name in self._columns():
            if name in (data.features or ()):
                found.append(features)
                features = ""
            else:
                found.append(next(sources) if name == data.source.column else "")
        return "\t".join(found)

    def _columns(self) -> list[str]:
        """The texts of one question, in the order in which tabs separate them."""
        data = self.settings.data
        usual = [data.source.column or "", *(data.features or ())]
        return [name for name in data.columns or usual if name != data.target.column]

    # Encoding

    def encode(self, example: Pair) -> Encoded:
        texts = self.texts
        row: dict[str, NDArray[Any]] = {"place": np.array([example.file, example.line], np.int64)}
        if texts.source is None:
            row["frames"] = texts.source_frames(example)
        else:
            row["source"] = texts.source_ids(example)
        if self.points:
            row["copied"] = self._numbered(example)
            if example.target is not None:
                row["target"] = self._pointed(example, example.target)
            return self.in_order_of_writing(row)
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
        return self.in_order_of_writing(row)

    def not_in_vocabulary(self, example: Pair) -> list[str]:
        """None with model.copy, by which an unknown word can be written all the same."""
        return [] if self.texts.source is None or self.settings.model.copy else self.texts.unknown_in(example)

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
        if self.settings.model.decoder.kind == "ctc":
            from recurra.sequences.enough_steps import check_steps

            check_steps(row["target"].tolist()[:-1], len(source), self.settings.model, self.place(row))
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

    # The model

    def build(self) -> SequenceToSequence | Transcriber:
        from recurra.models.ctc import Transcriber
        from recurra.models.seq2seq import SequenceToSequence

        self.settings.augmentation.check_series(None if self.texts.source is None else "a text is read")
        if self.settings.model.decoder.kind == "ctc":
            end = self.texts.target.vocabulary.id(END)
            return Transcriber(self.settings.model, self.sizes(), end, self.settings.augmentation)
        return SequenceToSequence(self.settings.model, self.sizes(), self.settings.augmentation)

    def axes(self) -> Mapping[str, Axes]:
        target = self.texts.target.vocabulary.tokens
        has_decoder = self.settings.model.decoder.kind != "ctc"
        found: dict[str, Axes] = {"decoder.embedding.weight": (target, None)} if has_decoder else {}
        if not self.points:
            found |= {"output.readout.weight": (target, None), "output.readout.bias": (target,)}
        if self.texts.source is not None:
            found["embedding.weight"] = (self.texts.source.vocabulary.tokens, None)
        return found

    # Answers

    def spelled(self, example: Pair, answer: Answer) -> Answer:
        """The answer with the words that it copied from its source, or the numbers of its elements."""
        if self.points:
            specials = len(self.texts.target.vocabulary)
            tokens = [
                str(int(token[1:]) - specials + 1) if token.startswith("\0") else token for token in answer.tokens
            ]
            return answer._replace(tokens=tokens, text=" ".join(tokens))
        if not self.settings.model.copy or not any(token.startswith("\0") for token in answer.tokens):
            return answer
        words = {f"\0{number}": token for token, number in self._copied(example)[0].items()}
        tokens = [words.get(token, token) for token in answer.tokens]
        return answer._replace(tokens=tokens, text=self.texts.target.tokenizer.join(tokens))

    def shown(self, example: Pair) -> str:
        steps = None if example.frames is None else len(example.frames)
        source = example.source if steps is None else [f"a series of {steps} step{'s' * (steps != 1)}"]
        return "\t".join((*source, " ".join(example.features))).rstrip("\t")

    def key(self, example: Pair) -> str:
        return key_of(example)

    @property
    def attends(self) -> bool:
        return super().attends or self.points

    @property
    def first(self) -> str:
        wanted = self.settings.evaluation.first
        return super().first if wanted is not None or not self.points else "exact_match"

    def counted(self, examples: Sequence[Pair], outputs: Sequence[Written]) -> Counted:
        if not self.points or self.settings.decoding.search == "given":
            return super().counted(examples, outputs)
        from recurra.scoring.point_scores import PointAnswers, point_scores

        likelihood = [output.gold for output in outputs if output.gold is not None]
        counts = [self._elements(example) for example in examples]
        best = [self.spelled(each, output.answers[0]) for each, output in zip(examples, outputs, strict=True)]
        given = PointAnswers(
            items=[self.origin(example) for example in examples],
            golds=[elements_in(each.target or "", count) for each, count in zip(examples, counts, strict=True)],
            answers=[[int(token) - 1 for token in answer.tokens] for answer in best],
            points=None if self.texts.frames is None else [_frames(example) for example in examples],
            counts=counts,
            likelihood=likelihood if len(likelihood) == len(outputs) else None,
        )
        return point_scores(given, shape=self.settings.evaluation.shape, first=self.first, quick=self.quick)

    def judge(self, examples: Sequence[Pair]) -> Callable[[Pair, Prediction], Judgement | None]:
        if not self.points:
            return super().judge(examples)
        from recurra.scoring.point_scores import in_words, is_right

        def verdict(example: Pair, answer: Prediction) -> Judgement | None:
            if example.target is None:
                return None
            count = self._elements(example)
            gold, said = elements_in(example.target, count), elements_in(answer.output, count)
            return Judgement(is_right(self.settings.evaluation.shape, gold, said), f"{in_words(gold)} is right")

        return verdict

    def source_tokens(self, example: Pair) -> list[str] | None:
        if self.points and example.frames is not None:
            return [str(number) for number in range(1, len(example.frames) + 1)]
        if self.texts.source is None:
            return None
        tokens, together = self.texts.source_tokens(example), self.settings.model.steps_in_a_place
        return [" ".join(tokens[first : first + together]) for first in range(0, len(tokens), together)]

    # Views

    def steps(self, example: Pair) -> list[str]:
        if self.texts.source is None:  # not by `lengths`, where a longer target counts
            return [str(number) for number in range(1, self.source_length(example) + 1)]
        return self.texts.source_tokens(example)

    def stacks(self, model: Any) -> dict[str, Stack]:
        return {} if model.encoder.recurrent is None else {"encoder": model.encoder.recurrent}

    def viewers(self) -> dict[str, Viewer]:
        """Where it looked comes first; without attention, what mattered tells most."""
        found = super().viewers()
        saliency = Viewer(
            self.contributions, longest=30, work=lambda n: n * n, telling=not self.attends, title=MATTERED
        )
        looked, tree, decoder = (found.pop(name) for name in ("attention", "tree", "decoder"))
        gates = Task.viewers(self)["gates"]
        memory = self.memory_viewer()
        own = {"decoder_memory": found.pop("decoder_memory")} if "decoder_memory" in found else {}
        others = {**found, "saliency": saliency, "tree": tree, **memory, "gates": gates, **own, "decoder": decoder}
        if self.settings.model.decoder.kind == "ctc":
            return {"alignment": Viewer(self.aligned, longest=400, title=ALIGNED), **others}
        return {"attention": looked, **others} if self.attends else {**others, "attention": looked}

    def aligned(self, asked: Asked) -> View:
        """At which steps each token of the answer stands in the best alignment. (torch)"""
        from recurra.analysis.alignment import best_alignment_of

        answer = self.chosen_answer(asked)
        if answer.alignment is None:
            raise DataError("the answer is empty, so there are no tokens to align.")
        return best_alignment_of(answer, self.headline(answer.input, answer.output))

    def contributions(self, asked: Asked) -> View:
        """What speaks for the answer. (torch)"""
        from recurra.analysis.saliency import contributions

        return contributions(self.probe(asked))

    def probe(self, asked: Asked) -> Probe:
        """What speaks for each token of the answer. (torch)"""
        from recurra.models.steps import probe

        found = self.hypothesis(asked)
        title = self.headline(self.shown(asked.example), found.text)
        return probe(asked.model, self.copies(asked, found.row), self.steps(asked.example), found.tokens, title)

    def anatomy(self, model: Any) -> Anatomy:
        from recurra.analysis.anatomy import UnrolledLevel, levels_of

        settings, stacks = self.settings.model, list(self.stacks(model).values())
        reader = levels_of(stacks[0]) if stacks else [UnrolledLevel(str(settings.encoder.kind))]
        if settings.decoder.kind == "ctc":
            return super().anatomy(model)._replace(reader=reader)
        starts = settings.decoder.kind == "rnn" and settings.start != "zeros"
        enters = ", ".join([*["first state"] * starts, *settings.conditioning])
        return super().anatomy(model)._replace(reader=reader, enters=enters)

    def purpose(self) -> Purpose:
        if self.points and self.texts.source is None:
            kind = extension(self.settings.data.files("train")[0])
            return SERIES._replace(does="points at elements of a series", rows="pairs", asked=f"input.{kind}")
        if self.texts.source is not None:
            return Purpose("turns one sequence into another", rows="pairs")
        kind = extension(self.settings.data.files("train")[0])
        return SERIES._replace(does="writes a text for a series", rows="pairs", asked=f"input.{kind}")

    def is_empty(self, example: Pair) -> bool:
        has_frames = example.frames is not None and len(example.frames)
        return not (example.features or "".join(example.source).strip() or has_frames)

    def source_length(self, example: Pair) -> int:
        """Words, where the source has blanks; otherwise its letters or frames."""
        if example.frames is not None:
            return len(example.frames)
        words = sum(len(text.split()) for text in example.source)
        assert self.texts.source is not None, "there are tokens where there are no frames"
        return sum(map(len, example.source)) if self.texts.source.tokenizer.name == "characters" else words

    def described(self) -> str:
        from recurra.sequences.pair_remarks import described

        return described(self.settings.model, self.texts)


def _frames(example: Pair) -> NDArray[np.float32]:
    assert example.frames is not None, "there are frames where there is a scale for them"
    return example.frames
