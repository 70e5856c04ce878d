"""Words as vectors: each by itself, whatever stands beside it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close

from recurra.encoders.words import ReadWords, Spelling, Spellings, of_like_length
from recurra.padding import Padded, pad

WORDS, CHARACTERS = 12, 9


def spelling(cell: str = "lstm", *, engine: str = "loop", layers: int = 1) -> Spelling:
    return Spelling(cell, CHARACTERS, embedding=4, hidden=3, layers=layers, engine=engine).double().eval()


def read_words(*, word_dropout: float = 0.0, embedding: int = 5, spelt: bool = True) -> ReadWords:
    return ReadWords(
        WORDS,
        unknown=0,
        embedding=embedding,
        word_dropout=word_dropout,
        spelling=spelling() if spelt else None,
    ).double()


def padded(rows: list[list[int]], *, more: int = 0, fill: int = 0) -> Padded:
    """Rows of ids, with more padding than is needed, of whatever id."""
    longest = max(map(len, rows)) + more
    values = torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows], dtype=torch.long)
    return Padded(values.reshape(len(rows), longest), torch.tensor([len(row) for row in rows]))


SPELLINGS = st.lists(st.lists(st.integers(0, CHARACTERS - 1), max_size=6), min_size=1, max_size=5)


@settings(max_examples=30)
@given(SPELLINGS, st.integers(0, 3), st.integers(0, CHARACTERS - 1), st.sampled_from(["lstm", "gru", "elman"]))
def test_the_spelling_of_a_word_is_read_as_if_it_stood_alone(
    words: list[list[int]], more: int, fill: int, cell: str
) -> None:
    torch.manual_seed(0)
    read = spelling(cell, layers=2)
    together = read(padded(words, more=more, fill=fill))
    assert together.shape == (len(words), read.output_size)
    for vector, word in zip(together, words, strict=True):
        assert_close(vector, read(padded([word]))[0], rtol=0, atol=1e-12)


def test_many_words_are_read_in_groups_of_like_length_with_the_same_vectors() -> None:
    torch.manual_seed(3)
    read = spelling(engine="vendor")
    words = padded([[(row + k) % CHARACTERS for k in range(row * 7 % 19)] for row in range(120)])
    groups = of_like_length(words.lengths)
    assert len(groups) == 4
    assert sorted(row for rows, _ in groups for row in rows.tolist()) == list(range(120))
    assert all(longest == max(words.lengths[rows].tolist()) for rows, longest in groups)
    assert_close(read(words), read._read(words), rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ["auto", "loop", "vendor"])
def test_every_engine_reads_the_same_spelling(engine: str) -> None:
    words = padded([[1, 2, 3], [4], [5, 6]], more=1)
    torch.manual_seed(1)
    expected = spelling()(words)
    torch.manual_seed(1)
    assert_close(spelling(engine=engine)(words), expected, rtol=0, atol=1e-12)


def test_a_spelling_is_the_end_of_either_direction() -> None:
    read = spelling()
    word = [1, 5, 2]
    outputs, _ = read.recurrent(Padded.full(read.embedding(torch.tensor([word]))))
    forward, backward = outputs.values[0, -1, :3], outputs.values[0, 0, 3:]
    assert_close(read(padded([word], more=2))[0], torch.cat([forward, backward]), rtol=0, atol=1e-12)


def test_a_word_read_backwards_has_another_spelling() -> None:
    read = spelling()
    one, other = read(padded([[1, 2, 3], [3, 2, 1]]))
    assert not torch.allclose(one, other)


SENTENCES = st.lists(st.lists(st.integers(0, WORDS - 1), max_size=5), min_size=1, max_size=4)


def spelt_batch(sentences: list[list[int]], *, more: int, first: int) -> tuple[Padded, Spellings]:
    """Word w is spelt w, w + 1, …; the distinct words stand in an order that begins anywhere."""
    words = padded(sentences, more=more)
    distinct = sorted({word for sentence in sentences for word in sentence} | {0}, key=lambda w: (w + first) % WORDS)
    characters = padded([[(word + n) % CHARACTERS for n in range(word % 4)] for word in distinct], more=more)
    place = {word: number for number, word in enumerate(distinct)}
    return words, Spellings(characters, words.values.clone().apply_(place.__getitem__))


@settings(max_examples=50)
@given(SENTENCES, st.integers(0, 3), st.integers(0, WORDS - 1))
def test_the_vector_of_a_word_does_not_depend_on_its_neighbours(
    sentences: list[list[int]], more: int, first: int
) -> None:
    torch.manual_seed(0)
    read = read_words().eval()
    words, spellings = spelt_batch(sentences, more=more, first=first)
    together = read(words, spellings)
    assert together.values.shape == (*words.values.shape, read.output_size)
    assert torch.equal(together.lengths, words.lengths)
    for row, sentence in enumerate(sentences):
        for step, word in enumerate(sentence):
            alone = read(*spelt_batch([[word]], more=0, first=0)).values[0, 0]
            assert_close(together.values[row, step], alone, rtol=0, atol=1e-12)


def test_either_half_may_be_left_out() -> None:
    words, spellings = spelt_batch([[1, 2, 3], [4]], more=0, first=0)
    torch.manual_seed(3)
    both = read_words().eval()
    whole = both(words, spellings).values
    assert both.embedding is not None
    assert both.spelling is not None
    assert_close(whole[..., :5], both.embedding(words.values))
    assert_close(whole[..., 5:], both.spelling(spellings.characters)[spellings.rows])
    assert read_words(embedding=0).eval()(words, spellings).values.shape == (2, 3, 6)
    assert read_words(spelt=False).eval()(words, None).values.shape == (2, 3, 5)


def test_a_word_is_dropped_in_training_alone() -> None:
    read = read_words(word_dropout=0.3, spelt=False)
    words = Padded.full(torch.full((200, 100), 7))
    assert read.embedding is not None
    unknown, known = read.embedding.weight[0], read.embedding.weight[7]
    values = read(words, None).values
    is_unknown = (values == unknown).all(-1)
    assert ((values == known).all(-1) | is_unknown).all()
    # 20,000 draws: five standard deviations.
    assert float(is_unknown.double().mean()) == pytest.approx(0.3, abs=5 * (0.21 / 20_000) ** 0.5)
    assert is_unknown.any(1).all()  # words are dropped one by one, not rows
    assert not is_unknown.all(1).any()
    assert ((read.eval()(words, None).values) == known).all()


def test_a_dropped_word_keeps_its_spelling() -> None:
    words, spellings = spelt_batch([[1, 2, 3], [4, 5]], more=0, first=0)
    read = read_words(word_dropout=0.999).train()
    in_training = read(words, spellings).values
    assert read.embedding is not None
    assert_close(in_training[..., :5], read.embedding.weight[0].expand(2, 3, 5))
    assert_close(in_training[..., 5:], read.eval()(words, spellings).values[..., 5:])
    assert torch.equal(words.values, spelt_batch([[1, 2, 3], [4, 5]], more=0, first=0)[0].values)


def test_random_vectors_have_length_one_on_average() -> None:
    read = ReadWords(4000, unknown=0, embedding=50, word_dropout=0, spelling=None)
    assert read.embedding is not None
    assert float(read.embedding.weight.detach().norm(dim=1).mean()) == pytest.approx(1, abs=0.02)


def test_vectors_from_elsewhere_are_put_in_their_places_with_length_one_on_average() -> None:
    read = read_words(spelt=False).float()
    assert read.embedding is not None
    before = read.embedding.weight.detach().clone()
    vectors = (100 * np.random.default_rng(0).normal(size=(3, 5))).astype(np.float32)
    read.put(np.array([2, 7, 4], np.int32), vectors)
    after = read.embedding.weight.detach()
    mean = np.linalg.norm(vectors.astype(np.float64), axis=1).mean()
    assert_close(after[[2, 7, 4]].numpy(), (vectors / mean).astype(np.float32))
    others = [0, 1, 3, 5, 6, 8, 9, 10, 11]
    assert torch.equal(after[others], before[others])
    assert read.embedding.weight.requires_grad


@pytest.mark.parametrize("vectors", [np.zeros((0, 5), np.float32), np.zeros((2, 5), np.float32)])
def test_no_vectors_and_vectors_of_zeros_can_be_put(vectors: NDArray[np.float32]) -> None:
    read = read_words(spelt=False)
    read.put(np.arange(len(vectors)), vectors)
    assert read.embedding is not None
    assert read.embedding.weight.isfinite().all()


def test_gradients_are_those_of_finite_differences() -> None:
    read = read_words().train()
    words, spellings = spelt_batch([[1, 2, 3], [4, 5], []], more=1, first=2)
    assert read.embedding is not None
    assert read.spelling is not None
    weights = [read.embedding.weight, read.spelling.embedding.weight]

    def summed(*_: Tensor) -> Tensor:
        found = read(words, spellings)
        return (found.zeroed().values ** 2).sum()

    assert torch.autograd.gradcheck(summed, weights)


def test_sentences_without_words_have_no_vectors() -> None:
    words = pad([torch.zeros(0, dtype=torch.long)])
    nothing = Spellings(padded([[]]), words.values)
    assert read_words().eval()(words, nothing).values.shape == (1, 0, 11)
