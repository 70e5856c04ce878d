"""A Transformer: its equations, padding, what it may see, and one step after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from recurra.attention.fused import attended
from recurra.attention.projected_dot import ProjectedDot
from recurra.attention.rotary import rotation
from recurra.errors import ConfigError, DataError
from recurra.padding import Padded
from recurra.search.search import selected
from recurra.stacks.recurrent import States, detached
from recurra.transformer import Cache, Transformer, continued
from tests.transformer import equations

INPUT, WIDTH, MEMORY = 3, 8, 5
contexts = st.sampled_from([None, 1, 2, 3, 9])
seeds = st.integers(0, 99)


def drawn(input_size: int = INPUT, **options: Any) -> Transformer:
    """In float64, with weights as large as those of a trained one."""
    model = Transformer(input_size, WIDTH, **{"heads": 2, "layers": 2, **options}).double()
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, mean=1.0 if "norm.weight" in name else 0.0, std=0.5)
    return model


def inputs(*shape: int) -> Tensor:
    return torch.randn(*shape, INPUT, dtype=torch.float64)


def same(one: object, other: object, tolerance: float = 1e-10) -> None:
    assert_close(one, other, rtol=0, atol=tolerance)


def stepped(model: Transformer, x: Tensor, states: States | None = None) -> tuple[Tensor, States]:
    found = []
    for x_t in x.unbind(1):
        h, states = model.step(x_t, states)
        found.append(h)
    assert states is not None
    return torch.stack(found, dim=1), states


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    layers=st.integers(1, 2),
    heads=st.sampled_from([1, 2, 4]),
    context=contexts,
    causal=st.booleans(),
    absolute=st.booleans(),
    seed=seeds,
)
def test_it_computes_what_its_docstring_says(
    lengths: list[int], layers: int, heads: int, context: int | None, causal: bool, absolute: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    context = context if causal else None
    model = drawn(layers=layers, heads=heads, causal=causal, context=context, feed_forward=7, absolute=absolute)
    x = inputs(len(lengths), max(lengths) + 1)
    outputs, _ = model(Padded(x.index_fill(1, torch.tensor([max(lengths)]), torch.nan), torch.tensor(lengths)))
    w = equations.weights_of(model)
    for row, length in enumerate(lengths):
        expected, _ = equations.stack(
            w, x[row, :length].numpy(), layers=layers, heads=heads, causal=causal, context=context, absolute=absolute
        )
        same(outputs.values[row, :length], torch.from_numpy(expected))
        assert (outputs.values[row, length:] == 0).all()


@settings(max_examples=40)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4)), min_size=1, max_size=3),
    heads=st.sampled_from([1, 2]),
    weighed=st.booleans(),
    seed=seeds,
)
def test_a_memory_is_seen_as_the_docstring_says(
    lengths: list[tuple[int, int]], heads: int, weighed: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    model = drawn(heads=heads, causal=True, memory_size=MEMORY)
    steps, places = (torch.tensor(each) for each in zip(*lengths, strict=True))
    x, memory = (
        inputs(len(lengths), int(steps.max())),
        torch.randn(len(lengths), int(places.max()) + 1, MEMORY).double(),
    )
    mask = Padded(memory, places).mask
    memories = model.remember(memory.masked_fill(~mask[:, :, None], torch.nan), mask)
    reading = model.read(Padded(x, steps), None, memories, weighed=weighed)
    assert (reading.weights is not None) == weighed
    w = equations.weights_of(model)
    for row, (length, known) in enumerate(lengths):
        expected, weights = equations.stack(
            w, x[row, :length].numpy(), layers=2, heads=heads, causal=True, memory=memory[row, :known].numpy()
        )
        same(reading.values[row, :length], torch.from_numpy(expected))
        if reading.weights is not None and weights is not None:
            same(reading.weights[row, :length, :known], torch.from_numpy(weights))
            assert (reading.weights[row, :, known:] == 0).all()


def test_rows_without_any_step_give_zeros_and_finite_gradients() -> None:
    for causal in (False, True):
        model = drawn(causal=causal, memory_size=MEMORY)
        x = inputs(3, 4).requires_grad_()
        memory = torch.randn(3, 2, MEMORY).double().requires_grad_()
        memories = model.remember(memory, torch.tensor([[False] * 2, [True] * 2, [False] * 2]))
        batch = Padded(x, torch.tensor([0, 2, 4]))
        outputs = Padded(model.read(batch, None, memories).values, batch.lengths).zeroed().values
        outputs.square().sum().backward()
        assert (outputs[0] == 0).all()
        for tensor in (x, memory, *model.parameters()):
            assert tensor.grad is not None
            assert tensor.grad.isfinite().all()
        assert x.grad is not None
        assert (x.grad[0] == 0).all()


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("causal", [False, True])
def test_nothing_to_read_is_nothing_written(rows: int, causal: bool) -> None:
    model = drawn(causal=causal)
    outputs, states = model(Padded(inputs(rows, 0), torch.zeros(rows, dtype=torch.long)))
    assert outputs.values.shape == (rows, 0, WIDTH)
    if causal:
        x = inputs(rows)
        same(model.step(x, states)[0], model.step(x)[0])


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    more=st.integers(0, 2),
    context=contexts,
    causal=st.booleans(),
    seed=seeds,
)
def test_a_row_alone_gives_the_same_as_among_others_with_padding(
    lengths: list[int], more: int, context: int | None, causal: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    model = drawn(causal=causal, context=context if causal else None)
    x = inputs(len(lengths), max(lengths) + more)
    batch = Padded(x, torch.tensor(lengths))
    garbage = Padded(torch.where(batch.mask[:, :, None], x, torch.nan), batch.lengths)
    together, states = model(garbage)
    assert together.values.isfinite().all()
    for row, length in enumerate(lengths):
        alone, own = model(Padded.full(x[row : row + 1, :length]))
        same(together.values[row, :length], alone.values[0], 1e-12)
        if causal:
            next_one = inputs(1)
            same(model.step(next_one, selected(states, torch.tensor([row])))[0], model.step(next_one, own)[0], 1e-12)


@settings(max_examples=60)
@given(
    first=st.lists(st.integers(0, 5), min_size=1, max_size=3),
    second=st.integers(0, 4),
    context=contexts,
    absolute=st.booleans(),
    seed=seeds,
)
def test_one_step_after_the_other_is_the_whole_sequence_also_carried_on(
    first: list[int], second: int, context: int | None, absolute: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    model = drawn(causal=True, context=context, absolute=absolute)
    rows = len(first)
    x, later = inputs(rows, max(first)), inputs(rows, second + 2)
    _, states = model(Padded(x, torch.tensor(first)))
    at_once, after = model(Padded.full(later), states)
    by_step, after_steps = stepped(model, later, states)
    same(by_step, at_once.values)
    for row, length in enumerate(first):
        whole = torch.cat([x[row, :length], later[row]]).unsqueeze(0)
        expected, _ = model(Padded.full(whole))
        same(at_once.values[row], expected.values[0, length:])
        same(stepped(model, whole)[0], expected.values)
    another = inputs(rows)
    same(model.step(another, after)[0], model.step(another, after_steps)[0])


@given(context=st.integers(1, 4), lengths=st.lists(st.integers(0, 5), min_size=2, max_size=3), seed=seeds)
@settings(max_examples=30)
def test_no_more_is_kept_than_the_context(context: int, lengths: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    model = drawn(causal=True, context=context)
    states = model.start(len(lengths))
    for _ in range(3):
        _, states = model(Padded(inputs(len(lengths), max(lengths)), torch.tensor(lengths)), states)
        assert all(layer[0][0].shape[2] <= context for layer in states)
    assert [int(each) for each in states[0][0].real.sum(1)] == [min(context, 3 * length) for length in lengths]  # type: ignore[attr-defined]


def test_the_future_changes_nothing() -> None:
    model = drawn(causal=True)
    x = inputs(2, 6)
    changed = torch.cat([x[:, :4], inputs(2, 2)], dim=1)
    one, other = model(Padded.full(x))[0].values, model(Padded.full(changed))[0].values
    same(one[:, :4], other[:, :4], 0.0)
    assert not torch.allclose(one[:, 4:], other[:, 4:])
    both_ways = drawn()
    assert not torch.allclose(
        both_ways(Padded.full(x))[0].values[:, 0], both_ways(Padded.full(changed))[0].values[:, 0]
    )


def test_what_is_out_of_sight_changes_nothing() -> None:
    model = drawn(causal=True, context=2, layers=2)
    x = inputs(1, 9)
    changed = torch.cat([inputs(1, 4), x[:, 4:]], dim=1)
    one, other = model(Padded.full(x))[0].values, model(Padded.full(changed))[0].values
    same(one[:, 8:], other[:, 8:], 0.0)  # two layers see two steps back each: 4 of them
    assert not torch.allclose(one[:, 7], other[:, 7])


def test_order_counts_and_where_a_row_stands_does_not() -> None:
    model = drawn(causal=True, context=3, layers=1)
    x = inputs(1, 12)
    shifted = model(Padded.full(x[:, 5:]))[0].values
    same(model(Padded.full(x))[0].values[:, 8:], shifted[:, 3:])
    both_ways = drawn()
    there, back = both_ways(Padded.full(x))[0].values, both_ways(Padded.full(x.flip(1)))[0].values
    assert not torch.allclose(there, back.flip(1))


def test_a_million_steps_on_the_numbers_are_the_same() -> None:
    model, x = Transformer(INPUT, WIDTH, heads=2, causal=True, context=4), torch.randn(1, 5, INPUT)
    _, states = model(Padded.full(x))
    far = model.start(1)
    far = tuple((layer[0]._replace(position=torch.tensor([10**6])),) for layer in far)  # type: ignore[attr-defined]
    _, later = model(Padded.full(x), far)
    assert_close(model.step(x[:, 0], later)[0], model.step(x[:, 0], states)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_each_attention_is_a_projected_dot_of_the_same_weights(heads: int) -> None:
    model = drawn(WIDTH, heads=heads, memory_size=MEMORY)
    own = model.layers[0].attention
    x = torch.randn(2, 5, WIDTH).double()
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    theirs = ProjectedDot(WIDTH, WIDTH, heads=heads, values=WIDTH).double()
    names = ("from_query", "from_memory", "to_values")
    for name, weight in zip(names, own.from_input.weight.chunk(3), strict=True):  # type: ignore[union-attr, operator]
        getattr(theirs, name).weight = nn.Parameter(weight.detach())
    expected = theirs(x, theirs.remember(x, mask)).context
    nowhere = rotation(torch.zeros(5, dtype=torch.long), WIDTH // heads, x)  # all steps at one place
    q, k, v = own.parts(x, nowhere)  # type: ignore[union-attr, operator]
    same(attended(q, k, v, mask[:, None, None]).transpose(1, 2).flatten(2), expected)

    cross = model.layers[0].memory_attention
    places = torch.randn(2, 5, MEMORY).double()
    memory = cross.attention.remember(places, mask)  # type: ignore[union-attr, operator]
    one, nothing = cross(x, memory, weighed=False)  # type: ignore[operator]
    other, weights = cross(x, memory, weighed=True)  # type: ignore[operator]
    same(one, other)
    assert nothing is None
    same(weights.sum(-1), torch.ones(2, 5).double())


def test_several_rows_of_a_source_are_its_queries() -> None:
    model = drawn(causal=True, memory_size=MEMORY)
    places = torch.randn(2, 3, MEMORY).double()
    mask = torch.tensor([[True, True, True], [True, False, False]])
    x = inputs(6, 1)
    together = model.read(Padded.full(x), None, model.remember(places, mask), weighed=True)
    for row in range(6):
        own = model.remember(places[row // 3 : row // 3 + 1], mask[row // 3 : row // 3 + 1])
        alone = model.read(Padded.full(x[row : row + 1]), None, own, weighed=True)
        same((together.values[row], together.weights[row]), (alone.values[0], alone.weights[0]))  # type: ignore[index]


class Whole(nn.Module):
    """A Transformer with its memory as one function."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, places: Tensor) -> Tensor:
        memories = self.model.remember(places, torch.tensor([[True, True], [True, False]]))
        batch = Padded(x, torch.tensor([3, 2]))
        return Padded(self.model.read(batch, None, memories).values, batch.lengths).zeroed().values


@pytest.mark.parametrize(("causal", "context"), [(False, None), (True, None), (True, 1)])
def test_gradients_are_those_of_differences_and_reach_every_parameter(causal: bool, context: int | None) -> None:
    whole = Whole(drawn(causal=causal, context=context, memory_size=MEMORY, feed_forward=3, layers=1))
    names = [name for name, _ in whole.named_parameters()]

    def run(x: Tensor, places: Tensor, *weights: Tensor) -> Any:
        return torch.func.functional_call(whole, dict(zip(names, weights, strict=True)), (x, places))

    x, places = inputs(2, 3).requires_grad_(), torch.randn(2, 2, MEMORY).double().requires_grad_()
    weights = [parameter.detach().requires_grad_() for parameter in whole.parameters()]
    assert torch.autograd.gradcheck(run, (x, places, *weights), fast_mode=True)
    values = whole(x, places)
    (values * torch.randn_like(values)).sum().backward()
    for name, parameter in whole.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_gradients_step_by_step_are_those_of_the_whole() -> None:
    model, x = drawn(causal=True, context=2), inputs(2, 5).requires_grad_()
    weights = torch.randn(2, 5, WIDTH).double()
    given = [x, *model.parameters()]
    found = [
        torch.autograd.grad((values * weights).sum(), given)
        for values in (model(Padded.full(x))[0].values, stepped(model, x)[0])
    ]
    same(found[0], found[1])


def test_states_have_a_row_of_the_batch_on_every_leaf() -> None:
    model = drawn(causal=True)
    _, states = model(Padded(inputs(3, 4), torch.tensor([4, 1, 2])))
    turned = selected(states, torch.tensor([2, 0]))
    assert isinstance(turned[0][0], Cache)
    x = inputs(3)
    same(model.step(x[[2, 0]], turned)[0], model.step(x, states)[0][[2, 0]])
    assert not any(leaf.requires_grad for layer in detached(states) for state in layer for leaf in state)


@pytest.mark.parametrize("absolute", [False, True])
def test_a_row_that_is_not_kept_begins_anew(absolute: bool) -> None:
    model, x = drawn(causal=True, absolute=absolute), inputs(2, 3)
    _, states = model(Padded.full(inputs(2, 4)))
    found = model(Padded.full(x), continued(states, torch.tensor([True, False])))[0].values
    same(found[0], model(Padded.full(x), states)[0].values[0])
    same(found[1], model(Padded.full(x))[0].values[1])


def test_a_start_is_as_none() -> None:
    model, x = drawn(causal=True), Padded(inputs(2, 3), torch.tensor([3, 1]))
    same(model(x, model.start(2, x.values))[0].values, model(x)[0].values)


def test_dropout_is_only_in_training() -> None:
    model, x = drawn(dropout=0.5), Padded.full(inputs(1, 3))
    assert len({model(x)[0].values.sum().item() for _ in range(4)}) == 4
    model.eval()
    assert len({model(x)[0].values.sum().item() for _ in range(3)}) == 1


def test_at_first_each_step_is_mostly_what_it_reads() -> None:
    model = Transformer(64, 64, layers=8)
    x = torch.randn(2, 20, 64)
    out = model(Padded.full(x))[0].values.detach()
    assert float(out.std()) == pytest.approx(1.0, abs=0.05)
    assert float(np.corrcoef(out.flatten(), x.flatten())[0, 1]) > 0.5


def test_half_precision_runs_from_states_of_either_type() -> None:
    model = Transformer(8, 8, causal=True)
    x = torch.randn(2, 3, 8)
    with torch.autocast("cpu", torch.bfloat16):
        outputs, states = model(Padded.full(x), model.start(2))
        h, _ = model.step(x[:, 0], states)
    exact, _ = model(Padded.full(x))
    assert_close(outputs.values.float(), exact.values, rtol=0, atol=0.1)
    assert h.isfinite().all()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"width": 12, "heads": 4}, r"4 heads needs a width that is a multiple of 8, but it is 12: set 16, or change"),
    ({"width": 3, "heads": 2}, r"multiple of 4, but it is 3: set 4"),
    ({"context": 3}, r"context needs causal = True: it limits how many previous steps a step can see."),
    ({"context": 0, "causal": True}, r"context must be a whole number of at least 1, but is 0"),
    ({"heads": 0}, r"heads must be a whole number"),
    ({"layers": 0}, r"layers must be a whole number"),
    ({"feed_forward": 0}, r"feed_forward must be a whole number"),
    ({"dropout": 1.0}, r"dropout must be a probability"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Transformer(4, **{"width": 8, **options})


def test_a_batch_or_states_that_do_not_fit_are_refused() -> None:
    model = Transformer(3, 8, causal=True)
    with pytest.raises(DataError, match=r"a Transformer needs a Padded batch, but got a Tensor"):
        model(torch.zeros(1, 2, 3))
    with pytest.raises(DataError, match=r"inputs of shape \(rows, steps, 3\), but the batch has shape \(1, 2, 4\)"):
        model(Padded.full(torch.zeros(1, 2, 4)))
    with pytest.raises(DataError, match=r"step needs one element per row, of shape \(rows, 3\), but got \(1, 2, 3\)"):
        model.step(torch.zeros(1, 2, 3))
    _, states = model(Padded.full(torch.zeros(2, 2, 3)))
    for wrong in (states[:0], states + states, (states[0][0],), selected(states, torch.tensor([0]))):
        with pytest.raises(
            DataError, match=r"states must be those that this Transformer returned for 2 rows \(1 layers"
        ):
            model.step(torch.zeros(2, 3), wrong)
    both_ways = Transformer(3, 8)
    with pytest.raises(ConfigError, match=r"bidirectional Transformer cannot run one step at a time"):
        both_ways.step(torch.zeros(2, 3))
    with pytest.raises(ConfigError, match=r"bidirectional Transformer has no states"):
        both_ways(Padded.full(torch.zeros(2, 2, 3)), states)
