"""A model over time: every layer, way and step has its place, and what it writes stands above."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from recurra import cli
from recurra.reports.unrolled import unrolled
from recurra.views.scene import Box, Label, Scene
from recurra.views.svg import as_svg
from tests.runtime.small_tasks import KINDS, AnyTask, of_every_kind, prepared
from tests.tasks import small_pairs
from tests.tasks.small_pairs import table


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AnyTask]:
    return of_every_kind(tmp_path_factory.mktemp("unrolled"))


def words(scene: Scene) -> list[str]:
    return [shape.text for shape in scene.shapes if isinstance(shape, Label)]


def states(scene: Scene) -> list[str]:
    """What the boxes of cells say when they are pointed at."""
    return [shape.title for shape in scene.shapes if isinstance(shape, Box) and shape.title]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_model_is_drawn_within_its_picture(tasks: dict[str, AnyTask], name: str) -> None:
    scene = unrolled(tasks[name])
    assert tasks[name].described() in words(scene)
    ElementTree.fromstring(as_svg(scene))
    for shape in scene.shapes:
        if isinstance(shape, Box):
            assert shape.x >= 0
            assert shape.x + shape.width <= scene.width
            assert shape.y >= 0
            assert shape.y + shape.height <= scene.height


def test_a_cell_stands_for_each_layer_way_and_step(tmp_path: Path) -> None:
    train = table(tmp_path / "pairs.tsv", small_pairs.WORDS)
    scene = unrolled(prepared("seq2seq", train, "model.encoder.layers=2", "model.decoder.layers=3", "model.cell=gru"))
    found = states(scene)
    for layer in (1, 2):
        for way in ("forward", "backward"):
            for step in "₁₂₃ₜ":
                assert sum(f"layer {layer}, {way}, step {step}" in each for each in found) == (
                    2 if way == "forward" else 1
                )
    assert len(found) == 2 * 2 * 4 + 3 * 4
    assert all(each.startswith("gru ") for each in found)
    assert words(scene).count("concat") == 2 * 4


def test_attention_its_wiring_and_the_first_state_are_named(tmp_path: Path) -> None:
    train = table(tmp_path / "pairs.tsv", small_pairs.WORDS)
    seen = words(unrolled(prepared("seq2seq", train, "model.attention=additive", "model.wiring=feeding")))
    assert "attention: additive, feeding" in seen
    assert "first state" in seen
    alone = words(unrolled(prepared("seq2seq", train, "model.attention=none")))
    assert not any("attention:" in each for each in alone)


def test_a_summary_of_the_source_that_conditions_the_decoder_is_drawn(tmp_path: Path) -> None:
    train = table(tmp_path / "pairs.tsv", small_pairs.WORDS)
    plain = ["model.attention=none", "model.start=zeros"]
    unconnected = unrolled(prepared("seq2seq", train, *plain))
    conditioned = unrolled(prepared("seq2seq", train, *plain, 'model.conditioning=["every", "output"]'))
    assert "every, output" in words(conditioned)
    assert len(conditioned.shapes) == len(unconnected.shapes) + 3, "an arrow, which is two lines, and its name"
    both = words(unrolled(prepared("seq2seq", train, "model.attention=none", 'model.conditioning=["every"]')))
    assert "first state, every" in both


@pytest.mark.parametrize("encoder", ["cnn", "bag", "transformer"])
def test_what_reads_without_cells_is_named(tmp_path: Path, encoder: str) -> None:
    train = table(tmp_path / "labels.tsv", small_pairs.WORDS)
    assert encoder in words(unrolled(prepared("classification", train, f"model.encoder={encoder}")))
    pairs = words(unrolled(prepared("seq2seq", train, f"model.encoder={encoder}", "model.start=zeros")))
    assert encoder in pairs
    assert "first state" not in pairs
    (tmp_path / "a.txt").write_text("one two three\n" * 20, "utf-8")
    text = prepared("language_model", str(tmp_path / "a.txt"), "model.decoder=transformer")
    assert "transformer" in words(unrolled(text))


def test_what_the_next_step_is_stands_above_a_language_model(tasks: dict[str, AnyTask]) -> None:
    seen = words(unrolled(tasks["language_model"]))
    assert {"x₁", "x₂", "x₃", "x₄", "xₜ", "xₜ₊₁"} <= {*seen}


def test_the_command_writes_a_picture_and_refuses_other_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = table(tmp_path / "pairs.tsv", small_pairs.WORDS)
    few = ["training.steps=1", "model.hidden=4", "model.engine=loop", "data.cache=false"]
    sets = [part for each in few for part in ("--set", each)]
    run = str(tmp_path / "run")
    assert cli.main(["train", "seq2seq", "--train", train, "--out", run, "--quiet", *sets]) == 0
    assert cli.main(["info", run, "--draw", str(tmp_path / "a.svg")]) == 0
    assert "first state" in (tmp_path / "a.svg").read_text("utf-8")
    assert cli.main(["info", run, "--draw", str(tmp_path / "a.png")]) == 0
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"
    capsys.readouterr()
    assert cli.main(["info", run, "--draw", str(tmp_path / "a.pdf")]) == 2
    assert "the file must end in .svg or .png" in capsys.readouterr().err
