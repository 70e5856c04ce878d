"""What is odd about the texts of a file: characters nobody sees, tags that cannot follow each other."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

from recurra.data.checking.columns import SHOWN
from recurra.data.formats.reader import Value

NAMED = {
    "\ufffd": "the replacement character U+FFFD, left where a character could not be decoded",
    "\u00a0": "the non-breaking space U+00A0",
    "\u202f": "the narrow non-breaking space U+202F",
    "\u2007": "the figure space U+2007",
    "\u200b": "the zero-width space U+200B",
    "\u2060": "the word joiner U+2060",
    "\ufeff": "the byte order mark U+FEFF inside a text",
    "\u00ad": "the soft hyphen U+00AD",
    "\u2028": "the line separator U+2028",
    "\u2029": "the paragraph separator U+2029",
}
# The joiners U+200C and U+200D are not here: Persian, Hindi and emoji are written with them.
_ODD = re.compile(
    f"[{''.join(NAMED)}"
    "\x01-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ue000-\uf8ff\U000f0000-\U0010ffff]"
)
_BIO = re.compile(r"O|[BIESLU]-.+")


class Oddity(NamedTuple):
    """One kind of oddity in one column."""

    column: str
    what: str
    rows: int  # that have it
    lines: list[int]  # the first few


class TextSurvey:
    """Sees the rows of a file; what it found is sorted by how often."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], tuple[int, list[int]]] = {}
        self.composed: set[str] = set()  # columns with a composed character somewhere
        self.schemes: dict[str, bool] = {}  # columns of tags: have all been B-X, I-X, O …?
        self.begun_by_b: set[str] = set()  # columns with a B-X that does not follow a span of the same type

    def see(self, values: Mapping[str, Value], line: int) -> None:
        for name, value in values.items():
            if isinstance(value, str):
                self._text(name, value, line)
                if value != value.strip(" \t"):
                    self._note(name, "spaces at the start or end", line)
                if name == "tags":
                    self._tags(name, value.split(), line)
            elif isinstance(value, list) and value and isinstance(value[0], str):
                texts = [str(text) for text in value]
                self._text(name, "\n".join(texts), line)
                if any(text != text.strip(" \t") for text in texts):
                    self._note(name, "spaces at the start or end of a token", line)
                if name not in ("tokens", "source", "target", "text"):
                    self._tags(name, texts, line)
        tokens, tags = values.get("tokens"), values.get("tags")
        if _count(tokens) != _count(tags) and tokens is not None and tags is not None:
            self._note("tags", "different numbers of tags and tokens", line)

    def _text(self, name: str, text: str, line: int) -> None:
        for what in {_named(character) for character in _ODD.findall(text)}:
            self._note(name, what, line)
        if not text.isascii():
            if not unicodedata.is_normalized("NFC", text):
                self._note(name, "decomposed", line)
            elif not unicodedata.is_normalized("NFD", text):
                self.composed.add(name)

    def _tags(self, name: str, tags: list[str], line: int) -> None:
        if not self.schemes.setdefault(name, True):
            return
        if not all(_BIO.fullmatch(tag) for tag in tags):
            self.schemes[name] = False
            return
        before, is_odd = "O", False
        for tag in tags:
            follows = before in (f"B{tag[1:]}", f"I{tag[1:]}")
            if tag[0] in "IEL" and not follows and not is_odd:
                self._note(name, f"BIO: {tag[:2]}X after O or after another type", line)
                is_odd = True
            if tag[0] not in "OI" and not (tag[0] == "B" and follows):
                self.begun_by_b.add(name)
            before = tag

    def _note(self, name: str, what: str, line: int) -> None:
        count, lines = self.counts.get((name, what), (0, []))
        if len(lines) < SHOWN:
            lines.append(line)
        self.counts[name, what] = (count + 1, lines)

    def found(self) -> list[Oddity]:
        oddities = []
        for (name, what), (count, lines) in self.counts.items():
            if what.startswith("BIO: ") and not self.schemes[name]:
                continue
            if what.startswith("BIO: ") and name not in self.begun_by_b:
                what = "spans begin with I-X (IOB1, as in CoNLL-2003), which is read correctly"
            if what == "decomposed":
                if name not in self.composed:  # all alike: nothing is mixed
                    continue
                what = "mixed Unicode forms: decomposed accents (NFD) next to composed ones (NFC)"
            oddities.append(Oddity(name, what, count, lines))
        return sorted(oddities, key=lambda oddity: (-oddity.rows, oddity.column, oddity.what))


def _named(character: str) -> str:
    code = f"U+{ord(character):04X}"
    if character in NAMED:
        return NAMED[character]
    kind = unicodedata.category(character)
    what = {"Cc": "the control character", "Cf": "the invisible direction mark"}.get(kind, "the private-use character")
    return f"{what} {code}"


def _count(value: Value) -> int | None:
    """How many tokens or tags a value holds."""
    if isinstance(value, str):
        return len(value.split())
    return len(value) if isinstance(value, list) else None
