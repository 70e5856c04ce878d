"""Writes docs/settings.md from the settings that the program has: python docs/write_settings.py [--check].

With --check nothing is written, and the exit status is 1 where the page is not what would be written.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from recurra.named import catalogue
from recurra.runs import setup
from recurra.settings import toml_text
from recurra.tasks.task import Task

PAGE = Path(__file__).parent / "settings.md"

OPENING = """# Settings

All settings of a task, their defaults, and what they are. A config file holds those that should differ, in the same
sections; `--set section.key=value` changes one for a run ([how](training.md#settings)). What is commented out has no
value until one is given, and `none` takes a value away. Where a part can be named (a cell, a head, an optimiser, …), a
table gives it options: `{name = "gru", reset = "after"}`, or `--set model.cell.reset=after`.

This page is written by `python docs/write_settings.py`.
"""


def page() -> str:
    parts = [OPENING]
    for task in catalogue(Task):
        parts.append(f"## `recurra config {task}`\n\n```toml\n{toml_text(setup(task).settings, about=True)}```\n")
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the page of all settings.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the page differs")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        print(f"{PAGE}: not the settings of the program; run python docs/write_settings.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
