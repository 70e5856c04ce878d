"""What a model has never seen of an input is named: an answer to something else must not look like an answer to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recurra.cli import main
from recurra.demo import SETTINGS
from recurra.tasks.task import Task
from tests.runtime.small_tasks import KINDS, of_every_kind, prepared
from tests.tasks.small_pairs import table, untrained, words

TAGS = "the\tD\ncat\tN\n\na\tD\ndog\tN\n\n"
LABELS = [("a good film", "praise"), ("a bad film", "blame")]
INFLECTIONS = [("walk", "walked", "PST"), ("sing", "sings", "PRS")]


def unknown(task: Task[Any, Any, Any], line: str) -> list[str]:
    [example] = task.questions(None, [line])
    return task.not_in_vocabulary(example)


def test_seq2seq_names_capitals_and_other_symbols_of_the_source_each_once(tmp_path: Path) -> None:
    task = prepared("seq2seq", words(tmp_path), "data.source.tokens=characters")
    assert unknown(task, "dog") == []
    assert unknown(task, "DogDé") == ["D", "é"]


def test_seq2seq_names_features_that_training_has_not_seen(tmp_path: Path) -> None:
    rows = table(tmp_path / "forms.tsv", INFLECTIONS)
    task = prepared("seq2seq", rows, "data.columns=['source', 'target', 'features']", "data.features=['features']")
    assert unknown(task, "walk\tPST;FUT") == ["FUT"]
    assert unknown(task, "walk\tPST") == []


def test_what_is_read_in_lower_case_is_known_in_capitals(tmp_path: Path) -> None:
    lower = ["data.source.tokens=characters", "data.source.lowercase=true"]
    assert unknown(prepared("seq2seq", words(tmp_path), *lower), "DOG") == []
    assert SETTINGS["data.source.lowercase"] is True


def test_a_word_that_can_be_copied_is_not_lost(tmp_path: Path) -> None:
    copying = ["data.source.tokens=words", "data.target.tokens=words"]
    assert unknown(prepared("seq2seq", words(tmp_path), *copying), "zebra") == ["zebra"]
    assert unknown(prepared("seq2seq", words(tmp_path), *copying, "model.copy=true"), "zebra") == []


def test_a_tagger_that_reads_characters_misses_characters_and_one_without_misses_words(tmp_path: Path) -> None:
    (tmp_path / "tags.conll").write_text(TAGS, "utf-8")
    file = str(tmp_path / "tags.conll")
    spelling = prepared("tagging", file, "data.min_count=1")
    assert unknown(spelling, "the goat") == []
    assert unknown(spelling, "the Zoo") == ["Z"]
    assert unknown(prepared("tagging", file, "data.min_count=1", "model.characters.cell=none"), "the goat") == ["goat"]


def test_a_classifier_misses_words_only_where_it_reads_neither_characters_nor_their_n_grams(tmp_path: Path) -> None:
    file = table(tmp_path / "labels.tsv", LABELS)
    words_alone = ["model.encoder=rnn", "model.characters.cell=none", "data.text.min_count=1"]
    assert unknown(prepared("classification", file, *words_alone), "a Good movie") == ["movie"]
    assert unknown(prepared("classification", file, "model.encoder=rnn", "model.characters.cell=gru"), "go é") == ["é"]
    assert unknown(prepared("classification", file, "model.encoder=bag", "model.bag.characters=[3, 5]"), "xyz") == []


def test_a_language_model_names_tokens_and_not_the_ends_of_lines(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("one two\nthree\n" * 4, "utf-8")
    task = prepared("language_model", str(tmp_path / "text.txt"), "data.text.tokens=characters")
    assert unknown(task, "one three") == []
    assert unknown(task, "One Two") == ["O", "T"]


def test_numbers_and_pictures_need_no_vocabulary(tmp_path: Path) -> None:
    tasks = of_every_kind(tmp_path)
    for name in (name for name, kind in KINDS.items() if kind in ("frames", "vector", "places")):
        task = tasks[name]
        example = next(iter(task.read(task.settings.data.files("train"))))
        assert task.not_in_vocabulary(example) == [], name


def test_an_answer_lists_them_and_one_without_any_says_nothing(tmp_path: Path) -> None:
    model = untrained(tmp_path, words(tmp_path), "data.source.tokens=characters")
    strange, usual = model.predict(["Dog", "dog"])
    assert strange.detail["not_in_vocabulary"] == strange.not_in_vocabulary == ["D"]
    assert "not_in_vocabulary" not in usual.detail
    assert usual.not_in_vocabulary == []


def test_predict_says_each_set_of_symbols_once_beside_the_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    untrained(tmp_path, words(tmp_path), "data.source.tokens=characters")
    (tmp_path / "asked.txt").write_text("dog\nDog\nDOG\ngoD\n", "utf-8")
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "run"), str(tmp_path / "asked.txt")]) == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 4
    assert said.err.splitlines() == [
        "line 2: 'D' is not in the vocabulary: read as <unk>",
        "line 3: 'D', 'O', 'G' are not in the vocabulary: read as <unk>",
    ]
    assert main(["predict", str(tmp_path / "run"), str(tmp_path / "asked.txt"), "--json"]) == 0
    said = capsys.readouterr()
    assert '"not_in_vocabulary": ["D", "O", "G"]' in said.out
    assert said.err == ""


def test_predict_counts_what_it_does_not_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    untrained(tmp_path, words(tmp_path), "data.source.tokens=characters")
    (tmp_path / "asked.txt").write_text("\n".join("ABCDEFGHIJKL"), "utf-8")
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "run"), str(tmp_path / "asked.txt")]) == 0
    *named, rest = capsys.readouterr().err.splitlines()
    assert len(named) == 10
    assert rest == "2 more inputs hold symbols that are not in the vocabulary: --json lists them"
