"""Exported models beside the toolkits that users would pick instead, on models of the same shape, in turn.

    python ../shared/peers/data.py --out peers/data
    python benchmarks/exported_beside_peers.py --peers ../shared/peers --venvs peers/venvs --data peers/data

Translation beside OpenNMT-py and JoeyNMT: BiLSTM of 256 a direction, LSTM of 512, vectors of 256, 8,000 words a side,
bilinear attention with input feeding; every sentence is made 15 tokens long. Pronunciation beside yoyodyne: BiLSTM of
256 a direction, LSTM of 512, vectors of 128, attention; ours are made as long as its answers are on average. Tagging
beside Flair: BiLSTM of 256 a direction with a CRF over vectors of 100 of whole words. All models have had a few updates
only, for speed alone. The README of --peers says what --venvs holds.

What a peer takes is what its own command takes for many inputs, less what it takes for a few: start and loading are
left out. Each round runs every peer and ours once; the ratio is the median of those of the rounds. --clock cpu counts
seconds of the processor instead of the clock, for a machine that others use, too. Flair is given its Sentence objects
ready made. Ours are asked by `predict` with plain lines, in a process without torch.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

CELLS = ((1, 1), (1, 32), (5, 1), (5, 32))
LENGTH, UPDATES = 15, 40
GOALS = {
    ("OpenNMT-py", "float32"): (4, 2, 6, 1.6),
    ("JoeyNMT", "int8"): (20, 6, 20, 5),
}
GOALS_OF_WORDS, GOALS_OF_TAGS = {1: 20, 32: 6}, {1: 8.0, 256: 3.3}

Seconds = Callable[[], float]


def spent(command: list[Any], environment: dict[str, str], clock: str, folder: Path) -> float:
    """Seconds of a command, by the clock or of the processor."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [*map(str, command)], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return took if clock == "wall" else after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def at_once(model: Any, lines: list[str], rows: int, clock: str, **asked: Any) -> float:
    """Seconds of ours for some lines."""
    now: Seconds = time.perf_counter if clock == "wall" else time.process_time
    began = now()
    for first in range(0, len(lines), rows):
        model.predict(lines[first : first + rows], batch_tokens=1 << 30, **asked)
    return now() - began


def ratio_line(name: str, theirs: list[float], ours: list[float], goal: float | None) -> str:
    """The rates of both sides, medians, and the median of the ratios of the rounds."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    wanted = "" if goal is None else f"{goal:g}"
    return (
        f"{name:44}{statistics.median(theirs):10,.1f}{statistics.median(ours):10,.1f}{statistics.median(ratios):9.2f}"
        f"{f'{min(ratios):.2f}-{max(ratios):.2f}':>14}{wanted:>7}"
    )


def head(what: str) -> None:
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"\n{what} (load average {load})", flush=True)
    print(f"{'':44}{'peer':>10}{'ours':>10}{'ratio':>9}{'of rounds':>14}{'asked':>7}", flush=True)


def exported(task: str, out: Path, given: dict[str, Any], settings: dict[str, Any], widths: Iterable[str]) -> None:
    """Train a run of ours for a few updates and export it, in a process of its own."""
    code = (
        "import json, sys, recurra\n"
        "task, out, given, settings, widths = json.loads(sys.argv[1])\n"
        "recurra.train(task, out=out + '/run', settings=settings, **given)\n"
        "for width in widths:\n"
        "    recurra.export(out + '/run', out + '/' + width, weights=width)\n"
    )
    if not (out / "float32").exists():
        arguments = json.dumps([task, str(out), given, settings, [*widths]])
        subprocess.run([sys.executable, "-c", code, arguments], check=True, stdout=sys.stderr)


# Translation


def translation(options: argparse.Namespace, environment: dict[str, str]) -> None:
    import recurra
    from exported_translation import floor, rates

    data, work = options.data / "m30k", options.work / "translation"
    work.mkdir(parents=True, exist_ok=True)
    lines = (data / "test.en").read_text("utf-8").splitlines()
    settings = {
        **dict.fromkeys(("data.source.tokens", "data.target.tokens"), "symbols"),
        **dict.fromkeys(("data.source.max_size", "data.target.max_size"), 8000),
        **{"data.cache": False, "model.embedding": 256, "model.hidden": 512, "model.attention": "bilinear"},
        **{"model.wiring": "feeding", "training.batch_size": 64, "training.steps": 3, "training.device": "cpu"},
        **{"decoding.min_length": LENGTH, "decoding.max_length": LENGTH, "decoding.max_ratio": 100},
    }
    exported("seq2seq", work, {"train": f"{data}/train.en,{data}/train.de"}, settings, ("float32", "int8"))
    trained = [options.python, options.peers / "nmt.py"]
    common = ["--data", data, "--venvs", options.venvs, "--work", work, "--updates", UPDATES, "--decode", "5:32"]
    for name, made in (("onmt", f"m_step_{UPDATES}.pt"), ("joeynmt", "d.yaml")):
        if not (work / name / made).exists():
            spent([*trained, name, *common, "--threads", options.threads], environment, "wall", work)
    few = 4

    def part(folder: Path, count: int) -> Path:
        for lang in ("en", "de"):
            some = (data / f"test.{lang}").read_text("utf-8").splitlines()[:count]
            (folder / f"part{count}.{lang}").write_text("\n".join(some) + "\n", "utf-8")
        return folder / f"part{count}"

    def onmt(beam: int, rows: int, count: int) -> float:
        folder = work / "onmt"
        command = [options.venvs / "onmt/bin/onmt_translate", "-model", f"m_step_{UPDATES}.pt", "-output", "out"]
        command += [
            "-src",
            f"{part(folder, count)}.en",
            "-beam_size",
            beam,
            "-batch_size",
            rows,
            "-batch_type",
            "sents",
        ]
        command += ["-min_length", LENGTH, "-max_length", LENGTH, "-gpu", -1]
        return spent(command, environment, options.clock, folder)

    def joey(beam: int, rows: int, count: int) -> float:
        folder = work / "joeynmt"
        text = (folder / "d.yaml").read_text("utf-8")
        for pattern, value in (("beam_size: ", beam), ("max_output_length: [0-9]+, batch_size: ", rows)):
            text = re.sub(f"({pattern})[0-9]+", rf"\g<1>{value}", text)
        text = re.sub(r'test: "[^"]*"', f'test: "{part(folder, count)}"', text)
        (folder / "e.yaml").write_text(text, "utf-8")
        command = [options.venvs / "joeynmt/bin/python", options.peers / "joey_run.py", "test", "e.yaml", "-o", "out"]
        return spent(command, environment, options.clock, folder)

    models = {width: recurra.load(work / width) for width in ("float32", "int8")}
    multiplied, read = rates()
    words = sum(len(line.split()) for line in lines) / len(lines)
    found: dict[tuple[str, int, int], list[float]] = {}
    for number in range(options.rounds):
        for beam, rows in CELLS:
            count = (48 if rows == 1 else 196) + few
            asked: dict[str, Any] = {"search": "greedy"} if beam == 1 else {"search": "beam", "width": beam}
            for name, run in (("OpenNMT-py", onmt), ("JoeyNMT", joey)):
                rate = (count - few) / max(1e-9, run(beam, rows, count) - run(beam, rows, few))
                found.setdefault((name, beam, rows), []).append(rate)
            for width, model in models.items():
                at_once(model, lines[:rows], rows, options.clock, **asked)
                seconds = at_once(model, lines, rows, options.clock, **asked)
                found.setdefault((width, beam, rows), []).append(len(lines) / seconds)
        print(f"translation: round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    head(f"Translation, sentences a second, {options.threads} thread(s), by the {options.clock} clock")
    for place, (beam, rows) in enumerate(CELLS):
        what = f"{'greedy' if beam == 1 else 'beam 5'}, {rows} at once"
        most = options.threads * floor(beam, rows, words, multiplied, read)
        for peer in ("OpenNMT-py", "JoeyNMT"):
            for width in ("float32", "int8"):
                goals = GOALS.get((peer, width))
                line = ratio_line(
                    f"{what}: {width} over {peer}",
                    found[peer, beam, rows],
                    found[width, beam, rows],
                    None if goals is None else goals[place],
                )
                share = statistics.median(found[width, beam, rows]) / most
                print(f"{line}   {share:.0%} of the float32 floor", flush=True)


# Pronunciation


def pronunciation(options: argparse.Namespace, environment: dict[str, str]) -> None:
    import recurra

    data, work = options.data / "g2p", options.work / "pronunciation"
    work.mkdir(parents=True, exist_ok=True)
    lines = (data / "eng_test.tsv").read_text("utf-8").rstrip("\n").split("\n")
    folder = work / "h512e128"
    if not [*folder.glob("ck/*.ckpt")]:
        command = [options.python, options.peers / "g2p.py", "--venv", options.venvs / "yoyodyne", "--data", data]
        command += ["--work", work, "--hidden", 512, "--enc_hidden", 256, "--emb", 128, "--words", 100, "--steps", 40]
        spent([*command, "--decode", "1:32", "--threads", options.threads], environment, "wall", work)
    checkpoint = sorted(folder.glob("ck/*.ckpt"))[-1]

    def yoyodyne(rows: int, count: int) -> float:
        (folder / "part.tsv").write_text("\n".join(lines[:count]) + "\n", "utf-8")
        command = [options.venvs / "yoyodyne/bin/yoyodyne", "predict", "--config", "m.yaml", "--data.source_col", 1]
        command += ["--data.target_col", 2, "--data.features_col", 0, "--ckpt_path", checkpoint]
        command += ["--data.batch_size", rows, "--model.init_args.beam_width", 1, "--data.predict", folder / "part.tsv"]
        return spent([*command, "--prediction.path", folder / "out.txt"], environment, options.clock, folder)

    yoyodyne(32, 320)
    answers = (folder / "out.txt").read_text("utf-8").rstrip("\n").split("\n")
    long = max(1, round(statistics.mean(len(each.split("\t")[0].split()) for each in answers)))
    settings = {
        **{"data.cache": False, "model.embedding": 128, "model.hidden": 512, "training.steps": 40},
        **{"training.batch_size": 64, "training.device": "cpu", "decoding.max_ratio": 100},
    }
    exported("seq2seq", work, {"train": f"{data}/eng_train.tsv"}, settings, ("float32", "int8"))
    lengths = [f"decoding.min_length={long}", f"decoding.max_length={long}", "decoding.search=greedy"]
    models = {width: recurra.load(work / width).with_settings(lengths) for width in ("float32", "int8")}
    words = [line.split("\t")[0] for line in lines]
    found: dict[tuple[str, int], list[float]] = {}
    for number in range(options.rounds):
        for rows in GOALS_OF_WORDS:
            few, count = 32, 132 if rows == 1 else 832
            seconds = yoyodyne(rows, count) - yoyodyne(rows, few)
            found.setdefault(("yoyodyne", rows), []).append((count - few) / max(1e-9, seconds))
            for width, model in models.items():
                at_once(model, words[:rows], rows, options.clock)
                seconds = at_once(model, words[:512], rows, options.clock)
                found.setdefault((width, rows), []).append(512 / seconds)
        print(f"pronunciation: round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    head(
        f"Pronunciation, words of {long} symbols a second, greedy, {options.threads} thread(s), by the {options.clock} "
        "clock"
    )
    for rows, goal in GOALS_OF_WORDS.items():
        for width in models:
            name = f"{rows} at once: {width} over yoyodyne"
            wanted = goal if width == "float32" else None
            print(ratio_line(name, found["yoyodyne", rows], found[width, rows], wanted), flush=True)


# Tagging


def tagging(options: argparse.Namespace) -> None:
    import recurra
    from tagging_beside_flair import Recurra, Worker, texts

    work = options.work / "tagging"
    work.mkdir(parents=True, exist_ok=True)
    for split in ("train", "test"):
        rows = (options.data / f"ewt/{split}.txt").read_text("utf-8").split("\n")
        (work / f"{split}.conll").write_text("\n".join(row.replace(" ", "\t") for row in rows), "utf-8")
    settings = {**Recurra(work, options.threads, time.process_time).settings, "training.steps": 20}
    settings = {name: value for name, value in settings.items() if name != "training.epochs"}
    exported("tagging", work, {"train": str(work / "train.conll")}, settings, ("float32", "int8"))
    models = {width: recurra.load(work / width) for width in ("float32", "int8")}
    peer = Worker(str(options.venvs / "flair/bin/python"), "flair", work, options.threads, options.clock)
    now: Seconds = time.perf_counter if options.clock == "wall" else time.process_time
    found: dict[tuple[str, int], list[float]] = {}
    for number in range(options.rounds):
        for rows in GOALS_OF_TAGS:
            found.setdefault(("Flair", rows), []).append(peer.ask(f"predict {rows}"))
            lines = [" ".join(words) for words in texts(work, rows)]
            words = sum(line.count(" ") + 1 for line in lines)
            for width, model in models.items():
                model.predict(lines[:rows])
                began = now()
                for first in range(0, len(lines), rows):
                    model.predict(lines[first : first + rows])
                found.setdefault((width, rows), []).append(words / (now() - began))
        print(f"tagging: round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    peer.end()
    head(f"Tagging with a CRF, words a second, {options.threads} thread(s), by the {options.clock} clock")
    for rows, goal in GOALS_OF_TAGS.items():
        for width in models:
            name = f"{rows} at once: {width} over Flair"
            wanted = goal if width == "float32" else None
            print(ratio_line(name, found["Flair", rows], found[width, rows], wanted), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, required=True, help="the folder with nmt.py and g2p.py")
    parser.add_argument(
        "--venvs", type=Path, required=True, help="virtual environments: onmt, joeynmt, yoyodyne, flair"
    )
    parser.add_argument("--data", type=Path, required=True, help="what data.py of the peers wrote")
    parser.add_argument("--work", type=Path, default=Path("peers/work"), help="models, which a second call finds again")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--only", nargs="+", default=["tagging", "pronunciation", "translation"])
    options = parser.parse_args()
    for name in ("peers", "venvs", "data", "work"):
        setattr(options, name, getattr(options, name).absolute())
    options.python = sys.executable
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: options.threads]))
    known = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(options.threads))
    os.environ.update(known)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        **{"BENCH_MINLEN": str(LENGTH), "CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "ignore"},
        **{"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1", "WANDB_MODE": "disabled"},
    }
    if "tagging" in options.only:
        tagging(options)
    if "pronunciation" in options.only:
        pronunciation(options, environment)
    if "translation" in options.only:
        translation(options, environment)


if __name__ == "__main__":
    main()
