"""The network of a language model: from the tokens so far to the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from recurra import outputs
from recurra.analysis.saliency import MOST, Probe
from recurra.cells import Spec, build
from recurra.cells.cell import AnyState
from recurra.cells.wrappers.weight_drop import has_recurrent_weights
from recurra.config import LanguageModelModel
from recurra.config.language_model import WEIGHT_DROP
from recurra.data.store import Encoded
from recurra.encoders.dropout import LockedDropout
from recurra.errors import DataError
from recurra.heads import UNLABELLED
from recurra.models.forcing import ALWAYS, Coins, Forced, own_tokens
from recurra.outputs.output import at_least_single
from recurra.padding import Padded, beside, coarser, widened
from recurra.search.ensemble import together
from recurra.search.search import Step
from recurra.settings import SettingError, about, name_of
from recurra.stacks.recurrent import Fixed, Recurrent, States
from recurra.transformer import Cache, Transformer, continued

TRIAL_SIZE = 4
"""Of a cell that is made only to see which weights it has."""

SCORES = 1 << 26
"""So many scores, tokens × vocabulary, are in memory together where no gradient is wanted."""


class TextBatch(NamedTuple):
    """Rows of text: at each step the token that is read and the one that comes next."""

    inputs: Padded  # (B, T)
    targets: Tensor  # (B, T), UNLABELLED on padding
    kept: Tensor | None  # (B,): rows whose state goes on from the batch before; None: rows that follow on nothing
    whole: Tensor | None = None  # (B, 2): tokens, and pairs of neighbours, of the batch that all rows are a part of

    def within(self, whole: Sequence[NDArray[np.integer[Any]]]) -> TextBatch:
        """The same rows as a part of a larger batch, such as the share of one of several processes."""
        return self._replace(whole=torch.from_numpy(np.stack(whole)))


class TextLoss(NamedTuple):
    """What a batch cost, and the states it ended in."""

    total: Tensor
    states: States


class NextToken(nn.Module):
    """p(next token | the tokens so far), with every state in the open.

        x_t  = E[w_t]                                 token, embedding and locked input dropout
        h    = Recurrent(x, states)                   weight drop on U, locked dropout between layers
             or Transformer(x, states)                states: the keys and values of the tokens that are still seen
        p(w_{t+1} | w_1 … w_t) = output(drop(h_t))    locked output dropout; tied: the output's matrix is E

        loss = Σ_t −log p(w_{t+1} | …)  +  n (α mean(drop(h)²) + β mean((h_t − h_{t+1})²))

    over the n tokens of a batch, so that α and β stand beside a mean loss.

    >>> model = NextToken(LanguageModelModel(embedding=4, hidden=6), tokens=10).eval()
    >>> states, last = model.read(Padded.full(torch.tensor([[1, 2, 3]])))
    >>> again, _ = model.step(torch.tensor([3]), model.read(Padded.full(torch.tensor([[1, 2]])))[0])
    >>> torch.allclose(last, again, atol=1e-6)
    True
    """

    def __init__(self, settings: LanguageModelModel, *, tokens: int) -> None:
        super().__init__()
        self.token_dropout = settings.token_dropout
        self.embedding_dropout = settings.embedding_dropout
        self.alpha = settings.activation_regularization
        self.beta = settings.temporal_regularization
        self.embedding = nn.Embedding(tokens, settings.embedding)
        # Vectors that only are read begin large, which taught characters better; an output's matrix begins small.
        nn.init.normal_(self.embedding.weight, std=settings.embedding**-0.5 if settings.tied else 1.0)
        self.drop_input = LockedDropout(settings.input_dropout)
        self.recurrent: Recurrent | None = None
        self.transformer: Transformer | None = None
        if settings.decoder.kind == "transformer":
            self.transformer = Transformer(
                settings.embedding,
                settings.widths[0],
                layers=len(settings.widths),
                heads=settings.decoder.heads,
                feed_forward=settings.decoder.feed_forward,
                form=settings.decoder.form,
                dropout=settings.dropout,
                causal=True,
                context=settings.decoder.context,
            )
        else:
            self.recurrent = Recurrent(
                with_weight_drop(settings.cell, weight_drop_of(settings)),
                settings.embedding,
                settings.widths,
                mix=settings.mix,
                skip=settings.skip,
                dropout=settings.dropout,
                locked=True,
                engine=settings.engine,
            )
        self.drop_output = LockedDropout(settings.output_dropout)
        self.output = outputs.build(
            settings.output, self.stack.output_size, tokens, self.embedding.weight if settings.tied else None
        )

    @property
    def stack(self) -> Recurrent | Transformer:
        """What reads the tokens so far."""
        found = self.recurrent if self.transformer is None else self.transformer
        assert found is not None
        return found

    def forward(self, tokens: Padded, states: States | None = None) -> tuple[Padded, States]:
        """The last layer's h (B, T, H) for tokens (B, T), and the states after them."""
        return self.stack(self.embedded(tokens), states)

    def embedded(self, tokens: Padded) -> Padded:
        """Token vectors (B, T, E); in training some of them, or of their numbers, are zeros."""
        dropped: Padded = self.drop_input(Padded(self._vectors(tokens.values, self._kept()), tokens.lengths))
        return dropped

    def _kept(self) -> Tensor | None:
        """(V, 1): the tokens whose vectors are not zero for a whole batch, scaled; None: all."""
        if not self.training or not self.embedding_dropout:
            return None
        return functional.dropout(
            self.embedding.weight.new_ones(self.embedding.num_embeddings, 1), self.embedding_dropout
        )

    def _vectors(self, ids: Tensor, kept: Tensor | None) -> Tensor:
        x: Tensor = self.embedding(ids)
        if kept is not None:
            x = x * functional.embedding(ids, kept)
        if self.training and self.token_dropout:
            # Not scaled: a token that is read is read as it always will be.
            x = x * (torch.rand(*ids.shape, 1, device=x.device) >= self.token_dropout)
        return x

    def led(self, batch: TextBatch, states: States | None, forced: Forced) -> tuple[Padded, Padded, States]:
        """Scheduled sampling: h (B, T, H), h after dropout, and the states, each token right or the model's own.

            w̃_t = w_t with chance p,  else argmax p(w | w̃_1 … w̃_{t-1}), or drawn from it
            h_t  = step(E[w̃_t], states)

        Masks that last a sequence are drawn once; a choice has no gradient.
        """
        gold, lengths = batch.inputs.values, batch.inputs.lengths
        rows, weight = len(gold), self.embedding.weight
        kept, coins = self._kept(), Coins(forced, rows, gold.device)
        of_input, of_output = (
            drop(Padded.full(weight.new_ones(rows, 1, size))).values.squeeze(1)
            for drop, size in ((self.drop_input, weight.shape[1]), (self.drop_output, self.stack.output_size))
        )
        advance = self._advancing(rows)
        states = self.start(rows) if states is None else states
        tokens, outputs = gold[:, :1].squeeze(1), list[Tensor]()
        for number in range(gold.shape[1]):
            h, states = advance(self._vectors(tokens, kept) * of_input, states)
            outputs.append(h)
            if number + 1 < gold.shape[1]:
                with torch.no_grad():
                    own = own_tokens(self.output.log_probabilities(h * of_output), forced)
                tokens = torch.where(coins.throw(), gold[:, number + 1], own)
        every = Padded(torch.stack(outputs, dim=1), lengths).zeroed()
        return every, Padded(every.values * of_output.unsqueeze(1), lengths), states

    def _advancing(self, rows: int) -> Callable[[Tensor, States], tuple[Tensor, States]]:
        """One step of the stack for so many rows, with what is drawn once for a sequence."""
        if self.recurrent is None:
            return self.stack.step
        recurrent = self.recurrent
        fixed, masks = recurrent.fixed(rows), recurrent.masks(rows)
        return lambda x, states: recurrent.advance(x, states, fixed, masks=masks)

    def loss(self, batch: TextBatch, states: States | None = None, *, forced: Forced = ALWAYS) -> TextLoss:
        """The summed loss of a batch, and the states after it; other than right tokens are read only in training."""
        if self.training and not forced.is_always and batch.inputs.values.shape[1]:
            h, dropped, states = self.led(batch, states, forced)
        else:
            h, states = self(batch.inputs, states)
            dropped = self.drop_output(h)
        total = self.output.total(dropped.values.flatten(0, 1), batch.targets.flatten())
        count = int(h.lengths.sum())
        if self.alpha:
            size = max(1, count * h.values.shape[2])
            total = total + count * self.alpha / size * at_least_single(dropped.values).square().sum()
        if self.beta:
            pairs = Padded(h.values[:, 1:] - h.values[:, :-1], (h.lengths - 1).clamp_min(0)).zeroed().values
            tokens, neighbours = count, int((h.lengths - 1).clamp_min(0).sum())
            if batch.whole is not None:
                tokens, neighbours = batch.whole[0].tolist()
            size = max(1, neighbours * h.values.shape[2])
            total = total + tokens * self.beta / size * at_least_single(pairs).square().sum()
        return TextLoss(total, states)

    def log_likelihoods(self, batch: TextBatch, states: States | None = None) -> tuple[Tensor, States]:
        """(B, T): log p of each next token, 0 on padding; and the states after the last."""
        h, states = self(batch.inputs, states)
        features, targets = self.drop_output(h).values.flatten(0, 1), batch.targets.flatten()
        rows = max(1, SCORES // self.output.scores_each)
        parts = zip(features.split(rows), targets.split(rows), strict=True)
        costs = torch.cat([self.output.loss(*part) for part in parts])
        return -costs.view_as(batch.targets), states

    def probe(
        self, whole: Callable[[int], TextBatch], tokens: Sequence[str], named: Callable[[list[int]], list[str]]
    ) -> Probe:
        """What saliency explains: log p of each next token, of the first tokens of a text."""

        def batch(rows: int) -> TextBatch:
            """Only what is explained is read, for no token depends on later ones."""
            read = whole(rows)
            inputs = Padded(read.inputs.values[:, :MOST], read.inputs.lengths.clamp(max=MOST))
            return read._replace(inputs=inputs, targets=read.targets[:, :MOST].contiguous())

        return Probe(
            tokens[:MOST],
            named(batch(1).targets[0].tolist()),
            self,
            lambda network: [network.embedding],  # type: ignore[list-item]  # an Embedding
            batch,
            lambda network, some: network.log_likelihoods(some)[0],
            "log p",
            left_out=max(0, len(tokens) - MOST),
        )

    def read(self, prompt: Padded, states: States | None = None) -> tuple[States, Tensor]:
        """The states after a prompt (B, T), and log p of what may come next, (B, V). No row may be empty."""
        if not bool((prompt.lengths > 0).all()):
            raise DataError(
                "a prompt needs at least one token: use the end-of-line symbol to start from an empty prompt."
            )
        h, states = self(prompt, states)
        rows = torch.arange(len(prompt.lengths), device=h.values.device)
        last = h.values[rows, beside(prompt.lengths - 1, h.values)]
        return states, self.output.log_probabilities(last)

    def step(self, tokens: Tensor, states: States | None = None) -> tuple[Tensor, States]:
        """log p of what may come after one more token of each row, (B,) to (B, V); and the states after it."""
        h, states = self.stack.step(self.embedding(tokens), states)
        return self.output.log_probabilities(h), states

    def stepping(self) -> Step[States, tuple[()]]:
        """`step` for states that came from `start`, a text or an earlier step: their shapes are not checked again."""
        if self.recurrent is None:
            return lambda tokens, states, _: self.step(tokens, states)
        recurrent = self.recurrent
        kept: list[tuple[int, Fixed]] = []  # what the cells keep over a sequence, for so many rows

        def step(tokens: Tensor, states: States, _: tuple[()]) -> tuple[Tensor, States]:
            if not kept or kept[0][0] != len(tokens):
                kept[:] = [(len(tokens), recurrent.fixed(len(tokens)))]
            h, states = recurrent.advance(self.embedding(tokens), states, kept[0][1])
            return self.output.log_probabilities(h), states

        return step

    def start(self, rows: int) -> States:
        """The states before the first token, for so many rows."""
        return self.stack.start(rows)

    def flat(self, states: States) -> tuple[Tensor, ...]:
        """States as a row of tensors, without their history."""
        return tuple(field.detach() for layer in states for state in layer for field in state)

    def nested(self, tensors: tuple[Tensor, ...], kept: Tensor) -> States:
        """States out of `flat`; rows that are not kept begin anew."""
        if self.transformer is not None:
            caches = [
                Cache(*tensors[at : at + len(Cache._fields)]) for at in range(0, len(tensors), len(Cache._fields))
            ]
            return continued(tuple((cache,) for cache in caches), kept)
        start = self.start(len(kept))
        fields = iter(tensors)
        keep = kept.unsqueeze(1)

        def state(new: AnyState) -> Any:
            return type(new)(*(torch.where(keep, next(fields).to(field.dtype), field) for field in new))

        return tuple(tuple(state(new) for new in layer) for layer in start)


class Mixture(nn.Module):
    """Several language models that write as one: p(w | …) = (1/M) Σ_m p_m(w | …). Its states are those of each."""

    def __init__(self, members: Sequence[NextToken]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    @property
    def embedding(self) -> nn.Embedding:
        """That of the first, which says where all of them are."""
        return self._members()[0].embedding

    def start(self, rows: int) -> tuple[States, ...]:
        """The states before the first token, for so many rows."""
        return tuple(member.start(rows) for member in self._members())

    def forward(self, tokens: Padded, states: tuple[States, ...]) -> tuple[Padded, tuple[States, ...]]:
        """Nothing that can be read together, and the states after the tokens (B, T)."""
        found = [member(tokens, state)[1] for member, state in zip(self._members(), states, strict=True)]
        return tokens, tuple(found)

    def stepping(self) -> Step[tuple[States, ...], tuple[()]]:
        """`NextToken.stepping` of all of them."""
        step = together([member.stepping() for member in self._members()])
        return lambda tokens, states, _: step(tokens, states, ((),) * len(self.members))

    def _members(self) -> list[NextToken]:
        return list(self.members)  # type: ignore[arg-type]  # a ModuleList of them


def chunks_batched(rows: Sequence[Encoded]) -> TextBatch:
    """Chunks of equal length, each with the token before it."""
    targets = np.stack([row["tokens"] for row in rows]).astype(np.int64)
    before = np.stack([row["before"] for row in rows]).astype(np.int64)
    inputs = Padded.full(torch.from_numpy(np.concatenate([before, targets[:, :-1]], axis=1)))
    kept = torch.from_numpy(np.concatenate([row["kept"] for row in rows]))
    return TextBatch(inputs, torch.from_numpy(targets), kept)


def lines_batched(lines: Sequence[NDArray[np.integer[Any]]], *, end: int) -> TextBatch:
    """Lines that follow on nothing: each is read from the end of a line on.

    >>> batch = lines_batched([np.array([5, 6, 1]), np.array([7, 1])], end=1)
    >>> batch.inputs.values.tolist(), batch.targets.tolist()
    ([[1, 5, 6], [1, 7, 1]], [[5, 6, 1], [7, 1, -100]])
    """
    lengths = torch.tensor([len(line) for line in lines])
    read = np.full((len(lines), int(lengths.max())), end, np.int64)
    targets = np.full(read.shape, UNLABELLED, np.int64)
    for number, line in enumerate(lines):
        targets[number, : len(line)] = line
        read[number, 1 : len(line)] = line[:-1]
    return TextBatch(Padded(torch.from_numpy(read), lengths), torch.from_numpy(targets), None)


def recurring_text(batch: TextBatch) -> TextBatch:
    """Lines with empty rows and steps, of a size that occurs again; chunks of one text, which are full, as they are."""
    if batch.kept is not None:
        return batch
    B, T = (coarser(size) for size in batch.inputs.values.shape)
    return TextBatch(batch.inputs.widened(B, T), widened(batch.targets, B, T, fill=UNLABELLED), None)


def weight_drop_of(settings: LanguageModelModel) -> float:
    """The share of recurrent weights that is dropped: as it was set, or else what suits the cell.

    >>> weight_drop_of(LanguageModelModel()), weight_drop_of(LanguageModelModel(cell="min_gru"))
    (0.2, 0.0)
    """
    if settings.weight_drop == 0:
        return 0.0
    if settings.decoder.kind == "transformer" or settings.cell_drops_weights:
        return 0.0
    if has_weights_to_drop(settings.cell):
        return WEIGHT_DROP if settings.weight_drop is None else settings.weight_drop
    if settings.weight_drop is not None:
        raise SettingError(
            f"model.weight_drop = {settings.weight_drop:g} has no effect: the cell '{name_of(settings.cell)}' has "
            "no recurrent weights U to drop. Leave model.weight_drop out.",
            ("model", "weight_drop"),
        )
    return 0.0


def has_weights_to_drop(cell: Spec) -> bool:
    """Whether a cell, its wrappers left aside, has recurrent weights. Nothing is drawn from torch's generator."""
    bare = cell if isinstance(cell, str) else {key: value for key, value in cell.items() if key != "wrap"}
    with about("model", "cell"), torch.random.fork_rng(devices=[]):
        return has_recurrent_weights(build(bare, TRIAL_SIZE, TRIAL_SIZE))


def with_weight_drop(cell: Spec, rate: float) -> Spec:
    """The cell with weight drop around it, inside all other wrappers.

    >>> with_weight_drop("lstm", 0.5)
    {'name': 'lstm', 'wrap': [{'name': 'weight_drop', 'rate': 0.5}]}
    """
    if not rate:
        return cell
    table = {"name": cell} if isinstance(cell, str) else dict(cell)
    others: Any = table.get("wrap", [])
    wraps = others if isinstance(others, list) else [others]
    return {**table, "wrap": [{"name": "weight_drop", "rate": rate}, *wraps]}
