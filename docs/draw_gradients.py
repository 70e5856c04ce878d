"""Draws gradients through time: python docs/draw_gradients.py.

Writes docs/pictures/gradients_elman.svg and gradients_lstm.svg: two networks that have learned nothing yet read
the same forty random steps, and are asked for a sum at the end.
"""

from __future__ import annotations

from pathlib import Path

import torch

from recurra import Padded, Recurrent
from recurra.analysis.laboratory import look
from recurra.reports import gradient_page


def main() -> None:
    pictures = Path(__file__).parent / "pictures"
    torch.manual_seed(1)
    x = Padded.full(torch.randn(4, 40, 8))
    for cell in ("elman", "lstm"):
        found = look(Recurrent(cell, 8, 32), x, loss=lambda y: y[:, -1].sum(), title=cell)
        gradient_page.view(found).write(pictures / f"gradients_{cell}.svg", gradient_page.WIDTH)
        print(gradient_page.as_text(found))


if __name__ == "__main__":
    main()
