"""The memory of what was recorded to be replayed, given back where a step lacks memory."""

from __future__ import annotations

import torch

from recurra.engines.graph import WORKSPACES
from recurra.search.graphs import GRAPHS
from recurra.training.replaying import Replaying
from recurra.wirings.looping import LOOPS


def give_back_recordings(device: torch.device, replaying: Replaying | None) -> bool:
    """Forget recorded steps, loops and searches, and the memory of layers that is not in use. Whether there was any:
    what comes again is recorded again."""
    found = [WORKSPACES.forget(device), LOOPS.forget(), *(graphs.forget() for graphs in GRAPHS.values())]
    if replaying is not None:
        found.append(replaying.forget())
    return any(found)
