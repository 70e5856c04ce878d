"""Settings to and from TOML: frozen dataclasses whose fields carry their default and a line that explains them.

What a file or --set gives is checked by name and by type; a section checks its own numbers when it is made. The
sections themselves are in config.py.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, get_type_hints

from recurra.errors import ConfigError
from recurra.named import choices_of, did_you_mean, fits, in_words

S = TypeVar("S")

Part: TypeAlias = str | dict[str, Any]
"""A part with options of its own: a name, or a table of a name and its options."""

Table: TypeAlias = Mapping[str, Any]


def setting(default: Any, about: str) -> Any:
    """A field of a section: its default and the line that explains it."""
    if isinstance(default, list | dict):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata={"about": about})
    return dataclasses.field(default=default, metadata={"about": about})


def section(kind: type, about: str) -> Any:
    """A field that is a section of its own, with its defaults."""
    return dataclasses.field(default_factory=kind, metadata={"about": about})


def at_least(least: int, where: str, part: object, *names: str) -> None:
    """Refuse a number below the least, or one that is none."""
    for name in names:
        value = getattr(part, name)
        if value is not None and not least <= value < float("inf"):
            raise ConfigError(f"{where}.{name} must be at least {least}, but is {value}.")


def above_zero(where: str, part: object, *names: str) -> None:
    for name in names:
        value = getattr(part, name)
        if value is not None and not 0 < value < float("inf"):
            raise ConfigError(f"{where}.{name} must be above 0, but is {value}.")


def rates(where: str, part: object, *names: str) -> None:
    for name in names:
        value = getattr(part, name)
        if not 0 <= value < 1:
            raise ConfigError(f"{where}.{name} must be at least 0 and below 1, but is {value}.")


def read_toml(path: str | Path) -> dict[str, Any]:
    """A config file as a table; what is wrong with it is said with its line."""
    path = Path(path)
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no config file {path}.") from error
    except OSError as error:
        raise ConfigError(f"the config file {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}). A config file is TOML.") from error
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        place = f"{path}:{found[1]}" if found else str(path)
        raise ConfigError(f"{place}: this is not TOML: {str(error).split(' (at')[0]}.") from error
    except RecursionError as error:
        raise ConfigError(f"{path} is nested too deeply.") from error


def with_overrides(table: Table, overrides: Sequence[str]) -> dict[str, Any]:
    """The table with each 'section.key=value' of --set put in. A value that is not TOML is taken as a string.

    >>> with_overrides({"model": {"layers": 1}}, ["model.layers=2", "model.cell=gru"])
    {'model': {'layers': 2, 'cell': 'gru'}}
    """
    result = _copied(table)
    for override in overrides:
        name, equals, text = override.partition("=")
        keys = [key.strip() for key in name.split(".")]
        if not equals or not all(keys):
            raise ConfigError(f"--set takes section.key=value, such as model.hidden=256, but got {override!r}.")
        place = result
        for key in keys[:-1]:
            inner = place.setdefault(key, {})
            if isinstance(inner, str):  # a part given by its name gains options: cell.reset=after
                inner = place[key] = {"name": inner}
            if not isinstance(inner, dict):
                raise ConfigError(f"--set {override}: {key} is not a section but {inner!r}.")
            place = inner
        place[keys[-1]] = value_of(text)
    return result


def value_of(text: str) -> Any:
    """A value as typed on the command line: TOML where it is TOML, a string otherwise; none takes a setting away."""
    if text.strip() in ("none", "None"):
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text.strip()


def settings_from(kind: type[S], table: Table, source: str | Path | None = None) -> S:
    """The settings that a table means; a ConfigError gives the file, the line, the name and the nearest known one.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Training:
    ...     seed: int = setting(1, "of everything that is drawn")
    >>> settings_from(Training, {"seed": 7}).seed
    7
    >>> settings_from(Training, {"sede": 7})
    Traceback (most recent call last):
    recurra.errors.ConfigError: there is no setting 'sede'. Did you mean 'seed'? Known: seed.
    """
    try:
        return _made(kind, table, ())
    except ConfigError as error:
        if source is None:
            raise
        line = _line_of(Path(source), str(error))
        raise ConfigError(f"{source}{'' if line is None else f':{line}'}: {error}") from error


def _made(kind: type[S], table: Table, path: tuple[str, ...]) -> S:
    hints = get_type_hints(kind)
    known = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for key, value in table.items():
        name = ".".join((*path, str(key)))
        if key not in known:
            raise ConfigError(f"there is no setting '{name}'. {did_you_mean(str(key), known)}")
        hint = hints[key]
        if dataclasses.is_dataclass(hint):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{name} is a section, [{name}], but is {value!r}.")
            # A task has defaults of its own for a section; what is given is laid over them.
            factory = known[key].default_factory
            usual = table_of(factory()) if factory is not dataclasses.MISSING else {}
            given[key] = _made(hint, {**usual, **value}, (*path, key))  # type: ignore[arg-type]
            continue
        if not fits(value, hint):
            choices = choices_of(hint)
            near = f" {did_you_mean(str(value), choices)}" if choices else ""
            raise ConfigError(f"{name} must be {in_words(hint)}, but is {_shown(value)}.{near}")
        is_number = isinstance(value, int) and not isinstance(value, bool)
        given[key] = float(value) if is_number and hint in (float, float | None) else value
    return kind(**given)


def table_of(settings: object) -> dict[str, Any]:
    """Settings as a table, without those that are absent."""
    return {
        field.name: table_of(value) if dataclasses.is_dataclass(value) else value
        for field in dataclasses.fields(settings)  # type: ignore[arg-type]
        if (value := getattr(settings, field.name)) is not None
    }


def toml_text(settings: object, *, about: bool = False) -> str:
    """Settings as a TOML file; with `about`, each explained, and absent ones shown as comments.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Training:
    ...     seed: int = setting(1, "of everything that is drawn")
    >>> toml_text(Training(), about=True)
    'seed = 1  # of everything that is drawn\\n'
    """
    return "\n".join(_toml_lines(settings, (), about)).strip() + "\n"


def _toml_lines(settings: object, path: tuple[str, ...], about: bool) -> Iterator[str]:
    sections = []
    for field in dataclasses.fields(settings):  # type: ignore[arg-type]
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            sections.append((field, value))
            continue
        line = f"# {field.name} = …" if value is None else f"{field.name} = {toml_value(value)}"
        if about and "about" in field.metadata:
            yield f"{line:28}  # {field.metadata['about']}"
        elif value is not None:
            yield line
    for field, value in sections:
        if about:
            yield f"\n# {field.metadata.get('about', '')}"
        else:
            yield ""
        yield f"[{'.'.join((*path, field.name))}]"
        yield from _toml_lines(value, (*path, field.name), about)


def toml_value(value: object) -> str:
    """A value as TOML writes it.

    >>> toml_value({"name": "lstm", "wrap": [{"name": "zoneout", "rate": 0.1}], "bias": True})
    '{name = "lstm", wrap = [{name = "zoneout", rate = 0.1}], bias = true}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        # JSON escapes all that TOML must have escaped, but for DEL; lone surrogates have no place in either.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {toml_value(item)}" for key, item in value.items() if item is not None)
        return "{" + inside + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    raise ConfigError(f"a setting cannot hold {value!r}: TOML has no such value.")


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(str(key))


def _copied(table: Table) -> dict[str, Any]:
    return {key: _copied(value) if isinstance(value, Mapping) else value for key, value in table.items()}


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _line_of(path: Path, message: str) -> int | None:
    """The line of a config file that sets the first dotted name in a message."""
    found = re.search(r"[a-z_]+(?:\.[A-Za-z0-9_]+)+|'[^' ]+'|^\w+", message)
    if found is None or not path.is_file():
        return None
    keys = found[0].strip("'").split(".")
    current: list[str] = []
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        if header := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line):
            current = header[1].split(".")
        elif assignment := re.match(r"\s*([\w.\"-]+)\s*=", line):
            whole = [*current, *assignment[1].strip('"').split(".")]
            if whole == keys[: len(whole)] and len(whole) >= min(len(keys), 1):
                return number
    return None
