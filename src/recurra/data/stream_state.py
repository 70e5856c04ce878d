"""The state of a stream as bytes: numbers and facts in words, and no code.

A line with the version of the format, the SHA-256 of the rest, and an archive of arrays (.npz), one of which holds what
is not a number, as JSON. It belongs to the weights of one run.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.errors import CheckpointError, DataError

KIND, VERSION = b"recurra stream ", 1


def state_to_bytes(run: str, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """A state of a stream of a run, which is named by the digest of its weights.

    >>> state_of_bytes(state_to_bytes("a run", {"steps": 3}, {"h": np.ones(2)}), run="a run")
    ({'steps': 3}, {'h': array([1., 1.])})
    """
    archive = io.BytesIO()
    words = np.frombuffer(json.dumps({"run": run, **about}).encode(), np.uint8)
    np.savez(archive, allow_pickle=False, **{**arrays, "about": words})
    content = archive.getvalue()
    return KIND + str(VERSION).encode() + b"\n" + hashlib.sha256(content).digest() + content


def state_of_bytes(state: object, *, run: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `state_to_bytes` was given; refused where it is damaged, or of another run."""
    content = content_of(state)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        about = json.loads(arrays.pop("about").tobytes())
        saved = str(about.pop("run"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        raise damaged(error) from error
    if saved != run:
        raise CheckpointError(
            "this state is of a stream of another run, whose weights are not those of this one: load the run that "
            "it was saved with, or begin a new stream."
        )
    return about, arrays


def content_of(state: object) -> bytes:
    """What follows the head of a state, if it is whole."""
    if not isinstance(state, bytes | bytearray | memoryview):
        raise DataError(f"the state of a stream is bytes, as Stream.state() gives them, but this is {state!r:.40}.")
    state = bytes(state)
    line, _, rest = state.partition(b"\n")
    if not line.startswith(KIND) or not line[len(KIND) :].isdigit():
        raise CheckpointError("these bytes are not the state of a stream: they do not begin as Stream.state() does.")
    if int(line[len(KIND) :]) != VERSION:
        raise CheckpointError(
            f"this state of a stream has format {int(line[len(KIND) :])}, but this version of recurra reads format "
            f"{VERSION}: read the series again from its start."
        )
    digest, content = rest[:32], rest[32:]
    if hashlib.sha256(content).digest() != digest:
        raise CheckpointError("the state of the stream is damaged or cut off: take it from a copy, or begin anew.")
    return content


def damaged(error: Exception) -> CheckpointError:
    return CheckpointError(f"the state of the stream cannot be read ({error}): take it from a copy, or begin anew.")
