"""Tasks of one file each, outside of the package: what they compute is right, and the rest has defaults."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import recurra
from recurra.errors import ConfigError, DataError
from recurra.extend import Asked, Data, Padded, Row, Vocabulary
from tests.outside import ctc, similarity
from tests.outside.ctc import CTC, BestPath
from tests.outside.similarity import Similarity


@pytest.fixture
def speech() -> CTC:
    settings = ctc.CTCSettings(data=Data(train=["a.jsonl", "b.jsonl"]), model=ctc.Model(hidden=3))
    return CTC(settings, Vocabulary(["a", "b"], specials=("<blank>",)), 2)


@pytest.fixture
def pairs() -> Similarity:
    settings = similarity.SimilaritySettings(model=similarity.Model(hidden=3, embedding=4))
    return Similarity(settings, Vocabulary(["cat", "dog", "sun"]), 2.0, 3.0)


def frames(*numbers: float) -> list[list[float]]:
    return [[number, -number] for number in numbers]


def meant(path: tuple[int, ...]) -> list[int]:
    return [number for number, _ in itertools.groupby(path) if number]


def test_the_loss_of_ctc_sums_over_all_paths(speech: CTC) -> None:
    model = speech.build().double()
    rows = [Row({"frames": frames(1, 2, -1, 0.5), "target": "a a"}, 1), Row({"frames": frames(2, 1), "target": "b"}, 2)]
    encoded = [{**speech.encode(row), "frames": speech.encode(row)["frames"].astype(np.float64)} for row in rows]
    expected = 0.0
    for row, target in zip(encoded, ([1, 1], [2]), strict=True):
        p = model(speech.batch([row]).frames)[0].exp().detach().numpy()
        paths = itertools.product(range(3), repeat=len(p))
        whole = sum(np.prod([p[t, k] for t, k in enumerate(path)]) for path in paths if meant(path) == target)
        expected -= float(np.log(whole))
    found = speech.loss(model, speech.batch(encoded))
    assert found.total.item() == pytest.approx(expected, rel=1e-9)
    assert found.labels == 3


@pytest.mark.parametrize("path", [*itertools.product(range(3), repeat=4)])
def test_a_path_means_what_is_left_without_repetitions_and_blanks(path: tuple[int, ...]) -> None:
    best = BestPath(list(path), np.zeros(4))
    assert [number for number, _ in best.symbols] == meant(path)
    assert sorted(frame for _, at in best.symbols for frame in at) == [t for t, number in enumerate(path) if number]


def test_a_target_that_no_path_can_mean_is_not_trained_with(speech: CTC) -> None:
    assert (
        speech.left_out(speech.encode(Row({"frames": frames(1, 2), "target": "a a"}, 1))) == "2 symbols need 3 frames"
    )
    assert speech.left_out(speech.encode(Row({"frames": frames(1, 2), "target": "a b"}, 1))) is None


def test_the_symbol_error_rate_is_errors_over_symbols(speech: CTC) -> None:
    rows = [Row({"target": "a b a"}, 1), Row({"target": "b"}, 2)]
    scores = speech.score(rows, [BestPath([1, 0, 1, 2], np.zeros(4)), BestPath([2, 2], np.zeros(2))])
    assert scores.values["symbol_error_rate"] == pytest.approx(2 / 4)
    assert scores.values["exact_match"] == 0.5
    assert (scores.first, scores.higher_is_better) == ("symbol_error_rate", False)


def test_frames_of_another_size_are_refused_with_their_line(speech: CTC) -> None:
    with pytest.raises(DataError, match="line 4: 1 numbers a frame, but training has 2"):
        speech.encode(Row({"frames": [[1.0], [2.0]]}, 4))


def test_correlation_and_errors_are_those_of_numpy(pairs: Similarity) -> None:
    gold, found = np.array([1.0, 2.0, 4.0, 3.0]), [1.5, 1.0, 3.0, 3.5]
    rows = [Row({"first": "cat", "second": "dog", "value": str(value)}, line) for line, value in enumerate(gold, 1)]
    values = pairs.score(rows, found).values
    assert values["pearson"] == pytest.approx(np.corrcoef(gold, found)[0, 1])
    assert values["rmse"] == pytest.approx(np.sqrt(np.square(gold - found).mean()))


def test_both_texts_are_read_alone_and_by_the_same_network(pairs: Similarity) -> None:
    model: Any = pairs.build()
    rows = [("cat dog", "sun"), ("sun", "cat dog"), ("dog", "dog sun cat")]
    examples = [Row({"first": first, "second": second}, 1) for first, second in rows]
    together = pairs.predict(model, pairs.batch([pairs.encode(each) for each in examples]))
    for example, (first, second), found in zip(examples, rows, together, strict=True):
        assert pairs.predict(model, pairs.batch([pairs.encode(example)])) == pytest.approx([found])
        means = []
        for text in (first, second):
            ids = torch.from_numpy(pairs.words.ids(text.split()))
            read, _ = model.recurrent(Padded.full(model.embedding(ids)[None]))
            means.append(read.values[0].mean(0))
        expected = model.readout(torch.cat([(means[0] - means[1]).abs(), means[0] * means[1]]))
        assert found == pytest.approx(2.0 + 3.0 * expected.item(), rel=1e-5)
    assert together[0] == pytest.approx(together[1])  # which is first does not matter


def test_a_value_that_is_no_number_is_refused_with_its_line(pairs: Similarity) -> None:
    with pytest.raises(DataError, match="line 3: the third column is a number, but found 'much'"):
        pairs.encode(Row({"first": "a", "second": "b", "value": "much"}, 3))


def test_what_a_task_does_not_write_has_a_default(speech: CTC) -> None:
    row = speech.encode(Row({"frames": frames(1, 2, 3)}, 12, 1))
    assert speech.place(row) == "b.jsonl:12"
    assert speech.place({"frames": row["frames"]}) == "a row"
    assert speech.origin(Row({}, 12, 1)) == (1, 12)
    assert speech.described() == "cell lstm, hidden 3"
    assert speech.steps(Row({"frames": frames(1, 2, 3)}, 1)) == ["1", "2", "3"]
    assert speech.samples([Row({"frames": frames(1)}, 1)], 5) == [frames(1)]
    assert CTC.resolved(speech.settings) is speech.settings


def test_a_task_without_axes_says_what_it_needs_to_start_from_another_run(speech: CTC) -> None:
    with pytest.raises(
        ConfigError, match=r"--from needs the method `axes`, .* but CTC does not have it: write that method"
    ):
        speech.axes()


@pytest.mark.parametrize("module", [ctc, similarity])
def test_a_task_is_one_short_file_of_public_names(module: Any) -> None:
    source = Path(module.__file__).read_text("utf-8")
    ours = {line.split()[1] for line in source.splitlines() if line.startswith(("from recurra", "import recurra"))}
    assert ours == {"recurra", "recurra.extend"}
    assert len(source.splitlines()) <= 210


def test_questions_of_a_file_and_of_lines_are_the_same(speech: CTC, tmp_path: Path) -> None:
    file = tmp_path / "asked.jsonl"
    file.write_text(json.dumps({"frames": frames(1, 2)}) + "\n")
    [one] = speech.questions(file, iter([]))
    [other] = speech.questions(None, [json.dumps(frames(1, 2))])
    assert speech.encode(one)["frames"].tolist() == speech.encode(other)["frames"].tolist()


def test_gates_of_a_pair_are_those_of_each_text_read_alone(pairs: Similarity) -> None:
    model: Any = pairs.build().eval()
    example = Row({"first": "Cat dog sun", "second": "dog"}, 1)
    found = pairs.gates(Asked(model, example))
    assert found.tokens == ["cat", "dog", "sun", "dog"]
    expected = []
    for text in ("cat dog sun", "dog"):
        ids = torch.from_numpy(pairs.words.ids(text.split()))
        [[parts, _]] = model.recurrent.parts(Padded.full(model.embedding(ids)[None]))
        expected.append(parts.f[0].detach().numpy())
    np.testing.assert_allclose(found.values["f"], np.concatenate(expected).T, rtol=1e-5)


def test_saliency_adds_up_to_what_the_words_change(pairs: Similarity) -> None:
    model: Any = pairs.build().double().eval()
    example = Row({"first": "cat dog", "second": "sun sun cat"}, 1)
    found = pairs.saliency(Asked(model, example)).json()
    batch = pairs.batch([pairs.encode(example)])
    [whole] = pairs.predict(model, batch)
    torch.nn.init.zeros_(model.embedding.weight)
    [nothing] = pairs.predict(model, batch)
    assert found["tokens"] == ["cat", "dog", "sun", "sun", "cat"]
    assert np.sum(found["methods"]["integrated"]["values"]) == pytest.approx(whole - nothing, rel=0.02)


def test_the_alignment_shows_each_symbol_at_its_frames(speech: CTC) -> None:
    class Says(torch.nn.Module):
        """A network whose answer is known: a, a, blank, b."""

        def __init__(self) -> None:
            super().__init__()
            p = torch.tensor([[0.1, 0.7, 0.2], [0.1, 0.8, 0.1], [0.9, 0.05, 0.05], [0.2, 0.2, 0.6]])
            self.logs = torch.nn.Parameter(p.log()[None])

        def forward(self, frames: Padded) -> torch.Tensor:
            return self.logs.expand(len(frames.values), -1, -1)

    view = speech.alignment(Asked(Says(), Row({"frames": frames(1, 2, 3, 4)}, 1)))
    assert (list(view.rows), list(view.columns)) == (["a", "b"], ["1", "2", "3", "4"])
    np.testing.assert_allclose(np.asarray(view.weights, float), np.array([[0.7, 0.8, 0, 0], [0, 0, 0, 0.6]]), rtol=1e-5)
    blank = Says()
    blank.logs.data[..., 0] = 1.0
    with pytest.raises(DataError, match="blank at every frame, so there are no symbols to align"):
        speech.alignment(Asked(blank, Row({"frames": frames(1, 2, 3, 4)}, 1)))


@pytest.mark.parametrize("precision", ["float64", "bfloat16"])
def test_frames_are_given_to_the_model_in_its_own_precision(precision: str, tmp_path: Path) -> None:
    file = tmp_path / "speech.jsonl"
    file.write_text(json.dumps({"frames": frames(1, 2, 3), "target": "a b"}) + "\n")
    few = {"training.steps": 1, "model.hidden": 3, "data.cache": False, "training.precision": precision}
    model = recurra.train("tests.outside.ctc:CTC", train=file, valid=file, out=tmp_path / "run", settings=few)
    kept = next(model.model.parameters()).dtype
    assert kept == (torch.float64 if precision == "float64" else torch.float32)
    assert len(model.predict([frames(1, 2)])[0].detail["path"]) == 2
