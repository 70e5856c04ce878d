"""Names for colours: python examples/name_colours.py [STEPS]

2,500 names that people have given colours, as "Gross Green", with their red, green and blue. A character at a time,
a recurrent network writes a name; the three numbers are the state that it starts from. Names are inventive, so that it
is judged by how well it foresees each letter of 200 other names, beside a network that does not see the colour. In
half a minute:

    2,300 names to learn from, 200 to foresee
    perplexity of a letter, without the colour: 4.35
    perplexity of a letter, with the colour: 3.90
    red (230 20 30)         Cador Red, Nalast Red, Heamer Red, Perner Red, Radchican Orange
    navy (10 20 90)         Mostiar Blue, Scartan Blue, Core Blue, Antich Blue, Pumge Blue
    mint (160 250 200)      Porverne Green, Light Green, Amuinen Green, Sharch Green, Scouse Green
    mustard (215 170 20)    Sivenale Yellow, Someti Gold, Tange Gold, Inger Yellow, Plish Gold
    lilac (200 160 210)     Saran Purple, Satshur Pink, Andolicn Purple, Crasty Purple, Sussy Purple
    chocolate (90 50 30)    Sumber Red, Branzite Gold, Cosde Purple, Marraccand Brown, Blue Red
    ash (150 150 150)       Mestend Blue, Vinill Grey, Copparis Grey, Camen Grey, Sigld Grey
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path

import recurra

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 600
HELD_OUT = 200
COLOURS = {
    "red": "230 20 30",
    "navy": "10 20 90",
    "mint": "160 250 200",
    "mustard": "215 170 20",
    "lilac": "200 160 210",
    "chocolate": "90 50 30",
    "ash": "150 150 150",
}


def main() -> None:
    with gzip.open(Path(__file__).parent / "data" / "colours.tsv.gz", "rt", encoding="utf-8") as file:
        lines = file.readlines()
    print(f"{len(lines) - HELD_OUT:,} names to learn from, {HELD_OUT} to foresee")
    with tempfile.TemporaryDirectory() as folder:
        train, test = Path(folder) / "train.tsv", Path(folder) / "test.tsv"
        train.write_text("".join(lines[HELD_OUT:]), "utf-8")
        test.write_text("".join(lines[:HELD_OUT]), "utf-8")
        for told, conditioning in {"without the colour": [], "with the colour": ["initial"]}.items():
            settings = {
                "data": {"cache": False},
                "model": {"embedding": 32, "hidden": 128, "dropout": 0.3, "conditioning": conditioning},
                "training": {"steps": STEPS, "batch_size": 32, "learning_rate": 0.005},
            }
            model = recurra.train("vec2seq", train=str(train), out=Path(folder) / told, settings=settings)
            perplexity = model.evaluate(test).values["perplexity"]
            print(f"perplexity of a letter, {told}: {perplexity:.2f}")
        for colour, vector in COLOURS.items():
            names = recurra.generate(model, vector, count=5, temperature=0.7)
            print(f"{colour + ' (' + vector + ')':24}{', '.join(name.text for name in names)}")


if __name__ == "__main__":
    main()
