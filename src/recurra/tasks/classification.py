"""Classification: a class, several, or numbers for a whole text, two texts, a series or a picture."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from recurra.classes.answers import numbers, one_class, several_classes
from recurra.classes.learned import Learned, tokens_of
from recurra.classes.pairs import NamedClasses, asked_texts, in_one_line, with_pairing
from recurra.classes.pictures import asked_picture, encoded_picture, with_encoder
from recurra.classes.pictures import encoding as encoding_of_pictures
from recurra.config import ClassificationSettings
from recurra.config.common import training_differs
from recurra.config.in_words import cell_in_words, layers_in_words, summary_in_words
from recurra.data.files import extension
from recurra.data.normal import Normal
from recurra.data.pictures import is_picture
from recurra.data.store import Encoded
from recurra.errors import ConfigError, DataError
from recurra.heads import UNLABELLED
from recurra.named import did_you_mean
from recurra.reading.asked import read_by
from recurra.reading.gaps import cell_reads_gaps
from recurra.reading.labelled import LabelledSequence, labelled, series, series_in, text_of, with_columns
from recurra.reading.samples import sent_picture, typed
from recurra.reading.schema import Schema
from recurra.reading.word_vectors import word_vectors
from recurra.scoring.class_scores import Decided, of_numbers, of_one_class, of_several_classes
from recurra.scoring.counted import Counted
from recurra.scoring.pair_scores import NOTHING
from recurra.settings import SettingError, name_of
from recurra.tasks.language_model import FEATURES, NO_FEATURES, features_marks, features_of, saved_features
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
    Recurring,
    Task,
    Viewer,
)
from recurra.text.code_points import CodePoints
from recurra.text.ngrams import Ngrams
from recurra.text.vocabulary import UNKNOWN, Vocabulary
from recurra.views.purpose import PICTURES, SERIES
from recurra.views.viewer import LOOKED, MATTERED

if TYPE_CHECKING:
    from recurra.analysis.anatomy import Anatomy
    from recurra.analysis.gates import Gates, Stack
    from recurra.analysis.saliency import Probe
    from recurra.models.character_features import CharacterFeatures
    from recurra.models.classified import ClassifierOutput
    from recurra.models.classifier import Classifier, ClassifierBatch, Kind
    from recurra.pairings import Pairing
    from recurra.predictors.predictor import Predictor
    from recurra.views.view import View

LOOKED_AT = 1000
"""Training examples that are looked at to see whether numbers are classes."""

POSITIVE = ("1", "true", "yes", "positive", "pos")
"""Classes that are the one to be detected, of two."""


PAIRINGS = {
    "siamese": "comparison",
    "conditional": "conditional encoding",
    "word_by_word": "word-by-word attention",
    "decomposable": "decomposable attention",
    "attentive": "attentive reading",
    "impatient": "impatient reading",
}
"""Ways to read two texts together, in words."""


class Classification(Task[LabelledSequence, "ClassifierBatch", "ClassifierOutput"]):
    """Sequence to vector: what a text is about or asks for, who speaks, what a picture shows, a number for a series."""

    Settings: ClassVar[type] = ClassificationSettings
    name: ClassVar[str] = "classification"
    reads_apart: ClassVar[bool] = True

    def __init__(
        self, settings: ClassificationSettings, learned: Learned, features: CharacterFeatures | None = None
    ) -> None:
        self.settings = settings
        self.learned = learned
        self.features = features
        self.tokenizer, self.words, self.characters, counts, self.frames, self.targets = learned
        self.labels = Vocabulary.counted(counts, specials=())
        self._code_points = CodePoints(self.characters)

    @property
    def kind(self) -> Kind:
        """What is predicted."""
        data = self.settings.data
        return "label" if data.label is not None else "labels" if data.labels is not None else "targets"

    @property
    def is_pictured(self) -> bool:
        """Whether pictures are read."""
        return self.settings.data.image.given is not None

    @property
    def is_paired(self) -> bool:
        """Whether two texts are read together."""
        return self.settings.data.second is not None

    @property
    def spells(self) -> bool:
        """Whether words are read by their letters too."""
        return self.reads and self.tokenizer.name == "words" and self.settings.model.characters.cell != "none"

    @cached_property
    def reads(self) -> bool:
        """Whether tokens are read in their order."""
        is_bag = {*self.settings.model.encoders} == {"bag"} and not self.is_paired
        return self.frames is None and not self.is_pictured and not is_bag

    @cached_property
    def ngrams(self) -> Ngrams | None:
        """The n-grams of a bag, where there is one."""
        bag = self.settings.model.bag
        if "bag" not in self.settings.model.encoders:
            return None
        known = {token: place for place, token in enumerate(self.words.tokens) if place >= len(self.words.specials)}
        return Ngrams(known, words=bag.words, characters=bag.characters, buckets=bag.buckets)

    @cached_property
    def positive(self) -> str | None:
        """Of two classes, the one to be detected."""
        if self.kind != "label" or len(self.labels) != 2:
            return None
        if (given := self.settings.data.positive) is not None:
            return given
        usual = [label for label in self.labels if label.lower() in POSITIVE]
        return usual[0] if len(usual) == 1 else self.labels.tokens[-1]  # the most frequent class comes first

    @classmethod
    def resolved(cls, settings: ClassificationSettings) -> ClassificationSettings:
        return with_pairing(with_encoder(dataclasses.replace(settings, data=with_columns(settings.data))))

    @classmethod
    def encoding(cls, settings: ClassificationSettings) -> object:
        bag, encoders = settings.model.bag, settings.model.encoders
        if marks := features_marks(settings):
            return [*marks, settings.model.candidates, bag.words, bag.characters, bag.buckets, *encoders]
        if settings.data.image.given is not None:
            return encoding_of_pictures(settings)
        if settings.data.frames is not None and reads_gaps_in(settings):
            return ["gaps"]
        if settings.model.candidates != "all":
            return [settings.model.candidates]
        return [bag.words, bag.characters, bag.buckets, {*encoders} == {"bag"}] if "bag" in encoders else None

    @classmethod
    def prepared(cls, settings: ClassificationSettings) -> Self:
        return cls._with(settings, Learned.of(settings.data))

    @classmethod
    def prepared_from(cls, settings: ClassificationSettings, base: Self) -> Self:
        return cls._with(settings, Learned.of(settings.data, base.learned))

    @classmethod
    def _with(cls, settings: ClassificationSettings, learned: Learned) -> Self:
        """The task with what was learned, and with the features that its settings name."""
        features = None
        if settings.model.features:
            reads_words = learned.frames is None and learned.tokenizer.name == "words"
            if not reads_words or settings.data.image.given is not None or {*settings.model.encoders} == {"bag"}:
                raise SettingError(
                    "model.features are features of words in their order: use text as input with data.text.tokens = "
                    "words, and another model.encoder than bag.",
                    ("model", "features"),
                )
            words = sum(
                len(learned.tokenizer.split(text))
                for example in labelled(settings.data.files("train"), settings.data)
                for text in (example.text, example.second or "")
            )
            features = features_of(settings, words)
        return cls(settings, learned, features)

    def save(self, folder: Path) -> None:
        self.learned.save(folder)
        if self.features is not None:
            self.features.save(folder / FEATURES)

    @classmethod
    def load(cls, settings: ClassificationSettings, folder: Path) -> Self:
        return cls(settings, Learned.load(folder, settings.data), saved_features(settings, folder))

    def with_settings(self, settings: ClassificationSettings, folder: Path) -> Self:
        return type(self)(settings, self.learned, self.features)

    def read(self, files: Sequence[str | Path]) -> Iterator[LabelledSequence]:
        return self._checked(labelled(files, self.settings.data), files)

    def noticed(self, examples: Sequence[LabelledSequence]) -> str | None:
        unseen = Counter(name for example in examples for name in example.labels if name not in self.labels)
        if not unseen:
            return None
        count = sum(any(name in unseen for name in example.labels) for example in examples)
        names = ", ".join(f"'{name}'" for name, _ in unseen.most_common(3)) + (", …" if len(unseen) > 3 else "")
        several = "classes that are" if len(unseen) > 1 else "a class that is"
        return (
            f"the validation data has {several} not in the training data ({names}): {count:,} of {len(examples):,} "
            "examples cannot be predicted correctly"
        )

    def questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[LabelledSequence]:
        return self._checked(self._asked(file, lines), [file or "input"])

    def _checked(self, examples: Iterable[LabelledSequence], files: Sequence[str | Path]) -> Iterator[LabelledSequence]:
        """The examples, where they have as many numbers as training."""
        for example in examples:
            place = f"{files[example.file]}:{example.line}"
            for values, scale in ((example.frames, self.frames), (example.targets, self.targets)):
                if values is not None and scale is not None:
                    scale.check(values, place)
            yield example

    def _asked(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[LabelledSequence]:
        data = self.settings.data
        if file is not None and data.image.column is not None and is_picture(file):
            yield asked_picture(str(file), f"{file}:1", None, 1, data)
            return
        if file is not None and (by := read_by(file, data)) is not None:
            yield from labelled([file], dataclasses.replace(by, label=None, labels=None, targets=None))
            return
        for number, line in enumerate(lines, 1):
            place = f"{file or 'input'}:{number}"
            if self.is_pictured:
                yield asked_picture(line, place, file, number, data)
                continue
            if data.second is not None:
                yield asked_texts(line, [str(data.text.column), data.second], place, number)
                continue
            if data.frames is None:
                text, words = text_of(line, place, "text")
                yield LabelledSequence(text, words, None, (), None, 0, number)
                continue
            is_allowed = self.settings.data.missing == "mean"
            frames = series(series_in(line, place), place, "frames", missing=is_allowed)
            yield LabelledSequence("", None, frames, (), None, 0, number)

    def texts(self, example: LabelledSequence) -> list[list[str]]:
        """What a text is cut into; two texts, where these are read together."""
        return tokens_of(example, self.tokenizer, self.settings.data.text.lowercase)

    def tokens(self, example: LabelledSequence) -> list[str]:
        """What all that is read is cut into: the tokens of a second text follow on those of the first."""
        return [token for text in self.texts(example) for token in text]

    def schema(self) -> Schema:
        if self.is_pictured:
            return Schema("picture" if self.settings.data.image.strokes is None else "strokes")
        data = self.settings.data
        if data.second is not None:
            return Schema("text", [str(data.text.column), data.second])
        return Schema("text" if data.frames is None else "frames")

    def sent(self, example: LabelledSequence) -> object:
        if example.picture is not None:
            return sent_picture(example.picture.value, self.settings.data.image, example.picture.folder)
        if example.second is not None:
            return f"{in_one_line(example.text)}\t{in_one_line(example.second)}"
        return example.text if example.frames is None else typed(example.frames)

    def encode(self, example: LabelledSequence) -> Encoded:
        if self.features is None:
            return self._encoded(example)
        [encoded] = self.encode_all([example])
        return encoded

    def encode_all(self, examples: Iterable[LabelledSequence]) -> Iterator[Encoded]:
        if self.features is None:
            return super().encode_all(examples)
        return self.features.added((self._encoded(example), self.texts(example)) for example in examples)

    def _encoded(self, example: LabelledSequence) -> Encoded:
        encoded: dict[str, NDArray[Any]] = {"place": np.array([example.file, example.line], np.int64)}
        if example.picture is not None:
            encoded |= encoded_picture(example.picture, self.settings)
        elif self.frames is not None:
            encoded["frames"] = self._scaled(example, self.frames)
        else:
            texts = self.texts(example)
            tokens = [token for text in texts for token in text]
            lower = self.settings.data.text.lowercase
            looked_up = list(map(str.lower, tokens)) if lower else tokens
            if self.is_paired:
                encoded["first"] = np.array([len(texts[0])], np.int64)
            if self.reads:
                encoded["words"] = self.words.ids(looked_up)
            else:
                encoded["steps"] = np.array([len(tokens)], np.int64)
            if self.ngrams is not None:
                encoded["bag"] = self.ngrams.ids(looked_up)
            if self.tokenizer.name == "words" and self.reads:
                encoded["characters"], encoded["widths"] = self._code_points.spelt(tokens)
        if self.kind == "label":
            label = self.labels.get(example.labels[0], UNLABELLED) if example.labels else UNLABELLED
            if self.settings.model.candidates == "text":
                encoded["candidates"] = self._candidates(example)
                label = label if label == UNLABELLED or encoded["candidates"][label] else UNLABELLED
            encoded["label"] = np.array([label], np.int32)
        elif self.kind == "labels":
            known = [place for name in example.labels if (place := self.labels.get(name, None)) is not None]
            encoded["labels"] = np.zeros(len(self.labels), np.int8)
            encoded["labels"][known] = 1
        elif self.targets is not None:
            given = example.targets if example.targets is not None else np.zeros(len(self.targets.mean))
            encoded["targets"] = self.targets.scaled(given).astype(np.float32)
        return encoded

    def _candidates(self, example: LabelledSequence) -> NDArray[np.bool_]:
        """Which classes occur in the first text; where none does, all."""
        first = self.texts(example)[0]
        found = self._named_classes.among([token.lower() for token in first])
        return found if found.any() else ~found

    @cached_property
    def _named_classes(self) -> NamedClasses:
        return NamedClasses.of(self.labels.tokens, lambda text: [each.lower() for each in self.tokenizer.split(text)])

    def left_out(self, row: Encoded) -> str | None:
        if self.kind != "label" or "candidates" not in row or row["label"][0] != UNLABELLED:
            return None
        return "its class does not occur in the text, where model.candidates = 'text' looks for it"

    def not_in_vocabulary(self, example: LabelledSequence) -> list[str]:
        if self.frames is not None or self.is_pictured:
            return []
        tokens, bag = self.tokens(example), self.ngrams
        if self.spells:
            return self.characters.unknown_among(character for token in tokens for character in token)
        if bag is not None and bag.characters is not None:  # n-grams of characters are hashed: none is lost
            return []
        return self.words.unknown_among(map(str.lower, tokens) if self.settings.data.text.lowercase else tokens)

    def _scaled(self, example: LabelledSequence, scale: Normal) -> NDArray[np.float32]:
        if example.frames is None or len(example.frames) == 0:
            return np.zeros((0, self.frame_size), np.float32)
        scaled, known = np.nan_to_num(scale.scaled(example.frames)), ~np.isnan(example.frames)
        if self.reads_gaps:
            scaled = np.column_stack([scaled, known, np.ones(len(known))])
        return scaled.astype(np.float32)

    @cached_property
    def reads_gaps(self) -> bool:
        """Whether the network is given which numbers of a series are missing."""
        return self.frames is not None and reads_gaps_in(self.settings)

    @property
    def frame_size(self) -> int:
        """The numbers that are read at a step of a series: values, or values, their masks and an elapsed time."""
        assert self.frames is not None, "series are read"
        return 2 * len(self.frames.mean) + 1 if self.reads_gaps else len(self.frames.mean)

    def lengths(self, rows: Any) -> NDArray[np.int64]:
        if not self.reads and self.frames is None:
            steps: NDArray[np.int64] = rows.span("steps", 0, len(rows))
            return steps
        found: NDArray[np.int64] = rows.lengths("words" if self.frames is None else "frames")
        return found

    def batch(self, rows: Sequence[Encoded]) -> ClassifierBatch:
        from recurra.models.classifier import batched

        return batched(rows, reads=self.reads, spelling=self.spells, features=self.features)

    @property
    def draws_in_batch(self) -> bool:
        return False

    def build(self) -> Classifier:
        from recurra.models.classifier import Classifier

        if (given := self.settings.data.positive) is not None and given not in self.labels:
            near = did_you_mean(given, self.labels)
            raise SettingError(f"data.positive = '{given}' is not a class. {near}", ("data", "positive"))
        if given is not None and len(self.labels) != 2:
            said = f"data.positive is for two classes, but there are {len(self.labels)}: leave it out."
            raise SettingError(said, ("data", "positive"))
        if self.frames is not None and "bag" in self.settings.model.encoders:
            raise ConfigError(
                "a bag of n-grams needs text, but data.frames is a series of numbers: set model.encoder to "
                "rnn, pyramid, transformer or cnn."
            )
        if self.is_pictured:
            self.settings.augmentation.check_pictures()
        else:
            gaps = f"model.cell = '{name_of(self.settings.model.cell)}' reads masks beside the values"
            found = "a text is read" if self.frames is None else gaps if self.reads_gaps else None
            self.settings.augmentation.check_series(found)
        return Classifier(
            self.settings.model,
            self.kind,
            len(self.targets.mean) if self.targets is not None else len(self.labels),
            words=len(self.words),
            unknown=self.words.id(UNKNOWN),
            characters=len(self.characters) if self.spells else None,
            frame_size=self.frame_size if self.frames is not None else None,
            features=self.ngrams.rows if self.ngrams is not None else None,
            class_weights=self._class_weights(),
            augmentation=self.settings.augmentation,
            channels=self.settings.data.image.channels if self.is_pictured else None,
            paired=self.is_paired,
            word_features=0 if self.features is None else self.features.size,
            variables=len(self.frames.mean) if self.frames is not None and self.reads_gaps else 0,
        )

    def _class_weights(self) -> NDArray[np.float64] | None:
        """A weight for each class; where there may be several, of having it, over not having it."""
        given = self.settings.model.class_weights
        if given == "none":
            return None
        if self.kind == "targets":
            said = "model.class_weights are for classes, but data.targets are numbers."
            raise SettingError(said, ("model", "class_weights"))
        if isinstance(given, dict):
            for name in given:
                if name not in self.labels:
                    raise SettingError(
                        f"model.class_weights: '{name}' is not a class. {did_you_mean(name, self.labels)}",
                        ("model", "class_weights", name),
                    )
            return np.array([given.get(label, 1.0) for label in self.labels], np.float64)
        counts = np.array([self.learned.labels[label] for label in self.labels], np.float64)
        return counts.mean() / counts

    def initialise(self, model: Any) -> str | None:
        path = self.settings.data.vectors
        if path is None:
            return None
        size = self.settings.model.embedding
        if not self.reads or not size:
            raise SettingError(
                "data.vectors needs word embeddings: use text as input, and set model.embedding above 0.",
                ("data", "vectors"),
            )
        vectors = word_vectors(path, self.words, size)
        for reader in model.readers:
            reader.put(vectors.ids, vectors.values)
        return vectors.said

    def axes(self) -> Mapping[str, Axes]:
        found: dict[str, Axes] = {}
        model = self.settings.model
        for number, kind in enumerate(model.encoders):
            if kind == "bag" and self.ngrams is not None:
                buckets = (f"bucket {place} of {self.ngrams.buckets}" for place in range(self.ngrams.buckets))
                found[f"encoders.{number}.table.weight"] = ((*self.words.tokens, *buckets), None)
            found[f"readers.{number}.embedding.weight"] = (self.words.tokens, None)
            found[f"readers.{number}.spelling.embedding.weight"] = (self.characters.tokens, None)
            outputs = self.labels.tokens if self.targets is None else self._target_names(len(self.targets.mean))
            found[f"readouts.{number}.weight"] = (outputs, None)
            found[f"readouts.{number}.bias"] = (outputs,)
        return found

    def loss(self, model: Any, batch: ClassifierBatch, moment: Moment = START) -> Loss:
        return Loss(*model.loss(batch))

    def recurring(self, batch: ClassifierBatch) -> Recurring | None:
        from recurra.models.classifier import recurring_examples

        found = recurring_examples(batch)
        labels = {"label": batch.known, "labels": len(batch.steps)}.get(self.kind)
        if batch.targets is not None and self.kind == "targets":
            labels = batch.targets.numel()
        return None if found is None or labels is None else Recurring(found, labels)

    def predict(self, model: Any, batch: ClassifierBatch, *, detail: bool = False) -> list[ClassifierOutput]:
        found: list[ClassifierOutput] = model.predict(batch, detail=detail)
        return found

    def predictor(self) -> Predictor[ClassifierOutput]:
        from recurra.predictors.classification import ClassificationPredictor

        if self.features is not None:
            raise ConfigError(NO_FEATURES)
        if self.frames is not None and self.reads_gaps:
            raise ConfigError("models that read which numbers of a series are missing cannot be exported yet.")
        return ClassificationPredictor(
            self.kind,
            words=len(self.words) if self.reads else None,
            characters=len(self.characters) if self.spells else None,
            features=None if self.ngrams is None else self.ngrams.rows,
            frame_size=None if self.frames is None else self.frame_size,
            paired=self.is_paired,
            candidates=len(self.labels) if self.settings.model.candidates == "text" else None,
            channels=self.settings.data.image.channels if self.is_pictured else None,
            stride=2 ** len(self.settings.model.image.widths),
        )

    def offline(self) -> Mapping[str, Any]:
        from recurra.predictors import offline

        is_plain = self.kind == "label" and self.reads and self.ngrams is None and not self.is_paired
        if not is_plain or self.is_pictured or self.settings.model.candidates == "text":
            raise offline.not_yet("a classifier of anything but one text into one class, read word by word,")
        return offline.classification(
            self.tokenizer,
            self.words,
            self.characters if self.spells else None,
            self.labels.tokens,
            self.settings.decoding,
            lowercase=self.settings.data.text.lowercase,
        )

    def combined(self, example: LabelledSequence, outputs: Sequence[ClassifierOutput]) -> ClassifierOutput:
        from recurra.models.classified import combined

        return combined(outputs)

    def units(self) -> object:
        scale = None if self.targets is None else self.targets.to_json()
        return self.kind, tuple(self.labels.tokens), scale

    def answer(self, example: LabelledSequence, output: ClassifierOutput) -> Prediction:
        if self.targets is not None:
            answer = numbers(self.targets.unscaled(output.values))
        else:
            of = one_class if self.kind == "label" else several_classes
            answer = of(output.values, self.labels.tokens, self.settings.decoding)
        detail = answer.detail
        if output.attention is not None:
            weights = output.attention.round(6)
            if output.columns is not None:  # a map for each query
                weights = weights.reshape(len(weights), -1, output.columns)
            elif self.frames is None:
                detail["tokens"] = self.tokens(example)
            detail["attention"] = weights.tolist()
        if output.looked is not None:
            detail["first_tokens"], detail["second_tokens"] = self.texts(example)
            detail["attention"] = output.looked.round(6).tolist()
            if output.looked_back is not None:
                detail["attention_back"] = output.looked_back.round(6).tolist()
        read = example.text if example.second is None else f"{example.text}\t{example.second}"
        return Prediction(read, answer.output, answer.score, example.line, detail)

    @property
    def unused_decoding(self) -> Collection[str]:
        if self.kind == "targets":
            return ("abstain", "threshold", "alternatives")
        return ("threshold",) if self.kind == "label" else ("abstain",)

    @property
    def unused_in_scores(self) -> Collection[str]:
        return ("alternatives",)

    def counted(self, examples: Sequence[LabelledSequence], outputs: Sequence[ClassifierOutput]) -> Counted:
        items = [(example.file, example.line) for example in examples]
        values = np.stack([output.values for output in outputs])
        lengths = np.array([output.steps for output in outputs], np.int64)
        if self.targets is not None:
            gold = np.stack([example.targets for example in examples if example.targets is not None])
            return of_numbers(items, gold, self.targets.unscaled(values), self._target_names(gold.shape[1]), lengths)
        decided = Decided([example.labels for example in examples], values, lengths)
        decoding, labels = self.settings.decoding, self.labels.tokens
        if self.kind == "labels":
            return of_several_classes(items, decided, labels, threshold=decoding.threshold)
        return of_one_class(items, decided, labels, positive=self.positive, abstain=decoding.abstain)

    # Views

    def steps(self, example: LabelledSequence) -> list[str]:
        if self.is_pictured or not (self.reads or self.frames is not None):
            raise ConfigError(f"the input of this {self.name} model is not a sequence of steps.")
        return super().steps(example) if self.frames is not None else self.tokens(example)

    def stacks(self, model: Any) -> dict[str, Stack]:
        if self.is_paired:
            from recurra.analysis.gates import stacks_of

            return {f"encoders.0.{name}": stack for name, stack in stacks_of(model.encoders[0]).items()}
        return {
            f"encoders.{number}": encoder.recurrent
            for number, (name, encoder) in enumerate(zip(self.settings.model.encoders, model.encoders, strict=True))
            if name in ("rnn", "pyramid")
        }

    def viewers(self) -> dict[str, Viewer]:
        weighs, is_sequence = self._weighs(), self.reads or self.frames is not None
        looked = {"attention": Viewer(self.looked, telling=weighs, title=LOOKED, possible=weighs, of_several=True)}
        if self.is_pictured:
            return looked
        saliency = Viewer(
            self.contributions, 30, work=lambda n: n, telling=is_sequence, title=MATTERED, possible=is_sequence
        )
        gates = super().viewers()["gates"]._replace(telling=is_sequence, possible=is_sequence)
        if self.is_paired:
            gates = gates._replace(possible=self._has_cells())
        others = {"saliency": saliency, **(self.memory_viewer() if is_sequence else {}), "gates": gates}
        return {**looked, **others} if weighs else {**others, **looked}

    def _weighs(self) -> bool:
        """Whether answers come with attention weights."""
        model = self.settings.model
        if not self.is_paired:
            return name_of(model.summary) == "attention"
        attention = model.pairing.get("attention", "none") if isinstance(model.pairing, dict) else "none"
        return name_of(model.pairing) not in ("siamese", "conditional") or attention != "none"

    def _has_cells(self) -> bool:
        """Whether two texts are read by recurrent layers."""
        model = self.settings.model
        if name_of(model.pairing) == "decomposable":
            return isinstance(model.pairing, dict) and bool(model.pairing.get("read"))
        return model.encoder in ("rnn", "pyramid")

    def gates(self, asked: Asked) -> Gates:
        """Gates and states while reading; of two texts with a reader each, one after the other. (torch)"""
        from recurra.analysis.gates import gates_of

        if not self.is_paired or len(stacks := self.stacks(asked.model)) < 2:
            return super().gates(asked)
        batch, texts = self.copies(asked)(1), self.texts(asked.example)
        paired = cast("Pairing", cast("Classifier", asked.model).encoders[0])
        found = [
            gates_of(
                stack,
                read,
                lambda: self.predict(asked.model, batch),
                layer=asked.layer,
                direction=asked.direction,
            )
            for stack, read in zip(stacks.values(), paired.read_by_stacks(*texts), strict=True)
        ]
        # What a reader reads before its text, such as a delimiter, is no step of the input.
        own = [(each.values, each.tokens, len(text)) for each, text in zip(found, texts, strict=True)]
        values = {name: np.concatenate([v[name][:, -n:] for v, _, n in own], 1) for name in found[0].values}
        tokens = [token for _, read, n in own for token in read[-n:]]
        title = f"{found[0].title}, of the reader of each text"
        return dataclasses.replace(found[0], tokens=tokens, values=values, title=title)

    def looked(self, asked: Asked) -> View:
        """What the queries of a summary looked at, or one of two texts in the other. (torch)"""
        if self.is_paired:
            return self._looked_at_other(asked)

        from recurra.analysis.picture_attention import picture_attention
        from recurra.analysis.queries import queries
        from recurra.data.pictures import picture_of

        answer = self.answered(asked)
        if "attention" not in answer.detail:
            raise ConfigError(
                f"the run {asked.run} has no attention weights: train with model.summary = attention to get them."
            )
        weights = np.asarray(answer.detail["attention"], np.float64)
        if weights.ndim == 3:
            given = asked.example.picture
            picture = picture_of(given.value, given.place, self.settings.data.image, folder=given.folder)
            names = [f"query {number + 1}" for number in range(len(weights))]
            places = weights.reshape(len(weights), -1)
            return picture_attention(picture, names, places, weights.shape[2], answer.output)
        tokens = answer.detail.get("tokens", [str(number + 1) for number in range(weights.shape[1])])
        if not tokens:
            raise DataError("there is no answer to explain: the input is empty.")
        return queries(answer.output or NOTHING, tokens, weights)  # of several classes, it may be none

    def _looked_at_other(self, asked: Asked) -> View:
        from recurra.analysis.two_texts import Named, two_texts

        answer, data = self.answered(asked), self.settings.data
        if "attention" not in answer.detail:
            raise ConfigError(
                f"the run {asked.run} has no attention weights: train with model.pairing = word_by_word, decomposable, "
                "attentive or impatient to get them."
            )
        first, second = answer.detail["first_tokens"], answer.detail["second_tokens"]
        if not first or not second:
            raise DataError("there is no attention to show: one of the two texts is empty.")
        weights, back = (
            None if each is None else np.asarray(each, np.float64)
            for each in (answer.detail["attention"], answer.detail.get("attention_back"))
        )
        assert weights is not None
        names = Named(str(data.text.column), first), Named(str(data.second), second)
        return two_texts(answer.output or NOTHING, *names, weights, back)

    def contributions(self, asked: Asked) -> View:
        """What speaks for the answer. (torch)"""
        from recurra.analysis.saliency import contributions

        return contributions(self.probe(asked))

    def probe(self, asked: Asked) -> Probe:
        """What speaks for the classes that are answered. (torch)"""
        if not self.reads and not (self.frames is not None and self.stacks(asked.model)):
            what = "a bag of words" if self.frames is None else "frames by convolutions"
            raise ConfigError(f"saliency needs a sequence of steps as input, but {asked.run} reads {what}.")
        model, labels = cast("Classifier", asked.model), self.labels.tokens
        threshold = self.settings.decoding.threshold
        return model.probe(self.copies(asked), self.steps(asked.example), labels, threshold)

    def anatomy(self, model: Any) -> Anatomy:
        from recurra.analysis.anatomy import Anatomy, UnrolledLevel, levels_of

        settings = self.settings.model
        if self.is_paired:
            reader = [level for stack in self.stacks(model).values() for level in levels_of(stack)]
            name = name_of(settings.pairing).replace("_", " ")
            return Anatomy(reader or [UnrolledLevel(name)], answers="whole", summary=f"answer, by {name}")
        if self.is_pictured:
            reader = [UnrolledLevel(f"a picture, convolutions of {' × '.join(map(str, settings.image.widths))}")]
        else:
            stacks = list(self.stacks(model).values())
            reader = levels_of(stacks[0]) if stacks else [UnrolledLevel(" and ".join(settings.encoders))]
        summary = "answer" if settings.encoders == ["bag"] else f"answer, by {name_of(settings.summary)}"
        return Anatomy(reader, is_whole=self.is_pictured, answers="whole", summary=summary)

    def judge(self, examples: Sequence[LabelledSequence]) -> Callable[[LabelledSequence, Prediction], Judgement | None]:
        return self._verdict

    def _verdict(self, example: LabelledSequence, answer: Prediction) -> Judgement | None:
        if self.kind == "targets":
            return None
        places = {label: place for place, label in enumerate(self.labels.tokens)}
        wanted = ",".join(sorted(example.labels, key=lambda label: places.get(label, len(places))))
        return Judgement(answer.output == wanted, f"{wanted} is right")

    def answer_kind(self) -> AnswerKind:
        return "classes" if self.targets is None else "numbers"

    def purpose(self) -> Purpose:
        data = self.settings.data
        wanted = {"label": "its label", "labels": "any number of labels", "targets": "a number"}[self.kind]
        what = "series" if data.frames is not None else "picture" if self.is_pictured else "text"
        does, kind = f"gives a {what} {wanted}", extension(data.files("train")[0])
        if data.frames is not None:
            return SERIES._replace(does=does, asked=f"input.{kind}")
        if self.is_pictured:
            return Purpose(does, PICTURES, "pictures", asked=f"input.{kind}", inputs="paths or arrays")
        if self.is_paired:
            return Purpose(f"gives two texts, {data.text.column} and {data.second}, {wanted}", rows="pairs of texts")
        return Purpose(does, rows="texts")

    def noticed_in_training(self, rows: Any) -> str | None:
        """Numbers with two values are probably classes."""
        if self.targets is None or len(self.targets.mean) > 1:
            return None
        scaled = np.unique([float(rows[number]["targets"].item()) for number in range(min(len(rows), LOOKED_AT))])
        if len(scaled) != 2:
            return None
        low, high = (f"{round(self.targets.unscaled(np.array([value])).item(), 4) + 0.0:g}" for value in scaled)
        name = self._target_names(1)[0]
        return f"'{name}' is {low} or {high} and is learned as a number: for two classes, set data.label = \"{name}\""

    def _target_names(self, width: int) -> tuple[str, ...]:
        """A name for each number that is predicted: its column's, or its place where columns hold lists."""
        names = tuple(self.settings.data.targets or ())
        return names if len(names) == width else tuple(f"{'+'.join(names)}.{number}" for number in range(width))

    def training_differs(self) -> list[str]:
        model = self.settings.model
        kinds = ["image"] if self.settings.data.image.given is not None else model.encoders
        return training_differs(self.settings, *(getattr(model, kind, None) for kind in kinds))

    def described(self) -> str:
        model = self.settings.model
        parts = []
        if self.is_pictured:
            image = self.settings.data.image
            colours = "colour" if image.channels == 3 else "gray"
            parts.append(f"{colours} {'pictures' if image.strokes is None else 'pictures of pen strokes'}")
        elif not self.reads and self.frames is None:
            parts.append(f"texts split into {self.tokenizer.name}")
        elif self.frames is not None:
            parts.append(f"series of {len(self.frames.mean)} numbers per step")
        else:
            what = {"characters": "character", "words": "word"}.get(self.tokenizer.name, "token")
            parts += [f"{len(self.words):,} {what} embeddings of size {model.embedding}"] if model.embedding else []
            if self.spells:
                spelling = cell_in_words(model.characters.cell, bidirectional=True)
                parts.append(layers_in_words(f"character {spelling}", model.characters.hidden))
        if self.is_paired:
            return ", ".join([*parts, self._pairing_in_words(), self._answers_in_words()])
        cell = cell_in_words(model.cell, bidirectional=model.bidirectional, direction=model.direction)
        mix = {"rnn": model.mix}
        stacks = {
            name: f"{layers_in_words(kind, model.hidden, model.layers_of(name), mix.get(name, 'last'))} with "
            f"{summary_in_words(model.summary)}"
            for name, kind in (
                ("rnn", cell),
                ("pyramid", f"pyramidal {cell}"),
                ("transformer", f"{'' if model.bidirectional else 'causal '}Transformer"),
            )
        }
        kinds = {
            **stacks,
            "cnn": f"CNN of widths {', '.join(map(str, model.convolution.widths))} with {model.convolution.filters} "
            f"filters each and {summary_in_words(model.convolution.pooling)}",
            "image": f"{layers_in_words('CNN', model.image.widths)} with {summary_in_words(model.summary)}",
        }
        if self.ngrams is not None:
            kinds["bag"] = f"bag of n-grams ({self.ngrams.rows:,} embeddings of {model.bag.size})"
        members = " and ".join(kinds[name] for name in model.encoders)
        parts.append(f"ensemble of {members}" if len(model.encoders) > 1 else members)
        parts.append(self._answers_in_words())
        return ", ".join(parts)

    def _answers_in_words(self) -> str:
        if self.targets is not None:
            return f"{len(self.targets.mean)} numbers" if len(self.targets.mean) > 1 else "a number"
        named = " named in the text" * (self.settings.model.candidates == "text")
        return f"{len(self.labels)} classes{named}" + (" (multi-label)" if self.kind == "labels" else "")

    def _pairing_in_words(self) -> str:
        """What reads two texts."""
        model, data = self.settings.model, self.settings.data
        name = name_of(model.pairing)
        how = PAIRINGS.get(name, name)
        if self._has_cells():
            cell = cell_in_words(model.cell, bidirectional=model.bidirectional)
            cell = f"pyramidal {cell}" if model.encoder == "pyramid" else cell
            how = f"{layers_in_words(cell, model.hidden, model.layers_of(model.encoder))} with {how}"
        elif name == "siamese":
            how = f"{model.encoder} with {how}"
        if name == "siamese" and model.encoder != "cnn":
            how = f"{how} of {summary_in_words(model.summary)}"
        return f"{how} of two texts ({data.text.column}, {data.second})"


def reads_gaps_in(settings: ClassificationSettings) -> bool:
    """Whether the network over a series is one stack of a cell that reads gaps."""
    model = settings.model
    return model.encoder == "rnn" and name_of(model.non_local) == "none" and cell_reads_gaps(model.cell)
