"""Which tasks a file can serve, and the command that trains on it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recurra.data.checking.columns import MOST_LABELS, Column
from recurra.data.formats.reader import Value

TASKS = ("tagging", "classification", "seq2seq", "vec2seq", "language_model")
MOST_COMPARED = 8


class Service(NamedTuple):
    """Whether a task can use the file: the command to type next, or the reason why not."""

    task: str
    command: str | None
    reason: str | None


class Request(NamedTuple):
    """The files and settings that `check` was asked with."""

    train: list[str]
    valid: list[str]
    format: str | Mapping[str, object] | None
    columns: Mapping[str, str] | Sequence[str] | None


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


def services(request: Request, format: str, columns: Sequence[Column], parallel: Sequence[str]) -> list[Service]:
    """What each task says to a file of these columns."""
    names = [column.name for column in columns]
    guess = request.columns is None and format != "conllu"
    answers = []
    for task in TASKS:
        roles, reason = _by_name(task, names), None
        if roles is None and guess:
            roles = _by_content(task, columns, parallel)
            if roles is not None and task != "language_model" and _contradicts(roles):
                roles = None
        if roles is None:
            reason = _REASONS[task]
            if not guess and format != "conllu":
                reason += " Name their roles with data.columns."
        command = None if roles is None else _command(task, request, format, names, roles)
        answers.append(Service(task, command, reason))
    return answers


_NAMED: dict[str, list[tuple[str, ...]]] = {
    "tagging": [("tokens", "tags"), ("tokens", "upos")],
    "classification": [("text", "label"), ("tokens", "label")],
    "seq2seq": [("source", "target")],
    "vec2seq": [("vector", "target")],
    "language_model": [("text",), ("tokens",)],
}

_REASONS = {
    "tagging": "it needs a column of tokens and one with as many tags.",
    "classification": "it needs a text and a label, which takes 200 values at most and takes them again and again.",
    "seq2seq": "it needs two columns of text, a source and a target.",
    "vec2seq": "it needs numbers, the vector, and a text, the target.",
    "language_model": "it needs a column of text.",
}


def _by_name(task: str, names: Sequence[str]) -> dict[str, str] | None:
    """From columns to roles, where the columns are called by their roles."""
    for wanted in _NAMED[task]:
        if all(role in names for role in wanted):
            return {role: role for role in wanted}
    return None


def _contradicts(roles: Mapping[str, str]) -> bool:
    """Whether a column that is called by one role would be given another."""
    known = {role for wanted in _NAMED.values() for names in wanted for role in names}
    return any(name in known and name != role for name, role in roles.items())


def _by_content(task: str, columns: Sequence[Column], parallel: Sequence[str]) -> dict[str, str] | None:
    """From columns to roles, where what they hold lets one guess."""
    known = [c for c in columns if c.name not in ("id", "language", "time")]
    labels = [c.name for c in known if c.counts and c.distinct > 1 and c.kind in ("text", "number")]
    tags = [c.name for c in known if c.name in parallel]
    texts = [c.name for c in known if c.kind in ("text", "list of texts") and not c.numeric and c.name not in tags]
    numbers = [c.name for c in known if c.numeric and c.kind != "arrays"]
    free = [name for name in texts if name not in labels]
    if task == "tagging" and tags:
        whole = {labels[-1]: "label"} if labels and labels[-1] not in tags else {}
        return {columns[0].name: "tokens", tags[0]: "tags", **whole}
    if task == "classification" and labels and free:
        return {free[0]: "text", labels[-1]: "label"}
    if task == "seq2seq" and (targets := [name for name in free if name != texts[0]]):
        return {texts[0]: "source", targets[0]: "target"}
    if task == "vec2seq" and numbers and free:
        return {free[0]: "target", **dict.fromkeys(numbers, "vector")}
    if task == "language_model" and texts:
        return {(free or texts)[0]: "text"}
    return None


def _command(task: str, request: Request, format: str, names: Sequence[str], roles: Mapping[str, str]) -> str:
    words = ["recurra", "train", task]
    for option, paths in (("train", request.train), ("valid", request.valid)):
        if len(paths) == 1:
            words += [f"--{option}", paths[0]]
        elif paths:
            words += ["--set", f"data.{option}={_toml(paths)}"]
    words += ["--out", f"runs/{task}"]
    chosen, columns = request.format, request.columns
    if any(name != role for name, role in roles.items()):
        if format in ("jsonl", "parquet"):
            renamed = {role: name for name, role in roles.items()}
            chosen = {**_table(chosen, format), "columns": renamed}
        else:
            columns = [roles.get(name, "_") for name in names]
            if not all(name == f"column{k}" for k, name in enumerate(names, 1)) and format in ("tsv", "csv"):
                chosen = {**_table(chosen, format), "header": True}
    for setting, value in (("format", chosen), ("columns", columns)):
        if value is not None:
            words += ["--set", f"data.{setting}={value if isinstance(value, str) else _toml(value)}"]
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
