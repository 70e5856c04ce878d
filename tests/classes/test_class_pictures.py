"""Classification of pictures: files, pixels and pen strokes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recurra.classes.pictures import encoding
from recurra.cli import main
from recurra.config import ClassificationSettings
from recurra.errors import ConfigError, DataError
from recurra.runs import begin, setup
from recurra.settings import settings_from
from recurra.tasks.classification import Classification
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from recurra.views.pixels import write_png

SMALL = [
    "model.image.widths=[6,8]",
    "model.image.layers=1",
    "model.image.dropout=0",
    "model.dropout=0",
    "data.cache=false",
    "training.device=cpu",
    "training.threads=1",
    "training.average=none",
    "training.learning_rate=0.02",
    "training.steps=40",
]


def line(k: int, level: bool) -> NDArray[np.uint8]:
    """A line across or down, at another place and in a picture of another size for each k."""
    picture = np.zeros((14 + k, 16 - k), np.uint8)
    picture[4 + 2 * k : 6 + 2 * k, 2:-2] = 255
    return picture if level else picture.T


def jsonl(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def files(folder: Path) -> str:
    """Eight pictures in files beside the one that names them."""
    (folder / "pictures").mkdir()
    rows = []
    for number in range(8):
        (folder / "pictures" / f"{number}.png").write_bytes(write_png(line(number // 2, number % 2 == 0)))
        rows.append({"image": f"pictures/{number}.png", "label": ("level", "upright")[number % 2]})
    return jsonl(folder / "a.jsonl", rows)


def trained(folder: Path, file: str, *overrides: str) -> Trained:
    this = setup("classification", given={"train": file}, overrides=[*SMALL, *overrides])
    begin(this, folder / "run", Silent())
    return load(folder / "run")


@pytest.mark.parametrize("summary", ["mean", "max", '{name="attention", queries=2, size=5}'])
def test_eight_pictures_are_learned_by_heart_and_predicted_back(
    tmp_path: Path, summary: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = files(tmp_path)
    model = trained(tmp_path, file, f"model.summary={summary}")
    assert model.task.settings.model.encoder == "image"
    answers = list(model.predict_file(file, []))
    assert [answer.output for answer in answers] == ["level", "upright"] * 4
    assert answers[0].input == "pictures/0.png"
    assert model.evaluate(file).values["accuracy"] == 1.0
    asked = [f"{tmp_path}/pictures/2.png", line(1, False).tolist(), json.dumps(line(1, False).tolist())]
    assert [answer.output for answer in model.predict(asked)] == ["level", "upright", "upright"]
    paths = tmp_path / "paths.txt"
    paths.write_text("pictures/3.png\n pictures/4.png \n")
    assert main(["predict", str(tmp_path / "run"), str(paths)]) == 0
    assert capsys.readouterr().out.split() == ["upright", "level"]
    assert main(["predict", str(tmp_path / "run"), f"{tmp_path}/pictures/5.png"]) == 0
    assert capsys.readouterr().out.split() == ["upright"]


def test_where_was_looked_is_a_map_of_the_picture(tmp_path: Path) -> None:
    model = trained(tmp_path, files(tmp_path), 'model.summary={name="attention", queries=2, size=5}')
    answer, other = model.predict([line(3, True).tolist(), line(0, False).tolist()], detail=True)
    assert np.array(answer.detail["attention"]).shape == (2, 5, 4)  # of 17 x 13 pixels, 4 x 4 a place
    assert np.array(other.detail["attention"]).shape == (2, 4, 4)
    np.testing.assert_allclose(np.array(answer.detail["attention"]).sum((1, 2)), 1, atol=1e-4)
    assert "tokens" not in answer.detail


def test_pixels_and_strokes_are_learned_too(tmp_path: Path) -> None:
    labels = ("level", "upright")
    pixels = [
        {"picture": line(k, level).tolist(), "label": labels[not level]} for k in range(3) for level in (True, False)
    ]
    file = jsonl(tmp_path / "pixels.jsonl", pixels)
    assert trained(tmp_path / "pixels", file, "data.image.channels=3").evaluate(file).values["accuracy"] == 1.0
    across = [{"ink": [[[0, 40], [k, k]], [[9], [k + 5]]], "label": "level"} for k in range(3)]
    down = [{"ink": [[[k, k], [0, 40]], [[k + 5], [9]]], "label": "upright"} for k in range(3)]
    file = jsonl(tmp_path / "ink.jsonl", across + down)
    model = trained(tmp_path / "ink", file, "augmentation.shift=0.05", "augmentation.noise=0.01")
    assert model.evaluate(file).values["accuracy"] == 1.0
    assert model.task.described().startswith("gray pictures of pen strokes, CNN 6 + 8 with max pooling, 2 classes")
    assert model.predict(["[[[0, 40], [1, 1]]]"])[0].output == "level"


def test_a_number_is_learned_of_a_picture(tmp_path: Path) -> None:
    rows = [{"image": np.tril(np.ones((12, 12)), k).tolist(), "target": 100 * k} for k in range(-8, 9, 2)]
    file = jsonl(tmp_path / "a.jsonl", rows)
    assert trained(tmp_path, file, "model.summary=mean").evaluate(file).values["r2"] > 0.9


def test_columns_of_pictures_are_found_by_their_names_and_what_they_hold(tmp_path: Path) -> None:
    def found(row: dict[str, Any]) -> tuple[str | None, str | None]:
        file = jsonl(tmp_path / "a.jsonl", [row])
        image = resolved(file).data.image
        return image.column, image.strokes

    assert found({"image": "a.png", "label": "x"}) == ("image", None)
    assert found({"scan": "a b.JPG", "label": "x", "id": 3}) == ("scan", None)
    assert found({"picture": [[1, 2]], "label": "x"}) == ("picture", None)
    assert found({"ink": [[[1, 2], [3, 4]]], "label": "x"}) == (None, "ink")
    assert found({"pen": [[[1, 2, 3], [3, 4, 5]]], "label": "x"}) == (None, "pen")
    assert found({"text": "hello", "image": "a.png", "label": "x"}) == (None, None)
    table = tmp_path / "a.tsv"
    table.write_text("a.png\tcat\nb.png\tdog\n")
    assert (resolved(str(table)).data.image.column, resolved(str(table)).data.label) == ("image", "label")
    table.write_text("image\tlabel\na.png\tcat\n")
    assert resolved(str(table)).data.image.column == "image"


def resolved(file: str, **model: Any) -> ClassificationSettings:
    return Classification.resolved(settings_from(ClassificationSettings, {"data": {"train": file}, "model": model}))


def test_a_picture_that_does_not_open_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = files(tmp_path)
    sets = [part for option in SMALL for part in ("--set", option)]
    (tmp_path / "pictures" / "3.png").write_bytes(b"not a picture")
    assert main(["train", "classification", "--train", file, "--out", str(tmp_path / "run"), *sets]) == 2
    said = capsys.readouterr().err
    assert f"{file}:4: '{tmp_path}/pictures/3.png' is not a PNG or JPEG picture. Save it as one of them." in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("pictures/nine.png", r"a.jsonl:9: there is no file '.*pictures/nine.png'"),
        (None, r"a.jsonl:9: the picture is missing: 'image' is empty."),
        ([[0.5, "x"]], r"a.jsonl:9: the value of 'image' mixes texts and numbers"),
        ([[0.5, None]], r"a.jsonl:9: the pixels of a picture must be numbers, but other values were found."),
        ([[0.5, 300]], r"a.jsonl:9: the pixel in row 1 and column 2 of the picture is 300"),
    ],
)
def test_a_picture_that_cannot_be_read_is_said_with_its_line(tmp_path: Path, value: object, said: str) -> None:
    file = files(tmp_path)
    with open(file, "a", encoding="utf-8") as more:
        more.write(json.dumps({"image": value, "label": "level"}) + "\n")
    with pytest.raises(DataError, match=said):
        trained(tmp_path, file)


def test_pictures_and_their_encoder_belong_together(tmp_path: Path) -> None:
    file = files(tmp_path)
    with pytest.raises(
        ConfigError, match=r"model.encoder = 'cnn' reads sequences, but data.image is set, so the inputs are pictures:"
    ):
        resolved(file, encoder="cnn")
    with pytest.raises(ConfigError, match=r"model.summary = 'last' needs a sequence, but a picture is not one:"):
        resolved(file, summary="last")
    text = jsonl(tmp_path / "b.jsonl", [{"text": "a", "label": "x"}])
    with pytest.raises(ConfigError, match=r"model.encoder = 'image' reads pictures, but no picture"):
        resolved(text, encoder="image")
    with pytest.raises(ConfigError, match=r"augmentation.mask applies to series, but the inputs are pictures:"):
        trained(tmp_path, file, "augmentation.mask=0.1")
    exclude = {"data": {"text": {"column": "a"}, "image": {"column": "b"}}}
    with pytest.raises(ConfigError, match=r"data.text and data.image cannot be used together"):
        settings_from(ClassificationSettings, exclude)


def test_the_cache_knows_a_picture_that_was_changed(tmp_path: Path) -> None:
    settings = resolved(files(tmp_path))
    before = encoding(settings)
    assert encoding(settings) == before
    time.sleep(0.01)
    (tmp_path / "pictures" / "3.png").write_bytes(write_png(line(2, True)))
    assert encoding(settings) != before
