"""Draws what the two models of `recurra demo` have learned: python docs/draw_trained.py runs/demo-1.

Writes docs/pictures/heat_map.svg, where the model with attention looked in a few words, and by_length.svg beside it,
the share of words that each model says right by the number of their letters.
"""

from __future__ import annotations

import sys
from pathlib import Path

import recurra
from recurra.analysis import heat_map, lengths
from recurra.analysis.alignment import Alignment

WORDS = ("kneed", "tuxedo", "pamphlet")


def main(runs: Path) -> None:
    pictures = Path(__file__).parent / "pictures"
    alignments = []
    for answer in recurra.load(runs / "attention").predict(WORDS, detail=True):
        detail = answer.detail
        alignments.append(Alignment(detail["source_tokens"], detail["tokens"], detail["alignment"], answer.output))
    (pictures / "heat_map.svg").write_text(heat_map.as_svg(*alignments), encoding="utf-8")
    found = recurra.compare([runs / "attention", runs / "no-attention"], runs / "test.tsv")
    assert found.by_length is not None, "both are scored on the same words"
    (pictures / "by_length.svg").write_text(lengths.as_svg(found.by_length), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
