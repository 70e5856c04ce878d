"""Weights to and from torch.nn.LSTM, GRU and RNN: the same function on both sides."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from recurra.cells import GRU, AnyCell, Spec, WeightDrop
from recurra.engines.vendor import kernel, mismatch
from recurra.errors import ConfigError
from recurra.stacks.merge import Concat
from recurra.stacks.recurrent import Recurrent


def from_torch(module: nn.RNNBase) -> Recurrent:
    """Convert a torch.nn.LSTM, GRU or RNN to a Recurrent with the same weights.

    Like every Recurrent it is batch first, whatever the module's batch_first. torch has two biases, b_ih and b_hh,
    where the equations have one: they are added, except b_hn of the GRU, which is inside the reset and is kept
    separately.

    >>> theirs = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True)
    >>> ours = from_torch(theirs)
    >>> from recurra import Padded
    >>> x = torch.randn(2, 5, 3)
    >>> torch.allclose(ours(Padded.full(x))[0].values, theirs(x)[0], atol=1e-6)
    True
    """
    if type(module) not in (nn.LSTM, nn.GRU, nn.RNN):
        raise ConfigError(f"from_torch takes a torch.nn.LSTM, GRU or RNN, but got a {type(module).__name__}.")
    assert isinstance(module, nn.LSTM | nn.GRU | nn.RNN)
    if module.proj_size:
        raise ConfigError(
            f"an LSTM with proj_size = {module.proj_size} is not supported: recurra has no LSTM cell with a projection."
        )
    rnn = Recurrent(
        _spec(module),
        module.input_size,
        module.hidden_size,
        layers=module.num_layers,
        bidirectional=module.bidirectional,
        dropout=module.dropout,
    )
    rnn = rnn.to(next(module.parameters()))
    for number, layer in enumerate(rnn._layers()):
        for cell, suffix in zip(layer, ("", "_reverse"), strict=False):
            _fill(cell, *_torch_weights(module, number, suffix))
    if not any(parameter.requires_grad for parameter in module.parameters()):
        rnn.requires_grad_(False)
    return rnn.train(module.training)


def to_torch(rnn: Recurrent) -> nn.LSTM | nn.GRU | nn.RNN:
    """Convert a Recurrent to the equivalent torch.nn module; raises ConfigError if torch has none.

    Each bias is saved as b_ih = b and b_hh = 0, so that their sum is the same to the last bit.

    >>> from recurra import Recurrent
    >>> to_torch(Recurrent("lstm", 3, 4, layers=2))
    LSTM(3, 4, num_layers=2, batch_first=True)
    """
    if not isinstance(rnn, Recurrent):
        raise ConfigError(f"to_torch takes a Recurrent, but got a {type(rnn).__name__}.")
    layers = rnn._layers()
    first = layers[0][0]
    reason = mismatch(first, first.fixed(1, next(first.parameters()))) or _unlike_torch(rnn)
    if reason is not None:
        raise ConfigError(f"this Recurrent cannot be converted to a torch module: {reason}.")
    kernels = [[kernel(cell, cell.fixed(1, next(cell.parameters()))) for cell in layer] for layer in layers]
    function = kernels[0][0].function
    kind = {"lstm": nn.LSTM, "gru": nn.GRU}.get(function, nn.RNN)
    options = {"nonlinearity": function.removeprefix("rnn_")} if kind is nn.RNN else {}
    module: nn.LSTM | nn.GRU | nn.RNN = kind(
        rnn.input_size,
        first.hidden_size,
        len(layers),
        bias=kernels[0][0].b is not None,
        batch_first=True,
        dropout=rnn.dropout if len(layers) > 1 else 0.0,
        bidirectional=rnn.bidirectional,
        **options,
    )
    module = module.to(next(rnn.parameters()))
    with torch.no_grad():
        for number, directions in enumerate(kernels):
            for found, suffix in zip(directions, ("", "_reverse"), strict=False):
                theirs = _torch_weights(module, number, suffix)
                for target, value in zip(theirs, (found.W, found.U, found.b, found.b_state), strict=True):
                    if target is not None and value is not None:
                        target.copy_(value)
    return module.train(rnn.training)


def _spec(module: nn.LSTM | nn.GRU | nn.RNN) -> Spec:
    if isinstance(module, nn.LSTM):
        return {"name": "lstm", "bias": module.bias}
    if isinstance(module, nn.GRU):
        return {"name": "gru", "reset": "after", "update": "keep", "bias": module.bias}
    return {"name": "elman", "activation": module.nonlinearity, "bias": module.bias}


def _torch_weights(module: nn.RNNBase, number: int, suffix: str) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    names = [f"{name}_l{number}{suffix}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    W, U, b, b_state = (getattr(module, name, None) for name in names)
    assert isinstance(W, Tensor)
    assert isinstance(U, Tensor)
    return W, U, b, b_state


@torch.no_grad()
def _fill(cell: AnyCell, W: Tensor, U: Tensor, b: Tensor | None, b_state: Tensor | None) -> None:
    cell.from_input.weight.copy_(W)  # type: ignore[union-attr,operator]
    cell.from_state.copy_(U)  # type: ignore[operator]
    if b is None or b_state is None:
        return
    if isinstance(cell, GRU):
        H = cell.hidden_size
        assert cell.after_bias is not None
        cell.after_bias.copy_(b_state[2 * H :])
        b_state = torch.cat([b_state[: 2 * H], torch.zeros_like(b_state[2 * H :])])
    cell.from_input.bias.copy_(b + b_state)  # type: ignore[union-attr,operator]


def _unlike_torch(rnn: Recurrent) -> str | None:
    """What a torch module does not have, in words."""
    if len({cell.hidden_size for layer in rnn._layers() for cell in layer}) > 1:
        return "all layers of a torch module have the same size"
    if rnn.direction == "backward":
        return "torch has no stack that only reads backward"
    if not all(isinstance(merge, Concat) for merge in rnn.merges):
        return "torch can only concatenate the directions"
    if rnn.mix != "last" or rnn.skip != "none":
        return "torch supports neither layer mixes nor skip connections"
    if rnn.training and any(isinstance(module, WeightDrop) for module in rnn.modules()):
        return "torch does not support weight dropout; call eval() first"
    if rnn.dropout and rnn.locked:
        return "torch has no locked dropout"
    return None
