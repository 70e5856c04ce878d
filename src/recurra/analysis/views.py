"""What there is to see of a model's answer to one input, each a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from recurra.analysis import beam_tree, gates, probabilities, saliency
from recurra.analysis.alignment import alignment_of
from recurra.analysis.picture_attention import picture_attention, picture_attention_of
from recurra.analysis.probes import probe_of
from recurra.analysis.queries import queries
from recurra.analysis.saliency import Method
from recurra.data.pictures import picture_of
from recurra.errors import ConfigError, DataError
from recurra.scoring.pair_scores import NOTHING
from recurra.settings import name_of
from recurra.tasks.classification import Classification
from recurra.tasks.language_model import LanguageModel
from recurra.tasks.seq2seq import Seq2Seq
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import Prediction, Task
from recurra.tasks.vec2seq import Vec2Seq
from recurra.training.trained import Trained
from recurra.views.view import View


class Asked(NamedTuple):
    """What is to be explained, and how."""

    model: Trained
    example: Any
    given: str  # as it was typed
    layer: int | None = None
    direction: str | None = None
    best: int = 1


def attention(asked: Asked) -> View:
    """Where the model looked."""
    task = asked.model.task
    if isinstance(task, Classification):
        return _pooling(asked, task)
    if isinstance(task, Vec2Seq) and task.settings.data.vector is not None:
        raise ConfigError(
            f"the run {asked.model.folder} is given one vector at a time, which has no places to look at: models of "
            f"pictures and of features of places have attention to show."
        )
    if not isinstance(task, Seq2Seq | Vec2Seq):
        raise ConfigError(
            f"the run {asked.model.folder} is a {task.name} model, which has no attention to show: seq2seq, vec2seq "
            f"and classification with model.summary = attention have it."
        )
    answer = _looked(asked)
    if answer.detail.get("columns") is None:
        title = f"{answer.input} → {answer.output}" if isinstance(task, Seq2Seq) else answer.output
        return alignment_of(answer, title)
    assert isinstance(task, Vec2Seq), "a source of words stands in a row"
    picture = None
    if asked.example.picture is not None:
        picture = picture_of(asked.example.picture, asked.given, task.settings.data.image)
    return picture_attention_of(answer, picture, answer.output)


def _looked(asked: Asked) -> Prediction:
    """The answer, with where the model looked."""
    settings = asked.model.task.settings
    if name_of(settings.model.attention) == "none":
        raise ConfigError(
            f"the run {asked.model.folder} was trained with model.attention = none, so it looked nowhere: train one "
            f"without that setting to see where it looks."
        )
    [answer] = asked.model.answers([asked.example], detail=True)
    every = [answer.detail, *answer.alternatives]
    if len(every) < asked.best:
        raise DataError(f"--best {asked.best}: the search found {len(every)} answer{'s' * (len(every) != 1)}.")
    if asked.best == 1:
        return answer
    chosen = every[asked.best - 1]
    detail = {**chosen, "source_tokens": answer.detail.get("source_tokens")}
    return answer._replace(
        output=chosen["output"],
        score=chosen["score"],
        detail={name: value for name, value in detail.items() if value is not None},
    )


def _pooling(asked: Asked, task: Classification) -> View:
    """What the queries of a summary looked at."""
    [answer] = asked.model.answers([asked.example], detail=True)
    if "attention" not in answer.detail:
        raise ConfigError(
            f"the run {asked.model.folder} does not weigh what it reads by attention: model.summary = attention does."
        )
    weights = np.asarray(answer.detail["attention"], np.float64)
    names = [f"query {number + 1}" for number in range(len(weights))]
    if weights.ndim == 3:
        places = weights.reshape(len(weights), -1)
        given = asked.example.picture
        picture = picture_of(given.value, given.place, task.settings.data.image, folder=given.folder)
        return picture_attention(picture, names, places, weights.shape[2], answer.output)
    tokens = answer.detail.get("tokens", [str(number + 1) for number in range(weights.shape[1])])
    if not tokens:
        raise DataError("there is no answer to explain: nothing was read.")
    said = answer.output or NOTHING  # of several classes, it may be none
    return queries(said, tokens, weights)


def sure(asked: Asked) -> View:
    """How probable each token was."""
    return probabilities.probabilities_of(asked.model, asked.example, best=asked.best).view()


def mattered(asked: Asked) -> View:
    """What speaks for the answer."""
    probe = probe_of(asked.model, asked.example, best=asked.best)
    methods: tuple[Method, Method] = ("integrated", "gradient")
    return saliency.view(*(saliency.saliency(probe, method) for method in methods))


def searched(asked: Asked) -> View:
    """The beam, step by step."""
    return beam_tree.tree_of(asked.model, asked.example)


def inside(asked: Asked) -> View:
    """Gates and states while it read."""
    return gates.gates_of(asked.model, asked.example, layer=asked.layer, direction=asked.direction).view()


VIEWS: dict[str, Callable[[Asked], View]] = {
    "attention": attention,
    "probabilities": sure,
    "saliency": mattered,
    "tree": searched,
    "gates": inside,
}
"""By the names that --show knows, the most telling first."""


def has_attention(task: Task[Any, Any, Any]) -> bool:
    """Whether the settings of a task let its model look: at tokens or at places, not at one vector."""
    model, data = task.settings.model, task.settings.data
    if name_of(getattr(model, "summary", "none")) == "attention":
        return True
    return name_of(getattr(model, "attention", "none")) != "none" and getattr(data, "vector", None) is None


def possible(task: Task[Any, Any, Any]) -> list[str]:
    """The views that a task may have, the most telling first; whether a run has them, the input decides too."""
    writes = isinstance(task, Seq2Seq | Vec2Seq)
    is_seen = isinstance(task, Vec2Seq) or (isinstance(task, Classification) and task.is_pictured)  # not read in steps
    of = {
        "attention": writes or isinstance(task, Classification),
        "probabilities": writes or isinstance(task, LanguageModel),
        "saliency": isinstance(task, Classification | Tagging | LanguageModel | Seq2Seq) and not is_seen,
        "tree": writes,
        "gates": not is_seen,
    }
    return sorted(
        (name for name in VIEWS if of[name]), key=lambda name: name == "attention" and not has_attention(task)
    )
