"""The end-to-end memory network: sentences as memories, looked at in several hops, and an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.attention.hops import hop, place_weights, position_weights, with_empty
from recurra.config import QuestionAnsweringModel
from recurra.data.store import Encoded, Rows
from recurra.heads import UNLABELLED
from recurra.models.remembered import StoryOutput, remembered
from recurra.models.rows import padded
from recurra.padding import Padded, beside
from recurra.stacks.recurrent import Recurrent


class StoryBatch(NamedTuple):
    """Some stories with a question each. The newest sentence comes first; 0 stands where there is no word."""

    words: Tensor  # (B, N, J)
    widths: Tensor  # (B, N), words of each sentence
    sentences: Tensor  # (B,), how many there are
    question: Padded  # (B, Q)
    answer: Tensor  # (B,), UNLABELLED where it is not known
    labelled: int  # rows whose answer is known


class MemoryNetwork(nn.Module):
    """End-to-end memory (Sukhbaatar et al. 2015): every hop asks the sentences and adds what it finds to the question.

        m_i = Σ_j l_j ∘ A x_ij + T_A(i)          what memory i is found by; the newest is i = 1
        c_i = Σ_j l_j ∘ C x_ij + T_C(i)          what it answers
        u   = Σ_j l_j ∘ B q_j                    the question
        p_i = softmax_i(u · m_i)                 without the softmax during the linear start; vacant: over all places
        o   = Σ_i p_i c_i
        u  ← u + o                               adjacent: A^{k+1} = C^k, T_A^{k+1} = T_C^k, B = A^1, Wᵀ = C^K
        u  ← H u + o                             layerwise: A and C are the same in every hop
        P(answer) = softmax(W u)                 after the last of K hops

        l_kj = (1 − j/J) − (k/d)(1 − 2j/J)       sentence = position: word j of J, unit k of d
        l_kj = 1 + (4/dJ)(k − (d+1)/2)(j − (J+1)/2)   sentence = place: J is the same for all sentences (`longest`)
        l_kj = 1                                 sentence = bag
        Σ_j l_j ∘ A x_ij becomes A s_i           sentence = recurrent: s_i is what cells say at the end of sentence i

    The softmax is over all `memories` places, of which those without a sentence have m = c = 0 (`vacant`), so that a
    hop can look at nothing. In training, empty memories are put between the sentences (`with_empty`), so that a
    sentence is not always at the same i. `is_linear` is saved with the weights: whether the hops are linear.
    """

    answer_words: Tensor
    is_linear: Tensor

    def __init__(self, settings: QuestionAnsweringModel, words: int, answer_words: Sequence[int]) -> None:
        super().__init__()
        d, hops = settings.hidden, settings.hops
        self.settings = settings
        self.is_adjacent = settings.tying == "adjacent"

        def drawn(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape) * settings.spread)

        self.reader = reader_of(settings) if settings.reads else None
        self.embedding = drawn(words, d) if settings.reads else None
        # Adjacent: A^1 = B, C^1 = A^2, …, C^K. Layerwise: A, C, B.
        of = words if self.reader is None else self.reader.output_size
        self.tables = drawn(hops + 1 if self.is_adjacent else 3, of, d)
        self.times = drawn(hops + 1 if self.is_adjacent else 2, settings.memories, d) if settings.temporal else None
        self.between = None if self.is_adjacent else drawn(d, d)
        is_tied = self.is_adjacent and not settings.reads
        self.readout = None if is_tied else drawn(len(answer_words), d)
        self.register_buffer("answer_words", torch.tensor(list(answer_words)), persistent=False)
        self.register_buffer("is_linear", torch.zeros((), dtype=torch.bool))

    def forward(self, batch: StoryBatch) -> tuple[Tensor, list[Tensor]]:
        """The scores of the answers, (B, L), and what each hop looked at, K × (B, N), the newest first."""
        words, widths, count = batch.words, batch.widths, batch.sentences
        if self.training and self.settings.noise:
            # Empty memories take vacant places; without these, they may push out the oldest sentences.
            free = self.settings.memories if self.settings.vacant else None
            places = with_empty(count, words.shape[1], self.settings.noise, free)
            words, widths, count = taken(words, places.sentence), taken(widths, places.sentence), places.present
            count = count.clamp(max=self.settings.memories)
            words, widths = words[:, : self.settings.memories], widths[:, : self.settings.memories]
        memories, asked = self._vectors(words, widths, batch.question)
        if self.times is not None:
            times = self.times[:, : words.shape[1]].unsqueeze(1)
            memories = [each + time for each, time in zip(memories, times, strict=False)]
        u = asked[0] if self.is_adjacent else asked[2]
        vacant = (self.settings.memories - count).unsqueeze(-1) if self.settings.vacant else 0
        is_there = torch.arange(words.shape[1], device=words.device) < count.unsqueeze(-1)
        looked = []
        for k in range(self.settings.hops):
            first = k if self.is_adjacent else 0
            o, p = hop(u, memories[first], memories[first + 1], is_there, self.is_linear, vacant)
            u = (u if self.between is None else u @ self.between.T) + o
            looked.append(p)
        return u @ self._readout().T, looked

    def _readout(self) -> Tensor:
        """W, (L, d)."""
        return self.tables[-1, self.answer_words] if self.readout is None else self.readout

    def _vectors(self, words: Tensor, widths: Tensor, question: Padded) -> tuple[list[Tensor], list[Tensor]]:
        """For each table the vectors of the sentences, (B, N, d), and of the question, (B, d)."""
        if self.reader is None:
            return self._summed(words, widths), self._summed(question.values, question.lengths)
        # Sentences and question are read together, as rows of one batch: (B, N + 1, J).
        longest = max(words.shape[-1], question.values.shape[-1])
        texts = [functional.pad(each, (0, longest - each.shape[-1])) for each in (words, question.values.unsqueeze(1))]
        lengths = torch.cat([widths.cpu(), question.lengths.unsqueeze(1)], 1)  # which a reader has on the CPU
        read = self.read(torch.cat(texts, 1), lengths)
        found = [read @ table for table in self.tables]
        return [each[:, :-1] for each in found], [each[:, -1] for each in found]

    def _summed(self, words: Tensor, widths: Tensor) -> list[Tensor]:
        """Σ_j l_j ∘ A x_j for each table A: words (…, J) to (…, d)."""
        side_by_side = self.tables.transpose(0, 1).flatten(1)  # (V, tables · d): one look-up for all
        vectors, widths = functional.embedding(words, side_by_side), beside(widths, words)
        if self.settings.sentence == "bag":
            is_word = torch.arange(words.shape[-1], device=words.device) < widths.unsqueeze(-1)
            return list(weighted(is_word, vectors).chunk(len(self.tables), -1))
        alpha, beta = word_weights(self.settings, widths, words.shape[-1], vectors.dtype)
        k = torch.arange(1, self.settings.hidden + 1, device=words.device).repeat(len(self.tables))
        return list((weighted(alpha, vectors) + k * weighted(beta, vectors)).chunk(len(self.tables), -1))

    def read(self, words: Tensor, widths: Tensor) -> Tensor:
        """What the cells say once they have read a whole sentence, (…, n); 0 where there is no word."""
        assert self.reader is not None
        assert self.embedding is not None
        words = words if words.shape[-1] else functional.pad(words, (0, 1))
        sentences = Padded(functional.embedding(words.flatten(0, -2), self.embedding), widths.flatten())
        outputs, states = self.reader(sentences)
        if self.settings.mix == "last" and self.settings.skip == "none":
            found: Tensor = states[-1][0][0]
        elif self.settings.direction == "backward":
            found = outputs.values[:, 0]
        else:
            rows = torch.arange(len(sentences.lengths), device=words.device)
            found = outputs.values[rows, beside(sentences.lengths - 1, outputs.values).clamp_min(0)]
        is_there = beside(sentences.lengths, found) > 0
        return (found * is_there.unsqueeze(-1)).unflatten(0, words.shape[:-1])

    def loss(self, batch: StoryBatch) -> tuple[Tensor, int]:
        """The summed loss, and of how many answers."""
        scores, _ = self(batch)
        return functional.cross_entropy(scores, batch.answer, ignore_index=UNLABELLED, reduction="sum"), batch.labelled

    @torch.no_grad()
    def predict(self, batch: StoryBatch, *, detail: bool = False) -> list[StoryOutput]:
        """Probabilities of the answers of each row."""
        scores, looked = self(batch)
        probabilities = scores.cpu().double().softmax(-1).numpy()
        counts = batch.sentences.tolist()
        seen = torch.stack(looked, 1).cpu().double().numpy() if detail else None
        return [
            StoryOutput(probabilities[row], count, None if seen is None else seen[row, :, :count][:, ::-1])
            for row, count in enumerate(counts)
        ]


def reader_of(settings: QuestionAnsweringModel) -> Recurrent:
    """The layers of cells that read sentences and questions."""
    return Recurrent(
        settings.cell,
        settings.hidden,
        settings.hidden,
        layers=settings.layers,
        direction=settings.direction,
        mix=settings.mix,
        skip=settings.skip,
        engine=settings.engine,
    )


def word_weights(
    settings: QuestionAnsweringModel, widths: Tensor, longest: int, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """l_kj of sentence = position or place, as α_j + k β_j."""
    if settings.sentence == "position":
        return position_weights(widths, longest, settings.hidden, dtype)
    return place_weights(widths, longest, settings.hidden, settings.longest, dtype)


def weighted(weights: Tensor, vectors: Tensor) -> Tensor:
    """Σ_j w_j v_j: (…, J) and (…, J, n) to (…, n)."""
    return (weights.to(vectors.dtype).unsqueeze(-2) @ vectors).squeeze(-2)


def taken(values: Tensor, which: Tensor) -> Tensor:
    """The sentences (B, N, …) in the order that is asked for, (B, N'), and zeros where that is -1."""
    index = which.clamp(min=0)[(..., *[None] * (values.dim() - 2))].expand(*which.shape, *values.shape[2:])
    if not values.shape[1]:
        return values.new_zeros(index.shape)
    return values.gather(1, index) * (which >= 0)[(..., *[None] * (values.dim() - 2))]


def batched(rows: Sequence[Encoded], memories: int) -> StoryBatch:
    """Encoded stories as one batch: the last `memories` sentences of each, the newest first."""
    rows = Rows.of(rows)
    words, widths, sentences = remembered(rows, memories)
    answer = torch.from_numpy(rows.flat("answer").values.astype(np.int64))
    return StoryBatch(
        torch.from_numpy(words),
        torch.from_numpy(widths),
        torch.from_numpy(sentences),
        padded(rows, "question", np.int64),
        answer,
        int((answer != UNLABELLED).sum()),
    )
