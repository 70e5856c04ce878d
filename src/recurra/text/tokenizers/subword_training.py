"""How subwords are learnt: a thin face on the `tokenizers` library that gives the same answer each time."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from recurra.errors import ConfigError, DataError

if TYPE_CHECKING:
    import tokenizers

MARK = "▁"
# The library's name for what it does not know. A text that holds "<unk>" would make pieces of it, and merges would then
# take unknown letters for that text; no text makes a piece with a blank inside.
UNSEEN = f"<{MARK}unk>"
_PARALLELISM = "TOKENIZERS_PARALLELISM"
# The library's trainer lowers the cost of each character that it must add by this much, in an order that is random.
_STEP = 1e-4


def library() -> ModuleType:
    """The `tokenizers` library, imported when first needed."""
    try:
        import tokenizers
    except ImportError as error:
        raise ConfigError(
            f"subwords need the package 'tokenizers', which cannot be imported ({error}). "
            f"Run pip install tokenizers (of recurra-run, the extra subwords), or use words or characters."
        ) from error
    return tokenizers


def train(texts: Iterable[str], *, kind: str, size: int) -> tokenizers.Tokenizer:
    """The library's tokenizer, learnt from normalised texts; equal texts give equal JSON, byte for byte."""
    lib = library()
    special = lib.AddedToken(UNSEEN, special=True, normalized=False)
    if kind == "bpe":
        core = lib.Tokenizer(lib.models.BPE(unk_token=UNSEEN))
        trainer = lib.trainers.BpeTrainer(vocab_size=size, special_tokens=[special], show_progress=False)
    else:
        core = lib.Tokenizer(lib.models.Unigram())
        trainer = lib.trainers.UnigramTrainer(
            vocab_size=size, special_tokens=[special], unk_token=UNSEEN, show_progress=False
        )
    blanks = lib.normalizers.Replace(lib.Regex(rf"[\s\x1c-\x1f{MARK}]+"), " ")
    core.normalizer = lib.normalizers.Sequence([blanks, lib.normalizers.Strip()])
    core.pre_tokenizer = lib.pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always", split=True)
    core.decoder = lib.decoders.Metaspace(replacement=MARK, prepend_scheme="always", split=True)
    with _one_thread(), said_in_words("subwords cannot be trained"):
        core.train_from_iterator(_watched(texts, size), trainer)
    value = json.loads(core.to_str())
    # Left there, the name of what is unknown would be looked for in every text.
    value["added_tokens"] = []
    if kind == "unigram":
        value["model"]["vocab"] = _settled(value["model"]["vocab"])
        value["model"]["unk_id"] = 0
    with said_in_words("subwords cannot be trained"):
        settled: tokenizers.Tokenizer = lib.Tokenizer.from_str(json.dumps(value))
    return settled


def _settled(scores: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The pieces of a unigram model without what differs from run to run: their order and the noise of their scores.

    The library adds up in the order of a hash table with a random key, so the last bits of a score are noise. The
    characters that it pruned and must have back get the lowest score plus 0, 1, 2, ... steps, in that order too: they
    all get the lowest here, and with them any character that stands as low.
    """
    ordinary = [(piece, score) for piece, score in scores if piece != UNSEEN]
    lowest = min(score for _, score in ordinary)
    fringe = lowest + _STEP * sum(len(piece) == 1 for piece, _ in ordinary)
    level = [(piece, lowest if len(piece) == 1 and score < fringe else score) for piece, score in ordinary]
    rounded = [(piece, round(score, 4)) for piece, score in level]
    return [(UNSEEN, 0.0), *sorted(rounded, key=lambda scored: (-scored[1], scored[0]))]


@contextlib.contextmanager
def said_in_words(what: str) -> Iterator[None]:
    """Turn what the library raises, a bare Exception or the panic of its Rust code, into a DataError."""
    try:
        yield
    except BaseException as error:
        # A panic is not an Exception, and its class cannot be imported. Whatever else is raised came from the texts.
        if type(error) is not Exception and type(error).__name__ != "PanicException":
            raise
        raise DataError(f"{what}: {error}.") from error


def _watched(texts: Iterable[str], size: int) -> Iterator[str]:
    """The texts, then an error where they are empty or hold more characters than the vocabulary has places."""
    letters: set[str] = set()
    for text in texts:
        letters.update(text)
        yield text
    if not letters:
        raise DataError("subwords cannot be trained: the texts are empty.")
    # The mark of a blank and the name of what is unknown need a place too.
    if (needed := len(letters - {" "}) + 2) > size:
        raise ConfigError(
            f"subwords of size = {size} cannot hold the {needed - 2} different characters of the texts: "
            f"size must be at least {needed}."
        )


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """One thread, where the user did not choose: a process that used more warns at every later fork."""
    if _PARALLELISM in os.environ:
        yield
        return
    os.environ[_PARALLELISM] = "false"
    try:
        yield
    finally:
        del os.environ[_PARALLELISM]
