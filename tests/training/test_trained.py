"""What a run folder holds stays loadable, whatever the usual settings become."""

from __future__ import annotations

from pathlib import Path

import pytest

from recurra.errors import ConfigError
from recurra.runs import resume
from recurra.training.progress import Silent
from recurra.training.trained import load
from tests.tasks.small_pairs import small, untrained, words


def test_a_run_loads_and_resumes_when_its_batch_tokens_are_no_longer_the_usual_ones(tmp_path: Path) -> None:
    untrained(tmp_path, words(tmp_path))
    config = tmp_path / "run" / "config.toml"
    saved = config.read_text("utf-8")
    assert "batch_size = 8\n" in saved
    assert "batch_tokens = 1000\n" in saved
    config.write_text(saved.replace("batch_tokens = 1000", "batch_tokens = 640"), "utf-8")
    assert load(tmp_path / "run").with_settings(["decoding.width=2"]).task.settings.training.batch_size == 8
    resume(tmp_path / "run", Silent(), overrides=["training.steps=2"])
    with pytest.raises(ConfigError, match=r"batch_tokens = 640 has no effect beside training\.batch_size = 8"):
        small(words(tmp_path), "training.batch_tokens=640")
