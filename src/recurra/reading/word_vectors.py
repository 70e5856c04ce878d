"""Vectors of the words of a vocabulary, out of a file that others made."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.data.files import lines, opened
from recurra.settings import SettingError
from recurra.text.fasttext import MAGIC, read_fasttext
from recurra.text.vectors import read_vectors
from recurra.text.vocabulary import Vocabulary


class WordVectors(NamedTuple):
    """Vectors of some words, and what there is to say of them."""

    ids: NDArray[Any]
    values: NDArray[np.float32]  # (n, d)
    said: str


def word_vectors(path: str, words: Vocabulary, size: int) -> WordVectors:
    """What a file of word2vec, GloVe or fastText knows of these words, in vectors of that size (model.embedding)."""
    built, is_binary = 0, False
    if os.path.isfile(path):  # not of a pipe: what is read there is gone
        with opened(path) as file:
            is_binary = file.read(len(MAGIC)) == MAGIC
    if is_binary:
        vectors, built = read_fasttext(path, words.tokens[len(words.specials) :])
    else:
        vectors = read_vectors(lines(path), path, wanted=words)
    if vectors.values.shape[1] != size:
        found = vectors.values.shape[1]
        raise SettingError(
            f"{path} has vectors of size {found}: set model.embedding = {found} (it is {size}).", ("data", "vectors")
        )
    said = f"{len(vectors.tokens):,} of {len(words):,} words start from {path}"
    if built:
        said += f", {built:,} of them by their character n-grams"
    return WordVectors(words.ids(vectors.tokens), vectors.values, said)
