"""PNG without an image library: enough to show a picture inside an SVG or an HTML page."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

GRAY, COLOUR = 0, 2
"""What PNG calls the kinds of pixels."""


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
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
