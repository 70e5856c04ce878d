"""What two threads do at once: runs are replaced, made ready and measured while they are asked."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from recurra.manifest import seal
from recurra.runtime.application import application
from recurra.runtime.batching import Worker
from recurra.runtime.hosted import Hosted, Question, hosted
from recurra.runtime.service import Service
from tests.runtime.listening import asked, at_work, posted, request
from tests.runtime.test_load import serving


def test_queues_are_counted_while_another_thread_adds_one(
    runs: dict[str, Hosted], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, run, added = Service(runs), runs["tags"], list[str]()
    service.ask("tags", "answers", Question(["the cat"], {}), seconds=30).future.result(30)

    def add() -> None:
        added.append(f"other {len(added)}")
        service._worker(run, added[-1])

    def counted(_: object) -> int:
        """As long as one queue is measured, another thread adds one."""
        thread = threading.Thread(target=add)
        thread.start()
        thread.join()
        return 0

    monkeypatch.setattr(Worker, "__len__", counted)
    with at_work(application(service)) as port:
        assert asked(port, request("/metrics")).status == 200
    assert added


@pytest.mark.parametrize("path", ["explain", "generate", "predict", "samples"])
def test_a_run_that_has_been_replaced_is_asked_no_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Not even where it is replaced after the request was read and before it is in a queue."""
    service = Service(hosted([str(folder / "text")]))
    old, [new] = service.runs["text"], hosted([str(folder / "text")]).values()
    for name in ("explain", "generate_several", "predict_several", "samples", "way"):
        monkeypatch.setattr(old, name, lambda *_, name=name, **__: pytest.fail(f"{name} of the old run was called"))
    usual = service.ask

    def after_replacing(*given: Any, **named: Any) -> Any:
        service.replace("text", new)
        return usual(*given, **named)

    monkeypatch.setattr(service, "ask", after_replacing)
    question = {
        "explain": {"input": "one t"},
        "generate": {"prompt": "one", "length": 2},
        "predict": {"inputs": ["one t"]},
    }
    with at_work(application(service)) as port:
        if path == "samples":
            assert asked(port, request("/api/runs/text/samples")).status == 200
        else:
            assert posted(port, f"/api/runs/text/{path}", question[path]).status == 200
    assert set(service._workers) == {new}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
@pytest.mark.parametrize("how", ["SIGHUP", "--reload"])
def test_a_server_loads_runs_again_under_load_and_loses_no_request(folder: Path, tmp_path: Path, how: str) -> None:
    place = tmp_path / "run"
    shutil.copytree(folder / "sounds", place)
    with serving.served(str(place), *([how] if how == "--reload" else [])) as (process, port):
        requests = serving.requests_for("run", ["cat", "goat"])
        loads = list[Any]()
        client = threading.Thread(target=lambda: loads.append(asyncio.run(serving.loaded(port, requests, 16, 40))))
        client.start()
        for count in range(1, 4):
            seal(place)  # as at the end of a training: the manifest is written anew
            if how == "SIGHUP":
                os.kill(process.pid, signal.SIGHUP)
            expected = f'recurra_reloads_total{{run="run",result="loaded"}} {count}'
            ends = time.monotonic() + 30
            while expected not in metrics(port):
                assert time.monotonic() < ends, metrics(port)
                time.sleep(0.2)
        client.join()
        assert process.poll() is None
    [load] = loads
    assert set(load.statuses) == {"200"}, load.statuses
    assert load.statuses["200"] > 100


def metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        found: bytes = answer.read()
    return found.decode()
