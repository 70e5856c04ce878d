"""How the files of a task are read: headers that hold a named column, and files of another kind than training's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recurra.config.common import Data
from recurra.config.given import Given
from recurra.errors import ConfigError, DataError
from recurra.reading.labelled import labelled, with_columns
from recurra.reading.pairs import pairs
from recurra.reading.tables import task_rows
from recurra.reading.texts import passages
from recurra.settings import settings_from
from recurra.tasks.classification import Classification
from recurra.tasks.language_model import LanguageModel
from recurra.tasks.seq2seq import Seq2Seq
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import Task

INTENTS = "sentence\tintent\nplay jazz\tmusic\nbook a table\tfood\n"


def resolved(task: type[Task[Any, Any, Any]], file: Path, *overrides: str) -> Any:
    """The settings of data after a look at the file."""
    settings: Any = Given().files({"train": file}, "{}=").options(overrides).settings(task.Settings)
    return task.resolved(settings).data


def test_a_first_line_that_holds_a_named_column_is_a_header(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(INTENTS)
    data = resolved(Classification, tmp_path / "a.tsv", "data.text=sentence", "data.label=intent")
    assert [(each.text, each.labels) for each in labelled([tmp_path / "a.tsv"], data)] == [
        ("play jazz", ("music",)),
        ("book a table", ("food",)),
    ]


def test_a_language_model_reads_the_named_column_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,body\n1,one two\n2,three\n")
    data = resolved(LanguageModel, tmp_path / "a.csv", "data.text=body")
    assert [each.text for each in passages([str(tmp_path / "a.csv")], data)] == ["one two\nthree"]


def test_a_tagger_reads_the_named_columns_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("words,classes\nthey run,PRON VERB\n")
    data = resolved(Tagging, tmp_path / "a.csv", "data.tokens=words", 'data.tags=["classes"]')
    assert [row.values["words"] for row in task_rows(tmp_path / "a.csv", data, "words")] == ["they run"]


def test_a_column_that_a_header_lacks_is_said_by_the_names_of_the_header(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\nplay jazz,music\nbook a table,food\n")
    (tmp_path / "b.csv").write_text("text,other\nplay jazz,3\n")
    data = resolved(Classification, tmp_path / "a.csv")
    with pytest.raises(DataError, match=r"b\.csv:2: there is no column 'label'.* Known: text, other"):
        list(labelled([tmp_path / "b.csv"], data))


def test_header_false_stands_whatever_the_first_line_holds(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("column1\tx\nb\ty\n")
    data = Data(train=str(tmp_path / "a.tsv"), format={"name": "tsv", "header": False})
    assert len(list(task_rows(tmp_path / "a.tsv", data, "column1"))) == 2


def test_a_classifier_trained_on_a_table_scores_fasttexts_format(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("play jazz\tmusic\nbook a table\tfood\n")
    (tmp_path / "b.ft").write_text("__label__music play rock\n__label__food eat\n")
    data = with_columns(settings_from(Classification.Settings, {"data": {"train": str(tmp_path / "a.tsv")}}).data)
    assert data.columns == ["text", "label"]
    assert [each.labels for each in labelled([tmp_path / "b.ft"], data)] == [("music",), ("food",)]


def test_columns_of_training_data_that_has_its_own_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.ft").write_text("__label__music play rock\n")
    with pytest.raises(ConfigError, match="the columns of a fasttext file are fixed"):
        task_rows(tmp_path / "a.ft", Data(train=str(tmp_path / "a.ft"), columns=["text", "label"]))


def test_columns_of_the_format_mean_the_same_as_those_of_data(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("a story\ta question\tan answer\nanother story\tanother one\tno\n")
    found = resolved(Seq2Seq, file, 'data.format={name="tsv", columns=["source", "source", "target"]}')
    assert found.columns == ["source", "source", "target"]
    assert next(pairs([file], found)).source == ("a story", "a question")
    labels = resolved(Classification, file, 'data.format={name="tsv", columns=["_", "text", "label"]}')
    assert [(row.text, row.labels) for row in labelled([file], labels)][1] == ("another one", ("no",))


def test_several_columns_of_text_are_read_one_after_the_other(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("a dog runs\tan animal moves\tyes\na dog runs\tit rains\tno\n")
    data = resolved(Classification, file, 'data.columns=["text", "text", "label"]')
    first = next(labelled([file], data))
    assert (first.text, first.words) == ("a dog runs an animal moves", None)


def test_two_columns_of_tags_need_names_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("the cat\tX\tY\na dog\tX\tY\n")
    with pytest.raises(ConfigError, match=r"names 'tags' 2 times.*but 'tokens' 1 times.*data\.tags = "):
        resolved(Tagging, file, 'data.columns=["tokens", "tags", "tags"]')
    file.write_text("the\tcat\tX\tY\na\tdog\tX\tY\n")
    assert resolved(Tagging, file, 'data.columns=["tokens", "tokens", "tags", "tags"]').tags == ["tags"]
