"""The SGML and XML of WMT and IWSLT: segments, both sides of a file, parallel files, and refusals with their lines."""

from __future__ import annotations

import gzip
import html
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.cli import main
from recurra.data.formats import Segments, Tagged, reader, rows
from recurra.errors import DataError

SOURCE = """<srcset setid="newstest" srclang="any">
<doc sysid="ref" docid="paper/1" genre="news" origlang="en">
<hl>
<seg id="1">Salt &amp; pepper</seg>
</hl>
<p>
<seg id="2">AT&T is
  a firm.</seg><SEG ID='3'> a &lt; b </SEG>
</p>
</doc>
<doc docid="paper/2"><seg id="1"></seg></doc>
</srcset>
"""
REFERENCE = SOURCE.replace("srcset", "refset").replace("Salt &amp; pepper", "Salz und Pfeffer")
IWSLT = """<?xml version="1.0" encoding="UTF-8"?>
<mteval>
<refset setid="dev2010" srclang="de" trglang="en">
<doc docid="535" genre="lectures">
<url>http://www.ted.com/talks/a</url>
<title>A title</title>
<seg id="1"> The first words. </seg>
<seg id="2">The next.</seg>
</doc>
</refset>
</mteval>
"""
WMT = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="news2021.en-de">
  <doc id="a" origlang="en">
    <src lang="en"><p>
      <seg id="1">One.</seg>
      <seg id="2">Two.</seg>
    </p></src>
    <ref lang="de" translator="A"><p>
      <seg id="1">Eins.</seg>
      <seg id="2">Zwei.</seg>
    </p></ref>
    <ref lang="de" translator="B"><p><seg id="1">Eine.</seg><seg id="2">Zweie.</seg></p></ref>
    <hyp system="x" language="de"><p><seg id="1">No.</seg><seg id="2">No.</seg></p></hyp>
  </doc>
  <doc id="b"><src lang="en"><seg id="1">Three.</seg></src><ref lang="de"><seg id="1">Drei.</seg></ref></doc>
</dataset>
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_every_segment_of_a_set_is_a_row_with_its_line(tmp_path: Path) -> None:
    found = [(row.values, row.line) for row in rows(written(tmp_path / "a.sgm", SOURCE))]
    assert found == [
        ({"text": "Salt & pepper"}, 4),
        ({"text": "AT&T is a firm."}, 7),
        ({"text": "a < b"}, 8),
        ({"text": ""}, 11),
    ]


def test_what_is_told_of_a_talk_of_iwslt_is_not_read(tmp_path: Path) -> None:
    file = written(tmp_path / "IWSLT14.TED.dev2010.de-en.en.xml", IWSLT)
    assert [row.values["text"] for row in rows(file)] == ["The first words.", "The next."]


def test_a_file_with_both_sides_has_a_row_for_each_reference(tmp_path: Path) -> None:
    (tmp_path / "a.xml.gz").write_bytes(gzip.compress(WMT.encode()))
    found = [(row.values["source"], row.values["target"], row.line) for row in rows(tmp_path / "a.xml.gz")]
    assert found == [
        ("One.", "Eins.", 5),
        ("One.", "Eine.", 5),
        ("Two.", "Zwei.", 6),
        ("Two.", "Zweie.", 6),
        ("Three.", "Drei.", 15),
    ]
    blind = WMT.split("    <ref")[0] + "</doc></dataset>"
    assert [row.values for row in rows(written(tmp_path / "b.xml", blind))] == [{"source": "One."}, {"source": "Two."}]


def test_two_sets_are_parallel_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = f"{written(tmp_path / 'a.en.sgm', SOURCE)},{written(tmp_path / 'a.de.sgm', REFERENCE)}"
    first = next(iter(rows(both)))
    assert (first.values, first.line) == ({"source": "Salt & pepper", "target": "Salz und Pfeffer"}, 4)
    assert len([*rows(both)]) == 4
    assert main(["check", both]) == 0
    assert "seq2seq" in capsys.readouterr().out


def test_talks_are_parallel_without_the_lines_that_tell_of_them(tmp_path: Path) -> None:
    german, english = tmp_path / "train.tags.de-en.de", tmp_path / "train.tags.de-en.en"
    written(german, "<url>x</url>\n<translator href='t'>T</translator>\n<title>Titel</title>\nEins.\n Zwei. \n")
    written(english, "<url>x</url>\n<title>Title</title>\nOne.\n<b>Two.\n")
    assert isinstance(reader(german), Tagged)
    assert [row.values for row in rows(f"{german},{english}")] == [
        {"source": "Eins.", "target": "One."},
        {"source": "Zwei.", "target": "<b>Two."},
    ]
    written(english, "One.\n")
    with pytest.raises(DataError, match=r"train.tags.de-en.de:5: this line has no counterpart"):
        list(rows(f"{german},{english}"))


def test_check_tells_what_can_be_done_with_a_file_of_both_sides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(written(tmp_path / "a.xml", WMT))]) == 0
    said = capsys.readouterr().out
    assert "5 rows" in said
    assert "segments" in said
    assert "recurra train seq2seq" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<doc>\n<seg id='1'>a\n", "a.sgm:2: this <seg> has no </seg>, and the file ends in line 2"),
        ("<seg id='1'>a\n<seg id='2'>b</seg>", "a.sgm:2: <seg id='2'> stands inside the <seg> of line 1"),
        ("<seg id='1'>a\n</doc>", "a.sgm:2: </doc> stands inside the <seg> of line 1"),
        ("<doc>\n</seg>", "a.sgm:2: </seg> closes a <seg> that was not opened"),
        ("<a><b>hello</b></a>\n", "a.sgm: there is no <seg> in it"),
        (WMT.replace('<seg id="2">Two.</seg>', ""), "a.sgm:10: segment '2' of document 'a' is in <ref>, but not in"),
        (
            WMT.replace('<seg id="2">Zwei.</seg>', "").replace('<seg id="2">Zweie.</seg>', ""),
            "a.sgm:6: segment '2' of document 'a' is in <src>, but not in <ref>",
        ),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DataError) as error:
        list(rows(written(tmp_path / "a.sgm", text)))
    assert said in str(error.value)


def test_segments_that_do_not_match_are_refused_with_both_lines(tmp_path: Path) -> None:
    source = written(tmp_path / "a.sgm", SOURCE)
    other = written(tmp_path / "b.sgm", REFERENCE.replace('docid="paper/2"', 'docid="paper/3"'))
    with pytest.raises(DataError, match=r"b.sgm:11: segment '1' of document 'paper/3' .*'paper/2' \(.*a.sgm:11\)"):
        list(rows(f"{source},{other}"))


def test_a_file_of_both_sides_is_not_one_of_two(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a.xml:5: this segment stands in <src>: .* Give it alone"):
        list(rows(f"{written(tmp_path / 'a.xml', WMT)},{written(tmp_path / 'b.sgm', SOURCE)}"))


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp", "Zs"]), min_size=1), min_size=1, max_size=5
    )
)
def test_any_text_that_is_escaped_is_read_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    file = tmp_path_factory.mktemp("segments") / "a.sgm"
    written(file, "".join(f'<seg id="{number}">{html.escape(text)}</seg>\n' for number, text in enumerate(texts)))
    assert [row.values["text"] for row in Segments().read(file)] == [" ".join(text.split()) for text in texts]
