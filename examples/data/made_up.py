"""Made-up data for recipes whose papers had data that is licensed, or had made it up: KIND FOLDER

python examples/data/made_up.py scenes data/scenes          # train.npz, valid.npz and test.npz

counting    words a^n b^n c^n, and after each letter those that may follow (Gers and Schmidhuber 2001); n is 1 to 20
            in training, 21 to 30 in valid, 31 to 40 in test
copying     ten symbols, 100 blanks, a mark, and then the ten again (Hochreiter and Schmidhuber 1997)
copies      1 to 10 symbols, a mark, and then these symbols again; 11 to 20 in valid, 20 in test, and a fourth file,
            short, has 10 (Graves, Wayne and Danihelka 2014 do so with vectors of bits)
films       lights in a film of 5 frames of 3 × 3, and the colour of the one that the last frame asks for
rhythms     intervals between heart beats, regular or as in atrial fibrillation
scenes      two things on a grid, as features of its places, and a caption
stories     people who walk about, a question, and its answer
dialogues   a guest and a waiter: the last three turns and the answer
programs    wishes in words, and Python that fulfils them
formulas    strokes of a hasty hand, and LaTeX
"""

from __future__ import annotations

import argparse
import json
import random
import runpy
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1])]

from answer_questions import story  # noqa: E402
from captions import scene  # noqa: E402
from dialogue import dialogue, rows  # noqa: E402
from text_to_code import wish  # noqa: E402

from atrial_fibrillation import made_up  # noqa: E402

PARTS = {"train": 2000, "valid": 200, "test": 500}
SYMBOLS, COPIED, BLANKS, SIDE, KEYS = "abcdefgh", 10, 100, 3, 4
LONGEST = 10


def tagged(path: Path, sentences: list[list[tuple[str, str]]]) -> None:
    """A file of CoNLL's form."""
    path.write_text("\n".join("".join(f"{a}\t{b}\n" for a, b in each) for each in sentences), "utf-8")


def counted(n: int) -> list[tuple[str, str]]:
    """The letters of a^n b^n c^n, each with what may follow: after the first b, it is certain.

    >>> counted(2)
    [('a', 'ab'), ('a', 'ab'), ('b', 'b'), ('b', 'c'), ('c', 'c'), ('c', '.')]
    """
    last = {"b": "c", "c": "."}
    return [("a", "ab")] * n + [(x, x if i < n else last[x]) for x in "bc" for i in range(1, n + 1)]


def counting(folder: Path, part: str, count: int, _seed: int) -> None:
    """Training has each word many times; the other parts have longer ones, each once."""
    lengths = {"train": range(1, 21), "valid": range(21, 31), "test": range(31, 41)}[part]
    words = [counted(n) for n in lengths]
    tagged(folder / f"{part}.conll", words * max(1, count // len(words)) if part == "train" else words)


def copied(draw: random.Random) -> list[tuple[str, str]]:
    """Symbols to keep, and tags that have them after the mark."""
    kept = draw.choices(SYMBOLS, k=COPIED)
    read = [*kept, *["-"] * (BLANKS - 1), "?", *["-"] * COPIED]
    return list(zip(read, [*["-"] * (COPIED + BLANKS), *kept], strict=True))


def copying(folder: Path, part: str, count: int, seed: int) -> None:
    draw = random.Random(seed)
    tagged(folder / f"{part}.conll", [copied(draw) for _ in range(count)])


def copied_at_once(draw: random.Random, length: int) -> list[tuple[str, str]]:
    """Symbols, a mark, and blanks while they are due.

    >>> copied_at_once(random.Random(1), 2)
    [('b', '-'), ('g', '-'), ('?', '-'), ('-', 'b'), ('-', 'g')]
    """
    kept = draw.choices(SYMBOLS, k=length)
    return list(zip([*kept, "?", *["-"] * length], [*["-"] * (length + 1), *kept], strict=True))


def copies(folder: Path, part: str, count: int, seed: int) -> None:
    draw, twice = random.Random(seed), 2 * LONGEST
    between = {"train": (1, LONGEST), "valid": (LONGEST + 1, twice), "test": (twice, twice)}[part]
    tagged(folder / f"{part}.conll", [copied_at_once(draw, draw.randint(*between)) for _ in range(count)])
    if part == "test":
        tagged(folder / "short.conll", [copied_at_once(draw, LONGEST) for _ in range(count)])


def films(folder: Path, part: str, count: int, seed: int) -> None:
    """Arrays (films, frames, places × channels): a light in each frame but the last, which has a mark and a key.

    A channel is a key, a colour or the mark. The lights' keys are all different, and the label is the colour of the
    light that has the mark's key, wherever and whenever it was.
    """
    draw, films = np.random.default_rng(seed), np.arange(count)
    frames = draw.normal(0, 0.05, (count, KEYS + 1, SIDE * SIDE, 2 * KEYS + 1))
    keys, colours = draw.permuted(np.tile(np.arange(KEYS), (count, 1)), axis=1), draw.integers(0, KEYS, (count, KEYS))
    asked = draw.integers(0, KEYS, count)
    for when in range(KEYS):
        places = draw.integers(0, SIDE * SIDE, count)
        frames[films, when, places, keys[:, when]] += 1
        frames[films, when, places, KEYS + colours[:, when]] += 1
    places = draw.integers(0, SIDE * SIDE, count)
    frames[films, KEYS, places, keys[films, asked]] += 1
    frames[films, KEYS, places, -1] += 1
    named = np.array(["red", "green", "blue", "yellow"])[colours[films, asked]]
    np.savez(folder / f"{part}.npz", frames=frames.reshape(count, KEYS + 1, -1).astype(np.float32), label=named)


def rhythms(folder: Path, part: str, count: int, seed: int) -> None:
    found = [made_up(1000 * seed + number) for number in range(-(-count // 120))]
    beats, is_afib = (np.concatenate(side)[:count] for side in zip(*found, strict=True))
    np.savez(folder / f"{part}.npz", intervals=beats.astype(np.float32), label=np.where(is_afib, "afib", "other"))


def scenes(folder: Path, part: str, count: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    features, captions = zip(*(scene(draw) for _ in range(count)), strict=True)
    np.savez(folder / f"{part}.npz", features=np.stack(features).astype(np.float32), caption=np.array(captions))


def stories(folder: Path, part: str, count: int, seed: int) -> None:
    """A table with a header, for sequence to sequence and for question answering."""
    with (folder / f"{part}.tsv").open("w", encoding="utf-8") as file:
        file.write("context\tquestion\tanswer\n")
        for number in range(count):
            found = story(1_000_000 * seed + number, steps=8)
            file.write(f"{' '.join(found['context'])}\t{found['question']}\t{found['answer']}\n")


def is_of(part: str, text: str) -> bool:
    """Whether a text is for this part: eight of ten are for training, so that none is in two parts."""
    return {8: "valid", 9: "test"}.get(zlib.crc32(text.encode()) % 10, "train") == part


def dialogues(folder: Path, part: str, count: int, seed: int) -> None:
    draw, found = random.Random(seed), list[list[str]]()
    while len(found) < count:
        turns = dialogue(draw)
        found += [turns] * is_of(part, " ".join(turns))
    lines = ["\t".join(row) + "\n" for turns in found for row in rows(turns, 3)]
    (folder / f"{part}.tsv").write_text("".join(lines), "utf-8")


def programs(folder: Path, part: str, count: int, seed: int) -> None:
    """Each wish has one of its programs."""
    draw, found = random.Random(seed), dict[str, str]()
    while len(found) < count:
        said, code = wish(draw)
        if is_of(part, said):
            found.setdefault(said, code)
    (folder / f"{part}.tsv").write_text("".join(f"{said}\t{code}\n" for said, code in found.items()), "utf-8")


def formulas(folder: Path, part: str, count: int, seed: int) -> None:
    written, chance = runpy.run_path(str(Path(__file__).parents[1] / "formulas.py"))["formula"], random.Random(seed)
    rows = [written(chance) for _ in range(count)]
    lines = [json.dumps({"ink": row["strokes"], "latex": row["latex"]}) + "\n" for row in rows]
    (folder / f"{part}.jsonl").write_text("".join(lines), "utf-8")


KINDS: dict[str, Callable[[Path, str, int, int], None]] = {
    each.__name__: each
    for each in (counting, copying, copies, films, rhythms, scenes, stories, dialogues, programs, formulas)
}


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("folder", type=Path)
    for part, count in PARTS.items():
        parser.add_argument(f"--{part}", type=int, default=count, help=f"examples ({count})")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(given)
    options.folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(PARTS):
        KINDS[options.kind](options.folder, part, getattr(options, part), options.seed + number)


if __name__ == "__main__":
    main()
