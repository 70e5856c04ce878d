"""The network of sequence to sequence: an encoder that reads, a decoder that writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.attention.looks.hard import Hard
from recurra.config import Augmentation, Seq2SeqModel, Vec2SeqModel
from recurra.data.extents import Extents
from recurra.data.images import unpacked
from recurra.data.store import Encoded, Rows
from recurra.decoding.decoder import Decoder, Started
from recurra.decoding.pointer import Pointer
from recurra.decoding.pointing import Pointed, Pointing, elements_of
from recurra.encoders.augmentation import augmented_pictures
from recurra.encoders.dropout import Dropout
from recurra.encoders.given import GivenEncoder, PictureEncoder
from recurra.encoders.memory import Read, SourceEncoder
from recurra.heads import UNLABELLED
from recurra.models.forcing import ALWAYS, Coins, Forced, own_tokens
from recurra.models.looking import doubly_stochastic, reinforced
from recurra.models.rows import padded
from recurra.models.steps import some_unknown, vectors_of
from recurra.outputs.softmax import Softmax
from recurra.padding import Grid, Padded, beside, coarser, exact, gridded, widened
from recurra.products.cross_entropy import Options, cost
from recurra.recording import both
from recurra.search.continuing import FAILURES, give_up, has_kernels
from recurra.search.running import Notes, Run, Scored
from recurra.wirings import Features, Source, WiringState
from recurra.wirings.advancing import Advance


class PairBatch(NamedTuple):
    """Sources, and the targets that are to be written for them."""

    source: Padded | Grid  # (B, S) ids, (B, S, F) frames, a vector being one, or pictures
    target: Padded | None  # (B, T) ids, each row ending in </s>; None where only questions are asked
    copied: Tensor | None  # (B, S): what each place of the source is called in the target, V + n for unknown words
    extra: int = 0  # so many unknown words, or elements that are pointed at, a row has at most
    written: int | None = None  # so many places of the targets are computed, all real ones first; None: the real ones
    passes: int = 1  # 2: every row is there twice


class Sizes(NamedTuple):
    """What the data say of a network: how many tokens there are, or how many numbers a vector or frame has."""

    source: int | None  # tokens of the source
    target: int
    frames: int | None  # numbers of a frame, a vector or a place
    unknown: int
    start: int
    channels: int | None = None  # of pictures
    end: int = 0  # asked for where elements of the source are pointed at


class Fixed(NamedTuple):
    """What a search keeps of each source."""

    source: Source
    copied: Tensor | None
    pointed: Pointed | None


class Costs(NamedTuple):
    """A summed loss, and the mean of rewards after it where attention draws."""

    total: Tensor
    baseline: Tensor | None = None  # (1,)


class Led(NamedTuple):
    """What a decoder makes of all tokens of B targets."""

    features: Features
    real: Tensor  # (N,): the numbers of the real places of all targets
    y: Tensor  # (N,): the tokens there
    fixed: Fixed
    mask: Tensor  # (B, S): which places of the sources are real

    def written(self) -> Tensor:
        """(N, F): the features at every real place."""
        return self.features.values.flatten(0, 1).index_select(0, self.real)


@final
class SequenceToSequence(nn.Module):
    """p(y_t | y_1 … y_{t-1}, source), from a memory of the source and the tokens so far.

        m, end  = encoder(E_x[x])                           frames: encoder(W frames); a vector, a picture: itself
        h̃       = decoder(E_y[<s>, y_1 … y_{T-1}], m, end)
        p(y_t)  = softmax(W_o h̃_t + b)                      copy: mixed with pointing at the source;
                                                            pointer: over the elements of the source alone

    In training, with r_drop, all is done twice with different dropout: log p and log q,

        loss = ½ (CE_p + CE_q) + α/4 (KL(p‖q) + KL(q‖p))    (Liang et al. 2021)
    """

    output: Softmax  # not where elements are pointed at

    def __init__(
        self, settings: Seq2SeqModel | Vec2SeqModel, sizes: Sizes, augmentation: Augmentation | None = None
    ) -> None:
        super().__init__()
        self.sizes, self.augmentation = sizes, augmentation
        self.writes_backward = settings.writes_backward  # whether targets are given, and written, from their end
        self.smoothing, self.token_dropout = settings.label_smoothing or 0.0, settings.token_dropout
        rate = settings.dropout if settings.embedding_dropout is None else settings.embedding_dropout
        self.dropout = Dropout(rate, locked=settings.locked)
        size = settings.embedding
        target = nn.Embedding(sizes.target, size)
        # An output's matrix begins small, what is read begins larger: where they are one, it is read times √E.
        nn.init.normal_(target.weight, std=size**-0.5 if settings.tied != "none" else 1.0)
        self.scale = size**0.5 if settings.tied == "all" else 1.0
        self.embedding: nn.Embedding | None = None
        self.from_frames: nn.Linear | None = None
        self.encoder: SourceEncoder | GivenEncoder | PictureEncoder
        if isinstance(settings, Vec2SeqModel):
            self.encoder = given_encoder(settings, sizes)
        else:
            if sizes.source is None:
                assert sizes.frames is not None, "a source is tokens or frames"
                self.from_frames = nn.Linear(sizes.frames, size)
            else:
                self.embedding = target if settings.tied == "all" else nn.Embedding(sizes.source, size)
            if settings.decoder.kind == "window" and self.embedding is not None:
                # Products of embeddings are compared at once: large ones made attention peaked before it had learned.
                nn.init.normal_(target.weight, std=size**-0.5)
                nn.init.normal_(self.embedding.weight, std=size**-0.5)
            self.encoder = SourceEncoder(settings, size)
        self.decoder = Decoder(settings, self.encoder, target, bridge=settings.bridge)
        self.pointer: Pointer | None = None
        self.pointing: Pointing | None = None
        if isinstance(settings, Seq2SeqModel) and settings.pointer is not None:
            self.pointing = Pointing(
                settings.pointer,
                self.decoder.output_size,
                self.encoder.output_size,
                specials=sizes.target,
                end=sizes.end,
            )
            return
        tied = target.weight if settings.tied != "none" else None
        self.output = Softmax(self.decoder.output_size, sizes.target, tied)
        if isinstance(settings, Seq2SeqModel) and settings.copy:
            self.pointer = Pointer(self.decoder.output_size)

    def read(self, source: Padded | Grid, copied: Tensor | None = None, extra: int = 0) -> Read:
        """What the encoder finds in sources; of those that are pointed at, with the ids of their places."""
        if isinstance(source, Grid):
            return self._pictures(source)
        x = vectors_of(self, source, self.decoder.embedding.weight.dtype)
        if self.embedding is None and self.from_frames is None:
            given: Read = self.encoder(x)
            return given
        found: Read = self.encoder(Padded(self.dropout(x.values), x.lengths))
        if self.pointing is None:
            return found
        assert copied is not None, "elements have numbers"
        return found._replace(elements=elements_of(x.values, copied, self.sizes.target, extra))

    def _pictures(self, source: Grid) -> Read:
        pictures = Grid(source.values.to(self.decoder.embedding.weight.dtype), source.sizes)
        if not source.values.is_floating_point():  # bytes until now: a quarter of what there is to move
            pictures = Grid(pictures.values / 255, source.sizes)
            if self.training and self.augmentation is not None:
                pictures = augmented_pictures(pictures, self.augmentation)
        found: Read = self.encoder(pictures)
        return found

    def loss(self, batch: PairBatch, *, forced: Forced = ALWAYS, r_drop: float = 0.0) -> Tensor:
        """Summed over all tokens of the targets; smoothing, r_drop and forcing only in training."""
        return self.costs(batch, forced=forced, r_drop=r_drop).total

    def costs(
        self,
        batch: PairBatch,
        *,
        forced: Forced = ALWAYS,
        r_drop: float = 0.0,
        everywhere: float = 0.0,
        baseline: Tensor | None = None,
    ) -> Costs:
        """The loss, with what is added in training for where attention looked.

        `everywhere` weighs the term by which attention looks at each place once. A look that draws has a `baseline`,
        the mean of its rewards before this batch.
        """
        assert batch.target is not None, "a loss needs targets"
        twice = r_drop > 0 and self.training
        batch = doubled(batch) if twice else batch
        ignored = None if batch.written is None else UNLABELLED
        options = Options(self.smoothing if self.training else 0.0, r_drop if twice else 0.0, ignored)
        led = self._led(batch, forced if self.training else ALWAYS)
        log_p = None if self.pointing is None and self.pointer is None else self._pointed(led, batch)
        if log_p is None:
            total = self.output.cost(led.written(), led.y, options)
        elif self.pointing is not None:
            total = cost(log_p, led.y, options, some_never=True)
        else:
            total = cost(log_p, led.y, options, tokens=self.sizes.target)  # not of words that are only in some source
        if not self.training:
            return Costs(total)
        assert batch.target is not None
        share, lengths = 0.5 if twice else 1.0, batch.target.lengths
        if everywhere and led.features.weights is not None:
            total = total + share * everywhere * doubly_stochastic(led.features.weights, led.mask, lengths)
        look = None if self.decoder.attention is None else self.decoder.attention.look
        if not isinstance(look, Hard):
            return Costs(total)
        with torch.no_grad():
            log_p = self.output.log_probabilities(led.written()) if log_p is None else log_p
            of_targets = of_rows(log_p.gather(1, led.y.unsqueeze(1)).squeeze(1), lengths)
        found = reinforced(led.features, look, of_targets, lengths, baseline)
        return Costs(total + share * found.total, found.baseline)

    def token_log_likelihoods(self, batch: PairBatch) -> Tensor:
        """(N,): log p of each token of the targets, their ends among them, row after row."""
        log_p, y = self._log_p(batch, ALWAYS)
        return exact(log_p.gather(1, y.unsqueeze(1)).squeeze(1))

    def start(self, batch: PairBatch, *, multiple: int = 1) -> tuple[Tensor, WiringState, Fixed]:
        """What a search begins with: <s> for each source, the decoder's state, and what it keeps of the sources.

        With `multiple`, memories have empty places behind, up to a multiple of so many.
        """
        read = self.read(batch.source, batch.copied, batch.extra)
        read = read._replace(memory=read.memory.rounded(multiple))
        started = self.decoder.start(read)
        tokens = torch.full((len(batch.source.values),), self.sizes.start, device=batch.source.values.device)
        return tokens, started.state, self._fixed(read, started, batch.copied)

    def _fixed(self, read: Read, started: Started, copied: Tensor | None) -> Fixed:
        if self.pointing is not None:
            assert copied is not None, "elements have numbers"
            return Fixed(started.source, None, self.pointing.remember(read.memory, copied))
        if copied is not None:
            copied = functional.pad(copied, (0, read.memory.mask.shape[1] - copied.shape[1]))
        return Fixed(started.source, copied, None)

    def step(
        self, tokens: Tensor, state: WiringState, fixed: Fixed, *, extra: int = 0, cells: Any = None
    ) -> tuple[Tensor, WiringState]:
        """log p of what may come after one more token of each row, (N,) to (N, V + extra); and the state after it.

        `cells` is what the decoder's cells keep over a sequence of so many rows, where it is known.
        """
        h, state = self.decoder.step(self._known(tokens), state, fixed.source, cells)
        if self.pointing is not None:
            assert fixed.pointed is not None, "`start` has prepared the elements"
            log_p = self.pointing.log_probabilities(h, fixed.pointed)
            state = state._replace(weights=log_p[:, 1:].exp())  # where it points is where it looks
            return self.pointing.of_tokens(log_p, fixed.pointed, extra), state
        return self._scored(h, state.weights, fixed, extra), state

    def stepping(self, extra: int = 0) -> Stepping:
        """`step`, with what the cells keep over a sequence prepared once for all steps of the same number of rows."""
        return Stepping(self, extra)

    def extents(self, source: Padded | Grid) -> Extents:
        """How many places there are to look at in each source."""
        return self.encoder.extents(source)

    def weights(self, state: WiringState) -> Tensor | None:
        """(N, S): where the step that gave this state has looked."""
        return state.weights

    def _log_p(self, batch: PairBatch, forced: Forced) -> tuple[Tensor, Tensor]:
        """(N, V) log-probabilities at every real place of the targets, and the tokens (N,) there."""
        led = self._led(batch, forced)
        if self.pointing is None and self.pointer is None:
            return self.output.log_probabilities(led.written()), led.y
        return self._pointed(led, batch), led.y

    def _pointed(self, led: Led, batch: PairBatch) -> Tensor:
        """(N, V + extra): log p where elements are pointed at. It is found by rows, and padding is left out of it."""
        weights = None if led.features.weights is None else led.features.weights.flatten(0, 1)
        log_p = self._scored(led.features.values.flatten(0, 1), weights, led.fixed, batch.extra)
        return log_p.index_select(0, led.real)

    def _led(self, batch: PairBatch, forced: Forced) -> Led:
        """The decoder led along the targets."""
        assert batch.target is not None, "there are targets"
        target, lengths = batch.target.values, batch.target.lengths
        read = self.read(batch.source, batch.copied, batch.extra)
        started = self.decoder.start(read)
        fixed = self._fixed(read, started, batch.copied)
        features = self._features(target, lengths, started, forced, fixed, batch.extra)
        if batch.written is not None:
            real = real_first(batch.target.mask, batch.written, batch.passes)
            y = target.masked_fill(~batch.target.mask, UNLABELLED)
            return Led(features, real, y.flatten().index_select(0, real), fixed, read.memory.mask)
        real = (torch.arange(target.shape[1]) < lengths.unsqueeze(1)).flatten().nonzero().squeeze(1)
        real = beside(real, target)  # found on the CPU: a device would have to be waited for
        return Led(features, real, target.flatten().index_select(0, real), fixed, read.memory.mask)

    def _features(
        self, target: Tensor, lengths: Tensor, started: Started, forced: Forced, fixed: Fixed, extra: int
    ) -> Features:
        first = target.new_full((len(target), 1), self.sizes.start)
        if forced.is_always:
            inputs = torch.cat([first, some_unknown(self, self._known(target[:, :-1]))], dim=1)
            found: Features = self.decoder(Padded(inputs, lengths), started)
            return found
        gold = some_unknown(self, self._known(target))
        coins = Coins(forced, len(target), target.device)

        def choose(h: Tensor, weights: Tensor | None, number: int) -> Tensor:
            with torch.no_grad():
                own = own_tokens(self._scored(h, weights, fixed, extra), forced)
            return torch.where(coins.throw(), gold[:, number], self._known(own))

        return self.decoder.led(first.squeeze(1), target.shape[1], started, choose)

    def _scored(self, h: Tensor, weights: Tensor | None, fixed: Fixed, extra: int) -> Tensor:
        """(N, V + extra): log p of every token given features (N, F)."""
        if self.pointing is not None:
            assert fixed.pointed is not None, "the elements are prepared"
            return self.pointing.of_tokens(self.pointing.log_probabilities(h, fixed.pointed), fixed.pointed, extra)
        log_p = self.output.log_probabilities(h)
        if self.pointer is None:
            return log_p
        assert weights is not None, "a pointer attends"
        assert fixed.copied is not None, "a pointer points at tokens"
        return self.pointer.log_probabilities(log_p, weights, h, fixed.copied, extra)

    def _known(self, tokens: Tensor) -> Tensor:
        """Tokens as they are read: a word that was copied is unknown to the embedding."""
        return tokens if self.pointer is None else tokens.masked_fill(tokens >= self.sizes.target, self.sizes.unknown)


@final
class Stepping:
    """The steps of a network in a search."""

    def __init__(self, model: SequenceToSequence, extra: int) -> None:
        self.model, self.extra = model, extra
        self.kept: tuple[int, Any] | None = None  # what the cells keep, for so many rows

    def __call__(self, tokens: Tensor, state: WiringState, fixed: Fixed) -> tuple[Tensor, WiringState]:
        if self.kept is None or self.kept[0] != len(tokens):
            decoder = self.model.decoder
            self.kept = len(tokens), decoder.wiring.fixed(len(tokens), decoder.embedding.weight)
        return self.model.step(tokens, state, fixed, extra=self.extra, cells=self.kept[1])

    def begun(self, tokens: Tensor, state: WiringState, fixed: Fixed) -> Run | None:
        """Steps by few kernels, on a GPU; None where there are none for this network."""
        if fixed.pointed is not None or not has_kernels(tokens.device):
            return None
        advance = self.model.decoder.advancing(state, fixed.source)
        if advance is None:
            return None
        try:
            return Advancing(self.model, advance, self.model._known(tokens), fixed, self.extra)
        except Exception as error:  # a compiler may be missing, or a GPU too small: Triton has many names for it
            give_up(error)
            return None


@final
class Advancing:
    """A network that goes on by few kernels."""

    def __init__(self, model: SequenceToSequence, advance: Advance, tokens: Tensor, fixed: Fixed, extra: int) -> None:
        self.model, self.advance, self.fixed, self.extra = model, advance, fixed, extra
        self.output = model.output.scoring()
        advance.begin(tokens)
        self.first: Scored | None = self._scores()  # at once, so that it is known whether the kernels can be made

    def scores(self) -> Scored:
        found, self.first = self.first or self._scores(), None
        return found

    def _scores(self) -> Scored:
        h = self.advance.step()
        if self.model.pointer is None:
            return Scored(self.output(h), is_log_p=False)
        return Scored(self.model._scored(h, self.advance.weights, self.fixed, self.extra))

    def go_on(self, tokens: Tensor, rows: Tensor | None = None) -> None:
        self.advance.go_on(self.model._known(tokens), rows)

    def take(self, scored: Scored, closed: Tensor | None, notes: Notes) -> Tensor | None:
        is_plain = self.model.pointer is None and not FAILURES
        return self.advance.take(scored, closed, notes) if is_plain else None

    def moving(self) -> WiringState:
        return self.advance.state()


def of_rows(each: Tensor, lengths: Tensor) -> Tensor:
    """(B,): the sums of numbers that stand one after the other, so many for each row.

    >>> of_rows(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2, 0, 1])).tolist()
    [3.0, 0.0, 3.0]
    """
    rows = beside(torch.repeat_interleave(lengths), each)
    return each.new_zeros(len(lengths)).index_add(0, rows, each)


def doubled(batch: PairBatch) -> PairBatch:
    """Every row twice: all of them, then all of them again."""

    def twice(tensor: Tensor) -> Tensor:
        return both(lambda one: torch.cat([one, one]), tensor)

    copied = None if batch.copied is None else twice(batch.copied)
    source = type(batch.source)(*(twice(part) for part in batch.source))
    target = None if batch.target is None else Padded(*(twice(part) for part in batch.target))
    return batch._replace(source=source, target=target, copied=copied, passes=2 * batch.passes)


def real_first(mask: Tensor, count: int, passes: int) -> Tensor:
    """The numbers of the real places of a batch (B, T), then of others, `count` in each of the passes over it.

    >>> real_first(torch.tensor([[True, False], [True, True]]), 3, 1).tolist()
    [0, 2, 3]
    >>> real_first(torch.tensor([[False, True], [False, True]]), 2, 2).tolist()
    [1, 0, 3, 2]
    """
    places = mask.view(passes, -1)
    order = (~places).to(torch.uint8).argsort(dim=1, stable=True)[:, :count]
    return (order + torch.arange(passes, device=mask.device).unsqueeze(1) * places.shape[1]).flatten()


PORTIONS = 8
"""How finely the share of a padded batch that is real is told apart."""


def recurring_pairs(batch: PairBatch) -> PairBatch | None:
    """The batch with empty rows and places, of a size that occurs again; None of pictures.

    >>> some = PairBatch(Padded.full(torch.ones(9, 5)), Padded.full(torch.ones(9, 3)), None)
    >>> found = recurring_pairs(some)
    >>> found.source.values.shape, found.target.values.shape, found.written
    (torch.Size([10, 6]), torch.Size([10, 4]), 30)
    """
    if batch.target is None or not isinstance(batch.source, Padded):
        return None
    B, S, T = (
        coarser(size, parts=8, least=2) for size in (*batch.source.values.shape[:2], batch.target.values.shape[1])
    )
    portion = max(1, B * T // PORTIONS)
    written = min(B * T, -(-int(batch.target.lengths.sum()) // portion) * portion)
    copied = None if batch.copied is None else widened(batch.copied, B, S)
    return PairBatch(batch.source.widened(B, S), batch.target.widened(B, T), copied, coarser(batch.extra), written)


def given_encoder(settings: Vec2SeqModel, sizes: Sizes) -> GivenEncoder | PictureEncoder:
    """What reads a vector, places or pictures."""
    starts = "initial" in settings.conditioning
    if sizes.channels is not None:
        return PictureEncoder(settings.image, sizes.channels, starts=starts)
    assert sizes.frames is not None, "what is given is a picture or numbers"
    own = settings.encoder
    return GivenEncoder(
        sizes.frames, own.hidden or settings.hidden, own.layers, dropout=settings.dropout, starts=starts
    )


def pairs_batched(rows: Sequence[Encoded], *, vocabulary: int) -> PairBatch:
    """Encoded pairs as tensors.

    >>> longer = {"source": np.array([5, 2]), "target": np.array([7, 8, 2])}
    >>> batch = pairs_batched([longer, {"source": np.array([2]), "target": np.array([2])}], vocabulary=9)
    >>> batch.source.values.tolist(), batch.target.values.tolist()
    ([[5, 2], [2, 0]], [[7, 8, 2], [2, 0, 0]])
    """

    rows = Rows.of(rows)
    source: Padded | Grid
    if rows.has("picture"):
        source = gridded([torch.from_numpy(unpacked(row["picture"], row["shape"])).permute(2, 0, 1) for row in rows])
    elif rows.has("map"):  # features of the places of a grid
        maps = [row["map"].reshape(*row["shape"], -1).astype(np.float32) for row in rows]
        source = gridded([torch.from_numpy(each).permute(2, 0, 1) for each in maps])
    elif rows.has("frames"):
        source = padded(rows, "frames", np.float32)
    else:
        source = padded(rows, "source", np.int64)
    target = padded(rows, "target", np.int64) if rows.has("target") else None
    if not rows.has("copied"):
        return PairBatch(source, target, None)
    copied = padded(rows, "copied", np.int64).values
    extra = max(0, int(copied.max()) + 1 - vocabulary) if copied.numel() else 0
    return PairBatch(source, target, copied, extra)
