"""The rules of CoNLL-U."""

from __future__ import annotations

from pathlib import Path

import pytest

from recurra.data.check import check
from recurra.data.checking.treebank import Fault, faults, faults_in

GOOD = """\
# sent_id = 1
# text = Vámonos al mar, ya
1-2	Vámonos	_	_	_	_	_	_	_	_
1	Vamos	ir	VERB	_	Mood=Imp|Number=Plur|Number[psor]=Sing	0	root	_	_
2	nos	nosotros	PRON	_	Case=Acc,Dat|PronType=Prs	1	obj	_	_
3-4	al	_	_	_	Typo=Yes	_	_	_	_
3	a	a	ADP	_	_	5	case	_	_
4	el	el	DET	_	_	5	det	_	_
5	mar	mar	NOUN	_	_	1	obl	_	SpaceAfter=No
6	,	,	PUNCT	_	_	1	punct	_	_
6.1	_	_	VERB	_	_	_	_	1:conj	_
6.2	_	_	VERB	_	_	_	_	1:conj	_
7	ya	ya	ADV	_	_	1	advmod	_	_

"""


def found_in(text: str) -> list[Fault]:
    return list(faults_in(enumerate(text.removesuffix("\n").split("\n"), 1)))


def test_a_good_sentence_has_no_faults() -> None:
    assert found_in(GOOD + GOOD.replace("# text", "#text")) == []


@pytest.mark.parametrize(
    ("before", "after", "line", "column", "what"),
    [
        ("5\tmar", "6\tmar", 9, "id", "an ID that does not follow: 6 after 4"),
        ("5\tmar", "x\tmar", 9, "id", "an ID that is no number, range or empty node: x"),
        ("3-4", "4-5", 6, "id", "a range that does not stand before its first word: 4-5"),
        ("3-4", "3-3", 6, "id", "a range that does not stand before its first word: 3-3"),
        ("1-2", "1-5", 6, "id", "a range inside another: 3-4"),
        ("3-4", "3-9", 13, "id", "a range that ends after the last word: 9 of 7"),
        ("6.2", "6.3", 12, "id", "an empty node that does not follow: 6.3"),
        ("6.1", "5.1", 11, "id", "an empty node that does not follow: 5.1"),
        ("Vámonos\t_\t_", "Vámonos\tir\t_", 3, "id", "a range with tags of its own: only its words have them"),
        ("ADP", "PREP", 7, "upos", "a tag that is not universal: PREP"),
        (
            "Case=Acc,Dat|PronType=Prs",
            "PronType=Prs|Case=Acc",
            5,
            "feats",
            "features that are not sorted: PronType=Prs",
        ),
        ("Case=Acc,Dat|PronType", "PronType=Int|PronType", 5, "feats", "a feature that is given twice: PronType=Int"),
        ("Case=Acc,Dat", "Case", 5, "feats", "a feature that is not Name=Value with capitals: Case"),
        ("Case=Acc,Dat", "case=Acc", 5, "feats", "a feature that is not Name=Value with capitals: case=Acc"),
        ("\t5\tdet", "\t8\tdet", 8, "head", "a head that is not another word of the sentence: 8"),
        ("\t5\tdet", "\t4\tdet", 8, "head", "a head that is not another word of the sentence: 4"),
        ("\tadvmod", "\tad mod", 13, "deprel", "a blank inside a cell"),
        ("\tir\t", "\tir \t", 4, "lemma", "blanks at the start or end of a cell"),
        ("\tir\t", "\t\t", 4, "lemma", "an empty cell: write _"),
        ("\tobl\t", "\t", 9, "", "9 columns in place of 10"),
        ("SpaceAfter=No", "_", 2, "", "# text that the tokens do not spell"),
        ("6.1\t", "# late\n6.1\t", 11, "", "a comment after the first word"),
        ("# sent_id", "\n# sent_id", 1, "", "an empty line that does not end a sentence"),
        ("7\tya", " \n7\tya", 13, "", "a line of blanks"),
    ],
)
def test_each_fault_is_found_in_its_line(before: str, after: str, line: int, column: str, what: str) -> None:
    assert before in GOOD
    found = found_in(GOOD.replace(before, after, 1))
    assert any((each.line, each.column) == (line, column) and each.what.startswith(what) for each in found), found


def test_a_file_must_end_with_an_empty_line_and_a_sentence_have_words() -> None:
    assert [each.what for each in found_in(GOOD.rstrip("\n"))] == ["the last sentence has no empty line after it"]
    assert [each.what for each in found_in("# alone\n\n")] == ["a sentence without words"]


def test_check_tells_of_what_can_be_read_though_it_breaks_a_rule(tmp_path: Path) -> None:
    file = tmp_path / "a.conllu"
    file.write_text((GOOD + GOOD).replace("ADP", "PREP").removesuffix("\n"))
    assert len(list(faults(file))) == 3
    said = check([file]).text()
    assert "odd: upos: a tag that is not universal, 2 rows" in said
    assert "odd: the last sentence has no empty line after it, 1 row" in said
