"""Whatever is wrong with what is given, or with what is asked of it, is said in one sentence with its place."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from recurra.cli import main
from recurra.errors import DataError
from recurra.training.trained import load
from recurra.views.pixels import write_png
from tests.tasks.small_givens import SHAPES, SMALL, colours, picture, pixels, places, strokes
from tests.tasks.small_pairs import jsonl
from tests.tasks.test_seq2seq_refusals import only_sentence

TINY = [*SMALL, "model.hidden=8", "model.embedding=4", "training.steps=1", "decoding.max_length=5"]


def train(*arguments: str, sets: Sequence[str] = ()) -> int:
    changed = [part for override in [*TINY, *sets] for part in ("--set", override)]
    return main(["train", "vec2seq", *arguments, "--out", "run", "--quiet", *changed])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for make in (colours, places, pixels, strokes):
        make(tmp_path)
    (tmp_path / "grid").mkdir()
    places(tmp_path / "grid", rows=2)
    whole = write_png(picture(1))
    for name, content in {"whole": whole, "cut": whole[:50], "text": b"no picture", "empty": b""}.items():
        (tmp_path / f"{name}.png").write_bytes(content)
    for name in ("whole", "cut", "text", "none", "empty"):
        jsonl(
            tmp_path / f"{name}.jsonl", [{"image": "whole.png", "target": "a"}, {"image": f"{name}.png", "target": "b"}]
        )
    monkeypatch.chdir(tmp_path)
    return tmp_path


FILES: list[tuple[str, str, str]] = [
    ("a.tsv", "", "'a.tsv' is empty: it has no rows"),
    ("a.tsv", "red\t1\t2\nblue\t3\n", "a.tsv:2: found 2 columns, but line 1 has 3. Cells are separated by one tab"),
    ("a.tsv", "red\t1\t2\n\t3\t4\n", 'a.tsv:2: the target is empty. Remove the row, or set data.empty = "keep"'),
    ("a.tsv", "red\t1\t2\nblue\t3\tnan\n", "a.tsv:2: 'vector' contains a number that is missing, infinite or NaN"),
    ("a.tsv", "1\t2\n3\t4\n", "a.tsv:1: vector to sequence reads numbers from 'vector' (or 'frames', 'image' or"),
    ("a.tsv", "red\tblue\n", "a.tsv:1: vector to sequence reads numbers from 'vector'"),
    (
        "a.tsv",
        "target\tvector\nred\tone\n",
        "a.tsv:2: 'vector' must hold numbers, as [0.5, 1] or 0.5 1, but is ['one']",
    ),
    (
        "a.jsonl",
        '{"vector": [1, 2], "target": "a"}\n{"vector": [1], "target": "b"}\n',
        "a.jsonl:2: found 1 number, but the first example has 2",
    ),
    (
        "a.jsonl",
        '{"vector": [1, null], "target": "a"}\n',
        "a.jsonl:1: 'vector' contains a number that is missing, infinite or NaN",
    ),
    ("a.jsonl", '{"vector": [NaN], "target": "a"}\n', "a.jsonl:1: "),
    (
        "a.jsonl",
        '{"vector": [1e99], "target": "a"}\n',
        "a.jsonl:1: 'vector' contains a number that is too large to compute with",
    ),
    ("a.jsonl", '{"vector": [], "target": "a"}\n', "a.jsonl:1: 'vector' has no numbers. Fill them in"),
    ("a.jsonl", '{"vector": ["x"], "target": "a"}\n', "a.jsonl:1: 'vector' must hold numbers"),
    ("a.jsonl", '{"vector": [1], "target": "a"}\n{"vector": [1]}\n', "a.jsonl:2: there is no column 'target'"),
    ("a.jsonl", '{"vector": [1], "target": 3}\n', "a.jsonl:1: 'target' must hold a text, but is 3"),
    ("a.jsonl", '{"vector": [1], "target": " "}\n', "a.jsonl:1: the target is empty"),
    ("a.jsonl", '{"vector": [1], "label": 3}\n', "a.jsonl:1: vector to sequence reads numbers from 'vector'"),
    ("a.jsonl", '{"source": "a", "target": "b"}\n', "if the input is text, use the task seq2seq"),
    (
        "a.jsonl",
        '{"frames": [[1, 2], [3]], "target": "a"}\n',
        "a.jsonl:1: 'frames' must have the same number of values for every place",
    ),
    ("a.jsonl", '{"frames": [], "target": "a"}\n', "a.jsonl:1: 'frames' has no places. Fill them in, or"),
    ("a.jsonl", '{"frames": [1, 2], "target": "a"}\n', 'but has 2. For one vector, set data.vector = ["frames"]'),
    (
        "a.jsonl",
        '{"frames": [[1, 2]], "target": "a"}\n{"frames": [[1]], "target": "b"}\n',
        "a.jsonl:2: found 1 number for each place, but the first example has 2",
    ),
    (
        "a.jsonl",
        '{"frames": [[1]], "target": "a"}\n{"frames": [[[1]]], "target": "b"}\n',
        "a.jsonl:2: found places in a grid, but the first example has them in a row",
    ),
    (
        "a.jsonl",
        '{"image": [[0, 1], [0]], "target": "a"}\n',
        "a.jsonl:1: the rows of the picture have different lengths. Make them equal.",
    ),
    (
        "a.jsonl",
        '{"image": [[0, 300]], "target": "a"}\n',
        "a.jsonl:1: the pixel in row 1 and column 2 of the picture is 300",
    ),
    (
        "a.jsonl",
        '{"image": [[0, -1]], "target": "a"}\n',
        "a.jsonl:1: the pixel in row 1 and column 2 of the picture is -1",
    ),
    ("a.jsonl", '{"image": [], "target": "a"}\n', "a.jsonl:1: the picture has no pixels"),
    (
        "a.jsonl",
        '{"image": null, "target": "a"}\n',
        "a.jsonl:1: the picture in 'image' is missing. Fill it in, or rem",
    ),
    ("a.jsonl", '{"image": " ", "target": "a"}\n', "a.jsonl:1: the picture in 'image' is missing"),
    ("a.jsonl", '{"strokes": [[["x", 1]]], "target": "a"}\n', "a.jsonl:1: "),
    (
        "a.jsonl",
        '{"strokes": "up", "target": "a"}\n',
        "a.jsonl:1: pen strokes are a JSON list, [[[x, …], [y, …]], …], but found 'up'",
    ),
]


@pytest.mark.parametrize(("name", "content", "said"), FILES, ids=[said[:60] for *_, said in FILES])
def test_what_is_wrong_with_a_file_is_said_with_its_place(
    here: Path, name: str, content: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / name).write_text(content)
    assert train("--train", name) == 2
    assert said in only_sentence(capsys)
    assert not (here / "run").exists()


PICTURES = {
    "none": "none.jsonl:2: there is no file 'none.png'",
    "text": "text.jsonl:2: 'text.png' is not a PNG or JPEG picture. Save it as one of them",
    "cut": "cut.jsonl:2: the picture 'cut.png' is broken",
    "empty": "empty.jsonl:2: 'empty.png' is not a PNG or JPEG picture",
}


@pytest.mark.parametrize(("name", "said"), PICTURES.items(), ids=PICTURES)
def test_a_picture_that_cannot_be_had_is_said_with_the_file_that_names_it(
    here: Path, name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("PIL")
    assert train("--train", f"{name}.jsonl") == 2
    assert said in only_sentence(capsys)
    assert not (here / "run").exists()
    assert train("--train", "whole.jsonl", "--valid", f"{name}.jsonl") == 2
    assert said in only_sentence(capsys)
    assert not (here / "run").exists()
    assert train("--train", "whole.jsonl") == 0
    capsys.readouterr()
    for command in ("evaluate", "predict"):
        assert main([command, "run", f"{name}.jsonl"]) == 2
        assert said in only_sentence(capsys)
    assert main(["predict", "run", f"{name}.png"]) == 2
    assert f"{name}.png" in only_sentence(capsys)


def test_a_picture_of_another_kind_is_no_table(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("PIL")
    assert train("--train", "whole.jsonl") == 0
    capsys.readouterr()
    (here / "moving.gif").write_bytes(b"GIF89a")
    assert main(["predict", "run", "moving.gif"]) == 2
    assert "'moving.gif' is not a PNG or JPEG picture. Save it as one of them." in only_sentence(capsys)


def test_what_a_file_holds_cannot_move_the_cursor(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("PIL")
    jsonl(here / "a.jsonl", [{"image": "\x1b[2J.png", "target": "a"}])
    assert train("--train", "a.jsonl") == 2
    assert "a.jsonl:1: there is no file '�[2J.png'" in only_sentence(capsys)


def test_a_path_that_no_file_can_have_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("PIL")
    jsonl(here / "a.jsonl", [{"image": "a\0b.png", "target": "a"}])
    assert train("--train", "a.jsonl") == 2
    assert r"a.jsonl:1: 'a\x00b.png' cannot be opened" in only_sentence(capsys)


def test_nan_pixels_are_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pixels = np.zeros((2, 4, 4))
    pixels[1, 2, 3] = np.nan
    np.savez(here / "a.npz", image=pixels, target=np.array(["a", "b"]))
    assert train("--train", "a.npz") == 2
    said = only_sentence(capsys)
    assert "a.npz: row 2: the value of 'image' is infinite or NaN" in said
    assert "it, remove the row, or write null if missing values are allowed." in said
    assert not (here / "run").exists()
    assert train("--train", "pixels.jsonl") == 0
    with pytest.raises(DataError, match="input:2: the pixel in row 3 and column 4 of the picture is nan"):
        load(here / "run").predict(list(pixels))


SETTINGS = [
    (
        "colours.tsv",
        ["model.attention=bilinear"],
        "model.attention = 'bilinear' needs several places to attend to, but the input is a single vector: ",
    ),
    ("colours.tsv", ["model.wiring=feeding"], "but model.attention is none: leave one of them out"),
    ("colours.tsv", ["decoding.coverage_penalty=0.2"], "decoding.coverage_penalty uses attention weights"),
    (
        "colours.tsv",
        ["decoding.max_ratio=3"],
        "decoding.max_ratio limits answers by the length of the source, but a vector",
    ),
    ("colours.tsv", ["model.copy=true"], "there is no setting 'model.copy'"),
    ("colours.tsv", ["model.bridge=map"], "there is no setting 'model.bridge'"),
    ("colours.tsv", ["model.summary=mean"], "there is no setting 'model.summary'"),
    ("colours.tsv", ["model.conditionning=[]"], "Did you mean 'conditioning'?"),
    ("colours.tsv", ["data.vectors=[]"], "Did you mean 'vector'?"),
    ("colours.tsv", ['model.conditioning=["always"]'], "model.conditioning must name initial, first, every and output"),
    (
        "colours.tsv",
        ["model.direct=true", "model.encoder.hidden=12"],
        "the vector of 12 numbers as the first state without a learned map, but a layer has size 8: set model.h",
    ),
    (
        "colours.tsv",
        ["model.direct=true", "model.encoder.layers=0"],
        "the vector of 3 numbers as the first state without a learned map, but a layer has size 8",
    ),
    (
        "colours.tsv",
        ["model.direct=true", 'model.conditioning=["first"]', "model.encoder.hidden=12"],
        "the vector of 12 numbers as the first input without a learned map, but an input has size 4",
    ),
    ("colours.tsv", ["model.direct=true", 'model.conditioning=["every"]'], "model.direct = true has no effect"),
    ("colours.tsv", ['model.starts=["c"]', 'model.conditioning=["every"]'], "model.starts = ['c'] has no effect"),
    (
        "colours.tsv",
        ["model.direction=backward", "model.decoder.direction=forward"],
        "model.decoder.direction is the order in which the target is written",
    ),
    ("colours.tsv", ['model.starts=["s"]'], "model.starts must name h, c or both"),
    ("colours.tsv", ['model.starts=["c"]', "model.cell=gru"], "a cell 'gru' has no state 'c'"),
    (
        "colours.tsv",
        ['data.vector=["column2"]', "data.frames=column3"],
        "data.vector and data.frames cannot be used together",
    ),
    (
        "pixels.jsonl",
        ["data.image=image", "data.image.strokes=ink"],
        "cannot be used together: a picture comes from a file or from pen strokes",
    ),
    ("pixels.jsonl", ["data.image=imgae"], "pixels.jsonl:1: there is no column 'imgae'. Did you mean 'image'?"),
    ("pixels.jsonl", ["data.target=name"], "pixels.jsonl:1: there is no column 'name'"),
    (
        "pixels.jsonl",
        ["augmentation.mask=0.2"],
        "augmentation.mask cannot be applied to a picture, only to a series: leave it out",
    ),
    (
        "colours.tsv",
        ["augmentation.rotate=9"],
        "augmentation.rotate cannot be applied to a vector, only to pictures or series",
    ),
    ("places.jsonl", ["augmentation.rotate=9"], "augmentation.rotate applies to pictures, but the inputs are series:"),
    (
        "grid/places.jsonl",
        ["augmentation.noise=0.1"],
        "augmentation.noise applies to series and pictures, but features of a grid are given",
    ),
    ("places.jsonl", ["model.attention=aditive"], "there is no attention 'aditive'. Did you mean 'additive'?"),
    (
        "places.jsonl",
        ["model.attention=dot", "model.encoder.hidden=12"],
        "the decoder has 8 features and the memory 12",
    ),
    ("colours.tsv", ["evaluation.first=perplexty"], "Did you mean 'perplexity'?"),
    ("colours.tsv", ["data.target.tokens=letters"], "there is no tokenizer 'letters'"),
    ("colours.tsv", ["model.encoder.layers=-1"], "model.encoder.layers must be at least 0"),
    ("colours.tsv", ["model.image.widths=[]"], "model.image.widths must be at least 1"),
]


@pytest.mark.parametrize(("file", "settings", "said"), SETTINGS, ids=[" ".join(each) for _, each, _ in SETTINGS])
def test_a_setting_that_cannot_be_is_refused_before_training(
    here: Path, file: str, settings: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--train", file, "--valid", file, sets=settings) == 2
    assert said in only_sentence(capsys)
    assert not (here / "run").exists()


def test_what_is_wrong_with_a_validation_file_names_that_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "valid.tsv").write_text("red\t1\t2\t3\nblue\t1\t2\tx\n")
    assert train("--train", "colours.tsv", "--valid", "valid.tsv") == 2
    assert "valid.tsv:2: 'vector' must hold numbers" in only_sentence(capsys)
    jsonl(here / "valid.jsonl", [{"vector": [1, 2, 3], "target": "a"}, {"vector": [1, 2], "target": "b"}])
    assert train("--train", "colours.tsv", "--valid", "valid.jsonl") == 2
    assert "valid.jsonl:2: found 2 numbers, but training has 3" in only_sentence(capsys)
    other = [
        {"strokes": drawing, "target": name} for name, drawing in zip(SHAPES, [[[[0], [0]]], [[["x"]]]], strict=False)
    ]
    jsonl(here / "valid.jsonl", other)
    assert train("--train", "strokes.jsonl", "--valid", "valid.jsonl") == 2
    assert "valid.jsonl:2: " in only_sentence(capsys)
    assert not (here / "run").exists()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("255 0 0\n255 0\n", "input:2: found 2 numbers, but training has 3"),
        ("255 zero 0\n", "input:1: 'vector' must hold numbers"),
        ("255 nan 0\n", "input:1: 'vector' contains a number that is missing, infinite or NaN"),
        ("[255, 0\n", "input:1: what is given is a JSON list of numbers, but found"),
        ("\n", "input:1: 'vector' has no numbers"),
        ("picture.png\n", "input:1: 'vector' must hold numbers"),
    ],
)
def test_what_is_wrong_with_a_question_is_said(
    here: Path, asked: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "asked.txt").write_text(asked)
    assert train("--train", "colours.tsv") == 0
    capsys.readouterr()
    assert main(["predict", "run", "asked.txt"]) == 2
    assert said.replace("input", "asked.txt") in only_sentence(capsys)
    (here / "asked.tsv").write_text("255\t0\t0\t0\t0\n")
    assert main(["predict", "run", "asked.tsv"]) == 2
    assert "asked.tsv:1: found 5 columns, but columns (target, vector, vector, vector) names 4" in only_sentence(capsys)


@pytest.mark.usefixtures("here")
def test_questions_come_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--train", "colours.tsv") == 0
    capsys.readouterr()
    typed = "255 0 0\n255\t0\t0\n[255,0,0]\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
    assert main(["predict", "run", "-", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["input"] for each in found] == ["255 0 0"] * 3
    assert [each["line"] for each in found] == [1, 2, 3]
    assert len({each["score"] for each in found}) == 1
