"""The layers of 2017: norms after each part, ReLU and sinusoidal positions, against torch's own layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from recurra.errors import ConfigError
from recurra.padding import Padded
from recurra.transformer import Transformer
from tests.transformer.equations import vector_of

WIDTH, HEADS, INNER = 8, 2, 12


def drawn(*, causal: bool = False, memory_size: int | None = None, layers: int = 2) -> Transformer:
    torch.manual_seed(1)
    found = Transformer(
        *(WIDTH, WIDTH),
        layers=layers,
        heads=HEADS,
        feed_forward=INNER,
        causal=causal,
        memory_size=memory_size,
        form="vaswani",
    )
    for parameter in found.parameters():
        nn.init.normal_(parameter, std=0.5)
    return found.double().eval()


def by_torch(layer: Any, kind: type[nn.Module]) -> nn.Module:
    """torch's layer, post-norm with ReLU, with the weights of ours."""
    found: Any = kind(WIDTH, HEADS, INNER, 0.0, activation="relu", batch_first=True, norm_first=False).double().eval()
    attentions = [(found.self_attn, layer.attention.from_input.weight, layer.attention.output.weight)]
    norms = [(found.norm1, layer.attention_norm)]
    if layer.memory_attention is not None:
        cross = layer.memory_attention.attention
        both = torch.cat([cross.from_query.weight, cross.from_memory.weight, cross.to_values.weight])
        attentions.append((found.multihead_attn, both, layer.memory_attention.output.weight))
        norms.append((found.norm2, layer.memory_norm))
    norms.append((found.norm2 if layer.memory_attention is None else found.norm3, layer.norm))
    with torch.no_grad():
        for theirs, within, out in attentions:
            theirs.in_proj_weight.copy_(within)
            theirs.in_proj_bias.zero_()
            theirs.out_proj.weight.copy_(out)
            theirs.out_proj.bias.zero_()
        for theirs, ours in [*norms, (found.linear1, layer.inner), (found.linear2, layer.outer)]:
            theirs.weight.copy_(ours.weight)
            theirs.bias.copy_(ours.bias)
    return found


def placed(x: Tensor) -> Tensor:
    waves = np.stack([vector_of(position, WIDTH) for position in range(x.shape[1])])
    return x + torch.from_numpy(waves)


@pytest.mark.parametrize("causal", [False, True])
def test_layers_are_those_of_torch_with_norms_at_the_end(causal: bool) -> None:
    model = drawn(causal=causal)
    x, lengths = torch.randn(2, 5, WIDTH).double(), torch.tensor([5, 3])
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64) if causal else None
    y, padding = placed(x), torch.arange(5) >= lengths.unsqueeze(1)
    for layer in model.layers:
        y = by_torch(layer, nn.TransformerEncoderLayer)(
            y, src_mask=mask, src_key_padding_mask=torch.zeros(2, 5).double().masked_fill(padding, -torch.inf)
        )
    found, _ = model(Padded(x, lengths))
    for row, length in enumerate(lengths):
        assert_close(found.values[row, :length], y[row, :length])


def test_a_decoder_is_that_of_torch_and_step_by_step_the_same() -> None:
    model = drawn(causal=True, memory_size=WIDTH)
    x, memory = torch.randn(2, 4, WIDTH).double(), torch.randn(2, 3, WIDTH).double()
    mask = nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    y = placed(x)
    for layer in model.layers:
        y = by_torch(layer, nn.TransformerDecoderLayer)(y, memory, tgt_mask=mask)
    memories = model.remember(memory, torch.ones(2, 3, dtype=torch.bool))
    assert_close(model.read(Padded.full(x), None, memories).values, y)
    states = model.start(2, x)
    for t in range(4):
        batch = Padded.full(x[:, t : t + 1])
        reading = model.read(batch, states, memories)
        assert_close(reading.values[:, 0], y[:, t])
        states = model.after(reading, batch, states)


def test_only_the_form_of_2017_needs_positions_at_its_input() -> None:
    assert drawn().absolute
    assert not Transformer(8, 8).absolute
    assert "norm.weight" in Transformer(8, 8).state_dict()
    assert "norm.weight" not in drawn().state_dict()
    with pytest.raises(ConfigError, match="form = 'post' is not known"):
        Transformer(8, 8, form="post")  # type: ignore[arg-type]


@pytest.mark.parametrize("context", [None, 3])
def test_states_at_a_step_are_those_after_reading_up_to_it(context: int | None) -> None:
    torch.manual_seed(2)
    model = Transformer(WIDTH, WIDTH, layers=2, heads=2, causal=True, context=context).double().eval()
    before, x = (Padded.full(torch.randn(2, n, WIDTH).double()) for n in (4, 5))
    _, past = model(before)
    reading, places = model.read(x, past), torch.tensor([0, 2, 4])
    found = model.states_at(reading, x, past, 1, places)
    after = torch.randn(3, WIDTH).double()
    h, _ = model.step(after, found)
    for number, place in enumerate(places.tolist()):
        whole = torch.cat([before.values[1:], x.values[1:, : place + 1], after[number].view(1, 1, -1)], dim=1)
        assert_close(h[number], model(Padded.full(whole))[0].values[0, -1])
