"""Many clients at once, and far too many: by the client of benchmarks/serving.py."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import time
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from recurra.exporting.folder import export
from recurra.runs import begin, setup
from recurra.runtime.application import application
from recurra.runtime.hosted import Hosted
from recurra.runtime.limits import Limits
from recurra.runtime.service import Service
from recurra.training.progress import Silent
from tests.runtime.listening import at_work
from tests.runtime.tiny_runs import ASKED, FEW
from tests.tasks.small_pairs import words

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "serving.py"


def loaded_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("serving", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["serving"] = module  # which dataclasses and the like look for
    spec.loader.exec_module(module)
    return module


serving = loaded_script()


def test_64_clients_are_answered_without_an_error_and_together(runs: dict[str, Hosted]) -> None:
    service = Service(runs)
    with at_work(application(service)) as port:
        load = asyncio.run(serving.loaded(port, serving.requests_for("tags", [ASKED["tags"]]), 64, 1.0))
    assert set(load.statuses) == {"200"}, load.statuses
    assert load.statuses["200"] >= 64
    [sizes] = service.metrics.together.counts.values()
    assert sum(sizes[3:]) > sum(sizes) / 2, sizes  # most in batches of more than four


def test_too_many_clients_are_refused_in_words_and_all_is_well_afterwards(runs: dict[str, Hosted]) -> None:
    limits = Limits(queued=8, together=8, connections=100)
    with at_work(application(Service(runs, limits=limits)), limits) as port:
        requests = serving.requests_for("sounds", [ASKED["sounds"]], deadline=2.0)
        crowd = asyncio.run(serving.loaded(port, requests, 90, 1.0))
        assert set(crowd.statuses) <= {"200", "429", "503"}
        assert crowd.statuses["200"] > 0
        assert crowd.statuses["429"] > 0
        assert max(crowd.times) < 2.5
        assert set(asyncio.run(serving.loaded(port, requests, 4, 0.2)).statuses) == {"200"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of usual size that has learned nothing, exported as for a server."""
    here = tmp_path_factory.mktemp("load")
    few = [each for each in FEW if not each.startswith(("model.hidden", "model.engine"))]
    size = ["model.hidden=512", "model.embedding=64", "decoding.max_length=12", "decoding.min_length=8"]
    size.append("decoding.width=5")
    begin(setup("seq2seq", given={"train": words(here)}, overrides=[*few, *size]), here / "trained", Silent())
    export(str(here / "trained"), str(here / "run"))
    return here / "run"


@pytest.mark.slow
@pytest.mark.alone
def test_a_minute_of_64_clients(run: Path) -> None:
    with serving.served(str(run)) as (process, port):
        requests = serving.requests_for("run", ["cat", "goatee", "a", "bee"])
        asyncio.run(serving.loaded(port, requests, 64, 15))
        before = serving.resident(process.pid)
        load = asyncio.run(serving.loaded(port, requests, 64, 60))
        after = serving.resident(process.pid)
    assert set(load.statuses) == {"200"}
    assert after < 1.05 * before
    assert load.quantile(0.99) < 5 * load.quantile(0.5)
    alone, _ = serving.predicted(str(run), ["cat", "goatee", "a", "bee"], 64, "detail", 10)
    assert load.rate >= 0.7 * alone


@pytest.mark.slow
@pytest.mark.alone
def test_a_minute_of_ten_times_as_many_as_can_be_answered(run: Path) -> None:
    with serving.served(str(run), "--queue", "64") as (_, port):
        requests = serving.requests_for("run", ["cat", "goatee", "a", "bee"])
        asyncio.run(serving.loaded(port, requests, 16, 10))
        usual = asyncio.run(serving.loaded(port, requests, 16, 5))
        hurried = serving.requests_for("run", ["cat", "goatee", "a", "bee"], deadline=5.0)
        crowd = asyncio.run(serving.loaded(port, hurried, 640, 60))
        time.sleep(5)
        again = asyncio.run(serving.loaded(port, requests, 16, 5))
    assert set(crowd.statuses) <= {"200", "429", "503"}
    assert crowd.quantile(0.99) <= 5.0
    assert again.statuses == Counter({"200": again.statuses["200"]})
    assert again.quantile(0.5) < 2 * usual.quantile(0.5)
