"""The pictures of a report: how a finished model answered a few validation examples."""

from __future__ import annotations

import json
import re
import time
import xml.etree.ElementTree as ElementTree
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from recurra.reports import report_pictures
from recurra.reports.few_examples import Chosen, few
from recurra.reports.report_pictures import BYTES
from recurra.runs import begin, resume, setup
from recurra.tasks.to_sequence import ToSequence
from recurra.training.progress import Silent
from recurra.training.trained import load
from recurra.views.pixels import write_png
from tests.analysis.small_runs import LABELLED, small_settings
from tests.reports.test_report import Page
from tests.tasks.small_pairs import WORDS, jsonl, small, table, words
from tests.training.breaking import weights_of_a_broken_run

NASTY = "<img/onerror=x>"
LOOKED, SURE, MATTERED, SEARCHED, GATES = (
    "Where it looked",
    "How sure it was",
    "What mattered",
    "How it searched",
    "Gates over time",
)


class Whole(Page):
    """A page with pictures, each element of which is closed in its turn."""

    VOID = ("meta", "link", "input", "br")


def made(task: str, valid: str, *overrides: str) -> Path:
    """The folder of a run that has hardly learned."""
    run = Path(mkdtemp()) / "run"
    given = [each for each in small_settings(*overrides) if "embedding" not in each or task != "forecasting"]
    begin(setup(task, given={"train": valid, "valid": valid}, overrides=given), run, Silent())
    return run


def report(run: Path) -> str:
    return (run / "report.html").read_text("utf-8")


def shown(run: Path) -> str:
    """What stands under the heading of the examples."""
    found = re.search(r"<h2>A few validation examples</h2>(.*?)</section>", report(run), re.DOTALL)
    assert found, "the report shows examples"
    return found[1]


def titles(run: Path, number: int = 0) -> list[str]:
    """The views of the number-th example."""
    return re.findall(
        r"<details(?: open)?><summary>([A-Z][^<]*)</summary>", shown(run).split('class="example"')[number + 1]
    )[:9]


@cache
def taught() -> Path:
    """Words learned by heart, of which validation takes three to be said otherwise, and one in two ways."""
    here = Path(mkdtemp())
    other = [(word, "AA G" if word in ("dog", "coat", "god") else sounds) for word, sounds in WORDS]
    valid = table(here / "valid.tsv", [("cat", "G G"), *other, ("coat", "G G")])
    begin(small(words(here), valid=valid), here / "run", Silent())
    return here / "run"


def test_what_writes_is_shown_by_attention_surprise_and_search() -> None:
    run = taught()
    views = [[each for each in titles(run, number) if each in (LOOKED, SURE, SEARCHED, GATES)] for number in range(3)]
    assert views == [[LOOKED, SURE, SEARCHED, GATES], [LOOKED, SURE, SEARCHED], [LOOKED, SURE, SEARCHED]]
    assert shown(run).count('class="example"') == 3
    assert "Not shown" not in shown(run)


def test_right_and_wrong_answers_are_told_apart() -> None:
    text = Whole(report(taught())).text
    assert re.search(r"(cat|tree|house|mouse|a) → [A-Z ]+valid\.tsv:\d: right", text)
    assert len(re.findall(r"(?:dog|god|coat) → [A-Z ]+valid\.tsv:\d: wrong, AA G is right", text)) == 2


def test_a_word_is_right_if_it_is_said_as_any_of_its_references() -> None:
    model = load(taught())
    examples, outputs = model.to_score(model.task.settings.data.files("valid"))
    chosen = few(model.task, examples, [model.task.encode(each) for each in examples], outputs, 99)
    right = {each.example.source[0]: each.verdict and each.verdict.is_right for each in chosen}
    assert right == {word: word not in ("dog", "coat", "god") for word, _ in WORDS}


def test_the_same_examples_are_chosen_whatever_was_read_before_and_the_first_has_the_usual_length() -> None:
    model = load(taught())
    examples, outputs = model.to_score(model.task.settings.data.files("valid"))
    rows = [model.task.encode(each) for each in examples]
    chosen = few(model.task, examples, rows, outputs, 3)
    assert few(model.task, examples, rows, outputs, 3) == chosen
    lengths = sorted(max(len(row["source"]), len(row["target"])) for row in rows)
    assert chosen[0].length == lengths[len(lengths) // 2]
    assert {each.verdict and each.verdict.is_right for each in chosen} == {True, False}
    assert len({each.example.source for each in chosen}) == 3
    assert few(model.task, [], [], [], 3) == []


def test_a_long_answer_to_a_short_source_is_too_large_for_a_page() -> None:
    model = load(taught())
    [example, *_] = model.task.read(model.task.settings.data.files("valid"))
    drawn = report_pictures._Drawn(model, time.monotonic() + 60)
    assert drawn.view("tree", Chosen(example, "valid.tsv:1", 90)) is None
    assert drawn.missing == ["tree: the example has 90 elements, too many for this page (valid.tsv:1)"]
    assert drawn.view("tree", Chosen(example, "valid.tsv:1", 3)) is not None


def test_a_report_with_pictures_fetches_nothing_and_runs_one_script_named_by_its_hash() -> None:
    text = report(taught())
    page = Whole(text)
    assert set(re.findall(r"https?://[^\"'\s<]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert page.tags.count("script") == 1
    assert not {"img", "iframe", "object"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "src"]
    linked = [value or "" for name, value in page.attributes if name.endswith("href")]
    assert all(value.startswith(("data:", "#")) for value in linked)
    [policy] = [value or "" for name, value in page.attributes if name == "content" and "default-src" in (value or "")]
    assert "script-src 'sha256-" in policy
    for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(picture)
    assert len(text.encode()) < 1_500_000


@pytest.mark.parametrize(
    ("overrides", "views"),
    [
        (("model.encoder=rnn",), [MATTERED, GATES]),
        (("model.encoder=rnn", "model.summary=attention"), [LOOKED, MATTERED, GATES]),
    ],
)
def test_classes_are_shown_by_the_words_that_mattered(
    tmp_path: Path, overrides: tuple[str, ...], views: list[str]
) -> None:
    rows = [(f"{text} {NASTY}", label) for text, label in LABELLED]
    run = made("classification", table(tmp_path / "a.tsv", rows), *overrides)
    assert [each for each in titles(run) if each in (LOOKED, MATTERED, GATES)] == views
    assert "Not shown" not in shown(run)
    page = Whole(report(run))
    assert "img" not in page.tags
    assert page.text.count(NASTY) >= 3


def test_a_photo_is_shown_with_the_colour_where_the_queries_looked(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    (tmp_path / "photos").mkdir()
    for name in "abcd":
        (tmp_path / "photos" / f"{name}.png").write_bytes(write_png(draw.integers(0, 256, (9, 14), np.uint8)))
    rows = [("image", "label"), *((f"photos/{name}.png", "xy"[name > "b"]) for name in "abcd")]
    small = ("model.image.widths=[4, 4]", "model.image.layers=0", "model.summary=attention")
    run = made("classification", table(tmp_path / "a.tsv", rows), *small)
    assert [each for each in titles(run) if each in (LOOKED, MATTERED, GATES)] == [LOOKED]
    assert shown(run).count("data:image/png") == 6
    assert "Not shown" not in shown(run)


def test_a_bag_of_words_has_nothing_to_show(tmp_path: Path) -> None:
    run = made("classification", table(tmp_path / "a.tsv", LABELLED), "model.encoder=bag")
    assert "validation examples" not in report(run)


def test_tags_are_shown_by_the_words_that_mattered_and_odd_words_are_text(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(f"the\tD\ncat\tN\nsleeps\tV\n\na\tD\n{NASTY}\tN\n\n")
    run = made("tagging", str(tmp_path / "a.conll"), "data.min_count=1", "model.characters.cell=none")
    assert [each for each in titles(run) if each in (MATTERED, GATES)] == [MATTERED, GATES]
    page = Whole(report(run))
    assert "img" not in page.tags
    assert f"{NASTY}/" in page.text
    assert re.search(r"a\.conll:\d: (right|wrong, (the|cat|sleeps|a|<img/onerror=x>) is [DNV](, |What))", page.text)


def test_tags_of_numbers_are_shown_right_and_wrong(tmp_path: Path) -> None:
    rows = [{"frames": [[float(row), 1.0]] * 3, "tags": ["AB"[row % 2]] * 3} for row in range(6)]
    run = made("tagging", jsonl(tmp_path / "a.jsonl", rows))
    assert [each for each in titles(run) if each in (MATTERED, GATES)] == [MATTERED, GATES]
    assert set(re.findall(r"a\.jsonl:\d: (right|wrong)", shown(run))) == {"right", "wrong"}


def test_a_wrong_label_of_a_sentence_is_none_of_its_words(tmp_path: Path) -> None:
    rows = [{"tokens": ["the", word], "tags": ["D", "N"], "label": f"about_{word}"} for word in ("cat", "dog", "cow")]
    run = made("tagging", jsonl(tmp_path / "a.jsonl", rows), "data.min_count=1", "model.characters.cell=none")
    assert re.search(r"wrong, ([^<]*, )?about_(cat|dog|cow) is right<", shown(run))
    assert not re.search(r" is about_", shown(run))


def test_no_class_at_all_is_an_answer_that_can_be_read(tmp_path: Path) -> None:
    rows = [{"text": text, "labels": [label] * (row == 0)} for row, (text, label) in enumerate(LABELLED)]
    own = ("model.encoder=rnn", "model.summary=attention", "training.steps=20", "training.learning_rate=0.05")
    run = made("classification", jsonl(tmp_path / "a.jsonl", rows), "data.labels=labels", *own)
    assert "<h3>bad → (nothing)</h3>" in shown(run)
    assert "(nothing): where its queries looked" in shown(run)


def test_a_text_is_shown_by_its_surprise_as_many_lines_together_as_fit(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two <b>\n\nthree\n" * 40)
    run = made("language_model", str(tmp_path / "a.txt"), "reading.steps=4")
    assert [each for each in titles(run) if each in (SURE, GATES)] == [SURE, GATES]
    assert len(re.findall(r"a\.txt:\d+</h3>", shown(run))) == 3
    assert "Surprise" in Whole(report(run)).text
    alone = made("language_model", str(tmp_path / "a.txt"), "data.independent=true", "training.batch_size=4")
    assert re.search(r"<p class=\"soft\">(6|12) tokens", shown(alone))


def test_a_drawing_is_shown_with_the_colour_where_each_sign_looked(tmp_path: Path) -> None:
    bar, dash = [[0, 0], [0, 9]], [[0, 9], [5, 5]]
    rows = [{"strokes": [bar] * n + [dash], "latex": "1 " * n + "-"} for n in range(1, 4)]
    few = ("model.image.widths=[4, 4]", "model.image.layers=0", "decoding.max_length=5")
    run = made("vec2seq", jsonl(tmp_path / "a.jsonl", rows), *few)
    assert [each for each in titles(run) if each in (LOOKED, SURE, SEARCHED)] == [LOOKED, SURE, SEARCHED]
    assert shown(run).count("data:image/png") == 6  # of each example one for a wide screen and one for a narrow one


def test_a_vector_has_no_places_and_a_greedy_search_no_tree(tmp_path: Path) -> None:
    colours = table(tmp_path / "a.tsv", [("1", "0", "red"), ("0", "1", "blue")])
    run = made("vec2seq", colours, "decoding.search=greedy", "decoding.max_length=4")
    assert [each for each in titles(run) if each in (LOOKED, SURE, SEARCHED)] == [SURE]
    assert "<script" not in report(run)


def test_forecasts_are_drawn_beside_what_came(tmp_path: Path) -> None:
    rows = "".join(f"{step},{step % 7}\n" for step in range(60))
    (tmp_path / "a.csv").write_text(f"time,<b>level\n{rows}")
    run = made("forecasting", str(tmp_path / "a.csv"), "decoding.horizon=5")
    page = Whole(report(run))
    assert shown(run).count("<svg") == 6, "each in a wide form and in one for phones"
    assert [f", {first} to {first + 4}" in page.text for first in (55, 50, 45)] == [True] * 3
    assert "<b>level, step ahead 5: actual " in page.text
    (tmp_path / "short.csv").write_text("time,level\n1,2\n2,3\n3,5\n")
    with_little = made("forecasting", str(tmp_path / "short.csv"), "decoding.horizon=5")
    assert "too short to forecast their end" in shown(with_little)


def test_a_run_that_was_broken_and_resumed_shows_the_same_pictures(tmp_path: Path) -> None:
    file = words(tmp_path)
    this = small(file, "training.steps=12", "training.validate=4", valid=file)
    begin(this, tmp_path / "whole", Silent())
    weights_of_a_broken_run(this, tmp_path / "broken", last=7)
    assert shown(tmp_path / "broken") == shown(tmp_path / "whole")


def test_without_validation_data_there_are_no_examples(tmp_path: Path) -> None:
    begin(small(words(tmp_path), "training.steps=1"), tmp_path / "run", Silent())
    assert "validation examples" not in report(tmp_path / "run")


def test_long_examples_get_fewer_pictures_or_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("".join("word\tD\n" * length + "\n" for length in (50, 60, 70)))
    few = ("data.min_count=1", "model.characters.cell=none")
    run = made("tagging", str(tmp_path / "a.conll"), *few)
    assert shown(run).count('class="example"') == 1
    assert [each for each in titles(run) if each in (MATTERED, GATES)] == [GATES]
    assert "saliency: the example has 50 elements, too many for this page (a.conll:1)" in shown(run)
    (tmp_path / "b.conll").write_text("word\tD\n" * 120 + "\n")
    assert "No validation example can be shown here: they have more than 100 elements" in shown(
        made("tagging", str(tmp_path / "b.conll"), *few)
    )


def test_neither_size_nor_time_nor_work_grow_beyond_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(taught())
    examples, outputs = model.to_score(model.task.settings.data.files("valid"))
    rows = [model.task.encode(each) for each in examples]
    whole = report_pictures.pictures(model, examples, rows, outputs)
    assert report_pictures.pictures(model, examples, rows, outputs) == whole, "the same each time"
    assert len(whole.html.encode()) < BYTES
    monkeypatch.setattr(report_pictures, "BYTES", 30_000)
    smaller = report_pictures.pictures(model, examples, rows, outputs)
    assert len(smaller.html.encode()) < 35_000
    assert "tree: the page would be too large" in smaller.html
    monkeypatch.setattr(report_pictures, "SECONDS", -1.0)
    none = report_pictures.pictures(model, examples, rows, outputs)
    assert "<svg" not in none.html
    assert "attention: skipped, because the others took long" in none.html
    assert none.html.count("<h3>") == 3
    assert report_pictures.pictures(model, examples, rows, outputs, most=0).html == ""


def test_saliency_of_a_large_model_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_pictures, "WORK", 1000)
    run = made("classification", table(tmp_path / "a.tsv", LABELLED))
    assert "saliency: skipped, because it would take long for a model of this size" in shown(run)


def test_a_picture_that_fails_is_a_sentence_and_no_reason_for_a_run_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no room <b>\nat all")

    monkeypatch.setattr(ToSequence, "probabilities", fails)
    run = made("seq2seq", words(tmp_path), "decoding.max_length=5")
    assert "probabilities: it could not be drawn (RuntimeError: no room &lt;b&gt;)" in shown(run)
    assert LOOKED in titles(run)


def test_whoever_stops_the_pictures_has_a_whole_report_and_may_have_them_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(*_: object) -> None:
        raise KeyboardInterrupt

    file = words(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(ToSequence, "looked", stops)
        with pytest.raises(KeyboardInterrupt):
            begin(small(file, "training.steps=2", valid=file), tmp_path / "run", Silent())
    assert Whole(report(tmp_path / "run")).headings[-1] == "Environment"
    assert "validation examples" not in report(tmp_path / "run")
    assert (tmp_path / "run" / "card.md").exists()
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["steps"] == 2
    resume(tmp_path / "run", Silent())
    assert LOOKED in titles(tmp_path / "run")
