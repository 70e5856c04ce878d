"""Draws where a model looked in a recording: python docs/draw_spoken.py runs/pyramid-location data/test.npz.

Both are left by `python benchmarks/spoken_digits.py --out runs --data data`. Writes docs/pictures/spoken_digits.svg:
above, the bands of a recording of five digits, high ones at the top; below, the weights of attention for each digit,
each row as dark as its largest.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import recurra
from recurra.tasks.task import Prediction
from recurra.views.pixels import write_png

FRAME, BAND, ROW, LEFT, GAP = 4.0, 5.0, 24.0, 30.0, 8.0  # pixels
STYLE = """
.spoken{--ink:#222;--panel:#f2f4f7;--one:#0072b2;color:var(--ink)}
.spoken text{font:13px system-ui,sans-serif;fill:currentColor}
.spoken .back{fill:var(--panel)}
.spoken .weight{fill:var(--one)}
.spoken line{stroke:currentColor}
@media screen and (prefers-color-scheme:dark){.spoken{--ink:#ddd;--panel:#22252b;--one:#56b4e9}
.spoken image{filter:invert(0.9)}}
"""


def drawn(frames: NDArray[np.float32], answer: Prediction) -> str:
    """The frames (T, bands) and the weights over the places of their memory, one under the other."""
    assert answer.alignment is not None, "it attends"
    steps, bands = frames.shape
    low, high = np.percentile(frames, [5, 99])
    shade = (255 * (1 - (frames - low) / (high - low)).clip(0, 1)).astype(np.uint8)
    image = base64.b64encode(write_png(np.ascontiguousarray(shade.T[::-1]))).decode()
    width, top = FRAME * steps, BAND * bands + GAP
    tokens = [*answer.detail["tokens"], "∎"]
    place = FRAME * 2 ** round(np.log2(steps / answer.alignment.shape[1]))
    parts = [
        f'<image x="{LEFT:g}" y="0" width="{width:g}" height="{BAND * bands:g}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{image}"/>',
        f'<rect class="back" x="{LEFT:g}" y="{top:g}" width="{width:g}" height="{ROW * len(tokens):g}"/>',
    ]
    for row, (token, weights) in enumerate(zip(tokens, answer.alignment, strict=True)):
        y = top + ROW * row
        parts.append(f'<text x="{LEFT - 8:g}" y="{y + 0.7 * ROW:g}" text-anchor="end">{token}</text>')
        parts += [
            f'<rect class="weight" x="{LEFT + place * at:g}" y="{y + 1:g}" '
            f'width="{min(place, width - place * at):g}" height="{ROW - 2:g}" opacity="{weight / weights.max():.2f}"/>'
            for at, weight in enumerate(weights)
            if weight > 0.02 * weights.max()
        ]
    bottom = top + ROW * len(tokens)
    for tenth in range(0, steps, 50):
        x = LEFT + FRAME * tenth
        parts.append(f'<line x1="{x:g}" y1="{bottom:g}" x2="{x:g}" y2="{bottom + 5:g}"/>')
        parts.append(f'<text x="{x:g}" y="{bottom + 20:g}" text-anchor="middle">{tenth / 100:g} s</text>')
    size = f"{LEFT + width + 16:g} {bottom + 26:g}"
    across, down = size.split()
    said = " ".join(answer.detail["tokens"])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="spoken" role="img" viewBox="0 0 {size}" width="{across}" '
        f'height="{down}" aria-label="A recording of {said}, and where attention looked for each digit">\n'
        f"<style>{STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def main(run: Path, file: Path) -> None:
    """The shortest recording of five digits that was understood."""
    archive = np.load(file)
    rows = np.split(archive["frames"], np.cumsum(archive["frames_lengths"])[:-1])
    answers = recurra.load(run).predict_file(file, [], detail=True)
    right = [
        (frames, answer)
        for frames, answer, said in zip(rows, answers, archive["digits"].tolist(), strict=True)
        if answer.output == said and len(said.split()) == 5
    ]
    found = drawn(*min(right, key=lambda each: len(each[0])))
    (Path(__file__).parent / "pictures" / "spoken_digits.svg").write_text(found, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
