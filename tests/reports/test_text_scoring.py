"""Files of texts against files of answers, in every format that may hold them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from recurra.cli import main
from recurra.errors import RecurraError
from recurra.reports.text_scoring import holds_pairs, score_texts

SOURCES = ["ein Hund läuft .", "zwei Katzen schlafen auf dem Sofa .", "Hallo !"]
GOLDS = ["a dog is running .", "two cats are sleeping on the sofa .", "Hello !"]
ANSWERS = ["a dog runs .", "two cats are sleeping on a sofa .", "Hello !"]


def written(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def tsv(folder: Path) -> str:
    return str(written(folder / "gold.tsv", [f"{a}\t{b}" for a, b in zip(SOURCES, GOLDS, strict=True)]))


def headed(folder: Path) -> str:
    rows = [f"{b}\t{a}" for a, b in zip(SOURCES, GOLDS, strict=True)]
    return str(written(folder / "gold.tsv", ["target\tsource", *rows]))


def jsonl(folder: Path) -> str:
    rows = [json.dumps({"source": a, "target": b}) for a, b in zip(SOURCES, GOLDS, strict=True)]
    return str(written(folder / "gold.jsonl", rows))


def parallel(folder: Path) -> str:
    return f"{written(folder / 'gold.de', SOURCES)},{written(folder / 'gold.en', GOLDS)}"


def plain(folder: Path) -> str:
    return str(written(folder / "gold.en", GOLDS))


def packed(folder: Path) -> str:
    (folder / "gold.txt.gz").write_bytes(gzip.compress("\n".join(GOLDS).encode()))
    return str(folder / "gold.txt.gz")


def single(folder: Path) -> str:
    return str(written(folder / "gold.jsonl", [json.dumps({"target": text}) for text in GOLDS]))


@pytest.mark.parametrize("gold", [tsv, headed, jsonl, parallel, plain, packed, single])
def test_right_answers_may_be_in_any_format(tmp_path: Path, gold: Callable[[Path], str]) -> None:
    found = score_texts(gold(tmp_path), written(tmp_path / "answers.txt", ANSWERS))
    assert list(found) == [
        *("bleu", "chrf", "ter", "rouge_l", "meteor"),
        *("exact_match", "word_error_rate", "symbol_error_rate", "count"),
    ]
    assert found["bleu"] == pytest.approx(BLEU(force=True).corpus_score(ANSWERS, [GOLDS]).score, abs=1e-9)
    assert found["chrf"] == pytest.approx(CHRF().corpus_score(ANSWERS, [GOLDS]).score, abs=1e-9)
    assert found["ter"] == TER().corpus_score(ANSWERS, [GOLDS]).score
    assert (found["exact_match"], found["count"]) == pytest.approx((1 / 3, 3))
    assert found["word_error_rate"] == found["symbol_error_rate"] == (2 + 1) / (5 + 8 + 2)


def test_answers_may_be_what_predict_prints_as_json(tmp_path: Path) -> None:
    rows = [json.dumps({"input": "x", "output": text, "score": 0.5}) for text in ANSWERS]
    assert score_texts(tsv(tmp_path), written(tmp_path / "answers.jsonl", rows)) == score_texts(
        tsv(tmp_path), written(tmp_path / "answers.txt", ANSWERS)
    )


def test_rows_with_the_same_source_are_references_of_one_answer(tmp_path: Path) -> None:
    gold = written(tmp_path / "gold.tsv", ["either\tIY DH ER", "either\tAY DH ER", "cat\tK AE T"])
    found = score_texts(gold, written(tmp_path / "answers.txt", ["AY DH ER", "AY DH ER", "K AA T"]))
    assert (found["word_error_rate"], found["symbol_error_rate"], found["count"]) == (1 / 2, 1 / 6, 2)


def test_the_word_error_rate_of_texts_counts_words_to_the_nearest_reference(tmp_path: Path) -> None:
    rows = [(0, "a dog runs there"), (0, "the dog is running right now"), (1, "two cats are sleeping here")]
    gold = written(tmp_path / "gold.tsv", [f"{SOURCES[source]}\t{target}" for source, target in rows])
    answers = ["the dog runs right there", "the dog runs right there", "two cats are"]
    found = score_texts(gold, written(tmp_path / "answers.txt", answers))
    assert found["word_error_rate"] == (2 + 2) / (4 + 5)
    assert found["exact_match"] == 0


def test_the_symbols_of_single_words_are_their_letters(tmp_path: Path) -> None:
    gold = written(tmp_path / "gold.tsv", ["walk\twalked", "go\twent"])
    found = score_texts(gold, written(tmp_path / "answers.txt", ["walked", "goed"]))
    assert (found["symbol_error_rate"], found["word_error_rate"]) == (4 / 10, 1 / 2)
    alone = score_texts(written(tmp_path / "gold.txt", ["walked", "went"]), tmp_path / "answers.txt")
    assert alone["symbol_error_rate"] == 4 / 10


def test_bleu_is_cut_and_sees_capitals_as_asked(tmp_path: Path) -> None:
    gold = written(tmp_path / "gold.txt", ["The U.S. isn't (so) big."])
    answers = written(tmp_path / "answers.txt", ["the U.S. isn't (so) big ."])
    found = score_texts(gold, answers, tokenize="none", lowercase=True)["bleu"]
    theirs = BLEU(tokenize="none", lowercase=True, force=True)
    assert found == pytest.approx(
        theirs.corpus_score(answers.read_text().splitlines(), [gold.read_text().splitlines()]).score
    )


def test_a_target_column_may_have_another_name(tmp_path: Path) -> None:
    rows = [json.dumps({"de": a, "en": b}) for a, b in zip(SOURCES, GOLDS, strict=True)]
    found = score_texts(written(tmp_path / "gold.jsonl", rows), written(tmp_path / "a.txt", SOURCES), column="de")
    assert found["exact_match"] == 1


@pytest.mark.parametrize(
    ("gold", "answers", "column", "message"),
    [
        (
            "a\tb\nc\td\n",
            "b\n",
            None,
            "gold.tsv holds 2 answers, but {folder}/answers.txt 1: both files need one answer per row",
        ),
        (
            "a\tb\na\tc\n",
            "b\nc\n",
            None,
            "answers.txt:2: this answer differs from line 1, but the source is the same. Rows of",
        ),
        ("a\tb\nc\n", "b\n", None, "gold.tsv:2: found one column"),
        ("", "b\n", None, "gold.tsv' is empty"),
        ("source\ttarget\na\tb\n", "b\n", "traget", "gold.tsv:2: there is no column 'traget'. Did you mean 'target'?"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    tmp_path: Path, gold: str, answers: str, column: str | None, message: str
) -> None:
    (tmp_path / "gold.tsv").write_text(gold)
    (tmp_path / "answers.txt").write_text(answers)
    with pytest.raises(RecurraError) as refusal:
        score_texts(tmp_path / "gold.tsv", tmp_path / "answers.txt", column=column)
    assert message.format(folder=tmp_path) in str(refusal.value)


def test_answers_without_a_known_column_and_empty_texts_are_refused(tmp_path: Path) -> None:
    gold = written(tmp_path / "gold.txt", ["a"])
    with pytest.raises(RecurraError, match=r"answers\.jsonl:1: there is no column 'output'\. Known: guess, score"):
        score_texts(gold, written(tmp_path / "answers.jsonl", ['{"guess": "a", "score": 1}']))
    with pytest.raises(RecurraError, match=r"answers\.jsonl:1: 'output' must hold a text"):
        score_texts(gold, written(tmp_path / "answers.jsonl", ['{"output": 3}']))
    with pytest.raises(RecurraError, match=r"gold\.txt' is empty"):
        score_texts(written(tmp_path / "gold.txt", []), written(tmp_path / "answers.txt", []))


def test_an_empty_line_is_an_empty_text(tmp_path: Path) -> None:
    gold = written(tmp_path / "gold.txt", ["a b", "", "c"])
    found = score_texts(gold, written(tmp_path / "answers.txt", ["a b", "", ""]))
    assert (found["exact_match"], found["count"]) == pytest.approx((2 / 3, 3))


def test_files_with_sources_and_targets_are_known_for_pairs(tmp_path: Path) -> None:
    assert [holds_pairs(make(tmp_path)) for make in (headed, jsonl, parallel)] == [True] * 3
    assert [holds_pairs(make(tmp_path)) for make in (tsv, plain, packed, single)] == [False] * 4


def test_the_command_scores_pairs_as_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = str(written(tmp_path / "answers.txt", ANSWERS))
    assert main(["score", jsonl(tmp_path), answers, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == score_texts(jsonl(tmp_path), answers)
    assert main(["score", tsv(tmp_path), answers, "--task", "seq2seq", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert main(["score", plain(tmp_path), answers, "--task", "seq2seq", "--tokenize", "none", "--lowercase"]) == 0
    out = capsys.readouterr().out.split("\n")
    assert out[0].split()[0] == "bleu"
    assert out[-2].split() == ["count", "3"]


def test_the_command_scores_tags_as_before_and_refuses_what_it_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = str(written(tmp_path / "gold.txt", ["A B", "A"]))
    assert main(["score", gold, gold, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1
    assert main(["score", headed(tmp_path), headed(tmp_path), "--task", "tagging", "--json"]) == 0
    assert "bleu" not in json.loads(capsys.readouterr().out)
    assert main(["score", gold, gold, "--task", "seqseq"]) == 2
    assert "--task = 'seqseq' is not known. Did you mean 'seq2seq'?" in capsys.readouterr().err
    assert main(["score", gold, gold, "--lowercase"]) == 2
    assert "--tokenize and --lowercase apply only to texts: add --task seq2seq." in capsys.readouterr().err


def test_the_command_says_why_ter_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = str(written(tmp_path / "gold.txt", ["a " * 300]))
    assert main(["score", gold, gold, "--task", "seq2seq", "--json"]) == 0
    seen = capsys.readouterr()
    assert "ter" not in json.loads(seen.out)
    assert "TER is not computed: it needs pip install 'recurra[metrics]', and texts of 200 words at most." in seen.err
