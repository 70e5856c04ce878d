"""The tree of a beam search as a picture, and as a page that plays it step by step."""

from __future__ import annotations

import os
from collections.abc import Iterable
from html import escape

from recurra.analysis import scene
from recurra.analysis.beam_tree import BeamTree, Node
from recurra.analysis.page import page
from recurra.analysis.scene import Box, Path, Scene, Shape, Words, width_of
from recurra.text.visible import without_controls

_EDGE, _LINE, _ROW, _BOX, _GAP = 12.0, 22.0, 38.0, 30.0, 44.0  # pixels: around, a line, a row, a node, between columns


def _scene(tree: BeamTree) -> Scene:
    """A column for each step, the best above; what was dropped stands below, dashed."""
    shapes: list[Shape] = []
    title = without_controls(tree.title)
    if title:
        shapes.append(Words(title, _EDGE, _EDGE + 12, bold=True))
    top = _EDGE + (_LINE if title else 0) + _LINE
    left, bottom, behind = _EDGE, top, dict[int, tuple[float, float]]()
    lines, boxes = list[Shape](), list[Shape]()
    for number, nodes in enumerate(tree.steps):
        wide = max(52.0, *(width_of(node.token) + 16 for node in nodes))
        _, weighed = tree.count(number)
        boxes.append(Words(f"{number + 1}", left + wide / 2, top - 10, "middle", size=11, colour="soft", step=number))
        places = dict[int, tuple[float, float]]()
        first_dropped = True
        y = top
        for node in nodes:
            if not node.kept and first_dropped:
                y, first_dropped = y + 8, False
            boxes += _node(node, left, y, wide, number)
            if node.parent is not None:
                start = behind[node.parent]
                lines.append(_edge(node, start, (left, y + _BOX / 2), number))
            places[node.place] = (left + wide, y + _BOX / 2)
            y += _ROW
        if weighed > len(nodes):
            boxes.append(Words(f"+ {weighed - len(nodes)}", left + 8, y + 10, size=11, colour="soft", step=number))
            y += _LINE
        behind = places
        left += wide + _GAP
        bottom = max(bottom, y)
    right = max(left - _GAP, _EDGE + width_of(title))
    said = "; ".join(f"step {number + 1} keeps {_kept(nodes)}" for number, nodes in enumerate(tree.steps))
    return Scene(right + _EDGE, bottom + _EDGE, [*shapes, *lines, *boxes], f"{title or 'A beam'}: {said}")


def _kept(nodes: Iterable[Node]) -> str:
    return ", ".join(node.text for node in nodes if node.kept) or "nothing"


def _edge(node: Node, start: tuple[float, float], end: tuple[float, float], step: int) -> Path:
    best = node.answer == 1
    colour: scene.Colour = "less" if best else "more" if node.kept else "line"
    return Path([start, end], colour, 3 if best else 1.5 if node.kept else 1, not node.kept, curved=True, step=step)


def _node(node: Node, x: float, y: float, wide: float, step: int) -> Iterable[Shape]:
    what = "finished" if node.finished else "kept" if node.kept else "dropped"
    said = f"{node.text}: {what}, score {node.score:.3f}, p of the last token {node.probability:.3f}"
    outline: scene.Colour = "less" if node.answer == 1 else "more" if node.kept else "line"
    strength = (0.35 if node.finished else 0.14) if node.kept else 0.0
    fill: scene.Colour = "less" if node.answer == 1 else "more"
    yield Box(x, y, wide, _BOX, fill, strength, said, outline, dashed=not node.kept, step=step)
    if node.finished:  # a second line around it, which can be told without colours
        yield Box(x + 3, y + 3, wide - 6, _BOX - 6, fill, 0.0, said, outline, step=step)
    colour: scene.Colour = "ink" if node.kept else "soft"
    yield Words(node.token, x + wide / 2, y + 14, "middle", 13, bold=node.answer == 1, colour=colour, step=step)
    yield Words(f"{node.score:.2f}".replace("-", "−"), x + wide / 2, y + 25, "middle", 9.5, colour="soft", step=step)


def as_svg(tree: BeamTree) -> str:
    """The whole tree; what is pointed at says its text, score and probability."""
    return scene.as_svg(_scene(tree))


SCRIPT = """
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
"""Plays the trees of a page. Without it a page shows them whole."""

_STYLE = """<style>
.beam-controls{display:flex;flex-wrap:wrap;gap:.5rem;align-items:center;margin:.75rem 0}
.beam-controls[hidden]{display:none}
.beam-controls button{font:inherit;padding:.25rem .7rem;border:1px solid var(--line);border-radius:.4rem;
background:var(--panel);color:var(--ink);cursor:pointer;min-width:2.75rem}
.beam-controls input{flex:1 1 8rem;max-width:20rem}
.beam-tree output{display:block;min-height:3em;color:var(--soft);overflow-wrap:anywhere}
</style>"""


def in_html(tree: BeamTree) -> str:
    """The tree with controls, which SCRIPT brings to life, and every step in words."""
    steps = []
    for number, nodes in enumerate(tree.steps):
        kept, weighed = tree.count(number)
        each = ", ".join(
            f"{node.text} ({node.score:.2f}{', finished' if node.finished else ''})" for node in nodes if node.kept
        )
        steps.append(f"<li>Step {number + 1} keeps {kept} of {weighed}: {escape(each or 'nothing')}</li>")
    last = len(steps)
    return (
        f"{_STYLE}"
        '<p class="soft">A column is a step, the best above: kept hypotheses go on, those with a double line are '
        "finished, dashed ones were dropped. The number is the score of the whole so far; the way to the answer is "
        "orange and bold. Point at a box for its text.</p>"
        '<div class="beam-tree"><div class="beam-controls" hidden>'
        '<button class="back" type="button" aria-label="one step back">◀</button>'
        '<button class="play" type="button">▶ play</button>'
        '<button class="on" type="button" aria-label="one step on">▶|</button>'
        f'<input type="range" min="0" max="{last}" value="{last}" aria-label="step"></div>'
        '<output aria-live="polite"></output>'
        f'<figure style="overflow:auto">{as_svg(tree)}</figure>'
        f'<details><summary>Step by step in words</summary><ol class="beam-steps" style="list-style:none;padding:0">'
        f"{''.join(steps)}</ol></details></div>"
    )


def as_html(tree: BeamTree, *, title: str = "The search") -> str:
    """One page that fetches nothing and plays the search."""
    return page(title, [f"<h1>{escape(without_controls(title))}</h1>", in_html(tree)], script=SCRIPT)


def as_png(path: str | os.PathLike[str], tree: BeamTree) -> None:
    """Write the picture that as_svg draws as a PNG; needs matplotlib."""
    scene.as_png(path, _scene(tree))
