"""From the value of a column to the picture that data.image makes of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

import numpy as np

from recurra.config import ImageData
from recurra.data.files import PathLike, extension
from recurra.data.images import Picture, array_image, read_image, with_channels
from recurra.data.strokes import draw
from recurra.errors import DataError

ENDINGS = ("png", "jpg", "jpeg", "gif", "bmp", "tif", "tiff", "webp", "heic", "pdf", "svg")


def is_picture(file: PathLike) -> bool:
    """Whether a file is called a picture, also of a kind that must be changed first, which is said when it is opened.

    >>> is_picture("a b.PNG"), is_picture("moving.gif"), is_picture("pictures.tsv")
    (True, True, False)
    """
    return extension(file) in ENDINGS


def picture_of(value: object, place: str, how: ImageData, *, folder: PathLike = "") -> Picture:
    """The picture (H, W, C) of pen strokes, of pixels, or of a file whose path starts from `folder`.

    >>> picture_of([[0, 255]], "a.jsonl:1", ImageData(column="pixels"))[:, :, 0].tolist()
    [[0, 255]]
    """
    if value is None:
        raise DataError(f"{place}: the picture is missing: '{how.given}' is empty.")
    if how.strokes is not None:
        drawn = draw(
            value,
            place,
            stroke=how.stroke,
            thickness=how.thickness,
            max_height=how.max_height,
            max_width=how.max_width,
        )
        return with_channels(drawn, how.channels)
    if isinstance(value, list | tuple | np.ndarray):
        return array_image(
            value,
            place,
            channels=how.channels,
            max_height=how.max_height,
            max_width=how.max_width,
            invert=how.invert,
        )
    return read_image(
        value,
        place,
        folder=folder,
        channels=how.channels,
        max_height=how.max_height,
        max_width=how.max_width,
        invert=how.invert,
    )


def files_mark(paths: Iterable[str]) -> str:
    """A mark of some files by their sizes and times: another one where a picture was changed.

    >>> files_mark(["there is no such file"]) == files_mark([])
    True
    """
    seen = hashlib.sha256()
    for path in paths:
        try:
            found = os.stat(path)
        except (OSError, ValueError):  # it is said when the picture is opened
            continue
        seen.update(f"{path}\0{found.st_size}\0{found.st_mtime_ns}\0".encode("utf-8", "surrogatepass"))
    return seen.hexdigest()
