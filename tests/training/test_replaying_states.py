"""Which steps are computed, recorded and replayed: on a CPU, where Python computes again what a GPU would replay."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from recurra.engines.waiting import failure_flag
from recurra.errors import EngineError
from recurra.padding import Padded
from recurra.tasks.task import Carried, Loss, Recurring
from recurra.training.replaying import ENOUGH, Replayed, Replaying

CPU = torch.device("cpu")


def seed(number: int) -> None:
    torch.manual_seed(number)


class Fitting:
    """The squares of W x - y: a task of one matrix, with batches of any number of rows."""

    def __init__(self, **options: Any) -> None:
        torch.manual_seed(0)
        self.weight, self.unused = torch.randn(3, 2, requires_grad=True), torch.zeros(1, requires_grad=True)
        self.said: list[str] = []
        self.replaying = Replaying([self.weight, self.unused], CPU, torch.float32, self.said.append, **options)
        self.calls = 0
        self.drawn = False
        self.error: type[Exception] | None = None

    def loss(self, batch: Any, carried: Carried, numbers: Tensor | None) -> Loss:
        self.calls += 1
        if self.error is not None:
            raise self.error("no operation can do this while it is recorded\nmore lines")
        (x, y), factor = batch, 1.0 if numbers is None else numbers[0]
        if self.drawn:
            x = x + torch.rand_like(x)
        before = carried[0] if carried else torch.zeros(())
        total = factor * (x @ self.weight.t() - y).square().sum() + before
        return Loss(total, len(y), (total.detach() / 2,))

    def step(self, rows: int, *, carried: Carried = (), factor: float = 1.0, number: float = 1.0) -> Replayed:
        """A step on new numbers, checked against what autograd says of them; how often the loss was called: `calls`."""
        batch = torch.randn(rows, 2), torch.randn(rows, 3)
        recurring = Recurring(batch, rows)
        self.calls = 0
        found = self.replaying.step(recurring, carried, torch.tensor(factor), [number], lambda: seed(rows), self.loss)
        counted, error = self.calls, self.error
        self.error = None
        torch.manual_seed(rows)
        expected = self.loss(batch, carried, torch.tensor([number]))
        [gradient] = torch.autograd.grad(factor * expected.total, [self.weight])
        assert self.weight.grad is not None
        torch.testing.assert_close(self.weight.grad, gradient)
        torch.testing.assert_close(found.total, expected.total.detach())
        torch.testing.assert_close(found.carried, expected.carried)
        assert self.unused.grad is None
        self.calls, self.error = counted, error
        return found

    @property
    def recorded(self) -> int:
        return sum(graph is not None for graph in self.replaying.known.values())


COMPUTED, RECORDED, REPLAYED = 1, 3, 1
"""How often the loss is called: to compute it; to compute it, to record it and to compare both; by Python again."""


def test_a_size_is_computed_then_recorded_then_replayed_on_other_numbers() -> None:
    fitting = Fitting()
    found = []
    for number in (1.0, 0.5, 2.0, 3.0):
        fitting.step(4, factor=0.25 * number, number=number)
        found.append((fitting.calls, fitting.recorded))
    assert found == [(COMPUTED, 0), (RECORDED, 1), (REPLAYED, 1), (REPLAYED, 1)]
    [said] = fitting.said
    assert said.startswith("training steps are recorded as CUDA graphs, one for each size of batch that comes again")


def test_what_a_batch_leaves_to_the_next_is_handed_on_by_replayed_steps_too() -> None:
    fitting = Fitting()
    carried: Carried = (torch.ones(()),)
    for _ in range(4):
        carried = tuple(each.clone() for each in fitting.step(3, carried=carried).carried)
    assert fitting.recorded == 1


def test_a_step_draws_the_same_numbers_whether_computed_or_replayed() -> None:
    fitting = Fitting()
    fitting.drawn = True
    for _ in range(4):
        fitting.step(5)


def test_the_sizes_used_longest_ago_are_dropped_and_recorded_anew() -> None:
    fitting = Fitting(most_graphs=2)
    for rows in (1, 1, 2, 2, 1, 3, 3):
        fitting.step(rows)
    assert fitting.recorded == 2
    fitting.step(1)
    assert fitting.calls == REPLAYED, "the one before the last was used after size 2"
    fitting.step(2)
    assert fitting.calls == COMPUTED, "it was dropped"


def test_once_a_few_sizes_were_compared_others_are_recorded_when_they_first_come() -> None:
    fitting = Fitting()
    for rows in range(1, ENOUGH + 1):
        fitting.step(rows)
        fitting.step(rows)
    fitting.step(20)
    assert (fitting.calls, fitting.recorded) == (REPLAYED + 1, ENOUGH + 1)
    fitting.step(20)
    assert fitting.calls == REPLAYED


def test_a_size_that_cannot_be_recorded_before_it_was_computed_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    fitting = Fitting()
    for rows in range(1, ENOUGH + 1):
        fitting.step(rows)
        fitting.step(rows)
    record = fitting.replaying.recorder.record

    def unready(_: object) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(fitting.replaying.recorder, "record", unready)
    fitting.step(20)
    assert (fitting.calls, fitting.recorded) == (COMPUTED, ENOUGH)
    monkeypatch.setattr(fitting.replaying.recorder, "record", record)
    fitting.step(20)
    assert (fitting.calls, fitting.recorded) == (RECORDED, ENOUGH + 1)


def test_a_loss_that_depends_on_what_python_counts_is_not_replayed_and_a_sentence_says_so() -> None:
    fitting = Fitting()
    plain, counted = fitting.loss, [0]

    def counting(batch: Any, carried: Carried, numbers: Tensor | None) -> Loss:
        counted[0] += 1
        found = plain(batch, carried, numbers)
        return found._replace(total=found.total * counted[0])

    batch = Recurring((torch.randn(4, 2), torch.randn(4, 3)), 4)
    for _ in range(2):
        fitting.replaying.step(batch, (), torch.ones(()), [1.0], lambda: None, counting)
    assert not fitting.replaying.is_on
    [said] = fitting.said
    assert said.startswith("training steps are launched kernel by kernel, which is slower: they cannot be recorded (a ")
    assert "gave other gradients" in said


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (RuntimeError, "no operation can do this while it is recorded"),
        (EngineError, "no operation can do this while it is recorded"),
        (torch.OutOfMemoryError, "the memory of the GPU is too small"),
    ],
)
def test_what_cannot_be_recorded_is_computed_and_all_is_given_back(
    kind: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitting = Fitting()
    fitting.step(2)

    def failing(_: object) -> Any:
        raise kind("no operation can do this while it is recorded\nmore lines")

    monkeypatch.setattr(fitting.replaying.recorder, "record", failing)
    fitting.step(2)  # with the gradients of the step as it was computed
    assert not fitting.replaying.is_on
    assert not fitting.replaying.known
    assert not fitting.replaying.gradients
    assert fitting.said[-1].endswith(f"they cannot be recorded ({said})")


def test_graphs_hold_no_more_bytes_than_they_may() -> None:
    free = Fitting()
    for rows in (100, 100, 200, 200, 300, 300):
        free.step(rows)
    sizes = [graph.size for graph in free.replaying.known.values() if graph is not None]
    assert sizes == [100 * 5 * 4, 200 * 5 * 4, 300 * 5 * 4]
    bounded = Fitting(most_bytes=sum(sizes[1:]) + 100)
    for rows in (100, 100, 200, 200, 300, 300):
        bounded.step(rows)
    assert bounded.recorded == 2
    bounded.step(200)
    assert bounded.calls == REPLAYED
    bounded.step(100)
    assert bounded.calls == COMPUTED


def test_one_graph_that_would_hold_too_much_is_none() -> None:
    fitting = Fitting(most_bytes=1000)
    fitting.step(100)
    fitting.step(100)
    assert not fitting.replaying.is_on
    assert fitting.said == [
        "training steps are launched kernel by kernel, which is slower: they cannot be recorded (one alone would hold "
        "0 MiB, and 0 MiB are the most)"
    ]


def test_one_size_too_many_that_is_recorded_at_once_is_computed() -> None:
    fitting = Fitting(most_bytes=10_000)
    for rows in range(1, ENOUGH + 1):
        fitting.step(rows)
        fitting.step(rows)
    fitting.step(1000)
    assert not fitting.replaying.is_on


def test_after_all_was_forgotten_sizes_are_recorded_anew() -> None:
    fitting = Fitting()
    assert not fitting.replaying.forget(), "there is nothing yet"
    for rows in range(1, ENOUGH + 1):
        fitting.step(rows)
        fitting.step(rows)
    assert fitting.replaying.forget()
    assert not fitting.replaying.forget()
    assert fitting.recorded == 0
    fitting.step(1)  # at once: enough sizes were compared
    fitting.step(1)
    assert (fitting.calls, fitting.recorded) == (REPLAYED, 1)
    assert len(fitting.said) == 1, "what the graphs hold is said once"


def test_a_kernel_that_gave_up_ends_a_replayed_step() -> None:
    fitting = Fitting()
    for _ in range(3):
        fitting.step(2)
    failure_flag("cpu").fill_(1)
    with pytest.raises(EngineError, match="gave up; its results are wrong"):
        fitting.step(2)
    fitting.step(2)


def test_lengths_that_a_graph_cannot_see_are_noticed() -> None:
    """On a CPU Python reads the lengths themselves, which are those of other rows while a step is recorded."""
    fitting = Fitting()

    def loss(batch: Any, *_: object) -> Loss:
        total = (batch.values * batch.mask).sum() * fitting.weight.square().sum()
        return Loss(total, 1)

    batch = Recurring(Padded(torch.rand(2, 3), torch.tensor([3, 1])), 1)
    for _ in range(2):
        fitting.replaying.step(batch, (), torch.ones(()), [], lambda: None, loss)
    assert not fitting.replaying.is_on
