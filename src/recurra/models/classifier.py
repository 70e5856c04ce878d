"""The classifier: tokens, frames, pictures or two texts, an encoder or several, a readout of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from recurra.analysis.saliency import Probe
from recurra.cells import with_gaps
from recurra.config import Augmentation, ClassificationModel
from recurra.data.images import unpacked
from recurra.data.store import Encoded, Rows
from recurra.encoders.augmentation import augmented_pictures, augmented_series
from recurra.encoders.bag import Bag, Bags
from recurra.encoders.convolution import Convolution
from recurra.encoders.dropout import LockedDropout
from recurra.encoders.non_local_steps import non_local_steps
from recurra.encoders.pooled_image import PooledImage
from recurra.encoders.recurrent_encoder import RecurrentEncoder
from recurra.encoders.transformer_encoder import TransformerEncoder
from recurra.encoders.words import ReadWords, Spelling, Spellings
from recurra.heads import UNLABELLED
from recurra.models.character_features import CharacterFeatures
from recurra.models.classified import ClassifierOutput
from recurra.models.rows import padded
from recurra.models.tagger import recurring_spellings, spelt
from recurra.padding import Grid, Padded, coarser, exact, gridded, widened
from recurra.pairings import Paired, Parts, pairing
from recurra.stacks.recurrent import Recurrent, States

Kind = Literal["label", "labels", "targets"]
"""What is predicted: one class, any number of classes, or numbers."""


class ClassifierBatch(NamedTuple):
    """Some examples as tensors."""

    words: Padded | None  # (B, T)
    spellings: Spellings | None
    bags: Bags | Padded | None  # padded: in exported models
    frames: Padded | None  # (B, T, d)
    steps: Tensor  # (B,): how many tokens, frames or places of a picture there are
    label: Tensor | None  # (B,), UNLABELLED where the class is not known
    labels: Tensor | None  # (B, L): 1 for each class that the row has
    targets: Tensor | None  # (B, k), scaled
    pictures: Grid | None = None  # (B, C, H, W), bytes
    known: int | None = None  # rows whose class is known, counted before they are on a device; None: not counted
    texts: tuple[Padded, Padded] | None = (
        None  # where the tokens of each of two texts stand in `words`, (B, T₁), (B, T₂)
    )
    candidates: Tensor | None = None  # (B, L): the classes that can be answered; None: all
    features: Tensor | None = None  # (B, T, F): of words, by language models


class Classifier(nn.Module):
    """inputs → encoder → dropout → readout, for each member.

    s_m = encoder_m(x),   o_m = W_m drop(s_m) + b_m
    label:    p = (1/M) Σ_m softmax(o_m)       loss  Σ_m −log softmax(o_m)[y]
    labels:   p = (1/M) Σ_m σ(o_m)             loss  Σ_m Σ_l −log p_ml(y_l)
    targets:  ŷ = (1/M) Σ_m o_m                loss  Σ_m |o_m − y|²

    Members read words by vectors of their own, or by the same where `share` is set. Two texts are read by one table of
    vectors and one pairing in place of an encoder; dropout drops the same features of the words of both.
    """

    def __init__(
        self,
        settings: ClassificationModel,
        kind: Kind,
        outputs: int,
        *,
        words: int,
        unknown: int,
        characters: int | None,
        frame_size: int | None,
        features: int | None,
        class_weights: NDArray[np.float64] | None,
        augmentation: Augmentation | None = None,
        channels: int | None = None,
        paired: bool = False,
        word_features: int = 0,
        variables: int = 0,
    ) -> None:
        super().__init__()
        if variables:  # frames are values, their masks and the time since the frame before
            settings = dataclasses.replace(settings, cell=with_gaps(settings.cell, variables))
        self.kind = kind
        self.augmentation = augmentation
        self.dropout = settings.dropout
        self.label_smoothing = settings.label_smoothing
        members = ["pairing"] if paired else settings.encoders
        reading = len(members) - members.count("bag")
        is_text = frame_size is None and channels is None
        readers = 0 if not is_text else min(1, reading) if settings.share else reading
        self.readers = nn.ModuleList(
            read_words(settings, words=words, unknown=unknown, characters=characters, features=word_features)
            for _ in range(readers)
        )
        size = frame_size or (int(self.readers[0].output_size) if readers else 0)  # type: ignore[arg-type]
        # A series may have one number a step: without it there is nothing left to read.
        input_dropout = 0.0 if frame_size is not None else settings.dropout
        self.drop_words = LockedDropout(settings.dropout)  # of two texts: those of both, by one mask
        self.encoders = nn.ModuleList(
            pairing(settings.pairing, size, parts_of(settings))
            if paired
            else encoder(name, settings, size, input_dropout, features)
            if channels is None
            else PooledImage(settings.image, channels, settings.summary)
            for name in members
        )
        self.non_local = None if channels is not None else non_local_steps(settings.non_local, size or 1)
        self.readouts = nn.ModuleList(nn.Linear(int(each.output_size), outputs) for each in self.encoders)  # type: ignore[arg-type]
        weights = None if class_weights is None else torch.tensor(class_weights, dtype=torch.get_default_dtype())
        self.register_buffer("class_weights", weights, persistent=False)

    def forward(self, batch: ClassifierBatch) -> tuple[list[Tensor], Tensor | Paired | None]:
        """The outputs of each member, (B, L), and the weights (B, K, T) of the first that attends to steps.

        Of two texts, what a pairing gives stands in place of the weights.
        """
        read = [reader(batch.words, batch.spellings, batch.features) for reader in self.readers]
        if batch.frames is not None:
            read = [self._frames(batch)]
        elif batch.pictures is not None:
            read = [self._pictures(batch.pictures)]
        if self.non_local is not None:
            read = [self.non_local(each.zeroed()) for each in read]
        used = 0
        outputs: list[Tensor] = []
        attention: Tensor | Paired | None = None
        for encode, readout in zip(self.encoders, self.readouts, strict=True):
            weights: Tensor | Paired | None = None
            if isinstance(encode, Bag):
                vector = encode(batch.bags)
            elif batch.texts is not None:
                words = self.drop_words(read[0])
                paired: Paired = encode(*(text_in(words, places) for places in batch.texts))
                vector, weights = paired.vector, paired
            else:
                vector, weights = encode(read[used % len(read)])
                used += 1
            output = readout(functional.dropout(vector, self.dropout, self.training))
            output = output.to(torch.promote_types(output.dtype, torch.float32))
            if batch.candidates is not None:
                output = output.masked_fill(~batch.candidates, -torch.inf)
            outputs.append(output)
            attention = weights if attention is None else attention
        return outputs, attention

    def refusal_of_streams(self) -> str | None:
        """Why an example cannot be classified after each of its steps as they come; None: it can."""
        for encode in self.encoders:
            if not isinstance(encode, RecurrentEncoder) or not isinstance(encode.recurrent, Recurrent):
                return "its encoder looks at all steps at once: train one with model.encoder = 'rnn'"
            if encode.recurrent.bidirectional or encode.recurrent.direction == "backward":
                return "it reads from the end too: train one with model.bidirectional = false"
            if encode.summary.begin() is None:
                return "its summary looks at all steps at once: train one with model.summary = 'last', 'mean' or 'max'"
        return None if self.non_local is None else "model.non_local looks at all steps at once"

    def begin(self) -> tuple[tuple[States, Tensor], ...]:
        """For each member, the states before the first step of a stream, and what its summary has gathered."""
        pairs = [(encode.recurrent.start(1), encode.summary.begin()) for encode in self._streaming()]
        return tuple((states, gathered) for states, gathered in pairs if gathered is not None)

    def go_on(
        self, batch: ClassifierBatch, before: Sequence[tuple[States, Tensor]]
    ) -> tuple[list[Tensor], tuple[tuple[States, Tensor], ...]]:
        """The outputs of each member, (B, L), for all steps so far, and what the next steps need."""
        read = [reader(batch.words, batch.spellings, batch.features) for reader in self.readers]
        if batch.frames is not None:
            read = [self._frames(batch)]
        outputs: list[Tensor] = []
        after: list[tuple[States, Tensor]] = []
        for number, (encode, readout) in enumerate(zip(self._streaming(), self.readouts, strict=True)):
            states, gathered = before[number]
            values, states = encode.recurrent(encode.drop(read[number % len(read)]), states)
            vector, gathered = encode.summary.go_on(values, states, gathered)
            outputs.append(readout(vector))
            after.append((states, gathered))
        return outputs, tuple(after)

    def _streaming(self) -> list[RecurrentEncoder]:
        return [encode for encode in self.encoders if isinstance(encode, RecurrentEncoder)]

    def _frames(self, batch: ClassifierBatch) -> Padded:
        assert batch.frames is not None
        frames = Padded(batch.frames.values.to(self.readouts[0].weight.dtype), batch.frames.lengths)  # type: ignore[arg-type]
        if self.training and self.augmentation is not None:
            return augmented_series(frames, self.augmentation)
        return frames

    def _pictures(self, pictures: Grid) -> Grid:
        values = pictures.values.to(self.readouts[0].weight.dtype) / 255  # type: ignore[arg-type]
        if self.training and self.augmentation is not None:
            return augmented_pictures(Grid(values, pictures.sizes), self.augmentation)
        return Grid(values, pictures.sizes)

    def loss(self, batch: ClassifierBatch) -> tuple[Tensor, int]:
        """The summed loss, and over how many answers it was summed."""
        outputs, _ = self(batch)
        if self.kind == "label":
            assert batch.label is not None
            known = int((batch.label != UNLABELLED).sum()) if batch.known is None else batch.known
            return sum_of(self._of_label(o, batch.label) for o in outputs), known
        if self.kind == "labels":
            assert batch.labels is not None
            return sum_of(self._of_labels(o, batch.labels) for o in outputs), len(batch.labels)
        assert batch.targets is not None
        targets = batch.targets.to(outputs[0])
        return sum_of((o - targets).square().sum() for o in outputs), targets.numel()

    def _of_label(self, outputs: Tensor, label: Tensor) -> Tensor:
        return functional.cross_entropy(
            outputs,
            label,
            weight=self.class_weights,  # type: ignore[arg-type]
            ignore_index=UNLABELLED,
            reduction="sum",
            label_smoothing=self.label_smoothing if self.training else 0.0,
        )

    def _of_labels(self, outputs: Tensor, labels: Tensor) -> Tensor:
        smoothing = self.label_smoothing if self.training else 0.0
        wanted = labels.to(outputs) * (1 - smoothing) + smoothing / 2
        weights: Tensor | None = self.class_weights  # type: ignore[assignment]
        return functional.binary_cross_entropy_with_logits(outputs, wanted, pos_weight=weights, reduction="sum")

    def probe(
        self, batch: Callable[[int], ClassifierBatch], tokens: Sequence[str], labels: Sequence[str], threshold: float
    ) -> Probe:
        """What saliency explains: the log odds of the classes that are answered, or the numbers."""
        is_text = len(self.readers) > 0

        def read(network: Any) -> list[nn.Module]:
            """A network's first modules whose outputs are the vectors of words, or of steps of a series."""
            recurrent: list[nn.Module] = [each.drop for each in network.encoders if isinstance(each, RecurrentEncoder)]
            return [*network.readers] if is_text else recurrent

        def answered(network: Classifier, some: ClassifierBatch) -> Tensor:
            outputs, _ = network(some)
            every = torch.stack([exact(each) for each in outputs])
            if self.kind == "targets":
                return every.mean(0)
            p = (every.softmax(-1) if self.kind == "label" else every.sigmoid()).mean(0)
            return p.logit(1e-15)

        with torch.no_grad():
            [scores] = answered(self, batch(1))
        if self.kind == "targets":
            names, chosen = [f"number {place + 1}" for place in range(len(scores))], list(range(len(scores)))
        else:
            chosen = [int(scores.argmax())]
            if self.kind == "labels":
                likely = [place for place, p in enumerate(scores.sigmoid().tolist()) if p >= threshold]
                chosen = likely or chosen
            names = [labels[place] for place in chosen]
        return Probe(
            tokens,
            names,
            self,
            read,
            batch,
            lambda network, some: answered(network, some)[:, chosen],
            "value, in spreads of training" if self.kind == "targets" else "log odds",
        )

    @torch.no_grad()
    def predict(self, batch: ClassifierBatch, *, detail: bool = False) -> list[ClassifierOutput]:
        """Probabilities or numbers of each row."""
        outputs, attention = self(batch)
        found = [exact(o) for o in outputs]
        if self.kind == "label":
            found = [o.softmax(-1) for o in found]
        elif self.kind == "labels":
            found = [o.sigmoid() for o in found]
        values = (sum_of(found) / len(found)).cpu().numpy()
        lengths = batch.steps.tolist()
        if isinstance(attention, Paired):
            assert batch.texts is not None
            looked = [*_looked(attention, *(text.lengths.tolist() for text in batch.texts))] if detail else []
            pairs = looked or [(None, None)] * len(lengths)
            return [
                ClassifierOutput(values[row], length, None, None, *pair)
                for row, (length, pair) in enumerate(zip(lengths, pairs, strict=True))
            ]
        seen = attention.cpu().double().numpy() if detail and attention is not None else None
        columns: list[int | None] = [None] * len(lengths)
        if batch.pictures is not None:
            stride = self.encoders[0].image.stride
            columns = [-(-width // stride) for width in batch.pictures.sizes[:, 1].tolist()]
        return [
            ClassifierOutput(values[row], length, seen[row, :, :length] if seen is not None else None, columns[row])
            for row, length in enumerate(lengths)
        ]


def _looked(
    paired: Paired, first: Sequence[int], second: Sequence[int]
) -> Iterator[tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]]:
    """Of each row, what the second text looked at in the first, and the other way round, without padding."""
    there, back = (None if w is None else w.cpu().double().numpy() for w in (paired.weights, paired.back))
    for row, (one, other) in enumerate(zip(first, second, strict=True)):
        seen = None if there is None else there[row, : other if there.shape[1] != 1 else 1, :one]
        yield seen, None if back is None else back[row, :one, :other]


def text_in(words: Padded, places: Padded) -> Padded:
    """One of two texts out of rows that hold both: the vectors (B, T, E) at its places (B, T₁), as (B, T₁, E)."""
    rows = torch.arange(len(places.values), device=words.values.device).unsqueeze(1)
    return Padded(words.values[rows, places.values], places.lengths)


def parts_of(settings: ClassificationModel) -> Parts:
    """What a pairing is made of."""

    def stack(size: int) -> Recurrent:
        return Recurrent(
            settings.cell,
            size,
            settings.hidden,
            layers=settings.layers,
            bidirectional=settings.bidirectional,
            direction=settings.direction,
            merge=settings.merge,
            mix=settings.mix,
            skip=settings.skip,
            dropout=settings.dropout,
            locked=True,
            engine=settings.engine,
        )

    return Parts(stack, lambda size: encoder(settings.encoder, settings, size, 0.0, None), settings.dropout)


def read_words(
    settings: ClassificationModel, *, words: int, unknown: int, characters: int | None, features: int = 0
) -> ReadWords:
    """Tokens as vectors; spelt out where there are characters to spell with."""
    spelling = None
    if characters is not None and settings.characters.cell != "none":
        spelling = Spelling(
            settings.characters.cell,
            characters,
            embedding=settings.characters.embedding,
            hidden=settings.characters.hidden,
            layers=settings.characters.layers,
            engine=settings.engine,
        )
    return ReadWords(
        words,
        unknown=unknown,
        embedding=settings.embedding,
        word_dropout=settings.word_dropout,
        spelling=spelling,
        frozen=settings.freeze_embedding,
        features=features,
        features_layer=settings.features_layer,
    )


def encoder(
    name: str, settings: ClassificationModel, size: int, input_dropout: float, features: int | None
) -> RecurrentEncoder | TransformerEncoder | Convolution | Bag:
    """The encoder that a config file means."""
    if name == "bag":
        assert features is not None, "the task counts n-grams where a bag is asked for"
        bag = settings.bag
        return Bag(features, bag.size, gain=bag.gain, dropout=bag.dropout, sparse=bag.sparse)
    if name == "cnn":
        return Convolution(settings.convolution, size, input_dropout=input_dropout, dropout=settings.dropout)
    if name == "transformer":
        hidden = settings.hidden
        return TransformerEncoder(
            size,
            hidden if isinstance(hidden, int) else hidden[0],
            summary_by=settings.summary,
            layers=settings.layers_of(name) or len(hidden if isinstance(hidden, list) else [hidden]),
            heads=settings.transformer.heads,
            feed_forward=settings.transformer.feed_forward,
            form=settings.transformer.form,
            causal=not settings.bidirectional,
            input_dropout=input_dropout,
            dropout=settings.transformer.dropout,
        )
    return RecurrentEncoder(
        settings.cell,
        size,
        settings.hidden,
        summary_by=settings.summary,
        pyramid=name == "pyramid",
        layers=settings.layers_of(name),
        bidirectional=settings.bidirectional,
        direction=settings.direction,
        merge=settings.merge,
        mix=settings.mix,
        skip=settings.skip,
        input_dropout=input_dropout,
        dropout=settings.dropout,
        engine=settings.engine,
    )


def batched(
    rows: Sequence[Encoded], *, reads: bool, spelling: bool, features: CharacterFeatures | None = None
) -> ClassifierBatch:
    """Encoded examples as one batch; words one by one, their spelling and features only where a model reads them."""
    rows = Rows.of(rows)
    words = spellings = bags = frames = label = labels = targets = pictures = None
    counted = (
        rows.flat("steps").values if rows.has("steps") else rows.lengths("frames" if rows.has("frames") else "words")
    )
    steps = torch.from_numpy(counted)
    if rows.has("bag"):
        ids, lengths = rows.flat("bag")
        bags = Bags(torch.from_numpy(ids), torch.from_numpy(lengths.cumsum()))
    if reads:
        words = padded(rows, "words", np.int64)
        spellings = spelt(rows) if spelling else None
    if rows.has("frames"):
        frames = padded(rows, "frames", np.float32)
    if rows.has("picture"):
        each = [torch.from_numpy(unpacked(row["picture"], row["shape"])).permute(2, 0, 1) for row in rows]
        pictures = gridded(each)
    if rows.has("label"):
        label = torch.from_numpy(rows.flat("label").values.astype(np.int64))
    if rows.has("labels"):
        labels = padded(rows, "labels", np.float32).values
    if rows.has("targets"):
        targets = padded(rows, "targets", np.float32).values
    known = None if label is None else int((label != UNLABELLED).sum())
    texts = two_texts(steps, torch.from_numpy(rows.flat("first").values)) if rows.has("first") else None
    candidates = padded(rows, "candidates", np.bool_).values if rows.has("candidates") else None
    of_words = None if features is None else features.batched(rows)
    return ClassifierBatch(
        words, spellings, bags, frames, steps, label, labels, targets, pictures, known, texts, candidates, of_words
    )


def two_texts(lengths: Tensor, first: Tensor) -> tuple[Padded, Padded]:
    """Where the tokens of the first and of the second text stand in rows that hold both, one after the other.

    >>> [places.values.tolist() for places in two_texts(torch.tensor([5, 3]), torch.tensor([2, 1]))]
    [[[0, 1], [0, 0]], [[2, 3, 4], [1, 2, 0]]]
    """
    found = []
    for start, length in ((torch.zeros_like(first), first), (first, lengths - first)):
        steps = torch.arange(int(length.max()))
        found.append(Padded((start.unsqueeze(1) + steps).where(steps < length.unsqueeze(1), 0), length))
    return found[0], found[1]


def recurring_examples(batch: ClassifierBatch) -> ClassifierBatch | None:
    """The batch with empty steps and, where rows have one class each, empty rows, of a size that occurs again.

    None where it has bags of words or pictures, whose sizes hardly ever occur again. The rows whose class is known must
    be counted before, for that is not among what is recorded.
    """
    first = batch.words if batch.words is not None else batch.frames
    if first is None or batch.bags is not None or batch.pictures is not None:
        return None
    B, T = first.values.shape[:2]
    B, T = coarser(B, parts=2) if batch.label is not None else B, coarser(T)
    sizes = [coarser(text.values.shape[1], parts=2) for text in batch.texts or ()]
    T = sum(sizes) or T  # of two texts, a batch has the size of both
    return batch._replace(
        words=None if batch.words is None else batch.words.widened(B, T),
        spellings=None if batch.spellings is None else recurring_spellings(batch.spellings, B, T),
        frames=None if batch.frames is None else batch.frames.widened(B, T),
        steps=widened(batch.steps, B),
        label=None if batch.label is None else widened(batch.label, B, fill=UNLABELLED),
        known=0,
        texts=None
        if batch.texts is None
        else (batch.texts[0].widened(B, sizes[0]), batch.texts[1].widened(B, sizes[1])),
        candidates=None if batch.candidates is None else widened(batch.candidates, B, fill=True),
        features=None if batch.features is None else widened(batch.features, B, T),
    )


def sum_of(parts: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(parts)).sum(0)
