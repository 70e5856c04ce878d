"""The last word of a passage (LAMBADA): its probability token by token, whether it would be written, and refusals."""

from __future__ import annotations

import gzip
import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from recurra.cli import main
from recurra.errors import DataError, RecurraError
from recurra.padding import Padded
from recurra.training.trained import Trained, load
from tests.tasks.test_language_model import language_model, trained, write

LAST_WORD = ["evaluation.manner=last_word"]
PASSAGES = ["ann saw the dog and the dog saw ann", "bob saw the cat", "", "ann", "bob met zed"]
TEXT = "".join(f"{line}\n" for line in PASSAGES[:2] * 3)
TOKENS = {
    "words": ["data.text.tokens=words"],
    "symbols": ["data.text.tokens=symbols"],
    "characters": [],
    "subwords": ['data.text.tokens={name="subwords", size=18}'],
}


def by_hand(model: Trained, passage: str, word: list[str]) -> tuple[float, bool]:
    """−log p of the last tokens of a passage, one read after the other, and whether each is the best."""
    task = language_model(model)
    ids = task.ids(passage)[:-1].tolist()
    nats, is_best = 0.0, True
    for place in range(len(ids) - len(word), len(ids)):
        with torch.no_grad():
            _, logs = model.model.read(Padded.full(torch.tensor([[task.end, *ids[:place]]])))  # type: ignore[operator]
        nats -= float(logs[0, ids[place]])
        is_best = is_best and int(logs[0].argmax()) == ids[place]
    assert [task.vocabulary.tokens[i] if i else "z" for i in ids[len(ids) - len(word) :]] == word
    return nats, is_best


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("tokens", TOKENS)
def test_the_last_word_has_the_probability_of_its_tokens(tmp_path: Path, tokens: str, independent: bool) -> None:
    options = [*TOKENS[tokens], f"data.independent={str(independent).lower()}"]
    model = trained(tmp_path, write(tmp_path / "a.txt", TEXT), *options)
    known = [each for each in PASSAGES[:4] if each]
    file = write(tmp_path / "new.txt", "".join(f"{each}\n" for each in PASSAGES[:4]))
    task = language_model(model)
    expected = []
    for passage in known:
        before = len(task.tokens(" ".join(passage.split()[:-1]))) - 1  # without the end of the line
        word = task.tokens(passage)[before:-1]
        expected.append(by_hand(model, passage, [each for each in word if each != " "]))
    scores = model.with_settings(LAST_WORD).evaluate(file).values
    nats = [cost for cost, _ in expected]
    assert scores["count"] == 3  # a blank line is none
    assert scores["perplexity"] == pytest.approx(math.exp(np.mean(nats)), rel=1e-5)
    assert scores["accuracy"] == pytest.approx(np.mean([right for _, right in expected]))


@pytest.mark.parametrize("tokens", ["words", "characters"])
def test_a_cache_adds_the_words_that_followed_where_the_state_was_alike(tmp_path: Path, tokens: str) -> None:
    """(1 − λ) p(w) + λ Σ_{i < t} 1{w_{i+1} = w} softmax_i(θ h_t · h_i), for each token of the word, in numpy."""
    model = trained(tmp_path, write(tmp_path / "a.txt", TEXT), *TOKENS[tokens], "data.independent=true")
    task, share, sharpness = language_model(model), 0.4, 0.7
    passages = [PASSAGES[0], "ann saw the cat", "bob"]
    nats, rights = [], []
    for passage in passages:
        ids = task.ids(passage)[:-1].tolist()
        read = [task.end, *ids]
        with torch.no_grad():
            h = model.model(Padded.full(torch.tensor([read])))[0].values
            p = model.model.output.log_probabilities(h[0]).double().exp().numpy()  # type: ignore[union-attr,operator]
        h = h[0].double().numpy()
        cost, is_best = 0.0, True
        for t in range(len(ids) - (len(passage.split()[-1]) if tokens == "characters" else 1), len(ids)):
            if t:
                alike = np.exp(sharpness * h[:t] @ h[t])
                p[t] *= 1 - share
                np.add.at(p[t], ids[:t], share * alike / alike.sum())
            cost -= math.log(p[t, ids[t]])
            is_best = is_best and int(p[t].argmax()) == ids[t]
        nats.append(cost)
        rights.append(is_best)
    changed = model.with_settings([*LAST_WORD, f"evaluation.cache={share}", f"evaluation.cache_sharpness={sharpness}"])
    scores = changed.evaluate(write(tmp_path / "new.txt", "".join(f"{each}\n" for each in passages))).values
    assert scores["perplexity"] == pytest.approx(math.exp(np.mean(nats)), rel=1e-5)
    assert scores["accuracy"] == pytest.approx(np.mean(rights))
    assert scores["perplexity"] != pytest.approx(
        model.with_settings(LAST_WORD).evaluate(tmp_path / "new.txt").values["perplexity"], rel=1e-3
    )


@pytest.mark.parametrize("cache", [[], ["evaluation.cache=0.3"]])
def test_several_runs_have_the_mean_probability_of_the_last_word(tmp_path: Path, cache: list[str]) -> None:
    file = write(tmp_path / "a.txt", TEXT)
    options = ["data.text.tokens=words", "data.independent=true"]
    runs = [trained(tmp_path, file, *options, f"training.seed={seed}", run=f"run{seed}") for seed in (1, 2)]
    new = write(tmp_path / "new.txt", "ann saw the cat\nbob saw the dog\n")
    ways = [model.with_settings([*LAST_WORD, *cache]) for model in runs]
    together = load([tmp_path / "run1", tmp_path / "run2"]).with_settings([*LAST_WORD, *cache])
    examples, _ = together.to_score([new])
    each = np.array([[output.nats for output in model.to_score([new])[1]] for model in ways])
    expected = -np.log(np.exp(-each).mean(0))
    assert [output.nats for output in together.to_score([new])[1]] == pytest.approx(expected.tolist(), rel=1e-5)
    assert together.evaluate(new).values["perplexity"] == pytest.approx(math.exp(expected.mean()), rel=1e-5)
    assert len(examples) == 2


def test_a_word_that_is_not_in_the_vocabulary_is_never_right(tmp_path: Path) -> None:
    model = trained(tmp_path, write(tmp_path / "a.txt", TEXT), "data.text.tokens=words").with_settings(LAST_WORD)
    file = write(tmp_path / "new.txt", "bob met zed\nann saw the dog\n")
    with torch.no_grad():
        model.model.get_parameter("output.readout.bias")[0] = 50.0  # so that <unk> is the best
    scores = model.evaluate(file).values
    assert scores["accuracy"] == 0
    assert scores["unknown"] == 1
    assert scores["known_perplexity"] > scores["perplexity"]


def test_the_end_of_a_story_that_its_beginning_tells_is_learned_and_evaluated_by_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(1)
    names = ["ann", "bob", "cid"]

    def story() -> str:
        who = draw.choice(names)
        return f"{who} met {draw.choice(names)} . then went {who}\n"

    file = write(tmp_path / "a.txt", "".join(story() for _ in range(150)))
    with gzip.open(tmp_path / "new.txt.gz", "wt") as new:
        new.write("".join(story() for _ in range(40)))
    options = ["data.text.tokens=words", "training.epochs=12", "training.learning_rate=0.03", "data.independent=true"]
    trained(tmp_path, file, *options, *LAST_WORD, valid=str(tmp_path / "new.txt.gz"))
    capsys.readouterr()
    command = ["evaluate", str(tmp_path / "run"), str(tmp_path / "new.txt.gz")]
    assert main([*command, "--set", "evaluation.manner=last_word"]) == 0
    said = dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines() if " " in line)
    assert float(said["accuracy"]) > 0.95
    assert float(said["perplexity"]) < 1.2
    assert int(said["count"]) == 40


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["model.direction=backward", *LAST_WORD], "predicts the last word from those before it, but model.direction"),
        ([*LAST_WORD, "evaluation.window=9"], "'last_word' reads each line by itself, whole"),
        (["evaluation.cache=0.2"], "cache = 0.2 has no effect: only evaluation.manner = 'last_word' has a cache"),
        ([*LAST_WORD, "evaluation.cache_sharpness=1"], "evaluation.cache = 0 leaves the cache out"),
        ([*LAST_WORD, "evaluation.cache=1"], "evaluation.cache must be at least 0 and below 1, but is 1"),
    ],
)
def test_what_does_not_go_with_last_words_is_refused(tmp_path: Path, options: list[str], said: str) -> None:
    with pytest.raises(RecurraError, match=said):
        trained(tmp_path, write(tmp_path / "a.txt", TEXT), *options)


def test_a_text_without_words_is_refused(tmp_path: Path) -> None:
    model = trained(tmp_path, write(tmp_path / "a.txt", TEXT), "data.text.tokens=words")
    with pytest.raises(DataError, match=r"has no words: evaluation.manner = 'last_word' needs a passage on each line"):
        model.with_settings(LAST_WORD).evaluate(write(tmp_path / "b.txt", "\n\n"))
