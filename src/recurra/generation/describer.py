"""Vector to sequence as a source of texts: what may be written of something, drawn token by token."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from recurra.config import Seq2SeqDecoding, Vec2SeqSettings
from recurra.data.store import Encoded
from recurra.errors import ConfigError, DataError
from recurra.generation.generated import MOST_ROWS, Generated, Manner
from recurra.reading.givens import Given
from recurra.search.decoding import SearchTokens
from recurra.search.sampling import Filter, Sampler
from recurra.search.search import Hypothesis, check_count
from recurra.sequences.pair_texts import PairTexts


class Describes(Protocol):
    """What a describer needs of its task: what is read, how it is encoded, and which tokens answers are made of."""

    settings: Vec2SeqSettings
    texts: PairTexts

    @property
    def search_tokens(self) -> SearchTokens:
        """The ids that [decoding] means."""

    def answering(self, decoding: Seq2SeqDecoding) -> Describes:
        """The same task, answering by other settings of [decoding]."""

    def questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Given]:
        """Examples without answers."""

    def encode(self, example: Given) -> Encoded:
        """An example as arrays."""

    def shown(self, example: Given) -> str:
        """What a prediction calls its input."""

    def in_order_of_reading(self, tokens: list[str]) -> list[str]:
        """Tokens, as they were written, as a text has them."""


Draw: TypeAlias = Callable[[Any, Encoded, Sequence[int]], list[Hypothesis]]
"""A task that answers as is asked, an encoded example, and the numbers of its draws -> what is drawn each time."""


class Describer:
    """A model of vector to sequence that draws what may be written of something, and how; see `generate`."""

    between = ""

    def __init__(self, task: Describes, draw: Draw, manner: Manner) -> None:
        if manner.until not in (None, "\n"):  # it ends with its line in any case
            raise ConfigError("until has no effect here: the generated text has its own end. Leave it out.")
        usual = task.settings.decoding
        keep = Filter(
            temperature=usual.temperature if manner.temperature is None else manner.temperature,
            top_k=usual.top_k if manner.top_k is None else manner.top_k,
            top_p=usual.top_p if manner.top_p is None else manner.top_p,
        ).checked()
        Sampler(keep, seed=manner.seed)  # says what is wrong with a seed
        self.draw = draw
        self.decoding = dataclasses.replace(
            usual,
            search="sampling",
            best=1,
            seed=manner.seed,
            max_length=check_count(usual.max_length if manner.length is None else manner.length, "length"),
            unknown=manner.allow_unknown or usual.unknown,
            temperature=keep.temperature,
            top_k=keep.top_k,
            top_p=keep.top_p,
        )
        self.task = task.answering(self.decoding)

    def texts(self, prompts: Sequence[Any], *, count: int = 1) -> list[Generated]:
        """`count` texts for each prompt, one prompt after the other; what is drawn for one depends on it alone."""
        check_count(count, "count")
        found = []
        for prompt in prompts:
            example = self._given(prompt)
            row = self.task.encode(example._replace(target=None))
            for start in range(0, count, MOST_ROWS):
                draws = range(start, min(start + MOST_ROWS, count))
                found += [self._generated(self.task.shown(example), each) for each in self.draw(self.task, row, draws)]
        return found

    def several(self, asked: Sequence[tuple[Any, int]]) -> list[list[Generated]]:
        """`count` texts for each prompt; all of one prompt are drawn together, but no two prompts."""
        return [self.texts([prompt], count=count) for prompt, count in asked]

    def pieces(self, prompt: str) -> Iterator[str]:
        """The first text, at once."""
        yield self.texts([prompt])[0].whole

    def continued(
        self, lines: Iterable[tuple[int, str]], *, where: str, has_arrived: Callable[[], bool] = lambda: True
    ) -> Iterator[tuple[int, Generated]]:
        """The first text for each numbered line of a file, as soon as it is there."""
        for number, line in lines:
            try:
                [found] = self.texts([line])
            except DataError as error:
                raise DataError(f"{where}:{number}: {str(error).removeprefix('input:1: ')}") from error
            yield number, found

    def _given(self, prompt: Any) -> Given:
        if isinstance(prompt, np.ndarray):
            prompt = prompt.tolist()
        if not isinstance(prompt, str | list | tuple) or not len(prompt):
            raise DataError(
                f"the prompt {prompt!r:.60} has no input: give numbers such as '255 0 0', or the path of a picture; in "
                "Python also a list of lists or arrays, such as [[255, 0, 0]]."
            )
        [example] = self.task.questions(None, [prompt])
        return example

    def _generated(self, prompt: str, found: Hypothesis) -> Generated:
        target = self.task.texts.target
        tokens = target.vocabulary.tokens_of(found.tokens)
        text = target.tokenizer.join(self.task.in_order_of_reading(tokens[:-1] if found.ended else tokens))
        return Generated(prompt, text, text, tokens, found.log_probability, found.ended)
