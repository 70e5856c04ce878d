"""The report and the card of a run: every part that there is, nothing fetched, nothing of the user's run as code."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from recurra.errors import CheckpointError, DataError
from recurra.manifest import MANIFEST, verify
from recurra.reports.report import write_card, write_report
from recurra.training.log import EventLine, Log, TrainLine, ValidLine
from tests.runtime.small_tasks import of_every_kind

SUMMARY: dict[str, object] = {
    "task": "tagging",
    "purpose": {"does": "gives each token of a sentence its tag", "rows": "sentences"},
    "name": "english-tags",
    "created": "2026-01-31T12:00:00+00:00",
    "recurra_version": "0.1.0",
    "torch_version": "2.13.0",
    "device": "cpu",
    "threads": 2,
    "seed": 12345,
    "parameters": 1234567,
    "description": "two bidirectional LSTM layers of 256 over words and characters, then a CRF",
    "data": {
        "train": {"path": "/home/someone/corpora/english.train.conllu", "rows": 12543, "tokens": 204585},
        "valid": {"path": "/home/someone/corpora/english.valid.conllu", "rows": 2002, "tokens": 25148},
    },
    "seconds": 754.3,
    "steps": 3000,
    "epochs": 7.5,
    "stopped": "no better score for 5 validations",
    "best": {"step": 2400, "scores": {"f1": 0.9127, "accuracy": 0.94321, "count": 25148}},
    "first_metric": "accuracy",
    "engines": ["layer 0: vendor", "layer 1: vendor (the planned engine is slower here)"],
    "tables": {
        "By tag": {
            "columns": ["tag", "precision", "recall", "count"],
            "rows": [["NOUN", 0.931, 0.9402, 4123], ["<script>alert(1)</script>", 0.5, None, 3], ["X"]],
        }
    },
}


def make_run(folder: Path, summary: dict[str, object]) -> Path:
    """The folder of a run as training leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "config.toml").write_text('task = "tagging"\n# a < b & "c"\n[model]\ncell = "lstm"\nhidden = 256\n')
    with Log(folder) as log:
        for step in range(10, 3001, 10):
            wave = 0.1 * math.sin(step * 7.3)
            rate = 0.002 * min(step / 300, 1 - step / 3500)
            log.write(TrainLine(step, step / 400, 4 / math.sqrt(step) + 0.1 + wave * 0.2, rate, 1.0, 5300.0, step / 4))
            if step % 200 == 0:
                scores = {"f1": 0.9 - 5 / step, "accuracy": 0.95 - 8 / step + wave / 50}
                log.write(ValidLine(step, step / 400, scores, 5 / math.sqrt(step) + 0.12, step in (200, 2400)))
            if step == 1200:
                log.write(EventLine(step, "resumed from step 1200"))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "english tags", SUMMARY)


class Page(HTMLParser):
    """What a page holds: its text, its headings, its attributes; and that every element is closed in its turn."""

    VOID: tuple[str, ...] = ("meta", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.headings: list[str] = []
        self.cells: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


def test_a_report_has_every_part(run: Path) -> None:
    path = write_report(run)
    assert path == run / "report.html"
    page = Page(path.read_text("utf-8"))
    assert page.headings == [
        "english-tags",
        "Data",
        "Learning curves",
        "Scores",
        "By tag",
        "What happened",
        "Settings",
        "Environment",
    ]
    for words in (
        "two bidirectional LSTM layers",
        "Best accuracy",
        "0.9432",
        "at step 2,400",
        "1,234,567",
        "12 min 34 s",
        "no better score for 5 validations",
        "english.train.conllu",
        "204,585",
        "step 1,200: resumed from step 1200",
        'a < b & "c"',
        "12345",
        "layer 1: vendor (the planned engine is slower here)",
    ):
        assert words in page.text, words
    assert page.cells[page.cells.index("score") :][:6] == ["score", "valid", "accuracy", "0.9432", "f1", "0.9127"]
    assert page.cells[page.cells.index("NOUN") :][:5] == [
        "NOUN",
        "0.9310",
        "0.9402",
        "4,123",
        "<script>alert(1)</script>",
    ]


def test_test_scores_stand_beside_the_validation_scores(tmp_path: Path) -> None:
    test = {"path": ["data/a.conllu", "data/b.conllu"], "scores": {"accuracy": 0.9, "bleu": 31.4159}}
    run = make_run(tmp_path, SUMMARY | {"test": test})
    cells = Page(write_report(run).read_text("utf-8")).cells
    assert cells[cells.index("score") :][:3] == ["score", "valid", "test"]
    assert cells[cells.index("accuracy") :][:3] == ["accuracy", "0.9432", "0.9000"]
    assert cells[cells.index("bleu") :][:3] == ["bleu", "–", "31.42"]
    assert cells[cells.index("test") :][:4] == ["test", "data/a.conllu, data/b.conllu", "–", "–"]
    card = write_card(run).read_text("utf-8")
    assert "measured on a.conllu, b.conllu;" in card
    assert "slightly optimistic" not in card


def test_a_report_fetches_nothing_and_runs_nothing(run: Path) -> None:
    text = write_report(run).read_text("utf-8")
    assert set(re.findall(r"https?://[^\"'\s<]+", text)) == {"http://www.w3.org/2000/svg"}
    page = Page(text)
    assert "script" not in page.tags
    assert not {"img", "iframe", "object"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "xlink:href")]
    assert [value for name, value in page.attributes if name == "href"] == ["data:,"]
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:") in page.attributes


def test_the_pictures_of_a_report_are_well_formed(run: Path) -> None:
    pictures = re.findall(r"<svg.*?</svg>", write_report(run).read_text("utf-8"), re.DOTALL)
    assert [ElementTree.fromstring(picture).attrib["width"] for picture in pictures] == ["864", "360"]
    assert all("accuracy, valid" in picture for picture in pictures)


NASTY = "</title></pre><script>alert('x')</script><img src=x onerror=\"y\">&amp;|`*_"


def nasty(value: object) -> object:
    """The same summary with the nasty text for every text in it, keys that users choose included."""
    if isinstance(value, dict):
        return {NASTY if key in ("By tag", "train", "f1") else key: nasty(item) for key, item in value.items()}
    if isinstance(value, list):
        return [nasty(item) for item in value]
    return NASTY if isinstance(value, str) else value


def test_no_text_of_the_users_is_taken_for_html(tmp_path: Path) -> None:
    summary = nasty(SUMMARY)
    assert isinstance(summary, dict)
    run = make_run(tmp_path, summary)
    (run / "config.toml").write_text(NASTY)
    with Log(run) as log:
        log.write(ValidLine(1, 0, {NASTY: 0.5}, best=True))
        log.write(EventLine(1, NASTY))
    page = Page(write_report(run).read_text("utf-8"))
    assert not {"script", "img"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert page.text.count(NASTY) > 10
    card = write_card(run).read_text("utf-8")
    assert "<script" not in card
    assert "<img" not in card


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
keys = st.sampled_from(["train", "scores", "step", "path", "columns", "rows", "accuracy"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.dictionaries(st.sampled_from([*SUMMARY, "test"]), values, max_size=8))
@example({"seconds": math.nan, "name": "\ud800", "steps": math.inf, "first_metric": 3, "best": {"scores": {"3": "x"}}})
@example({"tables": {"a": {"columns": 3, "rows": [1, [[]], {}]}, "b": []}, "data": {"train": {"path": 7}, "valid": 1}})
def test_whatever_a_summary_lacks_or_says_oddly_there_is_a_report(tmp_path: Path, found: dict[str, object]) -> None:
    (tmp_path / MANIFEST).unlink(missing_ok=True)  # of the summary before
    (tmp_path / "summary.json").write_text(json.dumps(found))
    Page(write_report(tmp_path).read_text("utf-8"))
    assert write_card(tmp_path).read_text("utf-8").startswith("# ")


def test_an_empty_summary_leaves_only_the_folders_name(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{}")
    assert Page(write_report(tmp_path).read_text("utf-8")).headings == [tmp_path.name]
    assert "No scores were measured" in write_card(tmp_path).read_text("utf-8")


def test_a_half_written_log_is_drawn_as_far_as_it_goes(run: Path) -> None:
    log = run / "metrics.jsonl"
    log.write_bytes(log.read_bytes()[:5000])
    assert "Learning curves" in Page(write_report(run).read_text("utf-8")).headings


def test_a_card_says_what_it_is_for_whom_from_what_how_good_and_how(run: Path) -> None:
    path = write_card(run)
    assert path == run / "card.md"
    text = path.read_text("utf-8")
    headings = ["What it is", "Intended use", "Data", "How it was trained", "Scores", "Limits", "How to use it"]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == headings
    for words in (
        "# english-tags\n",
        "A model that gives each token of a sentence its tag (task `tagging`).",
        "The model: two bidirectional LSTM layers of 256 over words and characters, then a CRF.\n",
        "It has 1,234,567 parameters.",
        "| train | english.train.conllu | 12,543 | 204,585 |",
        "- time: 12 min 34 s\n",
        "- seed: 12345\n",
        "| accuracy | 0.9432 |",
        "measured on english.valid.conllu; on other kinds of data",
        "so they are slightly optimistic.",
        "recurra predict 'english tags' input.txt\nrecurra evaluate 'english tags' english.valid.conllu\n",
        "model = recurra.load('english tags')\n",
    ):
        assert words in text, words
    assert "/home" not in text


def test_the_card_of_a_language_model_shows_how_to_generate(tmp_path: Path) -> None:
    said = of_every_kind(tmp_path)["language_model"].purpose()._asdict()
    text = write_card(make_run(tmp_path / "lm", SUMMARY | {"purpose": said})).read_text("utf-8")
    assert "```sh\nrecurra generate lm --length 200\nrecurra predict lm input.txt\nrecurra evaluate lm english" in text
    assert "[text] = recurra.generate(model, length=200)" in text
    assert "| part | file | tokens |" in text  # how many pieces a text was read in is nobody's business


def test_parallel_files_are_named_together_and_several_files_apart(tmp_path: Path) -> None:
    for number, (paths, names) in enumerate(
        [(["x/a.en,x/a.de"], "a.en,a.de"), (["x/a.tsv", "x/b.tsv"], "a.tsv b.tsv")]
    ):
        data = {"test": {"path": paths, "rows": 3, "tokens": 9}}
        folder = make_run(tmp_path / f"run{number}", SUMMARY | {"task": "seq2seq", "data": data})
        assert f"recurra evaluate run{number} {names}\n" in write_card(folder).read_text("utf-8")


SAID = {
    "classification of series": ["gives a series its label", "| series | steps |", "predict run input.jsonl"],
    "classification": ["gives a text its label", "| texts | tokens |", "predict run input.txt"],
    "classification of pictures": ["gives a picture its label", "in the same light", "| pictures | tokens |"],
    "forecasting": ["predicts the next steps of a series", "predict run input.csv", "same units", "# lists of steps"],
    "tagging of frames": ["gives each step of a series its tag", "predict run input.jsonl"],
    "seq2seq": ["turns one sequence into another", "| pairs | tokens |"],
    "seq2seq of frames": ["writes a text for a series", "| pairs | steps |", "# lists of steps"],
    "vector to text": ["writes a text for a vector", "recurra generate run --prompt '[…]' --count 5"],
    "pictures to text": ["writes a text for a picture", "recurra generate run --prompt picture.png --count 5"],
    "strokes to text": ["writes a text for a drawing", "# lists of numbers"],
    "places to text": ["writes a text for features of places"],
}


def test_a_card_speaks_of_what_its_task_reads(tmp_path: Path) -> None:
    for name, task in of_every_kind(tmp_path).items():
        summary = SUMMARY | {"task": task.name, "purpose": task.purpose()._asdict()}
        (tmp_path / name).mkdir()
        text = write_card(make_run(tmp_path / name / "run", summary)).read_text("utf-8")
        for words in SAID.get(name, ()):
            assert words in text, text


def test_a_task_that_does_not_say_what_it_is_for_has_a_card_all_the_same(tmp_path: Path) -> None:
    text = write_card(make_run(tmp_path / "own", SUMMARY | {"task": "own", "purpose": {}})).read_text("utf-8")
    assert "A model of own." in text
    assert "recurra predict own input.txt" in text


def test_a_card_is_written_though_the_settings_cannot_be_read(run: Path) -> None:
    (run / "config.toml").write_text("[data\n")
    assert "gives each token of a sentence its tag" in write_card(run).read_text("utf-8")


def test_a_report_is_written_whole_or_not_at_all(run: Path) -> None:
    first = write_report(run).read_text("utf-8")
    assert write_report(run).read_text("utf-8") == first
    assert not [path for path in run.iterdir() if path.name.startswith(".")]
    (run / "card.md").mkdir()
    with pytest.raises(CheckpointError, match=r"cannot be written \(card\.md is a folder\)"):
        write_card(run)
    verify(run)
    assert not [path for path in run.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"summary\.json cannot be read: No such file or directory\. .* may not be a run folder\."),
        ("{", r"summary\.json is not a valid summary of a training run \(a JSON object\)\. Restore the file,"),
        ("[]", r"summary\.json is not a valid summary"),
    ],
)
def test_a_folder_that_is_not_a_run_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "summary.json").write_text(content)
    with pytest.raises(DataError, match=message):
        write_report(tmp_path)


def test_a_report_needs_no_torch(run: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from recurra.reports.report import write_report, write_card\n"
        "write_report(Path(sys.argv[1])); write_card(Path(sys.argv[1])); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, run]).returncode == 0
