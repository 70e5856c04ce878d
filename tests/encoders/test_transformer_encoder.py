"""A Transformer that makes one vector of a sequence: the same alone and in any batch, against its parts by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from recurra.encoders.transformer_encoder import TransformerEncoder
from recurra.padding import Padded

SUMMARIES: list[Any] = ["mean", "max", {"name": "attention", "queries": 2, "size": 3}]


def network(summary: Any = "mean", **options: Any) -> TransformerEncoder:
    torch.manual_seed(1)
    return TransformerEncoder(3, 8, summary_by=summary, layers=2, heads=2, **options).double().eval()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("summary", SUMMARIES)
def test_a_row_alone_gives_the_same_as_in_a_batch_whatever_padding_holds(summary: Any, causal: bool) -> None:
    encode = network(summary, causal=causal)
    lengths = [5, 1, 0, 3]
    x = torch.randn(4, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    together = encode(Padded(x, torch.tensor(lengths)))
    for row, length in enumerate(lengths):
        alone = encode(Padded.full(x[row : row + 1, :length]))
        assert_close(together.vector[row], alone.vector[0], atol=1e-12, rtol=0)
        if together.weights is not None:
            assert_close(together.weights[row, :, :length], alone.weights[0], atol=1e-12, rtol=0)
            assert bool((together.weights[row, :, length:] == 0).all())
    assert bool(together.vector.isfinite().all())


def test_the_vector_is_the_summary_of_all_steps() -> None:
    encode = network("mean")
    x = torch.randn(1, 4, 3, dtype=torch.float64)
    outputs, _ = encode.transformer(Padded.full(x))
    assert_close(encode(Padded.full(x)).vector, outputs.values.mean(1), atol=1e-12, rtol=0)


def test_the_first_step_sees_the_last_unless_it_is_causal() -> None:
    x = torch.randn(1, 4, 3, dtype=torch.float64)
    y = x.clone()
    y[0, 3] += 1
    for causal in (False, True):
        encode = network(causal=causal)
        first, second = (encode.transformer(Padded.full(each))[0].values[0, 0] for each in (x, y))
        assert torch.equal(first, second) == causal


def test_input_dropout_takes_features_for_a_whole_row() -> None:
    encode = network(input_dropout=0.5).train()
    x = Padded.full(torch.ones(200, 4, 3, dtype=torch.float64))
    dropped = encode.drop(x).values
    assert bool((dropped == dropped[:, :1]).all())
    assert float((dropped == 0).double().mean()) == pytest.approx(0.5, abs=0.1)
