"""Run folders: verified wherever they are read, changed whole, and resumed on the data they were begun with."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

import recurra
from recurra.cli import main
from recurra.manifest import MANIFEST, STAGE, UnverifiedWarning, read_manifest, seal
from recurra.models.saved import read_tensors
from recurra.runs import resume
from recurra.training.progress import Silent

TEXT = "the\tDET\ncat\tNOUN\nsees\tVERB\n\na\tDET\ndog\tNOUN\nsleeps\tVERB\n\n" * 20
SET = ["training.steps=12", "training.validate=4", "model.hidden=8", "model.dropout=0.3", "data.min_count=1"]


def train(*more: str) -> int:
    given = ["train", "tagging", "--train", "train.conll", "--valid", "valid.conll", "--out", "run", "--quiet"]
    return main([*given, *(word for each in [*SET, *more] for word in ("--set", each))])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("trained")
    before = Path.cwd()
    os.chdir(here)
    try:
        (here / "train.conll").write_text(TEXT)
        (here / "valid.conll").write_text("the\tDET\ndog\tNOUN\n\n")
        assert train() == 0
    finally:
        os.chdir(before)
    return here


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a finished run, in the current folder."""
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    return Path("run")


def refused(capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> str:
    """The sentence with which a command refuses."""
    capsys.readouterr()
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "Traceback" not in told.err
    return told.err


def test_every_file_that_training_writes_is_in_the_manifest(run: Path) -> None:
    files = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    manifest = read_manifest(run)
    assert manifest is not None
    assert set(manifest) == {name for name in files if not name.startswith("tensorboard/")} - {MANIFEST}
    assert {"config.toml", "model.safetensors", "last/checkpoint.safetensors", "summary.json"} <= set(manifest)


COMMANDS = {
    "config.toml": ["predict", "info", "evaluate", "resume", "check"],
    "words.json": ["predict", "evaluate", "resume", "check"],
    "model.safetensors": ["predict", "evaluate", "resume", "check"],
    "summary.json": ["info", "check", "predict"],
    "last/checkpoint.safetensors": ["resume", "check"],
    "metrics.jsonl": ["resume", "check"],
}


def typed(command: str) -> list[str]:
    return {
        "predict": ["predict", "run", "valid.conll"],
        "evaluate": ["evaluate", "run", "valid.conll"],
        "info": ["info", "run"],
        "check": ["check", "run"],
        "resume": ["train", "run", "--resume", "--quiet", "--set", "training.steps=13"],
    }[command]


def test_a_flipped_bit_in_any_file_is_named_by_every_command_that_reads_it(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vocabulary = next(
        path.name for path in run.glob("*.json") if path.name.startswith(("words", "vocabulary", "texts"))
    )
    for name, commands in COMMANDS.items():
        path = run / (vocabulary if name == "words.json" else name)
        good = path.read_bytes()
        path.write_bytes(good[:-3] + bytes([good[-3] ^ 1]) + good[-2:])
        for command in commands:
            text = refused(capsys, typed(command))
            assert f"{path} is damaged" in text, (name, command)
            assert "recurra check run --accept" in text
        path.write_bytes(good)
    assert main(typed("predict")) == 0


def test_check_says_that_a_whole_run_is_as_written_and_accepts_an_edited_one(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "run"]) == 0
    assert "files of" in (said := capsys.readouterr().out)
    assert "are as written, by the SHA-256 in manifest.json" in said
    config = run / "config.toml"
    config.write_text(config.read_text() + "# a remark\n")
    assert "config.toml is damaged" in refused(capsys, ["check", "run"])
    assert main(["check", "run", "--accept"]) == 0
    assert "are recorded in manifest.json" in capsys.readouterr().out
    assert main(typed("predict")) == 0


def test_files_of_the_users_own_may_change_in_a_run_that_was_accepted(run: Path) -> None:
    own = run / "predictions.tsv"
    for is_old in (False, True):
        own.write_text("one\n")
        if is_old:
            (run / MANIFEST).unlink()
        assert main(["check", "run", "--accept"]) == 0
        own.write_text("two\n")
        assert main(typed("predict")) == 0
        assert {"config.toml", "last/checkpoint.safetensors", "summary.json"} <= set(read_manifest(run) or {})


def test_files_of_the_users_own_may_change_in_a_run_of_an_earlier_version_that_was_resumed(run: Path) -> None:
    (run / MANIFEST).unlink()
    config = run / "config.toml"
    config.write_text(config.read_text().replace("format = 3", "format = 2"))
    (run / "predictions.tsv").write_text("one\n")
    with pytest.warns(UnverifiedWarning):
        resume(run, Silent(), overrides=["training.steps=13"])
    (run / "predictions.tsv").write_text("two\n")
    assert main(typed("predict")) == 0


@pytest.mark.usefixtures("run")
def test_accept_is_only_for_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--accept is for the folder of a run" in refused(capsys, ["check", "train.conll", "--accept"])


def test_a_manifest_that_went_missing_is_said_with_what_to_do(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / MANIFEST).unlink()
    assert "manifest.json is missing, so damage" in refused(capsys, typed("predict"))
    assert main(["check", "run", "--accept"]) == 0
    assert main(typed("predict")) == 0


def test_a_run_of_an_earlier_version_loads_with_a_notice_and_gets_a_manifest(run: Path) -> None:
    (run / MANIFEST).unlink()
    config = run / "config.toml"
    config.write_text(config.read_text().replace("format = 3", "format = 2"))
    with pytest.warns(UnverifiedWarning, match=r"run has no manifest\.json"):
        recurra.load(run)
    seal(run)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recurra.load(run)


def test_a_saved_copy_has_a_manifest_of_its_own(run: Path) -> None:
    recurra.load(run).save("copy")
    assert "model.safetensors" in (read_manifest(Path("copy")) or {})
    assert recurra.load("copy").predict(["the cat"])[0].output == recurra.load(run).predict(["the cat"])[0].output


def test_changed_limits_come_into_force_with_the_next_checkpoint_alone(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (run / "config.toml").read_text()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("safetensors.torch.save_file", full)
        text = refused(capsys, ["train", "run", "--resume", "--quiet", "--set", "training.steps=16"])
    assert "run cannot be written (No space left on device); all that was saved before is still there" in text
    assert (run / "config.toml").read_text() == before
    assert main(["check", "run"]) == 0
    assert main(["train", "run", "--resume", "--quiet", "--set", "training.steps=16"]) == 0
    assert "steps = 16" in (run / "config.toml").read_text()


@pytest.mark.usefixtures("run")
def test_a_run_is_not_resumed_on_data_that_was_edited(capsys: pytest.CaptureFixture[str]) -> None:
    Path("train.conll").write_text(TEXT.replace("cat", "fox", 3))
    text = refused(capsys, ["train", "run", "--resume", "--quiet", "--set", "training.steps=16"])
    assert "the training data has changed since this run began: it has the same size, but other content" in text
    Path("train.conll").write_text("a\tDET\n\n" + TEXT)
    text = refused(capsys, ["train", "run", "--resume", "--quiet", "--set", "training.steps=16"])
    assert "it had 40 examples of 120 elements in all, and now has 41 of 121" in text


@pytest.mark.usefixtures("run")
def test_a_run_is_not_resumed_on_data_whose_numbers_are_the_same_but_mean_other_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    renamed = TEXT.replace("\tVERB", "\tX").replace("\tNOUN", "\tVERB").replace("\tDET", "\tNOUN")
    Path("train.conll").write_text(renamed)  # in the order of the alphabet, each tag has the number of the one before
    text = refused(capsys, ["train", "run", "--resume", "--quiet", "--set", "training.steps=16"])
    assert "the training data has changed since this run began: it has the same size, but other content" in text


def test_the_same_data_from_another_place_and_another_cache_is_known_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("moved.conll").write_text("\n\n" + TEXT)
    Path("train.conll").unlink()
    for place in ("a", "b"):
        shutil.copytree(run, place)
    resume = ["--resume", "--quiet", "--set", "training.steps=16", "--set", "data.train=moved.conll"]
    assert main(["train", "a", *resume]) == 0
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "another"))
    assert main(["train", "b", *resume]) == 0
    assert Path("a/model.safetensors").read_bytes() == Path("b/model.safetensors").read_bytes()


@pytest.mark.usefixtures("run")
def test_other_validation_data_is_said_when_a_run_is_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("valid.conll").write_text("a\tDET\n\n")
    assert main(["train", "run", "--resume", "--set", "training.steps=16"]) == 0
    told = capsys.readouterr()
    assert "the validation data has changed since this run began" in told.out + told.err


def test_a_damaged_cache_of_examples_is_made_again(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(run)
    assert train() == 0
    [entry] = (Path(os.environ["RECURRA_CACHE"]) / "data").iterdir()
    weights = (run / "model.safetensors").read_bytes()
    for number, path in enumerate(path for path in sorted(entry.rglob("*")) if path.is_file() and path.stat().st_size):
        good = path.read_bytes()
        path.write_bytes(good[: len(good) // 2] + bytes([good[len(good) // 2] ^ 1]) + good[len(good) // 2 + 1 :])
        shutil.rmtree(run)
        capsys.readouterr()
        command = ["train", "tagging", "--train", "train.conll", "--valid", "valid.conll", "--out", "run"]
        assert main([*command, *(word for each in SET for word in ("--set", each))]) == 0
        told = capsys.readouterr()
        is_text = path.name == MANIFEST  # of which a blank may have changed
        assert "is broken and is rebuilt" in told.out + told.err or is_text, path
        assert (run / "model.safetensors").read_bytes() == weights, path
        assert path.read_bytes() == good or is_text
        if number > 3:
            break


@pytest.mark.slow
def test_no_damage_to_the_cache_of_examples_changes_what_is_trained(run: Path) -> None:
    draw = random.Random(1)
    few = ["training.steps=1", "model.hidden=4", "model.embedding=4", "model.characters.cell=none"]
    shutil.rmtree(run)
    assert train(*few) == 0
    weights = (run / "model.safetensors").read_bytes()
    cache = Path(os.environ["RECURRA_CACHE"]) / "data"
    for number in range(200):
        files = [path for path in sorted(cache.rglob("*")) if path.is_file() and path.stat().st_size]
        path = draw.choice(files)
        good = path.read_bytes()
        place = draw.randrange(len(good))
        if number % 3 == 0:
            path.write_bytes(good[:place])
        elif number % 3 == 1:
            path.write_bytes(good[:place] + bytes([good[place] ^ 1 << draw.randrange(8)]) + good[place + 1 :])
        else:
            path.unlink()
        shutil.rmtree(run)
        assert train(*few) == 0, path
        assert (run / "model.safetensors").read_bytes() == weights, path


def test_a_checkpoint_knows_the_data_it_was_made_with(run: Path) -> None:
    _, about = read_tensors(run / "last" / "checkpoint.safetensors")
    assert len(about["position"]["data"]) == len(about["position"]["valid"]) == 64
    assert json.dumps(about)


@pytest.mark.parametrize("name", ["last/checkpoint.safetensors", "report.html"])
def test_resuming_finishes_a_change_that_was_cut_off_after_its_commit_point(run: Path, name: str) -> None:
    # The manifest lists the new file, which still lies in .new; the old one is in its place.
    new = run / STAGE / name
    new.parent.mkdir(parents=True)
    shutil.copy(run / name, new)
    (run / name).write_bytes(b"old")
    assert main(["train", "run", "--resume", "--quiet"]) == 0
    assert not (run / STAGE).exists()
    assert main(["check", "run"]) == 0


def test_check_names_each_damaged_file_once_also_after_finishing_a_change(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / STAGE).mkdir()
    shutil.copy(run / "config.toml", run / STAGE)
    (run / "config.toml").write_bytes(b"old")
    (run / "report.html").write_bytes(b"damaged")
    text = refused(capsys, ["check", "run"])
    assert text.count("report.html is damaged") == 1
    assert "config.toml" not in text


def test_a_checkpoint_is_verified_before_it_is_read(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / "last" / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes().replace(b'"position', b'"pos\xfftion', 1))
    assert "checkpoint.safetensors is damaged: its content is not what was written" in refused(capsys, typed("resume"))


@pytest.mark.usefixtures("run")
def test_ctrl_c_while_a_checkpoint_is_written_says_from_where_to_continue(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import save_file

    saved: list[str] = []

    def stopped_at_the_second(tensors: object, path: str, **options: object) -> None:
        saved.append(path)
        if len([each for each in saved if "checkpoint" in each]) == 2:
            raise KeyboardInterrupt
        save_file(tensors, path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("safetensors.torch.save_file", stopped_at_the_second)
    assert main(["train", "run", "--resume", "--quiet", "--set", "training.steps=24"]) == 130
    said = capsys.readouterr().err
    assert "stopped. Continue from the last checkpoint with: recurra train run --resume" in said
    assert "unchanged" not in said


def test_ctrl_c_before_the_first_checkpoint_says_that_nothing_is_saved(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    shutil.rmtree(run)
    with monkeypatch.context() as patch:
        patch.setattr("safetensors.torch.save_file", stopped)
        assert train() == 130
    assert "stopped before the first checkpoint; nothing is saved." in capsys.readouterr().err
    assert train() == 0  # in the same folder


def test_seeds_go_on_with_a_run_that_was_cut_off_right_after_its_first_commit_point(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = Path("seeds/seed-1")
    shutil.copytree(run, seed)
    stage = seed / STAGE
    stage.mkdir()
    (seed / "config.toml").rename(stage / "config.toml")
    manifest = json.loads((seed / MANIFEST).read_text())
    for name in ("summary.json", "samples.json", "report.html", "card.md"):  # written at the end
        (seed / name).unlink()
        del manifest["files"][name]
    (seed / MANIFEST).write_text(json.dumps(manifest))
    given = ["train", "tagging", "--train", "train.conll", "--valid", "valid.conll", "--out", "seeds", "--seeds", "2"]
    assert main([*given, "--quiet", *(word for each in SET for word in ("--set", each))]) == 0
    assert "2 seeds: mean" in capsys.readouterr().out


def test_a_run_that_names_no_training_data_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = run / "config.toml"
    config.write_text(re.sub("^train = .*", 'train = ""', config.read_text(), count=1, flags=re.M))
    seal(run)
    assert "config.toml names no training data (data.train)" in refused(capsys, typed("predict"))
