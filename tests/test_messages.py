"""benchmarks/messages.py finds what the package can print, and a seed draws the same messages again."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "messages.py"))


def test_errors_notes_and_warnings_are_found_with_their_values_as_expressions(tmp_path: Path) -> None:
    (tmp_path / "some.py").write_text(
        "def f(progress, path, error):\n"
        '    progress.note("no validation data: the last weights are saved")\n'
        '    raise DataError(f"{path} cannot be read " f"({error}).")\n'
    )
    found = SCRIPT["all_messages"](tmp_path)
    assert [(message.place, message.text) for message in found] == [
        ("some.py:2", "no validation data: the last weights are saved"),
        ("some.py:3", "{path} cannot be read ({error})."),
    ]


def test_a_seed_draws_the_same_messages_after_lines_have_moved(tmp_path: Path) -> None:
    body = "".join(f'def f{n}():\n    raise DataError("message number {n} is wrong")\n' for n in range(20))
    (tmp_path / "some.py").write_text(body)
    before = SCRIPT["drawn"](SCRIPT["all_messages"](tmp_path), 3, 5)
    (tmp_path / "some.py").write_text("\n\n" + body)
    after = SCRIPT["drawn"](SCRIPT["all_messages"](tmp_path), 3, 5)
    assert [message.text for message in after] == [message.text for message in before]
    assert SCRIPT["drawn"](SCRIPT["all_messages"](tmp_path), 4, 5) != after


def test_the_messages_of_the_package_are_listed() -> None:
    found = SCRIPT["all_messages"](ROOT / "src")
    assert len(found) > 500
    assert any("Did you mean" in message.text or "did_you_mean" in message.text for message in found)
