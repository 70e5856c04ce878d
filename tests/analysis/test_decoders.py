"""Decoders while they write: gates of their cells and gradients through time, for every wiring and conditioning."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from recurra.analysis.gates import Gates
from recurra.analysis.gradients import flows, forgotten
from recurra.analysis.jacobian import products
from recurra.analysis.watching import Seen, Watch
from recurra.cells.cell import fields
from recurra.cli import main
from recurra.errors import ConfigError
from recurra.models.seq2seq import PairBatch
from recurra.padding import Padded, fitted
from recurra.runs import begin, setup
from recurra.training.explaining import example_of
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.analysis import small_runs
from tests.tasks.small_givens import colours

WIRINGS = {
    "alone": ["model.attention=none"],
    "between": ["model.wiring=between", "model.decoder.layers=2"],
    "between, past layers": ["model.wiring=between", "model.decoder.layers=2", "model.skip=residual", "model.mix=mean"],
    "inside": ["model.wiring=inside", "model.decoder.layers=2"],
    "feeding": ["model.wiring=feeding", "model.decoder.layers=2"],
    "conditional": ["model.wiring=conditional"],
    "first": ["model.wiring=feeding", 'model.conditioning=["first"]'],
    "first of two cells": ["model.wiring=conditional", 'model.conditioning=["first"]', "model.cell=gru"],
}


def writer(name: str) -> Trained:
    return small_runs.writer(*WIRINGS[name])


@cache
def painter(*overrides: str) -> Trained:
    """Vector to sequence, from a colour to its name."""
    here = Path(mkdtemp())
    few = [each for each in small_runs.FEW if "hidden" not in each]
    names = ["data.columns=['target', 'r', 'g', 'b']", "decoding.min_length=2", "decoding.max_length=6"]
    given = {"train": colours(here)}
    begin(setup("vec2seq", given=given, overrides=[*few, *names, "model.hidden=5", *overrides]), here / "run", Silent())
    return load(here / "run")


def gates(model: Trained, text: str, layer: int | None = None) -> tuple[Gates, Any]:
    """What the decoder's cells did, and the answer that they wrote."""
    task: Any = model.task
    asked = model.asked(example_of(task, text))._replace(layer=layer)
    return task.decoder_gates(asked), task.hypothesis(asked)


@torch.no_grad()
def stepped(model: Trained, row: Any) -> list[Any]:
    """The states of the decoder after each step, made one at a time as a search makes them; first the one before."""
    network: Any = model.model
    batch = fitted(model.task.batch([row]), network)
    tokens, state, fixed = network.start(batch)
    found = [state]
    for token in [tokens, *batch.target.values[0, :-1].split(1)]:
        _, state = network.step(token, state, fixed)
        found.append(state)
    return found


@pytest.mark.parametrize("name", WIRINGS)
def test_gates_of_a_decoder_are_those_of_its_own_steps(name: str) -> None:
    model = writer(name)
    found, answer = gates(model, "cat")
    states = stepped(model, answer.row)
    led = "first" in name
    assert found.tokens == [*["(source)"] * led, "<s>", *answer.tokens[:-1]]
    for field in fields(states[0].cells[-1]):
        wanted = torch.cat([getattr(state.cells[-1], field) for state in states[0 if led else 1 :]]).T
        assert np.allclose(found.values[field], wanted.double().numpy(), atol=1e-5), field
    if "c" in found.values and name != "conditional":  # the equations hold between one step and the next
        i, f, candidate, c = (found.values[part] for part in ("i", "f", "candidate", "c"))
        assert np.allclose(c[:, 1:], f[:, 1:] * c[:, :-1] + i[:, 1:] * candidate[:, 1:], atol=1e-9)


def test_two_cells_of_a_step_are_two_layers_and_the_second_goes_on_from_the_first() -> None:
    model = writer("conditional")
    first, answer = gates(model, "cat", 1)
    second, _ = gates(model, "cat", 2)
    assert first.title == "lstm, layer 1 of 2 of the decoder, before attention"
    assert second.title == "lstm, layer 2 of 2 of the decoder, after attention"
    i, f, candidate = (second.values[part] for part in ("i", "f", "candidate"))
    assert np.allclose(second.values["c"], f * first.values["c"] + i * candidate, atol=1e-9)
    with pytest.raises(ConfigError, match="--layer 3: this decoder has 2 layers"):
        gates(model, "cat", 3)
    assert len(first.tokens) == len(answer.tokens)


def read_by(network: Any) -> Tensor:
    """The summed log p of two targets of different lengths."""
    source = Padded(torch.tensor([[4, 5, 2], [6, 2, 0]]), torch.tensor([3, 2]))
    target = Padded(torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0]]), torch.tensor([4, 2]))
    found: Tensor = network.token_log_likelihoods(PairBatch(source, target, None)).sum()
    return found


def of_decoder(watch: Watch) -> list[Seen]:
    return [seen for seen in watch.seen() if seen.name.startswith("decoder.")]


@pytest.mark.parametrize("name", WIRINGS)
def test_what_each_step_of_a_decoder_adds_sums_to_the_gradient(name: str) -> None:
    network = copy.deepcopy(writer(name).model).double().eval()
    read_by(network).backward()
    watch = Watch(network)
    loss = read_by(watch.model)
    seen = of_decoder(watch)
    assert len(seen) == {"alone": 1, "first": 1}.get(name, 2)
    for flow in flows(loss, seen):
        each = flow.seen
        assert each.is_led == ("first" in name)
        assert each.lengths.tolist() == ([5, 3] if each.is_led else [4, 2])
        cell = network.get_submodule(f"{each.name}.cells.{each.layer}.0")
        for key, parameter in cell.named_parameters():
            total = sum(flow.weights(k)[key] for k in range(len(each.steps)))
            assert parameter.grad is not None
            assert torch.allclose(torch.as_tensor(total), parameter.grad, rtol=1e-9, atol=1e-12), (each.title, key)


@pytest.mark.parametrize("which", [0, 1])
def test_a_change_goes_through_both_cells_of_a_step(which: int) -> None:
    watch = Watch(writer("conditional").model)
    read_by(watch.model)
    seen = of_decoder(watch)
    mine, (first, second) = seen[which], seen
    steps = len(mine.steps)

    def onward(*start: Tensor) -> tuple[Tensor, ...]:
        """From the state after the cell's first step to that after its last, inputs and contexts held."""
        turns = [turn for k in range(steps) for turn in ((first, k), (second, k))]
        at, end = (turns.index((mine, k)) for k in (0, steps - 1))
        state: Any = mine.cell.State(*start)
        for each, k in turns[at + 1 : end + 1]:
            fixed = each.cell.fixed(1, start[0])
            state = each.cell.step(each.cell.project(each.steps[k].x[:1].detach(), fixed), state, fixed)
        return tuple(state)

    given = tuple(field[:1].detach() for field in mine.steps[0].after)
    wanted: Any = torch.autograd.functional.jacobian(onward, given)
    found = products(mine)
    for number, field in enumerate(("h", "c")):
        largest = torch.linalg.svdvals(wanted[number][number].squeeze(2).squeeze(0))[0]
        assert float(found.largest[field][0, steps - 1].exp()) == pytest.approx(float(largest), rel=1e-9)


def test_a_memory_is_left_by_the_forget_gates_of_both_cells_of_a_step() -> None:
    watch = Watch(writer("conditional").model)
    read_by(watch.model)
    first, second = of_decoder(watch)
    f = [[step.parts.f[0] for step in seen.steps] for seen in (first, second)]  # type: ignore[attr-defined]
    left = {name: forgotten(seen) for name, seen in (("first", first), ("second", second))}
    assert left["first"] is not None
    assert left["second"] is not None
    # Four steps of the first row: from c'_2 to c'_4, and from c_2 to c_4.
    assert torch.allclose(left["first"][0, 2], f[0][3] * f[1][2] * f[0][2] * f[1][1])
    assert torch.allclose(left["second"][0, 2], f[1][3] * f[0][3] * f[1][2] * f[0][2])


def test_a_search_is_no_sequence_and_leaves_nothing_to_see() -> None:
    model = writer("first")
    watch = Watch(model.model)
    [row] = [model.task.encode(example_of(model.task, "cat"))]
    with torch.no_grad():
        model.task.predict(watch.model, fitted(model.task.batch([row]), watch.model))
    assert of_decoder(watch) == []
    read_by(watch.model)
    assert [len(seen.steps) for seen in of_decoder(watch)] == [5]


@pytest.mark.parametrize("conditioning", ["initial", "first", "every"])
def test_what_writes_of_a_vector_shows_its_gates_on_the_command_line(
    conditioning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(painter(f'model.conditioning=["{conditioning}"]').folder)
    assert main(["explain", run, "255 0 0", "--show", "decoder"]) == 0
    said = capsys.readouterr().out
    assert "lstm, layer 1 of 1 of the decoder: means over units" in said
    assert ("(source)" in said) == (conditioning == "first")
    assert main(["gradients", run, "255 0 0"]) == 0
    assert "decoder.wiring.cells, layer 1: lstm, 5 units" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["model.decoder.kind=transformer", "model.hidden=8"], "has no recurrent decoder"),
        (["model.attention=none"], "--direction backward: a decoder reads forward only"),
    ],
)
def test_what_has_no_gates_of_a_decoder_is_said(overrides: list[str], said: str) -> None:
    model = small_runs.writer(*overrides)
    task: Any = model.task
    with pytest.raises(ConfigError, match=said):
        task.decoder_gates(model.asked(example_of(task, "cat"))._replace(direction="backward"))


def test_gradients_of_a_decoder_that_attends_say_what_is_held(capsys: pytest.CaptureFixture[str]) -> None:
    run = str(writer("feeding").folder)
    assert main(["gradients", run]) == 0
    said = capsys.readouterr().out
    assert "decoder.wiring.cells, layer 2: lstm" in said
    assert "The Jacobians are of the cell alone" in said
    assert "‖∂L/∂h_t‖" in said
