"""The gallery: its commands are commands, and each picture has the one that makes it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from recurra.cli import parser

DOCS = Path(__file__).parent.parent / "docs"
TEXT = (DOCS / "gallery.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_every_command_of_the_gallery_can_be_typed() -> None:
    lines = [line for block in BLOCKS for line in block.replace("\\\n", " ").splitlines()]
    for line in lines:
        words = shlex.split(line)
        if words[0] == "recurra":
            parser().parse_args(words[1:])
        else:
            assert words[0] == "python"
            assert (DOCS.parent / words[1]).is_file()


def test_every_picture_stands_above_the_command_that_makes_it() -> None:
    shown = re.findall(r"!\[[^\]]+\]\((pictures/[^)]+)\)\n\n(?=```sh\n(.*?)^```)", TEXT, re.DOTALL | re.MULTILINE)
    assert len(shown) == len(BLOCKS) - 1, "the last block is of the runs"
    for picture, block in shown:
        assert (DOCS / picture).is_file()
        assert picture in block or "python docs/" in block


def test_every_picture_that_was_made_for_the_gallery_is_in_it() -> None:
    made = {path.name for path in DOCS.glob("pictures/gallery_*.svg")}
    assert made == set(re.findall(r"--(?:out|draw|graph) pictures/(gallery_\w+\.svg)", TEXT))
