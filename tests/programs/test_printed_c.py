"""What is printed from a program's file: no file can bring code, comments or names of its own into the C text."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import CheckpointError
from recurra.programs.c_text import Printed
from recurra.programs.program import Program

EVIL = '*/\n#include <stdio.h>\n__attribute__((constructor)) static void evil(void) { puts("evil"); } /*'


def table() -> dict[str, Any]:
    """A program with something of each kind: a scan, a quotient, ids, numbers, a view and several outputs."""
    state, step = ["float32", "B", 2], [["x", ["float32", "B", 2], None], ["h", ["float32", "B", 2], None]]
    body = {"inputs": step, "operations": [["add", [0, 1], [state]], ["tanh", [2], [state]]], "outputs": [["h", 3]]}
    read = {
        "inputs": [["ids", ["int64", "B", "T"], 5], ["lengths", ["int64", "B"], None]],
        "operations": [
            ["take", ["rows.weight", 0], [["float32", "B", "T", 2]]],
            ["full", [[0.5]], [state]],
            ["scan", [2, 1, 3], [["float32", "B", "T", 2], state], {"body": body, "states": 1, "backward": False}],
            ["slice", [4], [["float32", "B", "(T+1)//2", 2]], {"dim": 1, "first": 0, "by": 2}],
            ["mul", [6, ["size", "T"]], [["float32", "B", "(T+1)//2", 2]]],
        ],
        "outputs": [["outputs", 7], ["state0", 5]],
    }
    return {"format": 1, "weights": {"rows.weight": ["float32", [5, 2]]}, "functions": {"read": read}}


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a text stands in a tree of JSON; the keys of a table are named by a path that ends with their own."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield (*path, ("key", key))
            yield from places(value, (*path, key))
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            yield from places(value, (*path, number))
    else:
        yield path


def replaced(tree: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A tree with something else at a place."""
    if not path:
        return new
    first, *rest = path
    if isinstance(first, tuple):
        return {str(new) if key == first[1] else key: value for key, value in tree.items()}
    if isinstance(tree, dict):
        return {key: replaced(value, tuple(rest), new) if key == first else value for key, value in tree.items()}
    return [replaced(value, tuple(rest), new) if number == first else value for number, value in enumerate(tree)]


COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
OF_FILE = re.compile(r"(?:recurra|recurra_sizes_of|in|out)_[A-Za-z0-9_]{1,64}|n_[A-Za-z][A-Za-z0-9]{0,31}")
"""Names that may come from a file, with the prefixes that C gives them."""


def words(text: str) -> Counter[str]:
    """The names of C in a text, and its directives and texts in quotes, comments left out."""
    return Counter(re.findall(r'[A-Za-z_]\w*|#\s*\w+|"[^"\n]*"|__\w+', COMMENT.sub(" ", text)))


def assert_only_names_come_from(text: str, plain: str) -> None:
    assert re.fullmatch(r"[\n -~]*", text)
    assert text.count("/*") == text.count("*/") == len(COMMENT.findall(text))
    assert text.count("#") == plain.count("#")
    assert text.count('"') == plain.count('"')
    known = set(words(plain))
    of_loops = "i_|t_|v|x|w|p|at_v|most|best|place|at|active|part|count|total"
    numbered = re.compile(rf"(?:{of_loops}|INT64_C)\d*")  # of loops, arrays and values
    strange = {word for word in words(text) if word not in known and not numbered.fullmatch(word)}
    assert all(OF_FILE.fullmatch(word) for word in strange), strange


PLAIN = Printed(Program.from_json(json.dumps(table())))

TEXTS = st.one_of(
    st.text(max_size=80),
    st.sampled_from(["*/", "//", "\\\n", "??/", EVIL, "x;int y", "σ", "open", "B*T", "(B+T)//2", "a.b", "x" * 99]),
    st.text(alphabet="abBT_*/+-()0123456789.;\n\"#\\'{} ", max_size=40),
)
VALUES = st.one_of(TEXTS, st.integers(), st.floats(), st.booleans(), st.none(), st.lists(TEXTS, max_size=3))


@given(st.sampled_from(list(places(table()))), VALUES)
def test_whatever_file_is_accepted_prints_c_with_nothing_of_it_but_names_and_numbers(path: Any, value: Any) -> None:
    try:
        printed = Printed(Program.from_json(json.dumps(replaced(table(), path, value))))
    except (CheckpointError, ValueError):
        return
    assert_only_names_come_from(printed.text, PLAIN.text)
    assert_only_names_come_from(printed.header(), PLAIN.header())


@pytest.mark.parametrize(
    "path",
    [
        ("functions", ("key", "read")),
        ("functions", "read", "inputs", 0, 0),
        ("functions", "read", "outputs", 0, 0),
        ("functions", "read", "operations", 2, 3, "body", "inputs", 0, 0),
    ],
)
@pytest.mark.parametrize("name", [EVIL, "", "a b", "a.b", "naïve", "x" * 65, "x\n", 7])
def test_names_that_are_printed_have_letters_digits_and_underscores_alone(path: Any, name: Any) -> None:
    if isinstance(path[-1], tuple) and name == 7:
        name = "7;"
    with pytest.raises(CheckpointError, match="is not a name: it must have 1 to 64 ASCII letters"):
        Program.from_json(json.dumps(replaced(table(), path, name)))


def test_names_that_c_has_already_are_refused_for_functions_and_harmless_elsewhere() -> None:
    for name in ("open", "close", "model", "sizes_of_read"):
        with pytest.raises(CheckpointError, match=f"a function is called '{name}'"):
            Program.from_json(json.dumps(replaced(table(), ("functions", ("key", "read")), name)))
    for name in ("int", "free", "memory", "status", "7", "EACH"):
        changed = replaced(table(), ("functions", "read", "inputs", 0, 0), name)
        assert f"const int64_t *in_{name}," in Printed(Program.from_json(json.dumps(changed))).header()


@pytest.mark.parametrize("where", ["inputs", "outputs"])
def test_two_inputs_or_outputs_of_one_name_are_refused(where: str) -> None:
    changed = table()
    changed["functions"]["read"][where][1][0] = changed["functions"]["read"][where][0][0]
    with pytest.raises(CheckpointError, match="two inputs or two outputs are called"):
        Program.from_json(json.dumps(changed))


def test_the_name_of_a_weight_cannot_end_the_comment_that_it_is_in() -> None:
    changed = json.loads(json.dumps(table()).replace("rows.weight", json.dumps(EVIL)[1:-1]))
    printed = Printed(Program.from_json(json.dumps(changed)))
    assert "evil(" not in printed.text
    assert_only_names_come_from(printed.text, PLAIN.text)
