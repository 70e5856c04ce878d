"""Exposure bias, against loops that feed a model by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from recurra.analysis.exposure import Exposed, Exposure
from recurra.errors import DataError
from recurra.forecasts.several import exposed
from recurra.models import likelihood, reviewing, searching
from recurra.models.forcing import Forced
from recurra.models.language_model import TextBatch
from recurra.padding import Padded
from tests.models.pairs import PAIRS, network
from tests.models.test_scheduled_sampling import LINES, SIZES, forecaster, next_token, series


def test_pairs_cost_what_training_costs_where_it_reads_its_own_tokens() -> None:
    model = network(wiring="feeding")
    items = searching.run_free(model, PAIRS)
    assert PAIRS.target is not None
    assert [len(item.counts) for item in items] == PAIRS.target.lengths.tolist()
    forced, free = (sum(float(getattr(item, name).sum()) for item in items) for name in ("forced", "free"))
    assert forced == pytest.approx(model.loss(PAIRS).item())
    assert free == pytest.approx(model.train().loss(PAIRS, forced=Forced(0.0)).item())
    assert all(item.forced[0] == item.free[0] for item in items)


@pytest.mark.parametrize("context", [0, 2])
def test_a_text_runs_free_after_what_was_read_of_it(context: int) -> None:
    model = next_token().eval()
    inputs, targets = torch.tensor([[1, 5, 6, 2, 3], [1, 3, 3, 4, 2]]), torch.tensor([[5, 6, 2, 3, 1], [3, 3, 4, 2, 1]])
    items = likelihood.run_free(model, TextBatch(Padded.full(inputs), targets, None), context=context)
    for row, item in enumerate(items):
        for name, is_free in (("forced", False), ("free", True)):
            states, token, found, right = model.start(1), inputs[row, :1], [], []
            for place in range(5):
                reads_own = is_free and place > context
                log_p, states = model.step(token if reads_own else inputs[row, place : place + 1], states)
                token = log_p.argmax(1)
                found.append(-float(log_p[0, targets[row, place]].detach()))
                right.append(float(token[0] == targets[row, place]))
            assert getattr(item, name).tolist() == pytest.approx(found[context:])
            assert getattr(item, f"{name}_right").tolist() == right[context:]
    assert [len(each.counts) for each in likelihood.run_free(model, LINES)] == LINES.inputs.lengths.tolist()


@pytest.mark.parametrize("encoder", ["rnn", "transformer"])
@pytest.mark.parametrize("output", ["gaussian", "bernoulli"])
def test_a_forecaster_runs_free_from_each_origin(output: str, encoder: str) -> None:
    model, batch = forecaster(output, encoder=encoder, **SIZES[encoder]).eval(), series(output)
    first = 0 if output == "bernoulli" else 1
    origins = [np.array([1, 3]), np.array([2])]
    items = [
        exposed([each], coins=output == "bernoulli") for each in reviewing.run_free(model, batch, origins, horizon=4)
    ]
    read, targets = model.questions(batch.values).values, model.targets(batch)
    for row, (item, length) in enumerate(zip(items, [6, 4], strict=True)):
        sums = np.zeros((3, 4))
        for origin in origins[row].tolist():
            for kind in (0, 1):
                states, own = model.stack.start(1), None
                for place in range(length - first):
                    ahead = place + first - origin
                    value = own if kind and ahead > 0 and own is not None else read[row : row + 1, place]
                    features, states = model.step(value, states)
                    own = model.density.best(features)
                    if not 0 <= ahead < 4:
                        continue
                    wanted = targets[row : row + 1, place : place + 1]
                    if output == "bernoulli":
                        cost = model.density.loss(features.unsqueeze(1), wanted, torch.ones(1, 1) > 0).sum()
                    else:
                        cost = (model.density.mean(features) - wanted[:, 0]).abs().nanmean()
                    sums[kind, ahead] += float(cost.detach())
                    sums[2, ahead] += 1 - kind
        np.testing.assert_allclose(np.stack(item[:3]), sums, atol=1e-10)


def test_rare_positions_are_measured_but_not_drawn() -> None:
    long = Exposed(np.ones(3), np.array([1.0, 2.0, 9.0]), np.ones(3), np.ones(3), np.zeros(3))
    short = Exposed(*(each[:2] for each in long))  # type: ignore[index]
    found = Exposure.of([long, *[short] * 99], "nll")
    assert found.counts.tolist() == [100, 100, 1]
    assert found.bias == pytest.approx((99 * 1 + 1 + 8) / 201)
    assert found.low <= found.bias <= found.high
    assert found.values["free_running_accuracy"] == 0.0
    costs, accuracy, predictions = found.view().panels
    assert list(costs.curves[1].y) == [1.0, 2.0]
    assert list(accuracy.curves[0].x) == [1.0, 2.0]
    assert list(predictions.curves[0].y) == [100.0, 100.0]
    with pytest.raises(DataError, match="there is nothing to compare"):
        Exposure.of([Exposed(np.zeros(0), np.zeros(0), np.zeros(0))], "nll")
