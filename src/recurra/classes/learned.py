"""What classification learns of its training data before training: words, letters, classes and scales."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

from recurra.config import ClassificationData
from recurra.data.normal import Counted, Normal
from recurra.data.roles import NO_MAJORITY, is_entailment
from recurra.errors import DataError
from recurra.reading.labelled import LabelledSequence, labelled
from recurra.reading.pieces import over_pieces
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
    def of(cls, data: ClassificationData, base: Learned | None = None) -> Learned:
        """What the training files hold; the columns are named. What a base has learned of other files is kept."""
        files = data.files("train")
        cut = tokenizer(data.text.tokens)
        kept = base if base is not None and base.tokenizer.name == cut.name else None
        if kept is not None:
            cut = kept.tokenizer
        elif data.text.column is not None:
            cut = cut.trained(
                lowered(text, data.text.lowercase)
                for example in labelled(files, data)
                for text in (example.text, example.second)
                if text is not None
            )
        tally = _Tally.of(data, cut, [])
        for found in over_pieces(files, data.format, partial(_Tally.of, data, cut)):
            tally.join(found, ", ".join(files))
        forms, labels, frames, targets, seen = tally
        _refuse_no_majority(labels, data, files)
        if data.targets is None and not labels:
            raise DataError(
                f"the column '{data.labels}' of {', '.join(files)} is empty: there are no classes to learn."
            )
        if base is not None:
            labels.update(base.labels)
        if data.label is not None and len(labels) == 1:
            raise DataError(
                f"every row of {', '.join(files)} ({seen.total():,}) has the class '{next(iter(labels))}': there is "
                f"nothing to learn. A classifier needs at least two classes."
            )
        words: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        for form, number in forms.items():
            words[lowered(form, data.text.lowercase)] += number
            for character in form:
                characters[character] += number
        known, spelt = (Vocabulary(), Vocabulary()) if kept is None else (kept.words, kept.characters)
        frames_there, targets_there = (None, None) if base is None else (base.frames, base.targets)
        return cls(
            cut,
            known.extended(words, min_count=data.text.min_count, max_size=data.text.max_size),
            spelt.extended(characters),
            dict(labels.most_common()),
            frames.finished().or_kept(frames_there) if data.frames is not None else None,
            targets.finished().or_kept(targets_there) if data.targets else None,
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


class _Tally(NamedTuple):
    """What is counted of some examples."""

    forms: Counter[str]
    labels: Counter[str]
    frames: Counted
    targets: Counted
    seen: Counter[str]  # of examples

    @classmethod
    def of(cls, data: ClassificationData, cut: Tokenizer, files: Sequence[str]) -> Self:
        """Those of some files."""
        tally = cls(Counter(), Counter(), Normal.counted(), Normal.counted(), Counter())
        for example in labelled(files, data) if files else ():
            tally.seen["examples"] += 1
            place = f"{files[example.file]}:{example.line}"
            tally.labels.update(example.labels)
            if example.frames is not None:
                tally.frames.add(example.frames, place)
            elif example.picture is None:
                for text in tokens_of(example, cut, data.text.lowercase):
                    tally.forms.update(text)
            if example.targets is not None:
                tally.targets.add(example.targets[None], place)
        return tally

    def join(self, other: Self, place: str) -> None:
        """Count in what was counted of the examples that follow."""
        self.forms.update(other.forms)
        self.labels.update(other.labels)
        self.seen.update(other.seen)
        self.frames.join(other.frames, place)
        self.targets.join(other.targets, place)


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
