"""Features of words by language models of characters: what they are, that runs keep them, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recurra.errors import CheckpointError, ConfigError
from recurra.models.character_features import CharacterFeatures, CharacterReader, as_code_points, sentences_in
from recurra.padding import Padded
from recurra.runs import begin, resume, setup
from recurra.tasks.language_model import reading_characters
from recurra.tasks.tagging import Tagging
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.tasks.test_tagging import SMALL, write
from tests.training.test_trainer import StopsAt

OLD = Path(__file__).parents[1] / "old_runs" / "0.1"
TEXT = "the cat sat on the mat\na dog saw the cat\nÉmile a vu le chat\n" * 3
TAGGED = "the\tD\ncat\tN\nsat\tV\n\na\tD\ndog\tN\nÉmile\tN\n\n"


def language_model(folder: Path, *overrides: str) -> Path:
    file = write(folder.parent / "text.txt", TEXT)
    small = [
        "training.steps=1",
        "model.engine=loop",
        "model.hidden=5",
        "model.layers=1",
        "model.embedding=4",
        "data.cache=false",
    ]
    small += ["training.device=cpu", "training.threads=1", "training.batch_size=2"]
    begin(setup("language_model", given={"train": file}, overrides=[*small, *overrides]), folder, Silent())
    return folder


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("language models")
    backward = language_model(folder / "backward", "model.direction=backward", "data.text.lowercase=true")
    return language_model(folder / "forward"), backward


FEW = ["training.epochs=2", "model.engine=loop"]


def asking(file: str, features: Sequence[Path], *overrides: str) -> Any:
    runs = f"model.features={[str(run) for run in features]}"
    spelt = [each for each in SMALL if "characters" not in each or "model.characters.cell=none" not in overrides]
    changes = [*spelt, *FEW, runs, *overrides]
    return setup("tagging", given={"train": file, "valid": ""}, overrides=changes)


def tagger(folder: Path, features: Sequence[Path], *overrides: str) -> Trained:
    file = write(folder.parent / "a.conll", TAGGED)
    begin(asking(file, features, *overrides), folder, Silent())
    return load(folder)


WORDS = [["the", "cat", "X?"], ["Émile"], [], ["a", "dog", "saw", "the", "cat"]]


def by_hand(reader: CharacterReader, words: list[str]) -> np.ndarray:
    """Character after character, by steps of the network."""
    text = " ".join(words)
    text = text.lower() if reader.lowercase else text
    model = reader.model
    states, _ = model.read(Padded.full(torch.tensor([[reader.end]])))
    after, order = {}, range(len(text) - 1, -1, -1) if reader.backward else range(len(text))
    for place in order:
        x = model.embedding(torch.tensor(reader.ids(text[place]).astype(np.int64)))
        out, states = model.stack.step(x, states)
        after[place] = out[0]
    found, start = [], 0
    for word in words:
        found.append(after[start if reader.backward else start + len(word) - 1].numpy())
        start += len(word) + 1
    return np.array(found).reshape(len(words), reader.size)


@pytest.mark.parametrize("which", [0, 1], ids=["forward", "backward"])
def test_a_word_is_the_state_at_its_end_or_before_its_beginning(both: tuple[Path, Path], which: int) -> None:
    reader = reading_characters(both[which], "cpu")
    assert (reader.backward, reader.lowercase) == (which == 1, which == 1)
    found = reader.read(WORDS)
    for words, features in zip(WORDS, found, strict=True):
        assert features.shape == (len(words), reader.size)
        with torch.no_grad():
            np.testing.assert_allclose(features, by_hand(reader, words), atol=1e-3)


def test_both_directions_stand_side_by_side_and_neighbours_change_nothing(both: tuple[Path, Path]) -> None:
    features = CharacterFeatures([reading_characters(run, "cpu") for run in both])
    assert features.size == 10
    together = features.of(WORDS)
    for words, found in zip(WORDS, together, strict=True):
        np.testing.assert_allclose(features.of([words])[0], found, atol=1e-3)
    before, after = features.of([["the", "cat"], ["the", "cat", "sat"]])
    np.testing.assert_array_equal(before[:, :5], after[:2, :5])  # the forward model does not know what comes
    assert not np.array_equal(before[:, 5:], after[:2, 5:])


def test_features_are_read_by_the_network_and_alone_they_are_enough(tmp_path: Path, both: tuple[Path, Path]) -> None:
    alone = ("model.embedding=0", "model.characters.cell=none", "training.epochs=60")
    model = tagger(tmp_path / "run", both, *alone)
    assert "features of character language models 5 + 5" in model.task.described()
    assert [each.output for each in model.predict(["the cat sat", "a dog Émile"])] == ["D N V", "D N N"]
    layered = tagger(tmp_path / "layer", both, "model.features_layer=3", "training.steps=1")
    network: Any = layered.model
    assert network.read_words.output_size == 12 + 12 + 3
    assert network.read_words.features.weight.shape == (3, 10)


def test_a_run_works_when_the_language_models_are_gone(tmp_path: Path, both: tuple[Path, Path]) -> None:
    own = [Path(shutil.copytree(run, tmp_path / run.name)) for run in both]
    model = tagger(tmp_path / "run", own)
    before = model.predict(["a cat saw Émile"], detail=True)[0]
    for run in own:
        shutil.rmtree(run)
    again = load(tmp_path / "run").predict(["a cat saw Émile"], detail=True)[0]
    assert again == before
    shutil.move(tmp_path / "run", tmp_path / "moved")
    assert load(tmp_path / "moved").predict(["a cat saw Émile"], detail=True)[0] == before


def test_a_damaged_copy_is_noticed(tmp_path: Path, both: tuple[Path, Path]) -> None:
    tagger(tmp_path / "run", both)
    weights = tmp_path / "run" / "features" / "0" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(CheckpointError, match=r"features/0/model\.safetensors is damaged"):
        load(tmp_path / "run")


def test_a_broken_run_ends_with_the_same_weights_though_the_language_models_are_gone(
    tmp_path: Path, both: tuple[Path, Path]
) -> None:
    own = [Path(shutil.copytree(run, tmp_path / run.name)) for run in both]
    whole = tagger(tmp_path / "whole", own)
    with pytest.raises(MemoryError):
        begin(asking(str(tmp_path / "a.conll"), own), tmp_path / "broken", StopsAt(1))
    for run in own:
        shutil.rmtree(run)
    resume(tmp_path / "broken", Silent())
    weights = [model.model.state_dict() for model in (whole, load(tmp_path / "broken"))]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_features_over_the_budget_are_computed_for_each_batch(tmp_path: Path, both: tuple[Path, Path]) -> None:
    kept = tagger(tmp_path / "kept", both)
    computed = tagger(tmp_path / "computed", both, "model.features_disk=0")
    [example] = list(computed.task.questions(None, ["a cat"]))
    assert "features" in kept.task.encode(example)
    assert "features" not in computed.task.encode(example)
    weights = [model.model.state_dict() for model in (kept, computed)]
    for name, weight in weights[0].items():
        torch.testing.assert_close(weight, weights[1][name], atol=1e-3, rtol=1e-2)
    sentences = [["", "\U0001f600é", "x"], [], ["y"]]
    assert sentences_in(as_code_points(sentences)) == sentences


def test_other_weights_of_a_language_model_are_other_features_in_the_cache(
    tmp_path: Path, both: tuple[Path, Path]
) -> None:
    file = write(tmp_path / "a.conll", TAGGED)
    every: list[Sequence[Path]] = [[], both[:1], both[1:], both]
    marks = [Tagging.encoding(asking(file, runs).settings) for runs in every]
    assert marks[0] is None
    assert len({str(mark) for mark in marks}) == 4


def test_what_cannot_give_features_is_refused(tmp_path: Path, both: tuple[Path, Path]) -> None:
    def refused(*runs: Path | str, more: tuple[str, ...] = ()) -> str:
        with pytest.raises((ConfigError, CheckpointError)) as told:
            tagger(tmp_path / "refused", [*map(Path, runs)], *more)
        return str(told.value)

    assert "but there is no run (config.toml). Train one: recurra train language_model" in refused(tmp_path / "none")
    assert "a run of tagging: only runs of language_model read text" in refused(OLD / "tagging" / "run")
    words = language_model(tmp_path / "words", "data.text.tokens=words")
    assert "a language model of words: features of words are read from characters" in refused(words)
    same = Path(shutil.copytree(both[0], tmp_path / "same"))
    told = refused(both[0], same)
    assert "names 2 language models that read forward" in told
    assert "train the other with model.direction = backward" in told
    weights = same / "model.safetensors"
    weights.write_bytes(weights.read_bytes() + b"x")
    assert "model.safetensors is damaged" in refused(same)
    unfinished = Path(shutil.copytree(both[0], tmp_path / "unfinished"))
    (unfinished / "model.safetensors").unlink()
    assert "model.safetensors is missing" in refused(unfinished)
    assert "model.features are features of words, but the inputs are numbers" in refused(
        both[0], more=("data.frames=x",)
    )
    with pytest.raises(ConfigError, match=r"model\.features_layer = 4 has no effect: model.features is empty"):
        tagger(tmp_path / "refused", [], "model.features_layer=4")


@pytest.mark.parametrize("more", [(), ("data.second=second", "model.features_disk=0", "model.pairing=siamese")])
def test_a_classifier_reads_features_of_one_text_or_two(
    tmp_path: Path, both: tuple[Path, Path], more: tuple[str, ...]
) -> None:
    rows = "text\tsecond\tlabel\n" + "the cat sat\ta mat\tanimal\nle vélo\tune rue\tthing\n" * 2
    file = write(tmp_path / "a.tsv", rows)
    runs = f"model.features={[str(run) for run in both]}"
    changes = ["model.embedding=6", "model.hidden=4", "model.engine=loop", "data.cache=false", "data.text=text"]
    changes += ["data.label=label", "training.steps=2", "training.device=cpu", "training.threads=1"]
    this = setup("classification", given={"train": file, "valid": ""}, overrides=[*changes, runs, *more])
    begin(this, tmp_path / "run", Silent())
    model = load(tmp_path / "run")
    task: Any = model.task
    [example] = list(task.read([file]))[:1]
    batch = task.batch([task.encode(example)])
    sentences = [["the", "cat", "sat"], ["a", "mat"]][: 2 if more else 1]
    expected = np.concatenate(task.features.of(sentences))
    np.testing.assert_allclose(batch.features[0], expected, atol=1e-3)
    network: Any = model.model
    assert network.readers[0].output_size == 6 + 2 * 150 + 10
    with pytest.raises(ConfigError, match=r"model\.features are features of words in their order"):
        begin(
            setup("classification", given={"train": file}, overrides=[*changes, runs, "data.text.tokens=characters"]),
            tmp_path / "refused",
            Silent(),
        )
