"""Vector to sequence from the command line: look at a file, train as told, ask, score."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from recurra.cli import main
from tests.tasks.small_givens import COLOURS, SMALL, colours, pixels, strokes, untrained
from tests.tasks.small_pairs import jsonl

TINY = [part for override in [*SMALL, "training.steps=2"] for part in ("--set", override)]
TINY_WITHOUT_PICTURES = [
    part
    for override in [*SMALL, "training.steps=2"]
    if not override.startswith("model.image.")
    for part in ("--set", override)
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", ["table", "numbers", "strokes"])
def test_what_check_says_to_type_trains(here: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(
        colours(here)
        if kind == "table"
        else strokes(here)
        if kind == "strokes"
        else jsonl(here / "a.jsonl", [{"called": name, **dict(zip("rgb", rgb, strict=True))} for name, rgb in COLOURS])
    ).name
    assert main(["check", file, "--valid", file]) == 0
    [command] = [line.strip() for line in capsys.readouterr().out.splitlines() if "recurra train vec2seq" in line]
    program, *arguments = shlex.split(command)
    assert program == "recurra"
    assert main([*arguments, *(TINY if kind == "strokes" else TINY_WITHOUT_PICTURES), "--quiet"]) == 0
    run = arguments[arguments.index("--out") + 1]
    assert f"{run}: vec2seq: " in capsys.readouterr().out
    assert main(["predict", run, file]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 8
    assert main(["evaluate", run, file, "--json"]) == 0
    assert {"perplexity", "nll", "exact_match", "count", "seconds"} <= json.loads(capsys.readouterr().out).keys()


def test_tables_name_what_was_given_and_go_by_what_is_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    untrained(here, colours(here))
    assert main(["evaluate", "run", "colours.tsv", "--tables"]) == 0
    said = capsys.readouterr().out
    assert "target length items" in said
    assert "\n150 255 180 " in said


def test_a_dry_run_tells_shapes_and_steps(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "vec2seq", "--train", pixels(here), *TINY, "--dry-run"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "pictures, CNN 6 + 12, conditioning: initial" in said
    assert "output.readout.weight 23x16 368" in said
    assert not (here / "runs").exists()


def test_all_settings_are_printed_and_read_back(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "vec2seq", "--set", 'model.conditioning=["first"]']) == 0
    printed = capsys.readouterr().out
    assert 'conditioning = ["first"]' in printed
    (here / "mine.toml").write_text(printed)
    assert main(["config", "mine.toml"]) == 0
    assert capsys.readouterr().out == printed


def test_the_card_of_a_run_says_how_it_is_asked(here: Path) -> None:
    card = (untrained(here, colours(here), run="vector").folder / "card.md").read_text()
    assert "writes a text for a vector" in card
    assert "recurra generate vector --prompt '[…]' --count 5" in card
    card = (untrained(here, pixels(here), run="picture").folder / "card.md").read_text()
    assert "writes a text for a picture" in card
    assert "recurra generate picture --prompt picture.png --count 5" in card
    card = (untrained(here, strokes(here), "data.image.max_height=32", run="drawn").folder / "card.md").read_text()
    assert "writes a text for a drawing" in card
