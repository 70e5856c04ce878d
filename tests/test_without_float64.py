"""On a device without float64, all tasks train, answer and are evaluated as on the CPU, in float32."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import recurra
from recurra import padding
from recurra.densities import Counting, Density, NegativeBinomial, Poisson, StudentT
from recurra.runs import begin, setup
from recurra.settings import SettingError
from recurra.training.progress import Silent
from tests import without_float64
from tests.tasks.contracts import CASES, SMALL
from tests.training.small import small_setup
from tests.training.together import in_processes
from tests.without_float64 import NAME, Simulated

DENSITIES = ["gaussian", "student_t", "negative_binomial", "poisson", "quantiles", "mixture"]

PATHS = ["decoding.paths=20", "evaluation.paths=20"]

pytestmark = pytest.mark.skipif(
    not without_float64.CAN_BE_SIMULATED, reason="this torch takes no device that is written in Python"
)


def there(work: Callable[[], object]) -> None:
    """Do something in a process that has the device, since no process gets rid of it again."""
    assert in_processes(1, partial(simulated, work)) == [""]


def simulated(work: Callable[[], object]) -> None:
    without_float64.begin()
    with Simulated():  # type: ignore[no-untyped-call]
        work()


def refuse_what_the_device_has_not(folder: Path) -> None:
    x = torch.ones(3, device=NAME)
    assert (x.device.type, (x + x).tolist()) == (NAME, [2.0, 2.0, 2.0])
    for wrong in (x.double, lambda: x + torch.ones(3), lambda: torch.zeros(1, dtype=torch.float64, device=NAME)):
        with pytest.raises((TypeError, RuntimeError), match=r"float64|same device"):
            wrong()
    with pytest.raises(SettingError, match=r"training\.precision = 'float64' needs a device that has float64, and"):
        begin(small_setup(folder, "training.precision=float64", f"training.device={NAME}"), folder / "run", Silent())


def test_the_simulation_refuses_what_such_a_device_has_not(tmp_path: Path) -> None:
    there(partial(refuse_what_the_device_has_not, tmp_path))


def train_and_answer(name: str, more: Sequence[str], folder: Path) -> None:
    """Trained on the device, a run answers and is scored there as on the CPU."""
    case = CASES[name]
    data = folder / case.file
    data.write_text(case.content, "utf-8")
    gone = tuple(each.removeprefix("without ") for each in more if each.startswith("without "))
    usual = [each for each in (*SMALL, *case.settings) if not each.startswith(("training.device", *gone))]
    sets = [*usual, f"training.device={NAME}", *(each for each in more if not each.startswith("without "))]
    begin(setup(case.task, given={"train": str(data), "valid": str(data)}, overrides=sets), folder / "run", Silent())
    there, here = (recurra.load(folder / "run", device=device, trust=True) for device in (NAME, "cpu"))
    asked: Any = [*case.asked]
    for one, other in zip(there.predict(asked), here.predict(asked), strict=True):
        assert words_of(one.output) == words_of(other.output)
        assert numbers_of(one.output) == pytest.approx(numbers_of(other.output), rel=1e-3, abs=1e-3)
        assert one.score == pytest.approx(other.score, rel=1e-3, abs=1e-3, nan_ok=True)
    for view in () if more else case.views:
        shown = [numbers_of(model.explain(asked[0], show=view).text) for model in (there, here)]
        assert shown[0] == pytest.approx(shown[1], abs=0.02), view
    scores, right = ({**model.evaluate(data).values, "seconds": 0.0} for model in (there, here))
    assert scores == pytest.approx(right, rel=1e-3, abs=1e-3, nan_ok=True)


NUMBER = re.compile(r"-?\d+\.\d+")


def numbers_of(output: str) -> list[float]:
    return [float(each) for each in NUMBER.findall(output)]


def words_of(output: str) -> str:
    """The rest of it."""
    return NUMBER.sub("0", output)


HOUSE = [name for name in CASES if name not in ("ctc", "similarity")]  # which name no engine


@pytest.mark.parametrize(
    ("name", "more"),
    [
        *((name, []) for name in HOUSE),
        ("question_answering", ["model.sentence=bag", "without model.engine"]),
        ("question_answering", ["model.sentence=position", "without model.engine"]),
        ("seq2seq", ["decoding.search=greedy", "without decoding.width"]),
        ("seq2seq", ["decoding.search=sampling", "decoding.top_p=0.9", "without decoding.width"]),
        ("seq2seq", ["decoding.search=exhaustive", "decoding.max_length=2", "without decoding.width"]),
        ("seq2seq", ["decoding.coverage_penalty=0.2", "decoding.length_penalty=1"]),
        ("seq2seq", ["model.decoder.kind=ctc", "decoding.min_length=0"]),
        ("language_model", ["model.output=adaptive_softmax"]),
        *(("forecasting", [f"model.output={output}"]) for output in DENSITIES),
        *(("forecasting", [f"model.output={output}", *PATHS]) for output in ("student_t", "negative_binomial")),
        *(("forecasting", ["model.ahead=direct", f"model.output={output}"]) for output in ("gaussian", "poisson")),
    ],
)
def test_every_task_trains_and_answers_as_on_the_cpu(name: str, more: list[str], tmp_path: Path) -> None:
    there(partial(train_and_answer, name, more, tmp_path))


SHARES = torch.tensor([1e-9, 0.001, 0.05, 0.3, 0.5, 0.9, 0.999, 1 - 1e-9])


@pytest.mark.parametrize("kind", [NegativeBinomial, Poisson, StudentT])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0, 1000.0])
def test_in_float32_a_density_is_nearly_what_it_is_in_float64(
    kind: type[Density], scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    density = kind(3, 1)
    if isinstance(density, Counting):
        density.measured_in([scale])
    features = 3 * torch.randn(len(SHARES), 3)
    counts = (scale * torch.rand(len(SHARES), 1) * 5).round()
    values = counts / scale if isinstance(density, Counting) else 5 * torch.randn(len(SHARES), 1)

    def found(dtype: torch.dtype) -> list[Tensor]:
        x, h = values.to(dtype), features.to(dtype)
        one = copy.deepcopy(density).to(dtype)
        costs = one.costs(h, x)
        [slope] = torch.autograd.grad(costs.sum(), [one.get_parameter("readout.weight")])
        shares = SHARES.unsqueeze(1).to(dtype)
        return [costs, slope, one.mean(h), one.cdf(h, x), one.crps(h, x), one.quantile(h, shares)[2:-2]]

    exact = found(torch.float64)
    monkeypatch.setattr(padding, "WITHOUT_FLOAT64", {"cpu"})
    density = copy.deepcopy(density).float()  # by which the unit of a count becomes shorter too
    for short, long in zip(found(torch.float32), exact, strict=True):
        assert short.dtype == torch.float32
        largest = long.abs().max().clamp_min(1)
        assert (short - long).abs().max() < 2e-3 * largest
