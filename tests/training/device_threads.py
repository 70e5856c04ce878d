"""Autograd as it is where there is a GPU: its first backward pass starts threads of the device, on the CPU too.

A process that is forked afterwards can compute no gradient: "Unable to handle autograd's threading in combination with
fork-based multiprocessing". torch looks at the registered devices alone, so one that is registered here, with nothing
behind it, has the same effect:

    pytest -p tests.training.device_threads tests/training/test_processes.py
"""

from __future__ import annotations

import torch
from torch.utils import backend_registration

CAN_BE_SIMULATED = hasattr(backend_registration, "_setup_privateuseone_for_python_backend")


def gradient() -> float:
    """The gradient of x² at 1."""
    x = torch.ones(1, requires_grad=True)
    x.square().sum().backward()
    assert x.grad is not None
    return x.grad.item()


def start() -> None:
    """From here on, this process has such threads."""
    backend_registration._setup_privateuseone_for_python_backend("simulated")
    gradient()


def pytest_configure() -> None:
    """As a plugin of pytest, for all tests."""
    start()
