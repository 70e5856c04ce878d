"""The recipes of named systems, trained as they stand: one line of scores each.

    python benchmarks/systems.py --list
    python benchmarks/systems.py grammar headlines --device cpu --minutes 5
    python benchmarks/systems.py cho --device cuda --minutes 7 --out runs
    python benchmarks/systems.py --table --out runs                 # train nothing: a line of each run in that folder

What is trained is recipes/RECIPE.toml; a name after a comma is a variant, whose settings stand in SYSTEMS. Real data
are read from $RECURRA_DATA (../shared/data), made-up data are written by examples/data. Weights are those with the best
score on validation data; test is answered with the recipe's own search. docs/systems.md has the figures beside those of
the papers. Others of the systems have scripts of their own: attention_papers, babi, char_rnn, chung, entailment,
lambada, memories, pointers, spoken_digits, sutskever.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import runpy
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

import atrial_fibrillation
import formulas
import recurra
from recurra.runs import begin, setup
from recurra.training.progress import progress

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("RECURRA_DATA", ROOT.parent / "shared" / "data"))
PARTS = ("train", "valid", "test")
SHORT = 10
"""Symbols of a short formula."""

SENTENCES = 50
"""So many of the last sentences of a bAbI story are read, as memory networks do."""

Files = dict[str, Any]


def made_up(kind: str, ending: str, *more: str) -> Callable[[Path], Files]:
    """Data of examples/data/made_up.py, or of a script of its own there."""

    def files(folder: Path) -> Files:
        scripts = ROOT / "examples" / "data"
        alone = scripts / f"{kind}.py"
        script = [str(alone)] if alone.exists() else [str(scripts / "made_up.py"), kind]
        subprocess.run([sys.executable, *script, str(folder), *more], check=True)
        return {part: str(folder / f"{part}.{ending}") for part in PARTS}

    return files


def of_set(pattern: str, *parts: str) -> Callable[[Path], Files]:
    """Files of a set in $RECURRA_DATA."""
    return lambda _: {part: str(DATA / pattern.format(name)) for part, name in zip(PARTS, parts, strict=True)}


def multi30k(_: Path) -> Files:
    """Parallel files, English to German, tokenised and in lower case."""
    names = zip(PARTS, ("train", "val", "test_2016_flickr"), strict=True)
    return {
        part: ",".join(str(DATA / "multi30k" / "tok" / f"{name}.lc.norm.tok.{side}") for side in ("en", "de"))
        for part, name in names
    }


def as_wmt(folder: Path) -> Files:
    """The same pairs as IWSLT's training files and XML, and as WMT's SGML."""
    folder.mkdir(parents=True, exist_ok=True)
    found: Files = {}
    for part, files in multi30k(folder).items():
        sides = dict(zip(("en", "de"), files.split(","), strict=True))
        written = []
        for side, path in sides.items():
            lines = Path(path).read_text("utf-8").splitlines()
            name = {"train": f"train.tags.en-de.{side}", "valid": f"dev.en-de.{side}.xml"}.get(part, f"test.{side}.sgm")
            (folder / name).write_text("".join(in_markup(part, side, lines)), "utf-8")
            written.append(str(folder / name))
        found[part] = ",".join(written)
    return found


def in_markup(part: str, side: str, lines: list[str]) -> Iterator[str]:
    """The lines of a file: tags between sentences for training, segments with ids otherwise."""
    safe = [line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for line in lines]
    if part == "train":
        yield "<title>captions</title>\n"
        yield from (f"{line}\n" for line in lines)
        return
    kind = "srcset" if side == "en" else "refset"
    head = f'<{kind} setid="captions" srclang="en" trglang="de">\n<doc docid="flickr">\n'
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n{head}' if part == "valid" else head
    yield from (f'<seg id="{number}"> {line} </seg>\n' for number, line in enumerate(safe, 1))
    yield f"</doc>\n</{kind}>\n" + ("</mteval>\n" if part == "valid" else "")


def babi(folder: Path) -> Files:
    """All 20 tasks of 1,000 questions: context, question, answer."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "test"):
        rows = [row for path in sorted((DATA / "babi" / "en").glob(f"*_{part}.txt.gz")) for row in asked(path)]
        with (folder / f"{part}.tsv").open("w", encoding="utf-8") as file:
            file.writelines("\t".join(row) + "\n" for row in [("context", "question", "answer"), *rows])
    return {"train": str(folder / "train.tsv"), "valid": "10%", "test": str(folder / "test.tsv")}


def babi_files(_: Path) -> Files:
    """The same tasks, as the files that memory networks read themselves."""
    found = {part: sorted(map(str, (DATA / "babi" / "en").glob(f"*_{part}.txt.gz"))) for part in ("train", "test")}
    return {**found, "valid": "10%"}


def asked(path: Path) -> Iterator[tuple[str, str, str]]:
    """The questions of a file of bAbI's, each with the last sentences before it."""
    told: list[str] = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            number, _, text = line.strip().partition(" ")
            told = [] if number == "1" else told
            if "\t" in text:
                question, answer, *_ = text.split("\t")
                yield " ".join(told[-SENTENCES:]), question.strip(), answer.strip()
            else:
                told.append(text)


def beats(folder: Path) -> Files:
    """Windows of the MIT-BIH AF database; no patient is in two parts."""
    folder.mkdir(parents=True, exist_ok=True)
    home = DATA / "afdb_rr"
    split = json.loads((home / "split.json").read_text("utf-8"))
    return {
        part: atrial_fibrillation.write(
            folder / f"{part}.npz", atrial_fibrillation.windows(home, split[part], 100 if part == "test" else 50)
        )
        for part in PARTS
    }


def handwriting(folder: Path) -> Files:
    """CROHME, and new formulas composed of those of training; no formula of validation is in training."""
    folder.mkdir(parents=True, exist_ok=True)
    return {**formulas.split(folder), "test": str(DATA / "crohme" / "test2014.jsonl.gz")}


def short_handwriting(folder: Path) -> Files:
    """The formulas of CROHME that have at most SHORT symbols, as they were written."""
    folder.mkdir(parents=True, exist_ok=True)
    given: Files = {**formulas.split(folder, composed=0), "test": str(DATA / "crohme" / "test2014.jsonl.gz")}
    found: Files = {}
    for part in PARTS:
        [path] = given[part] if part == "train" else [given[part]]
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
            lines = [line for line in file if len(json.loads(line)["latex"].split()) <= SHORT]
        found[part] = str(folder / f"short.{part}.jsonl")
        Path(found[part]).write_text("".join(lines), "utf-8")
    return found


class System(NamedTuple):
    """A recipe, its data, the score to print, what differs from the recipe, and whether the score is a share.

    `further` answers the test data once more, and says in a line what no score says.
    """

    recipe: str
    data: Callable[[Path], Files]
    score: str
    settings: tuple[str, ...] = ()
    percent: bool = True
    further: Callable[[Path, Files], str] | None = None


def ways(example: Mapping[str, Any], said: str) -> int:
    """In how many ways examples/text_to_code.py writes what is asked for, each as probable as the others."""
    whole = next(words for words in example["WHOLES"] if said.startswith(words))
    value, _, rest = said.removeprefix(f"{whole} ").partition(" for ")
    value, choice = re.sub(r"\d+", "N", value), rest.partition(" from ")[0]
    return len(example["WHOLES"][whole]) * len(example["VALUES"][value]) * len(example["CHOICES"][choice])


def by_value(run: Path, given: Files) -> str:
    """How many programs are worth what those of the test are, and how many could be just the same."""
    example = runpy.run_path(str(ROOT / "examples" / "text_to_code.py"))
    rows = [line.split("\t") for line in Path(given["test"]).read_text("utf-8").splitlines()]
    answers = recurra.load(run).predict([said for said, _ in rows])
    right = sum(
        example["run"](answer.text) == example["run"](code) for answer, (_, code) in zip(answers, rows, strict=True)
    )
    ceiling = statistics.fmean(1 / ways(example, said) for said, _ in rows)
    return (
        f"    first answers with the value of the test's program: {right} of {len(rows)}; "
        f"exact_match of the best possible model, which cannot know the drawn way: {100 * ceiling:.2f} on average"
    )


def by_task(run: Path, given: Files) -> str:
    """The errors of each task of bAbI, and their mean."""
    model = recurra.load(run)
    errors = {}
    for path in given["test"]:
        number = int(re.findall(r"qa(\d+)_", Path(path).name)[0])
        errors[number] = 100 * (1 - model.evaluate(path).values["accuracy"])
    listed = ", ".join(f"{task} {error:.1f}" for task, error in sorted(errors.items()))
    return f"    wrong, in %: {listed}; mean {statistics.fmean(errors.values()):.2f}"


def at_both_lengths(run: Path, given: Files) -> str:
    """Of copies once and twice as long as the longest of training: the symbols that are right, and the whole ones."""
    model, told = recurra.load(run), []
    for times, path in ((1, Path(given["test"]).with_name("short.conll")), (2, Path(given["test"]))):
        sentences = [
            [line.split("\t") for line in block.splitlines()] for block in path.read_text("utf-8").split("\n\n")
        ]
        answers = model.predict([[word for word, _ in each] for each in sentences])
        right = [
            [tag == due for tag, (_, due) in zip(answer.output.split(), each, strict=True)][-(len(each) // 2) :]
            for answer, each in zip(answers, sentences, strict=True)
        ]
        symbols = statistics.fmean(one for each in right for one in each)
        whole = statistics.fmean(all(each) for each in right)
        told.append(
            f"{times} × the training length {100 * symbols:.2f} % of the symbols, {100 * whole:.2f} % of copies"
        )
    return f"    right: {'; '.join(told)}"


CLINC = of_set("clinc150/{}.tsv", *PARTS)
EWT = of_set("ud_english_ewt/en_ewt-ud-{}.conllu.gz", "train", "dev", "test")
FILMS = made_up("films", "npz", "--train", "8000")
SCENES = made_up("scenes", "npz", "--train", "4000")
COPYING = made_up("copying", "conll", "--train", "20000")
COPIES = made_up("copies", "conll", "--train", "20000")
PLAIN = "model.cell=lstm"
WRITTEN = (
    *("data.image.stroke=12", "model.image.widths=[12, 24, 48]", "model.image.layers=1", "model.hidden=64"),
    *("model.embedding=32", "model.dropout=0", "model.label_smoothing=0", "training.batch_size=16"),
    *("training.learning_rate=4e-3", "training.warmup=50", "training.epochs=10", "decoding.max_length=20"),
    *(f"augmentation.{kind}=0" for kind in ("rotate", "scale", "shear", "warp", "ink")),
)
"""Small pictures of few signs, and a small network for them, for a few minutes of a CPU."""
WRITTEN_SHORT = (
    *("data.image.stroke=20", "data.image.max_height=96", "data.image.max_width=288", "model.dropout=0.1"),
    *("training.batch_size=32", "decoding.max_length=15"),
)
"""Pictures of short formulas by hand, and less dropout: layers smaller than the recipe's learned few of them."""
HUNGARIAN = of_set("g2p_sigmorphon2020/hun_{}.tsv", *PARTS)
SPELT = (
    *("data.source.tokens=characters", "data.target.tokens=symbols", "data.source.min_count=1"),
    *("data.target.min_count=1", "evaluation.first=word_error_rate", "decoding.width=5", "model.dropout=0.2"),
    *("training.batch_size=64", "training.batch_tokens=1000", "training.learning_rate=3e-3", "training.epochs=15"),
    "training.warmup=50",
    *("model.embedding=64", "model.hidden=128"),
)
"""Letters to sounds: a recipe of translation, made small, for a few minutes of a CPU."""


def spelt(recipe: str, *settings: str) -> System:
    """A recipe of translation on the Hungarian words of SIGMORPHON 2020 (the task's own LSTM: 5.33 % wrong)."""
    return System(recipe, HUNGARIAN, "word_error_rate", (*SPELT, *settings))


SYSTEMS = {
    "pos_tagger": System("pos_tagger", EWT, "accuracy"),
    "cnn_bilstm": System("cnn_bilstm", CLINC, "accuracy"),
    "fasttext": System("fasttext", CLINC, "accuracy"),
    "rr_intervals": System("rr_intervals", beats, "accuracy"),
    "cho": System("cho", multi30k, "bleu", percent=False),
    "transformer": System("transformer", multi30k, "bleu", percent=False),
    "wmt": System("wmt", as_wmt, "bleu", ("evaluation.bleu_tokenize=none",), percent=False),
    "cho, words": spelt("cho"),
    "sutskever, words": spelt("sutskever", "model.layers=2"),
    "sutskever, words forward": spelt("sutskever", "model.layers=2", "model.direction=forward"),
    "bahdanau, words": spelt("bahdanau", "model.attention.size=128"),
    "luong, words": spelt("luong", "model.layers=1", "model.attention.look.reach=3"),
    "luong, words global": spelt("luong", "model.layers=1", "model.attention=bilinear"),
    "transformer, words": spelt("transformer", "model.layers=2", "data.joint=false", "model.tied=none"),
    "peephole": System("peephole", made_up("counting", "conll"), "sentence_accuracy"),
    "peephole, lstm": System("peephole", made_up("counting", "conll"), "sentence_accuracy", (PLAIN,)),
    "ntm": System("ntm", COPIES, "sentence_accuracy", further=at_both_lengths),
    "dnc": System("dnc", COPIES, "sentence_accuracy", further=at_both_lengths),
    "copies, lstm": System("ntm", COPIES, "sentence_accuracy", (PLAIN,), further=at_both_lengths),
    "unitary": System("unitary", COPYING, "sentence_accuracy"),
    "unitary, lstm": System("unitary", COPYING, "sentence_accuracy", (PLAIN,)),
    "non_local": System("non_local", FILMS, "accuracy"),
    "non_local, none": System("non_local", FILMS, "accuracy", ("model.non_local=none",)),
    "show_and_tell": System("show_and_tell", SCENES, "exact_match"),
    "image_to_markup": System("image_to_markup", handwriting, "exact_match"),
    "image_to_markup, made up": System(
        "image_to_markup", made_up("formulas", "jsonl", "--train", "3000"), "exact_match", WRITTEN
    ),
    "image_to_markup, short": System("image_to_markup", short_handwriting, "exact_match", WRITTEN_SHORT),
    "headlines": System("attention_based_summary", made_up("headlines", "tsv"), "exact_match"),
    "text_to_code": System(
        "text_to_code", made_up("programs", "tsv", "--train", "4000"), "exact_match", further=by_value
    ),
    "dialogue": System("dialogue", made_up("dialogues", "tsv"), "exact_match"),
    "dialogue, no attention": System(
        "dialogue", made_up("dialogues", "tsv"), "exact_match", ("model.attention=none", "model.bidirectional=false")
    ),
    "grammar": System("grammar", made_up("grammar", "tsv"), "bracket_f1"),
    "stories": System("question_answering", made_up("stories", "tsv", "--train", "4000"), "exact_match"),
    "memn2n": System("memn2n", babi_files, "accuracy", further=by_task),
    "babi": System("question_answering", babi, "exact_match"),
}


def trained(name: str, run: Path, private: Path, options: argparse.Namespace) -> None:
    """Train one system, unless its run is there."""
    if (run / "summary.json").exists():
        return
    system = SYSTEMS[name]
    given = system.data(private / name.replace(", ", "-").replace(" ", "-"))
    own = [f"training.device={options.device}", f"training.seed={options.seed}", "data.cache=false"]
    own += [] if options.minutes is None else [f"training.minutes={options.minutes}"]
    recipe = ROOT / "recipes" / f"{system.recipe}.toml"
    begin(setup(recipe, given=given, overrides=[*system.settings, *own, *options.set]), run, progress(sys.stderr))


def line(name: str, run: Path) -> str:
    system = SYSTEMS[name]
    summary = json.loads((run / "summary.json").read_text("utf-8"))
    valid, test = (
        (100 if system.percent else 1) * summary[part]["scores"].get(system.score, float("nan"))
        for part in ("best", "test")
    )
    others = {key: value for key, value in summary["test"]["scores"].items() if key in SHOWN and key != system.score}
    more = ", ".join(f"{key} {value:.4f}" for key, value in others.items())
    return (
        f"{name:24}{summary['parameters']:>12,}  {system.score:18}{valid:8.2f}{test:8.2f}{summary['epochs']:8}"
        f"{summary['steps']:9,}{summary['seconds']:9.0f}   {more}"
    )


SHOWN = ("perplexity", "symbol_error_rate", "auc", "exact_match", "balanced", "rouge_l", "accuracy", "unknown_accuracy")
HEAD = f"{'system':24}{'parameters':>12}  {'score':18}{'valid':>8}{'test':>8}{'epochs':>8}{'updates':>9}{'seconds':>9}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help="which; --list names them (all)")
    parser.add_argument("--list", action="store_true", help="name them, and end")
    parser.add_argument("--table", action="store_true", help="train nothing: a line of each run in --out")
    parser.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    parser.add_argument("--minutes", type=float, help="of each training, at most (as the recipe says)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="keep the runs in this folder")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="another setting")
    options = parser.parse_args()
    if unknown := {*options.systems} - {*SYSTEMS}:
        parser.error(f"there is no system {sorted(unknown)[0]!r}: choose of {'; '.join(SYSTEMS)}.")
    if options.list:
        print("\n".join(f"{name:24}recipes/{system.recipe}.toml" for name, system in SYSTEMS.items()))
        return
    device = torch.cuda.get_device_name() if torch.cuda.is_available() and options.device != "cpu" else "CPU"
    print(f"recurra {recurra.__version__}, torch {torch.__version__}, {device}: {' '.join(['python', *sys.argv])}")
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as private:
        for name in options.systems or SYSTEMS:
            run = (options.out or Path(private)) / f"{name.replace(', ', '-').replace(' ', '-')}.{options.seed}"
            if not options.table:
                trained(name, run, Path(private), options)
            if (run / "summary.json").exists():
                print(line(name, run), flush=True)
                if (further := SYSTEMS[name].further) is not None:
                    print(further(run, SYSTEMS[name].data(Path(private) / name)), flush=True)


if __name__ == "__main__":
    main()
