"""The gradient laboratory: verdicts that can be known beforehand, advice, and the command."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from recurra import Padded, Recurrent
from recurra.analysis.advice import Measured, advice, in_words
from recurra.analysis.gradients import Saturation
from recurra.analysis.laboratory import Laboratory, Layer, look
from recurra.cells import GRU, LSTM, AnyCell, Cell, Elman
from recurra.cli import main
from recurra.errors import DataError
from recurra.named import catalogue
from recurra.reports import gradient_page
from recurra.runs import begin, setup
from recurra.training.progress import Silent

UNITS = 24


def layer_of(matrix: Tensor, x: Tensor) -> Layer:
    rnn = Recurrent("elman", x.shape[2], UNITS)
    with torch.no_grad():
        rnn.cells[0][0].from_state.copy_(matrix)  # type: ignore[index]
    [layer] = look(rnn, Padded.full(x)).layers
    return layer


@pytest.mark.parametrize(("scale", "verdict"), [(0.5, "vanishes"), (1.0, "stable"), (2.0, "explodes")])
def test_orthogonal_matrices_make_small_changes_vanish_stay_or_explode(scale: float, verdict: str) -> None:
    torch.manual_seed(1)
    matrix = scale * torch.linalg.qr(torch.randn(UNITS, UNITS))[0]
    layer = layer_of(matrix, 0.02 * torch.rand(3, 30, 6) - 0.01)
    assert layer.verdict == verdict
    assert layer.matrices["U"] == pytest.approx(scale, rel=1e-5)
    assert verdict in layer.words


@pytest.mark.parametrize("seed", range(3))
def test_a_bound_that_allows_explosion_does_not_make_one(seed: int) -> None:
    torch.manual_seed(seed)
    matrix = torch.randn(UNITS, UNITS)
    matrix *= 2 / torch.linalg.matrix_norm(matrix, 2)
    layer = layer_of(matrix, torch.randn(4, 30, 6).sign())
    assert layer.verdict == "vanishes"
    assert layer.jacobian["bound"][-1] > 5 > 0 > layer.jacobian["largest"][-1]
    assert "necessary for an explosion, not sufficient" in " ".join(layer.advice)
    assert any("lstm or gru" in remark for remark in layer.advice)


@pytest.mark.parametrize("name", [*catalogue(Cell), "tests.own_cells:Matchbox"])
def test_every_cell_can_be_looked_at(name: str) -> None:
    torch.manual_seed(2)
    small = {"rows": 3, "width": 2} if name in ("ntm", "dnc") else {}  # their memories have thousands of numbers
    rnn = Recurrent({"name": name, **small}, 3, 4, bidirectional=True)
    found = look(rnn, Padded(torch.randn(2, 6, 3), torch.tensor([6, 4])), loss=lambda y: y.square().sum())
    assert len(found.layers) == 2
    for layer in found.layers:
        assert layer.verdict in ("vanishes", "stable", "explodes")
        assert layer.steps == len(layer.jacobian["largest"]) == len(layer.gradient["h"]) == 6
    json.dumps(found.json(), allow_nan=False)
    assert gradient_page.as_text(found).count("T − t") == 2
    assert gradient_page.view(found).svg().count("<path") > 10


def test_units_that_are_off_let_nothing_through() -> None:
    rnn = Recurrent({"name": "elman", "activation": "relu"}, 1, 3)
    with torch.no_grad():
        rnn.cells[0][0].from_input.bias.fill_(-9.0)  # type: ignore[index]
    found = look(rnn, Padded.full(torch.zeros(2, 8, 1)))
    assert found.layers[0].verdict == "vanishes"
    assert "it is 0" in found.layers[0].words
    assert found.json()["layers"][0]["slope"] is None
    gradient_page.view(found).svg()


def test_an_lstm_is_judged_by_the_state_that_carries() -> None:
    rnn = Recurrent({"name": "lstm", "forget_bias": 3.5}, 2, 4)
    with torch.no_grad():
        rnn.cells[0][0].from_state.zero_()  # type: ignore[index]  # h says nothing to the next step
    found = look(rnn, Padded.full(torch.randn(2, 30, 2) / 10))
    [layer] = found.layers
    assert layer.jacobian["largest"][5] == -math.inf
    assert math.exp(layer.jacobian["memory"][1]) == pytest.approx(0.97, abs=0.01)
    assert (layer.verdict, layer.state) == ("stable", "c")
    assert layer.words.startswith("∂c_T/∂c_t is stable")
    assert found.json()["layers"][0]["state"] == "c"


def test_what_is_measured_is_explained_in_a_sentence_each() -> None:
    x = Padded.full(torch.randn(1, 6, 2))
    said = gradient_page.as_text(look(Recurrent("lstm", 2, 3), x))
    page = gradient_page.as_page(look(Recurrent("lstm", 2, 3), x, title="runs/first"))
    assert page.partition("<body>")[2].count("runs/first") == 1
    for meaning in gradient_page.MEANINGS.values():
        assert said.count(meaning) == 1
    assert page.count("<h2>What the numbers mean</h2>") == 1
    assert "Π f is the product" in page
    assert "Π f" not in gradient_page.as_text(look(Recurrent("elman", 2, 3), x))  # it has no forget gate


def test_saturation_has_a_form_for_phones() -> None:
    page = gradient_page.as_page(look(Recurrent("lstm", 2, 3), Padded.full(torch.randn(1, 6, 2))))
    widths = [float(width) for width in re.findall(r'<div class="narrow"><svg[^>]* width="([\d.]+)"', page)]
    assert len(widths) == 2  # the curves, and the saturation of gates
    assert max(widths) <= 360


def test_a_state_that_is_no_number_is_refused() -> None:
    rnn = Recurrent({"name": "elman", "activation": "identity"}, 1, 2).double()
    with torch.no_grad():
        rnn.cells[0][0].from_state.mul_(1e200)  # type: ignore[index]
    with pytest.raises(DataError, match="layer 1: the states after step 3 are infinite or NaN"):
        look(rnn, Padded.full(torch.ones(1, 5, 1)))


def test_empty_rows_short_rows_and_many_rows_are_taken_as_they_are() -> None:
    x = Padded(torch.randn(20, 9, 2), torch.tensor([0, 1, 9, *[3] * 17]))
    [layer] = look(Recurrent("lstm", 2, 3), x, loss=lambda y: y.sum()).layers
    assert layer.steps == 9
    [alone] = look(Recurrent("lstm", 2, 3), Padded.full(torch.randn(1, 1, 2)), loss=lambda y: y.sum()).layers
    assert alone.verdict == "unknown"
    assert gradient_page.view(Laboratory("one", 1, None, [alone])).svg().endswith("</svg>\n")


def measured(cell: AnyCell, slope: float, **more: object) -> Measured:
    usual: dict[str, object] = {"reach": None, "matrices": {"U": 1.0}, "bound": None, "gates": [], "steps": 50}
    return Measured(cell, slope, **{**usual, **more})  # type: ignore[arg-type]


def test_advice_follows_from_what_was_measured() -> None:
    f, z = Saturation("f", "gate", 0.0, 0.1, 0.6), Saturation("z", "gate", 0.0, 0.0, 0.5)
    assert "forget_bias = 3.0" in advice(measured(LSTM(2, 3), -0.3, gates=[f]))[0]
    assert "update_bias = -2.0" in advice(measured(GRU(2, 3), -0.3, gates=[z]))[0]
    assert "update_bias = 2.0" in advice(measured(GRU(2, 3, update="keep"), -0.3, gates=[z]))[0]
    flat = Saturation("h", "tanh", 0.2, 0.3, 0.0)
    said = " ".join(advice(measured(Elman(2, 3), -0.7, bound=-0.7, matrices={"U": 0.5}, gates=[flat])))
    assert "50% of the units are saturated" in said
    assert "λ₁(U) is 0.50" in said
    assert "falls too" in said
    assert "training.clip = 1.0" in advice(measured(LSTM(2, 3), 0.3))[0]
    [clipped, matrix, cut] = advice(measured(LSTM(2, 3), 0.3, clip=5.0, matrices={"U_f": 3.0}, cut=100))
    assert "training.clip = 5" in clipped
    assert "λ₁(U_f) is 3.00" in matrix
    assert "reading.steps = 32 lets it grow less" in cut
    assert "reading.steps = 40 costs less" in advice(measured(LSTM(2, 3), -0.3, reach=20, cut=100))[-1]
    shut = [Saturation("i", "gate", 0.9, 0.0, 0.01), Saturation("o", "gate", 0.0, 0.9, 0.99)]
    assert [remark[:18] for remark in advice(measured(LSTM(2, 3), 0.0, gates=shut))] == [
        *("The gate i is shut", "The gate o is open")
    ]
    assert "too short" in in_words(measured(LSTM(2, 3), math.nan))
    assert "longer examples would show more" in advice(measured(LSTM(2, 3), 0.0, steps=5))[0]


# The command

TINY = ("model.hidden=6", "training.steps=2", "training.threads=1", "training.device=cpu", "data.cache=false")
PLAIN = ["model.characters.cell=none"]
TASKS = {
    "tagging": ("a.conll", "the\tDET\nold\tADJ\ncat\tNOUN\nsees\tVERB\n\na\tDET\ndog\tNOUN\n", PLAIN),
    "classification": ("a.tsv", "what is the price of it\tshop\nwhen does the bus leave\ttravel\n" * 2, PLAIN),
    "language_model": ("a.txt", "It is the east.\nO gentle night.\n" * 5, ["reading.steps=12"]),
    "forecasting": ("a.csv", "level\n" + "".join(f"{n % 5}\n" for n in range(30)), []),
    "seq2seq": ("a.tsv", "abcde\tx y\nbcdea\ty x z\n", ["model.embedding=4"]),
}


def begun(folder: Path, task: str) -> Path:
    name, text, own = TASKS[task]
    (folder / name).write_text(text)
    run = folder / task
    given = {"train": str(folder / name), "valid": str(folder / name)}
    begin(setup(task, given=given, overrides=[*TINY, *own]), run, Silent())
    return run


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["gradients", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("task", TASKS)
def test_runs_of_every_task_with_cells_are_looked_at(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = begun(tmp_path, task)
    found = json.loads(printed(capsys, str(run), "--json"))
    assert found["loss"] > 0
    for layer in found["layers"]:
        assert layer["steps"] >= 4
        assert layer["jacobian"]["largest"][0] == 1
        assert len(layer["weights"]["from_state" if "from_state" in layer["weights"] else "cell.from_state"]) > 3
    text = printed(capsys, str(run))
    assert text.startswith(f"{run}: ")
    assert "‖∂L/∂h_t‖" in text


def test_one_input_has_no_loss_and_a_config_no_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = begun(tmp_path, "tagging")
    text = printed(capsys, str(run), "the old cat sees a dog", "--steps", "4")
    assert "1 example, no loss" in text
    assert "‖∂L" not in text
    config = str(run / "config.toml")
    page = tmp_path / "found.html"
    text = printed(capsys, config, "--set", "model.cell=elman", "--out", str(page))
    assert "config.toml, untrained" in text
    assert "bound on the largest" in text
    assert "<script" not in page.read_text()
    assert main(["gradients", str(run), "--set", "model.cell=gru"]) == 2
    assert "the settings of a trained model cannot be changed" in capsys.readouterr().err
    for words, complaint in (
        ((str(run), "--steps", "1"), "--steps must be at least 2"),
        ((str(run), "--out", "a.pdf"), "must end in .html, .svg or .png"),
        ((str(tmp_path / "none"),), "there is no folder"),
        ((str(run), "gone.conll"), "gone.conll"),
    ):
        assert main(["gradients", *words]) == 2
        assert complaint in capsys.readouterr().err


def test_models_without_cells_are_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for override in ("model.encoder=bag", "model.encoder=cnn", "model.encoder=transformer"):
        name, text, own = TASKS["classification"]
        (tmp_path / name).write_text(text)
        config = tmp_path / "config.toml"
        config.write_text(f'task = "classification"\n[data]\ntrain = "{tmp_path / name}"\ncache = false\n')
        width = ["model.hidden=8"] if "transformer" in override else []
        sets = [word for each in [*own, override, *width] for word in ("--set", each)]
        assert main(["gradients", str(config), *sets]) == 2
        assert "has no recurrent cells" in capsys.readouterr().err


def test_cells_that_take_one_step_at_a_time_are_measured_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"features": [[0.1, 0.2], [0.3, 0.4]], "caption": "a cat"}, {"features": [[0.5, 0.6]], "caption": "a dog"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = tmp_path / "config.toml"
    config.write_text(f'task = "vec2seq"\n[data]\ntrain = "{tmp_path}/a.jsonl"\ncache = false\n[model]\nhidden = 4\n')
    assert "decoder.wiring.cells" in printed(capsys, str(config))
    assert "decoder.wiring.first, layer 1: lstm" in printed(capsys, str(config), "--set", "model.wiring=inside")


def test_an_input_without_steps_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = begun(tmp_path, "classification")
    assert main(["gradients", str(run), " "]) == 2
    assert "cannot be measured: its cells have read no step. Give a longer input" in capsys.readouterr().err


def test_what_reads_only_its_own_answers_is_measured_on_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "colours.tsv").write_text("red sky\t1\t0\nblue sea\t0\t1\n")
    given = {"train": str(tmp_path / "colours.tsv")}
    begin(setup("vec2seq", given=given, overrides=TINY), tmp_path / "run", Silent())
    assert "decoder" in printed(capsys, str(tmp_path / "run"))
    said = printed(capsys, str(tmp_path / "run"), "1 0")
    assert "no loss, because there are no targets" in said
    assert "decoder.wiring.cells, layer 1" in said
    (tmp_path / "empty.tsv").write_text("")
    assert main(["gradients", str(tmp_path / "run"), str(tmp_path / "empty.tsv")]) == 2


def test_pictures_are_drawn_both_ways(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = look(Recurrent("lstm", 2, 3), Padded.full(torch.randn(1, 6, 2)), loss=lambda y: y.sum(), title="<b>")
    for ending in gradient_page.ENDINGS:
        gradient_page.write([found], tmp_path / f"a{ending}")
        assert (tmp_path / f"a{ending}").stat().st_size > 1000
    page = (tmp_path / "a.html").read_text()
    assert "<b>" not in page
    assert "prefers-color-scheme:dark" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "no recurrent layer was found" in gradient_page.view(Laboratory("nothing", 0, None, [])).svg()
