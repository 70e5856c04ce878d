"""How long a step of training takes, and how busy a GPU is with it."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import final

import torch

from recurra.training.nvml import utilisation

WARM_UP = 3
"""The first steps of a session, in which kernels are compiled, are not counted, unless there are no others."""


@final
class Tempo:
    """The steps of one session: their mean time, validation and saving not counted.

    >>> tempo = Tempo()
    >>> for seconds in (2.0, 0.5, 0.1, 0.01, 0.03):
    ...     tempo.step(seconds)
    >>> str(tempo)
    '20 ms a step'
    """

    def __init__(self, utilisation: Callable[[], float] | None = None) -> None:
        self._utilisation = utilisation
        self._first: list[float] = []
        self._seconds, self._steps = 0.0, 0
        self._busy: list[float] = []

    @classmethod
    def on(cls, device: torch.device) -> Tempo:
        """For a device; of a GPU its driver is asked how busy it is."""
        if device.type != "cuda":
            return cls()
        return cls(utilisation(f"GPU-{torch.cuda.get_device_properties(device).uuid}"))

    def step(self, seconds: float) -> None:
        if len(self._first) < WARM_UP:
            self._first.append(seconds)
            return
        self._seconds += seconds
        self._steps += 1

    def look(self) -> None:
        """Ask how busy the GPU has been for the last moment."""
        if self._utilisation is None:
            return
        try:
            self._busy.append(self._utilisation())
        except Exception:  # a driver may refuse: training does not need it
            self._utilisation = None

    @property
    def milliseconds(self) -> float | None:
        """Of a step; None before the first."""
        if self._steps:
            return 1000 * self._seconds / self._steps
        return 1000 * statistics.fmean(self._first) if self._first else None

    @property
    def busy(self) -> float | None:
        """The share of the time in which the GPU ran a kernel; None where it is not known."""
        return statistics.fmean(self._busy) if self._busy else None

    def __str__(self) -> str:
        busy = "" if self.busy is None else f", the GPU busy {self.busy:.0%} of the time"
        return "no step" if self.milliseconds is None else f"{self.milliseconds:.3g} ms a step{busy}"
