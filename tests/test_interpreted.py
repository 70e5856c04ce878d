"""A few generated kernels by Triton's interpreter, wherever Triton is installed; make triton-test runs all of them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.forked import REPOSITORY

A_FEW = [
    "tests/products/test_cross_entropy.py::test_the_kernel_finds_the_costs_and_gradients_of_the_definition",
    "tests/engines/test_graph_interpreted.py::test_two_sequences_may_be_read_before_the_first_is_gone_back_through",
    "tests/engines/test_graph_interpreted.py::test_a_second_backward_pass_is_right_whether_or_not_its_memory_was_used_again",
]


def lacking() -> str | None:
    """Why kernels cannot be interpreted here."""
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed: make triton-test installs it, beside a version of numpy that it works with"
    version = tuple(map(int, np.__version__.split(".")[:2]))
    return None if version < (2, 3) else "triton's interpreter works with numpy below 2.3"


@pytest.mark.skipif(lacking() is not None, reason=lacking() or "")
def test_a_few_kernels_are_right_by_the_interpreter() -> None:
    paths = [str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *A_FEW]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
    assert "skipped" not in done.stdout


def needs_a_gpu(text: str) -> bool:
    return any(
        sign in text for sign in ("not torch.cuda.is_available()", "not (torch.cuda.is_available()", 'else "cpu"\n')
    )


def test_make_gpu_test_names_every_file_with_tests_for_a_gpu() -> None:
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    listed = set(makefile.partition("GPU_TESTS :=")[2].partition("ifeq")[0].replace("\\", " ").split())
    assert all((REPOSITORY / each).is_file() for each in listed)
    found = {
        str(path.relative_to(REPOSITORY))
        for path in (REPOSITORY / "tests").rglob("test_*.py")
        if path != Path(__file__)
        and (
            path.stem.endswith("_on_gpu")
            or ("torch.cuda.is_available()" in (text := path.read_text("utf-8")) and needs_a_gpu(text))
        )
    }
    assert found <= listed, f"missing in the Makefile: {sorted(found - listed)}"
