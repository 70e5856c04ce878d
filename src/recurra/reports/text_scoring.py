"""Answers that are texts against the right ones, file against file: `recurra score` for sequence to sequence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from recurra.config import Seq2SeqData, Text
from recurra.data.files import extension, lines, parallel_files
from recurra.data.formats import Row, endings, rows
from recurra.errors import DataError
from recurra.named import did_you_mean
from recurra.reading.asked import PLAIN
from recurra.reading.pair_columns import place_of
from recurra.reading.pair_tokens import with_tokens
from recurra.reading.pairs import key_of, pairs, text_of, with_columns
from recurra.scoring.pair_scores import PairAnswers, pair_scores, with_words
from recurra.settings import Part
from recurra.text import tokenizer

GIVEN = ("output", "target", "text")
"""Columns that hold given answers, in the order in which they are looked for: as predict --json calls them, first."""


class Right(NamedTuple):
    """The right answers of a file; rows with the same source are several references of one item."""

    sources: list[str]
    golds: list[str]
    lines: list[int]
    tokens: Part  # what a symbol is


def holds_pairs(gold: str | Path) -> bool:
    """Whether a file has sources and targets: parallel files, or columns of these names."""
    if len(parallel_files(gold)) > 1:
        return True
    return extension(gold) in endings() and {"source", "target"} <= next(rows(gold)).values.keys()


def score_texts(
    gold: str | Path,
    predicted: str | Path,
    *,
    column: str | None = None,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> dict[str, float]:
    """BLEU, chrF, TER, ROUGE-L, METEOR, exact match and error rates of answers in the same order as the right ones.

    The right ones are pairs in any format, parallel files as in "test.en,test.de", or a text a line; the answers a text
    a line, or what `recurra predict --json` prints. Rows with the same source are several references of one item.
    Symbols are characters where most targets are one word, and otherwise what blanks separate.
    """
    right = right_answers(gold, column)
    given = given_answers(predicted)
    if len(given) != len(right.golds):
        raise DataError(
            f"{gold} holds {len(right.golds):,} answers, but {predicted} {len(given):,}: both files need one answer "
            f"per row, "
            f"also where rows have the same source."
        )
    _check_one_answer_each(right, given, gold, predicted)
    into_tokens = tokenizer("words" if right.tokens == "subwords" else right.tokens)
    tokens = [into_tokens.split(text) for text in right.golds]
    answers = PairAnswers(
        right.golds,
        right.sources,
        [text for text, _ in given],
        gold_tokens=tokens,
        answer_tokens=[into_tokens.split(text) for text, _ in given],
        source_lengths=[len(each) for each in tokens],
        tokenize=tokenize,
        lowercase=lowercase,
    )
    values = pair_scores(with_words(answers, into_tokens), first="bleu").scores().values
    return {**values, "count": int(values["count"])}


def right_answers(gold: str | Path, column: str | None) -> Right:
    """What should have been written. A text without a source is an item of its own."""
    single = _single_column(gold, column)
    data = Seq2SeqData(
        train=str(gold), empty="keep", source=Text(tokens="auto"), target=Text(tokens="auto", column=column)
    )
    if single is not None:
        texts = [text for text, _ in single]
        tokens = with_tokens(data, (), texts, 0).target.tokens
        return Right([str(number) for number in range(len(texts))], texts, [line for _, line in single], tokens)
    data = with_columns(data)
    found = list(pairs([gold], data))
    return Right(
        [key_of(pair) for pair in found],
        [pair.target or "" for pair in found],
        [pair.line for pair in found],
        data.target.tokens,
    )


def given_answers(predicted: str | Path) -> list[tuple[str, int]]:
    """What was written, and in which lines."""
    if extension(predicted) in PLAIN or extension(predicted) not in endings():
        return [(text, number) for number, text in lines(predicted)]
    return [_text(row, predicted, GIVEN) for row in rows(predicted)]


def _single_column(gold: str | Path, column: str | None) -> list[tuple[str, int]] | None:
    """The texts of a file that has no sources; None where it has."""
    if len(parallel_files(gold)) > 1:
        return None
    if extension(gold) in PLAIN or extension(gold) not in endings():
        return [(text, number) for number, text in lines(gold)] or _nothing(gold)
    if len(next(rows(gold)).values) > 1:
        return None
    return [_text(row, gold, [column] if column else list(row.values)) for row in rows(gold)]


def _text(row: Row, path: str | Path, names: Sequence[str]) -> tuple[str, int]:
    place = place_of(path, row.line)
    for name in names:
        if name in row.values:
            return text_of(row.values[name], place, name), row.line
    raise DataError(f"{place}: there is no column '{names[0]}'. {did_you_mean(names[0], row.values)}")


def _nothing(path: str | Path) -> list[tuple[str, int]]:
    raise DataError(f"'{path}' is empty: it has no rows.")


def _check_one_answer_each(
    right: Right, given: Sequence[tuple[str, int]], gold: str | Path, predicted: str | Path
) -> None:
    first: dict[str, int] = {}
    for number, source in enumerate(right.sources):
        before = first.setdefault(source, number)
        if given[before][0] != given[number][0]:
            raise DataError(
                f"{predicted}:{given[number][1]}: this answer differs from line {given[before][1]}, but the source "
                f"is the same. Rows of {gold} with the same source count as several references for one answer: "
                "give the same answer in each."
            )
