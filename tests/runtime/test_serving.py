"""A server among others: its queues, its state, tokens and names, texts as they are written, and runs trained again."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from recurra.errors import ConfigError
from recurra.manifest import seal
from recurra.runtime.access import Access, access
from recurra.runtime.access_log import access_log
from recurra.runtime.application import application
from recurra.runtime.hosted import Hosted, Question, hosted
from recurra.runtime.limits import Limits
from recurra.runtime.reloading import Reloading
from recurra.runtime.server import Serving
from recurra.runtime.service import Service
from tests.runtime.listening import Answer, asked, at_work, connected, next_piece, posted, request
from tests.runtime.tiny_runs import ASKED

PATH = "/api/runs/sounds/predict"
QUESTION = {"inputs": ["cat"]}
TOKEN = "0123456789abcdef"


@pytest.fixture
def service(runs: dict[str, Hosted]) -> Service:
    return Service(runs, limits=Limits(queued=2, deadline_seconds=5))


@pytest.fixture
def held(runs: dict[str, Hosted], monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """The run of sounds answers when it may: whether it was asked, and whether it may."""
    was_asked, may_answer, usual = threading.Event(), threading.Event(), runs["sounds"].predict_several

    def slowly(questions: Sequence[Question]) -> Iterator[Any]:
        was_asked.set()
        may_answer.wait(10)
        yield from usual(questions)

    monkeypatch.setattr(runs["sounds"], "predict_several", slowly)
    yield was_asked, may_answer
    may_answer.set()


Held = tuple[threading.Event, threading.Event]


def test_requests_that_arrive_together_are_answered_together_as_each_alone(runs: dict[str, Hosted], held: Held) -> None:
    """Each task that the tiny runs have, one of them with samples that are drawn."""
    drawn = {"decoding": {"search": "sampling", "best": 2, "seed": 3}}
    for name in ASKED:
        other = {"inputs": [ASKED[name], ASKED[name]], **(drawn if name == "sounds" else {})}
        questions = [
            Question(other["inputs"], other.get("decoding", {})),
            Question([ASKED[name]], {}),
            Question([7], {}),
        ]
        held[1].set()
        [found] = [dict(part for parts in runs[name].predict_several(questions) for part in parts)]
        for number, each in enumerate(questions[:2]):
            alone = runs[name].predict(each.inputs, each.decoding)["answers"]
            assert are_close(found[number]["answers"], alone)  # type: ignore[index]
        assert isinstance(found[2], Exception)


def are_close(one: Any, other: Any) -> bool:
    """Whether two values out of JSON are the same but for the last digits of their numbers."""
    if isinstance(one, float) or isinstance(other, float):
        return bool(one == pytest.approx(other, abs=3e-6))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_close(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(are_close, one, other))
    return bool(one == other)


def test_more_requests_than_may_wait_are_told_to_try_again(service: Service, held: Held) -> None:
    with at_work(application(service)) as port, ThreadPoolExecutor(3) as pool:
        found = [pool.submit(posted, port, PATH, QUESTION)]
        held[0].wait(10)
        found += [pool.submit(posted, port, PATH, QUESTION) for _ in range(2)]
        while 'recurra_queued_requests{run="sounds"} 2' not in metrics_of(port):
            pass
        refused = posted(port, PATH, QUESTION)
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert refused.error == "too many requests are waiting for this run: try again later."
        assert posted(port, "/api/runs/tags/predict", {"inputs": ["the cat"]}).status == 200  # another run
        held[1].set()
        assert [each.result().status for each in found] == [200] * 3
        said = metrics_of(port)
        assert 'recurra_requests_total{run="sounds",endpoint="predict",status="200"} 3' in said
        assert 'recurra_requests_total{run="sounds",endpoint="predict",status="429"} 1' in said
        assert 'recurra_batch_requests_bucket{run="sounds",le="2"} 3' in said


def metrics_of(port: int) -> str:
    found = asked(port, request("/metrics"))
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    return found.body.decode()


def test_a_request_has_an_answer_or_a_refusal_when_its_time_is_over(service: Service, held: Held) -> None:
    with at_work(application(service)) as port:
        late = posted(port, PATH, QUESTION, "X-Deadline-Seconds: 0.05")
        assert (late.status, late.headers["retry-after"]) == (503, "1")
        assert late.error == "the request was not answered within 0.05 seconds."
        held[1].set()
        assert posted(port, PATH, QUESTION, "X-Deadline-Seconds: 1e9").status == 200
        for given in ("0", "-1", "nan", "inf", "soon", "1e999"):
            wrong = posted(port, PATH, QUESTION, f"X-Deadline-Seconds: {given}")
            assert wrong.status == 400
            assert wrong.error.startswith("x-deadline-seconds must be a number of seconds above 0, but is '")


def test_it_says_whether_it_lives_and_whether_it_is_ready(service: Service) -> None:
    with at_work(application(service, access=Access(token=TOKEN))) as port:
        service.is_ready = False
        assert asked(port, request("/health", "Host: 10.0.0.7")).json == {"status": "alive"}
        loading = asked(port, request("/ready", "Host: 10.0.0.7"))
        assert (loading.status, loading.json) == (503, {"status": "loading"})
        service.is_ready = True
        assert asked(port, request("/ready")).status == 200


@pytest.mark.parametrize("name", ["text", "colours"])
def test_a_text_arrives_as_it_is_written(service: Service, name: str) -> None:
    question = {"prompt": ASKED[name], "seed": 3, "length": 5}
    with at_work(application(service)) as port:
        [text] = posted(port, f"/api/runs/{name}/generate", question).json["texts"]
        head, events = streamed(port, f"/api/runs/{name}/generate", {**question, "stream": True})
    assert "200 OK" in head
    assert "content-type: text/event-stream" in head
    assert "".join(each["text"] for kind, each in events if kind == "") == text["whole"]
    assert events[-1] == ("end", {})
    assert len(events) > (3 if name == "text" else 1)


def streamed(port: int, path: str, question: object) -> tuple[str, list[tuple[str, Any]]]:
    """The head of an answer and its events, each with its name."""
    body = json.dumps(question).encode()
    headers = ["Content-Type: application/json", "Connection: close"]
    found = b""
    with connected(port) as connection:
        connection.sendall(request(path, *headers, method="POST", body=body))
        while piece := next_piece(connection):
            found += piece
    head, _, rest = found.decode().partition("\r\n\r\n")
    lines = [line for line in rest.split("\r\n") if line.startswith(("data: ", "event: "))]
    events = []
    for each in "\n".join(lines).split("\n\n"):
        name, data = "", ""
        for line in each.split("\n"):
            name = line.removeprefix("event: ") if line.startswith("event: ") else name
            data = line.removeprefix("data: ") if line.startswith("data: ") else data
        if data:
            events.append((name, json.loads(data)))
    return head, events


def test_what_is_wrong_with_a_stream_is_said_as_usual_or_at_its_end(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with at_work(application(service)) as port:
        for question, sentence in (
            ({"stream": True, "count": 2}, '"stream" is for one text, but "count" is 2'),
            ({"stream": True, "length": 10**9}, '"length" is limited to 1,000 here'),
            ({"stream": 1}, '"stream" is true or false.'),
        ):
            refused = posted(port, "/api/runs/text/generate", {"prompt": "one", **question})
            assert (refused.status, sentence in refused.error) == (400, True)

        def pieces(*_: object) -> Iterator[str]:
            yield "one"
            raise ConfigError("it has broken.")

        monkeypatch.setattr(service.runs["text"], "pieces", pieces)
        _, events = streamed(port, "/api/runs/text/generate", {"prompt": "one", "stream": True})
        assert events == [("", {"text": "one"}), ("error", {"error": "it has broken."})]


def test_a_stream_that_no_one_reads_is_given_up(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    is_over, step = threading.Event(), threading.Event()

    def pieces(*_: object) -> Iterator[str]:
        try:
            while True:
                yield "word "
                step.wait(0.01)
        finally:
            is_over.set()

    monkeypatch.setattr(service.runs["text"], "pieces", pieces)
    body = json.dumps({"prompt": "one", "stream": True}).encode()
    with at_work(application(service)) as port:
        with connected(port) as connection:
            path = "/api/runs/text/generate"
            connection.sendall(request(path, "Content-Type: application/json", method="POST", body=body))
            assert b"200 OK" in next_piece(connection)
        assert is_over.wait(5)


# Who may ask


@pytest.fixture
def guarded(service: Service) -> Iterator[int]:
    with at_work(application(service, access=Access(("models.example.org",), TOKEN))) as port:
        yield port


def test_a_token_is_needed_for_all_but_the_page_and_probes(guarded: int) -> None:
    for path in ("/", "/page/main.js", "/health", "/ready"):
        assert asked(guarded, request(path)).status == 200
    for path in ("/api/runs", "/openapi.json", "/metrics", PATH, "/nowhere"):
        for given in ("", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer ü"):
            found = asked(guarded, request(path, f"Authorization: {given}"))
            assert (found.status, found.headers["www-authenticate"]) == (401, "Bearer")
    assert asked(guarded, request("/api/runs", f"Authorization: Bearer {TOKEN}")).status == 200
    assert posted(guarded, PATH, QUESTION, f"authorization: bearer {TOKEN}").status == 200


def test_names_that_are_allowed_are_answered_to_by_http_and_https(guarded: int) -> None:
    def status(*headers: str) -> int:
        return asked(guarded, request("/page/main.js", *headers)).status

    assert status("Host: models.example.org") == status("Host: MODELS.example.org:443") == 200
    assert status("Host: models.example.org", "Origin: https://models.example.org") == 200
    assert status("Host: models.example.org", "Origin: https://evil.example") == 403
    assert status("Host: localhost", "Origin: https://localhost") == 403
    assert status("Host: evil.example") == 421


def test_any_name_is_allowed_if_asked_for(service: Service) -> None:
    with at_work(application(service, access=Access(("*",)))) as port:
        assert asked(port, request("/api/runs", "Host: what.ever")).status == 200


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("0.0.0.0",), "--host 0.0.0.0: other machines can reach this address, so clients must send a token"),
        (("::",), "--host ::: other machines can reach this address"),
        (("example.org",), "--host example.org: an IP address is expected, such as 127.0.0.1 or 0.0.0.0."),
        (("127.0.0.1", ["a b"]), "--allow-host a b: a name without a port is expected"),
        (("127.0.0.1", ["a:80"]), "--allow-host a:80: a name without a port is expected"),
        (("127.0.0.1", [], "nowhere"), "--token-file nowhere cannot be read: No such file or directory."),
        (("127.0.0.1", [], "short"), "--token-file short: a token must have at least 16 characters of ASCII"),
        (("127.0.0.1", [], "blank"), "--token-file blank: a token must have at least 16 characters of ASCII"),
        (("127.0.0.1", [], "bytes"), "--token-file bytes cannot be read: it is not a text."),
    ],
)
def test_an_address_or_token_that_cannot_be_used_is_refused(
    given: tuple[Any, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short").write_text("abc\n")
    Path("blank").write_text("0123 456789 abcdef\n")
    Path("bytes").write_bytes(b"\xff" * 20)
    with pytest.raises(ConfigError) as refusal:
        access(*given)
    assert str(refusal.value).startswith(sentence)


def test_the_token_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(TOKEN + "\n")
    assert access("0.0.0.0", ["A.example"], str(tmp_path / "token")) == Access(("a.example",), TOKEN)
    monkeypatch.setenv("RECURRA_TOKEN", TOKEN[::-1])
    assert access("10.1.2.3").token == TOKEN[::-1]
    assert access("10.1.2.3").names == ("10.1.2.3",)
    assert access("::1").names == ()
    assert access("10.1.2.3", [], str(tmp_path / "token")).token == TOKEN


@pytest.mark.parametrize("given", [{"deadline": 0}, {"queued": 0}, {"grace": -1}, {"deadline": float("nan")}])
def test_a_limit_that_cannot_be_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"--(deadline|queue|grace) must be a number above 0 and at most 86400"):
        Serving(**given).limits()


# Runs, their names, and what is logged of them


def test_runs_have_the_names_that_they_are_given(folder: Path) -> None:
    assert list(hosted([str(folder / "tags"), f"en={folder / 'sounds'}"])) == ["tags", "en"]
    for wrong in (["=x"], ["a="], [f"a={folder / 'tags'}", f"a={folder / 'sounds'}"]):
        with pytest.raises(ConfigError, match=r"a name and a folder are expected|two runs have this name"):
            hosted(wrong)


def test_a_line_is_logged_for_each_request(service: Service, tmp_path: Path) -> None:
    with at_work(application(service, log=access_log(str(tmp_path / "log")))) as port:
        posted(port, PATH, {"inputs": ["a secret"]})
        asked(port, request("/nowhere?a=secret"))
    first, second = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert (first["status"], first["run"], first["endpoint"], first["together"]) == (200, "sounds", "predict", 1)
    assert 0 <= first["queued"] <= first["seconds"] < 10
    assert first["bytes"] > 20
    assert (second["method"], second["path"], second["status"], second["client"]) == (
        "GET",
        "/nowhere",
        404,
        "127.0.0.1",
    )
    assert "secret" not in (tmp_path / "log").read_text()
    with pytest.raises(ConfigError, match=r"--access-log .*nowhere/log cannot be written: No such file"):
        access_log(str(tmp_path / "nowhere" / "log"))


def retrained(folder: Path, as_in: Path) -> None:
    """Let a run have the files of another one, as training does: the manifest is the last."""
    for file in as_in.iterdir():
        if file.is_file() and file.name != "manifest.json":
            shutil.copyfile(file, folder / file.name)
    seal(folder)


def test_a_run_that_is_trained_again_is_loaded_and_no_request_is_lost(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place, statuses = tmp_path / "run", list[tuple[int, bool]]()
    shutil.copytree(folder / "sounds", place)
    service = Service(hosted([str(place)]))
    reloading, is_over = Reloading(service, is_watching=False), threading.Event()
    reloading.look()
    old = service.runs["run"]
    with at_work(application(service)) as port, ThreadPoolExecutor(3) as pool:

        def ask() -> None:
            with connected(port) as connection:
                while not is_over.is_set():
                    body = json.dumps({"inputs": ["cat"]}).encode()
                    head = ["Content-Type: application/json"]
                    connection.sendall(request("/api/runs/run/predict", *head, method="POST", body=body))
                    statuses.append((received_status(connection), service.runs["run"] is old))

        clients = [pool.submit(ask) for _ in range(3)]
        try:
            wait_until(lambda: len(statuses) > 20)
            (place / "config.toml").write_text("task =")  # half of it is written: it is not loaded
            reloading.look()
            reloading.look()
            assert service.runs["run"] is old
            assert "run goes on as it was: " in capfd.readouterr().err
            retrained(place, folder / "colours")  # another task altogether, which refuses the question by 400
            reloading.look()
            assert service.runs["run"] is old  # it has just been written
            reloading.look()
            assert service.runs["run"] is not old
            count = len(statuses)
            wait_until(lambda: len(statuses) > count + 20)
        finally:
            is_over.set()
            for each in clients:
                each.result()
        assert 'recurra_reloads_total{run="run",result="loaded"} 1' in metrics_of(port)
    assert {status for status, was_old in statuses if was_old} == {200}
    assert {status for status, _ in statuses} == {200, 400}
    assert statuses[-1][0] == 400
    assert "recurra: run has been loaded again." in capfd.readouterr().err
    assert old not in service._workers


def received_status(connection: socket.socket) -> int:
    from tests.runtime.listening import received

    found: Answer = received(connection)
    return found.status


def wait_until(holds: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(2000):
        if holds():
            return
        waiting.wait(0.01)
    raise AssertionError("it has not come to hold")


def test_a_run_is_made_ready_while_it_answers(folder: Path) -> None:
    service = Service(hosted([str(folder / "sounds")]))
    run = service.runs["sounds"]
    with ThreadPoolExecutor(1) as pool:
        ready = pool.submit(service.warm, run)
        assert service.ask("sounds", "answers", Question(["cat"], {}), seconds=30).future.result(30)
        ready.result(60)
    [model] = [each for key, each in run._ready.items() if key == ("answers",)]
    assert "compiled after" not in model.engine_report()  # type: ignore[attr-defined]
