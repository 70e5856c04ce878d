"""A model as a probabilistic graph: what is random, what is given, and what follows from what."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from recurra import cli
from recurra.reports.probabilistic_graph import RADIUS, picture
from recurra.views.scene import Circle, Label, Scene
from recurra.views.scene import Path as Line
from recurra.views.svg import as_svg
from tests.runtime.small_tasks import KINDS, AnyTask, of_every_kind, prepared
from tests.tasks import small_pairs
from tests.tasks.small_pairs import table

EDGE = 1.2 * RADIUS


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AnyTask]:
    return of_every_kind(tmp_path_factory.mktemp("graphs"))


def nodes(scene: Scene) -> dict[str, list[tuple[float, float]]]:
    """The places of all nodes by their names."""
    found: dict[str, list[tuple[float, float]]] = {}
    for shape in scene.shapes:
        if isinstance(shape, Label) and shape.anchor == "middle":
            found.setdefault(shape.text, []).append((shape.x, shape.y - 4.5))
    return found


def kinds(scene: Scene) -> dict[str, str]:
    """What each node says when it is pointed at, by its name."""
    shapes = (shape for shape in scene.shapes if isinstance(shape, Circle | Line) and shape.title)
    return dict(shape.title.split(": ", 1) for shape in shapes)


def edges(scene: Scene) -> set[tuple[str, str]]:
    """From which node to which an arrow leads, found by where its line begins and ends."""
    places = {(x, y): name for name, all_places in nodes(scene).items() for x, y in all_places}

    def nearest(x: float, y: float) -> str:
        return min(places.items(), key=lambda each: (each[0][0] - x) ** 2 + (each[0][1] - y) ** 2)[1]

    lines = [shape for shape in scene.shapes if isinstance(shape, Line) and not shape.title and len(shape.points) == 2]
    return {(nearest(*line.points[0]), nearest(*line.points[1])) for line in lines}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_model_is_a_graph_within_its_picture(tasks: dict[str, AnyTask], name: str) -> None:
    scene = picture(tasks[name])
    ElementTree.fromstring(as_svg(scene))
    assert {"random"} <= {*kinds(scene).values()}
    for shape in scene.shapes:
        if isinstance(shape, Circle):
            assert RADIUS <= shape.x + RADIUS <= scene.width
            assert 0 <= shape.y - RADIUS < scene.height


def test_tags_follow_from_states_that_see_all_words_and_a_crf_joins_them(tasks: dict[str, AnyTask]) -> None:
    scene = picture(tasks["tagging"])
    said = kinds(scene)
    assert (said["x₁"], said["y₁"]) == ("given", "random")
    assert said["→h₁"].endswith(", deterministic")
    found = edges(scene)
    assert {("x₁", "→h₁"), ("x₁", "←h₁"), ("→h₁", "→h₂"), ("←h₂", "←h₁"), ("h₁", "y₁"), ("y₁", "y₂")} <= found
    assert ("x₁", "y₁") not in found
    assert "p(y | x) ∝ ∏ₜ ψ(yₜ₋₁, yₜ, hₜ)" in [shape.text for shape in scene.shapes if isinstance(shape, Label)]


def test_a_forecast_is_random_and_read_in_its_turn(tasks: dict[str, AnyTask]) -> None:
    scene = picture(tasks["forecasting"])
    assert kinds(scene)["x₁"] == "random"
    assert {("x₁", "h₁"), ("h₁", "h₂"), ("h₁", "x₂"), ("hₜ", "xₜ₊₁")} <= edges(scene)


@pytest.mark.parametrize(
    ("options", "present", "absent"),
    [
        (["model.attention=none"], [("s₁", "y₁"), ("y₁", "s₂"), ("hₜ", "s₁")], [("h₁", "s₂")]),
        (["model.wiring=outside"], [("s₁", "c₁"), ("c₁", "y₁"), ("h₁", "c₂")], [("c₁", "s₁")]),
        (["model.wiring=feeding"], [("s₁", "c₁"), ("c₁", "y₁"), ("c₁", "s₂")], [("c₁", "s₁")]),
        (["model.decoder.kind=transformer"], [("y₁", "sₜ"), ("y₂", "s₃"), ("h₁", "c₁")], [("s₁", "s₂")]),
        (["model.wiring=inside"], [("s₁", "c₂"), ("c₂", "s₂"), ("c₂", "y₂")], [("s₂", "c₂")]),
    ],
    ids=["alone", "outside", "feeding", "transformer", "inside"],
)
def test_attention_stands_where_its_wiring_puts_it(
    options: list[str], present: list[tuple[str, str]], absent: list[tuple[str, str]], tmp_path: Path
) -> None:
    train = table(tmp_path / "pairs.tsv", small_pairs.WORDS)
    found = edges(picture(prepared("seq2seq", train, "model.bidirectional=false", *options)))
    assert {*present} <= found
    assert not {*absent} & found


def test_ctc_gives_an_alignment_of_which_the_answer_is_a_function(tmp_path: Path) -> None:
    train = table(tmp_path / "pairs.tsv", small_pairs.WORDS)
    scene = picture(prepared("seq2seq", train, "model.decoder.kind=ctc", "model.bidirectional=false"))
    assert {("h₁", "a₁"), ("a₁", "y"), ("aₜ", "y")} <= edges(scene)
    assert kinds(scene)["a₁"] == "random"
    assert kinds(scene)["y"].endswith("deterministic")


def test_the_command_draws_it_and_refuses_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small_pairs.untrained(tmp_path, small_pairs.words(tmp_path))
    assert cli.main(["info", f"{tmp_path}/run", "--graph", f"{tmp_path}/graph.svg"]) == 0
    assert "as a probabilistic graph" in (tmp_path / "graph.svg").read_text()
    assert cli.main(["info", f"{tmp_path}/run", "--graph", "graph.pdf"]) == 2
    assert "--graph graph.pdf: the file must end in .svg or .png." in capsys.readouterr().err
