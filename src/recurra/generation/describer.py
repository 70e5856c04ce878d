"""Vector to sequence as a source of texts: what may be written of something, drawn token by token."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from recurra.data.store import Encoded
from recurra.errors import ConfigError, DataError
from recurra.generation.generated import MOST_ROWS, Generated
from recurra.models.searching import searched
from recurra.reading.givens import Given
from recurra.search.sampling import Filter, Sampler
from recurra.search.search import Hypothesis, check_count
from recurra.tasks.vec2seq import Vec2Seq
from recurra.training.evaluation import moved
from recurra.training.trained import Trained


class Describer:
    """A model of vector to sequence that draws what may be written of something, and how; see `generate`."""

    between = ""

    def __init__(
        self,
        trained: Trained,
        *,
        seed: int = 1,
        length: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        until: str | None = None,
        allow_unknown: bool = False,
    ) -> None:
        assert isinstance(trained.task, Vec2Seq), "writer_of() asks the task"
        if until not in (None, "\n"):  # it ends with its line in any case
            raise ConfigError(
                "until is where a text that only goes on is to end, but here it ends by itself: leave it out."
            )
        usual = trained.task.settings.decoding
        keep = Filter(
            temperature=usual.temperature if temperature is None else temperature,
            top_k=usual.top_k if top_k is None else top_k,
            top_p=usual.top_p if top_p is None else top_p,
        ).checked()
        Sampler(keep, seed=seed)  # says what is wrong with a seed
        self.model: Any = trained.model
        self.decoding = dataclasses.replace(
            usual,
            search="sampling",
            best=1,
            seed=seed,
            max_length=check_count(usual.max_length if length is None else length, "length"),
            unknown=allow_unknown or usual.unknown,
            temperature=keep.temperature,
            top_k=keep.top_k,
            top_p=keep.top_p,
        )
        self.task = Vec2Seq(dataclasses.replace(trained.task.settings, decoding=self.decoding), trained.task.texts)

    def texts(self, prompts: Sequence[Any], *, count: int = 1) -> list[Generated]:
        """`count` texts for each prompt, one prompt after the other; what is drawn for one depends on it alone."""
        check_count(count, "count")
        found = []
        for prompt in prompts:
            example = self._given(prompt)
            row = self.task.encode(example._replace(target=None))
            for start in range(0, count, MOST_ROWS):
                draws = range(start, min(start + MOST_ROWS, count))
                found += [self._generated(self.task.shown(example), each) for each in self._drawn(row, draws)]
        return found

    def pieces(self, prompt: str) -> Iterator[str]:
        """The first text, at once."""
        yield self.texts([prompt])[0].whole

    def continued(
        self, lines: Iterable[tuple[int, str]], *, where: str, at_once: bool = False
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
                f"there is nothing to write of in {prompt!r:.60}: give numbers, as '255 0 0', or the path of "
                f"a picture; in Python also [[255, 0, 0]], a list of prompts that are lists or arrays."
            )
        [example] = self.task.questions(None, [prompt])
        return example

    @torch.no_grad()
    def _drawn(self, row: Encoded, draws: Sequence[int]) -> list[Hypothesis]:
        device = next(self.model.parameters()).device
        batch = moved(self.task.batch([row] * len(draws)), device)
        found = searched(self.model, batch, self.decoding, self.task.words, draws=draws)
        return [each for [each] in found]

    def _generated(self, prompt: str, found: Hypothesis) -> Generated:
        target = self.task.texts.target
        tokens = target.vocabulary.tokens_of(found.tokens)
        text = target.tokenizer.join(tokens[:-1] if found.ended else tokens)
        return Generated(prompt, text, text, tokens, found.log_probability, found.ended)
