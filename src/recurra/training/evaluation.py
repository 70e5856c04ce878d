"""A model's outputs for many examples, in the order of the examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from recurra.data.batches import in_order_of_length
from recurra.data.store import Encoded, Rows
from recurra.engines.waiting import check_done
from recurra.models.together import Together
from recurra.padding import exact, fitted
from recurra.tasks.task import Task
from recurra.training.answering import TOKENS


def outputs_of(
    task: Task[Any, Any, Any],
    model: nn.Module,
    rows: Sequence[Encoded],
    *,
    tokens: int = TOKENS,
    detail: bool = False,
    told: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """Outputs of the model in evaluation mode; which rows are predicted together does not change them."""
    was_training = model.training
    if was_training:  # to look at every module takes long beside one short sentence
        model.eval()
    found: list[Any] = [None] * len(rows)
    done = 0
    for numbers in in_order_of_length(task.lengths(Rows.of(rows)), tokens=tokens):
        batch = fitted(task.batch([rows[number] for number in numbers]), model)
        for number, output in zip(numbers, task.predict(model, batch, detail=detail), strict=True):
            found[number] = output
        done += len(numbers)
        if told is not None:
            told(done, len(rows))
    if was_training:
        model.train()
    if rows:
        check_done(device_of(model))
    return found


def device_of(model: nn.Module) -> torch.device:
    return next((each.device for each in model.parameters()), torch.device("cpu"))


@torch.no_grad()
def outputs_to_score(
    task: Task[Any, Any, Any],
    model: nn.Module,
    rows: Sequence[Encoded],
    *,
    told: Callable[[int, int], None] | None = None,
    apart: Callable[[Sequence[Encoded]], list[Any]] | None = None,
) -> list[Any]:
    """Outputs for the examples of a file, which may follow on each other; those that do not are given to `apart`."""
    was_training = model.training
    model.eval()
    found = task.outputs(model, rows, device=str(next(model.parameters()).device))
    model.train(was_training)
    if found is not None:
        check_done(device_of(model))
        return found
    return outputs_of(task, model, rows, told=told) if apart is None else apart(rows)


@torch.no_grad()
def combined_outputs(
    task: Task[Any, Any, Any], model: Together, examples: Sequence[Any], *, tokens: int = TOKENS, scoring: bool = False
) -> list[Any]:
    """What several runs say together of each example, or, to be scored, of examples that may follow on each other."""
    encoded = ([each.encode(example) for example in examples] for each, _ in model.pairs)
    members = [(*pair, rows) for pair, rows in zip(model.pairs, encoded, strict=True)]
    if scoring:
        found_at_once = task.outputs_together(list(model.members), members[0][2])
        if found_at_once is not None:
            check_done(device_of(model))
            return found_at_once
        device = str(next(model.parameters()).device)
        wholes = [each.outputs(network, rows, device=device) for each, network, rows in members]
        if wholes[0] is not None:
            check_done(device_of(model))
            return [task.combined(examples[number], parts) for number, parts in enumerate(zip(*wholes, strict=True))]
    found: list[Any] = [None] * len(examples)
    for numbers in in_order_of_length(task.lengths(Rows.of(members[0][2])), tokens=tokens):
        parts = [
            each.to_combine(network, fitted(each.batch([rows[number] for number in numbers]), network))
            for each, network, rows in members
        ]
        for number, outputs in zip(numbers, zip(*parts, strict=True), strict=True):
            found[number] = task.combined(examples[number], outputs)
    check_done(device_of(model))
    return found


@torch.no_grad()
def loss_of(task: Task[Any, Any, Any], model: nn.Module, rows: Sequence[Encoded], *, tokens: int = TOKENS) -> float:
    """The loss per label in evaluation mode; NaN where nothing is labelled."""
    was_training = model.training
    model.eval()
    total, count = exact(torch.zeros((), device=next(model.parameters()).device)), 0
    for numbers in in_order_of_length(task.lengths(Rows.of(rows)), tokens=tokens):
        loss = task.loss(model, fitted(task.batch([rows[number] for number in numbers]), model))
        total, count = total + exact(loss.total), count + loss.labels  # looked at once, at the end
    model.train(was_training)
    found = float(total) / count if count else float("nan")
    check_done(device_of(model))
    return found
