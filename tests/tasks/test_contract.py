"""What every task promises: each command works with it, and what the commands say agrees.

The tasks are those of the house and two that live outside of the package. No test knows a task: a case of
`contracts.py` is all that differs.
"""

from __future__ import annotations

import json
import math
import operator
import re
import tomllib
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
import torch
from safetensors.torch import load_file

import recurra
from recurra.cli import main
from recurra.generation.generated import Manner
from recurra.named import catalogue
from recurra.runtime.application import application
from recurra.runtime.hosted import hosted
from recurra.runtime.openapi import described
from recurra.runtime.service import Service
from recurra.tasks.task import Task
from recurra.training.trained import Trained
from tests.once import made_once
from tests.runtime.listening import asked, at_work, posted, request
from tests.runtime.test_openapi import answer_schema, faults
from tests.tasks.contracts import CASES, Case, train

Command = Callable[..., str]
PNG = b"\x89PNG\r\n\x1a\n"


class Ran(NamedTuple):
    """A case with its runs."""

    case: Case
    folder: Path

    @property
    def whole(self) -> str:
        return str(self.folder / "whole")

    @property
    def resumed(self) -> str:
        return str(self.folder / "resumed")

    @property
    def data(self) -> str:
        return str(self.folder / self.case.file)

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "whole" / "summary.json").read_text("utf-8"))
        return found

    def load(self) -> Trained:
        return recurra.load(self.whole)


@pytest.fixture(scope="module", params=CASES)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    torch.set_num_threads(1)
    case, name = CASES[request.param], request.param.replace(" ", "-")
    return Ran(case, made_once(tmp_path_factory, f"contract-{name}", lambda folder: train(case, folder)))


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command and returns what it prints."""

    def run(*arguments: str, ends: int = 0) -> str:
        capsys.readouterr()
        assert main(arguments) == ends, capsys.readouterr().err
        found = capsys.readouterr()
        return found.err if ends else found.out

    return run


class Words(HTMLParser):
    """The text of a page, and the tags that are open at its end."""

    VOID = frozenset(("meta", "link", "br", "img", "input", "hr", "wbr"))

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.open = "", list[str]()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: object) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: object) -> None:
        """One that has no content."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def whole_page(path: Path) -> str:
    """The text of a page, which closes all that it opens and fetches nothing."""
    page = path.read_text("utf-8")
    words = Words(page)
    assert page.startswith("<!doctype html>")
    assert words.open == []
    assert 'src="http' not in page
    return words.text


def is_picture(path: Path) -> bool:
    if path.suffix == ".png":
        return path.read_bytes().startswith(PNG)
    root = ElementTree.fromstring(path.read_text("utf-8"))
    return root.tag.endswith("svg") and len(root) > 0


def strict(text: str) -> Any:
    """JSON without NaN or infinities."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_every_task_of_the_house_has_a_case() -> None:
    assert {*catalogue(Task)} <= {case.task for case in CASES.values()}


def test_settings_are_explained_and_a_dry_run_tells_what_training_would_do(ran: Ran, command: Command) -> None:
    settings = tomllib.loads(command("config", ran.case.task, *ran.case.options))
    assert settings["task"] == ran.case.task
    assert settings["model"]["hidden"] == 5
    told = command("train", ran.case.task, "--train", ran.data, "--dry-run", "--quiet", *ran.case.options)
    assert ran.summary["description"] in told
    assert re.search(rf"in all +{ran.summary['parameters']:,}\n", told)


def test_training_writes_a_whole_run(ran: Ran) -> None:
    summary, folder = ran.summary, Path(ran.whole)
    purpose = ran.load().task.purpose()
    assert summary["best"]["scores"][summary["first_metric"]] is not None
    report, card = whole_page(folder / "report.html"), (folder / "card.md").read_text("utf-8")
    assert summary["description"] in report
    assert "could not be drawn" not in report
    assert "can be shown" not in report
    assert purpose.does
    assert purpose.does in card
    assert "recurra predict" in card


def test_a_resumed_run_is_the_unbroken_one(ran: Ran) -> None:
    one, other = (load_file(Path(run) / "model.safetensors") for run in (ran.whole, ran.resumed))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_predict_answers_every_input_as_python_does(ran: Ran, command: Command) -> None:
    answers = ran.load().predict(list(ran.case.asked), detail=True)  # type: ignore[arg-type]
    file = str(ran.folder / "asked.txt")
    assert command("predict", ran.whole, file).splitlines() == [answer.output for answer in answers]
    found = [strict(line) for line in command("predict", ran.whole, file, "--json").splitlines()]
    assert [each["output"] for each in found] == [answer.output for answer in answers]
    assert [each["line"] for each in found] == [1, 2]
    assert [each["score"] for each in found] == pytest.approx([answer.score for answer in answers], abs=1e-4)


def test_predict_answers_every_row_of_a_file_like_that_of_training(ran: Ran, command: Command) -> None:
    model = ran.load()
    examples = list(model.task.questions(ran.data, Path(ran.data).read_text("utf-8").splitlines()))
    found = command("predict", ran.whole, ran.data).splitlines()
    assert found == [answer.output for answer in model.answers(examples)]
    assert found


def test_evaluate_finds_the_scores_of_training(ran: Ran, command: Command) -> None:
    found, kept = strict(command("evaluate", ran.whole, ran.data, "--json")), ran.summary["best"]["scores"]
    assert {name: found[name] for name in kept} == pytest.approx(kept, abs=1e-6)
    said = command("evaluate", ran.whole, ran.data, "--tables")
    first = ran.summary["first_metric"]
    assert re.search(rf"^{first} +{kept[first]:.4f}$", said, re.MULTILINE)


def test_a_model_that_reads_its_own_outputs_is_also_scored_running_free(
    ran: Ran, command: Command, tmp_path: Path
) -> None:
    if ran.case.task not in ("language_model", "forecasting", "seq2seq", "vec2seq"):
        said = command("evaluate", ran.whole, ran.data, "--free-running", ends=2)
        assert "model never reads its own outputs, so there is no free running to compare with" in said
        return
    if ran.case.task == "forecasting":
        said = command("evaluate", ran.whole, ran.data, "--free-running", ends=2)
        assert "predicts all steps of the horizon at once and feeds nothing back. Leave it out." in said
        return
    told = command("evaluate", ran.whole, ran.data, "--free-running", "--out", str(tmp_path / "bias.svg"))
    assert is_picture(tmp_path / "bias.svg")
    found = strict(command("evaluate", ran.whole, ran.data, "--free-running", "--json"))["free_running"]
    places = found["positions"]
    assert places["forced"][0] == pytest.approx(places["free"][0], rel=1e-4)
    assert f"exposure_bias           {found['exposure_bias']:.4f}" in told
    assert found["interval"][0] <= found["exposure_bias"] + 1e-9 <= found["interval"][1] + 2e-9
    costs = [sum(map(operator.mul, places[name], places["counts"])) for name in ("forced", "free")]
    assert (costs[1] - costs[0]) / sum(places["counts"]) == pytest.approx(found["exposure_bias"], rel=1e-3, abs=1e-4)


def test_compare_finds_two_runs_of_the_same_weights_alike(ran: Ran, command: Command, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = strict(command("compare", ran.whole, ran.resumed, ran.data, "--json", "--out", str(page)))
    one, other = ({**run["scores"], "seconds": 0} for run in found["runs"])
    assert one == other
    [pair] = found["differences"]
    assert all(difference["value"] == 0 for difference in pair["scores"].values())
    assert found["items"] >= 1
    assert ran.summary["first_metric"] in whole_page(page)


def test_runs_of_the_same_weights_answer_together_as_each_does_alone(ran: Ran, command: Command) -> None:
    both, file = f"{ran.whole},{ran.resumed}", str(ran.folder / "asked.txt")
    if ":" in ran.case.task:  # neither of the tasks outside of the package says how outputs are combined
        assert "cannot be combined into an ensemble: give one run" in command("evaluate", both, ran.data, ends=2)
        return
    alone, together = (
        [strict(line) for line in command("predict", run, file, "--json").splitlines()] for run in (ran.whole, both)
    )
    assert [each["output"] for each in together] == [each["output"] for each in alone]
    assert [each["score"] for each in together] == pytest.approx([each["score"] for each in alone], abs=1e-4)
    one, two = (strict(command("evaluate", run, ran.data, "--json")) for run in (ran.whole, both))
    assert two.pop("seconds") > 0 < one.pop("seconds")
    assert two == pytest.approx(one, rel=1e-5)
    [run] = hosted([both]).values()
    explained = run.explain(ran.case.asked[0], {})
    assert explained["views"].keys() == {*run.about["views"]} - explained["missing"].keys()
    assert all("ensemble of runs" in why for why in explained["missing"].values())
    [answer] = run.predict([ran.case.asked[0]], {})["answers"]
    assert answer["output"] == alone[0]["output"]


def test_explain_shows_every_view_in_every_form(ran: Ran, command: Command, tmp_path: Path) -> None:
    page, task = tmp_path / "all.html", ran.load().task
    explain = ("explain", ran.whole, ran.case.lines[0])
    every = strict(command(*explain, "--json", "--out", str(page)))
    views, missing = every["views"], every["missing"]
    assert tuple(views) == ran.case.views
    assert [name for name in task.viewers() if name not in missing] == list(views)
    assert {*missing} == {*task.viewers()} - {*views}
    assert {*missing} >= {name for name, viewer in task.viewers().items() if not viewer.possible}
    assert {name: numbers["title"] for name, numbers in views.items()} == {
        name: task.viewers()[name].title for name in views
    }
    told = whole_page(page)
    for name, why in missing.items():
        assert why in told
        assert command(*explain, "--show", name, ends=2) == f"recurra: {why}\n"
    for name, numbers in views.items():
        files = [tmp_path / f"{name}.{ending}" for ending in ("html", "svg", "png")]
        alone = strict(command(*explain, "--show", name, "--json", "--out", str(files[0])))
        assert alone["views"] == {name: numbers}
        assert whole_page(files[0]).strip()
        said = command(*explain, "--show", name, "--out", str(files[1]))
        assert len(said.splitlines()) > 1
        assert is_picture(files[1])
        assert command(*explain, "--show", name, "--out", str(files[2])) == said
        assert is_picture(files[2])


def test_a_row_of_a_file_is_explained_by_its_line(ran: Ran, command: Command) -> None:
    model = ran.load()
    *_, last = model.task.questions(ran.data, Path(ran.data).read_text("utf-8").splitlines())
    found = strict(command("explain", ran.whole, f"{ran.data}:{last.line}", "--json"))
    [answer] = model.answers([last])
    assert found["output"] == answer.output
    assert found["input"] in (answer.input, f"{ran.data}:{last.line}")


def test_gates_are_of_the_steps_that_are_read(ran: Ran, command: Command) -> None:
    task = ran.load().task
    for value, line in zip(ran.case.asked, ran.case.lines, strict=True):
        found = strict(command("explain", ran.whole, line, "--json"))
        [example] = task.questions(None, [value])  # type: ignore[list-item]
        assert tuple(found["views"]) == ran.case.views
        for gates in (view for name, view in found["views"].items() if name == "gates"):
            assert gates["tokens"] == task.steps(example)
            for values in gates["values"].values():
                assert {len(values["means"]), *map(len, values["rows"])} == {len(gates["tokens"])}


def test_gradients_of_a_run_and_of_what_is_not_trained_yet(ran: Ran, command: Command, tmp_path: Path) -> None:
    picture, page = tmp_path / "gradients.svg", tmp_path / "gradients.html"
    trained = strict(command("gradients", ran.whole, ran.data, "--json", "--out", str(picture)))
    given = ("--set", f'data.train="{ran.data}"', *ran.case.options)
    untrained = strict(command("gradients", ran.case.task, *given, "--json", "--out", str(page)))
    assert is_picture(picture)
    assert whole_page(page).strip()
    assert trained["layers"]
    assert len(trained["layers"]) == len(untrained["layers"])
    assert trained != untrained


def test_info_draws_the_model(ran: Ran, command: Command, tmp_path: Path) -> None:
    for ending in ("svg", "png"):
        file = tmp_path / f"model.{ending}"
        assert strict(command("info", ran.whole, "--json", "--draw", str(file))) == ran.summary
        assert is_picture(file)
    assert ran.summary["description"] in command("info", ran.whole)


@pytest.fixture(scope="module")
def port(ran: Ran) -> Iterator[int]:
    """Where the run is served, as `whole`."""
    with at_work(application(Service(hosted([ran.whole])))) as found:
        yield found


def as_described(found: Any, path: str, method: str) -> Any:
    assert list(faults(found, answer_schema(path, method))) == []
    return found


def test_the_server_tells_what_the_run_is(ran: Ran, port: int) -> None:
    task = ran.load().task
    [about] = as_described(asked(port, request("/api/runs")).json, "/api/runs", "get")["runs"]
    possible = {name: viewer.title for name, viewer in task.viewers().items() if viewer.possible}
    assert (about["task"], about["views"]) == (task.name, list(possible))
    assert about["view_titles"] == possible
    assert about["input"]["kind"] == task.schema().kind
    assert about["summary"]["parameters"] == ran.summary["parameters"]
    assert asked(port, request("/openapi.json")).json == described(["whole"])
    assert asked(port, request("/")).status == 200


def alike(one: Any, other: Any) -> bool:
    """Whether two values are the same but for the last figures of their numbers."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float):
        return one == pytest.approx(other, rel=1e-4, abs=1e-4)
    return bool(one == other)


def test_the_server_answers_as_predict_does(ran: Ran, port: int, command: Command) -> None:
    path = "/api/runs/{run}/predict"
    found = posted(port, "/api/runs/whole/predict", {"inputs": list(ran.case.asked)})
    answers = as_described(found.json, path, "post")["answers"]
    file = str(ran.folder / "asked.txt")
    # A picture is called by the place that it is from; each of those that are sent is from input:1.
    printed = re.sub(rf"{re.escape(file)}:\d", "input:1", command("predict", ran.whole, file, "--json"))
    for answer, line in zip(answers, map(strict, printed.splitlines()), strict=True):
        assert alike(answer, {name: value for name, value in line.items() if name != "line"})


def test_samples_of_the_server_are_answered(port: int) -> None:
    samples = as_described(asked(port, request("/api/runs/whole/samples")).json, "/api/runs/{run}/samples", "get")
    assert samples["samples"]
    found = posted(port, "/api/runs/whole/predict", {"inputs": samples["samples"]})
    assert found.status == 200
    assert len(found.json["answers"]) == len(samples["samples"])


def test_the_server_explains_as_the_command_does(ran: Ran, port: int, command: Command) -> None:
    found = posted(port, "/api/runs/whole/explain", {"input": ran.case.asked[0]}).json
    told = strict(command("explain", ran.whole, ran.case.lines[0], "--json"))
    as_described(found, "/api/runs/{run}/explain", "post")
    assert rounded(found["views"], 3) == rounded(told["views"], 3)
    assert found["missing"].keys() <= told["missing"].keys()  # the page has no tab for what a run never has
    for name in found["views"]:
        one = posted(port, "/api/runs/whole/explain", {"input": ran.case.asked[0], "show": [name]}).json
        assert rounded(one["views"], 3) == rounded({name: found["views"][name]}, 3)


def test_the_server_writes_where_the_model_does_and_says_so_where_it_does_not(ran: Ran, port: int) -> None:
    model = ran.load()
    writer = model.task.writer(model.model, Manner(length=3))
    found = posted(port, "/api/runs/whole/generate", {"prompt": ran.case.asked[0], "length": 3})
    if writer is None:
        assert found.status == 400
        assert "cannot generate text" in found.error
        return
    [text] = as_described(found.json, "/api/runs/{run}/generate", "post")["texts"]
    [expected] = writer.texts([ran.case.asked[0]])
    assert (text["text"], text["tokens"]) == (expected.text, expected.tokens)


def rounded(value: Any, digits: int = 4) -> Any:
    """The same with fewer digits: modules of their own may add up numbers in another order."""
    if isinstance(value, float):
        return round(value, digits) + 0.0 if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: rounded(each, digits) for name, each in value.items()}
    return [rounded(each, digits) for each in value] if isinstance(value, list) else value
