"""Every example runs from the command line as its first line says, and shows what it is meant to show."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ELSEWHERE = {"predict_on_ray.py"}
"""Examples that need more than recurra, and have tests of their own (tests/test_ray.py)."""

EXAMPLES = sorted(
    path for path in (Path(__file__).parent.parent / "examples").glob("*.py") if path.name not in ELSEWHERE
)

SMALL = {
    "remember.py": "5",
    "answer_questions.py": "50",
    "captions.py": "10",
    "dialogue.py": "10",
    "entailment.py": "10",
    "formulas.py": "10",
    "inflect.py": "10",
    "name_colours.py": "10",
    "pronounce.py": "10",
    "read_documents.py": "10",
    "spoken_digits.py": "10",
    "summarise.py": "60",
    "text_to_code.py": "10",
    "translate.py": "10",
}
"""Steps of training for those that take longer than a test may."""

SHOWN = {
    "remember.py": "ntm, layer 1 of 1, forward",
    "answer_questions.py": "simulated: the apple is in the office",
    "atrial_fibrillation.py": "auc: 1.00",
    "captions.py": "right: a yellow heart above a blue star",
    "entailment.py": "3,000 pairs to learn from, 300 to judge",
    "dialogue.py": "waiter: two people at six , what name ?",
    "formulas.py": "0% of 200 new formulas are right.",
    "inflect.py": "from the infinitive: 0% of 221 new forms are right",
    "name_colours.py": "2,300 names to learn from, 200 to foresee",
    "names_by_language.py": "Kowalewski: polish",
    "pronounce.py": "neither: N IY DH ER or N AY DH ER in the dictionary",
    "read_documents.py": "entity4 found a letter . entity1 warned entity1 . entity5 kept a ring . entity4 praised "
    "entity0 . entity5 bought a clock . entity0 kept a letter .",
    "sentiment.py": "the bed was dirty: bad",
    "spoken_digits.py": "1.23 seconds of 8 2 8",
    "summarise.py": "  Griskavle : K8131 at 671 °C",
    "tag_words.py": "she/PRON feeds/VERB the/DET small/ADJ birds/NOUN",
    "text_to_code.py": 'a list of x squared for even x from 3 to 12, with banned=["*"]:',
    "translate.py": "bleu by the length of 300 test sentences",
    "write_shakespeare.py": "O Romeo, Romeo! wherefore art thou Romeo?",
}
"""A line that each must print, also when it is small."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs_and_shows_what_it_is_meant_to(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # In this process, for torch takes seconds to be imported: one of them, below, is run as a reader would.
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECURRA_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", [str(example), *SMALL.get(example.name, "").split()])
    before = {*sys.modules}
    monkeypatch.syspath_prepend(str(example.parent))
    try:
        runpy.run_path(str(example), run_name="__main__")
    finally:
        for name in {*sys.modules} - before:
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(example.parent)):
                del sys.modules[name]
    done = capsys.readouterr()
    assert done.err == ""
    assert SHOWN[example.name] in done.out.splitlines()


def test_an_example_is_a_program(tmp_path: Path) -> None:
    example = next(example for example in EXAMPLES if example.name == "tag_words.py")
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert SHOWN[example.name] in done.stdout.splitlines()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_is_short_and_says_how_it_is_run(example: Path) -> None:
    text = example.read_text("utf-8")
    story = ast.get_docstring(ast.parse(text), clean=False) or ""
    assert f"python examples/{example.name}" in story.splitlines()[0]
    assert sum(bool(line.strip()) for line in text.replace(story, "").splitlines()) <= 80


def test_the_readme_lists_every_example() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    assert [example.name for example in EXAMPLES if f"(examples/{example.name})" not in readme] == []
