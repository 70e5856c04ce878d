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
from recurra.data.spellings import spellings_of
from recurra.data.store import Encoded, Rows
from recurra.encoders.convolution import Convolution
from recurra.encoders.dropout import LockedDropout
from recurra.encoders.non_local_steps import non_local_steps
from recurra.encoders.summaries import state_sizes, summary
from recurra.encoders.words import ReadWords, Spelling, Spellings
from recurra.heads import UNLABELLED
from recurra.heads.combinations import Combinations
from recurra.heads.crf import CRF
from recurra.heads.head import Head
from recurra.heads.values import Value
from recurra.models.character_features import CharacterFeatures
from recurra.models.rows import filled, padded
from recurra.models.splitter import Splitter, TextWindows
from recurra.models.tagged import TaggerOutput, TagScores, TagShares
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


class Together(NamedTuple):
    """Columns whose tags are chosen as one, by their numbers, and their combinations, by the numbers of tags."""

    columns: tuple[int, ...]
    known: Sequence[Sequence[int]]


class Tagger(nn.Module):
    """inputs → locked dropout → network → locked dropout → heads.

    x_t = [word vector; spelling; features], or a frame;  x ← NonLocal(x) where that is set
    h   = Recurrent(x), Convolution(x) or Transformer(x)
    tags: a softmax or CRF over h for each column;  values: W h_t + b;  label: softmax(W summary(h) + b)
    loss = Σ_columns w_column (−log p(tags)) + …

    Columns that are chosen as one (`Combinations`) have one term in the loss, with the weight of the first of them.

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
        together: Together | None = None,
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
        self.together = () if together is None else together.columns
        self.combinations = None if together is None else Combinations(together.known)
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
            if self.summary is None and (found := self._looked_up(batch)) is not None:
                return found, None
            x = self.read_words(batch.words, batch.spellings, batch.features)
        x = x if self.non_local is None else self.non_local(x.zeroed())
        outputs, states = self._through(self.drop(x))
        whole = None
        if self.summary is not None:
            whole = functional.dropout(self.summary(outputs, states).vector, self.drop.rate, self.training)
        return self.drop(outputs), whole

    def _looked_up(self, batch: TaggerBatch) -> Padded | None:
        """The features where each distinct word can be read once, and its product with W made once; else None."""
        if self.recurrent is None or self.non_local is not None or batch.features is not None or self.training:
            return None
        if self.read_words is None or batch.words is None or batch.spellings is None or not self.recurrent.looks_up():
            return None
        table = self.read_words.table(batch.spellings)
        if table is None:
            return None
        rows = Padded(batch.spellings.rows, batch.words.lengths)
        return self.recurrent.look_up(self.recurrent.project(table), rows)[0]

    def _through(self, x: Padded) -> tuple[Padded, States]:
        """(B, T, H): what the network makes of each step, zero on padding; and the states of its cells."""
        if self.recurrent is not None:
            found: tuple[Padded, States] = self.recurrent(x)
            return found
        if self.convolution is not None:
            return self.convolution.steps(x).zeroed(), ()
        assert self.transformer is not None, "one of three reads"
        return Padded(self.transformer.read(x).values, x.lengths).zeroed(), ()

    def refusal_of_streams(self) -> str | None:
        """Why words cannot be tagged one after the other as they come; None: they can."""
        if self.recurrent is None:
            return "its network looks at later steps too: train one with model.encoder = 'rnn'"
        if self.recurrent.bidirectional or self.recurrent.direction == "backward":
            return "it reads from the end too: train one with model.bidirectional = false"
        if self.non_local is not None:
            return "model.non_local looks at all steps at once"
        if self.label is not None:
            return "its label is one of a whole sentence"
        return None

    def begin(self) -> States:
        """The states before the first step of a stream."""
        assert self.recurrent is not None, "it refuses streams"
        return self.recurrent.start(1)

    def go_on(self, batch: TaggerBatch, states: States) -> tuple[Padded, States]:
        """What the heads see of the next steps of a stream, (B, T, H), and the states after them."""
        x = batch.frames
        if self.read_words is not None:
            assert batch.words is not None
            x = self.read_words(batch.words, batch.spellings, batch.features)
        assert self.recurrent is not None, "it refuses streams"
        assert x is not None, "words or frames are read"
        outputs, states = self.recurrent(self.drop(x), states)
        return self.drop(outputs), states

    def forward(self, batch: TaggerBatch) -> list[Tensor]:
        """What each column's head makes of each step, (B, T, L): log-probabilities, or of a CRF its emissions."""
        features, _ = self._read(batch)
        return [head.scored(features) for head in self.heads]  # type: ignore[operator]

    def loss(self, batch: TaggerBatch) -> tuple[Tensor, int]:
        """The summed loss, and over how many labels it was summed."""
        features, whole = self._read(batch)
        total = features.values.new_zeros(())
        if self.combinations is not None:
            lost = self.combinations.loss(self._readouts(), features, [batch.tags[each] for each in self.together])
            total = total + self.loss_weights[self.together[0]] * lost.sum()
        columns = zip(self.heads, self.loss_weights, batch.tags, batch.known.complete, strict=True)
        for number, (head, weight, tags, is_complete) in enumerate(columns):
            if number in self.together:
                continue
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

    def _readouts(self) -> list[nn.Linear]:
        """Those of the columns that are chosen as one."""
        return [self.heads[number].readout for number in self.together]  # type: ignore[misc]

    def best(self, features: Padded) -> tuple[list[Tensor], list[Tensor]]:
        """The best tags of each column, (B, T), and the log-probabilities of rows, (B,), that make up their score."""
        tags, scores = dict[int, Tensor](), list[Tensor]()
        if self.combinations is not None:
            chosen, log_p = self.combinations.best(self._readouts(), features)
            tags.update(zip(self.together, chosen, strict=True))
            scores.append(log_p)
        for number, head in enumerate(self.heads):
            if number not in tags:
                tags[number], log_p = head.best(features)  # type: ignore[operator]
                scores.append(log_p)
        return [tags[number] for number in range(len(self.heads))], scores

    def _of_combinations(self, features: Padded) -> dict[int, Tensor]:
        """The probabilities (B, T, L) of each column that is chosen together with others."""
        if self.combinations is None:
            return {}
        return dict(zip(self.together, self.combinations.probabilities(self._readouts(), features), strict=True))

    def probabilities(self, features: Padded) -> list[Tensor]:
        """How probable each tag of each column is at each step, (B, T, L)."""
        found = self._of_combinations(features)
        return [
            found[number] if number in found else head.probabilities(features)  # type: ignore[operator]
            for number, head in enumerate(self.heads)
        ]

    def _rated(self, features: Padded) -> list[TagScores]:
        """How each column's tags are rated, for several taggers to choose from."""
        found = self._of_combinations(features)
        return [
            TagScores(log_of(found[number]), None) if number in found else tag_scores(head, features)
            for number, head in enumerate(self.heads)
        ]

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
        found, log_p = self.best(features)
        scores = sum((score.cpu().double().numpy() for score in log_p), np.zeros(len(lengths)))
        tags = [best.cpu().numpy() for best in found]
        chosen = None
        if detail:
            chosen = [
                p.gather(2, best.unsqueeze(2)).squeeze(2).cpu().numpy()
                for p, best in zip(self.probabilities(features), found, strict=True)
            ]
        values = self.value.best(features).cpu().double().numpy() if self.value is not None else None
        labels = certain = logs = None
        if self.label is not None:
            logs = self.label(whole).log_softmax(-1)
            certain, labels = (each.numpy() for each in logs.cpu().double().max(-1))
            scores = scores + certain
        kept: list[TagShares | None] = [None] * len(lengths)
        if shares:
            rated = self._rated(features)
            of_label = None if logs is None else logs.cpu().double().exp().numpy()
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
    return TagScores(log_of(p), None)


def log_of(p: Tensor) -> NDArray[np.float64]:
    found: NDArray[np.float64] = p.cpu().double().log().numpy()
    return found


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
    assert isinstance(spellings.characters, Padded), "words are read by their characters"
    distinct, longest = spellings.characters.values.shape
    characters = spellings.characters.widened(coarser(distinct, parts=2, least=128), coarser(longest, parts=2, least=8))
    words = None if spellings.words is None else widened(spellings.words, len(characters.lengths))
    return Spellings(characters, widened(spellings.rows, rows, steps), words)


def spelt(rows: Rows) -> Spellings:
    """Each distinct word of the batch once, in the order in which they are first met."""
    found = spellings_of(rows)
    characters = Padded(torch.from_numpy(found.characters), torch.from_numpy(found.widths))
    return Spellings(characters, torch.from_numpy(found.places), torch.from_numpy(found.words))
