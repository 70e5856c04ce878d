"""The feed-forward decoder against its equations in numpy, at once and step by step, alone and in company."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from recurra.config import Seq2SeqModel
from recurra.errors import ConfigError
from recurra.named import built
from recurra.padding import Padded
from recurra.settings import settings_from
from recurra.wirings import Shape, Source, Wiring
from tests.wirings.every import step_by_step

C, Q, X, H, D = 3, 2, 6, 5, 4
LENGTHS = [5, 2, 1]


def drawn(attention: Any = "bilinear", around: int = Q) -> Wiring:
    torch.manual_seed(7)
    shape = Shape("lstm", X, (H,), D, 0, H + D, attention, window=C, around=around)
    wiring = built(Wiring, "window", shape).double()
    for parameter in wiring.parameters():
        nn.init.normal_(parameter, std=0.7)
    return wiring.eval()


def sources(wiring: Wiring) -> tuple[torch.Tensor, Source]:
    places = torch.randn(3, 5, D, dtype=torch.float64)
    mask = Padded(places, torch.tensor(LENGTHS)).mask
    return places, Source(wiring.remember(places.masked_fill(~mask.unsqueeze(2), torch.nan), mask), None)


@pytest.mark.parametrize("around", [0, 1, 2])
def test_it_computes_the_equations_of_the_paper(around: int) -> None:
    wiring: Any = drawn(around=around)
    places, source = sources(wiring)
    x = torch.randn(3, 6, X, dtype=torch.float64)
    found = wiring(Padded.full(x), wiring.start((), source), source)
    U, P = wiring.from_tokens.weight.detach().numpy(), next(wiring.attention.parameters()).detach().numpy()
    for row, length in enumerate(LENGTHS):
        tilde = places[row, :length].numpy()
        bar = np.array([tilde[max(0, i - around) : i + around + 1].sum(0) / max(1, around) for i in range(length)])
        read = np.concatenate([np.zeros((C - 1, X)), x[row].numpy()])
        for t in range(6):
            E, G = (read[t : t + C, half].ravel() for half in (slice(0, X // 2), slice(X // 2, X)))
            scores = np.array([(G @ P @ k) if P.shape == (len(G), D) else (k @ P @ G) for k in tilde])
            p = np.exp(scores) / np.exp(scores).sum()
            expected = np.concatenate([np.tanh(U @ E), p @ bar])
            np.testing.assert_allclose(found.values[row, t].detach().numpy(), expected, atol=1e-12)
            np.testing.assert_allclose(found.weights[row, t, :length].detach().numpy(), p, atol=1e-12)


@pytest.mark.parametrize(
    "attention", ["additive", {"name": "projected_dot", "heads": 2}, {"name": "bilinear", "terms": ["coverage"]}]
)
def test_all_steps_at_once_are_one_step_after_the_other(attention: Any) -> None:
    wiring = drawn(attention)
    _, source = sources(wiring)
    x = torch.randn(3, 4, X, dtype=torch.float64)
    state = wiring.start((), source)
    assert_close(tuple(wiring(Padded.full(x), state, source)), tuple(step_by_step(wiring, x, state, source)))
    _, later = wiring.step(x[:, 0], state, source)
    rest = step_by_step(wiring, x[:, 1:], later, source)
    assert_close(tuple(wiring(Padded.full(x[:, 1:]), later, source)), tuple(rest))


def test_only_the_last_tokens_matter() -> None:
    wiring = drawn()
    _, source = sources(wiring)
    x = torch.randn(3, 6, X, dtype=torch.float64)
    changed = x.clone()
    changed[:, 1] += 1.0
    one, other = (wiring(Padded.full(each), wiring.start((), source), source).values for each in (x, changed))
    differs = (one - other).abs().amax((0, 2)) > 1e-9
    assert differs.tolist() == [False, *[True] * C, *[False] * (5 - C)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention": "none"}, "knows of the source what its attention sees"),
        ({"embedding": 7}, "model.embedding = 7 is odd: set 8"),
        ({"tied": "output"}, "no matrix to share"),
        ({"wiring": "feeding"}, "has no effect: model.decoder.kind = 'window'"),
        ({"start": "mean"}, "has no state to start from"),
        ({"layers": 2}, "has one layer, but 2 are set"),
        ({"decoder": {"kind": "window", "cell": "gru"}}, "'window' has no cells"),
        ({"decoder": {"kind": "rnn", "window": 3}}, "model.decoder.window = 3 has no effect"),
        ({"encoder": {"kind": "embeddings", "hidden": 3}}, "model.encoder.hidden = 3 has no effect"),
    ],
)
def test_what_it_has_no_place_for_is_refused(options: dict[str, Any], message: str) -> None:
    usual = {"attention": "bilinear", "decoder": {"kind": "window"}, "encoder": {"kind": "embeddings"}}
    with pytest.raises(ConfigError) as error:
        settings_from(Seq2SeqModel, {**usual, **options})
    assert message in str(error.value)
