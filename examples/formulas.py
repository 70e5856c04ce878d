r"""Handwriting to LaTeX, and where it looked: python examples/formulas.py [STEPS [PICTURE.svg]]

Pen strokes, as a tablet gives them, are drawn to a picture; convolutions read it, and attention over their map writes
LaTeX sign by sign. The handwriting is made up: each sign is a few points, put where a hasty hand might put them. In
half a minute:

    8 ^ { 4 } - \frac { 4 } { 6 } is read as 8 ^ { 4 } - \frac { 4 } { 6 }
    1 ^ { 9 } = \frac { 4 } { 3 } is read as 1 ^ { 9 } = \frac { 4 } { 3 }
    \frac { 5 } { 4 } + 9 ^ { 9 } is read as \frac { 5 } { 4 } + 9 ^ { 9 }
    token row column  share places with half
    8       2      1 0.9972                1
    ^       4      4 0.7202                1
    {       4      4 0.3458                2
    4       1      3 0.9699                1
    …
    88% of 200 new formulas are right.

Signs look at their own ink or beside it. Braces are a matter of grammar, and look anywhere.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path

import recurra
from recurra.analysis.picture_attention import picture_attention_of
from recurra.data.strokes import draw

SIGNS = {  # what the pen does, by points of a grid of 5 columns and 7 rows; "/" lifts it
    "1": "02 20 26",
    "2": "01 10 30 41 42 06 46",
    "3": "00 40 22 32 43 45 36 16 05",
    "4": "30 04 44/31 36",
    "5": "40 00 03 32 43 45 36 06",
    "6": "30 02 05 16 36 45 43 32 03",
    "7": "00 40 16",
    "8": "41 30 10 01 02 13 33 44 45 36 16 05 04 13 33 42 41",
    "9": "41 30 10 01 02 13 33 41 36",
    "+": "03 43/21 25",
    "-": "03 43",
    "x": "02 46/42 06",
    "=": "02 42/04 44",
}
DRAWN = {"stroke": 12.0, "thickness": 1.5}  # pixels: small, so that it is quick
Strokes = list[list[list[float]]]


def signed(sign: str, x: float, y: float, size: float, chance: random.Random) -> Strokes:
    """A sign in a box of 4 by 6 times the size, its points where a hasty hand puts them."""
    wide, slant = chance.uniform(0.8, 1.1), chance.uniform(-0.1, 0.2)
    found = []
    for points in ([divmod(int(point), 10) for point in line.split()] for line in SIGNS[sign].split("/")):
        across = [x + size * (wide * a + slant * (6 - b) + chance.gauss(0, 0.14)) for a, b in points]
        down = [y + size * (b + chance.gauss(0, 0.14)) for _, b in points]
        found.append([across, down])
    return found


def term(chance: random.Random, x: float) -> tuple[Strokes, str, float]:
    """A digit, a power or a fraction: its strokes, its LaTeX and where it ends."""
    a, b = chance.choice("123456789x"), chance.choice("123456789")
    if (kind := chance.choice(("digit", "power", "fraction"))) == "fraction":
        bar = [[x - 1, x + 5], [3 + chance.gauss(0, 0.2), 3 + chance.gauss(0, 0.2)]]
        above, below = signed(a, x, -4.5, 1, chance), signed(b, x, 4.5, 1, chance)
        return [*above, bar, *below], rf"\frac {{ {a} }} {{ {b} }}", x + 7
    if kind == "power":
        return signed(a, x, 0, 1, chance) + signed(b, x + 5, -3, 0.6, chance), f"{a} ^ {{ {b} }}", x + 9.5
    return signed(a, x, 0, 1, chance), a, x + 6


def formula(chance: random.Random) -> dict[str, object]:
    """Two terms and a sign between them, as pen strokes and as LaTeX."""
    strokes, latex, x = term(chance, 0.0)
    sign, (more, other, _) = chance.choice("+-="), term(chance, x + 6)
    return {"strokes": strokes + signed(sign, x, 0, 1, chance) + more, "latex": f"{latex} {sign} {other}"}


def main() -> None:
    chance, steps = random.Random(1), int(sys.argv[1]) if len(sys.argv) > 1 else 800
    with tempfile.TemporaryDirectory() as folder:
        train, test = Path(folder, "train.jsonl"), Path(folder, "test.jsonl")
        for file, count in ((train, 3000), (test, 200)):
            file.write_text("".join(json.dumps(formula(chance)) + "\n" for _ in range(count)))
        settings = {
            "data": {"image": DRAWN, "cache": False},
            "model": {"embedding": 32, "hidden": 64, "dropout": 0.0, "label_smoothing": 0.0},
            "model.image": {"widths": [12, 24, 48], "layers": 1, "dropout": 0.0},  # three halvings: places of 8 pixels
            "training": {"steps": steps, "batch_size": 16, "learning_rate": 0.004, "average": "none"},
            "decoding": {"max_length": 20},
        }
        model = recurra.train("vec2seq", train=str(train), out=Path(folder) / "run", settings=settings)
        rows = [json.loads(line) for line in test.read_text().splitlines()]
        rows = [row for row in rows if "frac" in row["latex"] and "^" in row["latex"]][:3]
        answers = model.predict([row["strokes"] for row in rows], detail=True)
        for row, answer in zip(rows, answers, strict=True):
            print(f"{row['latex']} is read as {answer.text}")
        picture = draw(rows[0]["strokes"], stroke=DRAWN["stroke"], thickness=DRAWN["thickness"])
        found = picture_attention_of(answers[0], picture)
        print(found.text())
        if len(sys.argv) > 2:
            found.write(sys.argv[2])
        print(f"{model.evaluate(test).values['exact_match']:.0%} of 200 new formulas are right.")


if __name__ == "__main__":
    main()
