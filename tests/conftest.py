"""Settings for all tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import hypothesis
import pytest
import torch

from recurra.engines import c_library

# 200 examples, the same each time, in `make test`; 600 new ones in `make slow-test`.
hypothesis.settings.register_profile("default", max_examples=200, deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("slow", max_examples=600, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

torch.set_num_threads(1)

# Printed C is compiled a hundred times: by -O1 in a third of the time. `make slow-test` compiles it as users do.
if os.environ.get("HYPOTHESIS_PROFILE") != "slow":
    c_library.FLAGS = tuple(  # type: ignore[assignment]
        "-O1" if flag == "-O3" else flag for flag in c_library.FLAGS
    )


# Thousands of tests are collected, and all of them last: to look for garbage among them took a third of the collection.
def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _trust_of_the_tests_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the tests trust by training it is not remembered where the user's own trust is.

    Workers share it as they share the runs that one of them trains (tests/once.py).
    """
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "settings"))
        yield


HAS_DEVICE = torch.cuda.is_available() or torch.backends.mps.is_available()


@pytest.fixture(autouse=True)
def _seeded() -> None:
    # Without a device torch.manual_seed would keep, at each call, a stack of frames for a device that never comes.
    if HAS_DEVICE:
        torch.manual_seed(0)
    else:
        torch.default_generator.manual_seed(0)


@pytest.fixture(autouse=True)
def _names_for_doctests(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["torch"] = torch
