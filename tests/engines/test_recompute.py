"""Reading in chunks that are computed again: the same numbers, less kept."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from recurra import ConfigError, Padded, Recurrent
from tests.engines.comparison import assert_agree, everything
from tests.variants import batch, model, random_states


@pytest.mark.parametrize("spec", ["lstm", "gru", "layer_norm_lstm", "min_gru", {"name": "orthogonal_elman"}])
@pytest.mark.parametrize("steps", [1, 3, 7, 100])
@pytest.mark.parametrize("every", [False, True])
def test_chunks_computed_again_give_the_same(spec: Any, steps: int, every: bool) -> None:
    rnn = model(spec, 3, 4, layers=2, bidirectional=True)
    x, start = batch([7, 0, 1, 5], extra=1), random_states(rnn, 4)
    expected = everything(rnn, "auto", x, start, every)
    rnn.recompute = steps
    assert_agree(everything(rnn, "auto", x, start, every), expected)


def test_the_same_masks_are_drawn_again() -> None:
    rnn = model({"name": "lstm", "wrap": [{"name": "zoneout", "rate": 0.3}]}, 3, 4, recompute=3)
    values = torch.randn(2, 8, 3).double().requires_grad_()

    def run(values: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(1)
        return rnn(Padded.full(values))[0].values

    assert torch.autograd.gradcheck(run, [values])


def test_less_is_kept_for_the_way_back() -> None:
    kept: dict[int, int] = {}
    for recompute in (0, 10):
        rnn = Recurrent("peephole_lstm", 8, 16, recompute=recompute)
        x = torch.randn(2, 200, 8)
        sizes: dict[int, int] = {}

        def pack(tensor: torch.Tensor, sizes: dict[int, int] = sizes) -> torch.Tensor:
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            rnn(Padded.full(x))
        kept[recompute] = sum(sizes.values())
    assert kept[10] < kept[0]


def test_in_evaluation_nothing_is_computed_twice() -> None:
    rnn = Recurrent("gru", 3, 4, recompute=2).eval()
    with torch.no_grad():
        outputs, _ = rnn(Padded.full(torch.randn(1, 5, 3)))
    assert outputs.values.shape == (1, 5, 4)


@pytest.mark.parametrize("recompute", [-1, 1.5, "some"])
def test_a_number_of_steps_that_cannot_be_is_refused(recompute: Any) -> None:
    with pytest.raises(ConfigError, match="recompute must be a whole number of at least 1"):
        Recurrent("gru", 3, 4, recompute=recompute)
