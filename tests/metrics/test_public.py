"""The public face of the metrics."""

from __future__ import annotations

import subprocess
import sys

import pytest

from recurra import metrics


@pytest.mark.parametrize("name", [name for name in metrics.__all__ if name != "Scheme"])
def test_every_public_name_has_an_example_that_is_run(name: str) -> None:
    assert ">>> " in (getattr(metrics, name).__doc__ or "")


def test_importing_the_metrics_does_not_import_torch() -> None:
    code = "import sys, recurra.metrics; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
