"""The file of a program's weights: a head of 64 bytes, then every array in order, each at a multiple of 64.

head   "recurra weights\\n", the length of the rest, its checksum (both eight bytes, the least first), zeros
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.errors import CheckpointError
from recurra.programs.program import NARROW, Program

BYTES = {"float32": 4, "float64": 8, "int64": 8, "int32": 4, "uint8": 1, "bool": 1, "int8": 1, "bfloat16": 2}

MAGIC = b"recurra weights\n"
ALIGNED = 64


def checksum(bytes_: NDArray[np.uint8]) -> int:
    """FNV-1a in words of eight bytes, as the C file computes it.

    >>> hex(checksum(np.zeros(0, np.uint8)))
    '0xcbf29ce484222325'
    """
    # (h ⊕ w) p, word after word: 2⁶⁴ is taken off by Python, in parts that fit a list.
    total, prime, mask = 14695981039346656037, 1099511628211, (1 << 64) - 1
    for word in bytes_.view("<u8").tolist():
        total = ((total ^ word) * prime) & mask
    return total


def weights_content(program: Program, weights: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """The bytes of the file."""
    content = unsealed_content(program, weights)
    sum_at = len(MAGIC) + 8
    content[sum_at : sum_at + 8] = np.frombuffer(checksum(content[64:]).to_bytes(8, "little"), np.uint8)
    return content


def unsealed_content(program: Program, weights: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """The same without the checksum, which takes Python long."""
    content = np.zeros(bytes_of(program), np.uint8)
    at = 64
    for name, (kind, shape) in program.weights.items():
        array = np.ascontiguousarray(weights[name], np.dtype(NARROW.get(kind, kind)).newbyteorder("<"))
        assert array.shape == shape, f"{name} has the shape {array.shape}"
        content[at : at + array.nbytes] = array.reshape(-1).view(np.uint8)
        at += room_of(kind, shape)
    head = MAGIC + (len(content) - 64).to_bytes(8, "little")
    content[: len(head)] = np.frombuffer(head, np.uint8)
    return content


def write_weights(path: Path, program: Program, weights: Mapping[str, NDArray[Any]]) -> None:
    path.write_bytes(weights_content(program, weights).tobytes())


def read_weights(path: Path, program: Program) -> tuple[NDArray[np.uint8], dict[str, NDArray[Any]]]:
    """The bytes of a file, at an address that C can read from, and the arrays in them."""
    size = bytes_of(program)
    try:
        content = np.fromfile(path, np.uint8)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}.") from error
    is_whole = len(content) == size and content[: len(MAGIC)].tobytes() == MAGIC
    if not is_whole:
        raise CheckpointError(f"{path} is not the file of weights that program.json describes.")
    found: dict[str, NDArray[Any]] = {}
    at = 64
    for name, (kind, shape) in program.weights.items():
        count = int(np.prod(shape, dtype=np.int64))
        found[name] = np.frombuffer(content, NARROW.get(kind, kind), count, at).reshape(shape)
        at += room_of(kind, shape)
    return content, found


def room_of(kind: str, shape: Sequence[int]) -> int:
    """Bytes that a weight takes in a file."""
    size = math.prod(shape) * BYTES[kind]
    return (size + ALIGNED - 1) // ALIGNED * ALIGNED


def bytes_of(program: Program) -> int:
    """Bytes of the file of weights."""
    return 64 + sum(room_of(kind, shape) for kind, shape in program.weights.values())
