"""`recurra explain`: what a model did with one input, from the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from recurra.analysis.alignment import alignment
from recurra.cli import main
from recurra.errors import ConfigError, DataError
from recurra.runs import begin, setup
from recurra.training.explaining import explain
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from recurra.views.pixels import write_png
from tests.analysis import small_runs
from tests.tasks.small_pairs import table, untrained, words

STROKES = [[[[0, 9], [0, 9]], [[9, 0], [0, 9]]], [[[0, 9], [5, 5]], [[5, 5], [0, 9]]], [[[0, 9], [5, 5]]]]
TINY = [
    *("model.hidden=8", "model.embedding=4", "model.image.widths=[4, 4]", "model.image.layers=0", "data.cache=false"),
    *("training.steps=1", "training.batch_size=2", "training.threads=1", "training.device=cpu"),
    *("decoding.max_length=6", "decoding.min_length=2"),
]


def begun(folder: Path, train: Path, *overrides: str) -> str:
    has_places = any(each.startswith("data.frames=") for each in overrides)
    tiny = [each for each in TINY if not (has_places and each.startswith("model.image."))]
    begin(setup("vec2seq", given={"train": str(train)}, overrides=[*tiny, *overrides]), folder, Silent())
    return str(folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of words, strokes, pictures, maps and rows of features, and a vector, none of which has learned much."""
    here = tmp_path_factory.mktemp("runs")
    untrained(here, words(here), "decoding.min_length=2", "decoding.max_length=5", run="words")
    strokes = [
        {"strokes": drawn, "latex": latex} for drawn, latex in zip(STROKES, ("x + y", "+ - +", "- 1"), strict=True)
    ]
    (here / "ink.jsonl").write_text("".join(json.dumps(row) + "\n" for row in strokes))
    begun(here / "ink", here / "ink.jsonl")
    for name in ("a", "b"):
        (here / f"{name}.png").write_bytes(
            write_png(np.random.default_rng(ord(name)).integers(0, 256, (9, 14), np.uint8))
        )
    table(here / "pictures.tsv", [("image", "caption"), ("a.png", "a a cat"), ("b.png", "a b dog")])
    features = np.random.default_rng(1).normal(size=(2, 2, 3, 4))
    np.savez(here / "maps.npz", features=features, caption=["a red cat", "a dog"])
    begun(here / "maps", here / "maps.npz", "data.frames=features")
    rows = [{"features": each.tolist(), "caption": "a cat"} for each in features[:, 0]]
    (here / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    begun(here / "rows", here / "rows.jsonl")
    table(here / "colours.tsv", [("1", "0", "red"), ("0", "1", "blue")])
    begun(here / "colours", here / "colours.tsv")
    return here


def explained(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["explain", *words]) == 0
    return capsys.readouterr().out


def test_a_text_is_explained_by_where_each_token_looked(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = explained(f"{runs}/words", "cat", capsys=capsys).splitlines()
    assert printed[0].startswith("cat → ")
    assert printed[1].split() == ["c", "a", "t", "∎"]


def test_a_row_of_a_file_is_named_by_its_line(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = explained(f"{runs}/words", f"{runs}/words.tsv:2", capsys=capsys)
    assert printed.startswith("dog → ")
    drawn = explained(f"{runs}/ink", f"{runs}/ink.jsonl:3", capsys=capsys)
    typed = explained(f"{runs}/ink", json.dumps(STROKES[2]), capsys=capsys)
    assert drawn == typed
    assert drawn.splitlines()[1].split() == ["token", "row", "column", "share", "places", "with", "half"]


def test_pages_and_pictures_are_written(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    for run, given in (("words", "cat"), ("ink", f"{runs}/ink.jsonl:1"), ("maps", f"{runs}/maps.npz:2")):
        for ending in ("html", "svg", "png"):
            explained(f"{runs}/{run}", given, "--out", str(tmp_path / f"{run}.{ending}"), capsys=capsys)
        assert (tmp_path / f"{run}.html").read_text().startswith("<!doctype html>")
        assert (tmp_path / f"{run}.svg").read_text().startswith("<svg ")
        assert (tmp_path / f"{run}.png").read_bytes()[1:4] == b"PNG"
    assert "data:image/png;base64," in (tmp_path / "ink.svg").read_text()
    assert "data:image/png" not in (tmp_path / "maps.svg").read_text()  # of features there is no picture


def test_a_picture_is_named_by_its_path(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("PIL")
    run = begun(tmp_path / "run", runs / "pictures.tsv")
    by_path = explained(run, f"{runs}/b.png", "--out", str(tmp_path / "a.svg"), capsys=capsys)
    assert by_path == explained(run, f"{runs}/pictures.tsv:3", "--out", str(tmp_path / "b.svg"), capsys=capsys)
    assert main(["explain", run, f"{runs}/pictures.tsv"]) == 2
    assert "name a line, as" in (said := capsys.readouterr().err)
    assert said.endswith("pictures.tsv:2.\n"), "the first is a header"
    assert (tmp_path / "a.svg").read_text() == (tmp_path / "b.svg").read_text()


def test_places_in_a_row_are_numbered(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = explained(f"{runs}/rows", f"{runs}/rows.jsonl:1", capsys=capsys)
    assert printed.splitlines()[1].split() == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("run", "given", "said"),
    [
        (
            "words",
            "words.tsv",
            r"words.tsv is a file with several inputs, but explain takes one: name a line, as .*words.tsv:1\.",
        ),
        ("words", "words.tsv:9", r"words.tsv:9: there is no such line: the file is shorter\."),
        ("words", "wrods.tsv:1", r"there is no file '.*wrods.tsv'. Did you mean"),
        ("ink", "ink.jsonl:0", r"ink\.jsonl:0: no row starts on this line; the next row starts on line 1\."),
    ],
)
def test_what_cannot_be_explained_is_said(
    runs: Path, run: str, given: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = f"{runs}/{given}" if "." in given else given
    assert main(["explain", f"{runs}/{run}", whole]) == 2
    assert re.search(f"^recurra: .*{said}", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("run", "asked", "said"),
    [
        ("colours", ["--show", "attention"], "reads a single vector, so it has no attention to show. Only"),
        ("words", ["--show", "gaits"], "--show gaits: a seq2seq model has no such view. Did you mean 'gates'"),
        ("words", ["--show", "tree", "--layer", "1"], "--layer selects gates, but --show tree shows none"),
        ("words", ["--show", "tree", "--direction", "forward"], "--direction selects gates, but --show tree"),
        ("words", ["--best", "0"], "--best 0: answers are counted from 1"),
        ("words", ["--best", "9"], "decoding.best = 9 answers need a beam of at least that width,"),
        (
            "ink",
            ["--show", "gates"],
            "a vec2seq model has no such view. Known: attention, probabilities, tree.",
        ),
        (
            "colours",
            ["--show", "saliency"],
            "a vec2seq model has no such view. Known: probabilities, tree, decoder, attention.",
        ),
    ],
)
def test_what_there_is_not_to_see_is_said(
    runs: Path, run: str, asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"colours": "1 0", "words": "cat", "ink": f"{runs}/ink.jsonl:1"}[run]
    assert main(["explain", f"{runs}/{run}", given, *asked]) == 2
    assert re.search(f"^recurra: .*{said}", capsys.readouterr().err)


def test_without_attention_something_else_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    untrained(tmp_path, words(tmp_path), "model.attention=none", run="blind")
    assert main(["explain", f"{tmp_path}/blind", "cat", "--show", "attention"]) == 2
    assert (
        "was trained with model.attention = none, so there are no attention weights: train without"
        in capsys.readouterr().err
    )
    assert explained(f"{tmp_path}/blind", "cat", capsys=capsys).splitlines()[1].split() == ["token", "p", "bits"]


@pytest.mark.parametrize(
    ("made", "text", "titles"),
    [
        (small_runs.language_model, "one <b>", ["How sure it was", "What mattered", "Gates over time"]),
        (small_runs.tagger, "the <b>", ["What mattered", "Gates over time"]),
        (
            lambda: small_runs.classifier("model.encoder=rnn", "model.summary=attention", "model.characters.cell=none"),
            "so good <img onerror=x>",
            ["Where it looked", "What mattered", "Gates over time"],
        ),
        (
            small_runs.writer,
            "c<a",
            [
                *("Where it looked", "How sure it was", "What mattered", "How it searched", "Gates over time"),
                "Gates while it wrote",
            ],
        ),
    ],
)
def test_a_page_holds_all_that_there_is_and_says_what_there_is_not(
    made: Callable[[], Trained], text: str, titles: list[str], tmp_path: Path
) -> None:
    model = made()
    explain(model, text).write(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    refused = len(model.task.viewers()) - len(titles)
    assert re.findall("<h2>(.*?)</h2>", page) == titles + ["Not shown"] * (refused > 0)
    assert page.count("<li>") - page.count("<li>Step ") == refused
    assert not re.search("<img|<b>|http://(?!www.w3.org)|https:|src=", page)
    assert ("<script>" in page) == ("How it searched" in titles)


@pytest.mark.parametrize("show", ["attention", "probabilities", "saliency", "tree", "gates", "decoder"])
def test_one_thing_alone_is_a_text_a_page_or_a_picture(
    show: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    for ending in ("html", "svg", "png"):
        out = str(tmp_path / f"a.{ending}")
        assert explained(f"{runs}/words", "cat", "--show", show, "--out", out, capsys=capsys)
    assert "<h2>" not in (tmp_path / "a.html").read_text()
    assert (tmp_path / "a.svg").read_text().startswith("<svg ")
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"


def test_any_of_the_best_answers_is_explained(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = load(f"{runs}/words")
    [answer] = model.predict(["cat"], best=3, detail=True)
    third = answer.alternatives[1]
    found = explain(model, "cat", show="attention", best=3)
    assert found.text == alignment([*"cat"], third["tokens"], third["alignment"], f"cat → {third['output']}").text()
    assert found.answer == f"cat → {third['output']} (answer 3)"
    printed = explained(f"{runs}/words", "cat", "--best", "3", "--show", "probabilities", capsys=capsys)
    assert printed.startswith(f"cat → {third['output']}, p ")
    assert main(["explain", f"{runs}/words", "cat", "--best", "5", "--set", "decoding.max_length=2"]) == 0
    few = load(f"{runs}/words").with_settings(["decoding.forced=[]", "decoding.prefix=K AE", "decoding.max_length=3"])
    assert explain(few, "cat", best=2).answer.startswith("cat → K AE")


def test_queries_of_a_classifier_are_printed_by_word() -> None:
    model = small_runs.classifier("model.encoder=rnn", "model.summary=attention", "model.characters.cell=none")
    [answer] = model.predict(["a good film"], detail=True)
    first, head, *rows = explain(model, "a good film", show="attention").text.splitlines()
    assert first == f"{answer.output}: where its queries looked"
    assert head.split("query")[1:] == [" 1 ", " 2 ", " 3 ", " 4"]
    assert [float(each) for each in rows[1].split()[1:]] == pytest.approx(
        [query[1] for query in answer.detail["attention"]], abs=1e-4
    )


def test_where_nothing_can_be_shown_all_reasons_are_said_and_that_of_the_input_first() -> None:
    with pytest.raises(ConfigError) as refused:
        explain(small_runs.classifier("model.encoder=bag", "model.bag.buckets=10"), "bad")
    said = str(refused.value).splitlines()
    assert said[0] == "there is nothing to show."
    assert [line.partition(":")[0] for line in said[1:]] == ["saliency", "gates", "attention"]
    for model in (small_runs.tagger(), small_runs.classifier("model.encoder=rnn", "model.characters.cell=none")):
        with pytest.raises(DataError, match="there is nothing to explain: the input or the output is empty"):
            explain(model, "")
        with pytest.raises(DataError, match="the input is empty, so there are no gates to show"):
            explain(model, "", show="gates")


def test_a_classifier_without_queries_and_a_tagger_look_nowhere() -> None:
    with pytest.raises(
        ConfigError, match=r"has no attention weights: train with model.summary = attention to get them"
    ):
        explain(small_runs.classifier("model.encoder=cnn", "model.characters.cell=none"), "bad", show="attention")
    with pytest.raises(ConfigError, match=r"attention: a tagging model has no such view. Known: saliency, gates"):
        explain(small_runs.tagger(), "the", show="attention")
    with pytest.raises(ConfigError, match="best is an option of search, but tagging does not use a search"):
        explain(small_runs.tagger(), "the", best=2)


def test_nothing_is_explained_where_nothing_is_written(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", f"{runs}/words", ""]) == 2
    assert "there is no answer to explain: the input is empty." in capsys.readouterr().err
    given = ["--set", "decoding.search=given"]
    assert main(["explain", f"{runs}/words", f"{runs}/words.tsv:1", *given]) == 2
    assert "there is no answer to explain: decoding.search = given generates no output." in capsys.readouterr().err


def test_another_ending_is_refused_before_the_model_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", f"{tmp_path}/nowhere", "cat", "--out", "a.pdf"]) == 2
    assert capsys.readouterr().err == "recurra: --out a.pdf: the file must end in .html, .svg or .png.\n"


def test_links_between_words_are_refused_for_pictures(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = str(tmp_path / "links.txt")
    assert main(["predict", f"{runs}/ink", f"{runs}/ink.jsonl", "--alignments", links]) == 2
    assert "is over a picture, not over words: `recurra explain RUN INPUT --out FILE.html`" in capsys.readouterr().err
