"""recurra --print-completion SHELL: what a shell needs to complete commands, options, settings and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

from recurra.errors import ConfigError

SHELLS = ("bash", "zsh", "fish")

TASKS = {
    "classification": "ClassificationSettings",
    "forecasting": "ForecastingSettings",
    "language_model": "LanguageModelSettings",
    "question_answering": "QuestionAnsweringSettings",
    "seq2seq": "Seq2SeqSettings",
    "tagging": "TaggingSettings",
    "vec2seq": "Vec2SeqSettings",
}
"""The tasks and their settings in recurra.config, by name: a list of the tasks themselves would import torch."""

SECTIONS = {"train": (), "sweep": (), "config": (), "evaluate": ("evaluation",), "compare": ("evaluation",)}
"""What --set of a command can change: sections of a run's settings; () for all of them."""

IN_BASH = """\
# The value of a setting follows its name without a blank.
_recurra() {
  _shtab_recurra "$@"
  [[ ${#COMPREPLY[@]} == 1 && "${COMPREPLY[0]}" == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}

complete -o bashdefault -F _recurra recurra
"""

TASKS_OR_FILES_IN_ZSH = (
    "_recurra_tasks_{command}() {{ _alternative 'tasks:task:({tasks})' 'files:config file:_files' }}"
)

FILES_IN_FISH = "(__fish_complete_path (commandline -ct))"

FOLDERS = ("RUN", "DIR", "FOLDER", "SWEEP")
FILES = ("FILE", "DATA", "GOLD", "PREDICTED", "INPUT", "CONFIG", "WHAT")


class PrintCompletion(argparse.Action):
    """Print the completion script of a shell and end."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        print(completion(parser, str(values)))
        parser.exit()


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for a shell."""
    if shell not in SHELLS:
        raise ConfigError(f"--print-completion knows {', '.join(SHELLS)}, but not {shell!r}.")
    try:
        import shtab
    except ModuleNotFoundError:
        raise ConfigError(
            "--print-completion needs shtab, which is not installed: pip install 'recurra[completion]'."
        ) from None
    functions = list[str]()
    for command, sub in commands_of(parser).items():
        for action in sub._actions:
            completed_by(action, command, shtab)
            if shell == "zsh" and "--set" in action.option_strings:
                functions.append(in_zsh(command, list(action.choices or ())))
                action.choices = None
                action.complete = {"zsh": f"_recurra_settings_{command}"}  # type: ignore[attr-defined]
            if shell == "zsh" and shtab.Optional.FILE[0] in (action.choices or ()):
                functions.append(TASKS_OR_FILES_IN_ZSH.format(command=command, tasks=" ".join(TASKS)))
                action.choices = None
                action.complete = {"zsh": f"_recurra_tasks_{command}"}  # type: ignore[attr-defined]
    script: str = shtab.complete(parser, shell, preamble="\n".join(functions))
    if shell == "fish":  # where shtab offers the word itself in place of files
        script = script.replace(f"'{shtab.Optional.FILE[0]}'", FILES_IN_FISH)
    return f"{script}\n{IN_BASH}" if shell == "bash" else script


def in_zsh(command: str, settings: Sequence[str]) -> str:
    """A function of zsh that offers settings, and adds no blank after the one that is taken: its value follows.

    >>> print(in_zsh("predict", ["decoding.best=", "decoding.width="]))
    _recurra_settings_predict() { compadd "$@" -S '' - decoding.best= decoding.width= }
    """
    return f"_recurra_settings_{command}() {{ compadd \"$@\" -S '' - {' '.join(settings)} }}"


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Each command and its parser."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found.update(action.choices)
    return found


def completed_by(action: argparse.Action, command: str, shtab: Any) -> None:
    """Say what a shell may put in place of an option's value: a file, a folder, a task or the name of a setting."""
    names = str(action.metavar or "").split("|")
    if action.choices is not None:
        return
    if "--set" in action.option_strings:
        action.choices = settings_of(command)
    elif "TASK" in names or (command == "config" and action.dest == "task"):
        action.choices = [*TASKS, *([shtab.Optional.FILE[0]] if len(names) > 1 else [])]
    elif any(name in FILES for name in names):  # which completes folders too
        action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab's way to say it
    elif any(name in FOLDERS for name in names):
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]


def settings_of(command: str) -> list[str]:
    """The settings that a command can change, up to their = sign: all of any task where it trains.

    >>> [name for name in settings_of("predict") if "width" in name]
    ['decoding.width=']
    """
    from recurra import config

    sections = SECTIONS.get(command, ("decoding", "evaluation"))
    names = {name for task in TASKS.values() for name in names_in(getattr(config, task))}
    return sorted(f"{name}=" for name in names if not sections or name.partition(".")[0] in sections)


def names_in(settings: type, before: str = "") -> Iterator[str]:
    """All settings below a dataclass of them, with dots."""
    kinds = get_type_hints(settings)
    for each in fields(settings):
        inside = [kind for kind in (kinds[each.name], *get_args(kinds[each.name])) if is_dataclass(kind)]
        name = f"{before}{each.name}"
        if not inside or before:
            yield name
        for kind in inside:
            yield from names_in(kind, f"{name}.")  # type: ignore[arg-type]
