"""Question answering: a story, a question about it, and an answer that is one of those seen in training."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from recurra.classes.answers import one_class
from recurra.config import QuestionAnsweringModel, QuestionAnsweringSettings
from recurra.config.common import training_differs
from recurra.config.in_words import cell_in_words, layers_in_words
from recurra.data.files import extension
from recurra.data.formats.babi import is_babi
from recurra.data.store import Encoded
from recurra.errors import ConfigError, DataError
from recurra.heads import UNLABELLED
from recurra.reading.asked import PLAIN, asked_row, read_by
from recurra.reading.schema import Schema
from recurra.reading.stories import Story, stories, story_of, with_columns, words_of
from recurra.reading.tables import task_rows
from recurra.scoring.class_scores import Decided, of_one_class
from recurra.scoring.counted import Counted
from recurra.tasks.task import (
    START,
    AnswerKind,
    Asked,
    Axes,
    Judgement,
    Loss,
    Moment,
    Prediction,
    Purpose,
    Task,
    Viewer,
)
from recurra.text.json_file import read_json, write_json
from recurra.text.vocabulary import Vocabulary
from recurra.views.heat_map import HeatMap
from recurra.views.viewer import LOOKED

if TYPE_CHECKING:
    from recurra.analysis.anatomy import Anatomy
    from recurra.analysis.gates import Gates
    from recurra.models.memory_network import MemoryNetwork, StoryBatch
    from recurra.models.remembered import StoryOutput
    from recurra.predictors.predictor import Predictor
    from recurra.views.view import View

LINEAR_SHARE, LINEAR_PATIENCE = 0.1, 3
"""A linear start ends after this share of training where no number of updates is set, and after so many validations
without a lower loss."""


class QuestionAnswering(Task[Story, "StoryBatch", "StoryOutput"]):
    """Sentences and a question to an answer, by a memory network that looks at the sentences in several hops."""

    Settings: ClassVar[type] = QuestionAnsweringSettings
    name: ClassVar[str] = "question_answering"
    reads_apart: ClassVar[bool] = True

    def __init__(self, settings: QuestionAnsweringSettings, words: Vocabulary, answers: Mapping[str, int]) -> None:
        self.settings = settings
        self.words = words
        self.counts = dict(answers)
        self.answers = Vocabulary.counted(answers, specials=())

    # Settings, and what is learned from the training data before training

    @classmethod
    def resolved(cls, settings: QuestionAnsweringSettings) -> QuestionAnsweringSettings:
        return dataclasses.replace(settings, data=with_columns(settings.data))

    @classmethod
    def prepared(cls, settings: QuestionAnsweringSettings) -> Self:
        return cls._learned(settings, Vocabulary(), {})

    @classmethod
    def prepared_from(cls, settings: QuestionAnsweringSettings, base: Self) -> Self:
        return cls._learned(settings, base.words, base.counts)

    @classmethod
    def _learned(cls, settings: QuestionAnsweringSettings, known: Vocabulary, before: Mapping[str, int]) -> Self:
        """The words and answers of the training data, beside those that are known already."""
        data = settings.data
        files = data.files("train")
        words, answers = Counter[str](), Counter[str]()
        for story in stories(files, data):
            for sentence in (*story.sentences, story.question):
                words.update(words_of(sentence, lowercase=data.lowercase))
            assert story.answer is not None, "with_columns() has named the column of answers"
            answers[story.answer] += 1
        answers.update(before)
        if len(answers) == 1:
            raise DataError(
                f"every question of {', '.join(files)} has the answer '{next(iter(answers))}': there is nothing to "
                f"learn. Question answering needs at least two answers."
            )
        # Answers are words too, for W is tied to the embeddings; none is left out because it is rare.
        for answer in answers:
            words[_word_of(answer, data.lowercase)] += data.min_count
        return cls(settings, known.extended(words, min_count=data.min_count), answers)

    def save(self, folder: Path) -> None:
        self.words.save(folder / "vocabulary.words.json")
        write_json(folder / "answers.json", self.counts)

    @classmethod
    def load(cls, settings: QuestionAnsweringSettings, folder: Path) -> Self:
        answers = read_json(folder / "answers.json")
        if not isinstance(answers, dict) or not all(isinstance(count, int) for count in answers.values()):
            raise DataError(
                f"{folder / 'answers.json'} must contain the answers and their counts. The run folder may be damaged."
            )
        return cls(settings, Vocabulary.load(folder / "vocabulary.words.json"), answers)

    def with_settings(self, settings: QuestionAnsweringSettings, folder: Path) -> Self:
        return type(self)(settings, self.words, self.counts)

    # From files and lines to arrays

    def read(self, files: Sequence[str | Path]) -> Iterator[Story]:
        return stories(files, self.settings.data)

    def noticed(self, examples: Sequence[Story]) -> str | None:
        unseen = Counter(story.answer for story in examples if story.answer not in self.answers)
        if not unseen:
            return None
        shown = ", ".join(f"'{answer}'" for answer, _ in unseen.most_common(3)) + (", …" if len(unseen) > 3 else "")
        return (
            f"the validation data has answers that are not in the training data ({shown}): {unseen.total():,} of "
            f"{len(examples):,} questions cannot be answered correctly"
        )

    def schema(self) -> Schema:
        data = self.settings.data
        return Schema("text", [str(data.context), str(data.question)])

    def questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Story]:
        data = dataclasses.replace(self.settings.data, answer=None)
        by = read_by(file, data)
        if file is not None and by is None and extension(file) in PLAIN and is_babi(file):
            by = dataclasses.replace(data, format="babi", columns=None, context="context", question="question")
        if file is not None and by is not None:
            for row in task_rows(file, by, by.context, by.question):
                yield story_of(row, 0, file, by)
            return
        schema, name = self.schema(), file or "input"
        for number, line in enumerate(lines, 1):
            row = asked_row(line, schema, f"{name}:{number}", number)
            yield story_of(row, 0, name, dataclasses.replace(data, empty="keep"))

    def sent(self, example: Story) -> str:
        """The story as one text, whose sentences end with a mark, and the question."""
        ended = (each if each.endswith((".", "!", "?")) else f"{each}." for each in example.sentences)
        return f"{' '.join(ended)}\t{example.question}"

    def encode(self, example: Story) -> Encoded:
        sentences = [self._ids(each) for each in example.sentences]
        answer = UNLABELLED if example.answer is None else self.answers.get(example.answer, UNLABELLED)
        return {
            "words": np.concatenate([*sentences, np.zeros(0, np.int64)]).astype(np.int32),
            "widths": np.array([len(each) for each in sentences], np.int32),
            "question": self._ids(example.question).astype(np.int32),
            "answer": np.array([answer], np.int32),
            "place": np.array([example.file, example.line], np.int64),
        }

    def _ids(self, sentence: str) -> Any:
        return self.words.ids(words_of(sentence, lowercase=self.settings.data.lowercase))

    def not_in_vocabulary(self, example: Story) -> list[str]:
        every = (*example.sentences, example.question)
        lowercase = self.settings.data.lowercase
        return self.words.unknown_among(word for each in every for word in words_of(each, lowercase=lowercase))

    def predictor(self) -> Predictor[StoryOutput]:
        from recurra.predictors.question_answering import QuestionAnsweringPredictor

        return QuestionAnsweringPredictor(words=len(self.words), memories=self.settings.model.memories)

    def batch(self, rows: Sequence[Encoded]) -> StoryBatch:
        from recurra.models.memory_network import batched

        return batched(rows, self.settings.model.memories)

    @property
    def draws_in_batch(self) -> bool:
        return False

    # The network, its loss and its answers

    def build(self) -> MemoryNetwork:
        from recurra.models.memory_network import MemoryNetwork

        lowercase = self.settings.data.lowercase
        tied = [self.words.id(_word_of(answer, lowercase)) for answer in self.answers.tokens]
        return MemoryNetwork(self.settings.model, len(self.words), tied)

    def axes(self) -> Mapping[str, Axes]:
        words, answers = self.words.tokens, self.answers.tokens
        tables = (None, None if self.settings.model.reads else words, None)
        return {"tables": tables, "embedding": (words, None), "readout": (answers, None)}

    def loss(self, model: Any, batch: StoryBatch, moment: Moment = START) -> Loss:
        if model.training:
            most = self.settings.model.linear_start
            is_early = moment.progress < LINEAR_SHARE if most is None else moment.step < most
            is_linear = is_early and moment.stalled < LINEAR_PATIENCE
            model.is_linear.fill_(is_linear)
            total, labels = model.loss(batch)
            return Loss(total, labels, weight=self.settings.model.linear_rate if is_linear else 1.0)
        return Loss(*model.loss(batch))

    def predict(self, model: Any, batch: StoryBatch, *, detail: bool = False) -> list[StoryOutput]:
        found: list[StoryOutput] = model.predict(batch, detail=detail)
        return found

    def combined(self, example: Story, outputs: Sequence[StoryOutput]) -> StoryOutput:
        from recurra.models.alike import mean_of_alike

        attention = mean_of_alike([output.attention for output in outputs])
        probabilities = np.mean([output.probabilities for output in outputs], axis=0)
        return outputs[0]._replace(probabilities=probabilities, attention=attention)

    def units(self) -> object:
        return self.answers.tokens

    def answer(self, example: Story, output: StoryOutput) -> Prediction:
        answer = one_class(output.probabilities, self.answers.tokens, self.settings.decoding)
        detail = answer.detail
        if output.attention is not None:
            detail["sentences"] = [*example.sentences[len(example.sentences) - output.sentences :]]
            detail["attention"] = output.attention.round(6).tolist()
        return Prediction(self.sent(example), answer.output, answer.score, example.line, detail)

    def answer_kind(self) -> AnswerKind:
        return "classes"

    @property
    def unused_decoding(self) -> Collection[str]:
        return ("threshold",)

    @property
    def unused_in_scores(self) -> Collection[str]:
        return ("alternatives",)

    def counted(self, examples: Sequence[Story], outputs: Sequence[StoryOutput]) -> Counted:
        items = [(example.file, example.line) for example in examples]
        values = np.stack([output.probabilities for output in outputs])
        lengths = np.array([len(example.sentences) for example in examples], np.int64)
        decided = Decided([(str(example.answer),) for example in examples], values, lengths)
        return of_one_class(items, decided, self.answers.tokens, positive=None, abstain=self.settings.decoding.abstain)

    # Views

    def steps(self, example: Story) -> list[str]:
        return words_of(example.question, lowercase=self.settings.data.lowercase)

    def viewers(self) -> dict[str, Viewer]:
        reads = self.settings.model.reads
        gates = super().viewers()["gates"]._replace(telling=reads, possible=reads)
        return {"attention": Viewer(self.looked, title=LOOKED, of_several=True), "gates": gates}

    def looked(self, asked: Asked) -> View:
        """What each hop looked at: sentences × hops. (torch)"""
        answer = self.answered(asked)
        if "attention" not in answer.detail:
            raise ConfigError("these runs look at other sentences, or in another number of hops: name one of them.")
        weights = np.asarray(answer.detail["attention"], np.float64)
        if not weights.size:
            raise DataError("there is nothing to look at: the context has no sentence.")
        rest = "what is missing to 1 fell on vacant places" if self.settings.model.vacant else "its weights add up to 1"
        return HeatMap(
            answer.detail["sentences"],
            [f"hop {number + 1}" for number in range(len(weights))],
            weights.T,
            signed=bool((weights < 0).any()),  # linear hops have no softmax
            across="hops",
            down="sentences",
            of_row="was looked at by",
            of_column="looked at",
            prose=True,
            title=LOOKED,
            caption=f"{asked.example.question} {answer.output}",
            about=f"Each hop weighs every sentence; {rest}.",
        )

    def gates(self, asked: Asked) -> Gates:
        """Gates of the cell while it read the question. (torch)"""
        from recurra.analysis.gates import gates_of

        model, batch = asked.model, self.copies(asked)(1)
        stacks = self.stacks(model)
        if not stacks:
            raise ConfigError(
                f"the run {asked.run} reads sentences without a cell (model.sentence = "
                f"'{self.settings.model.sentence}'), so there are no gates to show."
            )
        [stack] = stacks.values()
        names = self.steps(asked.example)
        read = lambda: model.read(batch.question.values, batch.question.lengths)  # noqa: E731
        return gates_of(stack, names, read, layer=asked.layer, direction=asked.direction)

    def anatomy(self, model: Any) -> Anatomy:
        from recurra.analysis.anatomy import Anatomy, UnrolledLevel, levels_of

        stacks = list(self.stacks(model).values())
        settings = self.settings.model
        memories = UnrolledLevel(f"sentences as memories of size {settings.hidden}")
        levels = [*(levels_of(stacks[0]) if stacks else []), memories]
        hops = "1 hop" if settings.hops == 1 else f"{settings.hops} hops"
        return Anatomy(levels, answers="whole", summary=f"answer, after {hops}")

    def judge(self, examples: Sequence[Story]) -> Callable[[Story, Prediction], Judgement | None]:
        return lambda example, answer: Judgement(answer.output == example.answer, f"{example.answer} is right")

    # What is said about it

    def purpose(self) -> Purpose:
        return Purpose(
            "answers a question about a story",
            rows="questions",
            inputs="stories with a question, a tab between them",
            python='answers = model.predict(["Mary went home.\\tWhere is Mary?"])',
        )

    def training_differs(self) -> list[str]:
        noise = ["empty memories are added in training only"] if self.settings.model.noise else []
        return [*noise, *training_differs(self.settings)]

    def described(self) -> str:
        model = self.settings.model
        sentence = {
            "position": "position encoding",
            "place": "place encoding",
            "bag": "bags of words",
            "recurrent": f"sentences read by {reader_in_words(model)}",
        }[model.sentence]
        parts = [
            f"end-to-end memory of {model.memories} sentences",
            f"size {model.hidden}",
            "1 hop" if model.hops == 1 else f"{model.hops} hops",
            sentence,
            *(["temporal encoding"] if model.temporal else []),
            f"{model.tying} tying",
            f"{len(self.words):,} words",
            f"{len(self.answers)} answers",
        ]
        return ", ".join(parts)


def reader_in_words(model: QuestionAnsweringModel) -> str:
    """The cells that read sentences.

    >>> reader_in_words(QuestionAnsweringModel()), reader_in_words(QuestionAnsweringModel(layers=2, mix="mean"))
    ('GRU', '2-layer GRU 50 (mean of all layers)')
    """
    cell = cell_in_words(model.cell, direction=model.direction)
    return cell if model.layers == 1 else layers_in_words(cell, model.hidden, model.layers, model.mix)


def _word_of(answer: str, lowercase: bool) -> str:
    """An answer as a word of the vocabulary."""
    return answer.lower() if lowercase else answer
