"""Segments of documents: the SGML and XML files of WMT and IWSLT."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from recurra.data.files import PathLike, lines
from recurra.data.formats.reader import Reader, Row
from recurra.errors import DataError

# The files of WMT before 2021 are no XML: a bare & and tags in capitals occur. So tags are looked for, not parsed.
_TAG = re.compile(r"<(/?)(seg|doc|src|ref|hyp)\b([^<>]*)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([\w:]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
SIDES = ("src", "ref", "hyp")


class Segment(NamedTuple):
    """The text of one <seg>, and where it stands."""

    text: str
    line: int  # of its <seg>
    side: str  # src, ref or hyp, which of several <ref> included; "" where the file has one text
    document: str
    id: str

    @property
    def place(self) -> str:
        return f"segment {self.id!r} of document {self.document!r}"


class Segments(Reader):
    r"""One <seg> a row: of a <srcset>, <refset> or <tstset> (.sgm, and .xml of IWSLT) its `text`.

    A file of WMT since 2021 holds both sides: `source` from <src>, `target` from <ref>, and where there are several
    references a row for each; <hyp>, what systems answered, is passed over. White space in a segment is one blank.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "news.sgm"
    >>> _ = file.write_text('<srcset><doc docid="a">\n<seg id="1">Salt &amp; pepper</seg>\n</doc></srcset>\n')
    >>> list(Segments().read(file))
    [Row(values={'text': 'Salt & pepper'}, line=2, file=0, written=None)]
    """

    extensions = ("sgm", "sgml", "xml")

    def read(self, path: PathLike) -> Iterator[Row]:
        waiting: list[Segment] = []
        for segment in segments(path):
            if not segment.side:
                yield Row({"text": segment.text}, segment.line)
                continue
            if waiting and segment.document != waiting[0].document:
                yield from _both_sides(path, waiting)
                waiting = []
            waiting.append(segment)
        yield from _both_sides(path, waiting)


def _both_sides(path: PathLike, document: list[Segment]) -> Iterator[Row]:
    """The rows of one document that has <src>, and <ref> where it was translated."""
    sources = {segment.id: segment for segment in document if segment.side == "src"}
    answers: dict[str, list[Segment]] = {}
    for segment in document:
        if segment.side.startswith("ref"):
            if segment.id not in sources:
                raise DataError(
                    f"{path}:{segment.line}: {segment.place} is in <ref>, but not in <src>. Both sides must have the "
                    "same segments: add the source, or remove this one."
                )
            answers.setdefault(segment.id, []).append(segment)
    for id, source in sources.items():
        if not answers:
            yield Row({"source": source.text}, source.line)
        elif id not in answers:
            raise DataError(
                f"{path}:{source.line}: {source.place} is in <src>, but not in <ref>. Both sides must have the same "
                "segments: add the reference, or remove this one."
            )
        for answer in answers.get(id, []):
            yield Row({"source": source.text, "target": answer.text}, source.line)


def segments(path: PathLike) -> Iterator[Segment]:
    """Every <seg> of a file, in order."""
    document, side, references, documents, last = "", "", 0, 0, 0
    kept: list[str] = []
    open_at, id = 0, ""  # the line of the <seg> that is open; 0 where none is
    found = False
    for number, line in lines(path):
        last, start = number, 0
        for tag in _TAG.finditer(line):
            closes, name = bool(tag[1]), tag[2].lower()
            if open_at and not (name == "seg" and closes):
                raise DataError(
                    f"{path}:{number}: {tag[0]} stands inside the <seg> of line {open_at}. Close that one first, with "
                    "</seg>; a < that belongs to the text is written &lt;."
                )
            if name == "seg" and closes:
                if not open_at:
                    raise DataError(f"{path}:{number}: </seg> closes a <seg> that was not opened. Remove it.")
                text = html.unescape(" ".join([*kept, line[start : tag.start()]]))
                yield Segment(" ".join(text.split()), open_at, side, document, id)
                open_at, kept, found = 0, [], True
            elif name == "seg":
                attributes = _attributes(tag[3])
                open_at, id = number, attributes.get("id", attributes.get("guid", ""))
            elif name == "doc" and not closes:
                attributes, documents, references = _attributes(tag[3]), documents + 1, 0
                document, side = attributes.get("docid", attributes.get("id", str(documents))), ""
            elif name in SIDES:
                references += name == "ref" and not closes
                side = "" if closes else f"{name}{references}" if name == "ref" else name
            start = tag.end()
        if open_at:
            kept.append(line[start:])
    if open_at:
        raise DataError(f"{path}:{open_at}: this <seg> has no </seg>, and the file ends in line {last}. Close it.")
    if not found:
        raise DataError(
            f"{path}: there is no <seg> in it, so it is not a file of WMT or IWSLT (.sgm, .sgml, .xml). If it is plain "
            'text, set data.format = "text".'
        )


def _attributes(text: str) -> dict[str, str]:
    """name="value" pairs, with names in small letters."""
    return {name.lower(): html.unescape(one or other) for name, one, other in _ATTRIBUTE.findall(text)}
