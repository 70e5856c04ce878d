"""A non-local block over steps, and over the places within a step: one, two and three dimensions from a setting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from recurra.attention.non_local import NonLocal
from recurra.encoders.non_local_steps import NonLocalSteps, non_local_steps
from recurra.errors import ConfigError
from recurra.padding import Padded

SHAPES: list[list[int]] = [[], [3], [2, 3]]


def drawn(shape: list[int], similarity: Any = "dot") -> NonLocalSteps:
    torch.manual_seed(1)
    block = NonLocalSteps(12, shape=shape, similarity=similarity).double()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return block


@pytest.mark.parametrize("similarity", ["dot", "additive"])
@pytest.mark.parametrize("shape", SHAPES, ids=["1-d", "2-d", "3-d"])
def test_every_place_of_every_step_sees_all_others(shape: list[int], similarity: str) -> None:
    block = drawn(shape, similarity)
    x = torch.randn(1, 4, 12).double()
    found = block(Padded.full(x)).values
    # The same as one long row of all places, in any order.
    channels = 12 // int(np.prod(shape))
    row = x.reshape(1, -1, channels).transpose(1, 2)
    assert_close(found, block.block(row).transpose(1, 2).reshape(x.shape))
    assert not torch.allclose(found, x)


@pytest.mark.parametrize("shape", SHAPES, ids=["1-d", "2-d", "3-d"])
def test_padding_and_other_rows_change_nothing(shape: list[int]) -> None:
    block = drawn(shape, "scaled_dot")
    x = torch.randn(2, 5, 12).double()
    x[1, 3:] = 7.0
    together = block(Padded(x, torch.tensor([5, 3]))).values
    assert_close(together[:1], block(Padded.full(x[:1])).values)
    assert_close(together[1:, :3], block(Padded.full(x[1:, :3])).values)
    assert block(Padded(x[:, :0], torch.tensor([0, 0]))).values.shape == (2, 0, 12)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"name": "dot", "shape": [5]}, r"shape = \[5\]: a step has 12 numbers, which must be a whole number for each"),
        ({"name": "dot", "shape": [1, 2, 3]}, "a map of at most two dimensions"),
        ({"name": "dot", "shape": "8x8"}, r"shape must be a list of whole numbers, such as \[8, 8\]"),
        ({"name": "dot", "inner": "half"}, "inner must be a whole number"),
        ("dott", "there is no attention 'dott'. Did you mean 'dot'?"),
    ],
)
def test_what_is_no_such_block_is_refused(spec: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        non_local_steps(spec, 12)


def test_none_is_none_and_options_reach_the_similarity() -> None:
    assert non_local_steps("none", 12) is None
    found = non_local_steps({"name": "projected_dot", "size": 4, "heads": 2, "shape": [3], "inner": 2}, 12)
    assert found is not None
    assert found.block.attention is not None
    assert (found.block.attention.heads, found.block.inner, found.shape) == (2, 2, (3,))


def test_a_block_with_a_similarity_is_its_equation() -> None:
    torch.manual_seed(3)
    block = NonLocal(4, inner=3, similarity={"name": "projected_dot", "size": 2, "heads": 3}).double()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    x = torch.randn(1, 4, 5).double()
    w = {name: value.detach().numpy() for name, value in block.state_dict().items()}
    read = x[0].T.numpy()
    q, k, g = (read @ w[f"{part}.weight"].T + w[f"{part}.bias"] for part in ("theta", "phi", "g"))
    q, k = q @ w["attention.from_query.weight"].T, k @ w["attention.from_memory.weight"].T
    z = np.zeros((5, 3))
    for head in range(3):
        own = slice(2 * head, 2 * head + 2)
        e = q[:, own] @ k[:, own].T / np.sqrt(2)
        alpha = np.exp(e) / np.exp(e).sum(1, keepdims=True)
        z[:, head] = alpha @ g[:, head]
    wanted = read + z @ w["to_output.weight"].T + w["to_output.bias"]
    np.testing.assert_allclose(block(x)[0].T.detach().numpy(), wanted, atol=1e-12)
