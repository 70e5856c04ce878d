"""The linear-chain conditional random field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
from torch import Tensor, nn

from recurra.cells.weights import is_bare
from recurra.engines.c_library import can_read
from recurra.engines.c_products import room_size
from recurra.errors import ConfigError
from recurra.heads import UNLABELLED, c_lattice, lattice
from recurra.heads.head import Head, checked_features, fitting_features, readout
from recurra.metrics.spans import allowed, scheme_of
from recurra.named import choose
from recurra.padding import Padded
from recurra.recording import is_recording

AT_ONCE = 1 << 25
"""So many numbers are in memory at once where a GPU takes all steps of a row together."""

FORBIDDEN = -1e30
"""A score of what cannot be, in float32 still a number when many of them are added."""


class CRF(Head):
    """The linear-chain conditional random field (Lafferty et al. 2001): the labels of a row are chosen together.

        e_t        = W h_t + b                                                    emissions
        score(y)   = start[y_1] + Σ_t e_t[y_t] + Σ_t A[y_{t-1}, y_t] + end[y_T]
        p(y | h)   = exp(score(y) - log Z)
        log Z      = log Σ_y exp(score(y)), by the forward algorithm:
            α_1(b) = start[b] + e_1[b]
            α_t(b) = e_t[b] + log Σ_a exp(α_{t-1}(a) + A[a, b])
            log Z  = log Σ_b exp(α_T(b) + end[b])

    A, start and end begin at 0, where it is the softmax of each step. Steps that are UNLABELLED are summed over:
    the loss is -log of the probability of all labellings that agree with the labels which are known.

    With constraints = "bio" or "bioes", `best` and `probabilities` are those of the distribution over well-formed
    labellings alone: what the scheme forbids is never said and has the probability 0. "auto" sees the scheme from
    the labels. The loss sums over all labellings, so that data with a tag out of place has a finite loss too.

    >>> head = CRF(4, ["O", "B-x", "I-x"])
    >>> head.constraints
    'bio'
    >>> head.probabilities(Padded.full(torch.randn(1, 3, 4)))[0, 0, 2].item()
    0.0
    """

    def __init__(
        self,
        input_size: int,
        labels: Sequence[str],
        *,
        constraints: Literal["auto", "none", "bio", "bioes"] = "auto",
    ) -> None:
        super().__init__(input_size, labels)
        size = len(self.labels)
        self.constraints = _constraints(self.labels, constraints)
        self.permitted = None if self.constraints == "none" else allowed(self.labels, self.constraints)
        self.readout = readout(input_size, size)
        self.transitions = nn.Parameter(torch.zeros(size, size))
        self.start = nn.Parameter(torch.zeros(size))
        self.end = nn.Parameter(torch.zeros(size))

    def loss(self, features: Padded, targets: Tensor) -> Tensor:
        return self._loss(features, targets, are_known=False)

    def loss_of_all(self, features: Padded, targets: Tensor) -> Tensor:
        return self._loss(features, targets, are_known=True)

    def _loss(self, features: Padded, targets: Tensor, *, are_known: bool) -> Tensor:
        """The loss; where all labels are known, one sum over all labellings is enough."""
        features = checked_features(features, self.input_size)
        targets = self.checked_targets(features, targets)
        mask = features.mask
        # bfloat16 would lose the difference between log Z and the score.
        with _without_autocast(features.values.device.type):
            e = self._emissions(features)
            # The same number for all labels of a step cancels; without it float32 keeps more of the difference.
            e = e - e.detach().amax(2, keepdim=True)
            # A recorded step is replayed with rows of other lengths.
            shortest = 0 if is_recording() else min(features.lengths.tolist(), default=0)
            total = self._log_partition(e, mask, shortest)
            # A device would have to be waited for.
            looks = not are_known and e.device.type == "cpu"
            if are_known or (looks and bool(((targets != UNLABELLED) | ~mask).all())):
                return total - self._score(e, targets, mask)
            other = torch.arange(len(self.labels), device=e.device) != targets.unsqueeze(2)
            is_labelled = (targets != UNLABELLED).unsqueeze(2)
            return total - self._log_partition(e.masked_fill(is_labelled & other, -torch.inf), mask, shortest)

    @torch.no_grad()
    def best(self, features: Padded) -> tuple[Tensor, Tensor]:
        features = fitting_features(features, self.input_size)
        like, lengths = features.values, features.lengths.contiguous()
        W, b = self.readout.weight, self.readout.bias
        is_direct = self._reads_out(like)
        given = like if is_direct else self._emitted(features)
        chain = self._scores(given.dtype)
        (B, T, depth), L = given.shape, len(self.labels)
        labels, log_p = torch.zeros(B, T, dtype=torch.long), torch.zeros(B, dtype=torch.float64)
        scratch = torch.empty(c_lattice.scratch_size(L, T), dtype=torch.float64)
        room = given.new_empty(T * L + room_size(T, depth)) if is_direct else None
        was_found = c_lattice.best_path_at(
            given.dtype == torch.float64,
            (B, T, L, depth),
            [tensor.data_ptr() for tensor in (given, lengths, *chain)],
            [labels.data_ptr(), log_p.data_ptr()],
            scratch.data_ptr(),
            readout=(W.data_ptr(), None if b is None else b.data_ptr()) if is_direct else (None, None),
            room=None if room is None else room.data_ptr(),
        )
        if not was_found:
            e, *scores = (tensor.double().numpy() for tensor in (self._emitted(features), *chain))
            found = lattice.best_path_in_numpy(lattice.Chain(*scores), e, lengths.numpy())
            labels, log_p = torch.from_numpy(found[0]), torch.from_numpy(found[1])
        return labels.to(like.device), log_p.to(like)

    @torch.no_grad()
    def probabilities(self, features: Padded) -> Tensor:
        chain, emissions = self.scores(features)
        found = lattice.marginals(chain, emissions, features.lengths.numpy())
        return torch.from_numpy(found).to(features.values)

    @torch.no_grad()
    def scores(self, features: Padded) -> tuple[lattice.Chain, lattice.Array]:
        """The scores of neighbouring labels, and of each label at each step, (B, T, L)."""
        features = fitting_features(features, self.input_size)
        chain = lattice.Chain(*(scores.numpy() for scores in self._scores(torch.float64)))
        return chain, self._emitted(features).double().numpy()

    def scored(self, features: Padded) -> Tensor:
        return self._emissions(fitting_features(features, self.input_size))

    def chain(self) -> tuple[Tensor, Tensor, Tensor]:
        A, start, end = self._scores(torch.float32)
        return A, start, end

    def _reads_out(self, values: Tensor) -> bool:
        """Whether W h + b can be left to C."""
        W, b = self.readout.weight, self.readout.bias
        given = [values, W] if b is None else [values, W, b]
        is_plain = is_bare(self.readout) and all(_is_plain(each, values.dtype) for each in given)
        return is_plain and not torch.is_autocast_enabled("cpu")

    def _emissions(self, features: Padded) -> Tensor:
        e: Tensor = self.readout(features.values.to(self.readout.weight.dtype))
        return e if e.dtype == torch.float64 else e.float()

    def _log_partition(self, e: Tensor, mask: Tensor, shortest: int) -> Tensor:
        """log Z of each row, (B,); 0 for an empty one. The shortest row has so many steps."""
        if e.shape[1] == 0:
            return e.new_zeros(len(e))
        B, T, L = e.shape
        if e.device.type != "cpu" and B * T * L**3 <= AT_ONCE:
            found = log_partition_by_halves(self.start + e[:, 0], self.transitions.to(e.dtype), e[:, 1:], mask[:, 1:])
            return torch.logsumexp(found + self.end, 1).masked_fill(~mask[:, 0], 0)
        step = _forward_step(self.transitions.to(e.dtype))
        first, *others = e.unbind(1)
        alpha = self.start + first
        for t, (e_t, is_real) in enumerate(zip(others, mask.unsqueeze(2).unbind(1)[1:], strict=True), 1):
            after = step(alpha) + e_t
            alpha = after if t < shortest else torch.where(is_real, after, alpha)
        return torch.logsumexp(alpha + self.end, 1).masked_fill(~mask[:, 0], 0)

    def _score(self, e: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
        """score(y) of each row, (B,); 0 for an empty one."""
        if e.shape[1] == 0:
            return e.new_zeros(len(e))
        y = targets.masked_fill(~mask, 0)
        last = y.gather(1, (mask.sum(1, keepdim=True) - 1).clamp(min=0)).squeeze(1)
        emitted = e.gather(2, y.unsqueeze(2)).squeeze(2).masked_fill(~mask, 0).sum(1)
        moved = self.transitions[y[:, :-1], y[:, 1:]].to(e.dtype).masked_fill(~mask[:, 1:], 0).sum(1)
        ends = (self.start[y[:, 0]] + self.end[last]).masked_fill(~mask[:, 0], 0)
        return emitted + moved + ends

    def _emitted(self, features: Padded) -> Tensor:
        """Emissions, float32 or float64, as they lie in memory on the CPU, 0 on padding."""
        with _without_autocast(features.values.device.type):
            # Where no gradient goes back it is enough to clear the emissions, which are many times smaller.
            return Padded(self._emissions(features), features.lengths).zeroed().values.cpu().contiguous()

    def _scores(self, dtype: torch.dtype) -> list[Tensor]:
        """A, start and end on the CPU, -inf where something is forbidden."""
        scores = [
            each.detach() if _is_plain(each, dtype) else each.detach().to("cpu", dtype).contiguous()
            for each in (self.transitions, self.start, self.end)
        ]
        if self.permitted is None:
            return scores
        pairs = zip(self.permitted, scores, strict=True)
        return [score.masked_fill(~torch.from_numpy(may), -torch.inf) for may, score in pairs]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, constraints={self.constraints!r}"


def log_partition_by_halves(alpha: Tensor, A: Tensor, e: Tensor, mask: Tensor) -> Tensor:
    """α_T of each row, (B, L), from α_1 (B, L), transitions A (L, L), and emissions (B, T - 1, L) and mask after it.

    A step is a matrix M_t[a, b] = A[a, b] + e_t[b], or the identity on padding, and steps are combined two by two,

        (M ⊗ N)[a, b] = log Σ_c exp(M[a, c] + N[c, b]),

    so that log T operations on all rows take the place of T: a GPU spends its time on orders, not on sums.
    """
    L = len(A)
    e = e.clamp_min(FORBIDDEN)
    nothing = torch.full((L, L), FORBIDDEN, dtype=A.dtype, device=A.device).fill_diagonal_(0.0)
    steps = torch.where(mask[:, :, None, None], A + e.unsqueeze(2), nothing)  # (B, T - 1, L, L)
    while steps.shape[1] > 1:
        even = steps.shape[1] // 2 * 2
        pairs = steps[:, :even:2].unsqueeze(4) + steps[:, 1:even:2].unsqueeze(2)  # (B, n, a, c, b)
        steps = torch.cat([torch.logsumexp(pairs, 3), steps[:, even:]], dim=1)
    alpha = alpha.clamp_min(FORBIDDEN)
    return torch.logsumexp(alpha.unsqueeze(2) + steps[:, 0], 1) if steps.shape[1] else alpha


def _is_plain(tensor: Tensor, dtype: torch.dtype) -> bool:
    """Whether C can read it where it lies, as numbers of that type."""
    return dtype in (torch.float32, torch.float64) and can_read(dtype, tensor)


def _without_autocast(device: str) -> AbstractContextManager[object]:
    """To switch off what is off already takes as long as a small product."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()


def _constraints(
    labels: Sequence[str], wanted: Literal["auto", "none", "bio", "bioes"]
) -> Literal["none", "bio", "bioes"]:
    """The scheme that is kept to; a ConfigError where no labelling of a single step would be left."""
    choose(("auto", "none", "bio", "bioes"), wanted, "constraints")
    scheme = scheme_of(labels) if wanted == "auto" else None if wanted == "none" else wanted
    if scheme is None:
        return "none"
    _, start, end = allowed(labels, scheme)
    # A label that may be a row of one (O, S-x, or the B-x of bio) may also follow itself: every length has labellings.
    if (start & end).any():
        return scheme
    if wanted == "auto":
        return "none"
    raise ConfigError(
        f"constraints = {wanted!r} leave no valid label for a sequence of length 1: none of the labels "
        f"{', '.join(labels)} can both begin and end a sequence. Add O to the labels, or set constraints = 'none'."
    )


def _forward_step(A: Tensor) -> Callable[[Tensor], Tensor]:
    """The function α -> log Σ_a exp(α(a) + A[a, ·]) on rows (B, L).

    On a CPU it is a product with exp(A), many times faster: with max α and max A taken out, the label of the
    largest α alone adds at least exp(min A - max A) to each sum. Where that is far above the smallest number of the
    type, nothing that counts is lost, however far apart the α are.
    """
    if A.device.type == "cpu":
        low, high = A.detach().aminmax()
        if float(high - low) < (600 if A.dtype == torch.float64 else 50):
            relative = (A - high).exp()

            def product(alpha: Tensor) -> Tensor:
                largest = alpha.detach().amax(1, keepdim=True)
                return ((alpha - largest).exp() @ relative).log() + (largest + high)

            return product

    return lambda alpha: torch.logsumexp(alpha.unsqueeze(2) + A, 1)
