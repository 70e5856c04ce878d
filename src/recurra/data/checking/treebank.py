"""What CoNLL-U demands of a file beyond what is needed to read it.

Checked line by line: ten columns; IDs 1, 2, 3 …, ranges before their words and without overlap, empty nodes in order;
one blank line after each sentence, the last one too; UPOS of the universal set; features with values, sorted and
each once; a HEAD that is in the sentence; a `# text` that the tokens spell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from recurra.data.checking.columns import SHOWN
from recurra.data.checking.oddities import Oddity
from recurra.data.files import PathLike, lines
from recurra.data.formats.conllu import COLUMNS
from recurra.text.key_values import pairs_of, sorting_key

UPOS = frozenset(
    {"ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ"}
    | {"SYM", "VERB", "X", "_"}
)
"""The universal tags."""

_ID = re.compile(r"(?P<word>[1-9][0-9]*)|(?P<first>[1-9][0-9]*)-(?P<last>[1-9][0-9]*)|(?P<node>[0-9]+\.[1-9][0-9]*)")
_FEATURE = re.compile(r"[A-Z0-9][A-Za-z0-9]*(\[[a-z0-9]+\])?=[A-Z0-9][A-Za-z0-9]*(,[A-Z0-9][A-Za-z0-9]*)*", re.ASCII)
_TEXT = re.compile(r"#\s*text\s*=\s?(.*)")


class Fault(NamedTuple):
    """One thing that is not as CoNLL-U wants it."""

    line: int
    column: str  # "": it is not about a column
    what: str


def faults(path: PathLike) -> Iterator[Fault]:
    """What is wrong with a CoNLL-U file, from its beginning to its end."""
    return faults_in(lines(path))


def faults_in(numbered: Iterable[tuple[int, str]]) -> Iterator[Fault]:
    r"""What is wrong with lines that have numbers.

    >>> list(faults_in(enumerate(["1\tDogs\tdog\tNN\t_\t_\t0\troot\t_\t_", ""], 1)))
    [Fault(line=1, column='upos', what='a tag that is not universal: NN')]
    """
    sentence: list[tuple[int, str]] = []
    number, was_blank = 0, True
    for number, line in numbered:
        if line:
            sentence.append((number, line))
            if not line.strip():
                yield Fault(number, "", "a line of blanks: a sentence ends with an empty line")
        elif was_blank:
            yield Fault(number, "", "an empty line that does not end a sentence")
        else:
            yield from _in_sentence(sentence)
            sentence = []
        was_blank = not line
    if sentence:
        yield from _in_sentence(sentence)
        yield Fault(number, "", "the last sentence has no empty line after it")


def oddities(path: PathLike) -> list[Oddity]:
    """The faults of a file, each kind once, the most frequent first."""
    found: dict[tuple[str, str], list[int]] = {}
    for fault in faults(path):
        kind = fault.what.partition(":")[0] if fault.column else fault.what
        found.setdefault((fault.column, kind), []).append(fault.line)
    kinds = [Oddity(column, what, len(places), places[:SHOWN]) for (column, what), places in found.items()]
    return sorted(kinds, key=lambda oddity: (-oddity.rows, oddity.column, oddity.what))


def _in_sentence(sentence: Sequence[tuple[int, str]]) -> Iterator[Fault]:
    rows: list[tuple[int, list[str]]] = []
    text: tuple[int, str] | None = None
    for number, line in sentence:
        if line.startswith("#"):
            if rows:
                yield Fault(number, "", "a comment after the first word: comments stand before the words")
            elif match := _TEXT.match(line):
                text = number, match[1]
            continue
        cells = line.split("\t")
        if len(cells) != len(COLUMNS):
            yield Fault(number, "", f"{len(cells)} columns in place of 10")
            continue
        yield from _in_cells(number, cells)
        rows.append((number, cells))
    if not rows:
        yield Fault(sentence[0][0], "", "a sentence without words")
        return
    yield from _in_ids(rows)
    yield from _in_heads(rows)
    if text is not None and " ".join(_spelt(rows).split()) != " ".join(text[1].split()):
        yield Fault(text[0], "", "# text that the tokens do not spell, with SpaceAfter=No where nothing follows")


def _in_cells(number: int, cells: Sequence[str]) -> Iterator[Fault]:
    for name, cell in zip(COLUMNS, cells, strict=True):
        column = "form" if name == "tokens" else name
        if not cell:
            yield Fault(number, column, "an empty cell: write _")
        elif cell != cell.strip():
            yield Fault(number, column, "blanks at the start or end of a cell")
        elif name not in ("tokens", "lemma", "misc") and re.search(r"\s", cell):
            yield Fault(number, column, "a blank inside a cell")
    if "-" in cells[0] and any(cell != "_" for cell in (*cells[2:5], *cells[6:9])):
        yield Fault(number, "id", "a range with tags of its own: only its words have them")
    if cells[3] not in UPOS:
        yield Fault(number, "upos", f"a tag that is not universal: {cells[3]}")
    features = [] if cells[5] == "_" else cells[5].split("|")
    keys = [each.partition("=")[0] for each in features]
    for each in features:
        if not _FEATURE.fullmatch(each):
            yield Fault(number, "feats", f"a feature that is not Name=Value with capitals: {each}")
    if features != sorted(features, key=sorting_key):
        yield Fault(number, "feats", f"features that are not sorted: {cells[5]}")
    if len(set(keys)) < len(keys):
        yield Fault(number, "feats", f"a feature that is given twice: {cells[5]}")


def _in_ids(rows: Sequence[tuple[int, list[str]]]) -> Iterator[Fault]:
    words, covered, node = 0, 0, (0, 0)
    for number, cells in rows:
        match = _ID.fullmatch(cells[0])
        if match is None:
            yield Fault(number, "id", f"an ID that is no number, range or empty node: {cells[0]}")
        elif match["word"]:
            if int(cells[0]) != words + 1:
                yield Fault(number, "id", f"an ID that does not follow: {cells[0]} after {words}")
            words = int(cells[0])
        elif match["first"]:
            first, last = int(match["first"]), int(match["last"])
            if first != words + 1 or last <= first:
                yield Fault(number, "id", f"a range that does not stand before its first word: {cells[0]}")
            elif first <= covered:
                yield Fault(number, "id", f"a range inside another: {cells[0]}")
            covered = max(covered, last)
        else:
            place, _, order = cells[0].partition(".")
            if int(place) != words or (int(place), int(order)) != (words, node[1] + 1 if node[0] == words else 1):
                yield Fault(number, "id", f"an empty node that does not follow: {cells[0]}")
            node = int(place), int(order)
    if covered > words:
        yield Fault(rows[-1][0], "id", f"a range that ends after the last word: {covered} of {words}")


def _in_heads(rows: Sequence[tuple[int, list[str]]]) -> Iterator[Fault]:
    count = sum(cells[0].isdecimal() for _, cells in rows)
    for number, cells in rows:
        head = cells[6]
        if not cells[0].isdecimal() or head == "_":
            continue
        if not head.isdecimal() or int(head) > count or head == cells[0]:
            yield Fault(number, "head", f"a head that is not another word of the sentence: {head}")


def _spelt(rows: Sequence[tuple[int, list[str]]]) -> str:
    """The text that the tokens of a sentence are."""
    found, last = "", 0  # the last word of the range that has been written
    for _, cells in rows:
        first, dash, end = cells[0].partition("-")
        if "." in first or (not dash and first.isdecimal() and int(first) <= last):
            continue
        if dash and end.isdecimal():
            last = int(end)
        found += cells[1] + ("" if pairs_of(cells[9]).get("SpaceAfter") == "No" else " ")
    return found
