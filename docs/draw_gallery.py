"""Makes the pictures of docs/gallery.md by the commands that stand there: python docs/draw_gallery.py FOLDER [NAME …].

FOLDER holds what the commands name: runs/demo-1, formulas.jsonl.gz, … With names, such as gallery_word, only those
pictures are made. A command writes to pictures/NAME.svg, which is docs/pictures/NAME.svg here.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from recurra.cli import main as recurra

DOCS = Path(__file__).resolve().parent


def commands() -> Iterator[tuple[str, list[str]]]:
    """The name of each picture that a command of the page makes, and the command's words."""
    for block in re.findall(r"^```sh\n(.*?)^```$", (DOCS / "gallery.md").read_text("utf-8"), re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            out = next((word for word in words if word.startswith("pictures/")), None)
            if words[:1] == ["recurra"] and out is not None:
                yield Path(out).stem, [str(DOCS / word) if word == out else word for word in words[1:]]


def main(folder: str, names: Sequence[str]) -> None:
    os.chdir(folder)
    for name, words in commands():
        if not names or name in names:
            print(f"{name}: recurra {shlex.join(words)}", flush=True)
            assert recurra(words) == 0, "the command has said why"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
