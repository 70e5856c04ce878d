"""Settings to and from TOML: frozen dataclasses whose fields carry their default and a line that explains them.

What is given is checked by name and by type; a section checks its own numbers when it is made. The sections themselves
are in config/, and `config.given` gathers what files, options and keywords give.

TOML has no word for nothing, so "none" stands for it wherever a setting may be absent.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import re
import sys
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from inspect import get_annotations
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, final, get_args, get_type_hints

from recurra.errors import ConfigError
from recurra.named import choices_of, did_you_mean, fits, in_words
from recurra.opening import open_file
from recurra.toml import clipped, dotted, excess, shown, toml_value

S = TypeVar("S")

Part: TypeAlias = str | dict[str, Any]
"""A part with options of its own: a name, or a table of a name and its options."""

SettingsTable: TypeAlias = Mapping[str, Any]

DEEPEST = 16
"""So deep may the tables and lists of one setting be nested."""


class SettingError(ConfigError):
    """A setting that cannot be used, and its keys, by which `config.given` finds who gave it."""

    def __init__(self, message: str, keys: Sequence[str] = (), *, is_placed: bool = False) -> None:
        super().__init__(message)
        self.keys = tuple(keys)
        self.is_placed = is_placed  # the message says already where the setting was given

    @property
    def is_idle(self) -> bool:
        """Whether the setting is one that the others leave without effect: all such messages have these words."""
        return " has no effect" in str(self)


@contextlib.contextmanager
def about(*keys: str) -> Iterator[None]:
    """What is refused inside, by what knows nothing of settings, is refused as this setting.

    What does not know which section it belongs to gives the last key alone, such as "cell".
    """
    try:
        yield
    except SettingError:
        raise
    except ConfigError as error:
        raise SettingError(str(error), keys) from error


@final
class _Unknown(SettingError):
    """A section has no setting of this name; another section may have one."""


def name_of(part: Part) -> str:
    """The name of a part, with options or without.

    >>> name_of("gru"), name_of({"name": "gru", "reset": "after"})
    ('gru', 'gru')
    """
    return part if isinstance(part, str) else str(part.get("name"))


def setting(default: Any, about: str) -> Any:
    """A dataclass field for one setting: its default and its explanation."""
    if isinstance(default, list | dict):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata={"about": about})
    return dataclasses.field(default=default, metadata={"about": about})


def section(kind: Callable[[], object], about: str) -> Any:
    """A dataclass field for a nested section: a class with defaults, or a function that returns one."""
    return dataclasses.field(default_factory=kind, metadata={"about": about})


def at_least(least: int, where: str, part: object, *names: str) -> None:
    """Refuse a number below the least, or one that is none."""
    for name in names:
        value = getattr(part, name)
        if value is not None and not least <= value < float("inf"):
            raise _out_of_range(where, name, value, f"at least {least}")


def above_zero(where: str, part: object, *names: str) -> None:
    """Refuse a number that is not above 0."""
    for name in names:
        value = getattr(part, name)
        if value is not None and not 0 < value < float("inf"):
            raise _out_of_range(where, name, value, "above 0")


def rates(where: str, part: object, *names: str) -> None:
    """Refuse a share that is not at least 0 and below 1."""
    for name in names:
        value = getattr(part, name)
        if not 0 <= value < 1:
            raise _out_of_range(where, name, value, "at least 0 and below 1")


def _out_of_range(where: str, name: str, value: object, wanted: str) -> SettingError:
    return SettingError(f"{where}.{name} must be {wanted}, but is {shown(value)}.", (*where.split("."), name))


LARGEST_CONFIG = 1 << 20
"""Bytes of a config file: no settings take as many."""


def read_toml(path: str | Path) -> dict[str, Any]:
    """A config file as a table; what is wrong with it is said with its line."""
    try:
        with open_file(path) as file:
            content = file.read(LARGEST_CONFIG + 1)
    except FileNotFoundError as error:
        raise ConfigError(f"there is no config file {path}.") from error
    except OSError as error:
        raise ConfigError(f"the config file {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # a NUL in the name
        raise ConfigError(f"the config file {path!r} cannot be read: {error}.") from error
    if len(content) > LARGEST_CONFIG:
        raise ConfigError(f"{path} is larger than {LARGEST_CONFIG:,} bytes, so it is not a config file.")
    try:
        text = content.removeprefix(b"\xef\xbb\xbf").decode()
        if reason := excess(text):
            raise ConfigError(f"{path} {reason}.")
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: this is not UTF-8 text (byte {error.start}). A config is TOML.") from error
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        place = found[1] if found else content.rstrip().count(b"\n") + 1  # at the end of the document
        raise ConfigError(f"{path}:{place}: this is not TOML: {str(error).split(' (at')[0]}.") from error
    except ValueError as error:
        raise ConfigError(f"{path} holds a number that is too long.") from error
    except RecursionError as error:
        raise ConfigError(f"{path} is nested too deeply.") from error


def parsed_override(override: str) -> tuple[tuple[str, ...], Any]:
    """The keys and the value of a 'section.key=value' of --set. A value that is not TOML is taken as a string.

    >>> parsed_override("model.hidden=[64, 32]")
    (('model', 'hidden'), [64, 32])
    """
    name, equals, text = override.partition("=")
    keys = tuple(key.strip() for key in name.split("."))
    if not equals or not all(keys):
        raise ConfigError(f"--set takes section.key=value, such as model.hidden=256, but got {shown(override)}.")
    value = value_of(text)
    if isinstance(value, str) and value[:1] + value[-1:] in ("{}", "[]"):
        raise ConfigError(
            f"--set {clipped(override)}: this is not a valid TOML table or list. Put texts in quotes, and the whole "
            f"option in quotes for the shell: --set '{name}={_quoted(value)}'."
        )
    return keys, value


def put(table: dict[str, Any], keys: Sequence[str], value: object, *, over: bool) -> None:
    """Give a setting of a table a value; tables inside of it are copied, for they may be the caller's.

    An empty table that is laid `over` another leaves it as it is.
    """
    for key in keys[:-1]:
        inner = {} if table.get(key) is None else table[key]
        if isinstance(inner, str):  # a part given by its name gains options: cell.reset=after
            inner = {"name": inner}
        if not isinstance(inner, Mapping):
            raise SettingError(f"{key} is not a section: it is {shown(inner)}.", keys)
        table[key] = dict(inner)
        table = table[key]
    if keys[-1] == "kind":  # of a section that may be given by its kind alone: the one it had is no more
        table.pop("name", None)
    if over and value == {} and isinstance(table.get(keys[-1]), Mapping):
        return
    table[keys[-1]] = value


def _quoted(text: str) -> str:
    """A table or list whose quotes a shell has taken away, with quotes around its words.

    >>> _quoted("{name=additive, size=8, terms=[monotonic]}")
    '{name="additive", size=8, terms=["monotonic"]}'
    """
    return re.sub(r"(?<=[\[{,=])(\s*)([A-Za-z_][\w.:</>-]*)(?=\s*[\]},])", r'\1"\2"', text)


def value_of(text: str) -> Any:
    """A value as typed on the command line: TOML where it is TOML, a string otherwise; none takes a setting away.

    >>> value_of("[64, 32]"), value_of("cuda:1"), value_of("2024-05-01"), value_of("none")
    ([64, 32], 'cuda:1', '2024-05-01', None)
    """
    text = text.strip()
    if text in ("none", "None"):
        return None
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    value = found.pop("value")
    # What goes on after the value on a line of its own was not meant as TOML; a date is the name of something.
    return text if found or isinstance(value, datetime.date | datetime.time) else value


def settings_from(kind: type[S], table: SettingsTable, known_as: Mapping[str, str] = MappingProxyType({})) -> S:
    """The settings that a table means; a SettingError gives the name and the nearest known one.

    `known_as`: what settings are called elsewhere, with their names here.

    What the table does not give is as the class has it, or as its `usual(table)` has it, where the one hangs on the
    other: a Transformer is not trained as cells are.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Training:
    ...     seed: int = setting(1, "of everything that is drawn")
    >>> settings_from(Training, {"seed": 7}).seed
    7
    >>> settings_from(Training, {"sede": 7})
    Traceback (most recent call last):
    recurra.settings.SettingError: there is no setting 'sede'. Did you mean 'seed'? Known: seed.
    """
    usual = getattr(kind, "usual", None)
    try:
        return _made(kind, table, (), None if usual is None else usual(table))
    except _Unknown as error:
        elsewhere = same_name(kind, error.keys[-1])
        if not elsewhere and (meant := known_as.get(error.keys[-1])) and (said := explained(kind, meant)) is not None:
            raise SettingError(
                f"there is no setting '{dotted(error.keys)}'. Here it is called '{meant}': {said}.", error.keys
            ) from None
        if not elsewhere:
            raise SettingError(str(error), error.keys) from None
        meant = " or ".join(f"'{name}'" for name in elsewhere)
        raise SettingError(f"there is no setting '{dotted(error.keys)}'. Did you mean {meant}?", error.keys) from None


def refuse_idle(settings: Any, *, only: Collection[tuple[str, ...]] | None = None) -> None:
    """Refuse a setting that was changed though the other settings leave it without effect.

    Settings tell of these by `without_effect()`: the keys of each and why. What is as it usually is may stay, and so
    may 0, false and none: to switch off what is not there is no mistake. The settings that a run was saved with are not
    asked: it works as it always did. With `only`, none but these settings are refused.
    """
    kind = type(settings)
    idle: Callable[[Any], Mapping[tuple[str, ...], str]] | None = getattr(kind, "without_effect", None)
    for keys, why in {} if idle is None else idle(settings).items():
        if only is not None and keys not in only:
            continue
        value, usual = settings, kind()
        for key in keys:
            value, usual = getattr(value, key), getattr(usual, key)
        if value != usual and value and value != "none":
            raise SettingError(f"{dotted(keys)} = {shown(value)} has no effect: {why}. Leave it out.", keys)


def same_name(kind: type[Any], name: str) -> list[str]:
    """The settings whose last name is this one, in whichever section, those of the outer sections first.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Training:
    ...     seed: int = setting(1, "of everything that is drawn")
    >>> same_name(Training, "seed")
    ['seed']
    """
    found: list[tuple[str, ...]] = []
    waiting: list[tuple[type[Any], tuple[str, ...]]] = [(kind, ())]
    while waiting:
        holder, path = waiting.pop(0)
        for key, hint in _hints(holder).items():  # type: ignore[arg-type]  # a class can be hashed
            if dataclasses.is_dataclass(hint):
                waiting.append((hint, (*path, key)))  # type: ignore[arg-type]  # a class, not one of its objects
            elif key == name:
                found.append((*path, key))
    return [dotted(keys) for keys in found]


@functools.cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    """The types of its fields. To work them out takes longer than all else here, so each text is evaluated once."""
    try:
        return {
            name: _type(base.__module__, hint) if isinstance(hint, str) else hint
            for base in reversed(kind.__mro__)
            for name, hint in get_annotations(base).items()
        } or get_type_hints(kind)
    except Exception:  # of a class that was not made in a module, or by a later Python
        return get_type_hints(kind)


@functools.cache
def _type(module: str, hint: str) -> Any:
    return eval(hint, vars(sys.modules[module]))


def field_type(kind: type, keys: Sequence[str]) -> Any:
    """The type of the section or setting under these keys; None where settings have none there.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Training:
    ...     seed: int = setting(1, "of everything that is drawn")
    >>> field_type(Training, ["seed"]), field_type(Training, ["sede"])
    (<class 'int'>, None)
    """
    found: Any = kind
    for key in keys:
        found = _hints(found).get(key) if dataclasses.is_dataclass(found) else None  # type: ignore[arg-type]
    return found


def explained(kind: type, name: str) -> str | None:
    """The line that explains a setting; None where there is no such setting.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Training:
    ...     seed: int = setting(1, "of everything that is drawn")
    >>> explained(Training, "seed"), explained(Training, "sede")
    ('of everything that is drawn', None)
    """
    *sections, last = name.split(".")
    holder = field_type(kind, sections)
    fields = dataclasses.fields(holder) if dataclasses.is_dataclass(holder) else ()
    return next((str(each.metadata.get("about", "")) for each in fields if each.name == last), None)


def is_part(hint: Any) -> bool:
    """Whether a setting of this type is a part with options of its own."""
    return {str, dict[str, Any]} <= {*get_args(hint)}


def _made(kind: type[S], table: SettingsTable, path: tuple[str, ...], usual: S | None) -> S:
    """A section; what the table does not give is as usual, for a task has defaults of its own for a section."""
    hints = _hints(kind)  # type: ignore[arg-type]  # a class can be hashed
    known = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    given: dict[str, Any] = {} if usual is None else {name: getattr(usual, name) for name in known}
    for key, value in table.items():
        keys = (*path, str(key))
        if key not in known:
            raise _Unknown(f"there is no setting '{dotted(keys)}'. {did_you_mean(str(key)[:80], known)}", keys)
        default = given[key] if usual is not None else _default(known[key])
        if not dataclasses.is_dataclass(hints[key]):
            given[key] = _value(value, hints[key], default, keys)
            continue
        value = _by_kind(value, hints[key])
        if not isinstance(value, Mapping):
            name = dotted(keys)
            raise SettingError(f"{name} must be a section, [{name}], but is {shown(value)}.", keys)
        given[key] = _made(hints[key], value, keys, default)
    return kind(**given)


def _by_kind(value: object, section: type) -> object:
    """encoder = "cnn" means [encoder] kind = "cnn"; --set encoder=cnn and --set encoder.width=5 have made it a name."""
    known = {field.name for field in dataclasses.fields(section)}
    if "kind" not in known:
        return value
    if isinstance(value, str):
        return {"kind": value}
    if isinstance(value, Mapping) and "name" in value and "name" not in known and "kind" not in value:
        return {"kind" if key == "name" else key: item for key, item in value.items()}
    return value


def _value(value: object, hint: Any, default: object, keys: tuple[str, ...]) -> Any:
    """A value as its setting takes it."""
    value = _plain(value, keys)
    name = dotted(keys)
    if value is None or (value == "none" and fits(None, hint)):
        value = None if fits(None, hint) else "" if default == "" else "none"
    elif isinstance(value, dict) and is_part(hint):
        if "name" not in value:  # options alone are those of the usual part
            usual = {"name": default} if isinstance(default, str) else default
            value = {**(usual if isinstance(usual, dict) else {}), **value}
        if not isinstance(value.get("name"), str):
            raise SettingError(f'{name} needs a name: {{name = "…", …}}, but is {shown(value)}.', keys)
    if isinstance(value, str) and not fits(value, hint) and fits([value], hint):
        value = [value]  # one item of a list: data.tags=xpos
    if not fits(value, hint):
        choices = choices_of(hint)
        near = f" {did_you_mean(str(value)[:80], choices)}" if choices else ""
        raise SettingError(f"{name} must be {in_words(hint)}, but is {shown(value)}.{near}", keys)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_whole and hint in (float, float | None) else value  # type: ignore[arg-type]


def _plain(value: object, keys: tuple[str, ...], depth: int = 0) -> object:
    """A copy in which all is as TOML has it; an option that is none is left out."""
    if depth > DEEPEST:
        raise SettingError(f"{dotted(keys)} is nested more than {DEEPEST} levels deep.", keys)
    if isinstance(value, Mapping):
        inside = {key: _plain(item, keys, depth + 1) for key, item in value.items() if item is not None}
        if all(isinstance(key, str) for key in inside):
            return inside
    elif isinstance(value, list | tuple):
        return [_plain(item, keys, depth + 1) for item in value]
    elif value is None and depth == 0:
        return None
    try:
        toml_value(value)
    except ConfigError as error:
        raise SettingError(f"{dotted(keys)}: {error}", keys) from error
    return value


def table_of(settings: object) -> dict[str, Any]:
    """Settings as a table from which settings_from makes the same; those that are absent are None."""
    values = {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)}  # type: ignore[arg-type]
    return {name: table_of(value) if dataclasses.is_dataclass(value) else value for name, value in values.items()}


def toml_text(settings: object, *, about: bool = False) -> str:
    """Settings as a TOML file; with `about`, each explained, and absent ones shown as comments.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Training:
    ...     seed: int = setting(1, "of everything that is drawn")
    >>> toml_text(Training(), about=True)
    'seed = 1                      # of everything that is drawn\\n'
    """
    return "\n".join(_toml_lines(settings, (), about, None)).strip() + "\n"


def _toml_lines(settings: object, path: tuple[str, ...], about: bool, usual: object) -> Iterator[str]:
    sections = []
    for field in dataclasses.fields(settings):  # type: ignore[arg-type]
        value = getattr(settings, field.name)
        default = _default(field) if usual is None else getattr(usual, field.name)
        if dataclasses.is_dataclass(value):
            sections.append((field, value, default))
            continue
        is_absent = value is None and default is None
        line = f"# {field.name} = …" if is_absent else f"{field.name} = {_none_or(value)}"
        if about and "about" in field.metadata:
            yield f"{line:28}  # {field.metadata['about']}"
        elif not is_absent:
            yield line
    for field, value, default in sections:
        yield f"\n# {field.metadata.get('about', '')}" if about else ""
        yield f"[{'.'.join((*path, field.name))}]"
        yield from _toml_lines(value, (*path, field.name), about, default)


def _none_or(value: object) -> str:
    return '"none"' if value is None else toml_value(value)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default
