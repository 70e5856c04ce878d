"""Which tasks a file can serve, and the command that trains on it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recurra.data.checking.columns import MOST_LABELS, Column
from recurra.data.checking.pictures import PATHS, PIXELS, STROKES
from recurra.data.checking.series import SeriesTable
from recurra.data.formats.reader import Value
from recurra.data.roles import (
    CONTEXTS,
    IDS,
    MOMENTS,
    NO_MAJORITY,
    SERIES,
    is_called,
    is_entailment,
    label_columns,
    pair_roles,
    text_columns,
    two_texts,
)
from recurra.data.roles import TIMES as TIME_NAMES

TASKS = ("tagging", "classification", "question_answering", "seq2seq", "vec2seq", "language_model", "forecasting")
MOST_COMPARED = 8
UNREAD = ("id", "language", "time")
"""Columns that no model reads or predicts."""

FEW = 20
"""Different values that a column which is called a label may have although none recurs."""

WRITTEN = ("caption", "latex")
"""Columns that are to be written also where their values recur, as labels do."""

NO_WORDS = ("true", "false", "inf", "nan", "none")
"""What --set would not take for a word."""


class Service(NamedTuple):
    """Whether a task can use the file: the command to type next, or the reason why not."""

    task: str
    command: str | None
    reason: str | None
    guess: str | None = None  # what else the command could have named
    found: str | None = None  # what the task takes the rows for


class Request(NamedTuple):
    """The files and settings that `check` was asked with."""

    train: list[str]
    valid: list[str]
    format: str | Mapping[str, object] | None
    columns: Mapping[str, str] | Sequence[str] | None
    share: str | None = None  # of the training files to hold out, where no file was given for validation


class ParallelSurvey:
    """Sees whether the parts of the first column are as many as those of the others: tokens and their tags."""

    def __init__(self) -> None:
        self.rows = self.tokens = 0
        self.agreeing: dict[str, int] = {}
        self.tags: dict[str, set[str]] = {}

    def see(self, values: Mapping[str, Value]) -> None:
        first, *others = [(name, _parts(value)) for name, value in values.items()] or [("", [])]
        self.rows += 1
        self.tokens += len(first[1])
        for name, parts in others[:MOST_COMPARED]:
            self.agreeing[name] = self.agreeing.get(name, 0) + (len(parts) == len(first[1]))
            tags = self.tags.setdefault(name, set())
            if len(tags) <= MOST_LABELS:
                tags.update(parts)

    def found(self) -> list[str]:
        """The columns with a tag for each token in nearly all rows, where rows have several tokens."""
        if self.tokens < 1.5 * self.rows:
            return []
        return [
            name
            for name, rows in self.agreeing.items()
            if rows >= 0.95 * self.rows and len(self.tags[name]) <= min(MOST_LABELS, self.tokens // 2)
        ]


def services(
    request: Request, format: str, columns: Sequence[Column], parallel: Sequence[str], series: SeriesTable | None
) -> list[Service]:
    """What each task says to a file of these columns."""
    if format == "babi":
        why = "stories with numbered lines are read by question_answering."
        given = {"format": request.format, "columns": request.columns}
        served = Service("question_answering", _typed("question_answering", request, given, {}), None)
        return [served if task == served.task else Service(task, None, why) for task in TASKS]
    return [
        _forecasting(request, columns, series)
        if task == "forecasting"
        else _service(task, request, format, columns, parallel, series)
        for task in TASKS
    ]


def roles_of(
    task: str,
    request: Request,
    format: str,
    columns: Sequence[Column],
    parallel: Sequence[str],
    series: SeriesTable | None,
) -> dict[str, str] | None:
    """From the columns that a task can use to the roles it would give them; None where it has no use for them."""
    roles = _by_name(task, columns)
    is_series = series is not None and not series.has_more
    if roles is None and request.columns is None and format != "conllu" and not is_series:
        roles = _by_content(task, columns, parallel)
        classes = {column.name: "label" for column in columns if task == "classification" and _are_classes(column)}
        if task != "language_model" and _contradicts(task, dict((roles or {}).items() - classes.items())):
            roles = None
    return roles


def _service(
    task: str,
    request: Request,
    format: str,
    columns: Sequence[Column],
    parallel: Sequence[str],
    series: SeriesTable | None,
) -> Service:
    if task == "language_model" and format == "parallel":
        return Service(task, None, "these are parallel files: give one of them alone.")
    roles = roles_of(task, request, format, columns, parallel, series)
    if format not in ("tsv", "csv") and list((roles or {}).values()).count("source") > 1:
        return Service(task, None, "two texts form a source only in a table (.tsv or .csv).")
    if roles is not None:
        command = _command(task, request, format, columns, roles)
        return Service(task, command, None, _guess(task, columns, parallel, roles))
    aside = " Name their roles with data.columns." if request.columns is not None and format != "conllu" else ""
    return Service(task, None, _REASONS[task] + aside)


def _guess(task: str, columns: Sequence[Column], parallel: Sequence[str], roles: Mapping[str, str]) -> str | None:
    """Which other columns could have a role that content alone has given; None where there is no other."""
    if _by_name(task, columns) is not None or task not in ("classification", "seq2seq", "language_model"):
        return None
    labels, texts = _labels(columns), [name for name in _texts(columns, parallel) if name not in _labels(columns)]
    said = []
    sides = {role: name for name, role in roles.items()}
    if task == "classification" and "second" in sides:
        what = f"{sides['text']} and {sides['second']} as premise and hypothesis"
        return f"{what}, because {sides['label']} has the classes of entailment"
    for role, others, usual in (
        ("text", texts, text_columns),
        ("label", labels, label_columns),
        ("source", texts, list),
        ("target", texts, list),
    ):
        chosen = [name for name, its in roles.items() if its == role]
        left = [name for name in others if name not in roles]
        is_usual = role in ("text", "label") and [*usual([*chosen, *left])] == chosen
        if chosen and left and (not is_usual or any(is_called(name, CONTEXTS) for name in left)):
            said.append(f"{' and '.join(chosen)} as {role}; other candidates are {', '.join(left)}")
    if task == "classification" and "second" not in roles.values() and _other_texts(texts, roles):
        [other, *_] = _other_texts(texts, roles)
        said.append(f"To read {other} together with it, add --set data.second={other}")
    return ". ".join(said) or None


def _other_texts(texts: Sequence[str], roles: Mapping[str, str]) -> list[str]:
    """Texts that could be read together with the one that is."""
    return [name for name in texts if name not in roles] if "text" in roles.values() else []


def _forecasting(request: Request, columns: Sequence[Column], series: SeriesTable | None) -> Service:
    settings: dict[str, object] = {}
    if series is not None:
        if series.time.lower() not in MOMENTS:
            settings["time"] = series.time
        if series.series is not None and series.series.lower() not in SERIES:
            settings["series"] = series.series
        if series.others:
            settings["values"] = series.values
    else:
        frames = _sequences(columns)
        if not frames or _labels(columns):
            return Service("forecasting", None, _why_no_series(columns))
        if frames[0] != "frames":
            settings["frames"] = frames[0]
    given = {"format": request.format, "columns": request.columns}
    return Service("forecasting", _typed("forecasting", request, given, settings), None, _guess_of(series))


def _why_no_series(columns: Sequence[Column]) -> str:
    """Why a table is no table of series, where it nearly is one."""
    dates = [column.name for column in columns if column.dates]
    others = [column for column in columns if column.name not in dates and not is_called(column.name, IDS)]
    if not others or not all(column.numeric and column.kind != "arrays" for column in others):
        return _REASONS["forecasting"]
    if dates:
        return (
            f"the dates of '{dates[0]}' do not ascend from row to row. Sort the rows by it, or name the column that "
            f'identifies the series: data.series = "…".'
        )
    return (
        "no column is the time of the rows. If each row is the next step of one series, train without it: "
        "recurra train forecasting --train FILE."
    )


def _guess_of(series: SeriesTable | None) -> str | None:
    """What content alone has said about a table of series, and what is not read of it."""
    if series is None:
        return None
    said = []
    if series.is_guess:
        said.append(f"{series.time} as the time, because its numbers ascend")
    if series.left_out:
        out = ", ".join(series.left_out)
        said.append(
            f"{', '.join(series.values)} as values, and leaves out {out}, which data.future, data.past or data.static "
            "would read"
        )
    return "; ".join(said) or None


_NAMED: dict[str, list[tuple[str, ...]]] = {
    "tagging": [("tokens", "tags"), ("tokens", "upos")],
    "classification": [
        (read, wanted)
        for wanted in ("label", "category", "labels", "target", "score")
        for read in ("text", "tokens", "frames", "image", "strokes")
    ],
    "question_answering": [("context", "question", "answer"), ("story", "question", "answer")],
    "seq2seq": [("source", "target"), ("frames", "target")],
    "vec2seq": [("vector", "target"), ("image", "target"), ("strokes", "target"), ("frames", "target")],
    "language_model": [("text",), ("tokens",)],
}

_REASONS = {
    "tagging": "it needs a column of tokens and a column with one tag for each token. A file with one word per line "
    "needs an empty line after each sentence (--format conll).",
    "classification": "it needs a text, a picture or a series of numbers to read, and a label to predict (at most "
    f"{MOST_LABELS} values, which recur), a list of labels or a number.",
    "question_answering": "it needs columns that are called context, question and answer, or stories with numbered "
    "lines (--format babi).",
    "seq2seq": "it needs a source and a target: two columns of text, or frames of numbers and a text.",
    "vec2seq": "it needs a vector of numbers, a picture or features of places, and a target text.",
    "language_model": "it needs a column of text.",
    "forecasting": "it needs a table with a time column and numbers, or sequences of numbers without labels.",
}

_PICTURES = {"image": "image", "strokes": "image.strokes"}
_SETTINGS = {
    "text": "text",
    "second": "second",
    "frames": "frames",
    "label": "label",
    "labels": "labels",
    "target": "targets",
    **_PICTURES,
}
"""Settings under [data] by which a column can be given a role."""

_SETTINGS_OF_PAIRS = {"source": "source", "target": "target", "features": "features"}
_SETTINGS_OF_GIVENS = {"vector": "vector", "frames": "frames", "target": "target", **_PICTURES}
_SEVERAL = ("features", "vector")
"""Roles that several columns may have."""


def _by_name(task: str, columns: Sequence[Column]) -> dict[str, str] | None:
    """From columns to roles, where the columns are called by their roles."""
    names = {column.name: column for column in columns}
    for wanted in _NAMED[task]:
        is_number = task == "classification" and wanted[-1] in ("target", "score")
        is_text = task in ("seq2seq", "vec2seq") and wanted[0] == "frames"
        if not all(role in names for role in wanted):
            continue
        if is_number and (not names[wanted[-1]].numeric or _are_classes(names[wanted[-1]])):
            continue
        if not is_text or (names["frames"].kind == "arrays" and names["target"].kind == "text"):
            return {role: role for role in wanted}
    read = [c.name for c in columns if not _is_unread(c) and c.kind in ("text", "list of texts") and not c.numeric]
    if task == "seq2seq" and len(columns) > 1:
        roles = pair_roles(read)
        features = [c.name for c in columns if c.name in ("features", "language")]
        return None if roles is None else {**roles, **{name: name for name in features if name not in roles}}
    if task == "classification":
        wanted_by = label_columns(c.name for c in columns if not _is_unread(c) and (c.counts or c.distinct < FEW))
        if (both := _pair_by_name(columns, read, wanted_by)) is not None:
            return both
        texts = [name for name in text_columns(read) if name not in wanted_by]
        if len(texts) == 1 and len(wanted_by) == 1:
            return {texts[0]: "text", wanted_by[0]: "label"}
    return None


def _pair_by_name(columns: Sequence[Column], read: Sequence[str], labels: Sequence[str]) -> dict[str, str] | None:
    """Two texts that are read together and their label, where they are called so; a question has an answer."""
    pair = two_texts(read)
    if pair is None:
        return None
    asked = [c.name for c in columns if c.name not in pair and c.counts and is_called(c.name, ("answer",))]
    labels = [name for name in labels if name not in pair] or asked
    return {pair[0]: "text", pair[1]: "second", labels[0]: "label"} if len(labels) == 1 else None


def _pair_by_content(columns: Sequence[Column], texts: Sequence[str]) -> dict[str, str] | None:
    """The first two texts, where the only classes are those of entailment, which only a pair can have."""
    labels = [c.name for c in columns if c.counts and is_entailment(c.counts)]
    texts = [name for name in texts if name not in labels]
    if len(labels) != 1 or len(texts) != 2:
        return None
    return {texts[0]: "text", texts[1]: "second", labels[0]: "label"}


def _are_classes(column: Column) -> bool:
    """Whether numbers have two values, such as 0 and 1: classes, whatever the column is called."""
    return column.numeric and bool(column.counts) and column.distinct == 2


def _contradicts(task: str, roles: Mapping[str, str]) -> bool:
    """Whether a column that is called by one role would be given another; a caption is often called a text."""
    if task == "vec2seq" and {*roles.values()} & {*_PICTURES, "frames"}:
        return False
    known = {role for wanted in _NAMED.values() for names in wanted for role in names}
    return any(name in known and name != role for name, role in roles.items())


def _by_content(task: str, columns: Sequence[Column], parallel: Sequence[str]) -> dict[str, str] | None:
    """From columns to roles, where what they hold lets one guess."""
    known = [c for c in columns if not _is_unread(c)]
    labels = _labels(columns)
    tags = [c.name for c in known if c.name in parallel]
    texts = _texts(columns, parallel)
    numbers = [c.name for c in known if c.numeric and c.kind != "arrays"]
    free = [name for name in texts if name not in labels]
    if task == "tagging" and tags:
        whole = {labels[-1]: "label"} if labels and labels[-1] not in tags else {}
        return {columns[0].name: "tokens", tags[0]: "tags", **whole}
    sets = [c.name for c in known if c.kind == "list of texts" and c.counts and c.name not in tags]
    if task == "classification" and (both := _pair_by_content(known, free)) is not None:
        return both
    if task == "classification":
        # Short texts recur, as labels do: the name of the column says then what it is.
        read = text_columns(free) or free or text_columns(texts)
        wanted = [name for name in label_columns(labels) or labels if name not in read]
        return _classified(known, wanted, read, sets)
    pair = [name for name in free if name not in sets]
    if task == "seq2seq" and pair and (len(pair) > 1 or pair[0] != texts[0]):
        source, target = pair[:2] if len(pair) > 1 else (texts[0], pair[0])
        return {source: "source", target: "target", **_features(columns, labels, (source, target))}
    is_spelled_out = len(numbers) == len(free) == 1 and [c.name for c in columns] == [*numbers, *free]
    if task == "seq2seq" and is_spelled_out and not labels:
        return {numbers[0]: "source", free[0]: "target"}
    written = free or [name for name in texts if name in WRITTEN]
    if task == "vec2seq" and written and (seen := _pictures(columns) or _places(columns)):
        return {**seen, written[0]: "target"}
    if task == "vec2seq" and numbers and written:
        return {written[0]: "target", **dict.fromkeys(numbers, "vector")}
    if task == "language_model" and (free or (texts and not _sequences(columns) and not _pictures(columns))):
        return {(free or texts)[0]: "text"}
    return None


def _classified(
    known: Sequence[Column], labels: Sequence[str], free: Sequence[str], sets: Sequence[str]
) -> dict[str, str] | None:
    """A text, or else a picture, or else a series, with a label, or else a list of labels, or else the only number."""
    texts = [name for name in free if name not in sets] or (sets if labels else [])
    frames = _sequences(known)
    numbers = [c.name for c in known if c.numeric and c.kind in ("number", "text") and c.name not in labels]
    read = {texts[0]: "text"} if texts else _pictures(known)
    if not read and len(frames) == 1:
        read = {frames[0]: "frames"}
    if not read:
        return None
    if labels:
        return {**read, labels[-1]: "label"}
    if sets:
        return {**read, sets[0]: "labels"}
    return {**read, numbers[0]: "target"} if len(numbers) == 1 else None


def _features(columns: Sequence[Column], labels: Sequence[str], taken: Sequence[str]) -> dict[str, str]:
    """A language by its name, or else a third column of values that recur."""
    named = [c.name for c in columns if c.name in ("features", "language")]
    others = [name for name in labels if name not in taken] if len(columns) == 3 else []
    return {name: name for name in named} or dict.fromkeys(others, "features")


def _texts(columns: Sequence[Column], parallel: Sequence[str]) -> list[str]:
    kinds = ("text", "list of texts")
    read = [c for c in columns if not _is_unread(c) and c.kind in kinds and not c.numeric and not _is_constant(c)]
    return [c.name for c in read if c.name not in parallel]


def _is_constant(column: Column) -> bool:
    return column.distinct == 1 and bool(column.counts)


def _labels(columns: Sequence[Column]) -> list[str]:
    kinds = ("text", "number")
    return [c.name for c in columns if not _is_unread(c) and c.counts and c.distinct > 1 and c.kind in kinds]


def _is_unread(column: Column) -> bool:
    """Whether a column is a date, an id, the number of the row or nearly empty: nothing to read or to predict."""
    is_useless = column.dates or column.row_numbers or column.mostly_empty
    return column.name in UNREAD or is_useless or is_called(column.name, (*IDS, *TIME_NAMES))


def _pictures(columns: Sequence[Column]) -> dict[str, str]:
    """The first column of pictures and its role; {} where there is none."""
    for column in columns:
        if column.kind == STROKES:
            return {column.name: "strokes"}
        if column.kind == PATHS or (column.kind == "arrays" and column.name in PIXELS):
            return {column.name: "image"}
    return {}


def _places(columns: Sequence[Column]) -> dict[str, str]:
    """The column of features of places and its role; {} where there is none."""
    return {c.name: "frames" for c in columns if c.kind == "arrays" and c.name in ("frames", "features")}


def _sequences(columns: Sequence[Column]) -> list[str]:
    """Columns that hold a list of numbers, or of frames, in each row."""
    kinds = ("arrays", "list of numbers", "arrays or list of numbers")
    return [c.name for c in columns if not _is_unread(c) and c.kind in kinds]


def _command(task: str, request: Request, format: str, found: Sequence[Column], roles: Mapping[str, str]) -> str:
    chosen, columns, names = request.format, request.columns, [column.name for column in found]
    settings: dict[str, object] = {}
    renamed = {name: role for name, role in roles.items() if name != role}
    has_header = format in ("tsv", "csv") and not all(name == f"column{k}" for k, name in enumerate(names, 1))
    sources = [role for role in roles.values() if role == "source"]
    if renamed and len(sources) < 2 and (has_header or format in ("jsonl", "parquet", "npz")):
        # The names are kept, so that any file with this header is read right, whatever the order of its columns.
        if task in ("classification", "language_model"):
            settings = {_SETTINGS[role]: [name] if role == "target" else name for name, role in renamed.items()}
        elif task in ("seq2seq", "vec2seq"):
            settings = _settings(_SETTINGS_OF_PAIRS if task == "seq2seq" else _SETTINGS_OF_GIVENS, roles, renamed)
        elif has_header:
            settings = {role: [name] if role == "tags" else name for name, role in renamed.items()}
        else:
            chosen = {**_table(chosen, format), "columns": {role: name for name, role in roles.items()}}
    elif renamed:
        called = {"text": "premise", "second": "hypothesis"} if "second" in roles.values() else {}
        columns = [called.get(role := roles.get(name, "_"), role) for name in names]
    if task == "classification" and _has_no_majority(found, roles):
        settings["leave_out"] = [NO_MAJORITY]
    return _typed(task, request, {"format": chosen, "columns": columns}, settings)


def _has_no_majority(columns: Sequence[Column], roles: Mapping[str, str]) -> bool:
    """Whether some pairs have no class because their annotators did not agree."""
    labels = [c.counts for c in columns if roles.get(c.name) == "label"]
    return any(NO_MAJORITY in counts and is_entailment(counts) for counts in labels)


def _settings(known: Mapping[str, str], roles: Mapping[str, str], renamed: Mapping[str, str]) -> dict[str, object]:
    """The setting of each role that has a column of another name."""
    columns = {role: [name for name, its in roles.items() if its == role] for role in renamed.values()}
    return {known[role]: names if role in _SEVERAL else names[0] for role, names in columns.items()}


def _typed(task: str, request: Request, given: Mapping[str, object], settings: Mapping[str, object]) -> str:
    """The line to type. Of what was given, a name stands as it was typed; a setting is written so that it stays one."""
    words = ["recurra", "train", task]
    for option, paths in (("train", request.train), ("valid", request.valid)):
        if len(paths) == 1:
            words += [f"--{option}", paths[0]]
        elif paths:
            words += ["--set", f"data.{option}={_toml(paths)}"]
    words += ["--valid", request.share] if request.share is not None else []
    words += ["--out", f"runs/{task}"]
    for setting, value in given.items():
        if value is not None:
            words += ["--set", f"data.{setting}={value if isinstance(value, str) else _toml(value)}"]
    for setting, value in settings.items():
        is_word = isinstance(value, str) and value.isidentifier() and value.lower() not in NO_WORDS
        words += ["--set", f"data.{setting}={value if is_word else _toml(value)}"]
    return shlex.join(words)


def _table(format: str | Mapping[str, object] | None, name: str) -> dict[str, object]:
    return dict(format) if isinstance(format, Mapping) else {"name": name}


def _toml(value: object) -> str:
    """A value as TOML writes it inside a line.

    >>> _toml({"name": "csv", "header": True, "columns": ["text", "label"]})
    '{name="csv",header=true,columns=["text","label"]}'
    """
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_key(str(key))}={_toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_toml(part) for part in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)


def _parts(value: Value) -> list[str]:
    if isinstance(value, str):
        return value.split()
    return [part for part in value if isinstance(part, str)] if isinstance(value, list) else []
