"""Vector to sequence: names for colours, captions for pictures, LaTeX for handwriting."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from recurra.config import Augmentation, Vec2SeqData, Vec2SeqSettings
from recurra.config.common import training_differs
from recurra.config.in_words import layers_in_words
from recurra.data.batches import Batches
from recurra.data.files import extension
from recurra.data.images import packed_picture
from recurra.data.normal import Normal
from recurra.data.pictures import files_mark, picture_of
from recurra.data.store import Encoded, Rows
from recurra.errors import ConfigError, DataError
from recurra.reading.givens import Given, asked, described_input, givens, key_of, with_columns
from recurra.reading.pair_tokens import are_short
from recurra.reading.samples import sent_picture, typed
from recurra.reading.schema import Schema, vector_schema
from recurra.sequences.pair_remarks import longer_than_a_batch, padded_to_the_longest, side_in_words, writer_in_words
from recurra.sequences.pair_texts import PairTexts, learned_side
from recurra.settings import SettingError, name_of
from recurra.tasks.task import Asked, Axes, Purpose
from recurra.tasks.to_sequence import ToSequence
from recurra.views.purpose import NUMBERS, PICTURES

if TYPE_CHECKING:
    from recurra.analysis.anatomy import Anatomy
    from recurra.config import Seq2SeqDecoding, Vec2SeqData
    from recurra.data.store import Encoded
    from recurra.generation.describer import Describer, Draw
    from recurra.generation.generated import Manner
    from recurra.models.seq2seq import PairBatch, SequenceToSequence
    from recurra.search.search import Hypothesis
    from recurra.sequences.written import Written
    from recurra.views.view import View


ASKED = 32
"""Tokens that an answer is taken to have, where batches are made of questions."""


def _targets(data: Vec2SeqData, files: Sequence[str]) -> Iterator[str]:
    return (given.target or "" for given in givens(files, data))


class Vec2Seq(ToSequence[Given]):
    """A vector, features of places or a picture, and what is written of it."""

    Settings: ClassVar[type] = Vec2SeqSettings
    name: ClassVar[str] = "vec2seq"
    reads_apart: ClassVar[bool] = True

    length_of: ClassVar[str] = "target"

    settings: Vec2SeqSettings

    @classmethod
    def resolved(cls, settings: Vec2SeqSettings) -> Vec2SeqSettings:
        data, model = with_columns(settings.data), settings.model
        attention = name_of(model.attention)
        if attention == "auto":
            model = dataclasses.replace(model, attention="none" if data.vector is not None else "projected_dot")
        elif attention != "none" and data.vector is not None:
            raise ConfigError(
                f"model.attention = '{attention}' needs several places to attend to, but the input is a single "
                "vector: remove model.attention. If the input has a vector for each of several places, set data.frames."
            )
        if model.label_smoothing is None:
            model = dataclasses.replace(model, label_smoothing=0.0 if data.vector is not None else 0.1)
        check_augmentation(settings.augmentation, next(givens(data.files("train"), data)))
        evaluation = settings.evaluation
        if evaluation.first is None and data.vector is None:
            texts = (given.target or "" for given in givens(data.files("train")[:1], data))
            if are_short(data.target.tokens, texts):
                evaluation = dataclasses.replace(evaluation, first="symbol_error_rate")
        return dataclasses.replace(settings, data=data, model=model, evaluation=evaluation)

    @classmethod
    def encoding(cls, settings: Vec2SeqSettings) -> object:
        data, turned = settings.data, settings.model.writes_backward
        if data.image.column is None:
            return "turned" if turned else None
        pictures = (given.picture for given in givens(data.files("train"), data))
        mark = files_mark(picture for picture in pictures if isinstance(picture, str))
        return ["turned", mark] if turned else mark

    @classmethod
    def prepared(cls, settings: Vec2SeqSettings) -> Self:
        return cls(settings, _texts(settings.data, None))

    @classmethod
    def prepared_from(cls, settings: Vec2SeqSettings, base: Self) -> Self:
        return cls(settings, _texts(settings.data, base.texts))

    def read(self, files: Sequence[str | Path]) -> Iterator[Given]:
        return self._checked(givens(files, self.settings.data))

    def questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Given]:
        return self._checked(asked(file, lines, self.settings.data))

    def _checked(self, found: Iterable[Given]) -> Iterator[Given]:
        """The examples, where they have as many numbers as training."""
        for given in found:
            if self.texts.frames is not None:
                given.check_width(len(self.texts.frames.mean), "training")
            yield given

    def schema(self) -> Schema:
        data = self.settings.data
        if data.vector is not None:
            assert self.texts.frames is not None, "numbers have a scale"
            return vector_schema(data.vector, self.texts.frames)
        if data.image.given is not None:
            return Schema("picture" if data.image.strokes is None else "strokes")
        return Schema("places")

    def sent(self, example: Given) -> object:
        if example.picture is not None:
            return sent_picture(example.picture, self.settings.data.image)
        numbers = example.places if example.vector is None else example.vector
        assert numbers is not None, "a vector, places or a picture is given"
        return typed(numbers)

    # Encoding

    def encode(self, example: Given) -> Encoded:
        row: dict[str, NDArray[Any]] = {"place": np.array([example.file, example.line], np.int64)}
        if example.picture is not None:
            row |= packed_picture(picture_of(example.picture, example.place, self.settings.data.image))
        else:
            assert self.texts.frames is not None, "numbers have a scale"
            row["map" if example.is_grid else "frames"] = self.texts.frames.scaled(example.steps).astype(np.float32)
            if example.places is not None:
                row["shape"] = np.array([1, *example.places.shape][-3:-1], np.int32)
        if example.target is not None:
            row["target"] = self.texts.target_ids(example.target)
        return self.in_order_of_writing(row)

    def batch(self, rows: Sequence[Encoded]) -> PairBatch:
        rows = Rows.of(rows)
        if "map" in rows.fields and not rows.has("map"):  # questions may be of either kind
            rows = [row if "map" in row else {**row, "map": row["frames"]} for row in rows]
        return super().batch(rows)

    @property
    def draws_in_batch(self) -> bool:
        return super().draws_in_batch

    def left_out(self, row: Encoded) -> str | None:
        most = self.settings.data.max_length
        if most is None or len(row["target"]) - 1 <= most:
            return None
        return f"a target is longer than data.max_length = {most}"

    def lengths(self, rows: Any) -> NDArray[np.int64]:
        """Tokens that are written, or places that are looked at where these are more."""
        return np.maximum(self._written(rows), self._sides(rows).prod(1))

    def batches(self, rows: Any, epoch: int) -> Batches:
        training = self.settings.training
        if self.settings.data.vector is not None:
            return super().batches(rows, epoch)
        # What differs by less than √2 in columns, then in rows, goes together, then what is as long to write.
        sides, size = self._sides(rows), training.batch_size
        nearly = np.floor(2 * np.log2(np.maximum(sides, 1)))
        order = np.empty(len(sides), np.int64)
        order[np.lexsort((self._written(rows), nearly[:, 0], nearly[:, 1]))] = np.arange(len(sides))
        tokens = None if size is not None else training.batch_tokens
        return Batches(self.lengths(rows), tokens=tokens, rows=size, seed=training.seed, epoch=epoch, order=order)

    def noticed_in_training(self, rows: Any) -> str | None:
        training, lengths = self.settings.training, self._written(rows)

        def place(row: int) -> str:
            return self.place(rows[row])

        if training.batch_size is not None:
            return padded_to_the_longest(lengths, training.batch_size, place)
        return longer_than_a_batch(lengths, training.batch_tokens, place)

    def _written(self, rows: Any) -> NDArray[np.int64]:
        """The lengths of the targets; of questions, what they may become."""
        try:
            found: NDArray[np.int64] = rows.lengths("target")
        except KeyError:
            found = np.full(len(rows), ASKED, np.int64)
        return found

    def _sides(self, rows: Any) -> NDArray[np.int64]:
        """(N, 2): rows and columns of the places of each example; a vector is one."""
        if self.settings.data.vector is not None or not len(rows):
            return np.ones((len(rows), 2), np.int64)
        pixels = rows.span("shape", 0, rows.size("shape")).reshape(len(rows), -1)[:, :2].astype(np.int64)
        stride = 1 if self.settings.data.frames is not None else 2 ** len(self.settings.model.image.widths)
        return -(-pixels // stride)

    # The model

    @property
    def of_pictures(self) -> dict[str, Any]:
        image = self.settings.data.image
        return {} if image.given is None else {"image": self.settings.model.image, "channels": image.channels}

    def build(self) -> SequenceToSequence:
        from recurra.models.seq2seq import SequenceToSequence

        image = self.settings.data.image
        sizes = self.sizes(channels=None if image.given is None else image.channels)
        return SequenceToSequence(self.settings.model, sizes, self.settings.augmentation)

    def axes(self) -> Mapping[str, Axes]:
        target = self.texts.target.vocabulary.tokens
        return {
            "decoder.embedding.weight": (target, None),
            "output.readout.weight": (target, None),
            "output.readout.bias": (target,),
        }

    # Answers

    @property
    def first(self) -> str:
        # What a vector is called has many right answers.
        by_likelihood = self.settings.evaluation.first is None and self.settings.data.vector is not None
        return "perplexity" if by_likelihood else super().first

    def writer(self, model: Any, manner: Manner) -> Describer:
        import torch

        from recurra.models.searching import searched
        from recurra.padding import fitted

        @torch.no_grad()
        def draw(task: Vec2Seq, row: Encoded, draws: Sequence[int]) -> list[Hypothesis]:
            batch = fitted(task.batch([row] * len(draws)), model)
            return [each for [each] in searched(model, batch, task.settings.decoding, task.search_tokens, draws=draws)]

        return self.describer(draw, manner)

    def describer(self, draw: Draw, manner: Manner) -> Describer:
        from recurra.generation.describer import Describer

        return Describer(self, draw, manner)

    def answering(self, decoding: Seq2SeqDecoding) -> Self:
        """The same task, answering by other settings of [decoding]."""
        return type(self)(dataclasses.replace(self.settings, decoding=decoding), self.texts, quick=self.quick)

    def shown(self, example: Given) -> str:
        return described_input(example)

    def key(self, example: Given) -> str:
        return key_of(example)

    def source_length(self, example: Given) -> int:
        return len(self.texts.target.split(example.target or ""))

    def is_empty(self, example: Given) -> bool:
        return False

    # Views

    @property
    def attends(self) -> bool:
        return super().attends and self.settings.data.vector is None

    def looked(self, asked: Asked) -> View:
        from recurra.analysis.alignment import alignment_of
        from recurra.analysis.picture_attention import picture_attention_of

        if self.settings.data.vector is not None:
            raise ConfigError(
                f"the run {asked.run} reads a single vector, so it has no attention to show. Only models of "
                "pictures or of features of places have attention."
            )
        answer = self.best_answer(asked)
        if answer.detail.get("columns") is None:
            return alignment_of(answer, answer.output)
        picture, image = None, self.settings.data.image
        if asked.example.picture is not None:
            picture = picture_of(asked.example.picture, asked.example.place, image)
        return picture_attention_of(answer, picture, answer.output)

    def anatomy(self, model: Any) -> Anatomy:
        from recurra.analysis.anatomy import UnrolledLevel

        data, is_picture = self.settings.data, self.settings.data.image.given is not None
        widths = " × ".join(map(str, self.settings.model.image.widths))
        read = "a vector" if data.vector is not None else f"a picture, convolutions of {widths}"
        name = read if data.vector is not None or is_picture else "features of places"
        return (
            super()
            .anatomy(model)
            ._replace(reader=[UnrolledLevel(name)], is_whole=data.vector is not None or is_picture)
        )

    def extent(self, row: Encoded, output: Written) -> int:
        """Tokens that are written: a picture is one thing to look at, however many places it has."""
        read = max((len(row[name]) for name in ("frames", "target") if name in row), default=1)
        return max(read, len(output.answers[0].tokens) if output.answers else 0)

    def purpose(self) -> Purpose:
        data = self.settings.data
        kind = extension(data.files("train")[0])
        if data.image.column is not None:
            does, generate = "writes a text for a picture", "--prompt picture.png --count 5"
            return Purpose(does, PICTURES, "pairs", inputs="paths or arrays", generate=generate)
        what = "a drawing" if data.image.strokes else "features of places" if data.frames else "a vector"
        return Purpose(
            f"writes a text for {what}",
            NUMBERS,
            "pairs",
            asked=f"input.{kind}",
            inputs="lists of numbers",
            generate="--prompt '[…]' --count 5",
        )

    def training_differs(self) -> list[str]:
        has_pictures = self.settings.data.image.given is not None
        return training_differs(self.settings, self.settings.model.image if has_pictures else None)

    def described(self) -> str:
        data, model = self.settings.data, self.settings.model
        numbers = 0 if self.texts.frames is None else len(self.texts.frames.mean)
        if data.vector is not None:
            read = f"vectors of {numbers} numbers"
        elif data.frames is not None:
            read = f"features of {numbers} numbers per place"
        else:
            read = f"pictures, {layers_in_words('CNN', model.image.widths)}"
        places = ", ".join(model.conditioning) or "none"
        return f"{read}, conditioning: {places}, {writer_in_words(model)}, {side_in_words(self.texts.target)}"


def check_augmentation(augmentation: Augmentation, first: Given) -> None:
    """Refuse what can have no effect on what is given."""
    if first.picture is not None or first.vector is not None:
        idle = ("mask",) if first.picture is not None else ("shift", "rotate", "shear", "warp", "ink", "mask")
        what = "a picture, only to a series" if first.picture is not None else "a vector, only to pictures or series"
        for name in idle:
            if getattr(augmentation, name):
                raise SettingError(
                    f"augmentation.{name} cannot be applied to {what}: leave it out.", ("augmentation", name)
                )
    elif first.places is not None:
        augmentation.check_series("features of a grid are given" if first.is_grid else None)


def _texts(data: Vec2SeqData, base: PairTexts | None) -> PairTexts:
    """What the training files hold; what a base has learned, from which training starts, stays as it is."""
    files, kept = data.files("train"), None if base is None else base.target
    side = learned_side("target", data.target, files, (), partial(_targets, data), data.format, kept)
    if data.image.given is not None:
        return PairTexts(None, side, None)
    scale, first = Normal.counted(), next(givens(files, data))
    for given in givens(files, data):
        given.check_width(first.steps.shape[1], "the first example")
        if first.is_grid != given.is_grid:
            one, other = ("a grid", "a row") if given.is_grid else ("a row", "a grid")
            raise DataError(f"{given.place}: found places in {one}, but the first example has them in {other}.")
        scale.add(given.steps, given.place)
    return PairTexts(None, side, scale.finished().or_kept(base.frames if base is not None else None))
