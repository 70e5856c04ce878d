"""JSONL with spans: a text a line, and the spans that are marked in it, as doccano, Prodigy and others write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recurra.data.files import PathLike, lines
from recurra.data.formats.jsonl import parsed_object
from recurra.data.formats.marked import Marked, checked_layers, tagged, tell_dropped
from recurra.data.formats.reader import Reader, Row
from recurra.errors import DataError

TEXTS = ("text", "data", "content")
SPANS = ("spans", "entities", "labels", "label", "annotations")
STARTS, ENDS = ("start", "start_offset", "begin"), ("end", "end_offset")
LABELS = ("label", "type", "tag", "entity")
"""How the keys are spelt; the first that is there counts."""


class Spans(Reader):
    """A row for each line {"text": …, "spans": [{"start": 3, "end": 8, "label": "place"}, …]}, as tokens and BIO tags.

    start and end are code points, the end excluded. A span may also be a list [start, end, label], and the keys may be
    spelt as doccano (label, start_offset) or spaCy (entities) spell them. Where the line has Prodigy's "tokens", they
    are taken; else they are found by rule. Spans inside others are left out, and said, unless layers is 2 or more.
    """

    marks_texts = True

    def __init__(self, *, layers: int = 1) -> None:
        self.layers = checked_layers(layers)

    def read(self, path: PathLike) -> Iterator[Row]:
        dropped = 0
        for number, line in lines(path):
            if not line.strip():
                continue
            place = f"{path}:{number}"
            found = parsed_object(place, line)
            text = next((found[key] for key in TEXTS if key in found), None)
            if not isinstance(text, str):
                raise DataError(f'{place}: there is no text. Each line holds {{"text": "…", "spans": [ … ]}}.')
            spans = [_span(place, each, text) for each in _listed(place, found)]
            row = tagged(text, spans, layers=self.layers, tokens=_tokens(place, found.get("tokens"), text))
            if row is None:
                raise DataError(f"{place}: the text has no words. Remove the line.")
            dropped += row.dropped
            yield Row(row.values, number, written=row.written)
        tell_dropped(path, dropped, self.layers)


def is_spans(value: object) -> bool | None:
    """Whether an object of JSON is a text with spans; None: an empty list does not tell spans from classes.

    >>> is_spans({"text": "in Paris", "label": [[3, 8, "place"]]}), is_spans({"text": "in Paris", "label": "good"})
    (True, False)
    >>> is_spans({"text": "in Paris", "labels": []}) is None
    True
    """
    if not isinstance(value, Mapping) or not any(isinstance(value.get(key), str) for key in TEXTS):
        return False
    lists = {key: value[key] for key in SPANS if isinstance(value.get(key), list)}
    if any(found and all(map(_is_span, found)) for found in lists.values()) or lists.get("spans") == []:
        return True
    return None if [] in lists.values() else False


def _is_span(value: object) -> bool:
    if isinstance(value, list):
        return len(value) == 3 and isinstance(value[0], int) and isinstance(value[1], int)
    return isinstance(value, Mapping) and any(key in value for key in STARTS)


def _listed(place: str, found: Mapping[str, Any]) -> list[Any]:
    spans = next((found[key] for key in SPANS if isinstance(found.get(key), list)), None)
    if spans is None:
        raise DataError(f'{place}: there are no "spans". Write "spans": [] for a text without any.')
    return list(spans)


def _span(place: str, value: object, text: str) -> Marked:
    parts: list[Any] = []
    if isinstance(value, list):
        parts = value
    elif isinstance(value, Mapping):
        parts = [next((value[key] for key in keys if key in value), None) for keys in (STARTS, ENDS, LABELS)]
        parts = [each[0] if isinstance(each, list) and len(each) == 1 else each for each in parts]
    is_whole = len(parts) == 3 and all(isinstance(each, int) and not isinstance(each, bool) for each in parts[:2])
    if not is_whole or not isinstance(parts[2], str) or not parts[2].strip():
        raise DataError(f'{place}: a span is {{"start": 3, "end": 8, "label": "…"}}, but found {str(value)[:60]}.')
    start, end, label = parts
    if not 0 <= start < end <= len(text):
        raise DataError(
            f"{place}: the span {start} to {end} does not lie in the text, which has {len(text):,} characters. "
            "start and end are code points, and the end is not part of the span."
        )
    if not text[start:end].strip():
        raise DataError(f"{place}: the span {start} to {end} holds nothing but blanks. Remove it.")
    return Marked(start, end, "_".join(label.split()))


def _tokens(place: str, value: object, text: str) -> list[tuple[int, int]] | None:
    """Prodigy's tokens, where there are any: they have offsets of their own."""
    if not isinstance(value, list) or not value or not all(isinstance(each, Mapping) for each in value):
        return None
    found = [(each.get("start"), each.get("end")) for each in value]
    last = 0
    for start, end in found:
        if not isinstance(start, int) or not isinstance(end, int) or not last <= start < end <= len(text):
            raise DataError(f"{place}: the tokens do not lie in the text one after the other ({start} to {end}).")
        last = end
    return [(start, end) for start, end in found if text[start:end].strip()]
