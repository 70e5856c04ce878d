"""PNG files of pixels, written and read without an image library."""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode, b64encode

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError

GRAY, COLOUR = 0, 2
"""What PNG calls the kinds of pixels."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_INLINE = "data:image/png;base64,"


def write_png(picture: NDArray[np.uint8]) -> bytes:
    """A picture (H, W), (H, W, 1) or (H, W, 3) as the bytes of a PNG file.

    >>> write_png(np.zeros((2, 3), np.uint8))[1:4]
    b'PNG'
    """
    assert picture.dtype == np.uint8, f"pixels are bytes, not {picture.dtype}"
    if picture.ndim == 2:
        picture = picture[:, :, None]
    assert picture.size, f"no picture: {picture.shape}"
    assert picture.shape[2:] in ((1,), (3,)), f"no picture: {picture.shape}"
    height, width, channels = picture.shape
    # Every row begins with the number of its filter; 0 is none.
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = picture.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, COLOUR if channels == 3 else GRAY, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")]
    return _SIGNATURE + b"".join(_chunk(name, content) for name, content in chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def as_address(picture: NDArray[np.uint8]) -> str:
    """A picture as the data: address that an SVG or a page shows."""
    return _INLINE + b64encode(write_png(picture)).decode()


def from_address(address: str) -> NDArray[np.uint8]:
    """The pixels (H, W, C) of an address that as_address has made.

    >>> from_address(as_address(np.eye(2, dtype=np.uint8)))[:, :, 0].tolist()
    [[1, 0], [0, 1]]
    """
    try:
        if not address.startswith(_INLINE):
            raise ValueError(f"it does not begin with {_INLINE}")
        return _read_png(b64decode(address.removeprefix(_INLINE), validate=True))
    except (ValueError, struct.error, zlib.error) as error:
        raise DataError(
            f"the picture of a view is a PNG as json() writes it, but this one cannot be read: {error}."
        ) from error


def _read_png(content: bytes) -> NDArray[np.uint8]:
    if not content.startswith(_SIGNATURE):
        raise ValueError("it is not a PNG")
    width, height, depth, kind, *_ = struct.unpack(">IIBBBBB", content[16:29])
    if depth != 8 or kind not in (GRAY, COLOUR):
        raise ValueError(f"its pixels are of kind {kind} with {depth} bits")
    data, at = b"", len(_SIGNATURE)
    while at + 8 <= len(content):
        size, name = struct.unpack(">I4s", content[at : at + 8])
        data += content[at + 8 : at + 8 + size] if name == b"IDAT" else b""
        at += size + 12
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, -1)
    if rows[:, 0].any():
        raise ValueError("its rows are filtered")
    return rows[:, 1:].reshape(height, width, 3 if kind == COLOUR else 1)
