"""Gates over time are the cell's own values, step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recurra.analysis.gates import Gates
from recurra.cells.cell import fields
from recurra.errors import ConfigError, DataError
from recurra.runs import begin, setup
from recurra.training.explaining import example_of
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from recurra.views.kinds import view_of
from tests.analysis import small_runs
from tests.analysis.asking import gates_of


@torch.no_grad()
def by_hand(cell: Any, x: torch.Tensor, names: tuple[str, ...]) -> dict[str, np.ndarray[Any, Any]]:
    """The parts of each step, from the cell alone: x (T, I) to (units, T)."""
    state, fixed, found = cell.start(1, x), cell.fixed(1, x), []
    for each in x.split(1):
        parts = cell.parts(cell.project(each, fixed), state, fixed)
        state = cell.State(*(getattr(parts, name) for name in fields(cell.State)))
        found.append(parts)
    return {name: torch.cat([getattr(part, name) for part in found]).double().numpy().T for name in names}


def vectors(model: Trained, text: str) -> torch.Tensor:
    """The word vectors of a text, looked up in the table."""
    task, network = model.task, model.model
    [row] = [task.encode(example_of(task, text))]
    names = {"tagging": "read_words", "classification": "readers.0", "language_model": "", "seq2seq": ""}
    table: Any = network.get_submodule(f"{names[task.name]}.embedding".lstrip("."))
    ids = row["source"] if "source" in row else row["words"] if "words" in row else task.batch([row]).inputs.values[0]
    return table.weight[torch.as_tensor(np.asarray(ids)).long()].detach()


def agree(found: Gates, wanted: dict[str, np.ndarray[Any, Any]]) -> bool:
    assert found.values.keys() == wanted.keys()
    return all(np.allclose(found.values[name], wanted[name], atol=1e-6) for name in wanted)


@pytest.mark.parametrize(
    ("model", "text", "stack", "names"),
    [
        (lambda: small_runs.tagger(), "the <b> zebra", "recurrent", ("h", "c", "i", "f", "candidate", "o")),
        (
            lambda: small_runs.tagger(
                "model.cell=tests.own_cells:Leaky", "model.hidden=4", "model.bidirectional=false"
            ),
            "the cat",
            "recurrent",
            None,
        ),
        (
            lambda: small_runs.classifier("model.encoder=rnn", "model.characters.cell=none", "model.cell=gru"),
            "a good film",
            "encoders.0.recurrent",
            None,
        ),
        (lambda: small_runs.language_model("model.cell=gru"), "one three", "recurrent", None),
        (lambda: small_runs.writer(), "cat", "encoder.recurrent", None),
    ],
)
def test_gates_are_those_of_the_cell_step_by_step(model: Any, text: str, stack: str, names: Any) -> None:
    trained = model()
    found = gates_of(trained, example_of(trained.task, text), layer=1)
    [cell, *_] = trained.model.get_submodule(stack).cells[0]
    x = vectors(trained, text)
    assert found.title.endswith(", forward")
    assert len(found.tokens) == len(x)
    assert agree(found, by_hand(cell, x, tuple(found.values)))
    assert names is None or tuple(found.values) == names


@pytest.mark.parametrize(
    ("name", "content", "steps"),
    [
        ("a.csv", "level\n" + "3.5\n1\n2\n" * 4, "1234"),
        ("a.jsonl", '{"frames": [[0], [1], [1], [0]]}\n' * 2, "01234"),
    ],
)
def test_gates_of_a_series_begin_with_what_is_read_first(tmp_path: Path, name: str, content: str, steps: str) -> None:
    (tmp_path / name).write_text(content)
    few = [each for each in small_runs.FEW if "embedding" not in each]
    this = setup("forecasting", given={"train": str(tmp_path / name)}, overrides=few)
    begin(this, tmp_path / "run", Silent())
    trained = load(tmp_path / "run")
    [example] = trained.task.questions(None, ["[1, 0, 0, 1]"])
    found = gates_of(trained, example)
    network: Any = trained.model
    read = network.questions(trained.task.batch([trained.task.encode(example)]).values)
    assert list(found.tokens) == list(steps)
    assert np.allclose(found.values["h"], network.read(read)[0].values[0].detach().double().numpy().T, atol=1e-6)


def test_the_other_direction_begins_at_the_end_and_a_second_layer_reads_the_first() -> None:
    model = small_runs.tagger("model.layers=2", "model.bidirectional=true")
    example = example_of(model.task, "the cat sleeps")
    stack: Any = model.model.recurrent
    x = vectors(model, "the cat sleeps")
    first = [gates_of(model, example, layer=1, direction=way) for way in ("forward", "backward")]
    wanted = by_hand(stack.cells[0][1], x.flip(0), tuple(first[1].values))
    assert agree(first[1], {name: values[:, ::-1] for name, values in wanted.items()})
    below = torch.from_numpy(np.concatenate([each.values["h"] for each in first]).T).float()
    second = gates_of(model, example)
    assert second.title == "lstm, layer 2 of 2, forward"
    assert agree(second, by_hand(stack.cells[1][0], below, tuple(second.values)))


def test_a_layer_of_a_pyramid_has_half_the_steps() -> None:
    model = small_runs.classifier("model.encoder=pyramid", "model.layers=2", "model.characters.cell=none")
    found = gates_of(model, example_of(model.task, "a so good film bad"))
    assert list(found.tokens) == ["a so", "good film", "bad"]
    assert found.values["h"].shape == (5, 3)


@pytest.mark.parametrize(
    ("model", "asked", "said"),
    [
        (lambda: small_runs.writer(), {"layer": 2}, "--layer 2: this network has one layer, counted from 1."),
        (
            lambda: small_runs.tagger("model.layers=2", "model.bidirectional=true"),
            {"layer": 0},
            "--layer 0: this network has 2 layers",
        ),
        (lambda: small_runs.language_model(), {"direction": "backward"}, "this network reads forward only"),
        (
            lambda: small_runs.writer("model.encoder=cnn", "model.start=mean"),
            {},
            "has no recurrent encoder",
        ),
    ],
)
def test_what_has_no_gates_is_said(model: Any, asked: dict[str, Any], said: str) -> None:
    trained = model()
    with pytest.raises(ConfigError, match=said):
        gates_of(trained, example_of(trained.task, "cat"), **asked)


def test_values_that_do_not_fit_and_nothing_at_all_are_refused() -> None:
    with pytest.raises(DataError, match=r"'z' has values of shape \(2, 3\), but there are 2 steps"):
        Gates("ab", {"z": np.zeros((2, 3))}, "")
    with pytest.raises(DataError, match="the input is empty, so there are no gates to show"):
        Gates([], {"z": np.zeros((2, 0))}, "")


def drawn() -> Gates:
    values = np.random.default_rng(1).normal(size=(40, 3))
    return Gates(["<img onerror=x>", "שלום", "日本"], {"h": np.tanh(values), "c": 3 * values}, "a & b")


def test_tokens_are_escaped_and_every_step_says_its_numbers() -> None:
    page = drawn().view().page()
    assert "<img" not in page
    assert page.count("<title>h at ") == page.count("<title>c at ") == 3
    assert "units that change most are shown;" in page
    assert "a &amp; b" in page


def test_means_and_ranges_are_of_all_units() -> None:
    found = drawn()
    view = found.view()
    lines = view.text().splitlines()
    assert lines[0] == "a & b: means over units"
    assert float(lines[2].split()[-1]) == pytest.approx(found.values["c"][:, 0].mean(), abs=1e-4)
    for name, values in found.values.items():
        shown = view.values[name]
        assert np.allclose(shown.means, values.mean(0), atol=1e-5)
        assert np.allclose(np.array([shown.low, shown.high]), [values.min(0), values.max(0)], atol=1e-5)
        assert np.allclose(shown.rows, values[list(shown.units)], atol=1e-4)
        assert len(shown.units) == 24


def test_values_that_are_not_rare_set_the_strongest_colour() -> None:
    small, large = (
        Gates("ab", {"h": values}, "").view().values["h"].limit for values in (np.eye(2) / 5, 3 * np.ones((4, 2)))
    )
    assert (small, large) == (1.0, 3.0)


def test_a_mean_is_rounded_once() -> None:
    mean = 0.641_549_6  # both are 0.64155 with five digits, which cannot be rounded to four
    above = 0.641_550_4
    view = Gates(["a", "b"], {"z": np.array([[mean, above]])}, "gru").view()
    assert np.asarray(view.values["z"].means).tolist() == [mean, above]
    assert [line.split() for line in view.text().splitlines()[2:]] == [["a", "0.6415"], ["b", "0.6416"]]
    again = view_of(json.loads(json.dumps(view.json())))
    assert again.text() == view.text()


def test_gates_of_words_that_a_tagger_looks_up_in_a_table_are_shown() -> None:
    spelt = small_runs.tagger("model.characters.cell=lstm", "model.engine=auto")
    words = example_of(spelt.task, "the cat")
    stack: Any = spelt.model.recurrent
    with torch.no_grad():
        assert stack.looks_up(), "this tagger reads from a table where nobody watches"
    found = gates_of(spelt, words)
    assert list(found.tokens) == ["the", "cat"]
    assert set(found.values) >= {"h", "c", "i", "f", "o"}
