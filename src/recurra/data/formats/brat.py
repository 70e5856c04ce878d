"""brat: a text and, beside it, a file of spans that are marked in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from recurra.data.files import COMPRESSED, PathLike, lines, pieces
from recurra.data.formats.marked import Marked, checked_layers, tagged, tell_dropped
from recurra.data.formats.reader import Reader, Row
from recurra.errors import DataError

_SPAN = re.compile(r"(\S+) ([0-9]+ [0-9]+(?:;[0-9]+ [0-9]+)*)")


class Brat(Reader):
    """A row for each line of NAME.txt that has words, with the spans of NAME.ann as BIO tags; NAME.ann is named.

    The line of a row is that of the text. Spans inside others are left out, and said, unless layers = 2 or more makes
    columns tags, tags2, … for them. A span over a line end keeps both lines in one row. Relations, events, attributes
    and notes are not read.
    """

    extensions = ("ann",)

    marks_texts = True

    def __init__(self, *, layers: int = 1) -> None:
        self.layers = checked_layers(layers)

    def read(self, path: PathLike) -> Iterator[Row]:
        beside = _text_beside(path)
        text = "".join(pieces(beside))
        spans = sorted(_spans(path, beside, text))
        start, dropped, line, first = 0, 0, 1, 0
        for end in [*(match.start() for match in re.finditer("\n", text)), len(text)]:
            last = first
            while last < len(spans) and spans[last].start < end:
                last += 1
            if any(span.end > end for span in spans[first:last]):
                continue  # the row goes on after this line end
            inside = [Marked(span.start - start, span.end - start, span.label) for span in spans[first:last]]
            found = tagged(text[start:end], inside, layers=self.layers)
            if found is not None:
                dropped += found.dropped
                written = found.written._replace(start=start + found.written.start)
                yield Row(found.values, line, written=written)
            line += text.count("\n", start, end + 1)
            start, first = end + 1, last
        tell_dropped(path, dropped, self.layers)


def _text_beside(path: PathLike) -> Path:
    name = str(path)
    packed = next((ending for ending in COMPRESSED if name.endswith(ending)), "")
    beside = Path(name.removesuffix(packed).removesuffix(".ann") + ".txt")
    for found in (beside, Path(f"{beside}{packed}")):
        if found.is_file():
            return found
    raise DataError(f"{path}: there is no {beside}. brat keeps the text beside its annotations: put it there.")


def _spans(path: PathLike, beside: Path, text: str) -> Iterator[Marked]:
    """The spans of the T lines; they hold no blanks at their ends."""
    for number, line in lines(path):
        if not line.startswith("T"):
            continue
        cells = line.split("\t")
        match = _SPAN.fullmatch(cells[1]) if len(cells) > 1 else None
        if match is None:
            raise DataError(
                f"{path}:{number}: found {line[:60]!r}, but a span is written as T1, a tab, its label, start and end, "
                f"a tab, and its text."
            )
        bounds = [int(bound) for bound in re.split("[ ;]", match[2])]
        fragments = list(zip(bounds[::2], bounds[1::2], strict=True))
        start, end = fragments[0][0], fragments[-1][1]
        if any(a >= b for a, b in fragments) or end > len(text):
            raise DataError(
                f"{path}:{number}: the span {match[2]} does not lie in the text of {beside}, which has {len(text):,} "
                f"characters. Is it the text that was annotated?"
            )
        between = pairwise(fragments)
        if any(text[one[1] : other[0]].strip() for one, other in between):  # brat parts a span at each line end
            raise DataError(
                f"{path}:{number}: the span {cells[0]} is in several pieces ({match[2]}), which tags cannot say. Mark "
                f"one piece, or remove it."
            )
        if not text[start:end].strip():
            raise DataError(f"{path}:{number}: the span {match[2]} holds nothing but blanks. Remove it.")
        yield Marked(start, end, match[1])
