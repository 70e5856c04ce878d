"""Weights to and from torch: the same function on both sides."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from recurra import ConfigError, Padded, Recurrent, from_torch, to_torch
from tests.variants import flat, model

MODULES: dict[str, tuple[type[nn.LSTM | nn.GRU | nn.RNN], dict[str, Any]]] = {
    "lstm": (nn.LSTM, {}),
    "gru": (nn.GRU, {}),
    "rnn tanh": (nn.RNN, {}),
    "rnn relu": (nn.RNN, {"nonlinearity": "relu"}),
}


@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("engine", ["vendor", "loop"])
def test_from_torch_computes_what_torch_computes(
    kind: str, layers: int, bidirectional: bool, bias: bool, engine: str
) -> None:
    make, options = MODULES[kind]
    theirs = make(5, 7, layers, bias=bias, bidirectional=bidirectional, batch_first=True, **options).double()
    ours = from_torch(theirs)
    ours.engine = engine
    x = torch.randn(4, 6, 5).double()
    ways = layers * (1 + bidirectional)
    h, c = torch.randn(ways, 4, 7).double(), torch.randn(ways, 4, 7).double()
    expected, last = theirs(x, (h, c) if make is nn.LSTM else h)
    given = [(h[way], c[way]) if make is nn.LSTM else (h[way],) for way in range(ways)]
    start = ours.start(4)
    per_layer = 1 + bidirectional
    states = tuple(
        tuple(type(state)(*given[number * per_layer + way]) for way, state in enumerate(layer))
        for number, layer in enumerate(start)
    )
    outputs, final = ours(Padded.full(x), states)
    torch.testing.assert_close(outputs.values, expected, rtol=0, atol=1e-14)
    h_last, *rest = last if make is nn.LSTM else (last,)
    torch.testing.assert_close(torch.stack([s[0] for layer in final for s in layer]), h_last, rtol=0, atol=1e-14)
    for c_last in rest:
        torch.testing.assert_close(torch.stack([s[1] for layer in final for s in layer]), c_last, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "spec",
    [
        "lstm",
        {"name": "lstm", "bias": False},
        "elman",
        {"name": "elman", "activation": "relu"},
        {"name": "gru", "reset": "after", "update": "keep"},
        {"name": "gru", "reset": "after", "update": "take"},
        {"name": "gru", "reset": "after", "bias": False},
    ],
)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_to_torch_and_back_computes_the_same_to_the_last_bit(spec: Any, bidirectional: bool) -> None:
    ours = model(spec, 5, 7, layers=2, bidirectional=bidirectional, engine="vendor")
    theirs = to_torch(ours)
    x = torch.randn(4, 6, 5).double()
    outputs, states = ours(Padded.full(x))
    back = from_torch(theirs)
    back.engine = "vendor"
    again, final = back(Padded.full(x))
    assert torch.equal(again.values, outputs.values)
    assert all(torch.equal(a, b) for a, b in zip(flat(final), flat(states), strict=True))
    # torch's own two-way call may add its products in another order.
    torch.testing.assert_close(theirs(x)[0], outputs.values, rtol=0, atol=1e-14 if bidirectional else 0)


def test_the_second_bias_is_saved_as_zero() -> None:
    theirs = to_torch(Recurrent("lstm", 3, 4))
    assert theirs.get_parameter("bias_hh_l0").tolist() == [0.0] * 16
    assert theirs.get_parameter("bias_ih_l0").tolist() == [0.0] * 4 + [1.0] * 4 + [0.0] * 8


def test_frozen_weights_stay_frozen_and_a_single_layer_has_no_dropout() -> None:
    theirs = nn.GRU(3, 4).requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in from_torch(theirs).parameters())
    assert to_torch(Recurrent("lstm", 3, 4, dropout=0.3)).dropout == 0
    with pytest.raises(ConfigError, match="to_torch takes a Recurrent, but got a GRU"):
        to_torch(theirs)  # type: ignore[arg-type]


def test_dropout_type_and_mode_are_kept() -> None:
    theirs = nn.LSTM(3, 4, 2, dropout=0.3).to(torch.bfloat16).eval()
    ours = from_torch(theirs)
    assert ours.dropout == 0.3
    assert not ours.training
    assert next(ours.parameters()).dtype == torch.bfloat16
    back = to_torch(ours)
    assert back.dropout == 0.3
    assert not back.training
    assert back.weight_ih_l0.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Linear(3, 4), "from_torch takes a torch.nn.LSTM, GRU or RNN, but got a Linear"),
        (nn.LSTM(3, 4, proj_size=2), "an LSTM with proj_size = 2 is not supported"),
        (type("Mine", (nn.LSTM,), {})(3, 4), "but got a Mine"),
    ],
)
def test_what_cannot_come_from_torch_is_refused(module: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_torch(module)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"cell": "peephole_lstm"}, "torch has no kernel for 'peephole_lstm'"),
        ({"cell": "gru"}, "torch's GRU applies the reset gate after the product"),
        ({"cell": {"name": "lstm", "wrap": [{"name": "zoneout", "rate": 0.1}]}}, "torch has no kernel for 'zoneout'"),
        ({"hidden_size": [4, 5]}, "all layers of a torch module have the same size"),
        ({"direction": "backward"}, "torch has no stack that only reads backward"),
        ({"bidirectional": True, "merge": "sum"}, "torch can only concatenate the directions"),
        ({"layers": 2, "mix": "mean"}, "torch supports neither layer mixes nor skip connections"),
        ({"layers": 2, "skip": "residual"}, "torch supports neither layer mixes nor skip connections"),
        ({"layers": 2, "dropout": 0.1, "locked": True}, "torch has no locked dropout"),
        ({"cell": {"name": "lstm", "wrap": [{"name": "weight_drop", "rate": 0.1}]}}, "torch does not support"),
    ],
)
def test_what_torch_does_not_have_is_refused_with_the_reason(arguments: dict[str, Any], reason: str) -> None:
    rnn = Recurrent(**{"cell": "lstm", "input_size": 3, "hidden_size": 4, **arguments})
    with pytest.raises(ConfigError, match=f"this Recurrent cannot be converted to a torch module: {reason}"):
        to_torch(rnn)
