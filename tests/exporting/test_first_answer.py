"""The first answer of an exported model imports what it needs, and little else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.exporting.exports import exported_once, inputs_of

NOT_NEEDED = (
    *(
        "subprocess",
        "concurrent.futures",
        "logging",
        "locale",
        "threading",
        "signal",
        "selectors",
        "tempfile",
        "shutil",
    ),
    *("decimal", "html", "shlex", "hmac", "platform", "pkgutil", "recurra.workers", "recurra.views.page"),
    *("recurra.config.trust", "recurra.programs.c_text", "recurra.engines.c_prelude", "recurra.reading.sentences"),
    *("recurra.data.roles", "recurra.metrics", "recurra.predictors.transcription", "recurra.sequences.pair_remarks"),
)
"""Modules of starting processes, of packing files, of training: each takes longer to import than an answer takes."""

ANSWER = """
import sys, numpy
before = set(sys.modules)
import recurra
print(recurra.load(sys.argv[1]).predict([sys.argv[2]])[0].output)
print(*sorted(set(sys.modules) - before))
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported_once(tmp_path_factory)


def test_a_first_answer_imports_no_more_than_it_needs(folders: Path) -> None:
    asked = [sys.executable, "-c", ANSWER, str(folders / "seq2seq"), inputs_of("seq2seq")[1][0]]
    for _ in range(2):  # the first may have to compile the model
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
    _, modules = done.stdout.splitlines()
    imported = set(modules.split())
    assert "recurra.programs.in_c" in imported
    assert not imported & {*NOT_NEEDED}
