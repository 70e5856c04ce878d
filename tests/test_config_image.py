"""What the sections of pictures and of augmentation refuse."""

from typing import Any

import pytest

from recurra.config import Augmentation, ImageData
from recurra.errors import ConfigError
from recurra.settings import settings_from


def refusal_of(kind: type, table: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as refusal:
        settings_from(kind, table)
    return str(refusal.value)


def test_a_picture_is_given_or_drawn() -> None:
    assert ImageData().given is None
    assert ImageData(column="file").given == "file"
    assert ImageData(strokes="ink").given == "ink"
    assert refusal_of(ImageData, {"column": "a", "strokes": "b"}) == (
        "data.image and data.image.strokes cannot be used together: a picture comes from a file or from pen strokes."
    )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"channels": 2}, "channels must be 1 or 3, but is 2."),
        ({"max_height": 15}, "data.image.max_height must be at least 16, but is 15."),
        ({"max_width": 0}, "data.image.max_width must be at least 16, but is 0."),
        ({"stroke": 0}, "data.image.stroke must be above 0, but is 0."),
        ({"thickness": -1}, "data.image.thickness must be above 0, but is -1."),
        ({"thickness": 17, "max_height": 32}, "data.image.thickness = 17 is too thick for a picture of 32 pixels: use"),
        ({"invert": "maybe"}, "invert must be 'auto' or true or false, but is 'maybe'."),
    ],
)
def test_what_no_picture_can_be_made_by_is_refused(table: dict[str, Any], message: str) -> None:
    assert refusal_of(ImageData, table).startswith(message)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"shift": 1}, "augmentation.shift must be at least 0 and below 1, but is 1."),
        ({"scale": -0.1}, "augmentation.scale must be at least 0 and below 1, but is -0.1."),
        ({"shear": 2}, "augmentation.shear must be at least 0 and below 1, but is 2."),
        ({"mask": 1.5}, "augmentation.mask must be at least 0 and below 1, but is 1.5."),
        ({"rotate": -1}, "augmentation.rotate must be at least 0, but is -1."),
        ({"rotate": 181}, "augmentation.rotate must be at most 180, but is 181."),
        ({"ink": 5}, "augmentation.ink must be at most 4, but is 5."),
        ({"noise": float("inf")}, "augmentation.noise must be at least 0, but is inf."),
    ],
)
def test_changes_that_leave_nothing_are_refused(table: dict[str, Any], message: str) -> None:
    assert refusal_of(Augmentation, table).startswith(message)
