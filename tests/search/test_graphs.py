"""Recorded steps: replayed in the same tensors, forgotten when there are too many, refused in words."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from recurra.search.beaming import follow_beam
from recurra.search.following import follow
from recurra.search.graphs import GRAPHS, GROWS, Graphs, graphs_of, marks_of, rounded
from recurra.search.search import Hypothesis
from recurra.search.trees import leaves

V = 6


class Chain(nn.Module):
    """log p = log_softmax(W h + b), h' = tanh(h + E[y])."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding, self.output = nn.Embedding(V, 4), nn.Linear(4, V)
        self.strength = 1.0

    def step(self, tokens: Tensor, h: Tensor, _: tuple[()]) -> tuple[Tensor, Tensor]:
        h = (h + self.embedding(tokens)).tanh()
        return (self.strength * self.output(h)).log_softmax(1), h


def found(
    model: Any, graphs: Graphs | None, rows: int = 2, length: int = 25, ends: Sequence[int] = (3,), **options: Any
) -> list[Hypothesis]:
    tokens, h = torch.zeros(rows, dtype=torch.long), torch.linspace(-1, 1, rows * 4).view(rows, 4)
    marks = marks_of(model).key if isinstance(model, nn.Module) else None
    return follow(lambda: model.step, tokens, h, (), length=length, ends=ends, graphs=graphs, marks=marks, **options)


def tokens_of(found: list[Hypothesis]) -> list[list[int]]:
    return [each.tokens for each in found]


def test_a_shape_is_recorded_when_it_comes_again() -> None:
    model, graphs = Chain().eval(), Graphs()
    numbers = []
    for _ in range(3):
        found(model, graphs)
        numbers.append(graphs.recorded)
    assert numbers == [0, 1, 1]
    found(model, graphs, rows=3)
    assert graphs.recorded == numbers[-1]
    assert len(graphs.rooms) == 1


def test_shapes_that_come_once_drive_out_no_recording() -> None:
    model, graphs = Chain().eval(), Graphs(most_rooms=1)
    for rows in (2, 2, 3, 4, 5, 6, 2):
        found(model, graphs, rows=rows, ends=())
    assert graphs.recorded == 2  # from the start, and from then on
    assert len(graphs.rooms) == 1


def test_weights_that_change_in_place_are_seen_in_the_same_recording() -> None:
    model, graphs = Chain().eval(), Graphs(from_visit=1)
    before = found(model, graphs)
    with torch.no_grad():
        model.output.bias[2] += 100.0
    after = found(model, graphs)
    assert len(graphs.rooms) == 1
    assert tokens_of(after) == [[2] * 25] * 2 != tokens_of(before)
    assert tokens_of(after) == tokens_of(found(model, None))


def test_weights_that_lie_elsewhere_are_recorded_anew() -> None:
    model, graphs = Chain().eval(), Graphs(from_visit=1)
    found(model, graphs)
    kept = model.output.bias  # so that nothing else is put there
    model.output.bias = nn.Parameter(torch.eye(V)[2] * 100)
    assert tokens_of(found(model, graphs)) == [[2] * 25] * 2
    assert len(graphs.rooms) == 2
    assert kept is not model.output.bias


def test_an_attribute_that_changes_is_recorded_anew() -> None:
    model, graphs = Chain().eval(), Graphs(from_visit=1)
    found(model, graphs, rows=1)
    model.strength = -1.0
    assert tokens_of(found(model, graphs, rows=1)) == tokens_of(found(model, None, rows=1))
    assert graphs.recorded == 2


def test_the_least_recently_used_shape_is_dropped() -> None:
    model, graphs = Chain().eval(), Graphs(most_rooms=2, from_visit=1)
    for rows in (1, 2, 1, 3):
        found(model, graphs, rows=rows)
    assert graphs.recorded == 3
    found(model, graphs, rows=1)
    assert graphs.recorded == 3
    found(model, graphs, rows=2)
    assert graphs.recorded == 4
    assert len(graphs.rooms) == 2


def test_recordings_hold_no_more_bytes_than_they_may() -> None:
    model = Chain().eval()
    free, bounded = Graphs(from_visit=1), Graphs(from_visit=1, most_bytes=4000)
    for rows in (1, 2, 3, 4):
        found(model, free, rows=rows, ends=())
        found(model, bounded, rows=rows, ends=())
    sizes = [room.size for room in free.rooms.values()]
    assert sum(sizes) > 4000 > sizes[-1]
    assert sum(room.size for room in bounded.rooms.values()) <= 4000
    [*_, last] = bounded.rooms.values()
    assert last.size == sizes[-1]


def test_a_state_that_grows_is_not_recorded() -> None:
    model = Chain()

    class Growing(nn.Module):
        def step(self, tokens: Tensor, past: Tensor, _: tuple[()]) -> tuple[Tensor, Tensor]:
            past = torch.cat([past, model.embedding(tokens)], dim=1)
            return model.output(past.unflatten(1, (-1, 4)).mean(1)).log_softmax(1), past

    graphs = Graphs(from_visit=1)
    expected = found(Growing(), None, length=45)
    for _ in range(2):
        assert found(Growing(), graphs, length=45) == expected
    assert graphs.refusals == [GROWS]
    [room] = graphs.rooms.values()
    assert room.size == 0


def test_where_recording_fails_steps_are_done_as_ever_and_the_reason_is_kept() -> None:
    model, calls = Chain(), list[int]()

    class Failing(nn.Module):
        def step(self, tokens: Tensor, h: Tensor, fixed: tuple[()]) -> tuple[Tensor, Tensor]:
            calls.append(len(tokens))
            if len(calls) == 13:  # the first ten show the shapes, then it is recorded
                raise RuntimeError("operation not permitted when stream is capturing\nmore lines")
            return model.step(tokens, h, fixed)

    graphs = Graphs(from_visit=1)
    expected = found(model, None)
    assert found(Failing(), graphs) == expected
    [reason] = graphs.refusals
    assert reason == "CUDA could not capture its steps: operation not permitted when stream is capturing"
    assert found(Failing(), graphs) == expected
    assert graphs.recorded == 0


def test_a_state_that_comes_in_another_shape_at_first_is_replayed_from_there() -> None:
    model = Chain()

    class Late(nn.Module):
        """Its state has no h before the first step."""

        def step(self, tokens: Tensor, moving: Any, _: tuple[()]) -> tuple[Tensor, Any]:
            count, h = moving
            h = torch.zeros(len(tokens), 4) if h is None else h
            log_p, h = model.step(tokens, h, ())
            return log_p, (count + 1, h)

    def run(graphs: Graphs | None) -> list[list[Hypothesis]]:
        start = (torch.zeros(3, dtype=torch.long), (torch.zeros(3, 1), None), ())
        own: dict[str, Any] = {"width": 3, "best": 3, "length": 35, "ends": []}
        return follow_beam(lambda: Late().step, *start, graphs=graphs, **own)

    graphs, expected = Graphs(from_visit=1), run(None)
    for _ in range(3):
        assert run(graphs) == expected
    assert graphs.recorded >= 2
    assert graphs.refusals == []


def test_tensors_that_trade_places_are_copied_rightly() -> None:
    """A step that hands on what it was given, in other fields."""
    model = Chain()

    def step(tokens: Tensor, moving: tuple[Tensor, Tensor], _: tuple[()]) -> Any:
        log_p, h = model.step(tokens, moving[0], ())
        return log_p, (moving[1], moving[0]) if len(tokens) else (h, h)

    start = (torch.zeros(2, dtype=torch.long), (torch.randn(2, 4), torch.randn(2, 4)), ())
    expected = follow(lambda: step, *start, length=23)
    graphs = Graphs(from_visit=1)
    for _ in range(2):
        assert follow(lambda: step, *start, length=23, graphs=graphs) == expected


def test_answers_of_one_search_stay_when_the_next_is_replayed() -> None:
    model, graphs = Chain().eval(), Graphs(from_visit=1)
    watched: dict[str, Any] = {"watch": lambda h: h}
    one = found(model, graphs, **watched)
    copies = [each.watched.clone() for each in one if each.watched is not None]
    with torch.no_grad():
        model.embedding.weight += 1.0
    found(model, graphs, **watched)
    for each, copy in zip(one, copies, strict=True):
        assert each.watched is not None
        assert torch.equal(each.watched, copy)


def test_searches_of_several_threads_do_not_disturb_each_other() -> None:
    model, graphs = Chain().eval(), Graphs(from_visit=1)
    expected = {rows: found(model, None, rows=rows, length=40) for rows in (1, 2, 3)}
    starts = [rows for rows in (1, 2, 3) for _ in range(8)]
    with ThreadPoolExecutor(6) as pool:
        for rows, answer in zip(starts, pool.map(lambda rows: found(model, graphs, rows, 40), starts), strict=True):
            assert tokens_of(answer) == tokens_of(expected[rows])


def test_inference_mode_leaves_nothing_behind_that_later_searches_cannot_write_to() -> None:
    model, graphs = Chain().eval(), Graphs(from_visit=1)
    expected = found(model, None, ends=())
    with torch.inference_mode():
        assert tokens_of(found(model, graphs, ends=())) == tokens_of(expected)
    for _ in range(2):
        assert tokens_of(found(model, graphs, ends=())) == tokens_of(expected)
    assert graphs.refusals == []


def hooked(model: Chain) -> None:
    model.output.register_forward_hook(lambda *_: None)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda model: model.train(), "training mode"),
        (hooked, "Linear has forward hooks, which replayed steps would not call"),
        (lambda model: None, None),
    ],
)
def test_models_whose_steps_must_be_called_are_not_recorded(change: Callable[[Any], None], reason: str | None) -> None:
    model = Chain().eval()
    change(model)
    refusal = marks_of(model).refusal
    assert refusal is None if reason is None else reason in (refusal or "")


def test_under_autocast_nothing_is_recorded() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert "autocast" in (marks_of(Chain().eval()).refusal or "")


def test_recordings_go_with_their_model() -> None:
    model = Chain().eval()
    graphs = graphs_of(model)
    assert graphs_of(model) is graphs
    assert model in GRAPHS
    before = len(GRAPHS)
    del model
    gc.collect()
    assert len(GRAPHS) == before - 1


def test_rows_are_rounded_up_to_few_sizes() -> None:
    sizes = [rounded(count) for count in range(1, 600)]
    assert all(count <= size <= 1.25 * count for count, size in enumerate(sizes, 1))
    assert sorted({*sizes})[:18] == [*range(1, 9), 10, 12, 14, 16, 20, 24, 28, 32, 40, 48]
    assert len({*sizes}) == 33


def test_leaves_are_all_tensors_however_deep() -> None:
    one, other = torch.ones(1), torch.ones(2)
    assert [id(leaf) for leaf in leaves((None, (one, 3), ((other,),)))] == [id(one), id(other)]
