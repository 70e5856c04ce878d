"""Cells of Key=Value pairs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recurra.text.key_values import column_and_key, pairs_of, with_pairs

PAIRS = st.dictionaries(st.text("abAB[]", min_size=1, max_size=3), st.text("xyXY,", min_size=1, max_size=3), max_size=5)


@given(PAIRS)
def test_pairs_that_are_written_are_read_back_in_order(pairs: dict[str, str]) -> None:
    cell = with_pairs("_", pairs, is_sorted=True)
    assert dict(pairs_of(cell)) == pairs
    keys = [part.split("=")[0].lower() for part in cell.split("|")] if pairs else []
    assert keys == sorted(keys)


@given(PAIRS, PAIRS)
def test_only_the_given_keys_change(before: dict[str, str], given: dict[str, str]) -> None:
    cell = with_pairs(with_pairs("_", before, is_sorted=False), given, is_sorted=False)
    assert dict(pairs_of(cell)) == {**before, **given}


def test_a_note_without_a_value_stays_and_a_key_can_be_taken_away() -> None:
    assert with_pairs("Checked|SpaceAfter=No", {"SpaceAfter": "_"}, is_sorted=False) == "Checked"
    assert with_pairs("Case=Nom", {"Case": "_"}, is_sorted=True) == "_"


def test_a_colon_at_an_end_is_part_of_a_name() -> None:
    assert column_and_key("feats:") == ("feats:", None)
    assert column_and_key(":Case") == (":Case", None)
    assert column_and_key("feats:Number[psor]") == ("feats", "Number[psor]")
