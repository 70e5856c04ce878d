"""All that an engine answers, to be laid beside what another one answers. Needs no test runner."""

from __future__ import annotations

import torch
from torch import Tensor

from recurra import Padded, Recurrent
from recurra.stacks.recurrent import States
from tests.variants import flat


def everything(rnn: Recurrent, engine: str, x: Padded, start: States, every: bool = False) -> dict[str, Tensor]:
    """All that an engine answers, and the gradients of a sum in which every answer weighs differently."""
    rnn.engine = engine
    rnn.zero_grad()
    values = x.values.detach().requires_grad_()
    before = [field.detach().requires_grad_() for field in flat(start)]
    fields = iter(before)
    states = tuple(tuple(type(state)(*(next(fields) for _ in state)) for state in layer) for layer in start)
    torch.manual_seed(7)  # the same masks for every engine
    outputs, final = rnn(Padded(values, x.lengths), states, every=every)
    answers = [outputs.values, *flat(final)]
    weights = torch.Generator().manual_seed(11)
    total = sum((answer * torch.randn(answer.shape, generator=weights).to(answer)).sum() for answer in answers)
    assert isinstance(total, Tensor)
    total.backward()
    found = {f"answer {number}": answer.detach() for number, answer in enumerate(answers)}
    gradients = {"x": values, **{f"start {number}": field for number, field in enumerate(before)}}
    gradients.update(rnn.named_parameters())
    for name, tensor in gradients.items():
        found[f"gradient of {name}"] = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad.clone()
    return found


def assert_agree(
    found: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float = 1e-10, *, engine: str = "the engine"
) -> None:
    """Within the tolerance, or within that share of the largest where it is above 1.

    Layer norms of three numbers can make gradients of thousands, which one rounding of the input moves by 1e-8.
    """
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        difference = (found[name] - value).abs().max().item() if value.numel() else 0.0
        largest = value.abs().max().item() if value.numel() else 0.0
        assert difference < tolerance * max(1.0, largest), f"{engine}: {name} differs by {difference} of {largest}"
