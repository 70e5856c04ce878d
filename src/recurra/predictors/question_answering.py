"""A memory network: the scores of the answers are computed by a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recurra.data.store import Encoded, Rows
from recurra.models.remembered import StoryOutput, remembered
from recurra.predictors.predictor import Predictor, padded, softmax
from recurra.programs.inputs import Input, Recordable, Running, called


class QuestionAnsweringPredictor(Predictor[StoryOutput]):
    """Sentences and a question to answers."""

    def __init__(self, *, words: int, memories: int) -> None:
        self.words, self.memories = words, memories

    def functions(self, model: Any) -> list[Recordable]:
        import torch

        from recurra.models.memory_network import StoryBatch
        from recurra.padding import Padded

        inputs = [
            Input("words", ("B", "N", "J"), "ids", below=self.words),
            Input("widths", ("B", "N"), "lengths", along="J"),
            Input("sentences", ("B",), "lengths", along="N"),
            Input("question", ("B", "J"), "ids", below=self.words),
            Input("question_widths", ("B",), "lengths", along="J"),
        ]

        def scores(words: Any, widths: Any, sentences: Any, question: Any, asked: Any) -> Mapping[str, Any]:
            found, looked = model(StoryBatch(words, widths, sentences, Padded(question, asked), sentences, 0))
            return {"scores": found, "looked": torch.stack(looked, 1)}

        # With as many sentences as there are times, all times are read as they are: that is another recording.
        return [Recordable("scores", inputs, scores, {"N": max(1, self.memories - 1)})]

    def outputs(self, running: Running, rows: Sequence[Encoded], *, detail: bool = False) -> list[StoryOutput]:
        every = Rows.of(rows)
        words, widths, sentences = remembered(every, self.memories)
        question, asked = padded(every, "question", np.int64)
        missing = words.shape[2] - question.shape[1]  # sentences and question are as wide as each other
        words = np.pad(words, [(0, 0), (0, 0), (0, max(0, -missing))])
        question = np.pad(question, [(0, 0), (0, max(0, missing))])
        given = {
            "words": words,
            "widths": widths,
            "sentences": sentences,
            "question": question,
            "question_widths": asked,
        }
        found = called(running, "scores", given)
        p = softmax(found["scores"])
        return [
            StoryOutput(p[row], count, found["looked"][row, :, :count][:, ::-1].astype(np.float64) if detail else None)
            for row, count in enumerate(sentences.tolist())
        ]
