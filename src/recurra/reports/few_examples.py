"""Which validation examples a report shows: short ones of usual length, right and wrong where that can be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from recurra.data.store import Encoded
from recurra.reading.texts import Passage
from recurra.tasks.classification import Classification
from recurra.tasks.language_model import NEWLINE, LanguageModel
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import Prediction, Task
from recurra.tasks.to_sequence import ToSequence

USUAL, LONGEST, TEXT = 24, 100, 160
"""Elements of an example that fits a page; of one that is shown where all are longer; of a stretch of running text."""

LOOKED_AT = 500
"""So many examples, those nearest to the usual length, are asked whether they were answered right."""

STRETCHES = 1000
"""So many stretches of a running text are looked at."""

SEQUENCES = ("source", "words", "frames", "tokens", "target")


class Chosen(NamedTuple):
    """A validation example that is shown, with its answer."""

    example: Any
    place: str  # file:line
    length: int  # elements that are read, written or to be written, whichever are more
    answer: Prediction | None  # None of a language model, which gives none
    wanted: str | None  # None where there is no one right answer
    is_right: bool | None = None


def few(
    task: Task[Any, Any, Any], examples: Sequence[Any], rows: Sequence[Encoded], outputs: Sequence[Any], most: int
) -> list[Chosen]:
    """At most so many examples: one of usual length, one that was answered otherwise, right or wrong, and others.

    `rows` are the examples encoded, `outputs` what a model found for them; the same are chosen each time.
    """
    if isinstance(task, LanguageModel):
        return _spread(list(islice(_stretches(task, examples), STRETCHES)), most)
    lengths = [_length(task, row, output) for row, output in zip(rows, outputs, strict=True)]
    limit = USUAL if any(0 < length <= USUAL for length in lengths) else LONGEST
    numbers = [
        number for number, length in enumerate(lengths) if 0 < length <= limit and not _is_empty(task, examples[number])
    ]
    if not numbers:
        return []
    usual = sorted(lengths[number] for number in numbers)[len(numbers) // 2]
    if limit == LONGEST:  # of such long ones, the shortest alone
        usual, most = min(lengths[number] for number in numbers), 1
    numbers.sort(key=lambda number: (abs(lengths[number] - usual), number))
    references, files = _references(task, examples), _files(task)
    found: dict[str, Chosen] = {}
    for number in numbers[:LOOKED_AT]:
        example, answer = examples[number], task.answer(examples[number], outputs[number])
        wanted = wanted_of(task, example)
        place = f"{files[example.file]}:{example.line}"
        name = answer.input or place
        if name not in found:
            right = None if wanted is None else _is_right(task, example, answer.output, wanted, references)
            found[name] = Chosen(example, place, lengths[number], answer, wanted, right)
    candidates = list(found.values())
    if candidates[0].is_right is None:
        return _spread(candidates, most)
    return _right_and_wrong(candidates, most)


def _right_and_wrong(candidates: Sequence[Chosen], most: int) -> list[Chosen]:
    """The first, one that was answered otherwise, then those that are wrong: there is more to see in them."""
    first, *others = candidates
    otherwise = [number for number, each in enumerate(others) if each.is_right != first.is_right][:1]
    rest = sorted(set(range(len(others))) - {*otherwise}, key=lambda number: (others[number].is_right is True, number))
    return [first, *(others[number] for number in (*otherwise, *rest))][:most]


def _spread(candidates: Sequence[Chosen], most: int) -> list[Chosen]:
    """The one of median length first, then shorter and longer ones."""
    by_length = sorted(candidates, key=lambda each: each.length)
    count = min(most, len(by_length))
    places = sorted({(2 * n + 1) * len(by_length) // (2 * count) for n in range(count)})
    places.sort(key=lambda place: abs(2 * place + 1 - len(by_length)))
    return [by_length[place] for place in places]


def _stretches(task: LanguageModel, passages: Sequence[Passage]) -> Iterator[Chosen]:
    """Lines of a text; as many together as fit a page where they follow on each other."""
    files, together = _files(task), not task.settings.data.independent
    for passage in passages:
        kept, tokens, start = list[str](), 0, 0
        for number, line in enumerate([*passage.text.split(NEWLINE), None]):
            size = 0 if line is None else len(task.ids(line))
            if kept and (line is None or not together or tokens + size > TEXT):
                place = f"{files[min(passage.file, len(files) - 1)]}:{start}"
                yield Chosen(Passage(NEWLINE.join(kept), passage.file, start), place, tokens, None, None)
                kept, tokens = [], 0
            if line is not None and line.strip() and size <= TEXT:
                start = start if kept else passage.line + number
                kept.append(line)
                tokens += size


def _files(task: Task[Any, Any, Any]) -> list[str]:
    """What the files of validation are called; parallel ones are named together."""
    files = task.settings.data.files("valid")
    return [",".join(Path(part).name for part in file.split(",")) for file in files]


def _length(task: Task[Any, Any, Any], row: Encoded, output: Any) -> int:
    read = max((len(row[name]) for name in SEQUENCES if name in row), default=1)
    return max(read, len(output.answers[0].tokens)) if isinstance(task, ToSequence) and output.answers else read


def _is_empty(task: Task[Any, Any, Any], example: Any) -> bool:
    return isinstance(task, ToSequence) and task.is_empty(example)


def wanted_of(task: Task[Any, Any, Any], example: Any) -> str | None:
    """The right answer, as the task would print it; None where numbers are wanted, or not all of it is known."""
    if isinstance(task, ToSequence):
        target: str | None = example.target
        return target
    if isinstance(task, Tagging) and task.values is None:
        parts = [
            *(" ".join(tags) for tags in example.tags),
            *([example.label or ""] if task.labels is not None else []),
        ]
        is_whole = all(all(tags) for tags in example.tags) and all(parts)
        return "\t".join(parts) if is_whole else None
    if isinstance(task, Classification) and task.kind != "targets":
        places = {label: place for place, label in enumerate(task.labels.tokens)}
        return ",".join(sorted(example.labels, key=lambda label: places.get(label, len(places))))
    return None


def _references(task: Task[Any, Any, Any], examples: Sequence[Any]) -> Mapping[str, list[str]]:
    """All right answers to each question, of which there may be several: a word may be said in more than one way."""
    found: dict[str, list[str]] = {}
    if isinstance(task, ToSequence):
        for example in examples:
            found.setdefault(task.key(example), []).append(example.target or "")
    return found


def _is_right(
    task: Task[Any, Any, Any], example: Any, said: str, wanted: str, references: Mapping[str, list[str]]
) -> bool:
    if not isinstance(task, ToSequence):
        return said == wanted
    split = task.texts.target.split
    return any(said == each or split(said) == split(each) for each in references[task.key(example)])
