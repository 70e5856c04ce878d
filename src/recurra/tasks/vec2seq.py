"""Vector to sequence: names for colours, captions for pictures, LaTeX for handwriting."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from recurra.config import Vec2SeqSettings
from recurra.data.images import array_image, packed_picture, read_image
from recurra.data.normal import Normal
from recurra.data.store import Encoded
from recurra.data.strokes import draw
from recurra.errors import DataError
from recurra.tasks.givens import Given, asked, described_input, givens, key_of, with_columns
from recurra.tasks.pair_remarks import side_in_words, writer_in_words
from recurra.tasks.pair_texts import PairTexts, learned_side
from recurra.tasks.task import Axes
from recurra.tasks.to_sequence import ToSequence

if TYPE_CHECKING:
    from recurra.models.seq2seq import SequenceToSequence


class Vec2Seq(ToSequence[Given]):
    """A vector, features of places or a picture, and what is written of it."""

    Settings: ClassVar[type] = Vec2SeqSettings
    name: ClassVar[str] = "vec2seq"

    settings: Vec2SeqSettings

    @classmethod
    def resolved(cls, settings: Vec2SeqSettings) -> Vec2SeqSettings:
        data, model = with_columns(settings.data), settings.model
        if model.attention == "auto":
            model = dataclasses.replace(model, attention="none" if data.vector is not None else "bilinear")
        return dataclasses.replace(settings, data=data, model=model)

    @classmethod
    def prepared(cls, settings: Vec2SeqSettings) -> Self:
        data = settings.data
        files = data.files("train")
        scale = Normal.counted()
        has_numbers = data.vector is not None or data.frames is not None
        if has_numbers:
            for given in givens(files, data):
                scale.add(_steps(given), f"{files[given.file]}:{given.line}")
        side = learned_side(
            "target", data.target, files, (), lambda: (given.target or "" for given in givens(files, data))
        )
        return cls(settings, PairTexts(None, side, scale.finished() if has_numbers else None))

    def read(self, files: Sequence[str | Path]) -> Iterator[Given]:
        return self._checked(givens(files, self.settings.data), files)

    def questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Given]:
        return self._checked(asked(file, lines, self.settings.data), [file or "input"])

    def _checked(self, found: Iterable[Given], files: Sequence[str | Path]) -> Iterator[Given]:
        """The examples, where they have as many numbers as training, each with the picture that its row means."""
        for given in found:
            place = f"{files[given.file]}:{given.line}"
            if given.vector is not None and self.texts.frames is not None:
                self.texts.frames.check(given.vector, place)
            elif given.places is not None and self.texts.frames is not None:
                self.texts.frames.check(_steps(given), place)
            elif given.picture is not None:
                given = given._replace(picture=self._located(given.picture, files[given.file]))
            yield given

    def _located(self, picture: object, file: str | Path) -> object:
        """The path of a picture is relative to the file that names it."""
        if not isinstance(picture, str) or self.settings.data.image.strokes is not None:
            return picture
        return str(Path(file).parent / picture) if str(file) != "input" else picture

    # Encoding

    def encode(self, example: Given) -> Encoded:
        row: dict[str, NDArray[Any]] = {"place": np.array([example.file, example.line], np.int64)}
        if example.picture is not None:
            row |= packed_picture(self.picture(example))
        elif example.places is not None and example.places.ndim == 3:
            row["map"] = self._scaled(example)
            row["shape"] = np.array(example.places.shape[:2], np.int32)
        else:
            row["frames"] = self._scaled(example)
        if example.target is not None:
            row["target"] = self.texts.target_ids(example.target)
        return row

    def _scaled(self, example: Given) -> NDArray[np.float32]:
        assert self.texts.frames is not None, "numbers have a scale"
        return self.texts.frames.scaled(_steps(example)).astype(np.float32)

    def picture(self, example: Given) -> NDArray[np.uint8]:
        """(H, W, C): the picture of an example, opened or drawn."""
        how = self.settings.data.image
        place = f"{self._file(example)}:{example.line}"
        if how.strokes is not None:
            drawn = draw(
                example.picture,
                place,
                stroke=how.stroke,
                thickness=how.thickness,
                max_height=how.max_height,
                max_width=how.max_width,
            )
            return np.repeat(drawn[:, :, None], how.channels, axis=2)
        limits: dict[str, Any] = {
            "channels": how.channels,
            "max_height": how.max_height,
            "max_width": how.max_width,
            "invert": how.invert,
        }
        if isinstance(example.picture, str):
            return read_image(example.picture, place, **limits)
        return array_image(example.picture, place, **limits)

    def _file(self, example: Given) -> str:
        files = self.settings.data.files("train")
        return files[example.file] if example.target is not None and example.file < len(files) else "input"

    def left_out(self, row: Encoded) -> str | None:
        most = self.settings.data.max_length
        if most is None or len(row["target"]) - 1 <= most:
            return None
        return f"a target is longer than data.max_length = {most}"

    def lengths(self, rows: Any) -> NDArray[np.int64]:
        """The target's, or as large as a picture is where that is more; questions by what they are of."""
        try:
            found: NDArray[np.int64] = rows.lengths("target")
        except KeyError:
            found = np.ones(len(rows), np.int64)
        return found

    # The model

    def build(self) -> SequenceToSequence:
        from recurra.models.seq2seq import SequenceToSequence

        image = self.settings.data.image
        has_pictures = image.column is not None or image.strokes is not None
        sizes = self.sizes(channels=image.channels if has_pictures else None)
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

    def shown(self, example: Given) -> str:
        return described_input(example)

    def key(self, example: Given) -> str:
        return key_of(example)

    def source_length(self, example: Given) -> int:
        return len(self.texts.target.split(example.target or ""))

    def is_empty(self, example: Given) -> bool:
        return False

    def described(self) -> str:
        data, model = self.settings.data, self.settings.model
        numbers = 0 if self.texts.frames is None else len(self.texts.frames.mean)
        if data.vector is not None:
            read = f"vectors of {numbers} numbers"
        elif data.frames is not None:
            read = f"places of {numbers} numbers"
        else:
            read = f"pictures by convolutions of {' × '.join(map(str, model.image.widths))}"
        entering = " and ".join(model.conditioning) or "nowhere"
        return f"{read}, entering {entering}, {writer_in_words(model)} to {side_in_words(self.texts.target)}"


def _steps(given: Given) -> NDArray[np.float32]:
    """The numbers of an example, a row for each place."""
    values = given.vector if given.vector is not None else given.places
    if values is None:
        raise DataError("there are no numbers to read.")
    return values.reshape(-1, values.shape[-1])
