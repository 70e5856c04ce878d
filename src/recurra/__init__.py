"""recurra: recurrent sequence models in PyTorch.

>>> import recurra, torch
>>> rnn = recurra.Recurrent("peephole_lstm", 64, 256, layers=2, bidirectional=True)
>>> outputs, states = rnn(recurra.Padded(torch.randn(2, 9, 64), torch.tensor([9, 4])))
>>> outputs.values.shape
torch.Size([2, 9, 512])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from recurra.collector import collector_paused
from recurra.version import __version__ as __version__

if TYPE_CHECKING:
    from recurra.cells import Cell
    from recurra.errors import (
        CheckpointError,
        ConfigError,
        DataError,
        EngineError,
        RecurraError,
        TrainingError,
        TrustError,
    )
    from recurra.exported import load
    from recurra.exporting.folder import export
    from recurra.padding import Padded, pad
    from recurra.reports.comparison import compare
    from recurra.runs import train
    from recurra.sharing.fetching import pull
    from recurra.sharing.hub import push
    from recurra.sharing.packed import pack, unpack
    from recurra.stacks.interchange import from_torch, to_torch
    from recurra.stacks.recurrent import Recurrent, detached
    from recurra.sweeping.sweep import sweep
    from recurra.training.trained import Trained
    from recurra.training.writing import generate

# Where each public name lives. It is imported when first touched, so that `import recurra` does not import torch.
_HOMES = {
    "Cell": "recurra.cells",
    "CheckpointError": "recurra.errors",
    "ConfigError": "recurra.errors",
    "DataError": "recurra.errors",
    "EngineError": "recurra.errors",
    "Padded": "recurra.padding",
    "Recurrent": "recurra.stacks.recurrent",
    "RecurraError": "recurra.errors",
    "Trained": "recurra.training.trained",
    "TrainingError": "recurra.errors",
    "TrustError": "recurra.errors",
    "compare": "recurra.reports.comparison",
    "detached": "recurra.stacks.recurrent",
    "export": "recurra.exporting.folder",
    "from_torch": "recurra.stacks.interchange",
    "generate": "recurra.training.writing",
    "load": "recurra.exported",
    "pack": "recurra.sharing.packed",
    "pad": "recurra.padding",
    "pull": "recurra.sharing.fetching",
    "push": "recurra.sharing.hub",
    "sweep": "recurra.sweeping.sweep",
    "to_torch": "recurra.stacks.interchange",
    "train": "recurra.runs",
    "unpack": "recurra.sharing.packed",
}

__all__ = [
    "Cell",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "EngineError",
    "Padded",
    "RecurraError",
    "Recurrent",
    "Trained",
    "TrainingError",
    "TrustError",
    "compare",
    "detached",
    "export",
    "from_torch",
    "generate",
    "load",
    "pack",
    "pad",
    "pull",
    "push",
    "sweep",
    "to_torch",
    "train",
    "unpack",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'recurra' has no attribute {name!r}")
    try:
        with collector_paused():
            home = importlib.import_module(_HOMES[name])
    except ImportError as error:
        from recurra.errors import lacking

        if (needed := lacking(error)) is None:
            raise
        raise ImportError(f"recurra.{name}: {needed}") from error
    return getattr(home, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
