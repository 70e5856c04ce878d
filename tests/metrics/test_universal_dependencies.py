"""Two annotations of one text, as CoNLL 2018 counts them."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.cli import main
from recurra.errors import DataError
from recurra.metrics.universal_dependencies import UDToken, UDWord, agreements
from recurra.reports.treebank_scoring import score_treebanks

TREEBANKS = Path(__file__).parent / "treebanks"

# What the published script prints of these files (version 1.2 of 7 May 2018, as trankit 1.1.2 on PyPI carries it):
#   python trankit/utils/scorers/conll18_ud_eval.py -v gold.conllu system.conllu
# Of AligndAcc it prints none for words.
PUBLISHED = """\
Tokens     |     57.14 |     61.54 |     59.26 |
Sentences  |     50.00 |     50.00 |     50.00 |
Words      |     70.00 |     73.68 |     71.79 |
UPOS       |     65.00 |     68.42 |     66.67 |     92.86
XPOS       |     65.00 |     68.42 |     66.67 |     92.86
UFeats     |     65.00 |     68.42 |     66.67 |     92.86
AllTags    |     55.00 |     57.89 |     56.41 |     78.57
Lemmas     |     60.00 |     63.16 |     61.54 |     85.71
"""


# The same of two files that have several words, of one side, before a multi-word token of the other that touches them.
PUBLISHED_BEFORE = """\
Tokens     |     50.00 |     66.67 |     57.14 |
Sentences  |    100.00 |    100.00 |    100.00 |
Words      |     50.00 |     50.00 |     50.00 |
UPOS       |     50.00 |     50.00 |     50.00 |    100.00
XPOS       |     50.00 |     50.00 |     50.00 |    100.00
UFeats     |     50.00 |     50.00 |     50.00 |    100.00
AllTags    |     50.00 |     50.00 |     50.00 |    100.00
Lemmas     |     50.00 |     50.00 |     50.00 |    100.00
"""


@pytest.mark.parametrize(("prefix", "published"), [("", PUBLISHED), ("before.", PUBLISHED_BEFORE)])
def test_other_tokens_score_as_the_published_script_says(prefix: str, published: str) -> None:
    found = score_treebanks(TREEBANKS / f"{prefix}gold.conllu", TREEBANKS / f"{prefix}system.conllu")
    for line in published.splitlines():
        name, *wanted = (cell.strip() for cell in line.split("|"))
        each = found[name]
        said = [f"{100 * value:.2f}" for value in (each.precision, each.recall, each.f1)]
        assert said == wanted[:3], name
        if wanted[3]:
            assert f"{100 * (each.aligned_accuracy or 0):.2f}" == wanted[3], name


def words(*texts: str) -> list[list[UDToken]]:
    """A sentence of each text; "ab=a+b" is a token of several words."""
    sentences = []
    for text in texts:
        tokens = []
        for token in text.split():
            form, _, parts = token.partition("=")
            tokens.append(UDToken(form, tuple(map(UDWord, (parts or form).split("+")))))
        sentences.append(tokens)
    return sentences


TOKENS = st.lists(st.sampled_from(["a", "b", "ab", "ab=a+b", "ba=b+a", "aab=a+ab", "aab=x+y"]), min_size=1, max_size=6)


@given(TOKENS)
def test_a_text_agrees_with_itself(tokens: list[str]) -> None:
    found = agreements(words(" ".join(tokens)), words(" ".join(tokens)))
    assert all(each.f1 == 1 for each in found.values())


@given(TOKENS, st.data())
def test_words_that_share_tokens_are_aligned_as_many_as_can_be(tokens: list[str], data: st.DataObject) -> None:
    text = "".join(token.partition("=")[0] for token in tokens)
    cut = data.draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=6))
    gold, system = words(" ".join(tokens)), words(f"{text}={'+'.join([*cut, 'z'])}")
    # One token of several words covers all: then the longest common subsequence of all forms is aligned.
    forms = [word.form for token in gold[0] for word in token.words]
    longest = max(
        size for size in range(len(cut) + 1) if any(is_within(part, forms) for part in combinations(cut, size))
    )
    assert agreements(gold, system)["Words"].agreed == longest


def is_within(part: tuple[str, ...], forms: list[str]) -> bool:
    rest = iter(forms)
    return all(form in rest for form in part)


def test_words_across_the_end_of_a_stretch_are_not_aligned() -> None:
    found = agreements(words("ab=a+b cd e"), words("a bcd e"))
    assert found["Words"] == (4, 3, 2, 2)  # a and e; bcd begins inside of ab and ends outside


def test_case_does_not_matter_in_multi_word_tokens_and_blanks_matter_nowhere() -> None:
    gold = [[UDToken("Du", (UDWord("De"), UDWord("le"))), UDToken("1 0", (UDWord("1 0"),))]]
    system = [[UDToken("Du", (UDWord("de"), UDWord("LE"))), UDToken("10", (UDWord("10"),))]]
    assert agreements(gold, system)["Words"].f1 == 1


def test_only_universal_features_count_and_an_absent_lemma_is_always_right() -> None:
    gold = [[UDToken("a", (UDWord("a", lemma="_", feats="Case=Nom|Typo=Yes"),))]]
    system = [[UDToken("a", (UDWord("a", lemma="x", feats="Case=Nom|Number[psor]=Sing"),))]]
    found = agreements(gold, system)
    assert found["UFeats"].agreed == found["Lemmas"].agreed == 1
    assert agreements(system, gold)["Lemmas"].agreed == 0


def test_different_texts_are_refused_with_the_place() -> None:
    with pytest.raises(
        DataError, match=r"the texts differ from character 3 on .*…abc… on one side, …abd… on the other"
    ):
        agreements(words("ab c"), words("a bd"))


def test_nothing_is_scored_as_zero() -> None:
    found = agreements([[]], [[]])
    assert found["Words"].f1 == found["UPOS"].aligned_accuracy == 0


def test_score_prints_a_table_of_two_treebanks_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(TREEBANKS / "gold.conllu"), str(TREEBANKS / "system.conllu")]
    assert main(["score", *files]) == 0
    assert "UPOS          65.00  68.42 66.67            92.86" in capsys.readouterr().out
    assert main(["score", *files, "--json"]) == 0
    assert '"Lemmas": {"precision": 0.6,' in capsys.readouterr().out


def test_a_treebank_of_another_text_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.conllu"
    other.write_text("1\tno" + "\t_" * 8 + "\n\n")
    assert main(["score", str(TREEBANKS / "gold.conllu"), str(other)]) == 2
    assert "gold.conllu, " in (said := capsys.readouterr().err)
    assert "Both files must hold the same text" in said
    other.write_text("\n")
    assert main(["score", str(TREEBANKS / "gold.conllu"), str(other)]) == 2
    assert "other.conllu is empty: it has no sentences" in capsys.readouterr().err
    other.write_text("1\tno\n\n")
    assert main(["score", str(TREEBANKS / "gold.conllu"), str(other)]) == 2
    assert "other.conllu:1: found 2 columns, but CoNLL-U has 10" in capsys.readouterr().err
