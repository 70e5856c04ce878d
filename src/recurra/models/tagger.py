"""The tagger: words or frames, a network over them, a head per column of tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from recurra.analysis.saliency import Probe, explained
from recurra.config import TaggingModel
from recurra.data.store import Encoded, Flat, Rows
from recurra.encoders.convolution import Convolution
from recurra.encoders.dropout import LockedDropout
from recurra.encoders.non_local_steps import non_local_steps
from recurra.encoders.summaries import state_sizes, summary
from recurra.encoders.words import ReadWords, Spelling, Spellings
from recurra.heads import UNLABELLED
from recurra.heads.crf import CRF
from recurra.heads.head import Head
from recurra.heads.lattice import Chain, best_path, marginals
from recurra.heads.values import Value
from recurra.models.character_features import CharacterFeatures
from recurra.models.rows import filled, padded
from recurra.models.splitter import Splitter, TextWindows
from recurra.named import built
from recurra.padding import Padded, coarser, widened
from recurra.settings import Part, about
from recurra.stacks.recurrent import Recurrent, States
from recurra.transformer import Transformer


class Known(NamedTuple):
    """What there is to learn from in a batch, counted on the CPU: to count on a device is to wait for it."""

    labels: int  # of all columns, values and sentences
    complete: tuple[bool, ...]  # per column: whether every step has a tag


class TaggerBatch(NamedTuple):
    """Some sentences as tensors."""

    words: Padded | None  # (B, T)
    spellings: Spellings | None
    frames: Padded | None  # (B, T, d)
    tags: tuple[Tensor, ...]  # per column (B, T), UNLABELLED where there is none
    values: Tensor | None  # (B, T, k), NaN where there is none
    label: Tensor | None  # (B,)
    known: Known
    features: Tensor | None = None  # (B, T, F): of words, by language models
    text: TextWindows | None = None  # in training, where raw text is learned too

    @property
    def elements(self) -> int:
        """How many real steps there are."""
        rows = self.words if self.words is not None else self.frames
        assert rows is not None
        return int(rows.lengths.sum())


class TaggerOutput(NamedTuple):
    """What was found for one sentence."""

    tags: tuple[NDArray[np.int64], ...]  # per column (T,)
    score: float  # log-probability of all tags and the label
    values: NDArray[np.float64] | None  # (T, k), scaled
    label: int | None
    probabilities: tuple[NDArray[Any], ...] | None  # per column (T,): of the tag that was chosen
    label_probability: float | None
    shares: TagShares | None = None  # where the sentence is to be tagged by several taggers


class TagShares(NamedTuple):
    """All that several taggers need of each other to tag a sentence together."""

    tags: tuple[TagScores, ...]  # per column
    label: NDArray[np.float64] | None  # (L,): the probability of each label of the whole


class TagScores(NamedTuple):
    """How one tagger rates the tags of one column."""

    each: NDArray[np.float64]  # (T, K): the score of each tag at each step; without a chain, its log p
    chain: Chain | None  # the scores of neighbouring tags; None: tags are chosen each by itself


class Tagger(nn.Module):
    """inputs → locked dropout → network → locked dropout → heads.

    x_t = [word vector; spelling; features], or a frame;  x ← NonLocal(x) where that is set
    h   = Recurrent(x), Convolution(x) or Transformer(x)
    tags: a softmax or CRF over h for each column;  values: W h_t + b;  label: softmax(W summary(h) + b)
    loss = Σ_columns w_column (−log p(tags)) + …

    Where raw text is learned too, a `Splitter` with weights of its own reads the characters of running text.
    """

    def __init__(
        self,
        settings: TaggingModel,
        *,
        words: int,
        unknown: int,
        characters: int,
        tags: Sequence[Sequence[str]],
        heads: Sequence[Part],
        loss_weights: Sequence[float],
        labels: Sequence[str] | None,
        frame_size: int | None,
        value_size: int | None,
        features: int = 0,
        alphabet: int | None = None,
    ) -> None:
        super().__init__()
        self.label_weight = settings.label_weight
        self.loss_weights = tuple(loss_weights)
        self.read_words = None
        if frame_size is None:
            spelling = None
            if settings.characters.cell != "none":
                spelling = Spelling(
                    settings.characters.cell,
                    characters,
                    embedding=settings.characters.embedding,
                    hidden=settings.characters.hidden,
                    layers=settings.characters.layers,
                    engine=settings.engine,
                )
            self.read_words = ReadWords(
                words,
                unknown=unknown,
                embedding=settings.embedding,
                word_dropout=settings.word_dropout,
                spelling=spelling,
                frozen=settings.freeze_embedding,
                features=features,
                features_layer=settings.features_layer,
            )
        read = frame_size if self.read_words is None else self.read_words.output_size
        assert read is not None, "words or frames are read"
        self.non_local = non_local_steps(settings.non_local, read)
        self.drop = LockedDropout(settings.dropout)
        self.recurrent: Recurrent | None = None
        self.convolution: Convolution | None = None
        self.transformer: Transformer | None = None
        if settings.encoder == "cnn":
            self.convolution = Convolution(settings.convolution.of_one_vector(), read, dropout=settings.dropout)
        elif settings.encoder == "transformer":
            self.transformer = Transformer(
                read,
                settings.widths[0],
                layers=len(settings.widths),
                heads=settings.transformer.heads,
                feed_forward=settings.transformer.feed_forward,
                dropout=settings.transformer.dropout,
                causal=not settings.bidirectional,
                form=settings.transformer.form,
            )
        else:
            self.recurrent = Recurrent(
                settings.cell,
                read,
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
        network = next(each for each in (self.recurrent, self.convolution, self.transformer) if each is not None)
        size = network.output_size
        with about("model", "head"):
            self.heads = nn.ModuleList(built(Head, *each) for each in zip(heads, [size] * len(tags), tags, strict=True))
        self.value = Value(size, value_size) if value_size is not None else None
        self.summary = self.label = None
        if labels is not None:
            states = [] if self.recurrent is None else state_sizes(self.recurrent)
            self.summary = summary(settings.summary, size, states)
            self.label = nn.Linear(self.summary.output_size, len(labels))
        with about("model", "splitter"):
            self.splitter = None if alphabet is None else Splitter(settings.splitter, alphabet, settings.engine)

    def features(self, batch: TaggerBatch) -> Padded:
        """(B, T, H): what the heads see."""
        return self._read(batch)[0]

    def _read(self, batch: TaggerBatch) -> tuple[Padded, Tensor | None]:
        """The features, (B, T, H), and one vector for a row, (B, S), where it has a label."""
        if self.read_words is None:
            assert batch.frames is not None
            x = batch.frames
        else:
            assert batch.words is not None
            x = self.read_words(batch.words, batch.spellings, batch.features)
        x = x if self.non_local is None else self.non_local(x.zeroed())
        outputs, states = self._through(self.drop(x))
        whole = None
        if self.summary is not None:
            whole = functional.dropout(self.summary(outputs, states).vector, self.drop.rate, self.training)
        return self.drop(outputs), whole

    def _through(self, x: Padded) -> tuple[Padded, States]:
        """(B, T, H): what the network makes of each step, zero on padding; and the states of its cells."""
        if self.recurrent is not None:
            found: tuple[Padded, States] = self.recurrent(x)
            return found
        if self.convolution is not None:
            return self.convolution.steps(x).zeroed(), ()
        assert self.transformer is not None, "one of three reads"
        return Padded(self.transformer.read(x).values, x.lengths).zeroed(), ()

    def loss(self, batch: TaggerBatch) -> tuple[Tensor, int]:
        """The summed loss, and over how many labels it was summed."""
        features, whole = self._read(batch)
        total = features.values.new_zeros(())
        columns = zip(self.heads, self.loss_weights, batch.tags, batch.known.complete, strict=True)
        for head, weight, tags, is_complete in columns:
            assert isinstance(head, Head)
            lost = (head.loss_of_all(features, tags) if is_complete else head.loss(features, tags)).sum()
            total = total + (lost if weight == 1 else weight * lost)
        if self.value is not None and batch.values is not None:
            total = total + self.value.loss(features, batch.values).sum()
        if self.label is not None and batch.label is not None:
            scores = self.label(whole)
            lost = functional.cross_entropy(scores, batch.label, ignore_index=UNLABELLED, reduction="sum")
            total = total + self.label_weight * lost
        if self.splitter is not None and batch.text is not None:
            total = total + self.splitter.loss(batch.text)
        return total, batch.known.labels

    def probe(
        self,
        batch: Callable[[int], TaggerBatch],
        tokens: Sequence[str],
        tags: NDArray[np.int64],
        names: Sequence[str],
    ) -> Probe:
        """What saliency explains: the tags (T,) of the first column, which have these names, word by word."""
        chosen_tags, most = torch.from_numpy(tags).long(), explained(len(tokens))

        def log_odds(network: Tagger, of: TaggerBatch) -> Tensor:
            """log p / (1 − p) of each chosen tag, by its emissions: of a CRF, before its neighbours have a say."""
            head: Any = network.heads[0]
            scores = head.readout(network.features(of).values).double()
            chosen = chosen_tags.to(scores.device).expand(len(scores), -1).unsqueeze(2)
            others = scores.scatter(2, chosen, -torch.inf).logsumexp(2)
            return (scores.gather(2, chosen).squeeze(2) - others)[:, : len(tokens)]

        return Probe(
            tokens,
            [f"{token}/{tag}" for token, tag in zip(tokens, names, strict=True)][:most],
            self,
            lambda network: [network.drop],  # type: ignore[list-item]  # its first dropout has words and frames alike
            batch,
            log_odds,
            "log odds",
            left_out=max(0, len(tokens) - most),
        )

    @torch.no_grad()
    def predict(self, batch: TaggerBatch, *, detail: bool = False, shares: bool = False) -> list[TaggerOutput]:
        """The best tags of each row; with shares, also the probabilities of all others."""
        features, whole = self._read(batch)
        lengths = features.lengths.tolist()
        found = [each.best(features) for each in self.heads]  # type: ignore[operator]
        scores = sum((score.double().cpu().numpy() for _, score in found), np.zeros(len(lengths)))
        tags = [best.cpu().numpy() for best, _ in found]
        chosen = None
        if detail:
            chosen = [
                each.probabilities(features).gather(2, best.unsqueeze(2)).squeeze(2).cpu().numpy()  # type: ignore[operator]
                for each, (best, _) in zip(self.heads, found, strict=True)
            ]
        values = self.value.best(features).double().cpu().numpy() if self.value is not None else None
        labels = certain = logs = None
        if self.label is not None:
            logs = self.label(whole).log_softmax(-1)
            certain, labels = (each.cpu().numpy() for each in logs.double().max(-1))
            scores = scores + certain
        kept: list[TagShares | None] = [None] * len(lengths)
        if shares:
            rated = [tag_scores(head, features) for head in self.heads]
            of_label = None if logs is None else logs.double().exp().cpu().numpy()
            kept = [
                TagShares(
                    tuple(TagScores(each[row, :length], chain) for each, chain in rated),
                    None if of_label is None else of_label[row],
                )
                for row, length in enumerate(lengths)
            ]
        return [
            TaggerOutput(
                tuple(column[row, :length] for column in tags),
                float(scores[row]),
                values[row, :length] if values is not None else None,
                int(labels[row]) if labels is not None else None,
                tuple(column[row, :length] for column in chosen) if chosen is not None else None,
                float(np.exp(certain[row])) if certain is not None else None,
                kept[row],
            )
            for row, length in enumerate(lengths)
        ]


def tag_scores(head: nn.Module, features: Padded) -> TagScores:
    """How a head rates the tags of all rows, (B, T, K)."""
    if isinstance(head, CRF):
        chain, each = head.scores(features)
        return TagScores(each, chain)
    p: Tensor = head.probabilities(features)  # type: ignore[operator]
    return TagScores(p.double().log().cpu().numpy(), None)


def combined(outputs: Sequence[TaggerOutput]) -> TaggerOutput:
    """How several taggers tag a sentence together.

        softmax                p(y_t = k) = (1/M) Σ_m p_m(y_t = k),              the best tag of each step
        with a CRF among them  score(y)   = (1/M) Σ_m score_m(y),                the best path

    Numbers, and the probabilities of a label of the whole, are means.
    """
    shares = [output.shares for output in outputs if output.shares is not None]
    assert len(shares) == len(outputs), "`to_combine` keeps them"
    tags, certain, score = list[NDArray[np.int64]](), list[NDArray[np.float64]](), 0.0
    for column in zip(*(share.tags for share in shares), strict=True):
        best, p, log_p = best_together(column)
        tags.append(best)
        certain.append(p[np.arange(len(p)), best])
        score += log_p
    of_labels = [share.label for share in shares if share.label is not None]
    label, of_label = None, None
    if of_labels:
        p = np.mean(of_labels, axis=0)
        label, of_label = int(p.argmax()), float(p.max())
        score += float(np.log(of_label))
    numbers = [output.values for output in outputs if output.values is not None]
    values = np.mean(numbers, axis=0) if numbers else None
    return TaggerOutput(tuple(tags), score, values, label, tuple(certain), of_label)


def best_together(column: Sequence[TagScores]) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """The best tags (T,) of a column by several ratings, the probabilities (T, K) of all, and log p of the best."""
    steps, count = column[0].each.shape
    if steps == 0:
        return np.zeros(0, np.int64), np.zeros((0, count)), 0.0
    every = np.stack([rated.each for rated in column])
    if all(rated.chain is None for rated in column):
        p = np.exp(every).mean(0)
        best = p.argmax(1)
        return best, p, float(np.log(p[np.arange(steps), best]).sum())
    free = Chain(np.zeros((count, count)), np.zeros(count), np.zeros(count))
    chain = Chain(*(np.mean(each, axis=0) for each in zip(*(rated.chain or free for rated in column), strict=True)))
    each, lengths = every.mean(0)[None], np.array([steps])
    [path], [log_p] = best_path(chain, each, lengths)
    return path, marginals(chain, each, lengths)[0], float(log_p)


def batched(
    rows: Sequence[Encoded],
    *,
    columns: int,
    spelling: bool = True,
    features: CharacterFeatures | None = None,
) -> TaggerBatch:
    """Encoded sentences as one batch; their spelling and features only where a model reads them."""
    rows = Rows.of(rows)
    of_words = None if features is None else features.batched(rows)
    words = spellings = frames = values = label = None
    if rows.has("words"):
        words = padded(rows, "words", np.int64)
        spellings = spelt(rows) if spelling else None
    if rows.has("frames"):
        frames = padded(rows, "frames", np.float32)
    tags = tuple(filled(rows, f"tags{number}", np.int64, UNLABELLED) for number in range(columns))
    if rows.has("values"):
        values = filled(rows, "values", np.float32, np.nan)
    if rows.has("label"):
        label = torch.from_numpy(rows.flat("label").values.astype(np.int64))
    steps = int((words if frames is None else frames).lengths.sum())  # type: ignore[union-attr]
    tagged = [int((column != UNLABELLED).sum()) for column in tags]
    labels = sum(tagged)
    labels += 0 if values is None else int((~values.isnan()).sum())
    labels += 0 if label is None else int((label != UNLABELLED).sum())
    known = Known(labels, tuple(each == steps for each in tagged))
    text = None
    if rows.beside:  # the mean over all steps of the text counts as much as the mean over all labels
        text = TextWindows.of(rows.beside["written"], rows.beside["ends"], total=labels)
    return TaggerBatch(words, spellings, frames, tags, values, label, known, of_words, text)


def recurring_sentences(batch: TaggerBatch) -> TaggerBatch:
    """The batch with empty rows and steps, of a size that occurs again.

    Its labels must be counted before, for they are not among what is recorded.
    """
    first = batch.words if batch.words is not None else batch.frames
    assert first is not None
    # More rows cost a GPU little where there are few; more steps cost time, for they come one after the other.
    B, T = coarser(len(first.lengths), parts=2), coarser(first.values.shape[1])
    return TaggerBatch(
        None if batch.words is None else batch.words.widened(B, T),
        None if batch.spellings is None else recurring_spellings(batch.spellings, B, T),
        None if batch.frames is None else batch.frames.widened(B, T),
        tuple(widened(column, B, T, fill=UNLABELLED) for column in batch.tags),
        None if batch.values is None else widened(batch.values, B, T, fill=np.nan),
        None if batch.label is None else widened(batch.label, B, fill=UNLABELLED),
        Known(0, batch.known.complete),
        None if batch.features is None else widened(batch.features, B, T),
        None if batch.text is None else batch.text.recurring(),
    )


def recurring_spellings(spellings: Spellings, rows: int, steps: int) -> Spellings:
    """Spellings of a larger batch (rows, steps), themselves of a size that occurs again."""
    distinct, longest = spellings.characters.values.shape
    characters = spellings.characters.widened(coarser(distinct, parts=2, least=128), coarser(longest, parts=2, least=8))
    return Spellings(characters, widened(spellings.rows, rows, steps))


def spelt(rows: Rows) -> Spellings:
    """Each distinct word of the batch once, in the order in which they are first met.

    >>> met = {"characters": np.array([7, 8, 7, 7, 8]), "widths": np.array([2, 1, 2])}
    >>> found = spelt(Rows([met, {"characters": np.array([9]), "widths": np.array([1])}]))
    >>> found.characters.values.tolist(), found.rows.tolist()
    ([[7, 8], [7, 0], [9, 0]], [[0, 1, 0], [2, 0, 0]])
    """
    characters, widths = rows.flat("characters").values, rows.flat("widths")
    text, size = characters.tobytes(), characters.itemsize
    ends = (np.cumsum(widths.values, dtype=np.int64) * size).tolist()
    known: dict[bytes, int] = {}
    places = [known.setdefault(text[start:end], len(known)) for start, end in zip([0, *ends], ends, strict=False)]
    words = known or [b""]  # a batch of empty rows
    lengths = np.array([len(word) // size for word in words], np.int64)
    spellings = Flat(np.frombuffer(b"".join(words), characters.dtype), lengths).padded(np.int64)
    index = Flat(np.array(places, np.int64), widths.lengths).padded(np.int64)
    return Spellings(Padded(torch.from_numpy(spellings), torch.from_numpy(lengths)), torch.from_numpy(index))
