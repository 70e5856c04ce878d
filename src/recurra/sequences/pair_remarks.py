"""What is said of pairs and of a network for them, in a sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recurra.config.in_words import cell_in_words, layers_in_words
from recurra.config.seq2seq_model import RECURRENT
from recurra.config.writer_model import look_of
from recurra.settings import name_of

if TYPE_CHECKING:
    from recurra.config import Seq2SeqModel, WriterModel
    from recurra.sequences.pair_texts import PairTexts, Side

SHOWN = 5
"""So many examples of what is odd are shown."""

LARGE = 30_000
"""A batch of so many tokens is worth a word."""


def unknown_targets(target: Side, texts: Iterable[str]) -> str | None:
    """What of the targets of validation examples cannot be written."""
    unknown: Counter[str] = Counter()
    for text in texts:
        unknown.update(token for token in target.split(text) if token not in target.vocabulary)
    if not unknown:
        return None
    shown = ", ".join(repr(token) for token, _ in unknown.most_common(SHOWN))
    return (
        f"{sum(unknown.values()):,} tokens of the validation targets are not in the vocabulary, such as {shown}: "
        "the model cannot generate them"
    )


def longer_than_a_batch(lengths: NDArray[np.int64], tokens: int, place: Callable[[int], str]) -> str | None:
    """Which pairs are a batch of their own, for they are longer than its tokens.

    >>> print(longer_than_a_batch(np.array([7, 3]), 5, "a.tsv:{}".format).partition(". ")[0])
    one pair is longer than training.batch_tokens = 5; the longest, a.tsv:0, has 7 tokens
    """
    count, longest = int((lengths > tokens).sum()), int(lengths.argmax())
    if not count:
        return None
    return (
        f"{'one pair is' if count == 1 else f'{count:,} pairs are'} longer than training.batch_tokens = "
        f"{tokens:,}; the longest, {place(longest)}, has {lengths[longest]:,} tokens. Each becomes a separate "
        "batch, which takes time and memory; to leave such pairs out, set data.max_length"
    )


def padded_to_the_longest(lengths: NDArray[np.int64], rows: int, place: Callable[[int], str]) -> str | None:
    """Whether a batch of so many rows is much larger than usual, because of a pair that the others are padded to.

    >>> print(padded_to_the_longest(np.array([7, 3, 5, 20_000]), 2, "a.tsv:{}".format).partition(". ")[0])
    the longest pair, a.tsv:3, has 20,000 tokens, and training.batch_size = 2 pads a whole batch to that length
    """
    longest = int(lengths.argmax())
    if min(rows, len(lengths)) * int(lengths[longest]) < LARGE or lengths[longest] < 10 * np.median(lengths):
        return None
    return (
        f"the longest pair, {place(longest)}, has {lengths[longest]:,} tokens, and training.batch_size = {rows} "
        "pads a whole batch to that length. This takes time and memory; to leave such pairs out, set "
        "data.max_length, or use training.batch_tokens instead of batch_size"
    )


def described(model: Seq2SeqModel, texts: PairTexts) -> str:
    """The model in one line, from input to output."""
    if texts.source is None:
        assert texts.frames is not None, "a source is tokens or frames"
        read = f"series of {len(texts.frames.mean)} numbers per step"
    else:
        read = side_in_words(texts.source)
    own = model.encoder
    kind: str = own.kind
    if own.kind == "cnn":
        kind = "CNN"
    elif own.kind == "transformer":
        kind = "Transformer" if model.bidirectional else "causal Transformer"
    elif own.kind in RECURRENT:
        cell = cell_in_words(own.cell or model.cell, bidirectional=model.bidirectional, direction=model.direction)
        kind = f"{'pyramidal ' * (own.kind == 'pyramid')}{cell}"
    mix = model.mix if own.kind == "rnn" else "last"
    encoder = "embeddings as" if kind == "embeddings" else layers_in_words(kind, model.encoder_widths, mix=mix)
    written = side_in_words(texts.target) if model.pointer is None else f"points at elements ({name_of(model.pointer)})"
    return f"{read}, {encoder} encoder, {writer_in_words(model)}, {written}"


def writer_in_words(model: WriterModel) -> str:
    """How a decoder looks at what is given, what it is made of, and where it begins."""
    return _writer_in_words(model) + " from the end" * model.writes_backward


def _writer_in_words(model: WriterModel) -> str:
    own, attention = model.decoder, name_of(model.attention)
    if own.kind == "ctc":
        return "CTC" + (f", each step split into {own.expand}" if own.expand > 1 else "")
    if own.kind == "transformer":
        decoder = layers_in_words("Transformer", model.decoder_widths)
        return f"{'no attention, ' if attention == 'none' else ''}{decoder} decoder"
    look = look_of(model.attention)
    kind = attention if look is None else f"{look} {attention}"
    if own.kind == "window":
        decoder = layers_in_words("feed-forward", model.decoder_widths)
        return f"{kind} attention from {own.window} tokens, {decoder} decoder"
    looks = "no attention" if attention == "none" else f"{kind} attention ({name_of(model.wiring)})"
    stack = layers_in_words(cell_in_words(own.cell or model.cell), model.decoder_widths, mix=model.mix)
    return f"{looks}, {stack} decoder"


def side_in_words(side: Side) -> str:
    """How many tokens of which kind."""
    kind = side.tokenizer.name
    known = kind in ("characters", "words", "symbols", "subwords")
    return f"{len(side.vocabulary):,} {kind if known else 'tokens'}"
