"""What columns are usually called, and what a cell holds by the look of it: a number, a date, a picture or a text."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Sequence
from typing import Final

from recurra.data.checking.pictures import is_path

MISSING: Final = ("", "na", "n/a", "nan", "null", "none", "-", "?")
"""How tables write that a value is not known."""

TEXTS: Final = (
    *("text", "sentence", "utterance", "review", "comment", "tweet", "message", "document", "content", "query", "body"),
    *("headline", "description", "title", "post", "subject", "question", "input", "phrase", "premise", "hypothesis"),
)
LABELS: Final = (
    *("label", "category", "class", "intent", "sentiment", "topic", "emotion", "polarity", "gold", "genre"),
    *("rating", "stars", "tag", "judgment", "judgement"),
)
SOURCES: Final = (
    *("source", "src", "input", "question", "context", "passage", "paragraph", "article", "document", "text", "word"),
    *("sentence", "lemma", "grapheme", "graphemes", "english", "en", "prompt", "query", "utterance", "original"),
)
TARGETS: Final = (
    *("target", "tgt", "output", "answer", "translation", "response", "reply", "summary", "form", "inflected"),
    *("phoneme", "phonemes", "phones", "pronunciation", "ipa", "german", "de", "french", "fr", "spanish", "es"),
    *("correction", "corrected", "paraphrase"),
)
"""Of two columns of pairs, those that are read and those that are written."""

CONTEXTS: Final = ("context", "passage", "paragraph", "article")
"""Texts that are read together with another one, such as a question."""

TWO_TEXTS: Final = (
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("sentencea", "sentenceb"),
    ("text1", "text2"),
    ("texta", "textb"),
    ("question1", "question2"),
    ("document", "question"),
    ("passage", "question"),
    ("story", "question"),
)
"""Columns of two texts that are read together to give them one label, the first of which is looked at."""

TIMES: Final = (
    *("time", "date", "datetime", "timestamp", "ts", "year", "month", "day", "hour", "week", "created", "updated"),
)
MOMENTS: Final = ("time", "date", "datetime", "timestamp", "ts", "year", "ds", "step")
"""Columns that say to which time a step of a series belongs."""

SERIES: Final = ("series", "series_id", "unique_id", "item_id")
"""Columns that say which series a row belongs to."""

IDS: Final = (
    *("id", "qid", "index", "idx", "uid", "uuid", "guid", "row", "nr", "no", "unnamed", "user", "author"),
    *("split", "fold", "url", "link"),
)
"""Columns that tell rows apart or say where they come from: nothing to read or to predict."""

OTHERS: Final = (
    *("labels", "tokens", "tags", "features", "values", "value", "vector", "frames", "image", "picture", "file"),
    *("strokes", "ink", "language", "lang", "score", "caption", "latex", "name", "series", "words", "upos", "msd"),
    *("ner", "pos", "photo", "number", "key"),
)

KNOWN: Final = frozenset((*TEXTS, *LABELS, *SOURCES, *TARGETS, *TIMES, *IDS, *OTHERS))
"""Names that a first line seldom holds unless it is a header."""

_WITH_COMMA = r"([+-]?\d+),(\d+)"

ENTAILMENT: Final = frozenset(("entailment", "neutral", "contradiction"))
"""Classes of pairs of a premise and a hypothesis."""

NO_MAJORITY: Final = "-"
"""What SNLI and MultiNLI write in place of such a class where the annotators did not agree."""

ORDERS: Final = ("ymd", "dmy", "mdy")
"""Of day, month and year in a date."""

_DAY = r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?:[ T](\d{1,2}):(\d\d)(?::(\d\d)(?:\.\d+)?)?)?"


def usual(name: str) -> str:
    """A column's name as the lists above write it.

    >>> usual(" User_ID "), usual("Unnamed: 0"), usual("Text")
    ('user id', 'unnamed', 'text')
    """
    return re.sub(r"[\W\d_]+", " ", name).strip().lower()


def is_called(name: str, among: Iterable[str]) -> bool:
    """Whether a column bears one of these names, alone or as its last word.

    >>> is_called("review_text", TEXTS), is_called("User ID", IDS), is_called("created_at", TIMES), is_called("x", IDS)
    (True, True, True, False)
    """
    words = usual(name).removesuffix(" at").split(" ")
    known = {*among}
    return " ".join(words) in known or words[-1] in known


def called(names: Iterable[str], among: Iterable[str]) -> str | None:
    """The column that bears the first of these names that any column bears; None where none does."""
    names, among = list(names), list(among)
    exact = {usual(name): name for name in reversed(names)}
    found = next((exact[name] for name in among if name in exact), None)
    return found or next((name for one in among for name in names if is_called(name, [one])), None)


def kind_of(cell: object) -> str:
    """What a cell of a table holds: missing, number, date, picture or text.

    >>> [kind_of(cell) for cell in ("3", "0.5 1", "1,5", "01/02/2023", "2023-01", "a/b.png", "NA", "3 cats")]
    ['number', 'number', 'number', 'date', 'date', 'picture', 'missing', 'text']
    """
    if cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING):
        return "missing"
    if isinstance(cell, int | float):
        return "number"
    if not isinstance(cell, str):
        return "text"
    text = cell.strip()
    if all(_is_number(part) for part in text.split()):
        return "number"
    if is_date(text):
        return "date"
    return "picture" if is_path(text) else "text"


def _is_number(text: str) -> bool:
    text = text.removesuffix("%")
    return re.fullmatch(_WITH_COMMA, text) is not None or not math.isnan(number_in(text))


def number_in(text: str) -> float:
    """The number that a text is, also with a decimal comma; NaN where it is none.

    With three digits after it, a comma could also set off thousands; that is no number here.

    >>> number_in("2.5"), number_in("2,5"), number_in("0,125"), number_in("1,234")
    (2.5, 2.5, 0.125, nan)
    """
    try:
        return float(text)
    except ValueError:
        found = re.fullmatch(_WITH_COMMA, text.strip())
    if found is None or (len(found[2]) == 3 and found[1].strip("+-") != "0"):
        return math.nan
    return float(f"{found[1]}.{found[2]}")


def is_date(text: str) -> bool:
    """Whether a text is a date, in whichever order."""
    return any(when(text, order) is not None for order in ORDERS)


def when(text: str, order: str = "ymd") -> datetime.datetime | None:
    """The date that a text is, where the order of day, month and year is known; None where it is none.

    >>> when("31.12.2023", "dmy"), when("2023-02"), when("02/01/2023 08:30", "mdy")
    (datetime.datetime(2023, 12, 31, 0, 0), datetime.datetime(2023, 2, 1, 0, 0), datetime.datetime(2023, 2, 1, 8, 30))
    >>> when("31.12.2023", "mdy"), when("noon")
    (None, None)
    """
    text = text.strip()
    if order == "ymd":
        try:
            if re.fullmatch(r"\d+", text):
                return None
            return datetime.datetime.fromisoformat(f"{text}-01" if re.fullmatch(r"\d{4}-\d\d", text) else text)
        except ValueError:
            pass
    found = re.fullmatch(_DAY, text)
    if found is None:
        return None
    parts = dict(zip(order, (found[1], found[3], found[4]), strict=True))
    if len(parts["y"]) != 4:
        return None
    try:
        hour, minute, second = (int(found[number] or 0) for number in (5, 6, 7))
        return datetime.datetime(int(parts["y"]), int(parts["m"]), int(parts["d"]), hour, minute, second)
    except ValueError:
        return None


def order_of(dates: Iterable[str]) -> str | None:
    """The order of day, month and year that all dates fit; None where two orders fit, or none does.

    >>> order_of(["01/02/2023", "13/02/2023"]), order_of(["01/02/2023"]), order_of(["1.2.2023"])
    ('dmy', None, 'dmy')
    """
    dates = list(dates)
    fitting = [order for order in ORDERS if all(when(date, order) is not None for date in dates)]
    if len(fitting) > 1 and all("." in date for date in dates):
        return "dmy"  # with points the day is always first
    return fitting[0] if len(fitting) == 1 else None


def pair_roles(names: Iterable[str]) -> dict[str, str] | None:
    """Source and target by the usual names of columns; None where these do not tell.

    >>> pair_roles(["context", "question", "answer"])
    {'context': 'source', 'question': 'source', 'answer': 'target'}
    >>> pair_roles(["answer", "question"]), pair_roles(["a", "b"])
    ({'answer': 'target', 'question': 'source'}, None)
    """
    names = [name for name in names if not is_called(name, (*IDS, *TIMES))]
    target = called(names, TARGETS)
    source = called([name for name in names if name != target], [name for name in SOURCES if name not in CONTEXTS])
    contexts = [name for name in names if name != target and is_called(name, CONTEXTS)]
    sources = {*contexts, *([source] if source else [])}
    if target is None or not sources:
        return None
    return {name: "target" if name == target else "source" for name in names if name == target or name in sources}


def two_texts(names: Iterable[str]) -> tuple[str, str] | None:
    """The columns of two texts that belong together, by their usual names; None where these do not tell.

    >>> two_texts(["pair_ID", "sentence_A", "sentence_B", "entailment_label"]), two_texts(["Premise", "hypothesis"])
    (('sentence_A', 'sentence_B'), ('Premise', 'hypothesis'))
    >>> two_texts(["text", "label"]) is None
    True
    """
    plain = {re.sub(r"[\W_]+", "", name).lower(): name for name in names}
    found = (pair for pair in TWO_TEXTS if pair[0] in plain and pair[1] in plain)
    return next(((plain[first], plain[second]) for first, second in found), None)


def is_entailment(classes: Iterable[str]) -> bool:
    """Whether classes are those of entailment, in whichever letters.

    >>> is_entailment(["NEUTRAL", "ENTAILMENT", "CONTRADICTION"]), is_entailment(["neutral", "good", "bad"])
    (True, False)
    """
    return {name.lower() for name in classes} - {NO_MAJORITY} == ENTAILMENT


def text_columns(names: Iterable[str]) -> list[str]:
    """The columns that are called as texts usually are; `text` alone where there is one.

    >>> text_columns(["id", "Sentence", "intent"]), text_columns(["title", "text"]), text_columns(["title", "body"])
    (['Sentence'], ['text'], ['title', 'body'])
    """
    return _called(names, TEXTS)


def label_columns(names: Iterable[str]) -> list[str]:
    """The columns that are called as labels usually are; `label` alone where there is one.

    >>> label_columns(["id", "sentence", "Intent"]), label_columns(["topic", "label"]), label_columns(["a"])
    (['Intent'], ['label'], [])

    Of several annotators, the column of the majority is meant.

    >>> label_columns(["gold_label", "sentence1", "label1", "label2"])
    ['gold_label']
    """
    names = list(names)
    gold = [name for name in names if usual(name) in ("gold", "gold label")]
    return gold[:1] or _called(names, LABELS)


def _called(names: Iterable[str], among: Sequence[str]) -> list[str]:
    names = list(names)
    first = [name for name in names if usual(name) == among[0]]
    exact = [name for name in names if usual(name) in among]
    return first[:1] or exact or [name for name in names if is_called(name, among)]
