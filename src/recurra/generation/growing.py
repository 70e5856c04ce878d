"""Text out of the tokens that a language model writes, as they come."""

from __future__ import annotations

from itertools import takewhile
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from recurra.config import LanguageModelSettings
from recurra.text import Characters, Tokenizer
from recurra.text.vocabulary import Vocabulary


class Language(Protocol):
    """How a language model reads text: what its task knows."""

    settings: LanguageModelSettings
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    end: int  # the token that ends a line

    def ids(self, text: str) -> NDArray[np.int32]:
        """The tokens of a text, with the end of its last line."""


@final
class Page:
    """The text that grows from a prompt, token by token."""

    def __init__(self, task: Language, prompt: str, is_backward: bool) -> None:
        self.task = task
        self.prompt = prompt
        self.is_backward = is_backward
        self.last = ""  # what the last token has added; not known where a text grows backward
        self._before: list[int] = task.ids(prompt)[:-1].tolist()
        self._drawn: list[int] = []
        self._pieces: list[str] = []
        self._is_plain = isinstance(task.tokenizer, Characters)  # its tokens are put together with nothing between
        last_line = self._before[::-1]
        self._line = self.task.vocabulary.tokens_of(takewhile(lambda token: token != task.end, last_line))[::-1]
        self._so_far = "" if self._is_plain else task.tokenizer.join(self._line)

    def add(self, token: int) -> None:
        """One more token."""
        self._drawn.append(token)
        if not self.is_backward:
            self.last = self._piece(token)
            self._pieces.append(self.last)

    def text(self) -> str:
        """All that was added."""
        if not self.is_backward:
            return "".join(self._pieces)
        return self._joined([*self._drawn[::-1], *self._before]).removesuffix(self._joined(self._before))

    def holds(self, text: str) -> bool:
        """Whether the last token has completed a text."""
        if self.is_backward:
            return text in self.text()
        tail, place = "", len(self._pieces)
        while place and len(tail) < len(text) + len(self.last) - 1:
            place -= 1
            tail = self._pieces[place] + tail
        return text in tail

    def beside(self, text: str) -> str:
        """A text with the prompt where it belongs."""
        if self.is_backward:
            return text + self.prompt
        # Where blanks are forgotten, the text brings its own.
        return (self.prompt if self._is_plain else self.prompt.rstrip(" \t")) + text

    def _piece(self, token: int) -> str:
        [word] = self.task.vocabulary.tokens_of([token])
        if token == self.task.end:
            self._line, self._so_far = [], ""
            return "\n"
        if self._is_plain:
            return word
        before = self._so_far
        self._line.append(word)
        self._so_far = self.task.tokenizer.join(self._line)
        return self._so_far.removeprefix(before) if self._so_far.startswith(before) else f" {word}"

    def _joined(self, ids: list[int]) -> str:
        lines: list[list[str]] = [[]]
        for token, word in zip(ids, self.task.vocabulary.tokens_of(ids), strict=True):
            if token == self.task.end:
                lines.append([])
            else:
                lines[-1].append(word)
        return "\n".join(self.task.tokenizer.join(line) for line in lines)


def unknown_tokens(task: Language, text: str) -> list[str]:
    """The tokens of a text that are not in the vocabulary, each once, in the order of the text."""
    text = text.lower() if task.settings.data.text.lowercase else text
    tokens = dict.fromkeys(token for line in text.split("\n") for token in task.tokenizer.split(line))
    unknown = task.vocabulary.unknown
    return [token for token, number in zip(tokens, task.vocabulary.ids(tokens), strict=True) if number == unknown]


def overlap(text: str, other: str) -> int:
    """How much of the end of a text is a beginning of another.

    >>> overlap("to be", "bet"), overlap("to be", "x")
    (2, 0)
    """
    return next((size for size in range(min(len(text), len(other)), 0, -1) if text.endswith(other[:size])), 0)
