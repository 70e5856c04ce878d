"""How busy a GPU is, as its driver says: one function of NVIDIA's NVML, which every driver brings along."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

LIBRARY = "libnvidia-ml.so.1"


class Rates(ctypes.Structure):
    """Percent of the last moment in which a kernel ran, and in which memory was read or written."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


def utilisation(uuid: str, library: str = LIBRARY) -> Callable[[], float] | None:
    """Asks for the share of the last moment in which the GPU with this id ran a kernel; None where nobody answers.

    >>> utilisation("GPU-0", "no such library") is None
    True
    """
    try:
        nvml = ctypes.CDLL(library)
        device = ctypes.c_void_p()
        if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device)):
            return None
    except (OSError, AttributeError):  # no driver, or one that does not know these functions
        return None

    def asked() -> float:
        rates = Rates()
        if error := nvml.nvmlDeviceGetUtilizationRates(device, ctypes.byref(rates)):
            raise RuntimeError(f"NVML answered {error}")
        return rates.gpu / 100

    return asked
