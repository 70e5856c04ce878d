"""What the gradient laboratory found: as text, as a page, as a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from recurra.analysis import drawing
from recurra.analysis.curves import Axis
from recurra.analysis.drawing import Bar, Dot, Line, Look, Mark, Words
from recurra.analysis.laboratory import Laboratory, Layer
from recurra.analysis.page import page, section, table_in_html, write_whole
from recurra.errors import ConfigError
from recurra.views.table import Table

ENDINGS = (".html", ".svg", ".png")
WIDTH, PANEL, LEFT, RIGHT = 720.0, 190.0, 72.0, 14.0
LAGS = (0, 1, 2, 3, 5, 10, 20, 30, 49)
"""T − t of the columns of a table."""

_LETTER = 6.9  # pixels: about the mean width of a letter at 12 pixels


class Panel(NamedTuple):
    """Curves over T − t, by name; each in a look of its own."""

    title: str
    curves: Sequence[tuple[str, Look, Sequence[float]]]
    log: bool = True


def check_ending(path: Path) -> None:
    """Refuse a file that is neither a page nor a picture."""
    if path.suffix not in ENDINGS:
        raise ConfigError(f"--out {path}: what the laboratory found is written as .html, .svg or .png.")


def write(found: Laboratory, path: Path) -> None:
    """Write a page (.html) or a picture (.svg, .png)."""
    check_ending(path)
    if path.suffix == ".html":
        write_whole(path, as_page(found))
        return
    marks, height = _all(found)
    if path.suffix == ".png":
        drawing.as_png(path, marks, WIDTH, height)
    else:
        write_whole(path, as_svg(found))


def as_svg(found: Laboratory) -> str:
    """All layers in one picture."""
    marks, height = _all(found)
    return drawing.as_svg(marks, WIDTH, height, label=f"Gradients through time: {found.title}", name="gradients")


def as_text(found: Laboratory) -> str:
    """Verdicts, tables and advice, layer after layer."""
    return "\n\n".join([_headline(found), *(_layer_text(layer) for layer in found.layers)])


def _headline(found: Laboratory) -> str:
    examples = "1 example" if found.examples == 1 else f"{found.examples} examples"
    loss = "no loss, as nothing says what is right" if found.loss is None else f"loss {found.loss:.4g}"
    return f"{found.title}: {examples}, {loss}. T is the last step that a layer reads, t one before it."


def _layer_text(layer: Layer) -> str:
    steps = "1 step" if layer.steps == 1 else f"{layer.steps} steps"
    parts = [f"{layer.title}: {layer.cell}, {layer.units} units, {steps}", layer.words, *_remarks(layer)]
    return "\n".join([*parts, "", _table(layer).text(), "", _gates(layer).text() if layer.gates else ""]).rstrip()


def _remarks(layer: Layer) -> list[str]:
    largest = ", ".join(f"{name} {value:.3f}" for name, value in layer.matrices.items())
    return [*([f"λ₁: {largest}."] if largest else []), *layer.advice]


def _curves(layer: Layer) -> dict[str, Sequence[float]]:
    """All that there is over T − t, as numbers."""
    jacobian = {name: [math.exp(min(v, 709.0)) for v in values] for name, values in layer.jacobian.items()}
    names = {
        "largest": "∂h_T/∂h_t, largest singular value",
        "smallest": "∂h_T/∂h_t, smallest",
        "bound": "bound on the largest",
        "memory": "∂c_T/∂c_t, largest",
        "inputs": "‖∂h_T/∂x_t‖",
    }
    found: dict[str, Sequence[float]] = {name: jacobian[key] for key, name in names.items() if key in jacobian}
    found |= {f"Π f, {name} of the units": values for name, values in layer.forget.items()}
    return found | {f"‖∂L/∂{name}_t‖": values for name, values in layer.gradient.items()}


def _table(layer: Layer) -> Table:
    lags = [lag for lag in LAGS if lag < len(layer.jacobian["largest"])]

    def cell(value: float) -> str:
        return "–" if math.isnan(value) else f"{value:.3g}"

    rows = [[name, *(cell(values[lag]) for lag in lags)] for name, values in _curves(layer).items()]
    return Table(["T − t", *map(str, lags)], rows)


def _gates(layer: Layer) -> Table:
    rows = [
        [each.name, f"{each.mean:.2f}", f"{each.low:.0%}", f"{each.high:.0%}", _ends(each.kind)] for each in layer.gates
    ]
    return Table(["gate", "mean", "low", "high", "low and high are"], rows)


def _ends(kind: str) -> str:
    return "below 0.1, above 0.9" if kind == "gate" else "below −0.95, above 0.95"


def as_page(found: Laboratory) -> str:
    """One page that fetches nothing."""
    pieces = [f"<h1>{escape(found.title)}</h1>", f'<p class="soft">{escape(_headline(found))}</p>']
    for layer in found.layers:
        marks, height = _picture(layer, 0.0, titled=False)
        picture = drawing.as_svg(marks, WIDTH, height, label=f"Gradients of {layer.title}", name="gradients")
        advice = "".join(f"<li>{escape(remark)}</li>" for remark in _remarks(layer))
        numbers = table_in_html(Table(*_table(layer))) + table_in_html(Table(*_gates(layer)))
        content = [
            f"<p><strong>{escape(layer.words)}</strong></p>",
            f"<ul>{advice}</ul>" if advice else "",
            f"<figure>{picture}</figure>",
            f"<details><summary>As numbers</summary>{numbers}</details>",
        ]
        title = f"{layer.title}: {layer.cell}, {layer.units} units"
        pieces.append(section(title, "\n".join(content)))
    return page(f"{found.title}: gradients through time", pieces)


def _all(found: Laboratory) -> tuple[list[Mark], float]:
    marks: list[Mark] = []
    top = 8.0
    for layer in found.layers:
        more, top = _picture(layer, top, titled=True)
        marks += more
    return marks, top


def _picture(layer: Layer, top: float, *, titled: bool) -> tuple[list[Mark], float]:
    """The panels of one layer, and where they end."""
    marks: list[Mark] = []
    if titled:
        marks.append(Words(LEFT, top + 16, f"{layer.title} ({layer.cell}): {layer.verdict}", bold=True))
        top += 24
    for panel in _panels(layer):
        marks += _drawn(panel, top)
        top += PANEL
    marks.append(Words(WIDTH - RIGHT, top + 12, "t − T: steps before the last", "end"))
    top += 24
    marks += _bars(layer, top)
    return marks, top + (22 * len(layer.gates) + 44 if layer.gates else 0) + 8


def _panels(layer: Layer) -> Iterator[Panel]:
    curves = _curves(layer)
    looks: Mapping[str, tuple[str, Look]] = {
        "∂h_T/∂h_t, largest singular value": ("∂h_T/∂h_t, largest", "one"),
        "bound on the largest": ("its bound", "two"),
        "∂c_T/∂c_t, largest": ("∂c_T/∂c_t", "three"),
    }
    shown = [(title, look, curves[name]) for name, (title, look) in looks.items() if name in curves]
    # Far below all others, the smallest would press them together.
    least = min((v for _, _, values in shown for v in values if v > 0), default=0.0) / 100
    smallest = [value if value > least else math.nan for value in curves["∂h_T/∂h_t, smallest"]]
    yield Panel("Jacobian", [*shown, ("smallest", "faint", smallest)])
    known: list[Look] = ["one", "two", "three", "four"]
    flow = [name for name in curves if name.startswith("‖∂L")]
    if flow:
        named = zip(flow, known, strict=False)
        yield Panel("gradient of the loss", [(name, look, curves[name]) for name, look in named])
    rest = [name for name in curves if name.startswith(("‖∂h_T/∂x", "Π f"))]
    yield Panel("memory", [(name, look, curves[name]) for name, look in zip(rest, ["four", *known], strict=False)])


def _drawn(panel: Panel, top: float) -> Iterator[Mark]:
    """One panel: title, legend, axes, curves; time runs to the right, T at the right edge."""
    curves = [(name, look, [_drawable(v) for v in values]) for name, look, values in panel.curves]
    values = [value for _, _, each in curves for value in each if math.isfinite(value)]
    if not values:
        return
    up = Axis.around(values, PANEL - 50, log=panel.log)
    across = Axis(1.0 - max(max(len(each) for _, _, each in curves), 2), 0.0, WIDTH - LEFT - RIGHT)
    title = panel.title + (" (log scale)" if up.log else "")
    yield Words(LEFT, top + 18, title, bold=True)
    x, y, bottom = LEFT + _LETTER * len(title) + 20, top + 14, top + PANEL - 20
    for name, look, _ in curves:
        yield Line([(x, y), (x + 22, y)], look)
        yield Words(x + 28, y + 4, name)
        x += 44 + _LETTER * len(name)
    for tick, text in up.ticks(6):
        yield Line([(LEFT, bottom - up.place(tick)), (WIDTH - RIGHT, bottom - up.place(tick))], "grid")
        yield Words(LEFT - 8, bottom - up.place(tick) + 4, text, "end")
    yield Line([(LEFT, bottom - up.pixels), (LEFT, bottom), (WIDTH - RIGHT, bottom)], "ink")
    for tick, text in across.ticks(10):
        if tick.is_integer():
            yield Words(LEFT + across.place(tick), bottom + 15, text.replace("-", "−"), "middle")
    for name, look, each in curves:
        places = [
            (LEFT + across.place(-lag), bottom - up.place(value), lag, value)
            for lag, value in enumerate(each)
            if math.isfinite(value) and (value > 0 or not up.log)
        ]
        if len(places) > 1:
            yield Line([(x, y) for x, y, _, _ in places], look, name)
        for x, y, lag, value in places if len(places) <= 60 and look == "one" else places[:1]:
            yield Dot(x, y, look, f"{name}: {value:.4g} at t = T − {lag}")


def _drawable(value: float) -> float:
    """What is too large or too small to draw is left out."""
    return value if 1e-200 < value < 1e200 else math.nan


def _bars(layer: Layer, top: float) -> Iterator[Mark]:
    """Of each gate, the shares that lie at its low and at its high end."""
    if not layer.gates:
        return
    yield Words(LEFT, top + 16, "saturation: shares at the low end and at the high end of each gate", bold=True)
    across = WIDTH - LEFT - RIGHT - 66
    for number, each in enumerate(layer.gates):
        y = top + 28 + 22 * number
        yield Words(LEFT - 8, y + 12, each.name if len(each.name) < 11 else f"{each.name[:9]}…", "end")
        yield Bar(LEFT, y, across, 15, "grid", f"{each.name}: mean {each.mean:.2f}")
        low, high = across * each.low, across * each.high
        yield Bar(LEFT, y, low, 15, "one", f"{each.low:.1%} {_ends(each.kind).split(', ')[0]}")
        yield Bar(LEFT + across - high, y, high, 15, "two", f"{each.high:.1%} {_ends(each.kind).split(', ')[1]}")
        yield Words(LEFT + across + 6, y + 12, f"{each.low:.0%}, {each.high:.0%}")
