"""Every message that the package can print, and a sample of them drawn by a seed.

    python benchmarks/messages.py                       30 messages drawn by seed 1
    python benchmarks/messages.py --seed 2 --count 50
    python benchmarks/messages.py --all                 all of them, grouped by file
    python benchmarks/messages.py --source OTHER/src    of another checkout: to compare before and after

A reader who sees only the message should be able to say what is wrong and what to do. Values are shown
as {expressions}. The script parses the sources and collects the strings passed to errors and warnings, to functions
called note, warn or tell, and to print for standard error.

A message is identified by its file and function, not by its line, so that the same seed draws the same messages from
two versions of the package unless a function gained or lost a message.
"""

from __future__ import annotations

import argparse
import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parent.parent / "src"
SAYING = ("note", "warn", "tell")
LEAST_WORDS = 3
"""Shorter strings are parts of a sentence or keys."""


class Message(NamedTuple):
    place: str  # file:line
    function: str
    number: int  # among the messages of its function
    text: str

    @property
    def key(self) -> tuple[str, str, int]:
        return self.place.rpartition(":")[0], self.function, self.number


def written(node: ast.expr) -> str | None:
    """The text of a string literal, with {expressions} for its values; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = []
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                parts.append("{" + ast.unparse(value.value) + "}")
            elif isinstance(value, ast.Constant):
                parts.append(str(value.value))
        return "".join(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = written(node.left), written(node.right)
        if left is None and right is None:
            return None
        shown = [
            text if text is not None else "{" + ast.unparse(part) + "}"
            for text, part in ((left, node.left), (right, node.right))
        ]
        return "".join(shown)
    return None


def says(call: ast.Call) -> bool:
    """Whether this call shows its first text to the user."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "print":
        return any(word.arg == "file" and "stderr" in ast.unparse(word.value) for word in call.keywords)
    return name in SAYING or name.endswith(("Error", "Warning", "Refused"))


def messages_of(path: Path, package: Path) -> Iterator[Message]:
    tree = ast.parse(path.read_text())
    where = str(path.relative_to(package))
    counts: dict[str, int] = {}

    def visit(node: ast.AST, function: str) -> Iterator[Message]:
        for child in ast.iter_child_nodes(node):
            inside = function
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inside = f"{function}.{child.name}".lstrip(".")
            if isinstance(child, ast.Call) and says(child):
                for argument in child.args:
                    text = written(argument)
                    if text is not None and len(text.split()) >= LEAST_WORDS:
                        counts[function] = counts.get(function, 0) + 1
                        yield Message(f"{where}:{child.lineno}", function, counts[function], text)
            yield from visit(child, inside)

    yield from visit(tree, "")


def all_messages(package: Path) -> list[Message]:
    """Every message below the folder, in the order of files and lines."""
    return [message for path in sorted(package.rglob("*.py")) for message in messages_of(path, package)]


def drawn(messages: list[Message], seed: int, count: int) -> list[Message]:
    """`count` messages: each key has its own random rank, so that one new message does not change the others drawn."""
    return sorted(messages, key=lambda message: random.Random(f"{seed} {message.key}").random())[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description="Messages that the package can print, a sample or all of them.")
    parser.add_argument("--seed", type=int, default=1, help="which messages are drawn (1)")
    parser.add_argument("--count", type=int, default=30, help="how many (30)")
    parser.add_argument("--all", action="store_true", help="print all messages")
    parser.add_argument("--source", type=Path, default=PACKAGE, help="the folder of sources (src of this checkout)")
    options = parser.parse_args()
    found = all_messages(options.source)
    print(f"{len(found)} messages")
    for number, message in enumerate(found if options.all else drawn(found, options.seed, options.count), 1):
        print(f"\n{number}. {message.place} in {message.function or 'the module'}\n   {message.text}")


if __name__ == "__main__":
    main()
