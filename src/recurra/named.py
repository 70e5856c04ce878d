"""From a name in a config file to the thing it means.

'lstm' is the class LSTM in cells/lstm.py: the file name is the config name, so the folder is the catalogue.
'my.lab:MyCell' is the class MyCell in the user's own module my/lab.py.
"""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from recurra.errors import ConfigError, is_lack_of_memory

T = TypeVar("T")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A closing sentence for an error: the nearest known name, then all of them.

    >>> did_you_mean("lsmt", ["gru", "lstm"])
    "Did you mean 'lstm'? Known: gru, lstm."
    """
    import difflib

    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return (f"Did you mean '{near[0]}'? " if near else "") + f"Known: {', '.join(known)}."


def choose(options: Iterable[str], value: object, what: str) -> str:
    """The value, if it is one of the options; else a ConfigError with the nearest one.

    >>> choose(("before", "after"), "after", "reset")
    'after'
    """
    options = list(options)
    if isinstance(value, str) and value in options:
        return value
    raise ConfigError(f"{what} = {value!r} is not known. {did_you_mean(str(value), options)}")


def catalogue(kind: type) -> list[str]:
    """The names of all variants of a kind: the files beside the one that defines it, whose class is of that kind.

    >>> from recurra.cells import Cell
    >>> catalogue(Cell)[:3]
    ['coupled_lstm', 'dnc', 'elman']
    """
    home = kind.__module__.rpartition(".")[0]
    return sorted(
        name
        for name in _files_beside(kind)
        if isinstance(found := _class_of(f"{home}.{name}"), type)
        and issubclass(found, kind)
        and not inspect.isabstract(found)  # what several variants share
    )


def _files_beside(kind: type) -> list[str]:
    """The names of the modules beside the one that defines a kind; none is imported."""
    home, _, base = kind.__module__.rpartition(".")
    import pkgutil

    modules = pkgutil.iter_modules(importlib.import_module(home).__path__)
    return [module.name for module in modules if module.name != base and not module.ispkg]


def _is_beside(name: str, kind: type) -> bool:
    """Whether a module of this name lies beside the one that defines a kind; it is not imported."""
    home, _, base = kind.__module__.rpartition(".")
    if not name.isidentifier() or name == base:
        return False
    from importlib.util import find_spec

    found = find_spec(f"{home}.{name}")
    return found is not None and found.submodule_search_locations is None


def find(kind: type[T], name: str) -> type[T]:
    """The class of that kind which a name means.

    >>> from recurra.cells import Cell
    >>> find(Cell, "peephole_lstm").__name__
    'PeepholeLSTM'
    """
    what = kind.__name__.lower()
    one = _with_article(what)
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{one} is named by a string such as '{catalogue(kind)[0]}', but found {name!r}.")
    found = imported(name, what) if ":" in name else None
    if ":" not in name and _is_beside(name, kind):  # the one file that is meant is imported, and no other
        beside = _class_of(f"{kind.__module__.rpartition('.')[0]}.{name}")
        if isinstance(beside, type) and issubclass(beside, kind) and not inspect.isabstract(beside):
            found = beside
    if found is None:
        raise ConfigError(
            f"there is no {what} '{name}'. {did_you_mean(name, catalogue(kind))} "
            f"Name your own class as 'package.module:Class'."
        )
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise ConfigError(f"{name} is not {one}: {one} is a class that inherits from recurra's {kind.__name__}.")
    if inspect.isabstract(found) or found is kind:
        raise ConfigError(f"{name} is abstract: {one} must implement all abstract methods.")
    return found


def made(kind: type[T], name: str, *arguments: Any, **options: Any) -> T:
    """An instance; whatever the user's own constructor raises is said in one sentence."""
    try:
        return kind(*arguments, **options)
    except ConfigError:
        raise
    except Exception as error:
        if is_lack_of_memory(error):
            raise
        raise ConfigError(f"'{name}' cannot be created: its constructor failed with {with_place(error)}.") from error


def built(kind: type[T], spec: object, *arguments: Any) -> T:
    """Build a part from a setting: a name, or a table with a name and options.

    >>> from recurra.outputs import Output
    >>> built(Output, {"name": "mixture_of_softmaxes", "components": 3}, 4, 10).components
    3
    """
    table = {"name": spec} if isinstance(spec, str) else spec
    if not isinstance(table, Mapping) or "name" not in table:
        one, example = _with_article(kind.__name__.lower()), catalogue(kind)[0]
        raise ConfigError(
            f"{one} is a name or a table with a name, such as {{name = '{example}'}}, but found {spec!r}."
        )
    name = table["name"]
    options = {str(key): value for key, value in table.items() if key != "name"}
    found = find(kind, name)
    check_options(found, name, options)
    return made(found, name, *arguments, **options)


def _with_article(what: str) -> str:
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"


def own_code(name: str) -> tuple[str, str] | None:
    """The module and the attribute that 'package.module:attribute' names; None for a text that is no such name.

    >>> own_code("my.lab:MyCell"), own_code("cuda:1"), own_code("../lab:MyCell")
    (('my.lab', 'MyCell'), None, None)
    """
    module, _, attribute = name.partition(":")
    is_name = attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))
    return (module, attribute) if is_name else None


def imported(name: str, what: str) -> object:
    """What 'package.module:attribute' means; a ConfigError says which half is wrong.

    This runs the module's code. A name out of a run folder comes here only after `config.trust` let it.
    """
    named = own_code(name)
    if named is None:
        raise ConfigError(
            f"the {what} '{name}' cannot be loaded: your own is named as 'package.module:Class', with names that "
            f"Python code could use."
        )
    module_name, attribute = named
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(
            f"the {what} '{name}' cannot be loaded: importing '{module_name}' failed ({error}). "
            f"It must be on Python's module path or, for the command line, in the current folder, unless that is a run."
        ) from error
    except Exception as error:  # the user's own module may fail in any way
        raise ConfigError(
            f"the {what} '{name}' cannot be loaded: importing '{module_name}' failed with {with_place(error)}."
        ) from error
    if not hasattr(module, attribute):
        known = [key for key in vars(module) if not key.startswith("_")]
        raise ConfigError(f"'{module_name}' has no '{attribute}'. {did_you_mean(attribute, known)}")
    return getattr(module, attribute)


def options_of(kind: type) -> dict[str, inspect.Parameter]:
    """The keyword-only parameters of a class: the options that a config file may set.

    >>> from recurra.cells import LSTM
    >>> list(options_of(LSTM))
    ['candidate', 'bias', 'forget_bias', 'input_init', 'state_init']
    """
    if kind.__init__ is object.__init__ and kind.__new__ is object.__new__:  # type: ignore[misc, comparison-overlap]  # of this very class
        return {}  # which takes inspect longer to tell
    parameters = inspect.signature(kind).parameters
    return {name: p for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}


def check_options(kind: type, name: str, options: Mapping[str, object]) -> None:
    """Refuse an option that the class does not have, or a value of another type than its annotation says."""
    known = options_of(kind)
    try:
        hints = get_type_hints(kind.__init__)  # type: ignore[misc]  # of this very class, whose signature was read
    except NameError:  # a user's annotations may name what only a type checker imports
        hints = {}
    for option, value in options.items():
        if option not in known:
            raise ConfigError(f"'{name}' has no option '{option}'. {did_you_mean(option, ['name', *known])}")
        if option in hints and not fits(value, hints[option]):
            raise ConfigError(
                f"'{name}': {option} must be {in_words(hints[option])}, but is {value!r}."
                + (f" {did_you_mean(str(value), choices)}" if (choices := choices_of(hints[option])) else "")
            )
    for option, parameter in known.items():
        if parameter.default is parameter.empty and option not in options:
            raise ConfigError(f"'{name}' needs the option '{option}': {{name = '{name}', {option} = …}}.")


def _class_of(module_name: str) -> type | None:
    """The class that a file is named after: min_gru.py -> MinGRU."""
    wanted = module_name.rpartition(".")[2].replace("_", "")
    for name, value in vars(importlib.import_module(module_name)).items():
        if isinstance(value, type) and value.__module__ == module_name and name.lower() == wanted:
            return value
    return None


def with_place(error: Exception) -> str:
    """An error with the file and line where it arose."""
    if isinstance(error, SyntaxError):
        return f"a syntax error at {error.filename}:{error.lineno} ({error.msg})"
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" at {place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place is not None else ""
    return f"{type(error).__name__}{where} ({error})"


def choices_of(hint: Any) -> list[str]:
    return [str(choice) for choice in get_args(hint)] if get_origin(hint) is Literal else []


def fits(value: object, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return value in arguments and isinstance(value, type(arguments[0]))
    if origin in (Union, types.UnionType):
        return any(fits(value, argument) for argument in arguments)
    if origin is not None and isinstance(origin, type):
        if issubclass(origin, Mapping):
            return isinstance(value, Mapping) and all(fits(item, arguments[1]) for item in value.values())
        if issubclass(origin, Iterable):
            return isinstance(value, list | tuple) and all(fits(item, arguments[0]) for item in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint) if isinstance(hint, type) else True


def in_words(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " or ".join(repr(argument) for argument in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(in_words(argument) for argument in arguments)
    if origin is not None and isinstance(origin, type):
        several = {float: "numbers", int: "whole numbers", str: "strings"}
        if issubclass(origin, Mapping):
            return f"a table of {several.get(arguments[1], 'values')}"
        return f"a list of {several.get(arguments[0], 'values')}"
    words = {float: "a number", int: "a whole number", bool: "true or false", str: "a string", type(None): "nothing"}
    return words.get(hint, getattr(hint, "__name__", str(hint)))
