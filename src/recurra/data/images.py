"""Pictures as bytes (H, W, C), from files by Pillow or from arrays of numbers; C is 1, gray, or 3, colours."""

from __future__ import annotations

import math
import os
import warnings
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.data.files import PathLike, opened
from recurra.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

Picture: TypeAlias = NDArray[np.uint8]
Invert: TypeAlias = Literal["auto"] | bool

MOST_PIXELS = 1 << 26
"""A larger picture is not unpacked: a small file can claim to be any size."""

MOST_WEIGHTS = 1 << 20
"""Numbers of the matrix by which some rows of a picture are made smaller at once."""

LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""How bright red, green and blue are to the eye."""

FORMATS = ("PNG", "JPEG")


def read_image(
    path: object,
    place: str,
    *,
    folder: PathLike = "",
    channels: int = 1,
    max_height: int | None = None,
    max_width: int | None = None,
    invert: Invert = False,
) -> Picture:
    """The picture (H, W, channels) of a PNG or JPEG file; a relative path starts from `folder`.

    What is transparent shows white paper. A picture is turned as its camera says, and made smaller, never larger,
    to fit. `invert` makes ink bright: "auto" does so where the border is brighter than the picture as a whole.
    `place` is where the path was found, for what is said of a picture that cannot be had.
    """
    _check_pillow(place)
    if not isinstance(path, str | Path) or not str(path).strip():
        raise DataError(f"{place}: a picture must be given as a path, but found {_clipped(path)}.")
    full = Path(folder) / path
    try:
        file = opened(full)
    except DataError as error:
        raise DataError(f"{place}: {error}{_elsewhere(full)}") from error
    with file:
        pixels = _opened_image(file, place, f"'{full}'", MOST_PIXELS, channels, max_height, max_width)
    return _inverted(pixels, invert)


def image_of(content: bytes, place: str, *, most: int = MOST_PIXELS) -> Picture:
    """The picture (H, W, 3) that the content of a PNG or JPEG file shows, of so many pixels at most."""
    _check_pillow(place)
    return _opened_image(BytesIO(content), place, "it", most, 3)


def _check_pillow(place: str) -> None:
    if find_spec("PIL") is None:
        raise DataError(f"{place}: reading picture files needs the package Pillow: pip install 'recurra[image]'.")


def _opened_image(
    file: BinaryIO,
    place: str,
    name: str,
    most: int,
    channels: int,
    max_height: int | None = None,
    max_width: int | None = None,
) -> Picture:
    from PIL import Image, ImageOps, UnidentifiedImageError

    too_large = f"{place}: {name} has more than {most:,} pixels. Make it smaller first."
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=FORMATS) as image:
                if image.width * image.height > most:
                    raise DataError(too_large)
                return _pixels(ImageOps.exif_transpose(image), channels, max_height, max_width)
    except DataError:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise DataError(too_large) from error
    except UnidentifiedImageError as error:
        raise DataError(f"{place}: {name} is not a PNG or JPEG picture. Save it as one of them.") from error
    except Exception as error:  # a broken file may fail in any way
        raise DataError(
            f"{place}: the picture {name} is broken ({_clipped(error)}). Copy or download it again."
        ) from error


def array_image(
    value: object,
    place: str,
    *,
    channels: int = 1,
    max_height: int | None = None,
    max_width: int | None = None,
    invert: Invert = False,
) -> Picture:
    """The picture (H, W, channels) that nested lists or an array (H, W), (H, W, 1) or (H, W, 3) of numbers mean.

    Pixels are 0 to 1, or 0 to 255 where any of them is above 1. Sizes and `invert` are as in read_image.

    >>> array_image([[0, 0.5], [1, 0]], "here")[:, :, 0]
    array([[  0, 128],
           [255,   0]], dtype=uint8)
    """
    pixels = _numbers(value, place)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.max() <= 1:
        pixels = pixels * np.float32(255)
    pixels = _with_channels(pixels, channels)
    height, width = pixels.shape[:2]
    rows, columns = _fitting(height, width, max_height, max_width)
    if (rows, columns) != (height, width):
        pixels = _shrunk(pixels, rows)
        pixels = _shrunk(pixels.transpose(1, 0, 2), columns).transpose(1, 0, 2)
    return _inverted(np.rint(pixels).clip(0, 255).astype(np.uint8), invert)


def with_channels(picture: Picture, channels: int) -> Picture:
    """The same picture (H, W) or (H, W, C), gray or in colours.

    >>> with_channels(np.array([[[255, 0, 0]]], np.uint8), 1).tolist()
    [[[76]]]
    """
    pixels = picture if picture.ndim == 3 else picture[:, :, None]
    if pixels.shape[2] == channels:
        return pixels
    return np.rint(_with_channels(pixels.astype(np.float32), channels)).astype(np.uint8)


def packed_picture(picture: Picture) -> dict[str, NDArray[Any]]:
    """A picture (H, W, C) as the flat fields of a stored example.

    >>> fields = packed_picture(np.zeros((2, 3, 1), np.uint8))
    >>> fields["picture"].shape, fields["shape"].tolist()
    ((6,), [2, 3, 1])
    """
    return {"picture": picture.reshape(-1), "shape": np.array(picture.shape, np.int32)}


def unpacked(values: Picture, shape: NDArray[Any]) -> Picture:
    """The picture (H, W, C) of packed_picture's fields."""
    height, width, channels = shape.tolist()
    return values.reshape(height, width, channels)


def _pixels(image: Image.Image, channels: int, max_height: int | None, max_width: int | None) -> Picture:
    from PIL import Image

    if image.mode.startswith("I"):  # gray of 16 bits
        image = Image.fromarray((np.asarray(image).astype(np.float32) / 257).round().clip(0, 255).astype(np.uint8))
    if image.mode in ("LA", "PA", "RGBA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    image = image.convert("RGB" if channels == 3 else "L")
    rows, columns = _fitting(image.height, image.width, max_height, max_width)
    if (rows, columns) != (image.height, image.width):
        image = image.resize((columns, rows), Image.Resampling.BILINEAR)
    return np.array(image).reshape(rows, columns, channels)


def _numbers(value: object, place: str) -> NDArray[np.float32]:
    """An array of finite numbers from 0 to 255 in the shape of a picture."""
    if not isinstance(value, list | tuple | np.ndarray):
        raise DataError(f"{place}: a picture must be an array of pixels, but found {_clipped(value)}.")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DataError(f"{place}: the rows of the picture have different lengths. Make them equal.") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{place}: the pixels of a picture must be numbers, but other values were found.")
    if array.size == 0:
        raise DataError(f"{place}: the picture has no pixels: its shape is {array.shape}.")
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3)):
        is_turned = array.ndim == 3 and array.shape[0] in (1, 3)
        raise DataError(
            f"{place}: a picture must have shape (rows, columns) or (rows, columns, channels) with 1 or 3 "
            "channels, but this one has "
            f"{array.shape}.{' Put channels last: np.moveaxis(picture, 0, -1).' if is_turned else ''}"
        )
    if array.shape[0] * array.shape[1] > MOST_PIXELS:
        raise DataError(f"{place}: the picture has more than {MOST_PIXELS:,} pixels. Make it smaller first.")
    is_bad = ~((array >= 0) & (array <= 255))
    if is_bad.any():
        row, column = (int(index) for index in np.argwhere(is_bad)[0][:2])
        raise DataError(
            f"{place}: the pixel in row {row + 1} and column {column + 1} of the picture is "
            f"{array[is_bad][0].item()}. Pixels must be between 0 and 1, or between 0 and 255."
        )
    return array.astype(np.float32)


def _with_channels(pixels: NDArray[np.float32], channels: int) -> NDArray[np.float32]:
    if pixels.shape[2] == channels:
        return pixels
    return np.repeat(pixels, 3, axis=2) if channels == 3 else (pixels @ LUMA)[:, :, None]


def _fitting(height: int, width: int, max_height: int | None, max_width: int | None) -> tuple[int, int]:
    """Rows and columns of the picture when it fits, its aspect kept."""
    share = min(1.0, (max_height or height) / height, (max_width or width) / width)
    return max(1, round(height * share)), max(1, round(width * share))


def _shrunk(pixels: NDArray[np.float32], rows: int) -> NDArray[np.float32]:
    """(rows, W, C): each new row is a mean of old ones, whose weights fall off linearly over a new row's height.

    A new row needs a few old rows only, and a matrix of all new by all old rows may not fit into memory: those of a
    large picture are computed some at a time, each from the old rows that it needs.
    """
    height = len(pixels)
    factor = height / rows
    at_once = max(1, min(rows, int(math.sqrt(MOST_WEIGHTS / factor))))
    shrunk = np.empty((rows, *pixels.shape[1:]), np.float32)
    for first in range(0, rows, at_once):
        last = min(first + at_once, rows)
        middles = (np.arange(first, last) + 0.5) * factor
        start, end = max(0, math.floor(middles[0] - factor)), min(height, math.ceil(middles[-1] + factor) + 1)
        away = np.abs(np.arange(start, end) + 0.5 - middles[:, None]) / factor
        weights = np.maximum(1 - away, 0)
        weights = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
        shrunk[first:last] = np.einsum("hy,yxc->hxc", weights, pixels[start:end], optimize=True)
    return shrunk


def _inverted(picture: Picture, invert: Invert) -> Picture:
    if invert == "auto":
        edges = [picture[0], picture[-1], picture[1:-1, 0], picture[1:-1, -1]]
        invert = bool(np.concatenate(edges).mean() > picture.mean())
    return 255 - picture if invert else picture


def _elsewhere(missing: Path) -> str:
    """A hint where the file is found from here, but not from the folder of the file that names it."""
    tails = (Path(*missing.parts[first:]) for first in range(1, len(missing.parts)))
    found = next((tail for tail in tails if not os.path.exists(missing) and os.path.isfile(tail)), None)
    return "" if found is None else f" '{found}' is there, but a path starts from the folder of the file that names it."


def _clipped(value: object) -> str:
    text = str(value) if isinstance(value, Exception) else repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
