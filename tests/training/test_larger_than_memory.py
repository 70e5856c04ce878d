"""Preparing a corpus in a flat amount of memory, whatever its size."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "preparation.py"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see what a process holds")
def test_two_hundred_megabytes_are_prepared_by_two_processes_in_flat_memory() -> None:
    command = [sys.executable, str(SCRIPT), "--megabytes", "200", "--processes", "2", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = re.search(r"(\d+) MB, last third ([+-]\d+\.\d)%", done.stdout)
    assert found is not None, done.stdout
    assert int(found[1]) < 700  # of three processes together
    assert float(found[2]) < 10
