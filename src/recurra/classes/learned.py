"""What classification learns of its training data before training: words, letters, classes and scales."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from recurra.config import ClassificationData
from recurra.data.normal import Normal
from recurra.data.roles import NO_MAJORITY, is_entailment
from recurra.errors import DataError
from recurra.reading.labelled import LabelledSequence, labelled
from recurra.text import load_tokenizer, tokenizer
from recurra.text.json_file import read_json, write_json
from recurra.text.tokenizers import Tokenizer
from recurra.text.vocabulary import Vocabulary


class Learned(NamedTuple):
    """One look at all training data, saved with a run."""

    tokenizer: Tokenizer
    words: Vocabulary
    characters: Vocabulary
    labels: dict[str, int]  # the classes, and how often each was seen
    frames: Normal | None
    targets: Normal | None

    @classmethod
    def of(cls, data: ClassificationData) -> Learned:
        """What the training files hold; the columns are named."""
        files = data.files("train")
        cut = tokenizer(data.text.tokens)
        if data.text.column is not None:
            cut = cut.trained(
                lowered(text, data.text.lowercase)
                for example in labelled(files, data)
                for text in (example.text, example.second)
                if text is not None
            )
        forms: Counter[str] = Counter()
        labels: Counter[str] = Counter()
        frames, targets = Normal.counted(), Normal.counted()
        count = 0
        for example in labelled(files, data):
            count += 1
            place = f"{files[example.file]}:{example.line}"
            labels.update(example.labels)
            if example.frames is not None:
                frames.add(example.frames, place)
            elif example.picture is None:
                for text in tokens_of(example, cut, data.text.lowercase):
                    forms.update(text)
            if example.targets is not None:
                targets.add(example.targets[None], place)
        _refuse_no_majority(labels, data, files)
        if data.targets is None and not labels:
            raise DataError(
                f"the column '{data.labels}' of {', '.join(files)} is empty: there are no classes to learn."
            )
        if data.label is not None and len(labels) == 1:
            raise DataError(
                f"every row of {', '.join(files)} ({count:,}) has the class '{next(iter(labels))}': there is nothing "
                f"to learn. A classifier needs at least two classes."
            )
        words: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        for form, number in forms.items():
            words[lowered(form, data.text.lowercase)] += number
            for character in form:
                characters[character] += number
        return cls(
            cut,
            Vocabulary.counted(words, min_count=data.text.min_count, max_size=data.text.max_size),
            Vocabulary.counted(characters),
            dict(labels.most_common()),
            frames.finished() if data.frames is not None else None,
            targets.finished() if data.targets else None,
        )

    def save(self, folder: Path) -> None:
        """Write what `load` reads."""
        self.tokenizer.save(folder / "tokenizer.json")
        self.words.save(folder / "vocabulary.words.json")
        self.characters.save(folder / "vocabulary.characters.json")
        write_json(folder / "labels.json", self.labels)
        scales = {"frames": self.frames, "targets": self.targets}
        known = {name: scale.to_json() for name, scale in scales.items() if scale is not None}
        (folder / "scales.json").write_text(json.dumps(known), "utf-8")

    @classmethod
    def load(cls, folder: Path, data: ClassificationData) -> Learned:
        """What `save` wrote."""
        scales = Normal.load_all(folder / "scales.json")
        labels = read_json(folder / "labels.json")
        if not isinstance(labels, dict) or not all(isinstance(count, int) for count in labels.values()):
            raise DataError(
                f"{folder / 'labels.json'} must contain the classes and their counts. The run folder may be damaged."
            )
        return cls(
            load_tokenizer(folder / "tokenizer.json", data.text.tokens),
            Vocabulary.load(folder / "vocabulary.words.json"),
            Vocabulary.load(folder / "vocabulary.characters.json"),
            labels,
            scales.get("frames"),
            scales.get("targets"),
        )


def _refuse_no_majority(labels: Counter[str], data: ClassificationData, files: Sequence[str]) -> None:
    """Refuse to learn "-" as a class beside those of entailment: pairs whose annotators did not agree have none."""
    if data.label is not None and NO_MAJORITY in labels and is_entailment(labels):
        raise DataError(
            f"{', '.join(files)}: {labels[NO_MAJORITY]:,} rows have the class '{NO_MAJORITY}' beside entailment, "
            "neutral and contradiction: the annotators of these pairs did not agree. To leave the rows out, as all "
            f'papers do, set data.leave_out = ["{NO_MAJORITY}"].'
        )


def tokens_of(example: LabelledSequence, tokenizer: Tokenizer, lowercase: bool) -> list[list[str]]:
    """What each text is cut into. Words keep their capitals for the spelling; they are looked up without."""
    texts = [(example.text, example.words)]
    texts += [] if example.second is None else [(example.second, example.second_words)]
    if tokenizer.name == "words":
        return [list(words) if words is not None else tokenizer.split(text) for text, words in texts]
    return [tokenizer.split(lowered(text, lowercase)) for text, _ in texts]


def lowered(text: str, lowercase: bool) -> str:
    return text.lower() if lowercase else text
