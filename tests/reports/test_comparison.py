"""Runs side by side: the figures are those of a bootstrap by hand, and what cannot be compared is said."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import recurra
from recurra.cli import main
from recurra.errors import ConfigError, DataError
from recurra.reports.comparison import Comparison, compare
from recurra.reports.comparison_page import as_text, write
from recurra.runs import begin, setup
from recurra.scoring.counted import is_higher_better
from recurra.scoring.scores import Scores
from recurra.training.evaluation import outputs_to_score
from recurra.training.progress import Silent
from recurra.training.trained import Trained
from tests.scoring.test_counted import CASES, SMALL, jsonl

FEW = ("training.steps=2", "training.threads=1", "training.device=cpu", "training.average=none")


def trained(folder: Path, case: str, run: str, *overrides: str) -> Path:
    task, data, options = CASES[case]
    given = {"train": data(folder, is_test=False)}
    begin(setup(task, given=given, overrides=[*SMALL, *FEW, *options, *overrides]), folder / run, Silent())
    data(folder, is_test=True)
    return folder / run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs of each kind of data, and the data."""
    folder = tmp_path_factory.mktemp("runs")
    for case in CASES:
        for seed in (1, 2):
            trained(folder, case, f"{case}-{seed}", f"training.seed={seed}", "training.learning_rate=0.05")
    return folder


def held_out(runs: Path, case: str) -> Path:
    return Path(CASES[case][1](runs, is_test=True))


def scored(model: Trained, file: Path) -> Callable[[np.ndarray[Any, Any]], Scores]:
    """The scores of any choice of examples, by the task itself."""
    examples = list(model.task.read([file]))
    outputs = outputs_to_score(model.task, model.model, [model.task.encode(example) for example in examples])
    return lambda chosen: model.task.score([examples[n] for n in chosen], [outputs[n] for n in chosen])


@pytest.mark.parametrize("case", CASES)
def test_intervals_and_differences_are_those_of_scoring_the_same_samples_again(runs: Path, case: str) -> None:
    file, resamples = held_out(runs, case), 25
    folders = [runs / f"{case}-1", runs / f"{case}-2"]
    found = compare(folders, file, resamples=resamples, seed=3)
    size = found.items or 0
    chance = np.random.default_rng(3)
    samples = [chance.integers(size, size=size) for _ in range(resamples)]
    again = [scored(recurra.load(folder), file) for folder in folders]
    by_hand = [[score(sample).values for sample in samples] for score in again]
    [pair] = found.apart
    assert (pair.first, pair.second) == (f"{case}-1", f"{case}-2")
    assert found.runs[0].scores.first in pair.scores
    for name in pair.scores:
        one, two = (np.array([values[name] for values in run]) for run in by_hand)
        for values, run in zip((one, two), found.runs, strict=True):
            assert run.intervals[name] == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=1e-9)
        whole = [score(np.arange(size)).values for score in again]
        assert [run.scores.values for run in found.runs] == [pytest.approx(values, nan_ok=True) for values in whole]
        apart = one - two
        apart[np.abs(apart) < 1e-12] = 0.0
        better = (apart > 0) if is_higher_better(name) else (apart < 0)
        share = (better + (apart == 0) / 2).mean()
        value = whole[0][name] - whole[1][name]
        assert pair.scores[name] == pytest.approx((value, *np.quantile(apart, [0.025, 0.975]), share), abs=1e-9)


PAIRS = (
    "model.embedding=4",
    "training.steps=4",
    "training.learning_rate=0.05",
    "decoding.max_length=8",
    "decoding.width=2",
)


def pairs(path: Path, seed: int) -> str:
    """Words and their letters in turn, each source once."""
    draw = random.Random(seed)
    sources = {"".join(draw.choices("abc", k=draw.randint(1, 6))) for _ in range(40)}
    path.write_text("".join(f"{source}\t{' '.join(reversed(source.upper()))}\n" for source in sorted(sources)))
    return str(path)


def test_sequences_are_compared_too_and_a_source_drawn_twice_counts_twice(tmp_path: Path) -> None:
    train, file = pairs(tmp_path / "train.tsv", 1), pairs(tmp_path / "test.tsv", 2)
    folders = [tmp_path / "one", tmp_path / "two"]
    for seed, folder in enumerate(folders):
        options = [*SMALL, *FEW, *PAIRS, f"training.seed={seed}"]
        begin(setup("seq2seq", given={"train": train}, overrides=options), folder, Silent())
    found = compare(folders, file, resamples=25)
    assert found.task == "seq2seq"
    chance = np.random.default_rng(0)
    by_hand: dict[str, list[list[float]]] = {}
    models = [recurra.load(folder) for folder in folders]
    examples = list(models[0].task.read([file]))
    answers = [outputs_to_score(model.task, model.model, [model.task.encode(e) for e in examples]) for model in models]
    for _ in range(25):
        sample = chance.integers(len(examples), size=len(examples))
        # With another source each, what was drawn twice is two items.
        asked = [examples[n]._replace(source=(f"{examples[n].source[0]}{place}",)) for place, n in enumerate(sample)]
        for number, model in enumerate(models):
            for name, value in model.task.score(asked, [answers[number][n] for n in sample]).values.items():
                by_hand.setdefault(name, [[], []])[number].append(value)
    [pair] = found.apart
    assert {"bleu", "word_error_rate", "symbol_error_rate", "perplexity"} <= {*pair.scores}
    for name, difference in pair.scores.items():
        one, two = map(np.array, by_hand[name])
        assert found.runs[0].intervals[name] == pytest.approx(np.quantile(one, [0.025, 0.975]), abs=1e-9)
        assert difference[1:3] == pytest.approx(np.quantile(one - two, [0.025, 0.975]), abs=1e-9)
    assert found.by_length is not None
    assert found.by_length.score == "word_error_rate"
    both = compare([",".join(map(str, folders)), folders[0]], file, resamples=2)
    assert [run.name for run in both.runs] == ["one,two", "one"]


def test_scores_by_length_are_those_of_the_items_of_a_length(runs: Path) -> None:
    found = compare([runs / "classes-1", runs / "classes-2"], held_out(runs, "classes"))
    model = recurra.load(runs / "classes-2")
    examples = list(model.task.read([held_out(runs, "classes")]))
    sizes = np.array([len(example.text.split()) for example in examples])
    again = scored(model, held_out(runs, "classes"))
    by = found.by_length
    assert by is not None
    assert by.score == "accuracy"
    assert sum(by.items) == len(examples)
    for label, items, value in zip(by.buckets, by.items, by.runs["classes-2"], strict=True):
        low, _, high = label.partition("-")
        chosen = np.flatnonzero((sizes >= int(low)) & (sizes <= int(high or low)))
        assert len(chosen) == items
        assert again(chosen).values["accuracy"] == pytest.approx(value)


def test_the_first_of_several_runs_is_set_beside_each_of_the_others(runs: Path) -> None:
    model = recurra.load(runs / "classes-2")
    found = recurra.compare([runs / "classes-1", model, runs / "classes-1"], [held_out(runs, "classes")])
    assert [(pair.first, pair.second) for pair in found.apart] == [
        ("classes-1", "classes-2"),
        ("classes-1", "classes-1 (2)"),
    ]
    itself = found.apart[1].scores["accuracy"]
    assert itself == (0.0, 0.0, 0.0, 0.5)


def test_runs_of_the_same_name_are_told_apart_by_their_path(runs: Path, tmp_path: Path) -> None:
    other = recurra.load(runs / "classes-2").save(tmp_path / "classes-1")
    found = compare([runs / "classes-1", other], held_out(runs, "classes"))
    assert [run.name for run in found.runs] == [str(runs / "classes-1"), str(other)]


def test_the_command_line_shows_scores_differences_and_scores_by_length(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compare", str(runs / "tags-1"), str(runs / "tags-2"), str(held_out(runs, "tags"))]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert f"tagging on {held_out(runs, 'tags')}: 30 items; in brackets 95% intervals, of 1,000 samples" in shown
    found = compare([runs / "tags-1", runs / "tags-2"], held_out(runs, "tags"))
    values, ends = found.runs[0].scores.values, found.runs[0].intervals
    assert f"{values['f1']:.4f} [{ends['f1'][0]:.4f}, {ends['f1'][1]:.4f}]" in shown
    apart = found.apart[0].scores["accuracy"]
    row = next(line for line in shown.splitlines() if line.startswith("accuracy ") and "%" in line)
    assert row.split("  ")[-1].strip() == f"{apart.better:.1%}"
    assert f"{apart.value:+.4f} [{apart.low:+.4f}, {apart.high:+.4f}]" in " ".join(row.split())
    assert "tags-1 − tags-2" in shown
    assert "sentence_accuracy by length\nlength items" in shown


def test_json_is_one_object_with_all_of_it(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(held_out(runs, "tags"))
    assert main(["compare", str(runs / "tags-1"), str(runs / "tags-2"), data, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    wanted = compare([runs / "tags-1", runs / "tags-2"], data)
    assert found["items"] == 30
    assert [run["name"] for run in found["runs"]] == ["tags-1", "tags-2"]
    assert found["runs"][1]["intervals"]["accuracy"] == list(wanted.runs[1].intervals["accuracy"])
    assert found["differences"][0]["scores"]["accuracy"] == wanted.apart[0].scores["accuracy"]._asdict()
    assert found["by_length"]["score"] == "sentence_accuracy"
    assert sum(found["by_length"]["items"]) == 30


def test_a_page_and_a_picture_can_be_written(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["compare", str(runs / "tags-1"), str(runs / "tags-2"), str(held_out(runs, "tags")), "--out"]
    for file in ("page.html", "picture.svg"):
        assert main([*names, str(tmp_path / file)]) == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<svg" in page
    assert "tags-1 − tags-2" in page
    assert "http-equiv" in page
    picture = ElementTree.fromstring((tmp_path / "picture.svg").read_text("utf-8"))
    assert picture.attrib["aria-label"] == "sentence_accuracy by length: sentence_accuracy (tags-1, tags-2), items"
    capsys.readouterr()
    assert main([*names, str(tmp_path / "picture.gif")]) == 2
    assert "the file must end in .html, .svg or .png" in capsys.readouterr().err


def test_a_picture_may_be_a_png(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    names = [str(runs / "tags-1"), str(runs / "tags-2"), str(held_out(runs, "tags"))]
    assert main(["compare", *names, "--out", str(tmp_path / "picture.png"), "--json"]) == 0
    assert (tmp_path / "picture.png").read_bytes()[:4] == b"\x89PNG"


def test_a_text_that_is_read_as_a_whole_is_compared_without_intervals(runs: Path, tmp_path: Path) -> None:
    for seed in (1, 2):
        trained(tmp_path, "lines", f"{seed}", "data.independent=false", f"training.seed={seed}")
    found = compare([tmp_path / "1", tmp_path / "2"], held_out(runs, "lines"))
    assert found.apart == []
    assert found.by_length is None
    assert found.runs[0].intervals == {}
    assert found.runs[0].scores.values["perplexity"] > 1
    assert found.items == 1
    assert found.notes == ["1, 2: the data is scored as a single item. Intervals need several items."]
    assert "interval" not in as_text(found).split("\n\n")[0]
    with pytest.raises(DataError, match=r"cannot draw .* these runs have no scores by length"):
        write(found, tmp_path / "picture.svg")


def test_models_that_cut_texts_in_another_way_are_compared_by_what_they_share(runs: Path, tmp_path: Path) -> None:
    other = trained(tmp_path, "lines", "letters", "data.text.tokens=characters")
    found = compare([runs / "lines-1", other], held_out(runs, "lines"))
    [note] = found.notes
    assert note.startswith("The runs count different units (lines-1 ")
    assert "bits_per_character" in found.apart[0].scores


def test_items_that_differ_are_not_compared_item_by_item(runs: Path, tmp_path: Path) -> None:
    other = trained(tmp_path, "lines", "whole", "data.independent=false")
    found = compare([runs / "lines-1", other], held_out(runs, "lines"))
    assert found.apart == []
    assert found.runs[0].intervals.keys() >= {"perplexity"}
    assert found.runs[1].intervals == {}
    assert found.notes[:2] == [
        "whole: the data is scored as a single item. Intervals need several items.",
        "The runs score different items of the data, so they are not compared item by item.",
    ]


def test_one_item_has_no_interval(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("a b c\n")
    found = compare([runs / "lines-1", runs / "lines-2"], tmp_path / "one.txt")
    assert found.notes == ["lines-1, lines-2: the data is scored as a single item. Intervals need several items."]
    assert found.apart == []


def test_a_score_that_some_samples_do_not_have_is_shown_without_an_interval(runs: Path, tmp_path: Path) -> None:
    rows = [{"tokens": ["aa", word], "slots": ["O", "B-x"], "kinds": ["P", "Q"], "label": "no"} for word in "abz"]
    data = jsonl(tmp_path / "few.jsonl", rows)
    found = compare([runs / "tags-1", runs / "tags-2"], data)
    assert "unknown_accuracy" not in found.runs[0].intervals
    assert "unknown_accuracy" in found.runs[0].scores.values
    assert "accuracy" in found.runs[0].intervals


def refusal(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["compare", *arguments]) == 2
    return capsys.readouterr().err


def test_what_cannot_be_compared_is_said(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, tags = str(runs / "classes-1"), str(runs / "classes-2"), str(runs / "tags-1")
    data = str(held_out(runs, "classes"))
    said = refusal(one, data, capsys=capsys)
    assert "compare needs at least two runs: recurra compare RUN RUN … DATA. For one, use recurra evaluate" in said
    assert f"the last argument must be the data, but {two} is a run" in refusal(one, tags, two, capsys=capsys)
    said = refusal(one, tags, data, capsys=capsys)
    assert f"but {one} is a run of classification and {tags} one of tagging" in said
    assert "nowhere.jsonl" in refusal(one, two, str(tmp_path / "nowhere.jsonl"), capsys=capsys)
    assert "there is no folder" in refusal(one, str(tmp_path / "none"), data, capsys=capsys)
    assert "have no score in common" in refusal(str(runs / "numbers-1"), one, _both(tmp_path), capsys=capsys)
    with pytest.raises(ConfigError, match="compare needs at least two runs"):
        compare(one, data)  # a single name
    with pytest.raises(ConfigError, match="no file was given"):
        compare([one, two], [])


def _both(folder: Path) -> str:
    """Data that classifiers and those that give numbers can read."""
    return jsonl(folder / "both.jsonl", [{"text": "a b", "label": "cat", "size": 1.0, "age": 0.5}] * 3)


def test_settings_of_evaluation_may_change(runs: Path) -> None:
    names, data = [runs / "several classes-1", runs / "several classes-2"], held_out(runs, "several classes")
    usual, strict = compare(names, data), compare(names, data, settings=["decoding.threshold=0.99"])
    assert isinstance(usual, Comparison)
    assert strict.runs[0].scores.values["f1"] == 0.0 != usual.runs[0].scores.values["f1"]
    by_dict = compare(names, data, settings={"decoding": {"threshold": 0.99}})
    assert by_dict.runs[0].scores.values["f1"] == 0.0


def test_networks_that_look_the_same_are_told_apart_by_their_settings(runs: Path) -> None:
    case = next(iter(CASES))
    one, two = compare([runs / f"{case}-1", runs / f"{case}-2"], held_out(runs, case), resamples=2).runs
    assert one.description.endswith(", training.seed = 1")
    assert two.description.endswith(", training.seed = 2")
    [same, again] = compare([runs / f"{case}-1"] * 2, held_out(runs, case), resamples=2).runs
    assert same.description == again.description == recurra.load(runs / f"{case}-1").task.described()
