"""The weights of models on disk: safetensors, never a pickle."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from recurra.errors import CheckpointError

LARGEST_HEADER = 1 << 20
"""Bytes of a safetensors header that are read; a file that claims more is not one of ours."""


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any] | None = None) -> None:
    """Tensors and a table about them; tensors that share memory are stored once, under the first name.

    A file that others may read meanwhile is written in `recurra.manifest.committing`.
    """
    from safetensors.torch import save_file

    seen: dict[tuple[int, int], str] = {}
    kept: dict[str, Tensor] = {}
    shared: dict[str, str] = {}
    for name, tensor in tensors.items():
        key = (tensor.data_ptr(), tensor.numel())
        if tensor.numel() and key in seen:
            shared[name] = seen[key]
            continue
        seen[key] = name
        kept[name] = tensor.detach().contiguous().cpu()
    # One word alone: safetensors writes several in an order that changes, and the same weights must be the same file.
    words = {"recurra": json.dumps({"about": about or {}, "shared": shared})}
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        save_file(kept, str(path), metadata=words)
    except OSError:
        raise
    except Exception as error:  # safetensors wraps what the system says in an error of its own
        raise OSError(str(error)) from error
    # safetensors makes files for their owner alone; a model is meant to be read like the files beside it.
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `write_tensors` wrote; a CheckpointError says what is wrong with a file that is not that."""
    from safetensors import safe_open

    try:
        with open(path, "rb") as file:
            start = file.read(8)
            size = struct.unpack("<Q", start)[0] if len(start) == 8 else -1
            if not 0 < size <= LARGEST_HEADER or size > os.fstat(file.fileno()).st_size:
                raise CheckpointError(f"{path} is not a file of weights (safetensors), or it is truncated.")
        with safe_open(str(path), framework="pt") as opened:
            words = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        ours = json.loads(words.get("recurra", '{"about": {}, "shared": {}}'))
        for name, first in ours["shared"].items():
            tensors[name] = tensors[first]
        about = ours["about"]
        if not isinstance(about, dict):
            raise TypeError("what it says of itself is not a table")
    except CheckpointError:
        raise
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist: this is not a finished run.") from error
    except Exception as error:  # safetensors has an error type of its own for a broken header
        raise CheckpointError(f"{path} cannot be read as weights ({error}).") from error
    return tensors, about


def put_weights(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Load weights into a model that must have just these, all finite."""
    wanted = dict(model.state_dict())
    missing, extra = wanted.keys() - tensors.keys(), tensors.keys() - wanted.keys()
    if missing or extra:
        what = f"lacks {sorted(missing)[0]}" if missing else f"has {sorted(extra)[0]}, which the model does not have"
        raise CheckpointError(
            f"{path} does not match the model of config.toml: it {what}. config.toml may have been changed."
        )
    for name, tensor in tensors.items():
        if tensor.shape != wanted[name].shape:
            raise CheckpointError(
                f"{path} does not match the model of config.toml: {name} has shape {tuple(tensor.shape)} in the "
                f"file, but {tuple(wanted[name].shape)} in the model."
            )
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(f"{path}: {name} contains infinite values or NaN. The file is damaged.")
    model.load_state_dict(dict(tensors))


def fingerprint(*models: nn.Module) -> str:
    """The SHA-256 of all weights with their names, one model after the other.

    >>> fingerprint(nn.Linear(1, 1)) == fingerprint(nn.Linear(1, 1))
    False
    """
    found = hashlib.sha256()
    for model in models:
        for name, tensor in sorted(model.state_dict().items()):
            found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
            found.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()
