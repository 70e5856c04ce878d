"""What the page on deployment and the Dockerfile say is what the command takes, and what systemd takes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from recurra.cli import parser
from recurra.runtime.server import Serving

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "deploy.md").read_text()
[UNIT] = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)


def test_the_commands_of_the_unit_and_of_the_image_are_understood() -> None:
    [line] = re.findall(r"^ExecStart=\S+/recurra (.*)$", UNIT, re.MULTILINE)
    [command] = re.findall(r"^CMD (\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    for given in (line.split(), json.loads(command)[1:]):
        options = parser().parse_args(given)
        assert options.command.__name__ == "serve"
        assert options.grace == 20


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd here")
    file = tmp_path / "recurra.service"
    file.write_text(UNIT.replace("/opt/recurra/bin/recurra", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_has_the_defaults_of_the_command() -> None:
    usual = Serving()
    assert f"| `--queue N`: requests that wait for one run | {usual.queued} |" in PAGE
    assert f"by the header `X-Deadline-Seconds` | {usual.deadline:g} |" in PAGE
    options = parser().parse_args(["serve", "run"])
    assert (options.host, options.port) == (usual.host, usual.port)
    assert (options.queue, options.deadline, options.grace) == (usual.queued, usual.deadline, usual.grace)
