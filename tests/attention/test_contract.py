"""What holds for every attention, with and without terms: of one row, of many, of padding and of none at all."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from recurra.attention import Attended, Attention, Memory
from recurra.attention.terms.term import Term
from recurra.errors import DataError
from recurra.models.saved import put_weights, read_tensors, write_tensors
from recurra.named import catalogue
from recurra.padding import Padded
from tests.attention.every import EVERY, PLAIN, SUMMING_TO_ONE, WITH_TERMS, Spec, asked, drawn, remembered, title

SOME = settings().max_examples // 3  # each with one of many attentions

every = pytest.mark.parametrize("spec", EVERY, ids=title)
lengths_of_rows = st.lists(st.integers(0, 6), min_size=1, max_size=4)


def names_of_terms(spec: Spec) -> set[str]:
    return {term if isinstance(term, str) else term["name"] for term in spec.get("terms", ())}


def step_by_step(attention: Attention, queries: Tensor, memory: Memory) -> Attended:
    past, contexts, weights = attention.start(memory), [], []
    for query in queries.unbind(1):
        seen = attention.step(query, memory, past)
        past = seen.past
        contexts.append(seen.context)
        weights.append(seen.weights)
    return Attended(torch.stack(contexts, 1), torch.stack(weights, 1), past)


def same(one: object, other: object) -> None:
    assert_close(one, other, rtol=0, atol=1e-12)


def test_every_file_is_tested_alone_and_with_every_term() -> None:
    assert {spec["name"] for spec in PLAIN} == set(catalogue(Attention))
    tried = {(spec["name"], name) for spec in WITH_TERMS for name in names_of_terms(spec)}
    assert tried == {(name, term) for name in catalogue(Attention) for term in catalogue(Term)}


@settings(max_examples=SOME)
@given(spec=st.sampled_from(SUMMING_TO_ONE), lengths=lengths_of_rows, more=st.integers(0, 2), seed=st.integers(0, 99))
def test_weights_sum_to_one_and_are_exactly_zero_on_padding(
    spec: Spec, lengths: list[int], more: int, seed: int
) -> None:
    torch.manual_seed(seed)
    attention = drawn(spec)
    memory = remembered(attention, lengths, max(lengths) + more)
    seen = attention(20 * asked(attention, len(lengths), 3), memory)
    assert seen.context.isfinite().all()
    for row, length in enumerate(lengths):
        assert ((seen.weights[row] >= 0) & (seen.weights[row] <= 1)).all()
        assert (seen.weights[row, :, length:] == 0).all()
        same(seen.weights[row].sum(-1), torch.full((3,), float(length > 0), dtype=torch.float64))


@settings(max_examples=SOME)
@given(spec=st.sampled_from(EVERY), lengths=lengths_of_rows, more=st.integers(1, 3), seed=st.integers(0, 99))
def test_a_row_alone_gives_the_same_as_among_others_with_padding(
    spec: Spec, lengths: list[int], more: int, seed: int
) -> None:
    torch.manual_seed(seed)
    attention = drawn(spec)
    values = [torch.randn(length, attention.memory_size, dtype=torch.float64) for length in lengths]
    queries = asked(attention, len(lengths), 3)
    places = max(lengths) + more
    batch = torch.full((len(lengths), places, attention.memory_size), torch.nan, dtype=torch.float64)
    for row, each in enumerate(values):
        batch[row, : len(each)] = each
    seen = attention(queries, attention.remember(batch, Padded(batch, torch.tensor(lengths)).mask))
    for row, each in enumerate(values):
        alone = attention.remember(each.unsqueeze(0), torch.ones(1, len(each), dtype=torch.bool))
        expected = attention(queries[row : row + 1], alone)
        same(seen.context[row], expected.context[0])
        same(seen.weights[row, :, : len(each)], expected.weights[0])


@settings(max_examples=SOME)
@given(spec=st.sampled_from(PLAIN), order=st.permutations(range(5)), seed=st.integers(0, 99))
def test_places_in_another_order_have_the_same_weights_in_that_order(spec: Spec, order: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    attention = drawn(spec)
    values, mask = torch.randn(2, 5, 4, dtype=torch.float64), torch.rand(2, 5) < 0.7
    queries = asked(attention, 2, 3)
    seen = attention(queries, attention.remember(values, mask))
    moved = attention(queries, attention.remember(values[:, order], mask[:, order]))
    same(moved.weights, seen.weights[:, :, order])
    same(moved.context, seen.context)


@every
def test_a_source_of_padding_alone_gives_zeros_and_no_gradient(spec: Spec) -> None:
    attention = drawn(spec)
    values = torch.full((2, 3, 4), torch.nan, dtype=torch.float64)
    values[0] = torch.randn(3, 4)
    values.requires_grad_()
    queries = asked(attention, 2, 3).requires_grad_()
    memory = attention.remember(values, torch.tensor([[True] * 3, [False] * 3]))
    seen = attention(queries, memory)
    assert (seen.context[1] == 0).all()
    assert (seen.weights[1] == 0).all()
    (seen.context * torch.randn_like(seen.context)).sum().backward()
    assert values.grad is not None
    assert queries.grad is not None
    assert values.grad[0].abs().sum() > 0
    assert (values.grad[1] == 0).all()
    assert (queries.grad[1] == 0).all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in attention.parameters())


@every
def test_what_is_behind_the_mask_reaches_neither_outputs_nor_gradients(spec: Spec) -> None:
    attention = drawn(spec)
    clean = torch.randn(2, 5, 4, dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False, False], [True, False, True, True, False]])
    queries = asked(attention, 2, 3)
    found = []
    for filling in (0.0, torch.nan, torch.inf):
        values = clean.masked_fill(~mask.unsqueeze(2), filling).requires_grad_()
        asking = queries.clone().requires_grad_()
        seen = attention(asking, attention.remember(values, mask))
        loss = (seen.context.square().sum() + seen.weights.square().sum()) / 2
        gradients = torch.autograd.grad(loss, (values, asking, *attention.parameters()), allow_unused=True)
        found.append((seen.context, seen.weights, *(g for g in gradients if g is not None)))
    assert all(value.isfinite().all() for value in found[0])
    same(found[1], found[0])
    same(found[2], found[0])


@every
def test_all_steps_at_once_are_one_step_after_the_other(spec: Spec) -> None:
    attention = drawn(spec)
    values = torch.randn(4, 5, 4, dtype=torch.float64, requires_grad=True)
    queries = asked(attention, 4, 6).requires_grad_()
    weights = [torch.randn(4, 6, attention.context_size).double(), torch.randn(4, 6, 5).double()]
    found = []
    for look in (attention, partial(step_by_step, attention)):
        seen = look(queries, attention.remember(values, Padded(values, torch.tensor([5, 2, 0, 1])).mask))
        loss = sum((part * weight).sum() for part, weight in zip(seen[:2], weights, strict=True))
        found.append((seen, torch.autograd.grad(loss, [values, queries, *attention.parameters()])))
    same(found[0], found[1])


@every
def test_a_past_goes_on_where_it_was_left(spec: Spec) -> None:
    attention = drawn(spec)
    memory, queries = remembered(attention, [5, 3]), asked(attention, 2, 6)
    whole = attention(queries, memory)
    first = attention(queries[:, :4], memory)
    rest = attention(queries[:, 4:], memory, first.past)
    same(torch.cat([first.context, rest.context], 1), whole.context)
    same(rest.past, whole.past)


@settings(max_examples=SOME)
@given(spec=st.sampled_from(EVERY), lengths=lengths_of_rows, k=st.integers(1, 4), seed=st.integers(0, 99))
def test_several_rows_of_a_source_at_once_are_each_alone(spec: Spec, lengths: list[int], k: int, seed: int) -> None:
    torch.manual_seed(seed)
    attention = drawn(spec)
    memory = remembered(attention, lengths)
    queries = asked(attention, len(lengths), k, 3)  # k hypotheses of each source, three steps
    past, together = attention.start(memory, len(lengths) * k), []
    for t in range(3):
        seen = attention.step(queries[:, :, t].flatten(0, 1), memory, past)
        past = seen.past
        together.append(seen)
    for each in range(k):
        alone = step_by_step(attention, queries[:, each], memory)
        for t, seen in enumerate(together):
            same(seen.context.view(len(lengths), k, -1)[:, each], alone.context[:, t])
            same(seen.weights.view(len(lengths), k, memory.mask.shape[1])[:, each], alone.weights[:, t])
        for ours, theirs in zip(past, alone.past, strict=True):
            same(ours.view(len(lengths), k, ours.shape[1])[:, each], theirs)


class Looks(nn.Module):
    def __init__(self, attention: Attention, mask: Tensor, rows: int) -> None:
        super().__init__()
        self.attention, self.mask, self.rows = attention, mask, rows

    def forward(self, values: Tensor, queries: Tensor) -> Any:
        memory = self.attention.remember(values, self.mask)
        at_once = self.attention(queries[: len(values)], memory)
        past = self.attention.start(memory, self.rows)
        for query in queries.unbind(1):
            seen = self.attention.step(query, memory, past)
            past = seen.past
        return at_once.context, at_once.weights, seen.context, *past


@every
def test_gradients_are_those_of_differences(spec: Spec) -> None:
    torch.manual_seed(3)
    attention = drawn(spec)
    mask = torch.tensor([[True, True, False, True], [True, True, False, False]])
    looks = Looks(attention, mask, 4)
    names = [name for name, _ in looks.named_parameters()]

    def run(values: Tensor, queries: Tensor, *weights: Tensor) -> Any:
        return torch.func.functional_call(looks, dict(zip(names, weights, strict=True)), (values, queries))

    values = torch.randn(2, 4, 4, dtype=torch.float64, requires_grad=True)
    queries = asked(attention, 4, 2).requires_grad_()
    weights = [parameter.detach().requires_grad_() for parameter in looks.parameters()]
    assert torch.autograd.gradcheck(run, (values, queries, *weights), fast_mode=True)
    if spec in PLAIN and spec.get("activation") != "relu":
        assert torch.autograd.gradgradcheck(run, (values, queries, *weights), fast_mode=True)


@every
def test_what_was_saved_is_what_is_loaded(spec: Spec, tmp_path: Path) -> None:
    attention, other = drawn(spec), drawn(spec)
    write_tensors(tmp_path / "attention.safetensors", attention.state_dict())
    put_weights(other, read_tensors(tmp_path / "attention.safetensors")[0], tmp_path)
    memory, queries = remembered(attention, [4, 2]), asked(attention, 2, 3)
    values = torch.randn(2, 4, 4, dtype=torch.float64)
    assert torch.equal(
        attention(queries, attention.remember(values, memory.mask)).context,
        other(queries, other.remember(values, memory.mask)).context,
    )


@every
def test_where_there_are_no_places_or_no_rows_there_is_nothing_to_see(spec: Spec) -> None:
    attention = drawn(spec)
    seen = attention.step(asked(attention, 2), memory := remembered(attention, [0, 0]), attention.start(memory))
    assert seen.weights.shape == (2, 0)
    assert (seen.context == 0).all()
    memory = attention.remember(torch.zeros(0, 3, 4).double(), torch.ones(0, 3, dtype=torch.bool))
    assert attention.step(asked(attention, 0), memory, attention.start(memory)).context.shape[0] == 0
    assert attention(asked(attention, 0, 2), memory).weights.shape == (0, 2, 3)
    memory = remembered(attention, [3])
    assert attention(asked(attention, 1, 0), memory).context.shape == (1, 0, attention.context_size)


@pytest.mark.parametrize("spec", SUMMING_TO_ONE, ids=title)
def test_in_half_precision_weights_still_sum_to_one(spec: Spec) -> None:
    attention = drawn(spec).float()
    values, queries = torch.randn(2, 5, 4, requires_grad=True), asked(attention, 2, 3).float()
    mask = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    exact = attention(queries, attention.remember(values, mask))
    with torch.autocast("cpu", torch.bfloat16):
        seen = attention(queries, attention.remember(values, mask))
    seen.context.float().sum().backward()
    assert_close(seen.weights.float().sum(-1), torch.ones(2, 3), rtol=0, atol=0.02)
    assert (seen.weights[1, :, 2:] == 0).all()
    assert_close(seen.context.float(), exact.context, rtol=0.1, atol=0.3)


def test_queries_and_places_of_other_shapes_are_refused() -> None:
    attention = drawn({"name": "bilinear"})
    memory = remembered(attention, [3, 2])
    with pytest.raises(
        DataError, match=r"5 features in N rows, a multiple of the B sources, but got \(3, 5\) for 2 so"
    ):
        attention.step(asked(attention, 3), memory)
    with pytest.raises(DataError, match=r"5 features in N rows, .* but got \(2, 6\)"):
        attention.step(torch.zeros(2, 6), memory)
    with pytest.raises(DataError, match=r"in \(B, T\), a row for each of the B sources, but got \(4, 1, 5\)"):
        attention(asked(attention, 4, 1), memory)
    with pytest.raises(
        DataError, match=r"values of shape \(B, S, 4\) and a mask of shape \(B, S\), but got \(2, 3, 7\) and"
    ):
        attention.remember(torch.zeros(2, 3, 7), torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(DataError, match=r"but got \(2, 3, 4\) and \(2, 2\)"):
        attention.remember(torch.zeros(2, 3, 4), torch.ones(2, 2, dtype=torch.bool))


class Short(Attention):
    """Forgets the places."""

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return query


def test_a_score_of_the_wrong_shape_is_said_with_the_shapes_it_was_given() -> None:
    attention = Short(3, 4)
    memory = attention.remember(torch.zeros(2, 5, 4), torch.ones(2, 5, dtype=torch.bool))
    said = r"Short\.score returned scores of shape \(2, 7, 3\) but they must have shape \(2, 7, 5\): one for each"
    with pytest.raises(DataError, match=said):
        attention(torch.zeros(2, 7, 3), memory)
    with pytest.raises(DataError, match=r"\(2, 1, 3\) but they must have shape \(2, 1, 5\)"):
        attention.step(torch.zeros(2, 3), memory)
