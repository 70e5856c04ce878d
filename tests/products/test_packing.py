"""Packed matrices: the same products, faster, and in all else the matrices that they were."""

from __future__ import annotations

import copy
import threading
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.testing import assert_close

from recurra.products.packing import FEWEST, Packed, can_pack, packed, packed_matrix
from tests.tasks.small_pairs import WORDS, task_of, untrained, words

pytestmark = pytest.mark.skipif(not can_pack(), reason="this torch has no oneDNN")


class Two(nn.Module):
    """Two maps, one after the other; with tied, both by the same matrix."""

    def __init__(self, size: int = 150, *, tied: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(size, size)
        self.second = nn.Linear(size, size, bias=False)
        if tied:
            self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.second(self.first(x).tanh())
        return found


def is_packed(model: nn.Module, part: str) -> bool:
    return isinstance(model.get_submodule(part).weight, Packed)


@pytest.fixture
def model() -> Two:
    torch.manual_seed(1)
    return Two()


@torch.no_grad()
def test_packed_is_plain_for_any_number_of_rows(model: Two) -> None:
    twin = packed(model, "first", "second")
    assert is_packed(twin, "first")
    assert is_packed(twin, "second")
    for rows in range(41):
        x = torch.randn(rows, 150)
        assert_close(twin(x), model(x), atol=1e-5, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("shape", [(150,), (2, 3, 150), (0, 150), (4, 1, 1, 150)])
def test_an_input_may_have_any_shape_and_layout(model: Two, shape: tuple[int, ...]) -> None:
    twin = packed(model, "first", "second")
    x = torch.randn(shape)
    assert_close(twin(x), model(x), atol=1e-5, rtol=0)
    strided = torch.randn(150, 6).T
    assert_close(twin(strided[::2]), model(strided[::2]), atol=1e-5, rtol=0)
    assert_close(twin(x[..., :1].expand(shape)), model(x[..., :1].expand(shape)), atol=1e-5, rtol=0)


@torch.no_grad()
def test_weight_and_bias_may_be_given_by_name(model: Two) -> None:
    x, weight, bias = torch.randn(3, 150), model.first.weight, model.first.bias
    expected = functional.linear(x, weight, bias)
    one = packed_matrix(weight)
    assert_close(functional.linear(x, one, bias=bias), expected, atol=1e-5, rtol=0)
    assert_close(functional.linear(x, weight=one, bias=bias), expected, atol=1e-5, rtol=0)
    assert_close(functional.linear(x, one), functional.linear(x, weight), atol=1e-5, rtol=0)


@torch.no_grad()
def test_only_the_parts_that_are_named_and_large_are_packed(model: Two) -> None:
    assert not is_packed(packed(model, "second"), "first")
    assert not is_packed(packed(model), "second")
    side = int(FEWEST**0.5)
    assert is_packed(packed(Two(side), "first"), "first")
    assert not is_packed(packed(Two(side - 1), "first"), "first")
    assert not is_packed(model, "first")


@torch.no_grad()
def test_a_change_of_the_weights_is_followed(model: Two) -> None:
    twin = packed(model, "first", "second")
    x = torch.randn(3, 150)
    before = twin(x)
    model.first.weight.mul_(2)
    assert_close(twin(x), model(x), atol=1e-5, rtol=0)
    assert not torch.allclose(twin(x), before)
    model.load_state_dict(Two().state_dict())
    assert_close(twin(x), model(x), atol=1e-5, rtol=0)
    model.second.weight.data = torch.randn(150, 150)
    assert_close(twin(x), model(x), atol=1e-4, rtol=0)


def test_gradients_go_to_the_original_weights(model: Two) -> None:
    twin = packed(model, "first", "second")
    x = torch.randn(3, 150)
    model(x).square().sum().backward()
    expected = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    twin(x).square().sum().backward()
    assert_close([parameter.grad for parameter in model.parameters()], expected)


@torch.no_grad()
def test_tied_weights_stay_tied() -> None:
    model = Two(tied=True)
    twin = packed(model, "first", "second")
    x = torch.randn(3, 150)
    model.first.weight.mul_(1.1)
    assert_close(twin(x), model(x), atol=1e-5, rtol=0)
    assert model.second.weight is model.first.weight
    half = packed(model, "second")
    model.first.weight.mul_(1.1)
    assert_close(half(x), model(x), atol=1e-5, rtol=0)


@torch.no_grad()
def test_other_numbers_and_other_devices_are_left_as_they_are(model: Two) -> None:
    double = Two().double()
    assert packed(double, "first") is double
    meta = Two().to("meta")
    assert packed(meta, "first") is meta
    assert packed(nn.ReLU(), "") is not None
    twin = packed(model, "first", "second")
    model.double()  # after it was packed
    x = torch.randn(3, 150, dtype=torch.float64)
    assert_close(twin(x), model(x), atol=1e-12, rtol=0)


@torch.no_grad()
def test_half_precision_is_obeyed(model: Two) -> None:
    twin = packed(model, "first", "second")
    x = torch.randn(3, 150)
    with torch.autocast("cpu", torch.bfloat16):
        assert twin(x).dtype == torch.bfloat16
        assert_close(twin(x), model(x))


@torch.no_grad()
def test_a_deep_copy_is_on_its_own(model: Two) -> None:
    twin = packed(model, "first", "second")
    x = torch.randn(3, 150)
    before = twin(x)
    apart = copy.deepcopy(twin)
    model.first.weight.zero_()
    assert_close(apart(x), before, atol=1e-5, rtol=0)
    assert_close(twin(x), model(x), atol=1e-5, rtol=0)


def test_for_all_else_it_is_the_matrix_that_it_was(model: Two) -> None:
    weight = model.first.weight
    one = packed_matrix(weight)
    assert one.shape == weight.shape
    assert torch.equal(one.t(), weight.t())
    assert torch.equal(torch.cat([one, one]), torch.cat([weight, weight]))
    assert torch.equal(one @ weight, weight @ weight)
    assert one.data_ptr() == weight.data_ptr()


def test_several_threads_may_ask_at_once(model: Two) -> None:
    twin = packed(model, "first", "second")
    inputs = [torch.randn(number + 1, 150) for number in range(4)]
    with torch.no_grad():
        expected = [model(x) for x in inputs]
    found: dict[int, Tensor] = {}

    def ask(number: int) -> None:
        with torch.no_grad():
            for _ in range(20):
                found[number] = twin(inputs[number])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        assert_close(found[number], expected[number], atol=1e-5, rtol=0)


@pytest.mark.parametrize("options", [[], ["model.cell=gru", "model.wiring=feeding"], ["model.tied=output"]])
def test_a_model_answers_the_same_packed_and_plain(tmp_path: Path, options: list[str]) -> None:
    model = untrained(
        tmp_path, words(tmp_path), "model.hidden=132", "model.embedding=132", "model.engine=loop", *options
    )
    sources = [source for source, _ in WORDS]
    task = task_of(model)
    rows = [task.encode(example) for example in task.questions(None, sources)]
    plain = task.predict(model.model, task.batch(rows))
    twin = task.for_prediction(model.model)
    assert any(isinstance(value, Packed) for module in twin.modules() for value in vars(module).values())
    for one, other in zip(task.predict(twin, task.batch(rows)), plain, strict=True):
        assert one.answers[0].score == pytest.approx(other.answers[0].score, abs=1e-4)
