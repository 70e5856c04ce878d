"""Where words and spans stand in the text of an input, in code points."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from recurra.text.tokens_of_text import tokens_of_text
from recurra.text.written import Token, Written


def words_in(line: str, cut: str | None = "blanks") -> Written:
    """A line with words that are separated by blanks, or also by signs; it has at least one.

    >>> words_in(" a  bc").word_places()
    [(1, 2), (4, 6)]
    >>> words_in("in Oslo.", "signs").forms
    ['in', 'Oslo', '.']
    """
    places = tokens_of_text(line) if cut == "signs" else [match.span() for match in re.finditer(r"\S+", line)]
    first, last = places[0][0], places[-1][1]
    tokens = tuple(Token(start - first, end - first) for start, end in places)
    return Written(line[first:last], tokens, start=first)


def detail_of(written: Written) -> dict[str, Any]:
    """What --json says of a sentence's place; `written_in` reads it back.

    >>> found = Written("du thé", (Token(0, 2, 2), Token(3, 6)), after="", start=7)
    >>> detail_of(found)["offsets"], detail_of(found)["ranges"], written_in(detail_of(found)) == found
    ([[7, 9], [7, 9], [10, 13]], [[1, 2]], True)
    """
    found: dict[str, Any] = {
        "text": written.text,
        "start": written.start,
        "end": written.start + len(written.text),
        "offsets": [[start, end] for start, end in written.word_places()],
    }
    ranges, first = [], 1
    for token in written.tokens:
        if token.words > 1:
            ranges.append([first, first + token.words - 1])
        first += token.words
    aside = {"ranges": ranges, "before": written.before, "after": written.after, "opens": written.opens}
    usual = {"ranges": [], "before": "", "after": " ", "opens": False}
    return found | {name: value for name, value in aside.items() if value != usual[name]}


def written_in(detail: Mapping[str, Any]) -> Written:
    """The sentence that `detail_of` describes; words alone are separated by a blank."""
    if "offsets" not in detail:
        return words_in(" ".join(detail["tokens"]))
    start = detail["start"]
    sizes = {first: last - first + 1 for first, last in detail.get("ranges", ())}
    tokens, word = [], 1
    while word <= len(detail["offsets"]):
        begin, end = detail["offsets"][word - 1]
        tokens.append(Token(begin - start, end - start, sizes.get(word, 1)))
        word += sizes.get(word, 1)
    after, before, opens = detail.get("after", " "), detail.get("before", ""), detail.get("opens", False)
    return Written(detail["text"], tuple(tokens), after, before, opens, start)


def spans_in(written: Written, tags: Sequence[str]) -> list[dict[str, Any]]:
    """The spans of a sentence's tags, with their text.

    >>> spans_in(words_in("in New York"), ["O", "B-place", "I-place"])
    [{'start': 3, 'end': 11, 'label': 'place', 'text': 'New York'}]
    """
    from recurra.metrics.spans import spans

    places, found = written.word_places(), []
    for first, stop, label in sorted(spans(tags)):
        start, end = places[first][0], places[stop - 1][1]
        text = written.text[start - written.start : end - written.start]
        found.append({"start": start, "end": end, "label": label, "text": text})
    return found
