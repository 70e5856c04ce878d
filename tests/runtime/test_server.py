"""What a demanding user asks of `recurra serve`, and what an evil one does."""

from __future__ import annotations

import json
import re
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.exceptions import HTTPException

import recurra
from recurra.cli import main
from recurra.errors import CheckpointError
from recurra.manifest import seal
from recurra.runtime.application import application
from recurra.runtime.effort import MOST
from recurra.runtime.hosted import REMEMBERED, Hosted, Question, as_plain, hosted, siblings
from recurra.runtime.limits import Limits
from recurra.runtime.requests import parsed
from recurra.runtime.server import usable
from recurra.runtime.service import Service, rendered
from tests.runtime.listening import Answer, asked, at_work, connected, posted, received, request, seconds_since
from tests.runtime.tiny_runs import ASKED


@pytest.fixture(scope="module")
def port(runs: dict[str, Hosted]) -> Iterator[int]:
    with at_work(application(Service(runs, limits=Limits(body_bytes=100_000)))) as found:
        yield found


def predicted(port: int, name: str, *inputs: object, **decoding: object) -> Answer:
    return posted(port, f"/api/runs/{name}/predict", {"inputs": list(inputs), "decoding": decoding})


def refused(port: int, name: str, question: object, to: str = "predict") -> str:
    """The sentence with which a question is refused."""
    found = posted(port, f"/api/runs/{name}/{to}", question)
    assert found.status == 400, found
    assert found.error.endswith((".", "?"))
    return found.error


def test_raw_text_is_for_runs_that_find_its_sentences(port: int) -> None:
    said = refused(port, "tags", {"inputs": ["the cat."], "raw": True})
    assert "the run tags has not learned to find tokens and sentences in raw text" in said
    assert refused(port, "tags", {"inputs": ["the cat."], "raw": 1}) == '"raw" is true or false.'
    assert "has not learned" in refused(port, "tags", {"input": "the cat.", "raw": True}, "explain")
    assert posted(port, "/api/runs/tags/predict", {"inputs": ["the cat"], "raw": False}).status == 200


@pytest.mark.parametrize("name", ASKED)
def test_an_answer_is_that_of_the_model_itself(port: int, folder: Path, name: str) -> None:
    model = recurra.load(folder / name)
    [expected] = model.predict([ASKED[name]], detail=True)  # type: ignore[arg-type]
    [answer] = predicted(port, name, ASKED[name]).json["answers"]
    assert answer["output"] == expected.output
    assert answer["score"] == pytest.approx(expected.score, abs=1e-5)
    assert set(answer) == {"input", "output", "score", *expected.detail}


def test_settings_of_decoding_change_an_answer(port: int) -> None:
    [answer] = predicted(port, "sounds", "cat", width=4, best=3, search="beam").json["answers"]
    assert len(answer["alternatives"]) == 2
    [short] = predicted(port, "sounds", "cat", max_length=2, max_ratio=None).json["answers"]
    assert len(short["tokens"]) <= 2
    assert len(predicted(port, "levels", [1, 2, 3], horizon=3).json["answers"][0]["values"]) == 3


def test_the_second_best_answer_is_explained(port: int) -> None:
    [answer] = predicted(port, "sounds", "cat", best=2).json["answers"]
    question = {"input": "cat", "show": ["probabilities"], "best": 2}
    found = posted(port, "/api/runs/sounds/explain", question).json["views"]["probabilities"]
    assert found["tokens"] == [*answer["alternatives"][0]["tokens"], "</s>"]


def test_answers_to_many_at_once_are_those_to_each_alone(port: int) -> None:
    questions = [(name, to) for name in ASKED for to in ("predict", "explain")] * 3

    def answer(which: tuple[str, str]) -> Any:
        name, to = which
        body = {"inputs": [ASKED[name]]} if to == "predict" else {"input": ASKED[name]}
        found = posted(port, f"/api/runs/{name}/{to}", body)
        assert found.status == 200, found
        return {key: value for key, value in found.json.items() if key != "seconds"}

    alone = {which: answer(which) for which in questions}
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(answer, questions)) == [alone[which] for which in questions]


def test_an_answer_does_not_wait_for_an_explanation(runs: dict[str, Hosted], monkeypatch: pytest.MonkeyPatch) -> None:
    began, may_end = threading.Event(), threading.Event()

    def long(*_: object, **__: object) -> dict[str, object]:
        began.set()
        may_end.wait(10)
        return {}

    monkeypatch.setattr(runs["sounds"], "explain", long)
    with at_work(application(Service(runs))) as port, ThreadPoolExecutor(1) as pool:
        explained = pool.submit(posted, port, "/api/runs/sounds/explain", {"input": "cat"})
        began.wait(10)
        assert predicted(port, "sounds", "cat").status == 200
        may_end.set()
        assert explained.result().json == {}


def test_what_no_one_waits_for_any_longer_is_not_computed(
    runs: dict[str, Hosted], monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end, seen = threading.Event(), threading.Event(), list[object]()

    def long(questions: Sequence[Question]) -> Iterator[list[tuple[int, dict[str, object]]]]:
        seen.extend(each.inputs for each in questions)
        began.set()
        may_end.wait(10)
        yield [(number, {}) for number, _ in enumerate(questions)]

    monkeypatch.setattr(runs["sounds"], "predict_several", long)
    with at_work(application(Service(runs))) as port, connected(port) as first, connected(port) as last:
        send(first, ["first"])
        began.wait(10)
        with connected(port) as gone:
            send(gone, ["typed on meanwhile"])
        send(last, ["last"])
        may_end.set()
        assert received(first).status == received(last).status == 200
    assert seen == [["first"], ["last"]]


def send(connection: socket.socket, inputs: list[str]) -> None:
    body = json.dumps({"inputs": inputs}).encode()
    connection.sendall(request("/api/runs/sounds/predict", "Content-Type: application/json", method="POST", body=body))
    threading.Event().wait(0.1)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "this is not valid JSON: Expecting value"),
        (b"{", "this is not valid JSON: Expecting property name"),
        (b'{"inputs": ["\xff"]}', "this is not valid JSON: 'utf-8' codec can't decode byte 0xff"),
        (b'{"inputs": [NaN]}', "NaN is not JSON"),
        (b'{"inputs": [-Infinity]}', "-Infinity is not JSON"),
        (b'{"inputs": [1e999]}', "the number 1e999 is too large"),
        (b'{"inputs": [' + b"9" * 5000 + b"]}", "digits is too large"),
        (b'{"inputs": ["a"], "inputs": ["b"]}', "'inputs' occurs twice in one object"),
        (b'{"inputs": [' + b"[" * 40 + b"]" * 40 + b"]}", "in a request can be nested at most 16 levels deep."),
        (b"[" * 50_000, "nested too deeply"),
        (b'["inputs"]', "the request must be a JSON object."),
        (b'{"input": ["a"]}', "a request has no field 'input'. Did you mean 'inputs'?"),
        (b'{"inputs": "cat"}', '"inputs" is a list.'),
        (b'{"inputs": []}', '"inputs" must be a list of at least one input.'),
        (b"{}", '"inputs" must be a list of at least one input.'),
        (b'{"inputs": ["a"], "decoding": [1]}', '"decoding" is an object.'),
    ],
)
def test_what_cannot_be_read_is_told_so(port: int, body: bytes, sentence: str) -> None:
    assert sentence in refused(port, "sounds", body)


def test_a_name_that_stands_twice_among_very_many_is_found_at_once() -> None:
    began = time.monotonic()
    with pytest.raises(HTTPException, match="'29999' occurs twice in one object"):
        parsed(b"{%s}" % b",".join(b'"%d":0' % number for number in [*range(30_000), 29_999]), {})
    assert seconds_since(began) < 3


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("sounds", 7, "the input of this model must be a text, but found 7."),
        ("sounds", None, "the input of this model must be a text, but found None."),
        ("sounds", {"a": 1}, "the input of this model must be a text"),
        ("sounds", "\ud800", "contains a lone surrogate"),
        ("sounds", "x" * 20_001, "a text can have at most 20,000 characters"),
        ("levels", [2 * 10**308], "a number that is too large to compute with"),
        ("levels", "/etc/passwd", "the input of this model must be a list of steps"),
        ("ink", "/etc/passwd", "the input of this model must be a list of pen strokes"),
        ("colours", ["/etc/passwd"], "the input of this model must be a list of numbers"),
        ("colours", [1, 2, 3], "input:1: "),
    ],
)
def test_an_input_that_a_model_cannot_take_is_refused(port: int, name: str, value: object, sentence: str) -> None:
    assert sentence in refused(port, name, {"inputs": [value]})


@pytest.mark.parametrize(
    ("decoding", "sentence"),
    [
        ({"widht": 3}, '"decoding" has no "widht". Did you mean \'width\'?'),
        ({"width": 1000}, '"width" is limited to 32 here, but 1,000 was asked for.'),
        ({"width": 2 * 10**308}, '"width" is limited to 32 here, but more was asked for.'),
        ({"max_length": 10**6}, '"max_length" is limited to 1,000 here'),
        ({"banned": ["a"] * 101}, '"banned" is limited to 100 items here'),
        ({"prefix": "a" * 1001}, '"prefix" is limited to 1,000 characters here'),
        ({"search": "exhaustive"}, '"search" = "exhaustive" is available only in `recurra predict`'),
        ({"width": [1, {}]}, '"width" must be a number, a text or a list of texts'),
        ({"width": "wide"}, "decoding.width"),
        ({"length_penalty": 1e300}, "decoding.length_penalty must be at most 20, but is 1e+300."),
        ({"width": 0}, "decoding.width"),
        ({"best": 20}, "decoding.best = 20 answers need a beam of at least that width,"),
        ({"forced": ["nonsense"]}, "nonsense"),
    ],
)
def test_a_way_to_search_that_cannot_be_is_refused(port: int, decoding: object, sentence: str) -> None:
    assert sentence in refused(port, "sounds", {"inputs": ["cat"], "decoding": decoding})


def test_a_visitor_is_not_told_of_options_of_the_command_line(port: int) -> None:
    question = {"inputs": ["cat"], "decoding": {"width": 0}}
    assert refused(port, "sounds", question) == "decoding.width must be at least 1, but is 0."
    question = {"inputs": ["cat"], "decoding": {"width": "wide"}}
    assert refused(port, "sounds", question) == "decoding.width must be a whole number, but is 'wide'."


def test_a_model_that_does_not_search_has_no_settings_of_search(port: int) -> None:
    question = {"inputs": ["the"], "decoding": {"width": 3}}
    assert "this model does not use a search" in refused(port, "tags", question)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ({"input": "cat", "show": ["attentoin"]}, "Did you mean 'attention'?"),
        ({"input": "cat", "show": [1]}, "show"),
        ({"input": "cat", "show": [[]]}, "show"),
        ({"input": "cat", "show": "tree"}, '"show" is a list.'),
        ({"input": "cat", "best": 0}, '"best" is 0: answers are counted from 1 (the best).'),
        ({"input": "cat", "best": 9}, "decoding.best = 9"),
        ({"input": "cat", "decoding": {"best": "two"}}, "decoding.best must be a whole number, but is 'two'."),
        ({"input": "cat", "best": True}, '"best" is a whole number.'),
        ({"input": "cat", "layer": 1.5}, '"layer" is a whole number.'),
        ({"input": "cat", "direction": 1}, '"direction" is a text.'),
        ({"input": ""}, "the input is empty"),
        ({"input": "x" * 1001}, "1,000 tokens are explained here, but the input has 1,00"),
    ],
)
def test_an_explanation_that_cannot_be_is_refused(port: int, question: object, sentence: str) -> None:
    assert sentence in refused(port, "sounds", question, "explain")


def test_what_no_view_can_read_is_refused_once(port: int) -> None:
    assert refused(port, "ink", {"input": []}, "explain") == "input:1: there are no strokes to draw."


def test_a_view_that_is_not_there_is_said_beside_those_that_are(port: int) -> None:
    found = posted(port, "/api/runs/sounds/explain", {"input": "cat", "show": ["gates", "tree"], "layer": 9}).json
    assert list(found["views"]) == ["tree"]
    assert "this network has one layer" in found["missing"]["gates"]


def test_a_long_input_is_not_weighed_token_by_token(port: int) -> None:
    found = posted(port, "/api/runs/sounds/explain", {"input": "cat" * 30}).json
    assert "60 tokens are weighed here, which `recurra explain` does of any" in found["missing"]["saliency"]
    assert {"attention", "gates", "tree"} <= set(found["views"])


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ({"prompt": "one", "length": MOST["length"] + 1}, '"length" is limited to 1,000 here'),
        ({"prompt": "one", "count": 17}, '"count" is limited to 16 here'),
        ({"prompt": "one", "count": 0}, '"count", the number of texts, must be a whole number from 1 to 16, but is 0.'),
        ({"prompt": "one", "count": True}, '"count" must be a whole number, but is True.'),
        ({"prompt": "one", "temperature": "hot"}, "\"temperature\" must be a number, but is 'hot'."),
        ({"prompt": "one", "temperature": -1}, "temperature"),
        ({"prompt": "one", "temperature": 2 * 10**308}, '"temperature" is too large.'),
        ({"prompt": "one", "until": ""}, "until must be a text at which generation stops,"),
        ({"prompt": ["one"]}, '"prompt" must be a text.'),
        ({"prompt": 3}, "the input of this model must be a text, but found 3."),
        ({"prompt": "one", "lenght": 3}, "Did you mean 'length'?"),
    ],
)
def test_a_text_that_cannot_be_written_is_refused(port: int, question: object, sentence: str) -> None:
    assert sentence in refused(port, "text", question, "generate")


def test_only_what_writes_is_asked_to_write(port: int) -> None:
    said = refused(port, "tags", {"prompt": "the"}, "generate")
    assert said.startswith("the run tags cannot generate text: it is a tagging model")  # and not its folder
    assert "the input of this model must be a list of pen strokes" in refused(
        port, "ink", {"prompt": "/etc/passwd"}, "generate"
    )


def test_too_many_inputs_and_too_long_ones_are_refused(port: int) -> None:
    assert '"inputs" has 257 inputs, but one request can have at most 256' in refused(
        port, "sounds", {"inputs": ["a"] * 257}
    )
    assert '"inputs" has 17 inputs, but one request can have at most 16' in refused(
        port, "ink", {"inputs": [ASKED["ink"]] * 17}
    )
    assert "20,000 tokens are answered in one call" in refused(port, "sounds", {"inputs": ["x" * 12_000] * 2})
    wide = {"width": 32, "max_length": 1000, "max_ratio": None}
    every, one = ({"input": "cat" * 300, "decoding": wide, "show": show} for show in (None, ["probabilities"]))
    assert refused(port, "sounds", every, "explain").startswith("this request needs about 3 times the work allowed")
    assert posted(port, "/api/runs/sounds/explain", one).status == 200
    for name, value, decoding in (("sounds", "cat", wide), ("levels", [1, 2, 3], {"paths": 500, "horizon": 1000})):
        too_much = refused(port, name, {"inputs": [value] * 32, "decoding": decoding})
        assert re.match(
            r"this request needs about \d+ times the work allowed in one call: send fewer or shorter inputs", too_much
        )
    assert predicted(port, "levels", [1, 2, 3], paths=500, horizon=1000).status == 200
    large = posted(port, "/api/runs/sounds/predict", {"inputs": ["x" * 100_000]})
    assert (large.status, large.error) == (413, "a request can have at most 100,000 bytes.")


def test_wrong_methods_are_told_which_are_right(port: int) -> None:
    for method, path, allowed in (
        ("GET", "/api/runs/sounds/predict", "POST"),
        ("OPTIONS", "/api/runs/sounds/predict", "POST"),
        ("POST", "/api/runs", "GET, HEAD"),
        ("DELETE", "/", "GET, HEAD"),
    ):
        found = asked(port, request(path, method=method))
        assert (found.status, found.headers["allow"]) == (405, allowed)
        assert found.error == f"{method} is not allowed at {path}: use {allowed}."


def test_head_is_an_answer_without_its_body(port: int) -> None:
    whole, head = (asked(port, request("/api/runs", method=each), has_body=each == "GET") for each in ("GET", "HEAD"))
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.body))


@pytest.mark.parametrize(
    "path", ["/nix", "/api", "/api/runs/", "/page/", "/page/../server.py", "/page/%2e%2e%2fcli.py"]
)
def test_what_is_not_there_is_said_in_json(port: int, path: str) -> None:
    found = asked(port, request(path))
    assert found.status == 404
    assert found.error.endswith(" does not exist: /openapi.json lists all paths.")


def test_a_run_that_is_not_there_is_said_with_the_nearest_name(port: int) -> None:
    found = predicted(port, "sound", "cat")
    assert (found.status, found.error) == (
        404,
        "there is no run 'sound' here. Did you mean 'sounds'? Known: " + ", ".join(sorted(ASKED)) + ".",
    )


@pytest.mark.parametrize("kind", ["", "Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded"])
def test_a_form_of_another_site_is_no_question(port: int, kind: str) -> None:
    headers = [kind] if kind else []
    found = asked(port, request("/api/runs/sounds/predict", *headers, method="POST", body=b'{"inputs": ["cat"]}'))
    assert (found.status, found.error) == (415, "send JSON with the header Content-Type: application/json.")


def test_the_page_and_its_files_are_served(port: int) -> None:
    page = asked(port, request("/"))
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert asked(port, request("/page/dom.js")).headers["content-type"] == "text/javascript; charset=utf-8"


def test_names_of_runs_may_hold_anything(tmp_path: Path, folder: Path) -> None:
    for place in ("a/50 %? #1", "b/50 %? #1", "b/Größe 大"):
        shutil.copytree(folder / "sounds", tmp_path / place)
    found = hosted([str(tmp_path / "a"), str(tmp_path / "b")])
    assert list(found) == ["a/50 %? #1", "b/50 %? #1", "Größe 大"]
    with at_work(application(Service(found))) as port:
        assert [run["name"] for run in asked(port, request("/api/runs")).json["runs"]] == list(found)
        for name in found:
            assert predicted(port, quote(name), "cat").status == 200
            assert predicted(port, quote(name, safe=""), "cat").status == 200


def test_several_runs_answer_as_one(tmp_path: Path, folder: Path) -> None:
    for name in "ab":
        shutil.copytree(folder / "sounds", tmp_path / name)
    [(name, run)] = hosted([f"{tmp_path}/a,{tmp_path}/b"]).items()
    assert name == "a,b"
    [alone] = hosted([f"{tmp_path}/a"])["a"].predict(["cat"], {})["answers"]
    [together] = run.predict(["cat"], {})["answers"]
    assert together["output"] == alone["output"]
    assert set(run.explain("cat", {})["views"]) >= {"attention", "tree"}


def test_a_run_that_cannot_be_read_is_left_out_and_the_others_are_served(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("good", "bad"):
        shutil.copytree(folder / "sounds", tmp_path / name)
    (tmp_path / "bad" / "config.toml").write_text("task = 'sequ2seq'")
    assert list(usable(hosted([str(tmp_path)]))) == ["good"]
    assert "recurra: not served: " in capsys.readouterr().err
    with pytest.raises(CheckpointError, match=r"there is no folder .*nowhere: a run is a folder"):
        usable(hosted([str(tmp_path / "nowhere")]))


def test_a_run_whose_weights_are_broken_says_so_and_others_go_on(tmp_path: Path, folder: Path) -> None:
    for name in ("good", "bad"):
        shutil.copytree(folder / "sounds", tmp_path / name)
    weights = tmp_path / "bad" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with at_work(application(Service(hosted([str(tmp_path)])))) as port:
        broken = predicted(port, "bad", "cat")
        assert broken.status == 500
        assert "model.safetensors" in broken.error
        assert predicted(port, "good", "cat").status == 200


def test_a_mistake_of_ours_and_a_lack_of_memory_are_sentences(
    runs: dict[str, Hosted], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    failures = [
        (MemoryError(), 507),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 507),
        (RuntimeError("a secret"), 500),
        (KeyError("a secret"), 500),
        (StopIteration("a secret"), 500),
    ]
    waiting = iter(failures)

    def fail(*_: object) -> None:
        raise next(waiting)[0]

    monkeypatch.setattr(runs["sounds"], "predict_several", fail)
    with at_work(application(Service(runs))) as port:
        for _, status in failures:
            found = predicted(port, "sounds", "cat")
            assert found.status == status
            assert "secret" not in found.error
        assert asked(port, request("/api/runs")).status == 200
    said = capfd.readouterr().err
    assert "RuntimeError: a secret" in said
    assert "KeyError: 'a secret'" in said
    assert "StopIteration: a secret" in said


def test_as_many_ways_to_search_are_kept_as_are_used(runs: dict[str, Hosted]) -> None:
    run = runs["colours"]
    for length in range(1, 2 * REMEMBERED):
        run.predict([[1, 0]], {"max_length": length + 3})
    assert len(run._ready) == REMEMBERED
    assert ("answers",) in run._ready


def test_an_explanation_shares_the_weights_and_not_the_modules(runs: dict[str, Hosted]) -> None:
    run = runs["sounds"]
    run.predict(["cat"], {})
    run.explain("cat", {})
    ready: Any = run._ready
    first, second = ready[("answers",)].model, ready[("saliency",)].model
    assert first is not second
    assert all(one is other for one, other in zip(first.parameters(), second.parameters(), strict=True))


def test_numbers_that_json_does_not_have_are_null() -> None:
    assert json.loads(rendered({"a": [1.5, float("nan"), float("inf")], "b": "ü"})) == {
        "a": [1.5, None, None],
        "b": "ü",
    }
    assert as_plain({1: (float("nan"), 0.12345678)}) == {"1": [None, 0.123457]}


def test_a_run_is_warmed_up_with_a_sample_of_its_data(runs: dict[str, Hosted]) -> None:
    runs["tags"].warm()
    assert ("answers",) in runs["tags"]._ready


def test_what_serving_needs_is_named_where_it_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", str(folder / "tags")]) == 2
    assert (
        "recurra: serving needs uvicorn: pip install 'recurra[serve]', or without torch 'recurra-run[serve]'."
        in capsys.readouterr().err
    )


def test_what_cannot_be_served_ends_the_command_with_a_sentence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], port: int
) -> None:
    assert main(["serve", str(tmp_path / "nix")]) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert main(["serve", str(folder / "tags"), "--port", str(port)]) == 2
    assert "Address already in use" in capsys.readouterr().err
    assert main(["serve", str(folder / "tags"), "--port", "70000"]) == 2
    assert "a port must be a number from 0 to 65535" in capsys.readouterr().err


def test_siblings_have_the_same_folder_task_and_vocabulary(tmp_path: Path, folder: Path) -> None:
    for name, place in (("sounds", "a"), ("sounds", "b"), ("tags", "tags"), ("sounds", "elsewhere/c")):
        shutil.copytree(folder / name, tmp_path / place)
    shutil.copytree(folder / "sounds", tmp_path / "other")
    words = tmp_path / "other" / "vocabulary.source.json"
    words.write_text(words.read_text("utf-8").replace('"c"', '"C"'), "utf-8")
    seal(tmp_path / "other")
    found = siblings(hosted([str(tmp_path)]))
    assert found == {"a": ["b"], "b": ["a"], "c": [], "other": [], "tags": []}


def test_a_classifier_of_one_class_offers_no_threshold(runs: dict[str, Hosted]) -> None:
    names = [each["name"] for each in runs["intents"].about["decoding"]]
    assert names == ["abstain", "alternatives"]
