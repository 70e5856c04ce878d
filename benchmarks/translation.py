"""Translation of Multi30k, English to German or French: with attention, without, and several models together.

    python benchmarks/translation.py                               # attention and alone, German
    python benchmarks/translation.py between --language fr
    python benchmarks/translation.py --together attention between --out runs

Data are read from $RECURRA_DATA (../shared/data), lower-cased and tokenised as published; BLEU is that of these tokens
(`sacrebleu --tokenize none`), by a beam of 5. Weights are those with the best BLEU of greedy search on val. BLEU on
test 2016 by the number of source words is printed, and drawn with --picture FILE.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import recurra
from recurra.analysis.lengths import ByLength
from recurra.runs import begin, setup
from recurra.training.progress import progress
from recurra.views.table import Table

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data")) / "multi30k" / "tok"

COMMON = [
    "data.joint=true",
    'data.source.tokens={name="subwords", size=6000}',
    "model.embedding=512",
    "model.hidden=1024",
    "model.tied=all",
    "model.dropout=0.4",
    "model.embedding_dropout=0.3",
    "training.r_drop=2",
    "training.batch_tokens=4096",
    "training.epochs=48",
    "training.learning_rate=1e-3",
    "training.warmup=300",
    "training.deterministic=false",
    "evaluation.bleu_tokenize=none",
]

SETTINGS = {
    "attention": ["model.attention=projected_dot"],
    "between": ["model.attention=projected_dot", "model.wiring=between"],
    "alone": ["model.attention=none", 'model.conditioning=["every"]'],
}

ABOUT = {
    "attention": "projected dot attention outside the cells",
    "between": "attention between two decoder layers",
    "alone": "no attention, a fixed vector at every step",
}


def files(language: str, part: str) -> str:
    """Two parallel files."""
    return ",".join(str(DATA / f"{part}.lc.norm.tok.{side}") for side in ("en", language))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("models", nargs="*", help=f"which of {', '.join(SETTINGS)} (attention and alone)")
    arguments.add_argument("--language", choices=["de", "fr"], default="de")
    arguments.add_argument("--together", nargs="+", metavar="RUN", help="runs in --out that answer as one")
    arguments.add_argument("--out", help="keep the runs in this folder")
    arguments.add_argument("--picture", type=Path, help="BLEU by source words of all of them, as SVG")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all")
    options = arguments.parse_args()
    language = options.language
    print(f"{'model':24}{'':44}{'M par.':>8}{'val':>8}{'2016':>8}{'2017':>8}{'perplexity':>12}{'seconds':>9}")
    tables: dict[str, Table] = {}
    with tempfile.TemporaryDirectory() as private:
        home = Path(options.out or private)
        wanted = options.models or ([] if options.together else ["attention", "alone"])
        for name in wanted:
            run = home / f"{name}.{language}.{options.seed}"
            if not (run / "summary.json").exists():
                given = {"train": files(language, "train"), "valid": files(language, "val")}
                own = [f"training.device={options.device}", f"training.seed={options.seed}", *options.set]
                begin(
                    setup("seq2seq", given=given, overrides=[*COMMON, *SETTINGS[name], *own]), run, progress(sys.stderr)
                )
            summary = json.loads((run / "summary.json").read_text("utf-8"))
            tables[name] = report(run.name, ABOUT[name], [run], options, summary["parameters"], summary["seconds"])
        if options.together:
            runs = [home / name for name in options.together]
            whole = sum(json.loads((run / "summary.json").read_text("utf-8"))["parameters"] for run in runs)
            tables["together"] = report(f"{len(runs)} together", ", ".join(options.together), runs, options, whole, 0.0)
    if options.picture:
        buckets, items = ([row[place] for row in next(iter(tables.values())).rows] for place in (0, 1))
        scores = {name: [row[2] for row in table.rows] for name, table in tables.items()}
        ByLength(buckets, items, scores, "BLEU", "source words").view().write(options.picture)


def report(
    name: str, about: str, runs: list[Path], options: argparse.Namespace, parameters: int, seconds: float
) -> Table:
    """A row of the table, and BLEU by the number of source words."""
    device = "cpu" if options.device == "auto" else options.device
    model = recurra.load(runs if len(runs) > 1 else runs[0], device=device)
    began = time.monotonic()
    val, first, second = (
        model.evaluate(files(options.language, part)) for part in ("val", "test_2016_flickr", "test_2017_flickr")
    )
    print(
        f"{name:24}{about[:42]:44}{parameters / 1e6:8.1f}{val.values['bleu']:8.2f}{first.values['bleu']:8.2f}"
        f"{second.values['bleu']:8.2f}{first.values['perplexity']:12.2f}{seconds:9.0f}"
        f"   scored in {time.monotonic() - began:.0f} s",
        flush=True,
    )
    print(first.tables["by length"].text(), flush=True)
    return first.tables["by length"]


if __name__ == "__main__":
    main()
