"""The pictures of a report: how a finished model answered a few validation examples."""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from torch import nn

from recurra.data.store import Encoded
from recurra.errors import ConfigError, RecurraError
from recurra.reports.few_examples import LONGEST, Chosen, few
from recurra.scoring.pair_scores import NOTHING
from recurra.tasks.task import Viewer
from recurra.text.visible import without_controls
from recurra.training.trained import Trained
from recurra.views.view import View

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
    names = [name for name, viewer in model.task.viewers().items() if viewer.telling]
    if not names or not examples or most < 1:
        return Pictures()
    try:
        chosen = few(model.task, examples, rows, outputs, most)
        return _drawn(model, chosen, names)
    except Exception as error:  # a finished run does not fail for want of a picture
        return Pictures(f'<p class="soft">No examples can be shown: {escape(_reason(error))}</p>')


def _drawn(model: Trained, chosen: Sequence[Chosen], names: Sequence[str]) -> Pictures:
    if not chosen:
        return Pictures(
            f'<p class="soft">No validation example can be shown here: they have more than {LONGEST} elements, or are '
            f"too short to forecast their end. <code>recurra explain {escape(str(model.folder))} INPUT --out page.html"
            "</code> shows one.</p>"
        )
    drawn = _Drawn(model, time.monotonic() + SECONDS)
    pieces = [_STYLE, _ABOUT, *(_example(drawn, number, each, names) for number, each in enumerate(chosen))]
    said = "".join(f"<li>{escape(each)}</li>" for each in dict.fromkeys(drawn.missing))
    if said:
        pieces.append(f'<p class="soft">Not shown:</p><ul class="soft">{said}</ul>')
    return Pictures("\n".join(pieces), "\n".join(dict.fromkeys(filter(None, drawn.scripts))))


class _Drawn:
    """What has been drawn so far, and what was not."""

    def __init__(self, model: Trained, until: float) -> None:
        self.model = model
        self.until = until
        self.left = BYTES
        self.work = WORK
        self.weights = _weights(model.model)
        self.viewers = model.task.viewers()
        self.scripts: list[str] = []
        self.missing: list[str] = []

    def view(self, name: str, chosen: Chosen) -> tuple[View, str] | None:
        """A view with its piece of the page; None where there is none, and why that is."""
        viewer = self.viewers[name]
        if chosen.length > viewer.longest:
            chosen = self._shortened(chosen, viewer.longest)
        why = self._too_much(viewer, chosen)
        if why is None:
            try:
                found = viewer.make(self.model.asked(chosen.example))
                piece = found.html()
            except ConfigError:  # by its settings, the model has no such view
                return None
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

    def _shortened(self, chosen: Chosen, longest: int) -> Chosen:
        """A beginning of the example, where its task can cut it; what is written is not made shorter by that."""
        task = self.model.task
        shorter = task.shortened(chosen.example, longest)
        if shorter is chosen.example:
            return chosen
        return chosen._replace(example=shorter, length=len(task.steps(shorter)))

    def _too_much(self, viewer: Viewer, chosen: Chosen) -> str | None:
        if chosen.length > viewer.longest:
            return f"the example has {chosen.length} elements, too many for this page ({chosen.place})"
        if time.monotonic() > self.until:
            return "skipped, because the others took long"
        if viewer.work is not None:
            self.work -= self.weights * viewer.work(chosen.length)
            if self.work < 0:
                return "skipped, because it would take long for a model of this size"
        return None


def _example(drawn: _Drawn, number: int, chosen: Chosen, names: Sequence[str]) -> str:
    """An example: what was read and answered, and views of it; those of the first are open, layers are of it alone."""
    pieces = [
        f"<h3>{escape(_title(chosen))}</h3>",
        f'<p class="soft">{escape(_about(chosen, drawn.model.task.purpose().elements))}</p>',
    ]
    for place, name in enumerate(each for each in names if number == 0 or not drawn.viewers[each].layered):
        found = drawn.view(name, chosen)
        if found is not None:
            view, piece = found
            way = " open" if number == 0 or place == 0 else ""
            pieces.append(f"<details{way}><summary>{escape(view.title)}</summary>{piece}</details>")
    return f'<div class="example">{"".join(pieces)}</div>'


def _title(chosen: Chosen) -> str:
    if chosen.answer is None:
        return chosen.place
    said = chosen.answer.output if chosen.answer.output.strip() else NOTHING
    return f"{_clipped(chosen.answer.input or chosen.place)} → {_clipped(said)}"


def _about(chosen: Chosen, elements: str) -> str:
    said = chosen.place if chosen.answer is not None else f"{chosen.length} {elements}"
    if chosen.verdict is None:
        return said
    return f"{said}: right" if chosen.verdict.is_right else f"{said}: wrong, {_clipped(chosen.verdict.mistakes)}"


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
