"""Every setting, a page per task. `recurra config TASK` prints it; a run folder's config.toml holds it complete."""

from __future__ import annotations

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
