"""Which validation examples a report shows: short ones of usual length, right and wrong where that can be told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from recurra.data.store import Encoded
from recurra.errors import RecurraError
from recurra.tasks.task import Judgement, Prediction, Task

USUAL, LONGEST = 24, 100
"""Elements of an example that fits a page; of one that is shown where all are longer."""

LOOKED_AT = 500
"""So many examples, those nearest to the usual length, are asked whether they were answered right."""


class Chosen(NamedTuple):
    """A validation example that is shown, with its answer."""

    example: Any
    place: str  # file:line
    length: int  # elements that are read, written or to be written, whichever are more
    answer: Prediction | None = None  # None of a piece of an example, which has none of its own
    verdict: Judgement | None = None  # None where right and wrong cannot be told


def few(
    task: Task[Any, Any, Any], examples: Sequence[Any], rows: Sequence[Encoded], outputs: Sequence[Any], most: int
) -> list[Chosen]:
    """At most so many examples: one of usual length, one that was answered otherwise, right or wrong, and others.

    `rows` are the examples encoded, `outputs` what a model found for them; the same are chosen each time.
    """
    files = _files(task)

    def place_of(example: Any) -> str:
        file, line = task.origin(example)
        return f"{files[min(file, len(files) - 1)]}:{line}" if files else f"line {line}"

    pieces = task.portions(examples, most)
    if pieces is not None:
        return _spread([Chosen(piece, place_of(piece), length) for piece, length in pieces], most)
    lengths = [task.extent(row, output) for row, output in zip(rows, outputs, strict=True)]
    limit = USUAL if any(0 < length <= USUAL for length in lengths) else LONGEST
    numbers = [
        number for number, length in enumerate(lengths) if 0 < length <= limit and _is_answered(task, examples[number])
    ]
    if not numbers:
        return []
    usual = sorted(lengths[number] for number in numbers)[len(numbers) // 2]
    if limit == LONGEST:  # of such long ones, the shortest alone
        usual, most = min(lengths[number] for number in numbers), 1
    numbers.sort(key=lambda number: (abs(lengths[number] - usual), number))
    judge = task.judge(examples)
    found: dict[str, Chosen] = {}
    for number in numbers[:LOOKED_AT]:
        example, answer = examples[number], task.answer(examples[number], outputs[number])
        place = place_of(example)
        name = answer.input or place
        if name not in found:
            found[name] = Chosen(example, place, lengths[number], answer, judge(example, answer))
    candidates = list(found.values())
    if candidates[0].verdict is None:
        return _spread(candidates, most)
    return _right_and_wrong(candidates, most)


def _right_and_wrong(candidates: Sequence[Chosen], most: int) -> list[Chosen]:
    """The first, one that was answered otherwise, then those that are wrong: there is more to see in them."""
    first, *others = candidates
    otherwise = [number for number, each in enumerate(others) if _is_right(each) != _is_right(first)][:1]
    rest = sorted(set(range(len(others))) - {*otherwise}, key=lambda number: (_is_right(others[number]), number))
    return [first, *(others[number] for number in (*otherwise, *rest))][:most]


def _spread(candidates: Sequence[Chosen], most: int) -> list[Chosen]:
    """The one of median length first, then shorter and longer ones."""
    by_length = sorted(candidates, key=lambda each: each.length)
    count = min(most, len(by_length))
    places = sorted({(2 * n + 1) * len(by_length) // (2 * count) for n in range(count)})
    places.sort(key=lambda place: abs(2 * place + 1 - len(by_length)))
    return [by_length[place] for place in places]


def _is_right(chosen: Chosen) -> bool:
    return chosen.verdict is not None and chosen.verdict.is_right


def _is_answered(task: Task[Any, Any, Any], example: Any) -> bool:
    try:
        task.check_explained(example)
    except RecurraError:
        return False
    return True


def _files(task: Task[Any, Any, Any]) -> list[str]:
    """What the files of validation are called; parallel ones are named together."""
    files = task.settings.data.files("valid")
    return [",".join(Path(part).name for part in file.split(",")) for file in files]
