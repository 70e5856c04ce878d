"""Attention as numbers and links: the right token in the right place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from recurra.analysis.alignment import alignment, alignment_of, pharaoh
from recurra.errors import DataError
from recurra.tasks.task import Prediction
from recurra.text.visible import columns, shown

HOUSE = alignment(
    ["the", "little", "house"], ["das", "Häuschen"], [[0.8, 0.2, 0.0], [0.0, 0.45, 0.55], [0.0, 0.0, 1.0]], "en → de"
)


def even(rows: int, across: int) -> NDArray[np.float64]:
    return np.full((rows, across), 1 / across)


def test_an_answer_has_its_alignment_if_the_model_looked() -> None:
    answer = Prediction("ab", "x", -0.1, 1, {"tokens": ["x"], "alignment": [[0.3, 0.5, 0.2], [0.0, 0.0, 1.0]]})
    frames = alignment_of(answer, "a title")
    assert (frames.columns, frames.rows, frames.caption) == (("1", "2", "3"), ("x", "</s>"), "a title")
    assert np.asarray(frames.weights).tolist() == answer.detail["alignment"]
    letters = alignment_of(answer._replace(detail={**answer.detail, "source_tokens": ["a", "b", "</s>"]}))
    assert letters.columns == ("a", "b", "</s>")
    with pytest.raises(DataError, match=r"has no attention weights: call predict\(\.\.\., detail=True\)"):
        alignment_of(answer._replace(detail={"tokens": ["x"]}))


def test_letters_stand_over_their_columns() -> None:
    weights = [[0.9, 0.1, 0.0, 0.0, 0.0], [0.0, 0.6, 0.4, 0.0, 0.0], [0.0, 0.0, 0.13, 0.87, 0.0], [0, 0, 0, 0.3, 0.7]]
    assert alignment("teat", ["T", "IY", "T"], weights, "teat").text() == (
        "teat\n"  #
        "    t e a t ∎\n"
        "  T ██\n"
        " IY   ▒▒▒▒\n"
        "  T     ░░▓▓\n"
        "  ∎       ░░▓▓"
    )


def test_words_go_down_like_stairs_to_their_columns() -> None:
    assert HOUSE.text() == (
        "en → de\n"
        "          ┌ the\n"
        "          │ ┌ little\n"
        "          │ │ ┌ house\n"
        "      das ▓▓░░\n"
        " Häuschen   ▒▒▒▒\n"
        "        ∎     ██"
    )


def test_wide_letters_take_two_columns_of_a_terminal() -> None:
    assert alignment("お茶", ["tea", "茶"], np.eye(2)).text() == (
        "     お 茶\n"  #
        " tea ███\n"
        "  茶    ███"
    )
    assert [columns(text) for text in ("tea", "お茶", "ハ", "ﾊ", "e\u0301", "न\u094d", "")] == [3, 4, 2, 1, 1, 1, 0]


def test_words_from_right_to_left_are_held_in_their_place() -> None:
    line = alignment(["a"], ["שלום"], [[1.0]]).text().splitlines()[1]
    assert line == " \u200eשלום\u200e ██"


def test_colours_are_given_where_they_are_asked_for() -> None:
    text = alignment("ab", ["x"], [[0.0, 1.0]]).text(colour=True)
    assert text.splitlines()[1] == " x \033[48;5;53m  \033[0m\033[48;5;226m  \033[0m"
    assert "\033" not in alignment("ab", ["x"], [[0.0, 1.0]]).text()


@given(st.text(max_size=60))
def test_no_token_moves_the_cursor_or_breaks_a_line(token: str) -> None:
    text = shown(token)
    assert 0 <= columns(text) <= 24
    assert text
    assert len(alignment([token], [token], [[1.0]]).text().split("\n")) == 2
    assert all(letter.isprintable() or letter in "\u200c\u200d" for letter in text)


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(0.01, 1)))
def test_links_are_those_of_the_largest_weights(weights: NDArray[np.float64]) -> None:
    rows, across = weights.shape
    with_ends = np.pad(weights, ((0, 1), (0, 1)), constant_values=2.0)  # nothing is linked to or from an end
    pair = alignment(["s"] * across, ["t"] * rows, with_ends)
    links = [tuple(map(int, link.split("-"))) for link in pharaoh(pair).split()]
    assert [target for _, target in links] == list(range(rows))
    assert all(weights[target, source] == max(weights[target]) for source, target in links)
    soft = {tuple(map(int, link.split("-"))) for link in pharaoh(pair, threshold=0.5).split()}
    assert soft == {(s, t) for t in range(rows) for s in range(across) if weights[t, s] >= 0.5}


def test_a_token_that_looked_at_the_end_alone_is_linked_to_nothing() -> None:
    assert pharaoh(alignment("ab", "xy", [[0.0, 0.0, 1.0], [0.1, 0.2, 0.7]])) == "1-1"


def test_weights_that_do_not_fit_the_tokens_are_refused() -> None:
    with pytest.raises(DataError, match=r"of 1 target and 2 source tokens needs weights of shape \(1, 2\).*\(2, 4\)"):
        alignment("ab", "x", even(2, 4))
    with pytest.raises(DataError, match=r"found \(3,\)"):
        alignment("ab", "x", [1.0, 0.0, 0.0])
    with pytest.raises(DataError, match="at least one source and one target token"):
        alignment("", "x", np.zeros((1, 0)))
    with pytest.raises(DataError, match="or NaN was found"):
        alignment("a", "x", [[float("nan")]])
    with pytest.raises(DataError, match="a negative value"):
        alignment("a", "x", [[-0.1]])
