"""Texts that a trained language model writes: by what rules, how probable, and what is refused."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import recurra
from recurra import ConfigError, DataError, Trained
from recurra.cli import main
from recurra.generation.voice import NetworkVoice
from recurra.generation.writer import Writer
from recurra.manifest import seal
from recurra.tasks.language_model import LanguageModel
from recurra.training.writing import Manner, generate
from tests.training.small import write_sentences

LINES = ["one two three", "one two", "three two one", "three four", "two. two! (one)"]
SMALL: dict[str, Any] = {
    "model": {"hidden": 12, "embedding": 6, "layers": 2},
    "reading": {"steps": 10},
    "training": {"steps": 30, "batch_size": 4, "learning_rate": 0.03, "average": "none", "threads": 1, "device": "cpu"},
    "data": {"cache": False},
}


def trained(folder: Path, **changes: dict[str, Any]) -> Trained:
    (folder / "train.txt").write_text("\n".join(LINES * 8) + "\n")
    settings = {name: {**SMALL.get(name, {}), **changes.get(name, {})} for name in SMALL.keys() | changes.keys()}
    model: Trained = recurra.train(
        "language_model", train=str(folder / "train.txt"), out=folder / "run", settings=settings
    )
    return model


def language_model(model: Trained) -> LanguageModel:
    assert isinstance(model.task, LanguageModel)
    return model.task


@pytest.fixture(scope="module")
def characters(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return trained(tmp_path_factory.mktemp("characters"), training={"precision": "float64"})


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    changes: dict[str, dict[str, Any]] = {"data": {"text": {"tokens": "words"}}, "training": {"precision": "float64"}}
    return trained(tmp_path_factory.mktemp("words"), **changes)


@pytest.fixture(scope="module")
def lines_alone(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return trained(tmp_path_factory.mktemp("lines"), data={"independent": True})


@pytest.fixture(scope="module")
def backward(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    changes = {"model": {"direction": "backward"}, "training": {"precision": "float64"}}
    return trained(tmp_path_factory.mktemp("backward"), **changes)


# What is drawn


def test_the_same_seed_writes_the_same_and_another_seed_something_else(characters: Trained) -> None:
    assert generate(characters, "one", seed=3, length=40) == generate(characters, "one", seed=3, length=40)
    assert generate(characters, "one", seed=3, length=40) != generate(characters, "one", seed=4, length=40)


def test_the_first_texts_are_the_same_however_many_there_are(characters: Trained, monkeypatch: Any) -> None:
    five = generate(characters, "one", seed=3, length=40, count=5)
    assert [text.tokens for text in generate(characters, "one", seed=3, length=40, count=2)] == [
        text.tokens for text in five[:2]
    ]
    assert len({text.text for text in five}) == 5
    monkeypatch.setattr("recurra.generation.writer.MOST_ROWS", 2)
    assert [text.tokens for text in generate(characters, "one", seed=3, length=40, count=5)] == [
        text.tokens for text in five
    ]


def test_several_prompts_are_answered_one_after_the_other(characters: Trained) -> None:
    prompts = ["one", "", "three two"]
    found = generate(characters, prompts, count=2, length=12)
    assert [text.prompt for text in found] == [prompt for prompt in prompts for _ in range(2)]
    for one, first in zip(generate(characters, prompts, length=12), found[::2], strict=True):
        assert one._replace(log_probability=0.0) == first._replace(log_probability=0.0)
        assert one.log_probability == pytest.approx(
            first.log_probability, rel=1e-12
        )  # three rows and six are summed apart
    assert generate(characters, []) == []


@pytest.mark.parametrize("narrow", [{"temperature": 0}, {"top_k": 1}, {"top_p": 1e-9}])
def test_the_narrowest_choice_does_not_depend_on_the_seed(characters: Trained, narrow: dict[str, Any]) -> None:
    greedy = generate(characters, "t", length=30, temperature=0, seed=1)
    assert generate(characters, "t", length=30, seed=9, **narrow)[0].tokens == greedy[0].tokens


def test_what_is_left_out_is_as_the_settings_of_the_run_say(tmp_path: Path, characters: Trained) -> None:
    folder = characters.save(tmp_path / "copy")
    config = (folder / "config.toml").read_text()
    assert "max_length = 500" in config
    config = config.replace("temperature = 1.0", "temperature = 0").replace("max_length = 500", "max_length = 7")
    (folder / "config.toml").write_text(config)
    seal(folder)
    [found] = generate(recurra.load(folder), "one", seed=5)
    assert found.tokens == generate(characters, "one", temperature=0, length=7)[0].tokens


# How probable it is


@pytest.mark.parametrize(
    ("kind", "prompt"),
    [("characters", ""), ("characters", "one t"), ("characters", "three two one"), ("words", ""), ("words", "one two")],
)
def test_a_text_is_as_probable_as_when_it_is_scored(kind: str, prompt: str, request: pytest.FixtureRequest) -> None:
    """The states carried from prompt to text and from token to token are those of reading the whole."""
    model: Trained = request.getfixturevalue(kind)
    task = language_model(model)
    for found in generate(model, prompt, until="\n", count=4, temperature=0.7, length=200):
        assert found.ended
        [example] = task.questions(None, [found.whole])
        [scored] = task.predict(model.model, task.batch([task.encode(example)]), detail=True)
        assert scored.log_probabilities is not None
        assert task.vocabulary.tokens_of(task.ids(found.whole))[-len(found.tokens) :] == found.tokens
        assert found.log_probability == pytest.approx(scored.log_probabilities[-len(found.tokens) :].sum(), abs=1e-9)


def test_with_nothing_before_it_the_log_probability_is_the_score(characters: Trained) -> None:
    for found in generate(characters, until="\n", count=5, length=200):
        assert found.log_probability == pytest.approx(characters.predict([found.text])[0].score, abs=1e-9)


def test_a_prompt_longer_than_is_read_at_once_is_read_whole(characters: Trained, monkeypatch: Any) -> None:
    prompts = ["one two three\n" * 3 + "on", "three", ""]
    whole = generate(characters, prompts, length=20)
    monkeypatch.setattr("recurra.generation.voice.LONGEST", 4)
    in_parts = generate(characters, prompts, length=20)
    assert [text.tokens for text in in_parts] == [text.tokens for text in whole]
    for one, other in zip(in_parts, whole, strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-9)


# Where it ends, and how it is put together


def test_running_text_goes_on_to_its_length(characters: Trained) -> None:
    [found] = generate(characters, "one", length=60)
    assert len(found.tokens) == len(found.text) == 60
    assert found.whole == "one" + found.text
    assert not found.ended


def test_a_text_ends_before_what_it_is_to_end_at(characters: Trained) -> None:
    [long] = generate(characters, "one", length=200, seed=2)
    for until in ("\n", "two", " ", "e\n"):
        [found] = generate(characters, "one", length=200, seed=2, until=until)
        assert found.ended
        assert found.text == long.text.partition(until)[0]
        assert "".join(found.tokens) == found.text + until
    [found] = generate(characters, "one", length=30, until="two two two two")
    assert not found.ended


def test_lines_by_themselves_end_with_their_line(lines_alone: Trained) -> None:
    for found in generate(lines_alone, "", length=200, count=5, until="zzz"):
        assert found.ended
        assert "\n" not in found.text
        assert found.tokens[-1] == "\n"


def test_words_are_put_together_as_text_is_written(words: Trained) -> None:
    task = language_model(words)
    for prompt, whole in (("three", "three"), ("three ", "three"), ("one\n", "one\n")):
        for found in generate(words, prompt, length=30, count=5):
            lines = found.whole.split("\n")
            assert found.whole.startswith(whole)
            assert found.whole == whole + found.text
            assert all(task.tokenizer.join(task.tokenizer.split(line)) == line for line in lines)
            again = task.vocabulary.tokens_of(task.ids(found.whole))[:-1]
            assert again[-30:] == found.tokens


def test_subwords_that_go_on_in_a_word_need_no_blank(tmp_path: Path) -> None:
    model = trained(tmp_path, data={"text": {"tokens": {"name": "subwords", "size": 20}}}, training={"steps": 5})
    for found in generate(model, "thr", length=25, count=5, seed=2):
        assert found.whole.startswith("thr")
        drawn = "".join(found.tokens).replace("<eos>", "\n").replace("▁", " ")
        assert found.text.split() == drawn.split()


def test_a_backward_model_writes_what_stands_before(backward: Trained) -> None:
    for found in generate(backward, "three", length=200, count=4, until="\n"):
        assert found.ended
        assert found.whole == found.text + "three"
        assert "".join(found.tokens)[::-1] == "\n" + found.text
    [whole] = generate(backward, "three", length=60, seed=4)
    [found] = generate(backward, "three", length=60, seed=4, until="o")
    assert found.text == whole.text.rpartition("o")[2]
    found = generate(backward, "", until="\n", length=200)[0]
    assert found.log_probability == pytest.approx(backward.predict([found.text])[0].score, abs=1e-9)


@pytest.mark.parametrize("until", [None, "\n", "two", "e\n", "one two"])
@pytest.mark.parametrize("kind", ["characters", "words", "backward"])
def test_bit_by_bit_is_the_same_text(kind: str, until: str | None, request: pytest.FixtureRequest) -> None:
    writer = request.getfixturevalue(kind).writer(Manner(length=60, until=until, seed=6))
    pieces = list(writer.pieces("three"))
    assert "".join(pieces) == writer.texts(["three"])[0].whole
    if until is None and kind != "backward":
        assert len(pieces) > 40


# Unknown tokens


def test_a_prompt_with_unknown_tokens_is_refused_by_name(characters: Trained, words: Trained) -> None:
    with pytest.raises(
        DataError, match=re.escape("the prompt contains 'é', 'ü', which is not in the model's vocabulary. Remove")
    ):
        generate(characters, "one é ü é")
    with pytest.raises(DataError, match="the prompt contains 'A', 'B', 'C', 'D', 'E' and 2 more, which"):
        generate(characters, "ABCDEFG")
    with pytest.raises(DataError, match="the prompt contains 'kettle', which"):
        generate(words, ["one", "two kettle"])


def test_unknown_tokens_can_be_allowed(characters: Trained, words: Trained) -> None:
    assert generate(characters, "one é", allow_unknown=True, length=5)[0].whole.startswith("one é")
    drawn = [text.tokens for text in generate(words, "one", length=30, count=20, temperature=50.0)]
    assert not any("<unk>" in tokens for tokens in drawn)
    drawn = [text.tokens for text in generate(words, "one", length=30, count=20, temperature=50.0, allow_unknown=True)]
    assert any("<unk>" in tokens for tokens in drawn)


def test_capitals_are_read_as_the_model_reads_them(tmp_path: Path) -> None:
    model = trained(tmp_path, data={"text": {"lowercase": True, "tokens": "characters"}}, training={"steps": 3})
    [found] = generate(model, "ONE", length=5, seed=3)
    assert found.tokens == generate(model, "one", length=5, seed=3)[0].tokens
    assert found.whole == "ONE" + found.text


# What cannot be


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"count": 0}, "count must be a whole number of at least 1, but is 0."),
        ({"length": 0}, "length must be a whole number of at least 1, but is 0."),
        ({"temperature": -0.5}, "temperature must be a number of at least 0, but is -0.5."),
        ({"top_k": 0}, "top_k must be a whole number of at least 1, but is 0."),
        ({"top_p": 1.5}, "top_p must be a probability above 0 and at most 1, but is 1.5."),
        ({"seed": 1.5}, "seed must be a whole number, but is 1.5."),
        ({"until": ""}, "until must be a text at which generation stops, but it is empty. Leave it out."),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused(characters: Trained, wish: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        generate(characters, "one", **wish)


def test_a_prompt_that_is_no_text_is_refused(characters: Trained) -> None:
    with pytest.raises(DataError, match="a prompt must be a text, but found 3"):
        generate(characters, ["one", 3])


# The command


def test_the_command_prints_the_prompt_and_what_follows(
    characters: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["generate", str(characters.folder), "--prompt", "one", "--length", "20", "--seed", "3"]
    assert main(arguments) == 0
    first = generate(characters, "one", length=20, seed=3)[0].whole
    assert capsys.readouterr().out == first + "\n"
    assert main([*arguments, "--count", "2", "--temperature", "0.8", "--top-k", "5", "--top-p", "0.9"]) == 0
    two = generate(characters, "one", length=20, seed=3, count=2, temperature=0.8, top_k=5, top_p=0.9)
    assert capsys.readouterr().out == f"{two[0].whole}\n----------\n{two[1].whole}\n"


def test_the_command_prints_json_and_nothing_else(characters: Trained, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", str(characters.folder), "--length", "9", "--count", "2", "--until", "e", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found == [text._asdict() for text in generate(characters, length=9, count=2, until="e")]
    assert list(found[0]) == ["prompt", "text", "whole", "tokens", "log_probability", "ended"]


def test_on_a_terminal_a_text_appears_as_it_is_written(
    characters: Trained, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["generate", str(characters.folder), "--prompt", "one", "--length", "20"]) == 0
    assert capsys.readouterr().out == generate(characters, "one", length=20)[0].whole + "\n"


def test_each_line_of_a_file_is_continued_to_its_end(
    characters: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prompts.txt").write_text("one t\n\nthree\r\n")
    arguments = ["generate", str(characters.folder), "--length", "200", "--temperature", "0.5", "--prompts"]
    assert main([*arguments, str(tmp_path / "prompts.txt")]) == 0
    expected = [
        text.text for text in generate(characters, ["one t", "", "three"], length=200, temperature=0.5, until="\n")
    ]
    assert capsys.readouterr().out == "\n".join(expected) + "\n"
    monkeypatch.setattr("recurra.generation.writer.MOST_ROWS", 2)
    monkeypatch.setattr(sys, "stdin", io.StringIO("one t\n\nthree"))
    assert main([*arguments, "-", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["line"], each["text"]) for each in found] == list(enumerate(expected, 1))


def test_a_line_that_cannot_be_read_is_named(
    characters: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prompts.txt").write_text("one\ntwo €\n")
    assert main(["generate", str(characters.folder), "--prompts", str(tmp_path / "prompts.txt")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert (
        f"recurra: {tmp_path}/prompts.txt:2: the prompt contains '€', which is not in the model's vocabulary."
        in said.err
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--prompt", "é"],
            "the prompt contains 'é', which is not in the model's vocabulary. Remove it, or allow it to be read as",
        ),
        (["--count", "-1"], "count must be a whole number of at least 1, but is -1."),
        (["--temperature", "nan"], "temperature must be a number of at least 0, but is nan."),
        (
            ["--prompts", "x.txt", "--prompt", "a"],
            "completes each line once, up to the end of the line: leave --prompt out.",
        ),
        (
            ["--prompts", "x.txt", "--count", "2"],
            "completes each line once, up to the end of the line: leave --count out.",
        ),
        (
            ["--prompts", "x.txt", "--until", "a"],
            "completes each line once, up to the end of the line: leave --until out.",
        ),
        (["--prompts", "no-such-file.txt"], "no-such-file.txt"),
        (["--device", "abacus"], "the device 'abacus' cannot be used"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_status_2(
    characters: Trained, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", str(characters.folder), *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.startswith("recurra: ")
    assert said.out == ""


def test_a_model_that_does_not_know_what_comes_next_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_sentences(tmp_path / "train.conll", 3)
    few = {"training": {"steps": 2}, "model": {"hidden": 4}, "data": {"cache": False}}
    tagger = recurra.train("tagging", train=str(tmp_path / "train.conll"), out=tmp_path / "run", settings=few)
    with pytest.raises(ConfigError, match="cannot generate text: it is a tagging model, not a language model"):
        generate(tagger)
    assert main(["generate", str(tmp_path / "run")]) == 2
    assert f"the run {tmp_path / 'run'} cannot generate text" in capsys.readouterr().err


@pytest.mark.parametrize("until", [None, "\n", "o"])
@pytest.mark.parametrize("kind", ["characters", "words", "lines_alone"])
def test_texts_drawn_on_the_device_are_those_drawn_token_by_token(
    kind: str, until: str | None, request: pytest.FixtureRequest
) -> None:
    model = request.getfixturevalue(kind)
    manner = Manner(seed=3, length=37, temperature=0.9, top_k=9, until=until)
    writers = [Writer(language_model(model), NetworkVoice(model.model), manner) for _ in range(2)]
    writers[1].on_device = True
    one, other = (writer.texts(["one", "", "two"], count=3) for writer in writers)
    for found, expected in zip(other, one, strict=True):
        assert found._replace(log_probability=0.0) == expected._replace(log_probability=0.0)
        assert found.log_probability == pytest.approx(expected.log_probability, abs=1e-4)


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("kind", ["characters", "words", "lines_alone", "backward"])
def test_texts_for_several_are_those_of_each_alone(kind: str, on_device: bool, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(kind)
    writer = Writer(language_model(model), NetworkVoice(model.model), Manner(seed=5, length=20))
    writer.on_device = on_device
    asked = [("one", 2), ("", 1), ("three two", 3), ("one", 1)]
    for found, (prompt, count) in zip(writer.several(asked), asked, strict=True):
        alone = writer.texts([prompt], count=count)
        assert [each.whole for each in found] == [each.whole for each in alone]
        for one, other in zip(found, alone, strict=True):
            assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)
    with pytest.raises(ConfigError, match="count must be"):
        writer.several([("one", 0)])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_gpu_writes_what_the_cpu_writes(characters: Trained) -> None:
    there = recurra.load(characters.folder, device="cuda")
    wishes: dict[str, Any] = {"count": 3, "length": 50, "top_k": 20, "top_p": 0.95}
    for here, other in zip(
        generate(characters, ["one", ""], **wishes), generate(there, ["one", ""], **wishes), strict=True
    ):
        assert here.tokens == other.tokens
        assert here.log_probability == pytest.approx(other.log_probability, abs=1e-9)
