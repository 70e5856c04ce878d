"""Texts beside answers: whole ones are written together, streams take turns, and predictions wait for neither."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from recurra.errors import ConfigError, RecurraError
from recurra.generation.writer import Writer
from recurra.runtime.application import application
from recurra.runtime.batching import Busy, Late
from recurra.runtime.hosted import Hosted
from recurra.runtime.limits import Limits
from recurra.runtime.service import Service
from recurra.runtime.streams import Streams
from recurra.runtime.writing import Writing
from tests.runtime.listening import at_work, connected, next_piece, posted, received, request
from tests.runtime.tiny_runs import ASKED

GENERATE = "/api/runs/text/generate"
JSON = "Content-Type: application/json"


def texts(found: dict[str, Any]) -> list[dict[str, Any]]:
    """What was written, without probabilities, whose last digit may depend on what was computed beside them."""
    return [{name: value for name, value in each.items() if name != "log_probability"} for each in found["texts"]]


@pytest.mark.parametrize("name", ["text", "colours"])
def test_texts_asked_for_together_are_those_of_each_alone(runs: dict[str, Hosted], name: str) -> None:
    prompt, run = ASKED[name], runs[name]
    asked = [
        Writing(prompt, {"seed": 3, "length": 4, "count": 2}),
        Writing(prompt, {"seed": 3, "length": 4}),
        Writing(prompt, {"seed": 4, "length": 4}),
        Writing(prompt, {"count": 0}),
        Writing(7, {"seed": 3, "length": 4}),
        Writing(prompt, {"temperature": -1.0}),
        Writing(prompt, {"seed": True}),
    ]
    found = dict(each for part in run.generate_several(asked) for each in part)
    assert set(found) == set(range(7))
    for number in range(3):
        together = found[number]
        assert isinstance(together, dict)
        assert texts(together) == texts(run.generate(asked[number].prompt, asked[number].options))
    sentences = {number: str(each) for number, each in found.items() if isinstance(each, RecurraError)}
    assert sentences.keys() == {3, 4, 5, 6}
    assert sentences[3] == '"count", the number of texts, must be a whole number from 1 to 16, but is 0.'
    assert sentences[5].startswith("temperature must be a number of at least 0, but is -1.0")
    assert sentences[6] == '"seed" must be a whole number, but is True.'


def test_requests_of_one_manner_are_one_batch(runs: dict[str, Hosted], monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, usual = list[int](), Writer.several

    def noted(writer: Writer, asked: Any) -> Any:
        sizes.append(len(asked))
        return usual(writer, asked)

    monkeypatch.setattr(Writer, "several", noted)
    same = [Writing("one", {"length": 3, "count": count}) for count in (1, 16, 2)]
    list(runs["text"].generate_several([*same, Writing("one", {"length": 2})]))
    assert sizes == [3, 1]
    sizes.clear()
    list(runs["text"].generate_several([Writing("one", {"length": 2, "count": 16}) for _ in range(9)]))
    assert sizes == [4, 4, 1]  # 64 texts at a time
    sizes.clear()
    wrong = [Writing("one", {"length": 3}), Writing("§", {"length": 3})]
    found = dict(each for part in runs["text"].generate_several(wrong) for each in part)
    assert sizes == [2, 1, 1]
    assert texts(found[0]) == texts(runs["text"].generate("one", {"length": 3}))  # type: ignore[arg-type]
    assert "is not in the model's vocabulary" in str(found[1])


def test_texts_that_are_written_in_turns_are_those_of_each_alone(runs: dict[str, Hosted]) -> None:
    run, streams = runs["text"], Streams()
    asked = [("one", 12, 1), ("one t", 7, 2), ("", 9, 3), ("three", 12, 4)]
    pieces: list[list[str]] = [[] for _ in asked]
    order = list[int]()

    def told(number: int, piece: str) -> None:
        pieces[number].append(piece)
        order.append(number)

    ways = [
        streams.ask(
            lambda prompt=prompt, length=length, seed=seed: run.pieces(prompt, {"length": length, "seed": seed}),  # type: ignore[misc]
            lambda piece, number=number: told(number, piece),  # type: ignore[misc]
            seconds=30,
        )
        for number, (prompt, length, seed) in enumerate(asked)
    ]
    for each in ways:
        each.future.result(30)
    for found, (prompt, length, seed) in zip(pieces, asked, strict=True):
        assert "".join(found) == run.generate(prompt, {"length": length, "seed": seed})["texts"][0]["whole"]
    assert len({order.index(number) for number in range(4)} & set(range(8))) >= 3  # none waits for another's end


def test_streams_end_when_they_are_over_too_late_given_up_or_wrong() -> None:
    streams, closed = Streams(most=3), threading.Event()

    def endless() -> Iterator[str]:
        try:
            while True:
                time.sleep(0.001)
                yield "x"
        finally:
            closed.set()

    def wrong() -> Iterator[str]:
        yield "one"
        raise ConfigError("it has broken.")

    found = list[str]()
    first = streams.ask(endless, lambda _: None, seconds=30)
    late = streams.ask(endless, lambda _: None, seconds=0.05)
    broken = streams.ask(wrong, found.append, seconds=30)
    with pytest.raises(Busy, match=r"too many texts are being written by this run: try again later\."):
        streams.ask(endless, lambda _: None, seconds=30)
    with pytest.raises(ConfigError, match="it has broken"):
        broken.future.result(5)
    assert found == ["one"]
    with pytest.raises(Late, match=r"the text was not written within 0\.05 seconds\."):
        late.future.result(5)
    assert closed.is_set()
    closed.clear()
    first.give_up()
    first.future.result(5)
    assert closed.wait(5)
    assert len(streams) == 0


def test_predictions_and_texts_wait_for_no_stream(runs: dict[str, Hosted]) -> None:
    """Long streams are under way all the time; a prediction still takes milliseconds, and the 99th of 100 too."""
    run = runs["text"]
    run.predict(["one two"], {})
    run.generate("one", {"length": 3})
    times = {"predict": list[float](), "generate": list[float]()}
    service = Service({"text": run})
    usual, is_over = run.pieces, threading.Event()

    def long(prompt: object, options: Any) -> Iterator[str]:
        """The run's text again and again: for longer than everything else takes."""
        while not is_over.is_set():
            yield from usual(prompt, options)

    body = json.dumps({"prompt": "one", "length": 1000, "stream": True}).encode()
    with pytest.MonkeyPatch.context() as patch, at_work(application(service)) as port:
        patch.setattr(run, "pieces", long)
        streams = [connected(port) for _ in range(2)]
        try:
            for each in streams:
                each.sendall(request(GENERATE, JSON, method="POST", body=body))
                assert b"200 OK" in next_piece(each)
            with connected(port) as connection:
                for path, question, count in (
                    ("predict", {"inputs": ["one two"]}, 100),
                    ("generate", {"prompt": "one", "length": 3}, 20),
                ):
                    for _ in range(count):
                        began = time.monotonic()
                        asked = json.dumps(question).encode()
                        connection.sendall(request(f"/api/runs/text/{path}", JSON, method="POST", body=asked))
                        assert received(connection).status == 200
                        times[path].append(time.monotonic() - began)
            for each in streams:
                assert each.recv(1 << 20)  # they are still written
        finally:
            is_over.set()
            for each in streams:
                each.close()
    # In a queue with the streams, the first would wait until the request's time of 30 seconds is over.
    assert np.quantile(times["predict"], 0.99) < 1
    assert np.quantile(times["generate"], 0.99) < 1


def test_more_streams_than_may_be_written_at_a_time_are_refused(runs: dict[str, Hosted]) -> None:
    limits, is_over = Limits(streams=1), threading.Event()

    def endless(*_: object) -> Iterator[str]:
        while not is_over.wait(0.005):
            yield "x"

    question = {"prompt": "one", "stream": True}
    with pytest.MonkeyPatch.context() as patch, at_work(application(Service(runs, limits=limits))) as port:
        patch.setattr(runs["text"], "pieces", endless)
        with connected(port) as first:
            first.sendall(request(GENERATE, JSON, method="POST", body=json.dumps(question).encode()))
            assert b"200 OK" in next_piece(first)
            refused = posted(port, GENERATE, question)
            assert (refused.status, refused.headers["retry-after"]) == (429, "1")
            assert refused.error == "too many texts are being written by this run: try again later."
            with ThreadPoolExecutor(1) as pool:
                whole = pool.submit(posted, port, GENERATE, {"prompt": "one", "length": 2})
                assert whole.result(10).status == 200
            is_over.set()
