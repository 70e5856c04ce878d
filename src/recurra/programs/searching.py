"""Answers that are looked for in C: what recurra.search finds with the step of a program, in one call."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.config import Seq2SeqDecoding
from recurra.errors import DataError
from recurra.frozen import NamedTuple
from recurra.programs.c_searching import FOUND, MANNER, SEARCHES
from recurra.programs.in_c import MOST_SHAPES, WRONG, InC
from recurra.programs.inputs import Running
from recurra.programs.program import Function
from recurra.programs.searchable import Usual
from recurra.search.decoding import SearchTokens
from recurra.search.rules import NONE, Law, Rules
from recurra.search.sampling import Filter
from recurra.search.score import check_penalties
from recurra.search.search import Hypothesis, check_count, lengths_of, no_token

NUMBERS, RULES = 5, 6
"""What a search in C returns where log p are no numbers, and where rules leave nothing to choose."""

C_KINDS: dict[str, Any] = {"int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "double": ctypes.c_double}


class CManner(ctypes.Structure):
    """How answers are looked for, as C has it."""

    _fields_ = tuple((name, C_KINDS.get(kind, ctypes.c_void_p)) for kind, name, _ in MANNER)


class CFound(ctypes.Structure):
    """Where answers are put, as C has it."""

    _fields_ = tuple((name, C_KINDS.get(kind, ctypes.c_void_p)) for kind, name, _ in FOUND)


class Begun(NamedTuple):
    """What a search begins with: a row for each sentence."""

    tokens: NDArray[np.int64]
    moving: Sequence[NDArray[Any]]
    fixed: Sequence[NDArray[Any]] = ()
    extra: Sequence[NDArray[Any]] = ()


class Wanted(NamedTuple):
    """What is looked for, and how."""

    search: str
    length: int | Sequence[int]
    ends: Collection[int]
    rules: Rules = NONE
    width: int = 1
    best: int = 1
    length_penalty: float = 0.0
    coverage_penalty: float = 0.0
    keep: Filter = Filter()
    seed: int = 1
    numbers: Sequence[int] | None = None
    watches: bool = False
    places: NDArray[np.bool_] | None = None

    @classmethod
    def by(cls, decoding: Seq2SeqDecoding, **others: Any) -> Wanted:
        """As [decoding] says."""
        keep = Filter(temperature=decoding.temperature, top_k=decoding.top_k, top_p=decoding.top_p)
        return cls(
            search=decoding.search,
            width=decoding.width,
            best=decoding.best,
            length_penalty=decoding.length_penalty,
            coverage_penalty=decoding.coverage_penalty,
            keep=keep,
            seed=decoding.seed,
            **others,
        )


def usual(decoding: Seq2SeqDecoding, words: SearchTokens, first: int) -> Usual:
    """What [decoding] says, as a C program asks for it."""
    return {
        "search": SEARCHES.index(decoding.search) if decoding.search in SEARCHES else 0,
        "width": decoding.width,
        "best": decoding.best,
        "first": first,
        "end": words.end,
        "max_length": decoding.max_length,
        "min_length": decoding.min_length,
        "no_repeat": decoding.no_repeat,
        "max_ratio": decoding.max_ratio or 0.0,
        "length_penalty": decoding.length_penalty,
        "coverage_penalty": decoding.coverage_penalty,
        "temperature": decoding.temperature,
        "top_p": 1.0 if decoding.top_p is None else decoding.top_p,
        "top_k": decoding.top_k or 0,
        "seed": decoding.seed % 2**63,
        "banned": sorted({*words.never, *words.banned}),
        "forced": sorted({*words.forced}),
        "prefix": words.prefix,
    }


def why_not_in_c(running: Running, wanted: Wanted) -> str | None:
    """Why a search is left to NumPy, in words; None where C does it."""
    if not isinstance(running, InC):
        return "the program is run by NumPy"
    if running.searchable is None:
        return "the program has no step that C can search"
    if wanted.search not in SEARCHES:
        return f"C has no search '{wanted.search}'"
    if wanted.rules.brackets.pairs:
        return "C does not match brackets"
    if any(isinstance(each, Sequence) for each in wanted.rules.prefix):
        return "each sentence has a prefix of its own"
    if len({*wanted.ends}) > 1:
        return "several tokens end an answer"
    return None


def searched_in_c(running: Running, begun: Begun, wanted: Wanted) -> list[list[Hypothesis]]:
    """Hypotheses for each sentence, best first, as recurra.search finds them; see `why_not_in_c`."""
    check_count(wanted.width, "width")
    check_count(wanted.best, "best")
    assert isinstance(running, InC), "`why_not_in_c` has an objection"
    found = running.searchable
    assert found is not None, "`why_not_in_c` has an objection"
    sizes = sizes_of(running, begun)
    looks = found.places is not None
    check_penalties(wanted.length_penalty, wanted.coverage_penalty, looks or wanted.search != "beam")
    rows = len(begun.tokens)
    lengths = lengths_of(wanted.length, rows)
    if not rows:
        return []
    law = Law(wanted.rules, lengths, wanted.ends)
    law.check_vocabulary(found.tokens.at(sizes))
    watches = wanted.watches and looks
    places = found.places.at(sizes) if found.places is not None else 0
    held = Held()
    manner = manner_of(wanted, law, held, looks=looks)
    room = CRoom.of(rows, 1 if wanted.search == "greedy" else wanted.best, max(lengths), places if watches else None)
    into = room.found()
    given = [*begun.moving, *begun.fixed, *begun.extra]
    types = [each.value.type for each in found.step.inputs[1:]]
    arguments: list[int | None] = [held.at(begun.tokens, np.int64)]
    arguments += [held.at(array, kind) for array, kind in zip(given, types, strict=True)]
    if looks:
        arguments.append(None if wanted.places is None else held.at(wanted.places, bool))
    call = running.code.recurra_search
    names = [ctypes.c_int64(sizes[name]) for name in found.names]
    status = call(
        running.model,
        ctypes.byref(manner),
        ctypes.c_int64(rows),
        *names,
        *map(ctypes.c_void_p, arguments),
        ctypes.byref(into),
    )
    if status == NUMBERS:
        raise no_token()
    if status == RULES:
        raise law.dead_end(into.sentence, into.position)
    if status:
        raise DataError(f"the program cannot search from these inputs: {WRONG.get(status, status)}.")
    return room.hypotheses()


def sizes_of(running: InC, begun: Begun) -> dict[str, int]:
    """What the names of sizes mean for a search that begins so, one hypothesis for each sentence."""
    step: Function = running.program.functions["step"]
    shapes = tuple(each.shape for each in (begun.tokens, *begun.moving, *begun.fixed, *begun.extra))
    known = running.searched_sizes
    if shapes not in known:
        if len(known) >= MOST_SHAPES:
            known.clear()
        try:
            known[shapes] = step.sizes(shapes)
        except ValueError as error:
            raise DataError(f"the program cannot search from these inputs ({error}).") from error
    return known[shapes]


def manner_of(wanted: Wanted, law: Law, held: Held, *, looks: bool) -> CManner:
    keep, manner = wanted.keep.checked(), CManner()
    manner.search = SEARCHES.index(wanted.search)
    manner.width, manner.best = wanted.width, 1 if wanted.search == "greedy" else wanted.best
    manner.end = law.ends[0] if law.ends else -1
    manner.no_repeat = law.no_repeat
    manner.length_penalty = wanted.length_penalty
    manner.coverage_penalty = wanted.coverage_penalty if looks else 0.0
    manner.temperature, manner.top_k = keep.temperature, keep.top_k or 0
    manner.top_p = 1.0 if keep.top_p is None else keep.top_p
    manner.seed = wanted.seed % 2**64
    prefix = law.prefixes[0]
    for name, ids in (("banned", [*law.banned, *keep.banned]), ("forced", law.forced), ("prefix", prefix)):
        setattr(manner, f"{name}_count", len(ids))
        setattr(manner, name, held.at(np.array(ids, np.int64), np.int64))
    manner.max_lengths = held.at(law.lengths, np.int64)
    manner.min_lengths = held.at(law.leasts, np.int64)
    if wanted.numbers is not None:
        manner.numbers = held.at(np.array([number % 2**64 for number in wanted.numbers], np.uint64), np.uint64)
    return manner


class Held:
    """Arrays that C reads, kept until it has."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []

    def at(self, array: NDArray[Any], kind: Any) -> int:
        """Where an array lies, without gaps and of some type."""
        found = np.ascontiguousarray(array, kind)
        self.arrays.append(found)
        return int(found.ctypes.data)


@dataclass(frozen=True)
class CRoom:
    """Arrays that C puts answers into."""

    longest: int
    count: NDArray[np.int64]
    tokens: NDArray[np.int64]
    lengths: NDArray[np.int64]
    log_p: NDArray[np.float64]
    scores: NDArray[np.float64]
    ended: NDArray[np.bool_]
    weights: NDArray[np.float32] | None

    @classmethod
    def of(cls, rows: int, best: int, longest: int, places: int | None) -> CRoom:
        each = (rows, best)
        return cls(
            longest,
            np.empty(rows, np.int64),
            np.empty((*each, longest), np.int64),
            np.empty(each, np.int64),
            np.empty(each),
            np.empty(each),
            np.empty(each, bool),
            None if places is None else np.empty((*each, longest, places), np.float32),
        )

    def found(self) -> CFound:
        into = CFound()
        into.longest = self.longest
        for name, array in vars(self).items():
            if array is not None and name != "longest":
                setattr(into, name, array.ctypes.data)
        return into

    def hypotheses(self) -> list[list[Hypothesis]]:
        found = []
        for row, count in enumerate(self.count.tolist()):
            some: list[Hypothesis] = []
            columns = (each[row, :count].tolist() for each in (self.lengths, self.log_p, self.scores, self.ended))
            for number, (length, log_p, score, ended) in enumerate(zip(*columns, strict=True)):
                tokens = self.tokens[row, number, :length].tolist()
                seen = None if self.weights is None else self.weights[row, number, :length].copy()
                some.append(Hypothesis(tokens, log_p, ended, score, seen))
            found.append(some)
        return found
