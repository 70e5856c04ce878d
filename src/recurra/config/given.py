"""Settings as they are given: by a config file, by options of the command line, by keywords in Python.

All of them become assignments, each with its origin, which are laid over each other in their order. Whatever is wrong
with a setting is said with the origin of its last assignment: the file and its line, the option, or the keyword.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from recurra.config.known_as import KNOWN_AS
from recurra.config.renamed import Renamed, renamed_column, renamed_setting, tell, under_its_new_name
from recurra.config.run_file import WITH_MANIFEST, as_begun, check_format
from recurra.errors import CheckpointError, ConfigError, EngineError
from recurra.frozen import NamedTuple, dataclass
from recurra.manifest import MANIFEST, verify
from recurra.named import own_code
from recurra.settings import (
    DEEPEST,
    SettingError,
    field_type,
    is_part,
    parsed_override,
    put,
    read_toml,
    settings_from,
    table_of,
)
from recurra.toml import clipped, dotted, line_of, shown

S = TypeVar("S")

Keys: TypeAlias = tuple[str, ...]
Files: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Config: TypeAlias = str | os.PathLike[str] | Mapping[str, object]
"""The name of a task, a config file, or a table such as such a file holds."""
Changes: TypeAlias = Sequence[str] | Mapping[str, object]
"""Settings as a dict, {"decoding": {"best": 4}} or {"decoding.best": 4}, or as strings of --set: ["decoding.best=4"]"""


class Origin(NamedTuple):
    """Who gave a setting."""

    words: str  # the option, the keyword, or the file
    file: Path | None = None  # its line is looked for when it is asked
    keys: Keys = ()  # of the setting, as they are written there
    source: str | None = None  # of what can give a setting only once: the file, or the keyword

    @property
    def is_keyword(self) -> bool:
        """Whether it was given in Python."""
        return self.file is None and self.source is not None

    def place(self, more: Keys = ()) -> str:
        """Where to look for a setting, or for an option of it, of which this is the origin."""
        if self.file is None:
            return self.words
        line = line_of(self.file, (*self.keys, *more)) or line_of(self.file, self.keys)
        return self.words if line is None else f"{self.words}:{line}"

    def inside(self, more: Keys) -> Origin:
        """The origin of what a table from here holds under these keys."""
        words = self.words + "".join(f"[{key!r}]" for key in more) if self.is_keyword else self.words
        return self._replace(words=words, keys=(*self.keys, *more))


class Assignment(NamedTuple):
    """One setting and its value, or a section and a table of its settings; none as origin: it follows from others."""

    keys: Keys
    value: object
    origin: Origin | None
    replaces: bool = False  # a table is all there is of a section or part, and is not laid over what came before


Laid: TypeAlias = tuple[dict[str, Any], dict[Keys, Origin], dict[Keys, Origin]]
"""A table of settings, who gave each of them, and who gave the last one inside of each section."""


class NamedCode(NamedTuple):
    """A name 'package.module:Class' that a setting, or an option of one, gives."""

    name: str
    module: str
    setting: str
    place: str


NAMING = ("task", "merge", "heads")
"""Settings that name code and are texts, or tables of parts: all others that do are parts."""


@dataclass(frozen=True)
class Given:
    """Assignments in the order in which they were given.

    >>> given = Given.of("tagging").options(["model.hidden=64"]).keywords({"model": {"layers": 2}}, "settings")
    >>> given.table()
    {'task': 'tagging', 'model': {'hidden': 64, 'layers': 2}}
    """

    assignments: tuple[Assignment, ...] = ()
    is_run: bool = False  # the file is that of a run: no one is told of the old names that it was begun with
    _apart: dict[type | None, list[Assignment]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _found: dict[type | None, Laid] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, what: Config) -> Given:
        """What a task's name, a config file or a table of settings means."""
        if isinstance(what, Mapping):
            return cls().keywords(what, "task")
        if not isinstance(what, str | os.PathLike):
            raise ConfigError(f"the task must be a name, a config file or a table of settings, but is {shown(what)}.")
        name = os.fspath(what)
        if (Path(name) / "config.toml").is_file():
            raise ConfigError(
                f"{name} is a run: resume it with --resume, or train a new one with its settings: {name}/config.toml."
            )
        if isinstance(what, str) and not name.endswith(".toml") and not Path(name).is_file():
            return cls((Assignment(("task",), name, None),))
        given = cls.of_file(Path(name))
        if given.task is None:
            raise ConfigError(f'{name} does not name a task: add a first line such as task = "tagging".')
        return given

    @classmethod
    def of_file(cls, path: Path) -> Given:
        """What a config file gives."""
        return cls(_of_file(read_toml(path), path, f"the config file {path}"))

    @classmethod
    def of_run(cls, folder: Path) -> Given:
        """The settings that a run was begun with."""
        path = folder / "config.toml"
        verify(folder, "config.toml".__eq__)
        table = without_idle(as_begun(read_toml(path)))
        try:
            found = cls(_of_file(table, path, f"run {folder}"), is_run=True)
        except ConfigError as error:
            raise CheckpointError(str(error)) from error
        number = table.get("format")
        if isinstance(number, int) and number >= WITH_MANIFEST and not (folder / MANIFEST).exists():
            raise CheckpointError(
                f"{folder / MANIFEST} is missing, so damage to the files of this run cannot be noticed. Restore it "
                f"from a copy of the run, or write it anew from the files as they are: recurra check {folder} --accept"
            )
        return found

    @classmethod
    def of_settings(cls, settings: object) -> Given:
        """Settings that were made before."""
        return cls(tuple(Assignment((name,), value, None) for name, value in table_of(settings).items()))

    def options(self, overrides: Sequence[str]) -> Given:
        """With each 'section.key=value' of --set; a value that is a table replaces what was there."""
        added = []
        for override in overrides:
            keys, value = parsed_override(override)
            added.append(Assignment(keys, value, Origin(f"--set {clipped(override)}", keys=keys), replaces=True))
        return self._with(added)

    def keywords(self, table: Mapping[str, object], name: str) -> Given:
        """With the settings of a keyword argument: tables inside of tables, or names with dots, as model.hidden.

        Names of settings may have dots in sections too: {"data": {"source.tokens": "characters"}}.
        """
        if not isinstance(table, Mapping):
            raise ConfigError(f'{name} must be a table such as {{"model.hidden": 16}}, but is {shown(table)}.')
        added = []
        for key, value in table.items():
            words = f"{name}[{str(key)!r}]"
            keys = tuple(str(key).split("."))
            if not all(keys):
                raise ConfigError(f"{words}: settings are written as 'model.hidden'.")
            added.append(Assignment(keys, _as_toml_has_it(value), Origin(words, keys=keys, source=name)))
        return self._with(added)

    def changes(self, changes: Changes, name: str) -> Given:
        """With settings as a dict, as `keywords` takes it, or as strings, as `options` does.

        >>> one, other = {"decoding": {"best": 4}}, ["decoding.best=4"]
        >>> Given().changes(one, "settings").table() == Given().changes(other, "settings").table()
        True
        """
        if isinstance(changes, str):
            raise ConfigError(
                f"{name} must be a dict or a list of strings, but is {shown(changes)}: write {{'decoding.best': 4}} or "
                "['decoding.best=4']."
            )
        return self.keywords(changes, name) if isinstance(changes, Mapping) else self.options(changes)

    def files(self, given: Mapping[str, object], word: str) -> Given:
        """With settings of data that have an option or a keyword of their own; `word` is such as '--{}' or '{}='."""
        added = []
        for name, value in given.items():
            if value is None or value == "" or value == [] or value == ():
                continue
            keys = ("data", name)
            origin = Origin(word.format(name), keys=keys, source=word.format(name))
            added.append(Assignment(keys, _as_toml_has_it(value), origin))
        return self._with(added)

    def also(self, keys: Keys, value: object, word: str | None = None) -> Given:
        """With one setting more: by an argument of its own, or one that follows from others."""
        return self._with([Assignment(keys, value, None if word is None else Origin(word, keys=keys))])

    def over(self, other: Given) -> Given:
        """These assignments, made after those of another."""
        return other._with(self.assignments)

    def _with(self, added: Sequence[Assignment]) -> Given:
        return Given((*self.assignments, *added), self.is_run)

    def without(self, *names: Keys) -> Given:
        """These assignments, but for some settings or sections.

        >>> Given().keywords({"data": {"train": "a", "seed": 2}}, "settings").without(("data", "train")).table()
        {'data': {'seed': 2}}
        """
        return Given(tuple(each for one in self.assignments if (each := _less(one, names)) is not None), self.is_run)

    def origins(self, settings: type) -> dict[Keys, Origin]:
        """Who gave each setting that was given by name, as they are called today."""
        return self._laid(settings)[1]

    @property
    def task(self) -> object:
        """The task that was named first; another one given later is refused by its settings."""
        return next((each.value for each in self.assignments if each.keys == ("task",)), None)

    def table(self, settings: type | None = None) -> dict[str, Any]:
        """All assignments as one table; for these settings, old names are replaced by those of today."""
        return _copied(self._laid(settings)[0])  # the caller's to change

    def settings(self, kind: type[S]) -> S:
        """The settings they mean. Old names that the user wrote are told of."""
        told: dict[tuple[Renamed, str], None] = {}
        for keys, _, origin, _ in self._taken_apart(kind):
            renamed = renamed_setting(keys, kind)
            if renamed is None and origin is not None and origin.file is None and origin.keys == keys:
                renamed = renamed_column(keys)
            if renamed is not None and origin is not None and not (self.is_run and origin.file is not None):
                told[renamed, origin.place()] = None
        for renamed, place in told:
            tell(renamed, place)
        with self.placing(kind):
            return settings_from(kind, self._laid(kind)[0], KNOWN_AS)

    @contextlib.contextmanager
    def placing(self, settings: type | None = None) -> Iterator[None]:
        """Settings that are refused inside are refused with the place where they were given."""
        try:
            yield
        except SettingError as error:
            place = None if error.is_placed else self._place(error.keys, settings)
            if place is None:
                raise
            raise SettingError(f"{place}: {error}", error.keys, is_placed=True) from error
        except EngineError as error:  # of an engine that was asked for by its name
            place = self._place(("engine",), settings)
            raise error if place is None else EngineError(f"{place}: {error}") from None

    def code(self, settings: type | None) -> list[NamedCode]:
        """The code from outside recurra that these settings name, in their order; none of it is imported.

        A setting that is a text, such as a column, names none. Where the settings are not known yet, since the task
        itself is from outside, every text may.
        """
        found = []
        for keys, value, origin, _ in self._taken_apart(settings):
            hint = None if settings is None else field_type(settings, _new_name(keys, settings))
            is_text = hint is not None and not is_part(hint) and not dataclasses.is_dataclass(hint)
            if is_text and keys[-1] not in NAMING:
                continue
            for more, text in _texts(value):
                if (named := own_code(text)) is not None:
                    place = "" if origin is None else origin.place(more)
                    found.append(NamedCode(text, named[0], dotted((*keys, *more)), place))
        return found

    def named(self, settings: type) -> list[Keys]:
        """The settings that were given by name, as they are called today; not those that follow from others."""
        return [_new_name(each.keys, settings) for each in self._taken_apart(settings) if each.origin is not None]

    def _place(self, keys: Keys, settings: type | None) -> str | None:
        """Where a setting was given last; none where it was not given."""
        _, origins, inside = self._laid(settings)
        found = inside.get(keys) or origins.get(keys)  # an option that came after its part is the later one
        if found is not None:
            return found.place()
        for length in range(len(keys) - 1, 0, -1):  # an option of a part, or the kind of a section given by its name
            if (found := origins.get(keys[:length])) is not None:
                return found.place(keys[length:])
        if len(keys) == 1 and settings is not None and field_type(settings, keys) is None:
            # What a part is built of knows its own name alone: a cell is model.cell, or that of an encoder.
            named = {**inside, **origins}
            given = {(each, named[each]) for each in named if each[-1:] == keys}
            if len(given) == 1:
                return given.pop()[1].place()
        return None

    def _laid(self, settings: type | None) -> Laid:
        """One table; the last origin of each assignment; and of each section, that of the last one inside of it.

        Kept, for it is asked often.
        """
        if settings not in self._found:
            self._found[settings] = self._lay(settings)
        return self._found[settings]

    def _lay(self, settings: type | None) -> Laid:
        table: dict[str, Any] = {}
        origins: dict[Keys, Origin] = {}
        inside: dict[Keys, Origin] = {}
        for keys, value, origin, replaces in self._taken_apart(settings):
            keys = _new_name(keys, settings)
            before = origins.get(keys)
            if origin is not None and before is not None and origin.source == before.source is not None:
                raise SettingError(
                    f"{origin.place()}: {dotted(keys)} is given twice, here as {dotted(origin.keys)} and as "
                    f"{dotted(before.keys)} by {before.place()}. Leave one of them out.",
                    keys,
                    is_placed=True,
                )
            try:
                put(table, keys, value, over=not replaces and _is_open(keys, settings))
            except SettingError as error:
                place = "" if origin is None else f"{origin.place()}: "
                raise SettingError(f"{place}{error}", keys, is_placed=True) from error
            is_below = keys in origins or keys in inside or len(keys) >= DEEPEST
            if is_below and (value != {} or replaces):  # nothing of what was below is left
                for known in (origins, inside):
                    for below in [each for each in known if each[: len(keys)] == keys]:
                        del known[below]
            if origin is not None:
                origins[keys] = origin
                more = max(0, len(origin.keys) - len(keys))  # of a table that holds settings, such as [sweep]
                for length in range(1, min(len(keys), DEEPEST)):
                    inside[keys[:length]] = origin._replace(keys=origin.keys[: length + more])
        return table, origins, inside

    def _taken_apart(self, settings: type | None) -> Sequence[Assignment]:
        """The assignments, with a table for a section, or for the options of a part, as one for each of its settings.

        Where the settings are not known yet, every table is a section that has no name. Kept, for it is asked often.
        """
        if settings not in self._apart:
            self._apart[settings] = [*self._take_apart(settings)]
        return self._apart[settings]

    def _take_apart(self, settings: type | None) -> Iterator[Assignment]:
        for one in self.assignments:
            in_python = one.origin is not None and one.origin.is_keyword
            leaves = [*_leaves(one.keys, one.value, settings, dots=in_python)]
            if leaves == [(one.keys, one.value)]:
                yield one._replace(keys=_of_column(one.keys, one.value, settings))
                continue
            if one.replaces:
                yield one._replace(value={})
            for keys, value in leaves:
                more = keys[len(one.keys) :]
                origin = None if one.origin is None else one.origin.inside(more)
                yield Assignment(_of_column(keys, value, settings), value, origin)


def _copied(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table whose inner tables are copies too."""
    return {key: _copied(value) if isinstance(value, dict) else value for key, value in table.items()}


def _of_file(table: Mapping[str, Any], path: Path, what: str) -> tuple[Assignment, ...]:
    """The assignments of a config file, whose format is known."""

    def origin(keys: Keys) -> Origin:
        return Origin(str(path), path, keys, str(path))

    try:
        check_format(table, what)
    except SettingError as error:
        raise SettingError(f"{origin(error.keys).place()}: {error}", error.keys, is_placed=True) from error
    plain = {name: value for name, value in table.items() if name not in ("format", "version")}
    return tuple(Assignment((name,), value, origin((name,))) for name, value in plain.items())


def _leaves(keys: Keys, value: object, settings: type | None, *, dots: bool) -> Iterator[tuple[Keys, object]]:
    """What a table gives, by the keys of each setting: what is a value for these settings is not taken apart.

    With dots, a key of a section may name a setting further inside, as source.tokens; in a file that would be quoted.
    """
    waiting = [(keys, value)]
    while waiting:
        keys, value = waiting.pop()
        if isinstance(value, Mapping) and value and len(keys) < DEEPEST and _is_opened(keys, value, settings):
            # Outside of sections a dot may belong to the user's own word, as in U.S.
            is_split = dots and _is_section(keys, settings)
            names = [(str(key).split(".") if is_split else [str(key)], inner) for key, inner in value.items()]
            waiting += [((*keys, *name), inner) for name, inner in reversed(names)]
        else:
            yield keys, value


def _texts(value: object) -> Iterator[tuple[Keys, str]]:
    """All texts in a value, with the keys of the tables that they are in."""
    waiting: list[tuple[Keys, object]] = [((), value)]
    while waiting:
        keys, value = waiting.pop()
        if isinstance(value, str):
            yield keys, value
        elif isinstance(value, Mapping):
            waiting += [((*keys, str(key)), item) for key, item in reversed([*value.items()])]
        elif isinstance(value, list | tuple):
            waiting += [(keys, item) for item in reversed(value)]


def _is_opened(keys: Keys, value: Mapping[str, object], settings: type | None) -> bool:
    """Whether a table is laid over what was given of a section or a part; one with a name is another part."""
    if not _is_open(keys, settings):
        return False
    return "name" not in value or (settings is not None and field_type(settings, (*keys, "name")) is not None)


def _is_section(keys: Keys, settings: type | None) -> bool:
    return settings is not None and dataclasses.is_dataclass(field_type(settings, _new_name(keys, settings)))


def _is_open(keys: Keys, settings: type | None) -> bool:
    """Whether tables given for these keys add up: those of a section and the options of a part do."""
    if settings is None:
        return True
    found = field_type(settings, _new_name(keys, settings))
    return dataclasses.is_dataclass(found) or is_part(found)


def _of_column(keys: Keys, value: object, settings: type | None) -> Keys:
    """The keys of the column that is named where a section is given a word: data.text = "review".

    In every task data.ROLE names the column of a role. A role is a section where there is more to set, such as the
    tokens of a text; these settings stay as they are.
    """
    section = None if settings is None or isinstance(value, Mapping | list) else field_type(settings, keys)
    has_column = dataclasses.is_dataclass(section) and "column" in {field.name for field in dataclasses.fields(section)}
    return (*keys, "column") if has_column else keys


def _new_name(keys: Keys, settings: type | None) -> Keys:
    """The keys of a setting as it is called today."""
    renamed = None if settings is None else renamed_setting(keys, settings)
    return keys if renamed is None else under_its_new_name(keys, renamed)


def _as_toml_has_it(value: object) -> object:
    """A value from Python, with paths as strings."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {key: _as_toml_has_it(item) for key, item in value.items()}
    return [_as_toml_has_it(item) for item in value] if isinstance(value, list | tuple) else value


def without_idle(table: Mapping[str, Any]) -> dict[str, Any]:
    """The saved settings of a run, less one that had no effect: beside others it would be refused as a mistake.

    A run saves all settings, and what was the usual batch_tokens then need not be so now.

    >>> without_idle({"training": {"batch_size": 32, "batch_tokens": 500, "seed": 1}})
    {'training': {'batch_size': 32, 'seed': 1}}
    """
    training = table.get("training")
    if not isinstance(training, Mapping) or training.get("batch_size", "none") == "none":
        return dict(table)
    return {**table, "training": {name: value for name, value in training.items() if name != "batch_tokens"}}


def _less(one: Assignment, names: Sequence[Keys]) -> Assignment | None:
    """An assignment without the settings of these names; None: nothing is left."""
    for name in names:
        if one.keys[: len(name)] == name:
            return None
        if name[: len(one.keys)] == one.keys and isinstance(one.value, Mapping):
            one = one._replace(value=_table_less(one.value, name[len(one.keys) :]))
    return one


def _table_less(table: Mapping[str, object], keys: Keys) -> dict[str, object]:
    inner = table.get(keys[0])
    if len(keys) > 1 and isinstance(inner, Mapping):
        return {**table, keys[0]: _table_less(inner, keys[1:])}
    return {key: value for key, value in table.items() if len(keys) > 1 or key != keys[0]}
