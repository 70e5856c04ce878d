"""Every setting, a page per task. `recurra config TASK` prints it; a run folder's config.toml holds it complete."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recurra.config.augmentation import Augmentation
    from recurra.config.bag import BagModel
    from recurra.config.classification import (
        ClassificationData,
        ClassificationDecoding,
        ClassificationModel,
        ClassificationSettings,
    )
    from recurra.config.common import Data, Text, Training
    from recurra.config.convolution import ConvolutionModel
    from recurra.config.forecasting import (
        ForecastingData,
        ForecastingDecoding,
        ForecastingEvaluation,
        ForecastingModel,
        ForecastingSettings,
    )
    from recurra.config.image import ImageData
    from recurra.config.image_model import ImageModel
    from recurra.config.language_model import (
        LanguageModelData,
        LanguageModelDecoder,
        LanguageModelDecoding,
        LanguageModelEvaluation,
        LanguageModelModel,
        LanguageModelReading,
        LanguageModelSettings,
    )
    from recurra.config.question_answering import (
        QuestionAnsweringData,
        QuestionAnsweringModel,
        QuestionAnsweringSettings,
    )
    from recurra.config.seq2seq import (
        Seq2SeqData,
        Seq2SeqDecoding,
        Seq2SeqEvaluation,
        Seq2SeqSettings,
        Seq2SeqTraining,
    )
    from recurra.config.seq2seq_model import EncoderModel, Seq2SeqModel
    from recurra.config.tagging import SpellingModel, TaggingData, TaggingModel, TaggingSettings
    from recurra.config.transformer import TransformerModel
    from recurra.config.vec2seq import GivenModel, Vec2SeqData, Vec2SeqModel, Vec2SeqSettings
    from recurra.config.writer_model import DecoderModel, WriterModel

__all__ = [
    "Augmentation",
    "BagModel",
    "ClassificationData",
    "ClassificationDecoding",
    "ClassificationModel",
    "ClassificationSettings",
    "ConvolutionModel",
    "Data",
    "DecoderModel",
    "EncoderModel",
    "ForecastingData",
    "ForecastingDecoding",
    "ForecastingEvaluation",
    "ForecastingModel",
    "ForecastingSettings",
    "GivenModel",
    "ImageData",
    "ImageModel",
    "LanguageModelData",
    "LanguageModelDecoder",
    "LanguageModelDecoding",
    "LanguageModelEvaluation",
    "LanguageModelModel",
    "LanguageModelReading",
    "LanguageModelSettings",
    "QuestionAnsweringData",
    "QuestionAnsweringModel",
    "QuestionAnsweringSettings",
    "Seq2SeqData",
    "Seq2SeqDecoding",
    "Seq2SeqEvaluation",
    "Seq2SeqModel",
    "Seq2SeqSettings",
    "Seq2SeqTraining",
    "SpellingModel",
    "TaggingData",
    "TaggingModel",
    "TaggingSettings",
    "Text",
    "Training",
    "TransformerModel",
    "Vec2SeqData",
    "Vec2SeqModel",
    "Vec2SeqSettings",
    "WriterModel",
]

# Imported when first touched: a task needs its own page alone, and all of them take longer than all else that an
# exported model imports.
_HOMES = {
    **dict.fromkeys(("Augmentation",), "augmentation"),
    **dict.fromkeys(("BagModel",), "bag"),
    **dict.fromkeys(
        (
            "ClassificationData",
            "ClassificationDecoding",
            "ClassificationModel",
            "ClassificationSettings",
        ),
        "classification",
    ),
    **dict.fromkeys(
        (
            "Data",
            "Text",
            "Training",
        ),
        "common",
    ),
    **dict.fromkeys(("ConvolutionModel",), "convolution"),
    **dict.fromkeys(
        (
            "ForecastingData",
            "ForecastingDecoding",
            "ForecastingEvaluation",
            "ForecastingModel",
            "ForecastingSettings",
        ),
        "forecasting",
    ),
    **dict.fromkeys(("ImageData",), "image"),
    **dict.fromkeys(("ImageModel",), "image_model"),
    **dict.fromkeys(
        (
            "LanguageModelData",
            "LanguageModelDecoder",
            "LanguageModelDecoding",
            "LanguageModelEvaluation",
            "LanguageModelModel",
            "LanguageModelReading",
            "LanguageModelSettings",
        ),
        "language_model",
    ),
    **dict.fromkeys(
        (
            "QuestionAnsweringData",
            "QuestionAnsweringModel",
            "QuestionAnsweringSettings",
        ),
        "question_answering",
    ),
    **dict.fromkeys(
        (
            "Seq2SeqData",
            "Seq2SeqDecoding",
            "Seq2SeqEvaluation",
            "Seq2SeqSettings",
            "Seq2SeqTraining",
        ),
        "seq2seq",
    ),
    **dict.fromkeys(
        (
            "EncoderModel",
            "Seq2SeqModel",
        ),
        "seq2seq_model",
    ),
    **dict.fromkeys(
        (
            "SpellingModel",
            "TaggingData",
            "TaggingModel",
            "TaggingSettings",
        ),
        "tagging",
    ),
    **dict.fromkeys(("TransformerModel",), "transformer"),
    **dict.fromkeys(
        (
            "GivenModel",
            "Vec2SeqData",
            "Vec2SeqModel",
            "Vec2SeqSettings",
        ),
        "vec2seq",
    ),
    **dict.fromkeys(
        (
            "DecoderModel",
            "WriterModel",
        ),
        "writer_model",
    ),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'recurra.config' has no attribute '{name}'")
    return getattr(importlib.import_module(f"recurra.config.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
