"""Explanations as numbers: what `recurra explain --json` prints and `recurra serve` answers with."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from recurra.analysis.alignment import alignment
from recurra.analysis.gates import Gates
from recurra.analysis.picture_attention import picture_attention
from recurra.analysis.probabilities import Probabilities
from recurra.analysis.saliency import Saliency, view
from recurra.cli import main
from recurra.training.explaining import explain
from recurra.training.trained import Trained
from tests.analysis.asking import gates_of
from tests.analysis.small_runs import classifier, language_model, writer


def printed(capsys: pytest.CaptureFixture[str], model: Trained, given: str, *options: str) -> Any:
    assert main(["explain", str(model.folder), given, "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_one_object_holds_all_there_is_to_see(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, writer(), "cat")
    [answer] = writer().predict(["cat"])
    assert (found["input"], found["output"]) == ("cat", answer.output)
    assert list(found["views"]) == list(writer().task.viewers())
    assert found["missing"] == {}


def test_what_there_is_not_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, classifier("model.encoder=cnn"), "a good film")
    assert list(found["views"]) == ["saliency"]
    assert list(found["missing"]) == ["gates", "attention"]
    assert all(why.endswith(".") for why in found["missing"].values())


def test_one_view_alone_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, writer(), "cat", "--show", "tree")
    assert (list(found["views"]), found["missing"]) == (["tree"], {})


def test_numbers_of_attention_are_those_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, writer(), "cat", "--show", "attention")["views"]["attention"]
    [answer] = writer().predict(["cat"], detail=True)
    assert (found["kind"], found["title"]) == ("heat_map", "Where it looked")
    assert found["source"] == found["columns"] == answer.detail["source_tokens"]
    assert found["target"] == found["rows"]
    np.testing.assert_allclose(found["weights"], answer.detail["alignment"], atol=1e-5)
    np.testing.assert_allclose(np.sum(found["weights"], 1), 1, atol=1e-4)


def test_probabilities_of_tokens_multiply_to_that_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    for best in (1, 2):
        found = printed(capsys, writer(), "cat", "--show", "probabilities", "--best", str(best))
        numbers = found["views"]["probabilities"]
        [answer] = writer().predict(["cat"], detail=True, best=2)
        every = [{"output": answer.output, **answer.detail}, *answer.alternatives]
        assert found["output"] == every[best - 1]["output"]
        assert sum(numbers["log_probabilities"]) == pytest.approx(every[best - 1]["log_probability"], abs=1e-3)
        np.testing.assert_allclose(numbers["bits"], -np.array(numbers["log_probabilities"]) / np.log(2), atol=1e-4)


def test_integrated_gradients_add_up_to_what_the_input_changed(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, classifier(), "a good film", "--show", "saliency")["views"]["saliency"]
    assert found["tokens"] == ["a", "good", "film"]
    whole = found["methods"]["integrated"]
    np.testing.assert_allclose(
        np.sum(whole["values"], 1), np.subtract(whole["whole"], whole["nothing"]), rtol=0.01, atol=1e-4
    )


def test_the_way_through_the_tree_is_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    explained = printed(capsys, writer(), "cat", "--show", "tree")
    found = explained["views"]["tree"]
    end = found["answers"][0]
    step, place, way = end["step"], end["place"], list[str]()
    while place is not None:
        [node] = [each for each in found["steps"][step]["nodes"] if each["place"] == place]
        assert node["answer"] == 1
        way.insert(0, node["token"])
        step, place = step - 1, node["parent"]
    [answer] = writer().predict(["cat"], detail=True)
    assert way[: len(answer.detail["tokens"])] == answer.detail["tokens"]
    for each in found["steps"]:
        assert each["kept"] <= each["weighed"]
        assert sum(node["kept"] for node in each["nodes"]) <= each["kept"]


def test_gates_are_those_of_the_layer_and_direction_that_were_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, writer(), "cat", "--show", "gates", "--direction", "backward")["views"]["gates"]
    expected = gates_of(writer(), explain(writer(), "cat").asked.example, direction="backward")
    assert (found["direction"], found["layer"], found["tokens"]) == ("backward", 1, list(expected.tokens))
    for name, values in expected.values.items():
        shown = found["values"][name]
        np.testing.assert_allclose(shown["means"], values.mean(0), atol=1e-4)
        np.testing.assert_allclose(shown["rows"], values[shown["units"]], atol=1e-3)


def test_a_language_model_says_how_much_each_letter_surprised_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, language_model(), "one two", "--show", "probabilities")["views"]["probabilities"]
    [answer] = language_model().predict(["one two"], detail=True)
    assert found["tokens"] == answer.detail["tokens"]
    np.testing.assert_allclose(found["log_probabilities"], answer.detail["log_probabilities"], atol=1e-4)


KEPT = {
    "alignment": ("source", "target", "weights"),
    "places": ("tokens", "weights", "down", "across", "picture"),
    "probabilities": ("tokens", "log_probabilities", "bits"),
    "saliency": ("tokens", "answers", "unit", "left_out", "methods"),
    "gates": ("tokens", "layer", "layers", "direction", "directions", "values"),
}


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("alignment", alignment(["א", "<b>"], ["x"], [[0.25, 0.75]]).json()),
        (
            "places",
            picture_attention(np.zeros((4, 6), np.uint8), ["x"], [[0.1, 0.0, 0.3, 0.0, 0.0, 0.6]], 3).json(),
        ),
        ("probabilities", Probabilities(["a", "b"], np.log([0.5, 1e-300])).view().json()),
        ("saliency", view(Saliency(["a"], ["x"], [[1.5]], [2.0], [0.5], "gradient", "log odds")).json()),
        ("gates", Gates(["a"], {"z": np.array([[0.5], [0.25]], np.float32)}, "gru").view().json()),
    ],
)
def test_numbers_are_plain_json_with_the_keys_that_programs_know(name: str, numbers: dict[str, Any]) -> None:
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert {*KEPT[name], "kind", "title"} <= numbers.keys()


def test_a_picture_is_there_as_the_model_saw_it_with_the_pixels_of_each_place() -> None:
    found = picture_attention(np.zeros((4, 6), np.uint8), ["x"], [[0.1, 0.0, 0.3, 0.0, 0.0, 0.6]], 3).json()
    assert found["picture"].startswith("data:image/png;base64,")
    for edges, places, pixels in ((found["down"], 2, 4), (found["across"], 3, 6)):
        assert (edges[0], edges[-1], len(edges)) == (0, pixels, places + 1)
        assert edges == sorted(edges)
    assert np.shape(found["weights"]) == (1, 2, 3)


def test_what_each_query_weighed_is_there_by_token(capsys: pytest.CaptureFixture[str]) -> None:
    model = classifier("model.encoder=rnn", "model.summary=attention", "model.characters.cell=none")
    found = printed(capsys, model, "a good film", "--show", "attention")["views"]["attention"]
    [answer] = model.predict(["a good film"], detail=True)
    assert (found["kind"], found["tokens"]) == ("tokens", ["a", "good", "film"])
    np.testing.assert_allclose(found["weights"], answer.detail["attention"], atol=1e-5)
    assert [row["name"] for row in found["rows"]] == ["all on average", *(f"query {n}" for n in (1, 2, 3, 4))]
