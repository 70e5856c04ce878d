"""Every summary: its equation in numpy, padding, rows without a step, and bad options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from recurra.encoders.summaries import Summary, state_sizes, summary
from recurra.errors import ConfigError
from recurra.named import catalogue
from recurra.padding import Padded
from recurra.stacks.recurrent import Recurrent

LENGTHS = [4, 0, 6, 1]


def read(*, cell: str = "lstm", bidirectional: bool = True, merge: str = "concat") -> tuple[Recurrent, Padded, Any]:
    torch.manual_seed(2)
    network = Recurrent(cell, 3, 5, layers=2, bidirectional=bidirectional, merge=merge, engine="loop").double()
    x = torch.randn(4, 6, 3, dtype=torch.float64)
    outputs, states = network(Padded(x, torch.tensor(LENGTHS)))
    return network, outputs, states


def by_numpy(name: str, row: int, network: Recurrent, outputs: Padded) -> NDArray[np.float64]:
    """The summary of one row, from its outputs alone; a bidirectional network has its halves beside each other."""
    length = LENGTHS[row]
    h = outputs.values[row, :length].detach().numpy()
    if name == "mean":
        return h.mean(0) if length else np.zeros(h.shape[1])
    if name == "max":
        return h.max(0) if length else np.zeros(h.shape[1])
    assert name in ("last", "ends")
    half = h.shape[1] // 2
    if length == 0:
        return np.zeros(h.shape[1])
    return np.concatenate([h[-1, :half], h[0, half:]]) if network.bidirectional else h[-1]


@pytest.mark.parametrize(
    ("name", "both"), [("mean", True), ("max", True), ("last", True), ("ends", True), ("last", False), ("max", False)]
)
def test_the_equation_of_a_summary_holds(name: str, both: bool) -> None:
    network, outputs, states = read(bidirectional=both)
    made = summary(name, network.output_size, state_sizes(network))
    vector = made(outputs, states).vector.detach().numpy()
    assert vector.shape == (4, made.output_size)
    for row in range(4):
        assert np.allclose(vector[row], by_numpy(name, row, network, outputs), atol=1e-12)


@pytest.mark.parametrize("both", [True, False])
def test_the_cells_memory_is_that_after_the_last_real_step(both: bool) -> None:
    network, outputs, states = read(bidirectional=both)
    made = summary("last_cell", network.output_size, state_sizes(network))
    vector = made(outputs, states).vector.detach()
    assert made.output_size == vector.shape[1] == (20 if both else 10)
    # h_T is what `last` gives, and c_T that with which h_T = o ∘ tanh(c_T) for the o of the last step.
    torch.manual_seed(2)
    again = Recurrent("lstm", 3, 5, layers=2, bidirectional=both, engine="loop").double()
    x = torch.randn(4, 6, 3, dtype=torch.float64)
    parts = again.parts(Padded(x, torch.tensor(LENGTHS)))[-1]
    for row, length in enumerate(LENGTHS):
        for number, direction in enumerate(parts):
            if length == 0:
                assert (vector[row] == 0).all()
                continue
            at = length - 1 if number == 0 else 0
            expected = torch.cat([direction.h[row, at], direction.c[row, at]])
            assert torch.allclose(vector[row, 10 * number : 10 * (number + 1)], expected, atol=1e-12)


def test_learned_queries_stand_beside_each_other() -> None:
    network, outputs, states = read()
    made = summary({"name": "attention", "queries": 3, "size": 4}, 10, state_sizes(network)).double()
    vector, weights = made(outputs, states)
    assert made.output_size == 30
    assert weights is not None
    expected = torch.einsum("bkt,bth->bkh", weights, outputs.zeroed().values)
    assert torch.allclose(vector, expected.flatten(1), atol=1e-12)
    assert (vector[1] == 0).all()


@pytest.mark.parametrize("name", catalogue(Summary))
@pytest.mark.parametrize("cell", ["lstm", "gru", "slstm"])
def test_padding_changes_nothing_and_a_batch_of_empty_rows_has_a_summary(name: str, cell: str) -> None:
    network, outputs, states = read(cell=cell, merge="sum")
    torch.manual_seed(3)
    made = summary(name, network.output_size, state_sizes(network)).double()
    together = made(outputs, states).vector
    for row, length in enumerate(LENGTHS):
        alone = Padded(outputs.values[row : row + 1, :length], torch.tensor([length]))
        own = tuple(tuple(type(s)(*(f[row : row + 1] for f in s)) for s in layer) for layer in states)
        assert torch.allclose(made(alone, own).vector[0], together[row], atol=1e-12)
    spoilt = Padded(outputs.values.masked_fill(~outputs.mask.unsqueeze(2), torch.nan), outputs.lengths)
    assert torch.equal(made(spoilt, states).vector, together)


def test_ends_need_both_directions() -> None:
    with pytest.raises(
        ConfigError, match=r"ends' joins the final states of two directions.*model\.bidirectional = true"
    ):
        summary("ends", 5, [[5]])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("maximum", "there is no summary 'maximum'.*Did you mean 'max'"),
        ({"name": "attention", "query": 2}, "'attention' has no option 'query'.*Did you mean 'queries'"),
        ({"name": "attention", "queries": 0}, "queries must be"),
    ],
)
def test_a_summary_that_cannot_be_is_refused(spec: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        summary(spec, 5, [[5]])
