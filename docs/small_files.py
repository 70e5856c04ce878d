"""Write small files for the snippets of these pages, into the folder that one stands in: python docs/small_files.py"""

import json
import random
from pathlib import Path


def write_treebank() -> None:
    """A language of sixteen words, as CoNLL-U."""
    draw = random.Random(1)
    words = {
        "DET": ["the", "a", "every"],
        "ADJ": ["small", "old"],
        "NOUN": ["cat", "dog", "bird", "garden", "student"],
        "VERB": ["sees", "likes", "finds", "follows"],
    }
    for name, count in (("train", 40), ("dev", 10), ("test", 10)):
        lines = []
        for _ in range(count):
            noun = [*(["DET", "ADJ"] if draw.random() < 0.3 else ["DET"]), "NOUN"]
            for place, tag in enumerate([*noun, "VERB", "DET", "NOUN"], 1):
                word = draw.choice(words[tag])
                lines.append(f"{place}\t{word}\t{word}\t{tag}\t{tag[:2]}\t_\t0\troot\t_\t_")
            lines.append("")
        Path(f"{name}.conllu").write_text("\n".join(lines) + "\n")


def write_others() -> None:
    """Questions of two kinds, stories, a scene, a sensor, numbers as they are said, colours and pen strokes."""
    for name, count in (("questions", 12), ("held_out", 4)):
        rows = [f"what is the price of {n} cups\tshop\nwhen does bus {n} leave\ttravel\n" for n in range(count)]
        Path(f"{name}.tsv").write_text("".join(rows))
    told = [
        {"context": f"Ann went {place}.", "question": "Where is Ann?", "answer": place} for place in ("home", "out")
    ]
    Path("stories.jsonl").write_text("".join(json.dumps(row) + "\n" for row in told))
    for name in ("play", "scene"):
        Path(f"{name}.txt").write_text("ROMEO:\nIt is the east.\n\nJULIET:\nO gentle night.\n" * 30)
    for name, first in (("sensors", 0), ("later", 60)):
        rows = [f"{step},{step % 7}\n" for step in range(first, first + 60)]
        Path(f"{name}.csv").write_text("time,level\n" + "".join(rows))
    digits = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    for name, first in (("pairs", 0), ("more", 40)):
        rows = [f"{n}\t{' '.join(digits[int(digit)] for digit in str(n))}\n" for n in range(first, first + 40)]
        Path(f"{name}.tsv").write_text("".join(rows))
    for name in ("colours", "more_colours"):
        Path(f"{name}.tsv").write_text("".join(f"{digits[n]} red\t{25 * n}\t0\t{n}\n" for n in range(10)))
    bar, dash = [[0, 0], [0, 9]], [[0, 9], [5, 5]]
    for name in ("ink", "more_ink"):
        drawn = [{"strokes": [bar] * n + [dash], "latex": "1 " * n + "-"} for n in range(1, 5)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in drawn))


if __name__ == "__main__":
    write_treebank()
    write_others()
