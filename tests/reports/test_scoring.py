"""Files of answers against files of predictions, in every format that may hold them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from recurra.errors import DataError, RecurraError
from recurra.reports.scoring import score_files

GOLD = [["DET", "NOUN", "VERB"], ["PRON", "VERB"]]
GUESS = [["DET", "VERB", "VERB"], ["PRON", "VERB"]]


def conllu(path: Path, sentences: list[list[str]]) -> Path:
    words = [[f"{n}\tw\t_\t{tag}\t_\t_\t0\t_\t_\t_" for n, tag in enumerate(tags, 1)] for tags in sentences]
    path.write_text("".join("# text\n" + "\n".join(lines) + "\n\n" for lines in words))
    return path


def conll(path: Path, sentences: list[list[str]]) -> Path:
    path.write_text("\n".join("".join(f"w\t{tag}\n" for tag in tags) for tags in sentences))
    return path


def tsv(path: Path, sentences: list[list[str]]) -> Path:
    path.write_text("tokens\ttags\n" + "".join(f"{'w ' * len(tags)}\t{' '.join(tags)}\n" for tags in sentences))
    return path


def text(path: Path, sentences: list[list[str]]) -> Path:
    path.write_text("".join(f"{' '.join(tags)}\n" for tags in sentences))
    return path


def jsonl(path: Path, sentences: list[list[str]]) -> Path:
    path.write_text("".join(json.dumps({"tokens": ["w"] * len(tags), "upos": tags}) + "\n" for tags in sentences))
    return path


WRITERS = {"conllu": conllu, "conll": conll, "tsv": tsv, "txt": text, "jsonl": jsonl}


@pytest.mark.parametrize("gold", WRITERS)
@pytest.mark.parametrize("guess", WRITERS)
def test_either_file_may_be_in_any_format(tmp_path: Path, gold: str, guess: str) -> None:
    right = WRITERS[gold](tmp_path / f"gold.{gold}", GOLD)
    given = WRITERS[guess](tmp_path / f"guess.{guess}", GUESS)
    f1 = {"DET": 1, "PRON": 1, "NOUN": 0, "VERB": 2 * 2 / (2 + 3)}
    assert score_files(right, given) == {
        "accuracy": 4 / 5,
        "macro_f1": sum(f1.values()) / 4,
        "exact_match": 1 / 2,
        "count": 5,
    }


def test_spans_are_scored_where_the_tags_mark_spans(tmp_path: Path) -> None:
    gold = conll(tmp_path / "gold.conll", [["B-x", "I-x", "O"], ["B-y"], ["O"]])
    guess = text(tmp_path / "guess.txt", [["B-x", "I-x", "B-y"], ["B-y"], ["B-x"]])
    scores = score_files(gold, guess)
    assert (scores["precision"], scores["recall"]) == (2 / 4, 1)
    assert scores["f1"] == pytest.approx(2 / 3)
    assert scores["exact_match"] == 1 / 3
    assert scores["accuracy"] == 3 / 5


def test_a_column_is_chosen_by_name_and_lines_of_text_have_but_one(tmp_path: Path) -> None:
    gold = tmp_path / "gold.tsv"
    gold.write_text("tokens\ttags\tlabel\nw w\tA B\tx\nw\tA\ty\n")
    guess = tmp_path / "guess.txt"
    guess.write_text("A A\tx\nA\tz\n")  # tags and label, as predict prints them
    assert score_files(gold, guess)["accuracy"] == 2 / 3
    labels = text(tmp_path / "labels.txt", [["x"], ["z"]])
    assert score_files(gold, labels, column="label")["accuracy"] == 1 / 2


def test_a_label_of_several_words_is_one_answer(tmp_path: Path) -> None:
    gold = tmp_path / "gold.tsv"
    gold.write_text("text\tlabel\na\tNew York\nb\tRome\n")
    guess = tmp_path / "guess.txt"
    guess.write_text("New Jersey\nRome\n")
    scores = score_files(gold, guess)
    assert (scores["accuracy"], scores["count"]) == (1 / 2, 2)


def test_an_element_without_a_gold_answer_does_not_count(tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_text('{"tags": ["A", null, "B"]}\n{"tags": ["", "B"]}\n')
    guess = text(tmp_path / "guess.txt", [["A", "A", "A"], ["B", "B"]])
    scores = score_files(gold, guess)
    assert (scores["accuracy"], scores["count"], scores["exact_match"]) == (2 / 3, 3, 1 / 2)


def test_empty_lines_and_compressed_files_are_read_as_they_are(tmp_path: Path) -> None:
    gold = tmp_path / "gold.txt.gz"
    gold.write_bytes(gzip.compress(b"A B\n\nA\n"))
    guess = text(tmp_path / "guess.txt", [["A", "A"], [], ["A"]])
    scores = score_files(gold, guess)
    assert (scores["accuracy"], scores["exact_match"], scores["count"]) == (2 / 3, 2 / 3, 3)


@pytest.mark.parametrize(
    ("gold", "guess", "column", "message"),
    [
        ("A\nB\n", "A\n", None, "gold.txt holds 2 answers, but {folder}/guess.txt 1: both files need the same number."),
        (
            "A\nB B\n",
            "A\nB\n",
            None,
            "gold.txt:2 has 2 tags, but {folder}/guess.txt:2 1: both files need one tag per elem",
        ),
        ("", "A\n", None, "gold.txt' is empty"),
        ("\n", "\n", None, "there is nothing to score: no element has a gold answer in 'text'"),
        ("B-x\n", "NOUN\n", None, "guess.txt: sentence 1: the tag 'NOUN' of step 1 is not O, B-type"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    tmp_path: Path, gold: str, guess: str, column: str | None, message: str
) -> None:
    for name, content in (("gold.txt", gold), ("guess.txt", guess)):
        (tmp_path / name).write_text(content)
    with pytest.raises(RecurraError) as refusal:
        score_files(tmp_path / "gold.txt", tmp_path / "guess.txt", column=column)
    assert message.format(folder=tmp_path) in str(refusal.value)


def test_a_column_that_is_not_there_is_refused_with_the_nearest(tmp_path: Path) -> None:
    gold = conllu(tmp_path / "gold.conllu", GOLD)
    with pytest.raises(DataError, match=r"gold\.conllu:1: there is no column 'upso'\. Did you mean 'upos'\?"):
        score_files(gold, gold, column="upso")
    table = tmp_path / "gold.tsv"
    table.write_text("a\tb\nc\td\n")
    with pytest.raises(
        DataError,
        match=r"gold\.tsv:1: there is no column 'tags'\. Known: column1.* with --column\. .* --task seq2seq\.",
    ):
        score_files(table, table)
    numbers = tmp_path / "gold.jsonl"
    numbers.write_text('{"tags": [1, 2]}\n')
    with pytest.raises(DataError, match=r"gold\.jsonl:1: 'tags' must hold words, but is \[1, 2\]\."):
        score_files(numbers, numbers)
