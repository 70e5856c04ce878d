"""Sixty tables of the kinds people have: the command that `recurra check` prints reads each of them right.

For each table what the task then reads is compared with what was written into it. The shortest command, without any
setting, must read it right as well or refuse it with a sentence: it is never misread in silence.
"""

from __future__ import annotations

import csv
import gzip
import io
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from recurra import runs
from recurra.cli import main, parsed
from recurra.data.check import Report, check
from recurra.errors import RecurraError
from recurra.reading.labelled import LabelledSequence
from recurra.reading.pairs import Pair

Cells = Sequence[str]

TEXTS = [
    ("turn on the light", "light"),
    ("play some jazz, please", "music"),
    ('she said "stop" twice', "music"),
    ("switch the lamp off", "light"),
    ("wake me at seven", "alarm"),
    ("set an alarm for noon", "alarm"),
    ("dim it a little", "light"),
    ("next song", "music"),
    ("cancel my alarm", "alarm"),
]
LABELLED = [(f"{text} {'now ' * (k % 3)}{chr(97 + k % 7)}", label) for k, (text, label) in enumerate(TEXTS * 3)]
PAIRS = [(f"how do you say word {'abcdefghij'[k % 10]} {k}", f"comment dit-on mot {k}") for k in range(24)]
WORDS = [f"wal{'abcdefghij'[k % 10]}{chr(97 + k)}" for k in range(24)]
RAIN = [(k + 0.25, 100.5 - 2 * k) for k in range(24)]
DAYS = [f"2023-01-{k + 1:02}" for k in range(24)]


def joined(rows: Sequence[Cells], *, by: str = ",", end: str = "\n", quoting: Any = csv.QUOTE_MINIMAL) -> bytes:
    """A table as spreadsheets write it."""
    text = io.StringIO()
    csv.writer(text, delimiter=by, lineterminator=end, quoting=quoting).writerows(rows)
    return text.getvalue().encode()


def tabbed(rows: Sequence[Cells]) -> bytes:
    """A table with tabs and no quotes."""
    return "".join("\t".join(row) + "\n" for row in rows).encode()


class Table(NamedTuple):
    """A table, the task it is for and what its examples are."""

    title: str
    name: str
    content: bytes
    task: str
    truth: Sequence[Any]
    is_clear: bool = True  # False: it may be refused, in words that say what to write
    words: str = "header = true"  # what the refusal of `check` says, where it can read nothing


def labelled(title: str, header: str, row: Callable[[int, str, str], Cells], name: str, **options: Any) -> Table:
    """A table of texts and labels."""
    rows = [row(k, *pair) for k, pair in enumerate(LABELLED)]
    return _table(title, header, rows, name, "classification", options.pop("truth", LABELLED), **options)


def paired(title: str, header: str, row: Callable[[int, str, str], Cells], name: str, **options: Any) -> Table:
    """A table of sources and targets."""
    rows = [row(k, *pair) for k, pair in enumerate(PAIRS)]
    truth = options.pop("truth", [((source,), target) for source, target in PAIRS])
    return _table(title, header, rows, name, "seq2seq", truth, **options)


def dated(title: str, header: str, row: Callable[[int, float, float], Cells], name: str, **options: Any) -> Table:
    """A table of numbers, a row a step."""
    rows = [row(k, *pair) for k, pair in enumerate(RAIN)]
    return _table(title, header, rows, name, "forecasting", options.pop("truth", [RAIN]), **options)


def _table(
    title: str,
    header: str,
    rows: list[Cells],
    name: str,
    task: str,
    truth: Sequence[Any],
    *,
    is_clear: bool = True,
    words: str = "header = true",
    start: bytes = b"",
    encoding: str = "utf-8",
    **style: Any,
) -> Table:
    rows = [header.split(","), *rows] if header else rows
    content = (tabbed(rows) if ".tsv" in name else joined(rows, **style)).decode().encode(encoding)
    content = gzip.compress(start + content) if name.endswith(".gz") else start + content
    return Table(title, name, content, task, truth, is_clear, words)


def comma(number: float) -> str:
    return f"{number:.2f}".replace(".", ",")


TABLES = [
    labelled("header", "text,label", lambda k, t, c: (t, c), "a.csv"),
    labelled("usual names", "sentence,intent", lambda k, t, c: (t, c), "a.tsv"),
    labelled("capitals", "Review,Sentiment", lambda k, t, c: (t, c), "a.csv"),
    labelled("label first", "intent,utterance", lambda k, t, c: (c, t), "a.csv"),
    labelled("no header", "", lambda k, t, c: (t, c), "a.csv"),
    labelled("no header, tabs", "", lambda k, t, c: (t, c), "a.tsv"),
    labelled("no header, label first", "", lambda k, t, c: (c, t), "a.tsv"),
    labelled("unnamed index", ",text,label", lambda k, t, c: (str(k), t, c), "a.csv"),
    labelled("Unnamed: 0", "Unnamed: 0,review,sentiment", lambda k, t, c: (str(k), t, c), "a.csv"),
    labelled("index without header", "", lambda k, t, c: (str(k), t, c), "a.csv"),
    labelled("id", "id,text,label", lambda k, t, c: (f"x{k}", t, c), "a.tsv"),
    labelled("id and date", "id,date,sentence,intent", lambda k, t, c: (f"{k}", DAYS[k % 3], t, c), "a.csv"),
    labelled("dates that recur, last", "sentence,intent,day", lambda k, t, c: (t, c, f"01/0{k % 4 + 1}/2023"), "a.csv"),
    labelled("user and split", "user_id,tweet,label,split", lambda k, t, c: (f"u{k % 3}", t, c, "train"), "a.csv"),
    labelled("odd names", "bemerkung,art", lambda k, t, c: (t, c), "a.csv", is_clear=False),
    labelled("odd names above numbers", "nr,bemerkung,art", lambda k, t, c: (str(k), t, c), "a.csv"),
    labelled("byte order mark", "text,label", lambda k, t, c: (t, c), "a.csv", start=b"\xef\xbb\xbf"),
    labelled("CRLF", "sentence,intent", lambda k, t, c: (t, c), "a.csv", end="\r\n"),
    labelled("all quoted", "sentence,intent", lambda k, t, c: (t, c), "a.csv", quoting=csv.QUOTE_ALL),
    labelled("Excel", "Text,Label", lambda k, t, c: (t, c), "a.csv", by=";", end="\r\n", start=b"\xef\xbb\xbf"),
    labelled("tabs in a csv", "sentence,intent", lambda k, t, c: (t, c), "a.csv", by="\t"),
    labelled("semicolons without header", "", lambda k, t, c: (t, c), "a.csv", by=";"),
    labelled("compressed", "sentence,intent", lambda k, t, c: (t, c), "a.tsv.gz"),
    labelled("two labels", "sentence,topic,intent", lambda k, t, c: (t, "x" * (k % 2 + 1), c), "a.csv", is_clear=False),
    paired("pairs with header", "source,target", lambda k, s, t: (s, t), "a.tsv"),
    paired("pairs without header", "", lambda k, s, t: (s, t), "a.tsv"),
    paired("question and answer", "question,answer", lambda k, s, t: (s, t), "a.csv"),
    paired("answer first", "answer,question", lambda k, s, t: (t, s), "a.csv"),
    paired("languages", "English,French", lambda k, s, t: (s, t), "a.csv", by=";"),
    paired("id and pair", "id,source,target", lambda k, s, t: (str(k), s, t), "a.tsv"),
    paired(
        "context, question, answer",
        "context,question,answer",
        lambda k, s, t: (f"a story of number {k}", s, t),
        "a.csv",
        truth=[((f"a story of number {k}", source), target) for k, (source, target) in enumerate(PAIRS)],
    ),
    _table(
        "words",
        "word,pronunciation",
        [(word, " ".join(word)) for word in WORDS],
        "a.tsv",
        "seq2seq",
        [((word,), " ".join(word)) for word in WORDS],
    ),
    dated("dates", "date,rain,sun", lambda k, a, b: (DAYS[k], str(a), str(b)), "a.csv"),
    dated("dates in German", "Datum,Regen,Sonne", lambda k, a, b: (f"{k + 1:02}.01.2023", str(a), str(b)), "a.csv"),
    dated("day first", "date,rain,sun", lambda k, a, b: (f"{k + 1:02}/01/2023", str(a), str(b)), "a.csv"),
    dated("month first", "date,rain,sun", lambda k, a, b: (f"01/{k + 1:02}/2023", str(a), str(b)), "a.csv"),
    dated("decimal commas", "datum,regen,sonne", lambda k, a, b: (DAYS[k], comma(a), comma(b)), "a.csv", by=";"),
    dated("no header", "", lambda k, a, b: (DAYS[k], str(a), str(b)), "a.tsv"),
    dated("sensors", "time,T1 (°C),T2 (°C)", lambda k, a, b: (str(k / 2), str(a), str(b)), "a.csv"),
    dated("id and time", "id,timestamp,rain,sun", lambda k, a, b: (str(k), DAYS[k], str(a), str(b)), "a.csv"),
    dated(
        "many series",
        "unique_id,ds,rain,sun",
        lambda k, a, b: ("abc"[k % 3], DAYS[k // 3], str(a), str(b)),
        "a.csv",
        truth=[RAIN[series::3] for series in range(3)],
    ),
    dated(
        "series one after the other",
        "series_id,step,rain,sun",
        lambda k, a, b: (str(k // 2), str(k % 2 + 1), str(a), str(b)),
        "a.csv",
        truth=[RAIN[start : start + 2] for start in range(0, 24, 2)],
    ),
    dated(
        "day or month",
        "date,rain,sun",
        lambda k, a, b: (f"01/0{k % 9 + 1}/{2000 + k // 9}", str(a), str(b)),
        "a.csv",
        is_clear=False,
    ),
    labelled("empty columns at the end", "v1,v2,,,", lambda k, t, c: (c, t, "", "", ""), "a.csv"),
    labelled(
        "line ends in cells",
        "review,sentiment",
        lambda k, t, c: (f"{t}\n\n<br />{k}", c),
        "a.csv",
        truth=[(f"{text}\n\n<br />{k}", label) for k, (text, label) in enumerate(LABELLED)],
    ),
    labelled(
        "two sentences",
        "gold_label,sentence1,sentence2",
        lambda k, t, c: (c, t, f"{t} and so on"),
        "a.tsv",
        is_clear=False,
    ),
    labelled(
        "several classes of 0 and 1",
        "id,comment_text,rude,loud",
        lambda k, t, c: (f"x{k}", t, str(k % 2), str(k % 3 % 2)),
        "a.csv",
        is_clear=False,
    ),
    labelled(
        "stars with decimal commas",
        "Bewertung,Sterne",
        lambda k, t, c: (t, f"{k % 4},5"),
        "a.csv",
        truth=[(text, f"{k % 4},5") for k, (text, _) in enumerate(LABELLED)],
        by=";",
    ),
    labelled(
        "names and countries",
        "name,country",
        lambda k, t, c: (WORDS[k % 24] + "abc"[k // 24], c),
        "a.csv",
        truth=[(WORDS[k % 24] + "abc"[k // 24], label) for k, (_, label) in enumerate(LABELLED)],
    ),
    labelled(
        "UTF-16", "text,label", lambda k, t, c: (t, c), "a.csv", is_clear=False, encoding="utf-16", words="UTF-16"
    ),
    labelled(
        "Latin-1",
        "text,label",
        lambda k, t, c: (f"{t} é", c),
        "a.csv",
        is_clear=False,
        encoding="latin-1",
        words="UTF-8",
    ),
    labelled(
        "measures of flowers",
        "length,width,species",
        lambda k, t, c: (f"{k % 5}.5", f"{k % 3}.25", c),
        "a.csv",
        is_clear=False,
    ),
    labelled(
        "one word per row",
        "Sentence #,Word,POS,Tag",
        lambda k, t, c: ("" if k % 4 else f"Sentence: {k // 4}", WORDS[k % 6], "NN", c),
        "a.csv",
        is_clear=False,
    ),
    paired("ids on both sides", "", lambda k, s, t: (str(1000 + k), s, str(5000 + 3 * k), t), "a.tsv"),
    paired(
        "licences",
        "",
        lambda k, s, t: (s, t, f"CC-BY 2.0 (France) #{2877 + k} (CM) & #{1158 + 2 * k} (Wittydev) by user{k}"),
        "a.tsv",
        is_clear=False,
    ),
    paired("licences, twice as many", "", lambda k, s, t: (s, t, f"#{k} of #{k + 99}, #{k + 999}"), "a.tsv"),
    paired(
        "answers that recur",
        "context,question,answer",
        lambda k, s, t: (f"a story of number {k}", s, "yes" if k % 2 else "no"),
        "a.csv",
        truth=[((f"a story of number {k}", s), "yes" if k % 2 else "no") for k, (s, _) in enumerate(PAIRS)],
    ),
    paired(
        "an answer that recurs, first",
        "answer,context,question",
        lambda k, s, t: ("yes" if k % 2 else "no", f"a story of number {k}", s),
        "a.csv",
        truth=[((f"a story of number {k}", s), "yes" if k % 2 else "no") for k, (s, _) in enumerate(PAIRS)],
    ),
    dated(
        "two branches in German",
        "Datum,Filiale,Regen,Sonne",
        lambda k, a, b: (f"{k // 2 + 1:02}.01.2023", ("Nord", "Süd")[k % 2], comma(a), comma(b)),
        "a.csv",
        by=";",
        truth=[RAIN[branch::2] for branch in range(2)],
    ),
    dated(
        "thousands separators",
        "Date,Rain,Sun,Volume",
        lambda k, a, b: (DAYS[k], str(a), str(b), f"{1234567 + 999 * k:,}"),
        "a.csv",
    ),
    dated("seconds since 1970", "ts,rain,sun", lambda k, a, b: (str(1700000000 + 60 * k), str(a), str(b)), "a.csv"),
    dated("newest first", "date,rain,sun", lambda k, a, b: (DAYS[23 - k], str(a), str(b)), "a.csv", is_clear=False),
    dated(
        "a sum below",
        "month,rain,sun",
        lambda k, a, b: (DAYS[k] if k < 23 else "Total", str(a), str(b)),
        "a.csv",
        is_clear=False,
        truth=[RAIN[:23]],
    ),
    dated("prices in euros", "date,price", lambda k, a, b: (DAYS[k], f"€ {a}"), "a.csv", is_clear=False),
    dated(
        "comments above",
        "time,rain,sun",
        lambda k, a, b: (str(k), str(a), str(b)),
        "a.csv",
        is_clear=False,
        start=b"# exported by station 7\n",
        words="remove comments",
    ),
    dated(
        "sensors without time",
        "T1,T2",
        lambda k, a, b: (str(a % 7), str(b % 5)),
        "a.csv",
        is_clear=False,
        truth=[[(a % 7, b % 5) for a, b in RAIN]],
    ),
    dated("a series per row", "id,V1,V2,V3", lambda k, a, b: (f"M{k}", str(a), str(b), ""), "a.csv", is_clear=False),
]


def examples(arguments: Sequence[str]) -> list[Any]:
    """What the task of a command line reads, in the words of the truth above."""
    options = parsed(arguments)
    given = {name: getattr(options, name) for name in ("train", "valid", "test", "format", "columns")}
    this = runs.setup(options.what, given=given, overrides=options.set)
    task = this.kind.prepared(this.kind.resolved(this.settings))
    return [in_short(example) for example in task.read(task.settings.data.files("train"))]


def in_short(example: Any) -> Any:
    if isinstance(example, LabelledSequence):
        return (example.text, *example.labels)
    if isinstance(example, Pair):
        return (*example.features, *example.source), example.target
    return [tuple(step) for step in example.values.tolist()]


def outcome(arguments: Sequence[str], truth: Sequence[Any]) -> str:
    """right, wrong, or what is said."""
    try:
        return "right" if examples(arguments) == list(truth) else "wrong"
    except RecurraError as error:
        return str(error)


def checked(name: str) -> tuple[Report | None, str]:
    """The report of a file, or why there is none."""
    try:
        return check([name]), ""
    except RecurraError as error:
        return None, str(error)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.title)
def test_the_command_that_check_prints_reads_a_table_right(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(table.name).write_bytes(table.content)
    shortest = outcome(["train", table.task, "--train", table.name], table.truth)
    assert shortest != "wrong", "misread in silence"
    report, said = checked(table.name)
    if report is None:
        assert not table.is_clear, said
        assert table.words in said
        return
    service = next(service for service in report.tasks if service.task == table.task)
    if service.command is None:
        assert not table.is_clear, service.reason
        return
    found = outcome(shlex.split(service.command)[1:], table.truth)
    if table.is_clear:
        assert found == "right"
    else:
        assert found != "wrong" or service.guess, "a wrong guess that is not said"
        assert found == "right" or "Write" in found or service.guess


def test_there_are_sixty_tables() -> None:
    assert len(TABLES) >= 60


@pytest.mark.parametrize("title", ["Excel", "unnamed index"])
def test_the_command_that_check_prints_trains(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = next(table for table in TABLES if table.title == title)
    monkeypatch.chdir(tmp_path)
    Path(table.name).write_bytes(table.content)
    service = next(service for service in check([table.name]).tasks if service.task == table.task)
    assert service.command is not None
    small = ["--set", "training.steps=1", "--set", "model.hidden=4", "--set", "data.cache=false"]
    assert main([*shlex.split(service.command)[1:], *small]) == 0
    assert "the first line is taken for a header: " in capsys.readouterr().err
    assert main(["predict", "runs/classification", table.name]) == 0
    assert {*capsys.readouterr().out.split()} <= {"light", "music", "alarm"}


def said_by_train(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What one step of training on a table says on standard error."""
    small = ["--set", "training.steps=1", "--set", "model.hidden=4", "--set", "data.cache=false", "--out", "run"]
    assert main(["train", *arguments, *small]) == 0
    return capsys.readouterr().err


def test_columns_that_training_leaves_out_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_bytes(next(table for table in TABLES if table.title == "thousands separators").content)
    said = said_by_train(["forecasting", "--train", "a.csv"], capsys)
    assert "a.csv: the first line is taken for a header: Date, Rain, Sun, Volume; not used: Volume" in said
    assert "time: Date; values: Rain, Sun" in said


def test_a_target_of_two_values_is_said_to_be_learned_as_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [(f"q{k}", text, str(k % 2)) for k, (text, _) in enumerate(LABELLED)]
    Path("a.csv").write_bytes(joined([("qid", "question_text", "target"), *rows]))
    said = said_by_train(["classification", "--train", "a.csv"], capsys)
    assert "'target' is 0 or 1 and is learned as a number: for two classes, set data.label = \"target\"" in said
    service = next(service for service in check(["a.csv"]).tasks if service.task == "classification")
    assert service.command is not None
    wanted = [(text, str(k % 2)) for k, (text, _) in enumerate(LABELLED)]
    assert outcome(shlex.split(service.command)[1:], wanted) == "right"


def test_a_table_in_a_txt_file_is_said_to_need_its_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_bytes(tabbed(PAIRS))
    assert "set data.format = tsv, or give --format tsv" in check(["a.txt"]).text()
    assert "Set data.format = tsv, or give --format tsv." in outcome(["train", "seq2seq", "--train", "a.txt"], [])
    wanted = [((source,), target) for source, target in PAIRS]
    assert outcome(["train", "seq2seq", "--train", "a.txt", "--format", "tsv"], wanted) == "right"


def test_a_third_column_of_ever_new_texts_is_not_read_as_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_bytes(next(table for table in TABLES if table.title == "licences").content)
    said = outcome(["train", "seq2seq", "--train", "a.tsv"], [])
    assert said.startswith("a.tsv:1: the third column would be read as features of the source, but in 24 rows it has ")
    assert said.endswith('set data.columns = ["source", "target", "_"]; to read it, ["source", "target", "features"].')


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(DAYS[5 - k], "1") for k in range(5)], "the dates of 'a' do not ascend from row to row. Sort the rows by it"),
        (
            [(str(k % 3), "1") for k in range(5)],
            "no column is the time of the rows. If each row is the next step of one",
        ),
    ],
)
def test_why_a_table_of_numbers_is_no_series_is_said(
    rows: list[Cells], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_bytes(joined([("a", "b"), *rows]))
    assert f"forecasting: no, {said}" in check(["a.csv"]).text()


def test_a_column_of_numbers_that_ascend_is_said_to_be_a_guess(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_bytes(joined([("t1", "t2"), *((str(k * k), str(k % 3)) for k in range(9))]))
    assert "a guess: it takes t1 as the time, because its numbers ascend." in check(["a.csv"]).text()
