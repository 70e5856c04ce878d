"""The pictures of a report: how a finished model answered a few validation examples."""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from torch import nn

from recurra.analysis.forecasts import forecasts_of
from recurra.analysis.gates import stack_of
from recurra.analysis.views import VIEWS, Asked, has_attention
from recurra.data.store import Encoded
from recurra.errors import ConfigError, RecurraError
from recurra.reports.few_examples import LONGEST, Chosen, few
from recurra.scoring.pair_scores import NOTHING
from recurra.tasks.classification import Classification
from recurra.tasks.forecasting import Forecasting
from recurra.tasks.language_model import NEWLINE, LanguageModel
from recurra.tasks.seq2seq import Seq2Seq
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import Task
from recurra.tasks.to_sequence import ToSequence
from recurra.text.visible import without_controls
from recurra.training.trained import Trained
from recurra.views.view import View

STEPS = {"attention": 100, "probabilities": 200, "saliency": 30, "tree": 30, "gates": 60}
"""So many elements an example may have, that a picture of it fits a page."""

WORK = 600_000_000
"""Weights times elements times answers, of all examples: beyond, saliency, which asks many times, would take long."""

SECONDS = 10.0
"""After so long no further picture is begun: a finished run is not kept waiting."""

BYTES = 1_200_000
"""A report is sent around: of more pictures than this, the last are left out."""

CLIPPED = 300
"""Letters of an input or an answer that stand above its pictures."""

_STYLE = """<style>
.example{margin:1.5rem 0 2rem;padding-top:.25rem;border-top:1px solid var(--line)}
.example h3{margin:.75rem 0 .25rem;font-size:1.05rem;overflow-wrap:anywhere}
.example>details>summary{font-weight:600}
</style>"""


_ABOUT = (
    '<p class="soft">Examples of usual length, right and wrong ones where that can be told. For any other input, '
    "<code>recurra explain RUN INPUT --out page.html</code> shows the same and more.</p>"
)


class Pictures(NamedTuple):
    """A piece of a page, and the script that it needs."""

    html: str = ""
    script: str = ""


def pictures(
    model: Trained, examples: Sequence[Any], rows: Sequence[Encoded], outputs: Sequence[Any], *, most: int = 3
) -> Pictures:
    """The most telling views of a model's answers to at most so many of the examples; nothing where there are none.

    `rows` are the examples encoded, `outputs` what the model found for them. What cannot be drawn is said in a
    sentence: a picture is no reason for a finished run to fail.
    """
    names = [name for name in telling(model.task) if name != "gates" or _has_gates(model)]
    if not names or not examples or most < 1:
        return Pictures()
    if names == ["forecasts"]:
        return _forecasts(model, examples, most)
    try:
        chosen = few(model.task, examples, rows, outputs, most)
        return _drawn(model, chosen, names)
    except Exception as error:  # a finished run does not fail for want of a picture
        return Pictures(f'<p class="soft">No examples can be shown: {escape(_reason(error))}</p>')


def _drawn(model: Trained, chosen: Sequence[Chosen], names: Sequence[str]) -> Pictures:
    if not chosen:
        return Pictures(
            f'<p class="soft">No validation example is read and answered in {LONGEST} elements, which this page has '
            f"room for: <code>recurra explain {escape(str(model.folder))} INPUT --out page.html</code> shows one.</p>"
        )
    drawn = _Drawn(model, time.monotonic() + SECONDS)
    pieces = [_STYLE, _ABOUT, *(_example(drawn, number, each, names) for number, each in enumerate(chosen))]
    said = "".join(f"<li>{escape(each)}</li>" for each in dict.fromkeys(drawn.missing))
    if said:
        pieces.append(f'<p class="soft">Not shown:</p><ul class="soft">{said}</ul>')
    return Pictures("\n".join(pieces), "\n".join(dict.fromkeys(filter(None, drawn.scripts))))


def telling(task: Task[Any, Any, Any]) -> list[str]:
    """The views that tell most of a task's answers, by their names."""
    if isinstance(task, ToSequence):
        first = ["attention"] if has_attention(task) else ["saliency"] * isinstance(task, Seq2Seq)
        is_beam = task.settings.decoding.search == "beam"
        return [*first, "probabilities", *["tree"] * is_beam, *["gates"] * isinstance(task, Seq2Seq)]
    if isinstance(task, Classification):
        is_sequence = task.reads or task.frames is not None
        return [*["attention"] * has_attention(task), *["saliency", "gates"] * is_sequence]
    if isinstance(task, Tagging):
        return ["saliency", "gates"]
    if isinstance(task, Forecasting):
        return [] if task.gives_coins else ["forecasts"]
    return ["probabilities", "gates"] if isinstance(task, LanguageModel) else []


def _has_gates(model: Trained) -> bool:
    try:
        stack_of(model)
    except ConfigError:  # it reads by convolutions, or with a Transformer
        return False
    return True


def _forecasts(model: Trained, series: Sequence[Any], most: int) -> Pictures:
    try:
        found = forecasts_of(model, series, most=most)
        pieces = [f'<div class="example">{each.view().html()}</div>' for each in found]
    except Exception as error:
        return Pictures(f'<p class="soft">No forecasts can be shown: {escape(_reason(error))}</p>')
    if not pieces:
        return Pictures('<p class="soft">No series is long enough to hide its end and forecast it.</p>')
    return Pictures("\n".join([_STYLE, *pieces]))


class _Drawn:
    """What has been drawn so far, and what was not."""

    def __init__(self, model: Trained, until: float) -> None:
        self.model = model
        self.until = until
        self.left = BYTES
        self.work = WORK
        self.weights = _weights(model.model)
        self.scripts: list[str] = []
        self.missing: list[str] = []

    def view(self, name: str, chosen: Chosen) -> tuple[View, str] | None:
        """A view with its piece of the page; None where there is none, and why that is."""
        why = self._too_much(name, chosen)
        if why is None:
            try:
                found = VIEWS[name](Asked(self.model, chosen.example, chosen.place))
                piece = found.html()
            except Exception as error:
                why = _reason(error)
            else:
                size = len(piece.encode("utf-8", "replace"))
                if size <= self.left:
                    self.left -= size
                    self.scripts.append(found.script)
                    return found, piece
                why = "the page would be too large"
        self.missing.append(f"{name}: {why}")
        return None

    def _too_much(self, name: str, chosen: Chosen) -> str | None:
        if chosen.length > STEPS[name]:
            return f"{chosen.length} elements are too many for this page ({chosen.place})"
        if time.monotonic() > self.until:
            return "the others took long"
        if name == "saliency":
            answers = 1 if isinstance(self.model.task, Classification) else chosen.length
            self.work -= self.weights * chosen.length * answers
            if self.work < 0:
                return "it would take long for a model of this size"
        return None


def _example(drawn: _Drawn, number: int, chosen: Chosen, names: Sequence[str]) -> str:
    """An example: what was read and answered, and views of it; those of the first are open, gates are of it alone."""
    pieces = [f"<h3>{escape(_title(chosen))}</h3>", f'<p class="soft">{escape(_about(chosen))}</p>']
    for place, name in enumerate(each for each in names if number == 0 or each != "gates"):
        found = drawn.view(name, _first_line(drawn.model, chosen) if name == "gates" else chosen)
        if found is not None:
            view, piece = found
            way = " open" if number == 0 or place == 0 else ""
            pieces.append(f"<details{way}><summary>{escape(view.title)}</summary>{piece}</details>")
    return f'<div class="example">{"".join(pieces)}</div>'


def _first_line(model: Trained, chosen: Chosen) -> Chosen:
    """Of a text, so much that the gates at each of its tokens can be told apart."""
    if not isinstance(model.task, LanguageModel):
        return chosen
    line = chosen.example.text.split(NEWLINE)[0]
    return chosen._replace(example=chosen.example._replace(text=line), length=len(model.task.ids(line)))


def _title(chosen: Chosen) -> str:
    if chosen.answer is None:
        return chosen.place
    said = chosen.answer.output if chosen.answer.output.strip() else NOTHING
    return f"{_clipped(chosen.answer.input or chosen.place)} → {_clipped(said)}"


def _about(chosen: Chosen) -> str:
    said = chosen.place if chosen.answer is not None else f"{chosen.length} tokens"
    if chosen.is_right is None:
        return said
    return f"{said}: right" if chosen.is_right else f"{said}: wrong, {_clipped(_mistakes(chosen))}"


def _mistakes(chosen: Chosen) -> str:
    """What is right instead; of tags, where they differ."""
    assert chosen.answer is not None, "it is wrong"
    wanted, tokens = chosen.wanted or "", getattr(chosen.example, "tokens", ())
    if not tokens:
        return f"{wanted} is right"
    found = []
    for number, (said, right) in enumerate(zip(chosen.answer.output.split("\t"), wanted.split("\t"), strict=True)):
        others, tags = said.split(" "), right.split(" ")
        if number < len(chosen.example.tags) and len(tokens) == len(others) == len(tags):
            found += [
                f"{token} is {tag}" for token, other, tag in zip(tokens, others, tags, strict=True) if tag != other
            ]
        elif said != right:  # of the whole
            found.append(f"{right} is right")
    return ", ".join(found)


def _clipped(text: str) -> str:
    shown = without_controls(text.replace("\t", " · "))
    return shown if len(shown) <= CLIPPED else f"{shown[:CLIPPED]} …"


def _reason(error: Exception) -> str:
    """Why something was not drawn. What nobody has foreseen is said by its name."""
    if isinstance(error, RecurraError):
        return str(error)
    return (
        f"it could not be drawn ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason'})"
    )


def _weights(model: nn.Module) -> int:
    """Weights that take part in each step: of a table of vectors, one row does."""
    return sum(
        weight.numel()
        for module in model.modules()
        if not isinstance(module, nn.Embedding)
        for weight in module.parameters(recurse=False)
    )
