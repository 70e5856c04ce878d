"""Data in memory: frames of pandas, polars and Arrow, and dicts, as what is trained on, asked and scored."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recurra
from recurra.data.frames import rows
from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.training.trained import Trained

ROWS: list[dict[str, object]] = [
    {"text": f"good {n} day", "label": "pos"} if n % 2 else {"text": f"bad {n}", "label": "neg"} for n in range(40)
]
FEW = {"training.steps": 5, "training.threads": 1, "model.hidden": 8, "model.embedding": 8}


@pytest.fixture(scope="module")
def by_dicts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECURRA_CACHE", str(tmp_path_factory.mktemp("cache")))
        out = tmp_path_factory.mktemp("runs") / "run"
        yield recurra.train("classification", train=ROWS, valid="20%", out=out, settings=FEW)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_is_read_as_its_rows_are_and_answered_by_a_frame_of_its_library(
    library: str, by_dicts: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narwhals, _ = pytest.importorskip("narwhals"), pytest.importorskip(library)
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    columns = {name: [row[name] for row in ROWS] for name in ("text", "label")}
    frame = narwhals.from_dict(columns, backend=library).to_native()
    model = recurra.train("classification", train=frame, valid="20%", out=tmp_path / "run", settings=FEW)
    assert model.evaluate(frame).values["nll"] == pytest.approx(by_dicts.evaluate(ROWS).values["nll"], rel=1e-6)
    answers = model.predict(frame).to_frame()
    assert type(answers) is type(frame)
    found = narwhals.from_native(answers)
    assert found["output"].to_list() == [answer.output for answer in by_dicts.predict(ROWS)]
    assert {"probability_pos", "probability_neg"} <= {*found.columns}
    assert type(model.predict(frame["text"]).to_frame("pandas" if library == "pandas" else None)) is type(frame)


def test_rows_of_pandas_keep_their_names(by_dicts: Trained) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, index=[f"r{n}" for n in range(40)])
    assert list(by_dicts.predict(frame).to_frame().index) == list(frame.index)
    assert list(by_dicts.predict(frame["text"]).to_frame().index) == list(frame.index)


def test_one_row_of_a_frame_is_explained_and_several_are_refused(by_dicts: Trained) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)
    assert by_dicts.explain(frame.iloc[:1]).view.json() == by_dicts.explain(str(ROWS[0]["text"])).view.json()
    with pytest.raises(DataError, match=rf"explain takes one input, but this data frame has {len(ROWS)} rows: give a"):
        by_dicts.explain(frame)


def test_times_that_name_rows_are_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    frame = pandas.DataFrame({"sold": np.arange(60) % 7}, index=pandas.date_range("2024-01-01", periods=60))
    with pytest.raises(DataError, match=r'train=: the rows are named by times, .*rename_axis\("time"\)'):
        recurra.train("forecasting", train=frame, out=tmp_path / "run", settings=FEW)
    settings = {**FEW, "data.time": "day", "data.values": "sold", "decoding.horizon": 3}
    model = recurra.train("forecasting", train=frame.rename_axis("day"), out=tmp_path / "run", settings=settings)
    forecast = model.predict(frame.rename_axis("day")).to_frame()
    assert forecast["time"].tolist() == [f"2024-03-0{day}T00:00:00" for day in (1, 2, 3)]
    assert model.explain(frame.rename_axis("day")).view.title
    assert (forecast["low"] <= forecast["forecast"]).all()
    assert (forecast["forecast"] <= forecast["high"]).all()


def test_an_iterator_of_dicts_is_read_once(by_dicts: Trained) -> None:
    asked = ({"text": row["text"]} for row in ROWS)
    assert [answer.output for answer in by_dicts.predict(asked)] == [answer.output for answer in by_dicts.predict(ROWS)]


def test_a_list_of_texts_is_answered_as_before(by_dicts: Trained) -> None:
    answers = by_dicts.predict(["good day"])
    assert isinstance(answers, list)
    assert answers.table().columns[:3] == ["input", "output", "score"]


def test_a_run_of_rows_keeps_what_it_needs_to_be_resumed(by_dicts: Trained) -> None:
    from recurra.runs import resume
    from recurra.training.progress import Silent

    resume(by_dicts.folder, Silent(), overrides=["training.steps=6"])
    assert recurra.load(by_dicts.folder).predict(["good day"])[0].output in ("pos", "neg")


def test_values_become_what_json_has() -> None:
    day = datetime.date(2026, 5, 1)
    given: list[dict[Any, object]] = [
        {"a": np.float32(0.5), "b": np.arange(2), "c": day, 4: np.bool_(True), "d": float("nan")}
    ]
    [row] = rows(given, "x")
    assert row == {"a": 0.5, "b": [0, 1], "c": "2026-05-01", "4": True, "d": None}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([{"text": "a", "label": "b"}, {"text": "a"}], r"^train=, row 2: there is no column 'label'"),
        ([{"text": "a"}, 3], r"^train=, row 2: found 3, but each row must be a dict"),
        ([{"text": "a", "label": b"b"}], r"^train=, row 1: the value of 'label' is a bytes, but only texts"),
        ([{"text": "a", "label": float("inf")}], r"^train=, row 1 holds an infinite number"),
        ([{"text": "a", "label": "b"}, {}], r"^train=, row 2 has no columns"),
        (iter(()), r"^train= has no rows"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_by_the_keyword_and_its_number(
    given: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    with pytest.raises(DataError, match=said):
        recurra.train("classification", train=given, out=tmp_path / "run", settings=FEW)
    assert not (tmp_path / "run").exists()


def test_a_frame_of_no_library_that_is_known_is_refused() -> None:
    pytest.importorskip("narwhals")

    class Sheet:
        columns = ("text", "label")

    with pytest.raises(DataError, match=r"^x: a Sheet cannot be read as a table .*Give a data frame of pandas"):
        list(rows(Sheet(), "x"))


def test_without_narwhals_a_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "narwhals", None)

    class Sheet:
        columns = ("text", "label")

    with pytest.raises(DataError, match=r"needs the narwhals package: pip install 'recurra\[frames\]'"):
        list(rows(Sheet(), "x"))


def test_a_format_is_for_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"train= is rows in memory: leave data\.format out"):
        recurra.train("classification", train=ROWS, out=tmp_path, settings={"data.format": "tsv"})


def test_an_unknown_library_is_refused(by_dicts: Trained) -> None:
    with pytest.raises(ConfigError, match=r"to_frame\('excel'\) is not known: the libraries are pandas, polars"):
        by_dicts.predict(["a"]).to_frame("excel")


def test_to_train_over_a_run_replaces_it_and_leaves_what_is_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))

    def run(steps: int, **options: Any) -> Callable[[], Trained]:
        settings = {**FEW, "training.steps": steps}
        return lambda: recurra.train("classification", train=ROWS, out=tmp_path / "run", settings=settings, **options)

    run(3)()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="already contains a run"):
        run(2)()
    again = run(2, overwrite=True)()
    assert recurra.load(again.folder).predict(["good"])[0].output in ("pos", "neg")
    assert '"steps": 2' in (tmp_path / "run" / "summary.json").read_text()
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
