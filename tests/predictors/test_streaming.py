"""Streams: the answer after an element is that for all elements so far, of a run and of what was exported from it."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import recurra
from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.exported import load_exported
from recurra.exporting.folder import export
from recurra.heads.lattice import Chain, filtered
from recurra.training.trained import Trained, load
from tests.once import made_once

OLD = Path(__file__).parent.parent / "old_runs" / "0.1"
FEW = {"training.steps": 12, "data.cache": False}
NAMES = "maria\tB-PER\nsmith\tI-PER\nsees\tO\nrome\tB-LOC\n\nanna\tB-PER\nsees\tO\nmaria\tB-PER\n\n"
ROWS = "text\tlabel\nso good and kind\tpos\nbad and dull\tneg\ngood\tpos\nvery bad\tneg\n"
LINES = "the cat sees the dog\nthe dog sees a cat\n"
FRAMES = [{"frames": [[0.0, t], [1.0, -t], [t, t]], "label": "up" if t > 0 else "down"} for t in (-2.0, 1.0, 3.0, -1.0)]

RUNS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "tagger, softmax": ("tagging", "a.conll", NAMES, {"model.head": "softmax"}),
    "tagger, crf": ("tagging", "a.conll", NAMES, {"model.head": "crf", "model.layers": 2, "model.skip": "residual"}),
    "text, mean": ("classification", "a.tsv", ROWS, {"model.encoder": "rnn", "model.summary": "mean"}),
    "text, max": ("classification", "a.tsv", ROWS, {"model.encoder": "rnn", "model.summary": "max"}),
    "series": (
        "classification",
        "a.jsonl",
        "\n".join(map(json.dumps, FRAMES)),
        {"model.encoder": "rnn", "model.summary": "last_cell", "model.cell": "lstm", "data.frames": "frames"},
    ),
    "language model": ("language_model", "a.txt", LINES * 4, {"data.text.tokens": "words", "data.independent": True}),
}
INPUTS = {"tagger": "maria sees smith rome", "text": "very good and bad", "language": "the cat sees a dog"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small runs that read forward, and what was exported from them."""

    def make(here: Path) -> None:
        for number, (task, file, content, settings) in enumerate(RUNS.values()):
            folder = here / str(number)
            folder.mkdir()
            (folder / file).write_text(content)
            reads = {} if task == "language_model" else {"model.bidirectional": False}
            every = {**FEW, "model.hidden": 6, **reads, **settings}
            recurra.train(task, train=str(folder / file), out=folder / "run", settings=every)
            export(folder / "run", folder / "exported")

    return made_once(tmp_path_factory, "streaming", make)


def run_of(runs: Path, name: str) -> Path:
    return runs / str([*RUNS].index(name))


def elements_of(name: str) -> list[Any]:
    if name == "series":
        return [[0.5, 1.0], [2.0, -1.0], [0.0, 3.0]]
    return INPUTS[name.split(",")[0].split()[0]].split()


def expected(model: Trained, name: str, elements: list[Any]) -> Any:
    """What `predict` answers for elements that are all there."""
    whole = elements if name == "series" else " ".join(elements)
    [answer] = model.predict([whole], detail=True)
    return answer


@pytest.mark.parametrize("name", [name for name in RUNS if name != "tagger, crf"])
def test_an_answer_is_that_for_all_elements_so_far(runs: Path, name: str) -> None:
    model, elements = load(run_of(runs, name) / "run"), elements_of(name)
    streams = [
        model.stream(),
        *(load_exported(run_of(runs, name) / "exported", by=by).stream() for by in ("c", "numpy")),
    ]
    for count, element in enumerate(elements, 1):
        right = expected(model, name, elements[:count])
        for stream in streams:
            said = stream.read(element)
            assert (stream.steps, said.line) == (count, count)
            if name.startswith("tagger"):
                assert said.output == right.output.split()[-1]
                assert said.detail["probabilities"][0][0] == pytest.approx(
                    right.detail["probabilities"][0][-1], abs=1e-5
                )
            elif name == "language model":
                assert said.detail["tokens"] == [element]
                assert said.detail["log_probabilities"][0] == pytest.approx(
                    right.detail["log_probabilities"][count - 1], abs=1e-4
                )
            else:
                assert said.output == right.output
                assert said.detail["probabilities"] == pytest.approx(right.detail["probabilities"], abs=1e-5)


def test_a_piece_of_several_words_is_read_word_by_word(runs: Path) -> None:
    model = load(run_of(runs, "tagger, crf") / "run")
    one, other = model.stream(), model.stream()
    tags = [one.read(word).output for word in elements_of("tagger, crf")]
    assert other.read(INPUTS["tagger"]).output.split() == tags
    model = load(run_of(runs, "language model") / "run")
    one, other = model.stream(), model.stream()
    parts = [one.read("the cat"), one.read("sees a dog\n")]
    together = other.read(f"{INPUTS['language']}\n")
    logs = [log_p for each in parts for log_p in each.detail["log_probabilities"]]
    assert logs == pytest.approx(together.detail["log_probabilities"], abs=1e-5)
    assert parts[1].detail["following"] == pytest.approx(together.detail["following"], abs=1e-5)


def test_what_may_follow_has_the_probabilities_of_the_next_element(runs: Path) -> None:
    stream = load(run_of(runs, "language model") / "run").stream()
    for element in ("the", "cat", "sees"):
        following = stream.read(element).detail["following"]
        assert len(following) == 5
        assert [*following.values()] == sorted(following.values(), reverse=True)
        state = stream.state()
        for word, p in following.items():
            if not word.startswith("<") and word.strip():
                again = load(run_of(runs, "language model") / "run").stream(state).read(word)
                assert np.exp(again.score) == pytest.approx(p, abs=1e-5)


def test_a_tag_of_a_chain_is_the_most_probable_given_what_was_read(runs: Path) -> None:
    model = load(run_of(runs, "tagger, crf") / "run")
    stream, network, task = model.stream(), cast(Any, model.model), cast(Any, model.task)
    elements = elements_of("tagger, crf")
    rows = list(model.task.encode_all(model.task.questions(None, [INPUTS["tagger"]])))
    features = network.features(model.task.batch(rows))
    chain, each = network.heads[0].scores(features)
    emissions, tags = np.asarray(each.detach() if hasattr(each, "detach") else each)[0], task.tags[0].tokens
    A, start = (np.asarray(scores, np.float64) for scores in (chain.A, chain.start))
    for count, element in enumerate(elements, 1):
        p = np.zeros(len(tags))  # by all paths, one after the other
        for path in itertools.product(range(len(tags)), repeat=count):
            score = start[path[0]] + sum(emissions[t, tag] for t, tag in enumerate(path))
            p[path[-1]] += np.exp(score + sum(A[a, b] for a, b in itertools.pairwise(path)))
        said = stream.read(element)
        assert said.output == tags[int(p.argmax())]
        assert said.detail["probabilities"][0][0] == pytest.approx(p.max() / p.sum(), abs=1e-5)


def test_a_chain_goes_on_where_it_was_left() -> None:
    draw = np.random.default_rng(3)
    chain = Chain(A=draw.normal(size=(4, 4)), start=draw.normal(size=4), end=draw.normal(size=4))
    chain.A[1, 2] = -np.inf
    emissions = draw.normal(size=(9, 4))
    whole = filtered(chain, emissions)
    first = filtered(chain, emissions[:5])
    assert np.allclose(np.concatenate([first, filtered(chain, emissions[5:], first[-1])]), whole)
    assert np.allclose(np.exp(whole).sum(1), 1)


@pytest.mark.parametrize("name", ["tagger, crf", "text, mean", "series", "language model"])
def test_a_saved_state_goes_on_with_the_run_and_with_what_was_exported_from_it(runs: Path, name: str) -> None:
    model, elements = load(run_of(runs, name) / "run"), elements_of(name)
    whole, begun = model.stream(), model.stream()
    answers = [whole.read(element) for element in elements]
    begun.read(elements[0])
    state = begun.state()
    for again in (model.stream(state), load_exported(run_of(runs, name) / "exported").stream(state)):
        assert again.steps == 1
        for element, right in zip(elements[1:], answers[1:], strict=True):
            found = again.read(element)
            assert (found.output == right.output) or name == "language model"
            assert found.score == pytest.approx(right.score, abs=1e-4)
    for each in elements * 20:
        begun.read(each)
    assert len(begun.state()) - len(state) <= 2  # the digits of how many were read


def test_states_that_are_none_of_this_run_are_refused(runs: Path) -> None:
    model, other = load(run_of(runs, "text, mean") / "run"), load(run_of(runs, "text, max") / "run")
    stream = model.stream()
    stream.read("good")
    state = stream.state()
    with pytest.raises(CheckpointError, match="of a stream of another run"):
        other.stream(state)
    with pytest.raises(CheckpointError, match="is damaged or cut off"):
        model.stream(state[:-3])
    with pytest.raises(DataError, match="the state of a stream is bytes"):
        model.stream("state")  # type: ignore[arg-type]


def test_elements_that_cannot_be_read_leave_a_stream_as_it_was(runs: Path) -> None:
    stream = load(run_of(runs, "text, max") / "run").stream()
    stream.read("good")
    state = stream.state()
    for element, words in (
        ("", "element 2: there is nothing to read in ''"),
        (3, "element 2: an element of this stream"),
    ):
        with pytest.raises(DataError, match=words):
            stream.read(element)
    assert (stream.state(), stream.steps) == (state, 1)
    stream = load(run_of(runs, "series") / "run").stream()
    bad: list[tuple[Any, str]] = [
        ([[1.0, 2.0], [1.0, 2.0]], "element 1: an element of this stream is a number or a list of the numbers"),
        ("1 2", "element 1: an element of this stream is a number"),
        ([1.0, 2.0, 3.0], "3"),
    ]
    for element, words in bad:
        with pytest.raises(DataError, match=words):
            stream.read(element)
    stream = load(run_of(runs, "language model") / "run").stream()
    with pytest.raises(DataError, match="element 1: there is no token in ''"):
        stream.read("")
    with pytest.raises(DataError, match="element 1: expected a text"):
        stream.read(7)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("tagging", "reads from the end too: train one with model.bidirectional = false"),
        ("classification", "reads from the end too: train one with model.bidirectional = false"),
        ("seq2seq", "this run cannot read a stream: it answers whole inputs"),
        ("question_answering", "this run cannot read a stream: it answers whole inputs"),
    ],
)
def test_runs_that_need_a_whole_input_refuse_streams(task: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load(OLD / task / "run").stream()


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("tagger, crf", {"encoder": "cnn", "layers": 1}, "its network looks at later steps too: train one with"),
        ("tagger, crf", {"direction": "backward"}, "it reads from the end too"),
        ("tagger, crf", {"non_local": "scaled_dot"}, "model.non_local looks at all steps at once"),
        ("text, max", {"encoder": "cnn"}, "its encoder looks at all steps at once"),
        ("text, max", {"summary": "attention"}, "its summary looks at all steps at once"),
    ],
)
def test_networks_that_look_at_all_steps_refuse_streams(
    runs: Path, name: str, changes: dict[str, Any], words: str
) -> None:
    task = copy.copy(load(run_of(runs, name) / "run").task)
    task.settings = dataclasses.replace(task.settings, model=dataclasses.replace(task.settings.model, **changes))
    with pytest.raises(ConfigError, match=words):
        task.stream(task.build().eval())


def twin(folder: Path, name: str) -> str:
    """A second run on the same data, with other cells and weights."""
    task, file, content, settings = RUNS[name]
    (folder / file).write_text(content)
    reads = {} if task == "language_model" else {"model.bidirectional": False}
    every = {**FEW, "model.hidden": 5, **reads, **settings, "training.seed": 2, "model.cell": "gru"}
    recurra.train(task, train=str(folder / file), out=folder / "run", settings=every)
    return str(folder / "run")


@pytest.mark.parametrize("name", ["tagger, softmax", "tagger, crf", "text, mean", "series", "language model"])
def test_several_runs_answer_an_element_by_the_mean_of_their_probabilities(
    runs: Path, name: str, tmp_path: Path
) -> None:
    folders = [str(run_of(runs, name) / "run"), twin(tmp_path, name)]
    both, alone = load(folders), [load(each) for each in folders]
    stream, apart = both.stream(), [each.stream() for each in alone]
    elements, read = elements_of(name), list[Any]()
    for count, element in enumerate(elements, 1):
        read.append(element)
        said, each = stream.read(element), [one.read(element) for one in apart]
        assert (stream.steps, said.line) == (count, count)
        if name == "language model":
            logs = [one.detail["log_probabilities"] for one in each]
            right = np.log(np.mean(np.exp(logs), axis=0))
            np.testing.assert_allclose(said.detail["log_probabilities"], right, atol=1e-5)
            every = [{**one.detail["following"]} for one in each]
            for token, p in said.detail["following"].items():
                if all(token in one for one in every):
                    assert p == pytest.approx(np.mean([one[token] for one in every]), abs=2e-6)
        if name != "tagger, crf":  # which knows no words to come
            whole = expected(both, name, read)
            if name.startswith("tagger"):
                assert said.output == whole.output.split()[-1]
                assert said.detail["probabilities"][0][0] == pytest.approx(whole.detail["probabilities"][0][-1])
            elif name == "language model":
                p = whole.detail["log_probabilities"][count - 1]
                assert said.detail["log_probabilities"][0] == pytest.approx(p, abs=1e-4)
            else:
                assert said.output == whole.output
                assert said.detail["probabilities"] == pytest.approx(whole.detail["probabilities"], abs=1e-5)
        stream = both.stream(stream.state())
    with pytest.raises(CheckpointError, match="is of a stream of another run"):
        alone[0].stream(stream.state())


def test_several_chains_name_the_tag_of_the_mean_of_what_each_has_read(runs: Path, tmp_path: Path) -> None:
    folders = [str(run_of(runs, "tagger, crf") / "run"), twin(tmp_path, "tagger, crf")]
    both, elements = load(folders), elements_of("tagger, crf")
    stream, ps = both.stream(), list[Any]()
    for folder in folders:
        model = load(folder)
        network, task = cast(Any, model.model), cast(Any, model.task)
        rows = list(task.encode_all(task.questions(None, [" ".join(elements)])))
        chain, each = network.heads[0].scores(network.features(task.batch(rows)))
        emissions = np.asarray(each.detach() if hasattr(each, "detach") else each, np.float64)[0]
        ps.append(np.exp(filtered(Chain(*(np.asarray(part, np.float64) for part in chain)), emissions)))
        names = task.tags[0].tokens
    mean = np.mean(ps, axis=0)
    for element, p in zip(elements, mean, strict=True):
        said = stream.read(element)
        assert said.output == names[int(p.argmax())]
        assert said.detail["probabilities"][0][0] == pytest.approx(p.max(), abs=1e-4)


def test_of_several_runs_the_one_that_cannot_read_a_stream_is_named(runs: Path, tmp_path: Path) -> None:
    content = RUNS["text, max"][2]
    (tmp_path / "a.tsv").write_text(content)
    settings = {**FEW, "model.hidden": 4, "model.encoder": "rnn", "model.bidirectional": True}
    recurra.train("classification", train=str(tmp_path / "a.tsv"), out=tmp_path / "run", settings=settings)
    with pytest.raises(ConfigError, match="run 2 of this ensemble cannot read a stream: it reads from the end too"):
        load([str(run_of(runs, "text, max") / "run"), str(tmp_path / "run")]).stream()


def test_a_text_that_is_read_from_its_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(LINES)
    settings = {**FEW, "model.hidden": 4, "model.direction": "backward"}
    model = recurra.train("language_model", train=str(tmp_path / "a.txt"), out=tmp_path / "run", settings=settings)
    with pytest.raises(ConfigError, match="a stream is read forward, but this run reads texts from their end"):
        model.stream().read("a")
