"""Pictures in classification: which encoder reads them, how one is stored, and what a question that is one says."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.config import ClassificationData, ClassificationSettings
from recurra.data.images import packed_picture
from recurra.data.pictures import files_mark, picture_of
from recurra.errors import ConfigError
from recurra.reading.labelled import LabelledSequence, Pictured, labelled, series_in


def with_encoder(settings: ClassificationSettings) -> ClassificationSettings:
    """The settings with the encoder of pictures where these are read, and refused where it does not fit."""
    model, is_pictured = settings.model, settings.data.image.given is not None
    if is_pictured and model.encoder not in ("rnn", "image"):
        raise ConfigError(
            f"model.encoder = '{model.encoder}' reads sequences, but data.image is set, so the inputs are "
            "pictures: leave model.encoder out, or set it to 'image'."
        )
    if not is_pictured and model.encoder == "image":
        raise ConfigError(
            "model.encoder = 'image' reads pictures, but no picture column is set. Set data.image to a "
            "column of pictures, or data.image.strokes to a column of pen strokes."
        )
    return dataclasses.replace(settings, model=dataclasses.replace(model, encoder="image")) if is_pictured else settings


def stride(settings: ClassificationSettings) -> int:
    """Pixels a side that one place of the map of features stands for."""
    return 2 ** len(settings.model.image.widths)


def encoding(settings: ClassificationSettings) -> list[object]:
    """What decides how pictures are stored, besides the settings of data: the files that they are in."""
    data = settings.data
    files = data.files("train") if data.image.column is not None else []
    named = (example.picture for example in labelled(files, data))
    paths = (str(Path(one.folder) / one.value) for one in named if one is not None and isinstance(one.value, str))
    return [stride(settings), files_mark(paths)]


def encoded_picture(picture: Pictured, settings: ClassificationSettings) -> dict[str, NDArray[Any]]:
    """A picture, opened or drawn, and how many places a model sees in it."""
    pixels = picture_of(picture.value, picture.place, settings.data.image, folder=picture.folder)
    rows, columns = (-(-side // stride(settings)) for side in pixels.shape[:2])
    return packed_picture(pixels) | {"steps": np.array([rows * columns], np.int64)}


def asked_picture(
    line: object, place: str, file: str | Path | None, number: int, data: ClassificationData
) -> LabelledSequence:
    """A question: a path, from the file's folder or else from here; or pixels or strokes, as JSON or as they are."""
    is_json = isinstance(line, str) and line.lstrip().startswith("[")
    value = series_in(line, place) if is_json else line  # type: ignore[arg-type]
    if data.image.column is not None and isinstance(value, str):
        value = value.strip()
    text = value if isinstance(value, str) else ""
    picture = Pictured(value, place, str(Path(file).parent) if file is not None else "")
    return LabelledSequence(text, None, None, (), None, 0, number, picture)
