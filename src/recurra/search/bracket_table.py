"""What brackets leave to be chosen, in every search, on the host and on a device."""

from __future__ import annotations

import torch
from torch import Tensor

from recurra.search.brackets import Brackets


class BracketTable:
    """Brackets as tensors, for a vocabulary of V tokens.

    Of what was written so far, with o_t = 1 where a bracket opens and c_t = 1 where one closes:

        d_t = max(0, d_{t-1} + o_t − c_t)                    how many are open; a prefix may close what is not
        top = the last t with o_t = 1 and d_t = d            the one that must be closed first, d of the last step

    With r tokens left, this one and the end among them, there must be room to close all that is open:

        to open        r ≥ d + 3                             the bracket itself, d + 1 that close, the end
        any other      r ≥ d + 2
        to close       only what closes the top
        the end        d = 0                                 tree: nothing else, once something was written
    """

    def __init__(self, brackets: Brackets, ends: list[int], vocabulary: int, device: torch.device) -> None:
        known = [pair for pair in brackets.pairs if max(pair) < vocabulary]
        self.tree = brackets.tree
        opened, closed = ([pair[side] for pair in known] for side in (0, 1))
        self.closes = torch.full((vocabulary,), -1, dtype=torch.long, device=device)  # the id that closes each
        self.closes[torch.tensor(opened, dtype=torch.long, device=device)] = torch.tensor(
            closed, dtype=torch.long, device=device
        )
        self.is_open = self.closes >= 0
        self.is_close = torch.zeros(vocabulary, dtype=torch.bool, device=device)
        self.is_close[torch.tensor(closed, dtype=torch.long, device=device)] = True
        self.is_end = torch.zeros_like(self.is_close)
        self.is_end[torch.tensor([end for end in ends if end < vocabulary], dtype=torch.long, device=device)] = True
        self.ids = torch.arange(vocabulary, device=device)

    def barred(self, past: Tensor, step: Tensor, limits: Tensor) -> Tensor:
        """(N, V): true for what may not follow `past` (N, L), real before `step` (1,), in at most `limits` (N,) tokens.

        >>> table = BracketTable(Brackets(((3, 4), (5, 6))), [0], 8, torch.device("cpu"))
        >>> found = table.barred(torch.tensor([[3, 5, 7]]), torch.tensor([3]), torch.tensor([9]))
        >>> (~found).nonzero()[:, 1].tolist()            # 6 closes the 5; 1, 2 and 7 are no brackets
        [1, 2, 3, 5, 6, 7]
        """
        past = torch.cat([past.new_zeros(len(past), 1), past], dim=1)  # so that there is a place 0, which is no bracket
        places = torch.arange(past.shape[1], device=past.device)
        is_real = (places > 0) & (places <= step)
        opens = self.is_open[past] & is_real
        sums = (opens.long() - (self.is_close[past] & is_real).long()).cumsum(1)
        depths = sums - sums.cummin(1).values.clamp_max(0)  # what falls below 0 is lifted to it
        depth = depths[:, -1]
        top = ((opens & (depths == depth.unsqueeze(1))) * places).amax(1, keepdim=True)  # 0, no bracket, without any
        needed = depth.unsqueeze(1)
        wanted = self.closes[past.gather(1, top)].masked_fill(needed == 0, -1)  # (N, 1)
        room = (limits - step).unsqueeze(1)
        is_other = ~(self.is_open | self.is_close | self.is_end)
        never = self.is_close & (self.ids != wanted)
        never = never | (self.is_open & (room < needed + 3)) | (is_other & (room < needed + 2))
        never = never | (self.is_end & (needed > 0))
        if self.tree:
            begun = step > 0
            never = never | (~self.is_open & ~begun) | (~self.is_end & begun & (needed == 0))
        return never
