"""A network without a decoder: each place of what an encoder made says a token or nothing, and CTC adds them up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.config import Augmentation, Seq2SeqModel
from recurra.data.extents import Extents
from recurra.decoding import ctc
from recurra.decoding.ctc import Prefix, Said
from recurra.encoders.dropout import Dropout
from recurra.encoders.memory import Places, SourceEncoder
from recurra.models.seq2seq import Costs, PairBatch, Sizes
from recurra.models.steps import vectors_of
from recurra.outputs.softmax import Softmax
from recurra.padding import Grid, Padded, beside
from recurra.search.alignment import aligned
from recurra.search.score import divisor
from recurra.search.search import Hypothesis, Step


class Spoken(NamedTuple):
    """What the places of a batch say."""

    log_p: Tensor  # (B, S, V)
    mask: Tensor  # (B, S): which places there are


@final
class Transcriber(nn.Module):
    """P(y | source) of sequences y that are no longer than the source, without a decoder (Graves et al. 2006).

        m      = encoder(E_x[x])                         frames: encoder(W frames)
        m_t1 … m_tk = W m_t + b                          expand = k: a place becomes k of them; 1: itself
        p_t    = softmax(W_o m_t + b)                    of a token or a blank, which has the id of </s>
        P(y)   = Σ Π_t p_t(π_t)                          over all alignments π that write y (recurra.decoding.ctc)

    A search asks it for p(y_i | y_1 … y_{i-1}) as it asks a decoder.
    """

    pointer = None
    writes_backward = False
    """It copies nothing."""

    def __init__(
        self, settings: Seq2SeqModel, sizes: Sizes, end: int, augmentation: Augmentation | None = None
    ) -> None:
        super().__init__()
        self.sizes, self.end, self.augmentation = sizes, end, augmentation
        self.token_dropout, self.scale, self.expand = settings.token_dropout, 1.0, settings.decoder.expand
        rate = settings.dropout if settings.embedding_dropout is None else settings.embedding_dropout
        self.dropout = Dropout(rate, locked=settings.locked)
        self.embedding: nn.Embedding | None = None
        self.from_frames: nn.Linear | None = None
        if sizes.source is None:
            assert sizes.frames is not None, "a source is tokens or frames"
            self.from_frames = nn.Linear(sizes.frames, settings.embedding)
        else:
            self.embedding = nn.Embedding(sizes.source, settings.embedding)
        self.encoder = SourceEncoder(settings, settings.embedding)
        size = self.encoder.output_size
        self.split = nn.Linear(size, self.expand * size) if self.expand > 1 else None
        self.dropout_of_places = Dropout(settings.dropout, locked=settings.locked)
        self.output = Softmax(size, sizes.target)

    def spoken(self, source: Padded | Grid, *, multiple: int = 1) -> Spoken:
        """What the places of sources say; with `multiple`, there are empty ones behind, up to a multiple of so many."""
        assert isinstance(source, Padded), "steps are read"
        x = vectors_of(self, source, self.output.readout.weight.dtype)
        memory: Places = self.encoder(Padded(self.dropout(x.values), x.lengths)).memory
        memory = memory.rounded(multiple)
        values, mask = memory.values, memory.mask
        if self.split is not None:
            values = self.split(values).view(len(values), -1, values.shape[2])
            mask = mask.repeat_interleave(self.expand, dim=1)
        log_p = self.output.log_probabilities(self.dropout_of_places(values).flatten(0, 1))
        return Spoken(log_p.view(*values.shape[:2], -1), mask)

    def costs(self, batch: PairBatch, **_: Any) -> Costs:
        """The loss; what a decoder's depends on besides has no meaning here."""
        return Costs(self.loss(batch))

    def loss(self, batch: PairBatch) -> Tensor:
        """-log P summed over all targets."""
        assert batch.target is not None, "a loss needs targets"
        spoken = self.spoken(batch.source)
        # Subwords that are cut anew may need more places than there are: such a draw teaches nothing.
        log_p, target = spoken.log_p.transpose(0, 1), batch.target.values
        if log_p.is_cuda and torch.are_deterministic_algorithms_enabled():
            log_p, target = log_p.cpu(), target.cpu()  # torch's gradients on a GPU are not the same each time
        loss = functional.ctc_loss(
            log_p,
            target,
            self._places(batch.source),
            batch.target.lengths - 1,  # without </s>
            blank=self.end,
            reduction="sum",
            zero_infinity=True,
        )
        return loss.to(spoken.log_p.device)

    def token_log_likelihoods(self, batch: PairBatch) -> Tensor:
        """(N,): log p of each token of the targets after those before it, their ends among them, row after row."""
        assert batch.target is not None, "there are targets"
        spoken, (target, lengths) = self.spoken(batch.source), batch.target
        each = ctc.log_likelihoods(target, ctc.said_of(*spoken, self.end), self.sizes.start, self.end)
        real = (torch.arange(target.shape[1]) < lengths.unsqueeze(1)).flatten().nonzero().squeeze(1)
        return each.flatten().index_select(0, beside(real, target))

    # What a search asks for

    def start(self, batch: PairBatch, *, multiple: int = 1) -> tuple[Tensor, Prefix, Said]:
        """What a search begins with: <s> for each source, the empty beginning, and what the places say."""
        said = ctc.said_of(*self.spoken(batch.source, multiple=multiple), self.end)
        prefix = ctc.empty(said, self.sizes.start, self.end)
        return prefix.last, prefix, said

    def stepping(self, extra: int = 0) -> Step[Prefix, Said]:
        """log p of what may come after one more token of each row, (N,) to (N, V); and the beginning with it."""

        def step(tokens: Tensor, prefix: Prefix, said: Said) -> tuple[Tensor, Prefix]:
            prefix = ctc.extended(prefix, tokens, said, self.sizes.start, self.end)
            return ctc.next_tokens(prefix, said, self.end), prefix

        return step

    def weights(self, moving: Prefix) -> Tensor | None:
        """None: it does not look. See `aligned`."""
        return None

    def extents(self, source: Padded | Grid) -> Extents:
        """How many places the memory of each source has, before they are split."""
        return self.encoder.extents(source)

    def best_paths(self, batch: PairBatch, length_penalty: float) -> list[list[Hypothesis]]:
        """What the most probable alignment of each source writes: best path decoding, with log P of that."""
        spoken = self.spoken(batch.source)
        counts = self._places(batch.source).tolist()
        paths = [path[:count] for path, count in zip(spoken.log_p.argmax(2).tolist(), counts, strict=True)]
        written = [[token for token, _ in groupby(path) if token != self.end] + [self.end] for path in paths]
        longest = max(map(len, written), default=0)
        target = torch.tensor([[*each, *[self.end] * (longest - len(each))] for each in written])
        said = ctc.said_of(*spoken, self.end)
        logs = ctc.log_likelihoods(target.to(said.p.device), said, self.sizes.start, self.end).cpu()
        totals = [float(row[: len(each)].sum()) for row, each in zip(logs, written, strict=True)]
        scores = [total / divisor(len(each), length_penalty) for total, each in zip(totals, written, strict=True)]
        return [
            [Hypothesis(tokens, total, True, score)]
            for tokens, total, score in zip(written, totals, scores, strict=True)
        ]

    def aligned(self, batch: PairBatch, found: Sequence[Sequence[Hypothesis]]) -> list[list[Hypothesis]]:
        """Hypotheses with their best alignments, as (tokens without </s>, places): p where one stands, else 0."""
        spoken = self.spoken(batch.source)
        rows = zip(found, spoken.log_p.cpu(), self._places(batch.source).tolist(), strict=True)
        return [
            [aligned(each, log_p[:count].numpy(), blank=self.end, expand=self.expand) for each in some]
            for some, log_p, count in rows
        ]

    def _places(self, source: Padded | Grid) -> Tensor:
        """(B,): how many places each source has, on the CPU."""
        return torch.tensor([self.expand * columns for _, columns in self.extents(source).each])
