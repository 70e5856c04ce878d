"""The searches that [decoding] names, on the host: of a network of torch, or of an exported one."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from recurra.errors import ConfigError
from recurra.frozen import NamedTuple
from recurra.search.arrays import Array, is_numpy
from recurra.search.brackets import Brackets
from recurra.search.rules import Rules
from recurra.search.sampling import Filter, sample
from recurra.search.search import Hypothesis, Step

if TYPE_CHECKING:
    from recurra.config import Seq2SeqDecoding
    from recurra.search.tree import Tree


class SearchTokens(NamedTuple):
    """The ids that [decoding] means by its tokens."""

    end: int
    never: tuple[int, ...] = ()  # specials that are no part of an answer
    banned: tuple[int, ...] = ()
    forced: tuple[int, ...] = ()
    prefix: tuple[int, ...] = ()
    specials: int = 0  # higher ids are elements of the source, where the model points at them
    brackets: Brackets = Brackets()


def bounds(
    decoding: Seq2SeqDecoding,
    words: SearchTokens,
    *,
    rows: int,
    source_lengths: Sequence[int] | None,
    elements: Sequence[int] | None,
) -> tuple[list[int], Rules]:
    """How long the answer to each source may be, and what it must obey.

    source_lengths    how long each source is; None: it has no length that an answer could be compared with
    elements          how many elements each source has, where they are pointed at
    """
    # However short a source is, there is room for all that its answer must have, and for an end where that may be.
    must = max(decoding.min_length, len(words.prefix) + len(words.forced))
    lengths = [decoding.max_length] * rows
    if decoding.max_ratio is not None and source_lengths is not None:
        relative = [int(decoding.max_ratio * length) + 10 for length in source_lengths]
        lengths = [min(most, max(must + 1, each)) for most, each in zip(lengths, relative, strict=True)]
    lengths = [max(must, length) for length in lengths]
    leasts: list[int] = []
    if decoding.elements != "any":
        assert elements is not None, "elements have numbers"
        lengths, leasts = elements_once(elements, decoding)
    rules = Rules(
        min_length=0 if leasts else decoding.min_length,
        banned=(*words.never, *words.banned),
        forced=words.forced,
        prefix=words.prefix,
        no_repeat=decoding.no_repeat if decoding.elements == "any" else 1,
        brackets=words.brackets,
        min_lengths=leasts,
    )
    return lengths, rules


def elements_once(counts: Sequence[int], decoding: Seq2SeqDecoding) -> tuple[list[int], list[int]]:
    """How long the answers of each source may be and must be, if no element of it may appear twice in them."""
    if decoding.elements == "all":
        return [count + 1 for count in counts], list(counts)
    mosts = [max(decoding.min_length, min(decoding.max_length, count + 1)) for count in counts]
    return mosts, [min(decoding.min_length, count) for count in counts]


def searched_on_host(
    begun: tuple[Step[Any, Any], Array, Any, Any],
    decoding: Seq2SeqDecoding,
    every: dict[str, Any],
    *,
    numbers: Sequence[int] = (),
    record: list[Tree] | None = None,
) -> list[list[Hypothesis]]:
    """Hypotheses for each source, best first: `begun` is the step, tokens, states and what stays the same."""
    from recurra.search.beam import beam
    from recurra.search.greedy import greedy

    if decoding.search == "beam":
        return beam(*begun, width=decoding.width, best=decoding.best, record=record, **every)
    if decoding.search == "greedy":
        return [[each] for each in greedy(*begun, **every)]
    if decoding.search == "sampling":
        keep = Filter(temperature=decoding.temperature, top_k=decoding.top_k, top_p=decoding.top_p)
        seeds = range(decoding.seed, decoding.seed + decoding.best)
        return by_score([sample(*begun, keep=keep, seed=seed, numbers=numbers, **every) for seed in seeds])
    if decoding.search == "exhaustive" and not is_numpy(begun[1]):
        from recurra.search.exhaustive import exhaustive

        return exhaustive(*begun, best=decoding.best, **every)
    if decoding.search == "exhaustive":
        raise ConfigError(
            "decoding.search = 'exhaustive' needs the run: an exported model has beam, greedy and sampling."
        )
    raise ConfigError(f"decoding.search = '{decoding.search}' is not a search method.")


def by_score(drawn: Sequence[Sequence[Hypothesis]]) -> list[list[Hypothesis]]:
    """What was drawn for each source, best first."""
    return [sorted(row, key=lambda each: -each.score) for row in zip(*drawn, strict=True)]


def numbers_of_rows(rows: Sequence[NDArray[Any]]) -> list[int]:
    """A number for each source, made from what it holds: it is answered alike wherever it stands."""
    digests = (blake2b(each.tobytes(), digest_size=8) for each in rows)
    return [int.from_bytes(digest.digest(), "little") for digest in digests]
