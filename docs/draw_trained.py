"""Draws what the two models of `recurra demo` have learned: python docs/draw_trained.py runs/demo-1.

Writes docs/pictures/demo_attention.svg, where the model with attention looked in a few words, and demo_by_length.svg
beside it, the share of words that each model says right by the number of their letters.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import recurra
from recurra.analysis.alignment import alignment_of
from recurra.demo import LOOKED_AT, NARROW, TITLES, WIDTH
from recurra.views.several import Several


def main(runs: Path) -> None:
    pictures = Path(__file__).parent / "pictures"
    answers = recurra.load(runs / "attention").predict(LOOKED_AT, detail=True)
    titled = [alignment_of(answer, f"{answer.input} → {answer.output}") for answer in answers]
    Several(titled).write(pictures / "demo_attention.svg", WIDTH)
    by = recurra.compare([runs / "attention", runs / "no-attention"], runs / "test.tsv").by_length
    assert by is not None, "both are scored on the same words"
    named = dict(zip(TITLES, by.runs.values(), strict=True))
    by = dataclasses.replace(by, runs=named, score="share of words pronounced right", axis="letters")
    by.view().write(pictures / "demo_by_length.svg", NARROW)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
