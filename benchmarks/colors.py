"""Names of colours from their red, green and blue: perplexity per character of every conditioning.

    python benchmarks/colors.py                                      # all, one after the other
    python benchmarks/colors.py initial unconditional --device cuda --out runs --sample

Data are read from $RECURRA_DATA (../shared/data). Names are inventive, so that they are judged by perplexity per
character, the end of a name counted as one, and not by exact match; weights are those with the lowest on valid.tsv.
`unconditional` is `initial` whose every vector is 0 0 0, in training and test: it has as many weights, and can only
know what names of colours are like. --sample prints ten names that each model draws for some colours.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import recurra
from recurra.runs import begin, setup
from recurra.training.progress import progress

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data")) / "colors"

COMMON = ["model.hidden=512", "model.dropout=0.4", "model.encoder.layers=2", "training.epochs=30"]

CONDITIONINGS = {
    "initial": ["initial"],
    "first": ["first"],
    "every": ["every"],
    "three": ["initial", "first", "every"],
    "unconditional": ["initial"],
}

COLOURS = {
    "red": "255 0 0",
    "navy": "0 0 128",
    "mint": "152 255 190",
    "mustard": "225 173 1",
    "lilac": "200 162 200",
    "chocolate": "80 45 22",
    "sky": "135 206 235",
    "nearly black": "12 10 14",
    "nearly white": "250 249 244",
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("models", nargs="*", help=f"which of {', '.join(CONDITIONINGS)} (all)")
    arguments.add_argument("--out", help="keep the runs in this folder")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--sample", action="store_true", help="names for some colours")
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all")
    options = arguments.parse_args()
    rows = [f"{'conditioning':16}{'parameters':>11}{'valid':>8}{'test':>8}{'seconds':>9}"]
    with tempfile.TemporaryDirectory() as private:
        for name in options.models or CONDITIONINGS:
            run = Path(options.out or private) / name
            if not (run / "summary.json").exists():
                own = [f"model.conditioning={json.dumps(CONDITIONINGS[name])}", f"training.device={options.device}"]
                given = files(Path(private), zeroed=name == "unconditional")
                this = setup("vec2seq", given=given, overrides=[*COMMON, *own, *options.set])
                begin(this, run, progress(sys.stderr))
            summary = json.loads((run / "summary.json").read_text("utf-8"))
            valid, test = (summary[part]["scores"]["perplexity"] for part in ("best", "test"))
            rows.append(f"{name:16}{summary['parameters']:>11,}{valid:8.3f}{test:8.3f}{summary['seconds']:9.0f}")
            print("\n".join(rows[-1:] if len(rows) > 2 else rows), flush=True)
            if options.sample:
                model = recurra.load(run)
                for colour, vector in ({"any": "0 0 0"} if name == "unconditional" else COLOURS).items():
                    names = [each.text for each in recurra.generate(model, vector, count=10)]
                    print(f"  {colour + ' (' + vector + ')':28}{', '.join(names)}", flush=True)
    if options.sample:
        print("\n" + "\n".join(rows))


def files(folder: Path, *, zeroed: bool) -> dict[str, str]:
    """The files of the data; or copies in which every vector is 0."""
    parts = ("train", "valid", "test")
    if not zeroed:
        return {part: str(DATA / f"{part}.tsv") for part in parts}
    for part in parts:
        names = [line.partition("\t")[0] for line in (DATA / f"{part}.tsv").read_text("utf-8").splitlines()]
        (folder / f"{part}.tsv").write_text("".join(f"{name}\t0\t0\t0\n" for name in names), "utf-8")
    return {part: str(folder / f"{part}.tsv") for part in parts}


if __name__ == "__main__":
    main()
