"""What a run folder holds stays loadable, whatever the usual settings become."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.manifest import seal
from recurra.runs import begin, resume, told, train
from recurra.training.progress import Silent
from recurra.training.trained import load
from tests.tasks.small_pairs import Noted, small, untrained, words


def test_a_run_loads_and_resumes_when_its_batch_tokens_are_no_longer_the_usual_ones(tmp_path: Path) -> None:
    untrained(tmp_path, words(tmp_path))
    config = tmp_path / "run" / "config.toml"
    saved = config.read_text("utf-8")
    assert "batch_size = 8\n" in saved
    assert "batch_tokens = 1000\n" in saved
    config.write_text(saved.replace("batch_tokens = 1000", "batch_tokens = 640"), "utf-8")
    seal(tmp_path / "run")
    assert load(tmp_path / "run").with_settings(["decoding.width=2"]).task.settings.training.batch_size == 8
    resume(tmp_path / "run", Silent(), overrides=["training.steps=2"])
    with pytest.raises(ConfigError, match=r"batch_tokens = 640 has no effect beside training\.batch_size = 8"):
        small(words(tmp_path), "training.batch_tokens=640")


def test_to_answer_otherwise_reads_nothing_from_the_run_again(tmp_path: Path) -> None:
    untrained(tmp_path, words(tmp_path))
    model = load(tmp_path / "run")

    def scores(**how: Any) -> list[float]:
        [answer] = model.predict(["cat"], **how)
        return [answer.score, *(other["score"] for other in answer.alternatives)]

    by_beam = scores(search="beam", width=3, best=2)
    assert len(by_beam) == 2
    shutil.rmtree(tmp_path / "run")
    assert scores(search="beam", width=3, best=2) == by_beam
    assert len(scores()) == 1, "the model itself answers as before"


def test_a_folder_of_seeds_is_no_run_and_says_which_it_holds(tmp_path: Path) -> None:
    for seed in (1, 2):
        untrained(tmp_path, words(tmp_path), run=f"seeds/seed-{seed}")
    with pytest.raises(
        CheckpointError, match=r"seeds contains one run per seed: .*or all as an ensemble: .*seed-1,.*seed-2\.$"
    ):
        load(tmp_path / "seeds")


def test_a_file_that_is_trained_and_validated_on_is_said_and_the_deciding_score_comes_first(tmp_path: Path) -> None:
    file, progress = words(tmp_path), Noted()
    begin(small(file, "training.steps=1", valid=file), tmp_path / "run", progress)
    assert (
        f"{file} is used for both training and validation: these scores do not measure generalisation" in progress.notes
    )
    assert "\nvalid: word_error_rate " in told(tmp_path / "run")


def test_what_python_gives_in_place_of_a_list_or_a_table_is_refused(tmp_path: Path) -> None:
    model = untrained(tmp_path, words(tmp_path))
    with pytest.raises(DataError, match=r"predict needs a list of inputs: predict\(\[text\]\)"):
        model.predict(None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"changes must be a dict or a list of strings, but is 'decoding.best=4': wr"):
        model.with_settings("decoding.best=4")
    with pytest.raises(ConfigError, match=r"settings must be a table such as .* but is 'model.hidden=3'\."):
        train("seq2seq", train=words(tmp_path), out=tmp_path / "x", settings="model.hidden=3")  # type: ignore[arg-type]
