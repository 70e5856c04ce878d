"""Optimisers by name, schedules and averages against their formulas."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from recurra.errors import ConfigError
from recurra.settings import Part
from recurra.training.optimisation import OPTIMISERS, Average, Schedule, optimiser


@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_optimiser_makes_a_loss_smaller(name: str) -> None:
    weight = nn.Parameter(torch.tensor([3.0, -2.0]))
    chosen = optimiser(name, [weight], 0.1)
    for _ in range(50):
        chosen.zero_grad()
        weight.square().sum().backward()
        chosen.step()
    assert weight.detach().square().sum() < 13


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("adm", r"training.optimizer = 'adm' is not known. Did you mean 'adam'"),
        ({"name": "sgd", "momentun": 0.9}, r"'sgd' has no option 'momentun'. Did you mean 'momentum'"),
        ({"momentum": 0.9}, r"needs a name"),
        ({"name": "adam", "betas": [2.0, 0.9]}, r"'adam' cannot be created: Invalid beta"),
        ({"name": "adam", "fused": True}, r"'adam' has no option 'fused'"),
    ],
)
def test_an_optimiser_that_cannot_be_is_said(part: Part, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        optimiser(part, [torch.zeros(1, requires_grad=True)], 0.1)


@pytest.mark.parametrize(
    ("part", "step", "progress", "plateaus", "share"),
    [
        ("constant", 7, 0.9, 3, 1.0),
        ("linear", 7, 0.25, 0, 0.75),
        ({"name": "linear", "end": 0.5}, 7, 0.5, 0, 0.75),
        ("cosine", 7, 1 / 3, 0, (1 + math.cos(math.pi / 3)) / 2),
        ({"name": "cosine", "end": 0.2}, 7, 1.0, 0, 0.2),
        ("plateau", 7, 0.5, 3, 0.125),
        ({"name": "plateau", "factor": 0.1}, 7, 0.5, 5, 0.01),
    ],
)
def test_schedules_follow_their_formulas(part: Part, step: int, progress: float, plateaus: int, share: float) -> None:
    assert Schedule(part, warmup=0).share(step, progress, plateaus) == pytest.approx(share, abs=1e-12)


def test_warm_up_rises_to_its_height_within_a_tenth_of_training() -> None:
    schedule = Schedule("constant", warmup=100)
    assert [schedule.share(step, 0.0, 0) for step in (0, 49, 99, 500)] == [0.01, 0.5, 1.0, 1.0]
    assert schedule.share(1, 0.05, 0) == 0.5
    assert schedule.share(1, 0.1, 0) == 1.0


def test_inverse_sqrt_falls_from_the_end_of_the_warm_up() -> None:
    schedule = Schedule("inverse_sqrt", warmup=4)
    assert schedule.share(3, 0.0, 0) == 1.0
    assert schedule.share(15, 0.0, 0) == 0.5


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("cosin", "Did you mean 'cosine'"),
        ({"name": "cosine", "start": 1}, "'cosine' has no option 'start'"),
        ({"name": "cosine", "end": "x"}, "training.schedule.end must be a number of at least 0, but is 'x'"),
        ({"name": "plateau", "factor": True}, "training.schedule.factor must be a number"),
    ],
)
def test_a_schedule_that_cannot_be_is_said(part: Part, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Schedule(part, warmup=0)


def weights_over_time() -> list[nn.Linear]:
    made = []
    for number in range(30):
        layer = nn.Linear(1, 1)
        nn.init.constant_(layer.weight, float(number * number))
        made.append(layer)
    return made


def test_ema_is_the_recursion_of_its_formula() -> None:
    over_time = weights_over_time()
    average = Average({"name": "ema", "decay": 0.7}, over_time[0])
    expected, count = 0.0, 0
    for number, model in enumerate(over_time[1:]):
        decay = min(0.7, (1 + number) / (10 + number))
        expected = decay * expected + (1 - decay) * float(model.weight.detach())
        count = average.update(model, count, progress=0.0)
    assert count == 29
    assert float(average.model.weight) == pytest.approx(expected, rel=1e-5)  # type: ignore[arg-type]


def test_mean_is_that_of_the_steps_after_its_share_of_training() -> None:
    over_time = weights_over_time()
    average = Average({"name": "mean", "after": 0.5}, over_time[0])
    count = 0
    for number, model in enumerate(over_time):
        count = average.update(model, count, progress=number / 30)
    late = [float(number * number) for number in range(15, 30)]
    assert float(average.model.weight) == pytest.approx(sum(late) / len(late), rel=1e-5)  # type: ignore[arg-type]


def test_a_triggered_mean_begins_when_validation_no_longer_improves_and_then_goes_on() -> None:
    over_time = weights_over_time()
    average = Average({"name": "triggered", "patience": 2}, over_time[0])
    count = 0
    for number, model in enumerate(over_time):
        worse = 2 if number == 10 else 0  # once triggered, a better score does not end it
        count = average.update(model, count, progress=0.0, worse=worse)
        if number == 9:
            assert float(average.model.weight) == 81.0  # type: ignore[arg-type]
    late = [float(number * number) for number in range(10, 30)]
    assert float(average.model.weight) == pytest.approx(sum(late) / len(late), rel=1e-5)  # type: ignore[arg-type]


def test_an_average_of_checkpoints_is_the_mean_of_the_last_ones_and_counts_a_step_once() -> None:
    model = nn.Linear(1, 1, bias=False)
    average = Average({"name": "checkpoints", "last": 3}, model)
    for step, value in ((10, 1.0), (20, 2.0), (20, 9.0), (30, 3.0), (40, 7.0)):
        with torch.no_grad():
            model.weight.fill_(value)
        average.update(model, 0, progress=0.5)
        average.keep(step)
    assert float(average.model.weight) == 4.0  # type: ignore[arg-type]
    again = Average({"name": "checkpoints", "last": 3}, model)
    again.put_kept(average.kept_tensors())
    with torch.no_grad():
        model.weight.fill_(2.0)
    again.keep(50)
    assert float(again.model.weight) == 4.0  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"training.average.last must be a whole number above 0, but is 0\.5"):
        Average({"name": "checkpoints", "last": 0.5}, model)


def test_an_average_is_a_model_of_its_own() -> None:
    model = nn.Linear(1, 1)
    average = Average("ema", model)
    before = float(average.model.weight)  # type: ignore[arg-type]
    with torch.no_grad():
        model.weight += 1
    assert float(average.model.weight) == before  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"training.average.decay must be below 1, but is 1"):
        Average({"name": "ema", "decay": 1}, model)


def test_a_rate_is_halved_in_equal_parts_of_training() -> None:
    schedule = Schedule({"name": "halving", "times": 4}, warmup=0)
    shares = [schedule.share(step=1, progress=progress, plateaus=0) for progress in (0, 0.24, 0.25, 0.5, 0.75, 0.99)]
    assert shares == [1, 1, 0.5, 0.25, 0.125, 0.125]
    later = Schedule({"name": "halving", "times": 4, "after": 0.2}, warmup=0)
    shares = [later.share(step=1, progress=progress, plateaus=0) for progress in (0, 0.39, 0.41, 0.59, 0.61, 0.81)]
    assert shares == [1, 1, 0.5, 0.5, 0.25, 0.125]
    with pytest.raises(ConfigError, match=r"training.schedule.after must be below 1, but is 1"):
        Schedule({"name": "halving", "after": 1}, warmup=0)
