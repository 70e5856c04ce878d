"""What a search may and must say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError
from recurra.frozen import NamedTuple
from recurra.search.arrays import Array, array_like, copied, is_numpy
from recurra.search.brackets import Brackets
from recurra.search.open_brackets import barred

if TYPE_CHECKING:
    from recurra.search.bracket_table import BracketTable

Ids: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]


class Rules(NamedTuple):
    """What an answer must obey; tokens are counted from 1, the end among them where nothing else is said.

    min_length   so many tokens before the end, at least
    min_lengths  the same for each sentence, where they differ
    banned       ids that are never chosen
    forced       ids that each appear somewhere: before all have, no end is chosen, and when the length leaves room
                 for those still missing and an end only, nothing but them
    prefix       what the answer begins with, whatever the other rules say: ids, or a sequence of ids per sentence;
                 the length cuts it off
    no_repeat    no run of so many tokens appears twice; 0: it may
    brackets     what is opened is closed, in its order and before the end; see BracketTable

    A hypothesis that they leave nothing to choose is given up. Where none is left, the search raises a ConfigError.
    """

    min_length: int = 0
    banned: Sequence[int] = ()
    forced: Sequence[int] = ()
    prefix: Sequence[int] | Sequence[Sequence[int]] = ()
    no_repeat: int = 0
    brackets: Brackets = Brackets()
    min_lengths: Sequence[int] = ()


NONE = Rules()
"""Anything goes."""


class Law:
    """Rules as they stand for each of some sentences with their greatest lengths."""

    def __init__(self, rules: Rules, lengths: Sequence[int], ends: Collection[int]) -> None:
        for name, least in (("min_length", rules.min_length), ("no_repeat", rules.no_repeat)):
            if isinstance(least, bool) or not isinstance(least, int) or least < 0:
                raise ConfigError(f"{name} must be a whole number of at least 0, but is {least!r}.")
        self.leasts = leasts_of(rules, len(lengths))
        self.min_length = int(self.leasts.min()) if len(self.leasts) else rules.min_length  # of every sentence
        self.no_repeat = rules.no_repeat
        self.brackets = rules.brackets
        self._table: BracketTable | None = None  # made when the vocabulary is known
        self.banned = sorted({*rules.banned})
        self.ends = sorted({*ends})
        self.forced = np.array(sorted({*rules.forced}), np.int64)
        self.lengths = np.array(lengths, np.int64)
        self.prefixes = prefixes(rules.prefix, len(lengths))
        self.longest_prefix = max(map(len, self.prefixes), default=0)
        self.is_empty = not (
            self.leasts.any()
            or self.banned
            or len(self.forced)
            or self.longest_prefix
            or self.no_repeat
            or self.brackets.pairs
        )
        self._check_forced()

    def everywhere(self, written: int) -> list[int]:
        """Ids that no hypothesis of so many tokens may choose, as far as it is not inside its prefix."""
        return sorted({*self.banned, *self.ends}) if written < self.min_length else self.banned

    def is_one_for_all(self, written: int) -> bool:
        """Whether `everywhere` is all there is to obey after so many tokens."""
        of_rows = len(self.forced) or 0 < self.no_repeat <= written or self.brackets.pairs
        return written >= self.longest_prefix and not of_rows and not self.has_own_leasts(written)

    def has_own_leasts(self, written: int) -> bool:
        """Whether an answer of so many tokens may end in some sentences and not in others."""
        return self.min_length <= written < self.leasts.max(initial=0)

    def allowed(self, log_p: Array, past: Ids, sentences: Ids) -> Array:
        """log p (N, V) with -inf for what may not be chosen after `past` (N, t); row n belongs to sentences[n]."""
        written = past.shape[1]
        out = copied(log_p)
        if ids := self.everywhere(written):
            out[:, array_like(ids, out)] = -np.inf
        if self.has_own_leasts(written) and self.ends:
            short, ends = np.nonzero(written < self.leasts[sentences])[0], np.array(self.ends, np.int64)
            out[pair(np.repeat(short, len(ends)), np.tile(ends, len(short)), out)] = -np.inf
        if 0 < self.no_repeat <= written:
            out[pair(*repeating(past, self.no_repeat), out)] = -np.inf
        if self.brackets.pairs:
            out[self._barred(past, self.lengths[sentences], out)] = -np.inf
        if len(self.forced):
            missing = ~self.met(past)
            count = missing.sum(1)
            if self.ends:
                lacking, ends = np.nonzero(count)[0], np.array(self.ends, np.int64)
                out[pair(np.repeat(lacking, len(ends)), np.tile(ends, len(lacking)), out)] = -np.inf
            room = self.lengths[sentences] - written - bool(self.ends)
            rows, which = np.nonzero(missing & (room <= count)[:, None])
            only(out, out, rows, self.forced[which])
        if written < self.longest_prefix:
            begun = [(row, self.prefixes[of]) for row, of in enumerate(sentences) if written < len(self.prefixes[of])]
            only(out, log_p, [row for row, _ in begun], [prefix[written] for _, prefix in begun])
        return out

    def _barred(self, past: Ids, limits: Ids, like: Array) -> Array:
        """(N, V): what brackets do not let follow."""
        if is_numpy(like):
            return barred(self.brackets, self.ends, like.shape[1], past, limits)
        from recurra.search.bracket_table import BracketTable

        if self._table is None:
            self._table = BracketTable(self.brackets, self.ends, like.shape[1], like.device)
        before, most, step = (array_like(each, like) for each in (past, limits, [past.shape[1]]))
        return self._table.barred(before, step, most)

    def met(self, past: Ids) -> Flags:
        """(N, C): whether each forced id has appeared in each row."""
        met: Flags = (past[:, :, None] == self.forced).any(1)
        return met

    def check_vocabulary(self, size: int) -> None:
        """A ConfigError where an id is none of `size`, or where all of them are banned."""
        for name, ids in (
            ("banned", self.banned),
            ("forced", self.forced.tolist()),
            ("prefix", [token for prefix in self.prefixes for token in prefix]),
        ):
            for token in ids:
                if not 0 <= token < size:
                    raise ConfigError(f"{name} has the token id {token}, but ids must be between 0 and {size - 1}.")
        if len(self.banned) >= size:
            raise ConfigError("every token of the vocabulary is banned, so no token can be chosen.")

    def dead_end(self, sentence: int, written: int) -> ConfigError:
        """The error of a sentence that cannot go on."""
        return ConfigError(
            f"the search rules allow no token at position {written + 1} of sequence {sentence + 1}: relax "
            "min_length, banned, forced, prefix, no_repeat or brackets."
        )

    def _check_forced(self) -> None:
        if not len(self.forced):
            return
        for name, others in (("banned", self.banned), ("what ends an answer", self.ends)):
            for token in self.forced.tolist():
                if token in others:
                    raise ConfigError(f"the token {token} is forced, but it is also {name}. Remove one of the two.")
        for length, prefix in zip(self.lengths.tolist(), self.prefixes, strict=True):
            missing = len({*self.forced.tolist()} - {*prefix})
            if missing and min(len(prefix), length) + missing > length:
                raise ConfigError(
                    f"{missing} tokens are forced after a prefix of {len(prefix)}, but an answer has at most {length}."
                )


def leasts_of(rules: Rules, sentences: int) -> Ids:
    """(sentences,): how many tokens the answer of each has at least, before the end."""
    own = rules.min_lengths
    if own and len(own) != sentences:
        raise ConfigError(f"there are {len(own)} minimum lengths for {sentences} sequences: give one for each.")
    return np.maximum(np.full(sentences, rules.min_length, np.int64), np.array(own or [0], np.int64))


def prefixes(given: Sequence[int] | Sequence[Sequence[int]], sentences: int) -> list[tuple[int, ...]]:
    """The beginning of each sentence."""
    own = [tuple(each) for each in given if isinstance(each, Sequence)]
    if not own:
        shared = tuple(each for each in given if not isinstance(each, Sequence))
        return [shared] * sentences
    if not len(own) == len(given) == sentences:
        raise ConfigError(
            f"there are {len(given)} prefixes for {sentences} sequences: give one for each, or one for all."
        )
    return own


def repeating(past: Ids, run: int) -> tuple[Ids, Ids]:
    """Rows and ids: what would end a run of that many tokens that the row has written already.

    >>> rows, ids = repeating(np.array([[5, 6, 5, 7, 5]]), 2)
    >>> rows.tolist(), ids.tolist()
    ([0, 0], [6, 7])
    """
    runs = np.lib.stride_tricks.sliding_window_view(past, run, axis=1)
    last = past[:, None, past.shape[1] - run + 1 :]
    rows, starts = np.nonzero((runs[:, :, :-1] == last).all(2))
    return rows, runs[rows, starts, -1]


def only(out: Array, log_p: Array, rows: Iterable[int], ids: Iterable[int]) -> None:
    """Leaves these rows of `out` nothing but these ids, with what log_p gives them."""
    here = pair(np.fromiter(rows, np.int64), np.fromiter(ids, np.int64), out)
    values = log_p[here]
    out[here[0]] = -np.inf
    out[here] = values


def pair(rows: Ids, ids: Ids, like: Array) -> tuple[Array, Array]:
    return array_like(rows, like), array_like(ids, like)
