"""What the gradient laboratory found: as text, as a page, as a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from recurra.analysis.laboratory import Laboratory, Layer
from recurra.errors import ConfigError
from recurra.views.distribution import Distribution
from recurra.views.lines import IN_TURN, Curve, Lines, Panel, Style
from recurra.views.page import page, section, table_in_html, write_whole
from recurra.views.several import Several
from recurra.views.table import Table
from recurra.views.view import View

ENDINGS = (".html", ".svg", ".png")
WIDTH = 720.0
"""Pixels of a picture."""

LAGS = (0, 1, 2, 3, 5, 10, 20, 30, 49)
"""T − t of the columns of a table."""


MEANINGS = {
    "λ₁": "λ₁ is the largest singular value of a matrix: the most by which it can stretch a change of h in one step.",
    "Π f": "Π f is the product of the forget gates after step t: the share of c_t that is still in c_T.",
    "saturation": (
        "Saturation is the share of a gate's values near an end of its range, where its derivative is near 0 and "
        "hardly any gradient passes."
    ),
}
"""What is measured, in a sentence each."""


def check_ending(path: Path) -> None:
    """Refuse a file that is neither a page nor a picture."""
    if path.suffix not in ENDINGS:
        raise ConfigError(f"--out {path}: the file must end in .html, .svg or .png.")


def write(found: Sequence[Laboratory], path: Path) -> None:
    """Write a page (.html) or a picture (.svg, .png) of one network, or of several."""
    check_ending(path)
    if path.suffix == ".html":
        write_whole(path, as_page(*found))
        return
    view(*found).write(path, WIDTH)


def view(*found: Laboratory) -> Several:
    """All layers of a network, or of several, in one picture."""
    title = f"Gradients through time: {_named(found)}"
    drawn = [
        view
        for each in found
        for layer in each.layers
        for view in _views(layer, of=f"{each.title}: " if len(found) > 1 else "")
    ]
    return Several(drawn or [Lines([], caption="no recurrent layer was found")], title=title)


def _named(found: Sequence[Laboratory]) -> str:
    return ", ".join(each.title for each in found)


def as_text(found: Laboratory) -> str:
    """Verdicts, tables and advice, layer after layer."""
    headline = f"{found.title}: {_measured(found)}"
    return "\n\n".join([headline, *(_layer_text(layer) for layer in found.layers), "\n".join(_meanings(found))])


def _meanings(found: Laboratory) -> list[str]:
    """Sentences about those measurements that some layer has."""
    shown = {
        "λ₁": any(layer.matrices for layer in found.layers),
        "Π f": any(layer.forget for layer in found.layers),
        "saturation": any(layer.gates for layer in found.layers),
    }
    return [sentence for name, sentence in MEANINGS.items() if shown[name]]


def _measured(found: Laboratory) -> str:
    """What the gradients were measured on."""
    examples = "1 example" if found.examples == 1 else f"{found.examples} examples"
    loss = "no loss, because there are no targets" if found.loss is None else f"loss {found.loss:.4g}"
    return f"{examples}, {loss}. T is the last step, t an earlier one."


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
    return Table(["saturation of", "mean", "low", "high", "low and high are"], rows)


def _ends(kind: str) -> str:
    return "below 0.1, above 0.9" if kind == "gate" else "below −0.95, above 0.95"


def as_page(*found: Laboratory) -> str:
    """One page that fetches nothing, of one network or of several."""
    pieces = list[str]()
    for each in found:
        pieces += [f"<h1>{escape(each.title)}</h1>", f'<p class="soft">{escape(_measured(each))}</p>']
        pieces += map(_layer_section, each.layers)
    meanings = "".join(
        f"<li>{escape(said)}</li>" for said in dict.fromkeys(s for each in found for s in _meanings(each))
    )
    pieces.append(section("What the numbers mean", f"<ul>{meanings}</ul>" if meanings else ""))
    return page(f"{_named(found)}: gradients through time", pieces)


def _layer_section(layer: Layer) -> str:
    advice = "".join(f"<li>{escape(remark)}</li>" for remark in _remarks(layer))
    numbers = table_in_html(Table(*_table(layer))) + table_in_html(Table(*_gates(layer)))
    content = [
        f"<p><strong>{escape(layer.words)}</strong></p>",
        f"<ul>{advice}</ul>" if advice else "",
        *(each.figure() for each in _views(layer, titled=False)),
        f"<details><summary>As numbers</summary>{numbers}</details>",
    ]
    return section(f"{layer.title}: {layer.cell}, {layer.units} units", "\n".join(content))


def _views(layer: Layer, *, titled: bool = True, of: str = "") -> Iterator[View]:
    """What there is to see of one layer: curves over time, and of each gate the shares at its two ends."""
    title = f"Gradients of {layer.title}"
    caption = f"{of}{layer.title} ({layer.cell}): {layer.verdict}" if titled else ""
    yield Lines(list(_panels(layer)), "t − T: steps before the last", title=title, caption=caption)
    if layer.gates:
        yield Distribution(
            [each.name for each in layer.gates],
            [(each.low, each.high) for each in layer.gates],
            ["at the low end", "at the high end"],
            apart=True,
            said=[f"mean {each.mean:.2f}; low and high are {_ends(each.kind)}" for each in layer.gates],
            title=f"Saturation of {layer.title}",
            caption="saturation: low end (left), high end (right)",
        )


def _panels(layer: Layer) -> Iterator[Panel]:
    curves = _curves(layer)
    looks: Mapping[str, tuple[str, Style]] = {
        "∂h_T/∂h_t, largest singular value": ("∂h_T/∂h_t, largest", "one"),
        "bound on the largest": ("its bound", "two"),
        "∂c_T/∂c_t, largest": ("∂c_T/∂c_t", "three"),
    }
    shown = [_curve(title, look, curves[name]) for name, (title, look) in looks.items() if name in curves]
    # Far below all others, the smallest would press them together.
    least = min((v for curve in shown for v in curve.y if v > 0), default=0.0) / 100
    smallest = [value if value > least else math.nan for value in curves["∂h_T/∂h_t, smallest"]]
    is_line = sum(not math.isnan(value) for value in smallest) > 1
    yield Panel("Jacobian", [*shown, *[_curve("smallest", "faint", smallest)] * is_line], log=True)
    flow = [name for name in curves if name.startswith("‖∂L")]
    if flow:
        named = zip(flow, IN_TURN, strict=False)
        yield Panel("gradient of the loss", [_curve(name, look, curves[name]) for name, look in named], log=True)
    rest = [name for name in curves if name.startswith(("‖∂h_T/∂x", "Π f"))]
    others: list[Style] = ["four", *IN_TURN]
    drawn = [_curve(name, look, curves[name]) for name, look in zip(rest, others, strict=False)]
    yield Panel("memory", drawn, log=True)


def _curve(name: str, look: Style, values: Sequence[float]) -> Curve:
    """A curve over t − T = 0, −1, …; what is too large or too small to draw is left out."""
    known = [value if 1e-200 < value < 1e200 else math.nan for value in values]
    return Curve(name, known, [-lag for lag in range(len(values))], look, dots=look == "one")
