"""BeamTree: a search step by step, what was kept, what was dropped and what was finished."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, ClassVar, NamedTuple, Self

from recurra.errors import DataError
from recurra.text.visible import without_controls
from recurra.views.scene import Box, Colour, Label, Path, Scene, SceneShape, width_of
from recurra.views.view import WIDTH, View, captioned, minus

_EDGE, _LINE, _ROW, _BOX, _GAP = 12.0, 22.0, 38.0, 30.0, 44.0  # pixels: around, a line, a row, a node, between columns

_SCRIPT = """
for (const tree of document.querySelectorAll('.beam-tree')) {
  const parts = [...tree.querySelectorAll('[data-step]')];
  const said = [...tree.querySelectorAll('.beam-steps li')];
  const slider = tree.querySelector('input'), play = tree.querySelector('.play');
  const note = tree.querySelector('output');
  let timer = null;
  const show = step => {
    slider.value = step;
    for (const part of parts) part.style.visibility = Number(part.dataset.step) < step ? '' : 'hidden';
    note.textContent = step ? said[step - 1].textContent : 'Nothing is written yet.';
  };
  const stop = () => { clearInterval(timer); timer = null; play.textContent = '▶ play'; };
  const move = by => { stop(); show(Math.min(said.length, Math.max(0, Number(slider.value) + by))); };
  play.onclick = () => {
    if (timer) return stop();
    if (Number(slider.value) === said.length) show(0);
    play.textContent = '❚❚ stop';
    timer = setInterval(() => {
      show(Number(slider.value) + 1);
      if (Number(slider.value) >= said.length) stop();
    }, 900);
  };
  tree.querySelector('.back').onclick = () => move(-1);
  tree.querySelector('.on').onclick = () => move(1);
  slider.oninput = () => { stop(); show(Number(slider.value)); };
  tree.querySelector('.beam-controls').hidden = false;
  show(said.length);
}
"""

_STYLE = """<style>
.beam-controls{display:flex;flex-wrap:wrap;gap:.5rem;align-items:center;margin:.75rem 0}
.beam-controls[hidden]{display:none}
.beam-controls button{font:inherit;padding:.25rem .7rem;border:1px solid var(--line);border-radius:.4rem;
background:var(--panel);color:var(--ink);cursor:pointer;min-width:2.75rem}
.beam-controls input{flex:1 1 8rem;max-width:20rem}
.beam-tree output{display:block;min-height:3em;color:var(--soft);overflow-wrap:anywhere}
</style>"""

_ABOUT = (
    "Each column is a step, with the best hypothesis at the top: kept hypotheses continue, those with a double "
    "border are finished, dashed ones were dropped. The number is the score of the hypothesis so far; the path to "
    "the answer is orange and bold. Point at a box for its text."
)


class Node(NamedTuple):
    """One token after a hypothesis."""

    place: int  # in its step, by which later steps name it
    parent: int | None  # its place in the step before
    token: str
    probability: float  # of the token after its parent
    score: float  # of the whole so far, as if it ended here
    kept: bool
    finished: bool
    answer: int | None  # on the way to which answer: 1 is the best
    text: str  # the tokens up to here


class Step(NamedTuple):
    """How many hypotheses a step kept and weighed, and those that are shown, best first."""

    kept: int
    weighed: int
    nodes: Sequence[Node]


class End(NamedTuple):
    """Where an answer ends."""

    step: int
    place: int


@dataclasses.dataclass(frozen=True, eq=False)
class BeamTree(View):
    """The steps of a search, and where its answers end, the best first.

    >>> first = Step(1, 2, [Node(0, None, "a", 0.6, -0.5, True, False, 1, "a")])
    >>> end = Step(1, 1, [Node(0, 0, "∎", 0.6, -1.0, True, True, 1, "a ∎")])
    >>> BeamTree([first, end], [End(1, 0)]).svg().count("<title>")
    3
    """

    kind: ClassVar[str] = "tree"
    script: ClassVar[str] = _SCRIPT

    steps: Sequence[Step]
    answers: Sequence[End]
    about: str = dataclasses.field(default=_ABOUT, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.steps or not self.answers:
            raise DataError("the search made no steps, so there is no tree to show.")
        rounded = [
            step._replace(
                nodes=[
                    node._replace(probability=round(node.probability, 5), score=round(node.score, 5))
                    for node in step.nodes
                ]
            )
            for step in self.steps
        ]
        object.__setattr__(self, "steps", rounded)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The view whose json() was given."""
        steps = [
            Step(step["kept"], step["weighed"], [Node(**node) for node in step["nodes"]]) for step in given["steps"]
        ]
        return super().from_json({**given, "steps": steps, "answers": [End(**end) for end in given["answers"]]})

    def text(self) -> str:
        """For the terminal: step by step, what was kept (●), finished (■) and dropped (·), with scores.

        >>> first = Step(1, 2, [Node(0, None, "a", 0.6, -0.5, True, False, 1, "a")])
        >>> end = Step(1, 1, [Node(0, 0, "∎", 0.6, -1.0, True, True, 1, "a ∎")])
        >>> print(BeamTree([first, end], [End(1, 0)], caption="A beam of width 1").text())
        A beam of width 1
        step 1: keeps 1 of 2
          ●  -0.500 a
          ·         and 1 more that were dropped
        step 2: keeps 1 of 1
          ■  -1.000 a ∎   answer 1
        """
        lines = []
        ends = {(end.step, end.place): number for number, end in enumerate(self.answers, 1)}
        for number, (kept, weighed, nodes) in enumerate(self.steps):
            lines.append(f"step {number + 1}: keeps {kept} of {weighed}")
            for node in nodes:
                mark = "■" if node.finished else "●" if node.kept else "·"
                which = f"   answer {ends[number, node.place]}" if (number, node.place) in ends else ""
                lines.append(f"  {mark} {node.score:>7.3f} {without_controls(node.text)}{which}")
            if weighed > len(nodes):
                lines.append(f"  ·         and {weighed - len(nodes)} more that were dropped")
        return captioned(self.caption, *lines)

    def scene(self, width: float = WIDTH) -> Scene:
        """A column for each step, the best above; what was dropped stands below, dashed."""
        caption = without_controls(self.caption)
        shapes: list[SceneShape] = [Label(caption, _EDGE, _EDGE + 12, bold=True)] if caption else []
        top = _EDGE + (_LINE if caption else 0) + _LINE
        left, bottom, behind = _EDGE, top, dict[int, tuple[float, float]]()
        lines, boxes = list[SceneShape](), list[SceneShape]()
        for number, (_, weighed, nodes) in enumerate(self.steps):
            wide = max(52.0, *(width_of(node.token) + 16 for node in nodes))
            boxes.append(Label(f"{number + 1}", left + wide / 2, top - 10, "middle", 11, colour="soft", step=number))
            places = dict[int, tuple[float, float]]()
            first_dropped = True
            y = top
            for node in nodes:
                if not node.kept and first_dropped:
                    y, first_dropped = y + 8, False
                boxes += _node(node, left, y, wide, number)
                if node.parent is not None:
                    lines.append(_edge(node, behind[node.parent], (left, y + _BOX / 2), number))
                places[node.place] = (left + wide, y + _BOX / 2)
                y += _ROW
            if weighed > len(nodes):
                boxes.append(Label(f"+ {weighed - len(nodes)}", left + 8, y + 10, size=11, colour="soft", step=number))
                y += _LINE
            behind = places
            left += wide + _GAP
            bottom = max(bottom, y)
        right = max(left - _GAP, _EDGE + width_of(caption))
        said = "; ".join(f"step {number} keeps {_kept(step.nodes)}" for number, step in enumerate(self.steps, 1))
        return Scene(right + _EDGE, bottom + _EDGE, [*shapes, *lines, *boxes], f"{caption or 'A beam'}: {said}")

    def figure(self) -> str:
        """The tree with controls, which the script brings to life, and every step in words."""
        said = []
        for number, (kept, weighed, nodes) in enumerate(self.steps, 1):
            each = ", ".join(
                f"{node.text} ({node.score:.2f}{', finished' if node.finished else ''})" for node in nodes if node.kept
            )
            said.append(
                f"<li>Step {number} keeps {kept} of {weighed}: {escape(without_controls(each) or 'nothing')}</li>"
            )
        last = len(said)
        return (
            f'{_STYLE}<div class="beam-tree"><div class="beam-controls" hidden>'
            '<button class="back" type="button" aria-label="one step back">◀</button>'
            '<button class="play" type="button">▶ play</button>'
            '<button class="on" type="button" aria-label="one step on">▶|</button>'
            f'<input type="range" min="0" max="{last}" value="{last}" aria-label="step"></div>'
            '<output aria-live="polite"></output>'
            f'<figure style="overflow:auto">{self.svg()}</figure>'
            '<details><summary>Step by step in words</summary><ol class="beam-steps" style="list-style:none;padding:0">'
            f"{''.join(said)}</ol></details></div>"
        )


def _kept(nodes: Iterable[Node]) -> str:
    return ", ".join(node.text for node in nodes if node.kept) or "nothing"


def _edge(node: Node, start: tuple[float, float], end: tuple[float, float], step: int) -> Path:
    best = node.answer == 1
    colour: Colour = "less" if best else "more" if node.kept else "line"
    thick = 3 if best else 1.5 if node.kept else 1
    return Path([start, end], colour, thick, () if node.kept else (3, 3), curved=True, step=step)


def _node(node: Node, x: float, y: float, wide: float, step: int) -> Iterable[SceneShape]:
    what = "finished" if node.finished else "kept" if node.kept else "dropped"
    said = f"{node.text}: {what}, score {node.score:.3f}, p of the last token {node.probability:.3f}"
    outline: Colour = "less" if node.answer == 1 else "more" if node.kept else "line"
    strength = (0.35 if node.finished else 0.14) if node.kept else 0.0
    fill: Colour = "less" if node.answer == 1 else "more"
    yield Box(x, y, wide, _BOX, fill, strength, said, outline, dashed=not node.kept, step=step)
    if node.finished:  # a second line around it, which can be told without colours
        yield Box(x + 3, y + 3, wide - 6, _BOX - 6, fill, 0.0, said, outline, step=step)
    colour: Colour = "ink" if node.kept else "soft"
    yield Label(node.token, x + wide / 2, y + 14, "middle", 13, bold=node.answer == 1, colour=colour, step=step)
    yield Label(minus(f"{node.score:.2f}"), x + wide / 2, y + 25, "middle", 9.5, colour="soft", step=step)
