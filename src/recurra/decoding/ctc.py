"""CTC: a sequence out of what each place of a memory says, a token or nothing (Graves et al. 2006).

An alignment π names a token or the blank at each of S places. What it writes is π with repetitions joined, then without
blanks: - a a - a b is a a b. Places are independent, and

    P(π) = Π_t p_t(π_t)        P(y) = Σ P(π) over all alignments π that write y

For a beginning g of a sequence, n and b are the sums over the alignments of the first t places that write exactly g and
end in its last token, or in a blank. For g followed by w,

    φ_t  = n_t + b_t                                 b_t where w is the last token of g: a blank must divide them
    n'_t = p_t(w) (n'_{t-1} + φ_{t-1})               n'_0 = 0
    b'_t = p_t(-) (b'_{t-1} + n'_{t-1})              b'_0 = 0;  of the empty beginning b_t = Π_{u ≤ t} p_u(-), n_t = 0
    Ψ(g w) = Σ_t p_t(w) φ_{t-1}                      the probability of all sequences that begin with g w
    P(g) = n_S + b_S

Hence p(w | g) = Ψ(g w) / Ψ(g), and g ends with p(</s> | g) = P(g) / Ψ(g): the same factors that a decoder has, so that
every search of a decoder is a search of these too. All is summed in logs, in float64 where the device has it. Where a
row has no more places, a blank is certain, which changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from recurra.padding import lengthened, longest

IMPOSSIBLE = -1e30
"""log 0. Not -∞, whose differences are NaN; far below any sum of logs."""


class Said(NamedTuple):
    """What the places of B sources say."""

    log_p: Tensor  # (B, S, V) in float64; at the blank's id, that there is nothing
    p: Tensor  # (B, S, V)


class Prefix(NamedTuple):
    """A beginning of a sequence, N rows: k of each source, one after the other."""

    last: Tensor  # (N,): its last token; the id that starts a sequence before the first
    n: Tensor  # (N, S + 1): log of the alignments of the first t places that end in that token
    b: Tensor  # (N, S + 1): in a blank
    total: Tensor  # (N,): log Ψ


def said_of(log_p: Tensor, mask: Tensor, blank: int) -> Said:
    """What places (B, S, V) say where the mask (B, S) is True; elsewhere nothing."""
    nothing = torch.full_like(log_p[:1, :1], IMPOSSIBLE, dtype=longest(log_p.device))
    nothing[..., blank] = 0.0
    log_p = torch.where(mask.unsqueeze(2), lengthened(log_p), nothing)
    return Said(log_p, log_p.exp())


def empty(said: Said, start: int, blank: int) -> Prefix:
    """The empty beginning of each source."""
    rows = len(said.log_p)
    b = _from_zero(said.log_p[:, :, blank].cumsum(1), 0.0)
    last = torch.full((rows,), start, device=b.device)
    return Prefix(last, torch.full_like(b, IMPOSSIBLE), b, b.new_zeros(rows))


def extended(prefix: Prefix, tokens: Tensor, said: Said, start: int, blank: int) -> Prefix:
    """The beginnings with one more token (N,) each; that which starts a sequence adds nothing."""
    log_p, log_blank = _at(said, tokens), _at(said, torch.full_like(tokens, blank))
    reached = _reached(prefix, tokens)
    n = _from_zero(_recursion(log_p, reached), IMPOSSIBLE)
    b = _from_zero(_recursion(log_blank, n[:, :-1]), IMPOSSIBLE)
    total = _log_sum(log_p + reached)
    is_first = tokens == start
    rows = is_first.unsqueeze(1)
    return Prefix(
        torch.where(is_first, prefix.last, tokens),
        torch.where(rows, prefix.n, n),
        torch.where(rows, prefix.b, b),
        torch.where(is_first, prefix.total, total),
    )


def next_tokens(prefix: Prefix, said: Said, blank: int) -> Tensor:
    """(N, V): log p of what comes after each beginning; that it ends stands at the blank's id, which is no token."""
    sources, places, size = said.p.shape
    either = torch.logaddexp(prefix.n, prefix.b)[:, :-1]
    if not places:
        found = either.new_full((len(either), size), -torch.inf)
    else:
        # As a product, since (N, S, V) numbers may be far too many: of largest 1 in each row, nothing is lost.
        largest = either.amax(1, keepdim=True)
        shares = (either - largest).exp().view(sources, -1, places)
        found = (shares @ said.p).flatten(0, 1).log() + largest
    again = _log_sum(_at(said, prefix.last) + prefix.b[:, :-1]).unsqueeze(1)
    found = found.scatter(1, prefix.last.unsqueeze(1), again)
    end = torch.logaddexp(prefix.n[:, -1], prefix.b[:, -1])
    found = torch.where(torch.arange(size, device=found.device) == blank, end.unsqueeze(1), found)
    return found.masked_fill(found < IMPOSSIBLE / 2, -torch.inf) - prefix.total.unsqueeze(1)


def log_likelihoods(target: Tensor, said: Said, start: int, blank: int) -> Tensor:
    """(B, T): log p of each token of the targets (B, T) after those before it; the blank's id is the end."""
    prefix, found = empty(said, start, blank), []
    for y in target.unbind(1):
        end = torch.logaddexp(prefix.n[:, -1], prefix.b[:, -1])
        after = extended(prefix, y, said, start, blank)
        found.append(torch.where(y == blank, end, after.total) - prefix.total)
        prefix = after
    each = torch.stack(found, dim=1) if found else said.log_p.new_zeros(target.shape)
    return each.masked_fill(each < IMPOSSIBLE / 2, -torch.inf)


def _at(said: Said, tokens: Tensor) -> Tensor:
    """(N, S): log p of one token (N,) for each row, at every place."""
    sources, places, _ = said.log_p.shape
    own = tokens.view(sources, 1, -1)
    return said.log_p.gather(2, own.expand(-1, places, -1)).transpose(1, 2).flatten(0, 1)


def _reached(prefix: Prefix, tokens: Tensor) -> Tensor:
    """(N, S): log φ_{t-1} for each place t."""
    n = torch.where((tokens == prefix.last).unsqueeze(1), IMPOSSIBLE, prefix.n)
    return torch.logaddexp(n, prefix.b)[:, :-1]


def _recursion(log_p: Tensor, log_in: Tensor) -> Tensor:
    """log x_t, where x_t = p_t (x_{t-1} + in_t) and x_0 = 0, for all t at once, (N, S).

    x_t = Σ_{s ≤ t} in_s Π_{s ≤ u ≤ t} p_u = A_t Σ_{s ≤ t} in_s / A_{s-1}, where A_t = Π_{u ≤ t} p_u.
    """
    whole = log_p.cumsum(1)
    before = _from_zero(whole, 0.0)[:, :-1]
    return whole + (log_in - before).logcumsumexp(1)


def _from_zero(log_x: Tensor, first: float) -> Tensor:
    """(N, S + 1): with that of no place in front."""
    return torch.cat([log_x.new_full((len(log_x), 1), first), log_x], dim=1)


def _log_sum(log_x: Tensor) -> Tensor:
    """(N,): log Σ over places, impossible where there are none."""
    return log_x.logsumexp(1) if log_x.shape[1] else log_x.new_full((len(log_x),), IMPOSSIBLE)
