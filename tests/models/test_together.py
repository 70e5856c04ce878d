"""Several runs that answer as one, against enumeration and plain sums; and which runs cannot."""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra import generate
from recurra.cli import main
from recurra.errors import CheckpointError, ConfigError
from recurra.heads.lattice import Chain
from recurra.manifest import seal
from recurra.models import reviewing
from recurra.models.forecast import Review, combined_forecast, combined_review
from recurra.models.series_batch import ForecasterBatch
from recurra.models.tagged import TaggerOutput, TagScores, TagShares, best_together, combined
from recurra.padding import Padded
from recurra.runs import begin, setup
from recurra.runtime.hosted import Hosted
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.models.test_forecaster import made
from tests.tasks import test_classification, test_language_model

BRIEF = ("training.steps=2", "training.learning_rate=0.05")


def test_taggers_with_a_softmax_have_the_mean_probability() -> None:
    p = np.array([[[0.6, 0.4], [0.1, 0.9]], [[0.3, 0.7], [0.3, 0.7]]])
    best, mean, log_p = best_together([TagScores(np.log(each), None) for each in p])
    np.testing.assert_allclose(mean, [[0.45, 0.55], [0.2, 0.8]])
    assert best.tolist() == [1, 1]
    assert log_p == pytest.approx(math.log(0.55 * 0.8))


@settings(max_examples=15)
@given(steps=st.integers(0, 4), members=st.integers(1, 3), seed=st.integers(0, 99))
def test_taggers_with_chains_find_the_path_of_the_best_mean_score(steps: int, members: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    column = []
    for number in range(members):
        A, start, end = draw.normal(size=(3, 3)), draw.normal(size=3), draw.normal(size=3)
        A[0, 2] = -np.inf  # forbidden by all
        start[2] = -np.inf if number == 0 else start[2]  # forbidden by one is forbidden
        column.append(TagScores(draw.normal(size=(steps, 3)), Chain(A, start, end)))
    column.append(TagScores(np.log(draw.dirichlet([1, 1, 1], size=steps)).reshape(steps, 3), None))

    def score(path: tuple[int, ...]) -> float:
        found = [rated.each[range(steps), path].sum() for rated in column]
        for rated in column[:-1]:
            assert rated.chain is not None
            edges = sum(rated.chain.A[a, b] for a, b in itertools.pairwise(path))
            found.append(rated.chain.start[path[0]] + edges + rated.chain.end[path[-1]])
        return float(sum(found) / len(column))

    best, p, log_p = best_together(column)
    if steps == 0:
        assert (len(best), len(p), log_p) == (0, 0, 0.0)
        return
    scores = {path: score(path) for path in itertools.product(range(3), repeat=steps)}
    total = math.log(sum(math.exp(each) for each in scores.values()))
    assert tuple(best.tolist()) == max(scores, key=scores.__getitem__)
    assert log_p == pytest.approx(max(scores.values()) - total)
    for step, tag in itertools.product(range(steps), range(3)):
        share = sum(math.exp(each - total) for path, each in scores.items() if path[step] == tag)
        assert p[step, tag] == pytest.approx(share, abs=1e-12)


def test_numbers_and_labels_of_taggers_are_means() -> None:
    shares = [TagShares((), np.array(p)) for p in ([0.9, 0.1], [0.2, 0.8])]
    outputs = [
        TaggerOutput((), -1.0, np.array([[number]]), 0, None, None, share)
        for number, share in zip((1.0, 4.0), shares, strict=True)
    ]
    found = combined(outputs)
    assert found.label == 0
    assert found.label_probability == pytest.approx(0.55)
    assert found.values is not None
    assert found.values.tolist() == [[2.5]]


@pytest.mark.parametrize("output", ["gaussian", "squared_error", "bernoulli"])
def test_forecasters_have_the_mean_density_and_the_mean_forecast(output: str) -> None:
    models = [made(output), made(output)]
    torch.nn.init.normal_(models[1].density.readout.weight)  # type: ignore[union-attr,arg-type]
    coins = output == "bernoulli"
    values = torch.randint(2, (1, 6, 2)).double() if coins else torch.randn(1, 6, 2, dtype=torch.float64)
    known = torch.ones_like(values, dtype=torch.bool)
    known[0, 3, 1] = False
    batch = ForecasterBatch(Padded.full(values), known)
    origins = [np.array([2, 4])]
    reviews: list[Review] = [
        reviewing.review(m, batch, origins, horizon=2, quantiles=output == "gaussian")[0] for m in models
    ]
    found = combined_review(reviews, values[0].numpy(), known[0].numpy(), has_density=output != "squared_error")
    mean = np.mean([review.next for review in reviews], axis=0)
    np.testing.assert_allclose(found.next, mean)
    np.testing.assert_allclose(found.ahead, np.mean([review.ahead for review in reviews], axis=0))
    for step in range(1, 6):
        is_known, x = known[0, step].numpy(), values[0, step].numpy()
        if output == "squared_error":
            expected = np.square(x - mean[step])[is_known].sum()
        else:
            expected = -math.log(np.mean([math.exp(-review.losses[step]) for review in reviews]))
        assert found.losses[step] == pytest.approx(expected)
    assert found.losses[0] == 0.0
    if output == "gaussian":
        assert found.bounds is not None
        assert found.inside is not None
        low, high = found.bounds
        np.testing.assert_allclose(low, np.mean([review.bounds[0] for review in reviews], axis=0))  # type: ignore[index]
        is_between = (low <= values[0].numpy()) & (values[0].numpy() <= high)
        assert found.inside[1:].tolist() == is_between[1:].tolist()
        assert not found.inside[0].any()
    paths = 0 if output == "squared_error" else 4
    each = [model.predict(batch, horizon=3, paths=paths, seed=1)[0] for model in models]
    both = combined_forecast(each, coins=coins)
    np.testing.assert_allclose(both.means, np.mean([one.means for one in each], axis=0))
    if coins:
        assert both.values.tolist() == (both.means > 0.5).astype(float).tolist()
    if both.paths is not None:
        quantiles = [np.quantile(one.paths, (0.05, 0.5, 0.95), axis=0) for one in each]  # type: ignore[arg-type]
        np.testing.assert_allclose(np.quantile(both.paths, (0.05, 0.5, 0.95), axis=0), np.mean(quantiles, axis=0))


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that reads words, and one that counts n-grams."""
    folder = tmp_path_factory.mktemp("classifiers")
    for name, options in {"words": (), "bag": ("model.encoder=bag",)}.items():
        file, overrides = test_classification.texts(folder), test_classification.small(*options)
        this = setup("classification", given={"train": file}, overrides=[*overrides, *BRIEF])
        begin(this, folder / name, Silent())
    return folder


def test_classifiers_that_read_a_text_differently_have_the_mean_probability(classifiers: Path) -> None:
    both = load(f"{classifiers / 'words'},{classifiers / 'bag'}")
    alone = [load(classifiers / name) for name in ("words", "bag")]
    asked = [text for text, _ in test_classification.TEXTS]
    each = [[answer.detail["probabilities"] for answer in model.predict(asked, detail=True)] for model in alone]
    for answer, one, other in zip(both.predict(asked, detail=True), *each, strict=True):
        found = answer.detail["probabilities"]
        assert found == pytest.approx({name: (one[name] + other[name]) / 2 for name in found}, abs=1e-5)
        assert answer.output == max(found, key=found.__getitem__)
    assert both.evaluate(classifiers / "texts.tsv").values["count"] == len(asked)
    fewer = both.with_settings({"decoding.alternatives": 1})
    assert len(fewer.predict(asked[:1], detail=True)[0].detail["probabilities"]) == 2


@pytest.fixture(scope="module")
def language_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two that read forward, and one that reads backward."""
    folder = tmp_path_factory.mktemp("language_models")
    file = test_language_model.write(folder / "a.txt", test_language_model.TEXT)
    runs = {"one": (), "two": ("training.seed=2",), "back": ("model.direction=backward",)}
    for name, own in runs.items():
        test_language_model.trained(folder, file, *BRIEF, *own, run=name)
    return folder


def test_language_models_of_one_direction_mix_and_of_both_add_their_scores(language_models: Path) -> None:
    tmp_path = language_models
    alone: dict[str, Trained] = {name: load(tmp_path / name) for name in ("one", "two", "back")}
    line, text = "the cat sat", tmp_path / "a.txt"
    logs = {
        name: np.array(model.predict([line], detail=True)[0].detail["log_probabilities"])
        for name, model in alone.items()
    }
    mixed = np.log((np.exp(logs["one"]) + np.exp(logs["two"])) / 2)
    [forward] = load([tmp_path / "one", tmp_path / "two"]).predict([line], detail=True)
    np.testing.assert_allclose(forward.detail["log_probabilities"], mixed, atol=2e-6)
    assert forward.detail["perplexity"] == pytest.approx(math.exp(-mixed.mean()), rel=1e-5)
    [three] = load([tmp_path / name for name in ("one", "two", "back")]).predict([line], detail=True)
    assert three.score == pytest.approx(float((mixed + logs["back"]).sum()), abs=1e-4)
    assert three.detail["readings"] == 2
    ways = load([tmp_path / "one", tmp_path / "back"])
    one, back, both = (model.evaluate(text).values for model in (alone["one"], alone["back"], ways))
    assert both["perplexity"] == pytest.approx(math.sqrt(one["perplexity"] * back["perplexity"]))
    assert both["count"] == one["count"]


@pytest.mark.parametrize("manner", [{"manner": "windowed", "stride": 3}, {"manner": "carried", "streams": 2}])
def test_a_text_that_is_read_as_a_whole_is_mixed_token_by_token(language_models: Path, manner: Any) -> None:
    tmp_path, how = language_models, {"evaluation": {"window": 6, **manner}}
    both = load([tmp_path / "one", tmp_path / "two"]).with_settings(how)
    found = both.evaluate(tmp_path / "a.txt").values
    logs = []
    for name in ("one", "two"):
        model = load(tmp_path / name).with_settings(how)
        [output] = model.to_score([tmp_path / "a.txt"])[1]
        logs.append(output.log_probabilities)
        assert -output.log_probabilities.sum() == pytest.approx(output.nats)
        assert len(output.log_probabilities) == output.predicted
    assert found["nll"] == pytest.approx(-np.log(np.exp(logs).mean(0)).mean())


def test_language_models_write_together_where_they_read_the_same_way(language_models: Path) -> None:
    tmp_path = language_models
    both = load([tmp_path / "one", tmp_path / "two"])
    [text] = generate(both, "the", length=4, temperature=0)
    [scored] = both.predict(["the" + text.text], detail=True)
    assert text.log_probability == pytest.approx(sum(scored.detail["log_probabilities"][3:7]), abs=1e-4)
    prefix = both.predict(["the" + text.text[:1]], detail=True)[0].detail["log_probabilities"][3]
    for letter in "eat s":  # none is more probable than the one that was taken
        assert both.predict(["the" + letter], detail=True)[0].detail["log_probabilities"][3] <= prefix + 1e-6
    same = load([tmp_path / "one", tmp_path / "one"])
    [twice], [once] = (generate(model, "the", length=5, seed=4) for model in (same, load(tmp_path / "one")))
    assert twice.text == once.text
    with pytest.raises(ConfigError, match="read in opposite directions, so they can score a text together, but not wr"):
        generate(load([tmp_path / "one", tmp_path / "back"]), "the")


def test_what_is_seen_of_several_runs_is_their_answer_and_each_network(
    language_models: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folders = [str(language_models / name) for name in ("one", "back")]
    both = ",".join(folders)
    assert main(["explain", both, "the cat", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["views"].keys() == {"probabilities", "saliency", "gates"}
    assert found["missing"] == {}
    assert "the mean of both directions" in json.dumps(found["views"]["probabilities"])
    for name in ("saliency", "gates"):
        each = found["views"][name]["views"]
        assert [view["title"] for view in each] == folders
        for view, folder in zip(each, folders, strict=True):
            assert main(["explain", folder, "the cat", "--show", name, "--json"]) == 0
            alone = json.loads(capsys.readouterr().out)["views"][name]
            caption = ": ".join(filter(None, [folder, alone["caption"]]))
            assert view == {**alone, "title": folder, "caption": caption}
    assert main(["explain", both, "the cat", "--show", "gates", "--out", str(tmp_path / "gates.svg")]) == 0
    assert all(f"{folder}: lstm, layer 1 of 1" in said for said in [capsys.readouterr().out] for folder in folders)


def test_a_client_is_told_the_names_of_runs_and_not_where_they_lie(classifiers: Path) -> None:
    both = Hosted("both", f"{classifiers / 'words'},{classifiers / 'bag'}")
    found = both.explain("play jazz", {}, show=["gates", "saliency"])
    assert [view["title"] for view in found["views"]["gates"]["views"]] == ["words"]
    assert "bag has none: the run bag has no recurrent encoder" in found["views"]["gates"]["about"]
    assert str(classifiers) not in json.dumps(found)


def test_gradients_and_drawings_of_several_runs_are_those_of_each(
    language_models: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folders = [str(language_models / name) for name in ("one", "back")]
    both, alone = ",".join(folders), list[Any]()
    for folder in folders:
        assert main(["gradients", folder, "the cat", "--json"]) == 0
        alone.append(json.loads(capsys.readouterr().out))
    assert main(["gradients", both, "the cat", "--json", "--out", str(tmp_path / "flow.html")]) == 0
    assert json.loads(capsys.readouterr().out) == alone
    page = (tmp_path / "flow.html").read_text("utf-8")
    assert all(f"<h1>{folder}</h1>" in page for folder in folders)
    assert main(["gradients", both, "the cat", "--out", str(tmp_path / "flow.svg")]) == 0
    assert all(f"{folder}: 1 example" in said for said in [capsys.readouterr().out] for folder in folders)
    picture = (tmp_path / "flow.svg").read_text("utf-8")
    assert all(f"{folder}: " in picture for folder in folders)
    drawn, graphs = str(tmp_path / "drawn.svg"), str(tmp_path / "graphs.svg")
    for named in (*folders, both):
        assert main(["info", named, "--draw", drawn, "--graph", graphs]) == 0
        for path in (drawn, graphs):
            texts = re.findall(r"<text[^>]*>([^<]*)<", Path(path).read_text("utf-8"))
            assert [folder for folder in folders if folder in texts] == (folders if named == both else [])
    assert main(["info", both, "--draw", str(tmp_path / "drawn.pdf")]) == 2
    assert "drawn.pdf: the file must end in .svg or .png." in capsys.readouterr().err


def test_a_run_of_several_that_has_no_such_view_is_named(classifiers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, bag = (str(classifiers / name) for name in ("words", "bag"))
    assert main(["explain", f"{words},{bag}", "play jazz", "--show", "gates", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["views"]["gates"]
    assert [view["title"] for view in found["views"]] == [words]
    assert f"{bag} has none: the run {bag} has no recurrent encoder" in found["about"]
    assert main(["explain", f"{bag},{bag}", "play jazz", "--show", "gates"]) == 2
    assert f"{bag}: the run {bag} has no recurrent encoder" in capsys.readouterr().err


def test_runs_that_answer_in_other_units_cannot_be_combined(classifiers: Path, tmp_path: Path) -> None:
    shutil.copytree(classifiers / "words", tmp_path / "other")
    labels = tmp_path / "other" / "labels.json"
    labels.write_text(labels.read_text("utf-8").replace("music", "noise"), "utf-8")
    seal(tmp_path / "other")
    with pytest.raises(CheckpointError, match=r"words and .*other do not answer in the same classes, tokens or units:"):
        load([classifiers / "words", tmp_path / "other"])
    both = load([classifiers / "words", classifiers / "bag"])
    with pytest.raises(CheckpointError, match="an ensemble of runs cannot be saved as one run"):
        both.save(tmp_path / "saved")
