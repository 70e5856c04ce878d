from pathlib import Path

import numpy as np
import pytest

from recurra.config import ImageData
from recurra.data.pictures import picture_of
from recurra.data.strokes import draw
from recurra.errors import DataError
from recurra.views.pixels import write_png

RAMP = np.arange(40 * 60, dtype=np.uint8).reshape(40, 60)


def test_a_path_is_read_from_the_folder_of_the_data(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(write_png(RAMP))
    found = picture_of("a.png", "here", ImageData(column="file"), folder=tmp_path)
    np.testing.assert_array_equal(found[:, :, 0], RAMP)


def test_settings_hold_for_files_and_for_pixels(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(write_png(RAMP))
    how = ImageData(column="file", channels=3, max_height=20, invert=True)
    from_file = picture_of(str(tmp_path / "a.png"), "here", how)
    assert from_file.shape == (20, 30, 3)
    np.testing.assert_allclose(from_file.astype(int), picture_of(RAMP.tolist(), "here", how), atol=1)


def test_strokes_are_drawn_as_the_settings_say() -> None:
    ink = [[[0, 5, 9], [0, 9, 0]]]
    how = ImageData(strokes="ink", channels=3, stroke=90, thickness=3.5, max_height=40, max_width=50)
    expected = draw(ink, stroke=90, thickness=3.5, max_height=40, max_width=50)
    found = picture_of(ink, "here", how)
    assert found.shape == (*expected.shape, 3)
    assert (found == expected[:, :, None]).all()


@pytest.mark.parametrize("how", [ImageData(column="ink"), ImageData(strokes="ink")])
def test_a_missing_picture_is_said_with_its_place(how: ImageData) -> None:
    with pytest.raises(DataError, match=r"a\.jsonl:3: the picture is missing: 'ink' is empty\."):
        picture_of(None, "a.jsonl:3", how)


def test_a_number_is_no_picture() -> None:
    with pytest.raises(DataError, match=r"a.jsonl:3: a picture must be given as a path, but found 5\."):
        picture_of(5, "a.jsonl:3", ImageData(column="image"))
