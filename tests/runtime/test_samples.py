"""Inputs to begin with: they are short, from all over the data, and mean what the data means."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from recurra.cli import main
from recurra.manifest import seal
from recurra.reading.samples import EASY, LINE, STEPS
from recurra.runtime.hosted import hosted, runs_below
from recurra.runtime.inputs import question
from recurra.runtime.samples import samples
from recurra.training.trained import load
from recurra.views.pixels import write_png
from tests.runtime.small_tasks import KINDS, AnyTask, of_every_kind, prepared
from tests.tasks import small_givens
from tests.tasks.small_pairs import jsonl, table, untrained, words


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AnyTask]:
    return of_every_kind(tmp_path_factory.mktemp("data"))


def check_the_same(task: AnyTask, example: object, asked: object) -> None:
    """What is read of a question is what is read of the example it was made of."""
    whole, found = task.encode(example), task.encode(asked)
    answers = {"target", "label", "labels", "targets", "values", "tags0"} if task.name != "forecasting" else set()
    read = {*found} - answers - {"place"}
    assert read
    for name in read:
        np.testing.assert_array_equal(whole[name], found[name], err_msg=name)


@pytest.mark.parametrize("name", KINDS)
def test_an_example_that_is_sent_is_asked_as_it_was(name: str, tasks: dict[str, AnyTask]) -> None:
    task = tasks[name]
    for example in task.read(task.settings.data.files("train")):
        check_the_same(task, example, question(task, task.sent(example)))


@pytest.mark.parametrize("name", KINDS)
def test_every_sample_can_be_asked(name: str, tasks: dict[str, AnyTask]) -> None:
    task = tasks[name]
    found = samples(task)
    assert 2 <= len(found) <= 5
    for value in found:
        task.encode(question(task, value))


@pytest.mark.parametrize("invert", ["true", "false", "auto"])
def test_a_picture_that_is_turned_over_is_so_once(invert: str, tmp_path: Path) -> None:
    task = prepared("vec2seq", small_givens.pixels(tmp_path), f"data.image.invert={invert}")
    for example in task.read(task.settings.data.files("train")):
        check_the_same(task, example, question(task, task.sent(example)))


def test_pictures_in_files_are_sent_themselves(tmp_path: Path) -> None:
    rows = []
    for number, name in enumerate(small_givens.SHAPES):
        (tmp_path / f"{name}.png").write_bytes(write_png(small_givens.picture(number)))
        rows.append({"image": f"{name}.png", "target": name})
    task = prepared("vec2seq", jsonl(tmp_path / "files.jsonl", rows))
    assert len(samples(task)) == 5
    assert all(str(value).startswith("data:image/png;base64,") for value in samples(task))
    (tmp_path / "up.png").unlink()  # the first of them
    assert len(samples(task)) == 4


def test_strokes_that_are_lists_of_points_are_sent_as_x_and_y(tmp_path: Path) -> None:
    points = [[[0, 1], [2, 3], [4, 5]], [[6, 7]]]
    train = jsonl(tmp_path / "points.jsonl", [{"strokes": points, "target": name} for name in ("a", "b")])
    task = prepared("vec2seq", train)
    first = next(iter(task.read([train])))
    assert task.sent(first) == [[[0, 2, 4], [1, 3, 5]], [[6], [7]]]
    check_the_same(task, first, question(task, task.sent(first)))


def test_several_texts_and_features_are_sent_with_tabs(tmp_path: Path) -> None:
    train = table(tmp_path / "forms.tsv", [("V;PST;3", "walked", "walk", "en"), ("V;PRS", "walks", "walk", "en")])
    columns = 'data.columns=["tags", "target", "source", "language"]'
    task = prepared("seq2seq", train, columns, 'data.features=["tags", "language"]')
    assert samples(task) == ["V PST 3 en\twalk\t", "V PRS en\twalk\t"]
    for example in task.read([train]):
        check_the_same(task, example, question(task, task.sent(example)))


def test_a_language_model_is_offered_single_lines(tmp_path: Path) -> None:
    lines = [f"line {number} of a play" for number in range(500)]
    (tmp_path / "play.txt").write_text("\n\n".join([*lines, "x " * 400]), "utf-8")
    found = samples(prepared("language_model", str(tmp_path / "play.txt")))
    assert len(found) == 5
    assert all(isinstance(value, str) and "\n" not in value and len(value) <= LINE for value in found)
    places = [int(str(value).split()[1]) for value in found]
    assert places == sorted(places)
    assert places[-1] > 300


def test_samples_are_from_all_over_sorted_data(tmp_path: Path) -> None:
    rows = [(f"text {number} of {label}", label) for label in "abcde" for number in range(40)]
    task = prepared("classification", table(tmp_path / "sorted.tsv", rows))
    assert [str(value)[-1] for value in samples(task)] == list("abcde")


def test_short_texts_are_offered_where_there_are_any(tmp_path: Path) -> None:
    rows = [("long " * 200, "a"), ("short", "b"), ("long " * 300, "a")]
    task = prepared("classification", table(tmp_path / "texts.tsv", rows))
    assert samples(task) == ["short"]
    assert len("long " * 200) > EASY


def test_a_long_series_is_offered_in_stretches(tasks: dict[str, AnyTask]) -> None:
    found = samples(tasks["forecasting"])
    assert [len(each) for each in found] == [STEPS, STEPS]  # type: ignore[arg-type]
    assert found[0] == [[float(t % 7)] for t in range(300 - STEPS, 300)]


def test_data_that_is_gone_has_no_samples(tmp_path: Path) -> None:
    train = table(tmp_path / "words.tsv", [("a", "b"), ("c", "d")])
    task = prepared("seq2seq", train)
    Path(train).unlink()
    assert samples(task) == []


def test_numbers_have_no_more_digits_than_the_data(tmp_path: Path) -> None:
    train = jsonl(
        tmp_path / "few.jsonl", [{"vector": [0.1, 25], "target": "a"}, {"vector": [1e-7, 0.77], "target": "b"}]
    )
    assert samples(prepared("vec2seq", train)) == [[0.1, 25], [1e-7, 0.77]]


def test_the_same_text_is_offered_once(tmp_path: Path) -> None:
    rows = [("again", "a"), ("once", "b"), ("again", "a")]
    assert samples(prepared("classification", table(tmp_path / "texts.tsv", rows))) == ["again", "once"]


def test_a_run_keeps_samples_that_are_offered_when_its_data_is_gone(tmp_path: Path) -> None:
    train = words(tmp_path)
    run = untrained(tmp_path, train).folder
    offered = hosted([str(run)])["run"].samples()
    assert json.loads((run / "samples.json").read_text("utf-8")) == offered
    assert len(offered) == 5
    Path(train).unlink()
    assert hosted([str(run)])["run"].samples() == offered
    copied = load(run).save(tmp_path / "copied")
    assert hosted([str(copied)])["copied"].samples() == offered


def test_a_run_without_samples_or_with_broken_ones_offers_its_data_where_it_is_trusted(tmp_path: Path) -> None:
    run = untrained(tmp_path, words(tmp_path)).folder
    offered = hosted([str(run)])["run"].samples()
    (run / "samples.json").write_text("[", "utf-8")
    seal(run)
    assert hosted([str(run)], trust=True)["run"].samples() == offered
    assert hosted([str(run)])["run"].samples() == []
    (run / "samples.json").unlink()
    seal(run)
    assert hosted([str(run)], trust=True)["run"].samples() == offered
    assert hosted([str(run)])["run"].samples() == []


def test_a_run_that_names_a_secret_as_its_data_does_not_show_it_to_a_visitor(tmp_path: Path) -> None:
    run = untrained(tmp_path, words(tmp_path)).folder
    secret = table(tmp_path / "secret.tsv", [("password", "swordfish")])
    config = (run / "config.toml").read_text("utf-8")
    config = "\n".join(f'train = "{secret}"' if line.startswith("train = ") else line for line in config.split("\n"))
    (run / "config.toml").write_text(config, "utf-8")
    (run / "samples.json").unlink()
    seal(run)  # which anybody can
    assert hosted([str(run)])["run"].samples() == []
    assert hosted([str(run)], trust=True)["run"].samples() == ["password"]  # the user has said that it is theirs


def test_gradients_read_the_samples_when_the_data_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = words(tmp_path)
    run = untrained(tmp_path, train).folder
    Path(train).unlink()
    capsys.readouterr()
    assert main(["gradients", str(run)]) == 0
    said = capsys.readouterr().out
    assert "(its data is gone: the samples in the run folder): 5 examples, no loss" in said
    (run / "samples.json").unlink()
    seal(run)
    assert main(["gradients", str(run)]) == 2
    assert "words.tsv" in capsys.readouterr().err


def test_runs_are_found_at_any_depth_and_links_are_not_followed(tmp_path: Path) -> None:
    for place in ("b", "a/deep/er", "a/deep/er/last", ".hidden/run", "seeds/seed-1", "seeds/seed-2"):
        (tmp_path / "runs" / place).mkdir(parents=True)
        (tmp_path / "runs" / place / "config.toml").write_text("")
    (tmp_path / "runs" / "again").symlink_to(tmp_path / "runs" / "a")
    (tmp_path / "runs" / "a" / "round").symlink_to(tmp_path / "runs")
    found = [str(Path(each).relative_to(tmp_path / "runs")) for each in runs_below(tmp_path / "runs")]
    assert found == ["a/deep/er", "b", "seeds/seed-1", "seeds/seed-2"]
    assert list(hosted([str(tmp_path / "runs")])) == ["er", "b", "seed-1", "seed-2"]
