"""CoNLL-U files whose cells change while all else stays."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from recurra.data.conllu_file import conllu_sentences, grouped, with_cells

TEXT = """\
# newdoc id = d
# text = du thé
1-2	du	_	_	_	_	_	_	_	_
1	de	de	ADP	p	Case=Gen	3	case	3:case	_
2	le	le	DET	d	_	3	det	_	Checked
2.1	_	_	X	_	_	_	_	0:root	_
3	thé	thé	NOUN	n	Gender=Masc|Number=Sing	0	root	_	SpaceAfter=No

# text = ah
1	ah	ah	INTJ	_	_	0	root	_	_

"""


def test_a_file_is_written_back_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "a.conllu"
    file.write_text(TEXT)
    assert "".join(sentence.with_columns({}) for sentence in conllu_sentences(file)) == TEXT


def test_only_the_cells_of_given_columns_change() -> None:
    first, _ = grouped(enumerate(TEXT.splitlines(), 1))
    columns = {
        "upos": ["X", "Y", "Z"],
        "feats:Number": ["_", "Plur", "_"],
        "misc:Ref": ["1", "_", "2"],
        "ner": ["O"] * 3,
    }
    wanted = TEXT.partition("\n\n")[0] + "\n\n"
    wanted = wanted.replace("ADP", "X").replace("DET\td\t_", "Y\td\tNumber=Plur").replace("NOUN", "Z")
    wanted = wanted.replace("Gender=Masc|Number=Sing", "Gender=Masc").replace("3:case\t_", "3:case\tRef=1|ner=O")
    wanted = wanted.replace("Checked", "Checked|ner=O").replace("SpaceAfter=No", "SpaceAfter=No|Ref=2|ner=O")
    assert first.with_columns(columns) == wanted


def test_a_comment_is_added_after_the_others() -> None:
    _, second = grouped(enumerate(TEXT.splitlines(), 1))
    assert second.with_columns({}, {"label": "Cry"}).startswith("# text = ah\n# label = Cry\n1\tah")


def test_tokens_hold_the_words_of_ranges() -> None:
    first, second = grouped(enumerate(TEXT.splitlines(), 1))
    assert [(token.form, [word.form for word in token.words]) for token in first.tokens()] == [
        ("du", ["de", "le"]),
        ("thé", ["thé"]),
    ]
    assert first.tokens()[1].words[0].feats == "Gender=Masc|Number=Sing"
    assert (first.line, second.line) == (1, 9)


@given(st.dictionaries(st.sampled_from(["feats:B", "feats:a", "feats:C[x]"]), st.sampled_from(["_", "Y"])))
def test_features_are_sorted_whatever_is_set(values: dict[str, str]) -> None:
    cell = with_cells(["1", "w", "_", "_", "_", "A=1|D=2", "_", "_", "_", "_"], values)[5]
    keys = [part.partition("=")[0].lower() for part in cell.split("|")]
    assert keys == sorted(keys)
    assert {"a=1", "d=2"} <= set(cell.lower().split("|")) or "feats:a" in values


def test_bars_in_tags_that_go_to_misc_do_not_end_a_pair() -> None:
    assert with_cells(["1", "w", *"_" * 8], {"slot": "a|b"})[9] == "slot=a/b"
