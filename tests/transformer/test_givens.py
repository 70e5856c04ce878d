"""A Transformer that writes what a vector, places or a picture say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.tasks.small_givens import COLOURS, SHAPES, colours, picture, pixels, places, trained

USUAL = ["model.decoder=transformer", "training.learning_rate=0.01"]
PICTURES = ["data.image.max_height=32", "data.image.max_width=32"]


@pytest.mark.parametrize(
    "options",
    [
        ['model.conditioning=["first"]', "training.steps=120"],
        ['model.conditioning=["every", "output"]', "model.tied=output"],
    ],
    ids=" ".join,
)
def test_a_vector_is_written_by_heart(tmp_path: Path, options: list[str]) -> None:
    model = trained(tmp_path, colours(tmp_path), *USUAL, *options)
    assert [answer.output for answer in model.predict([list(rgb) for _, rgb in COLOURS])] == [n for n, _ in COLOURS]


@pytest.mark.parametrize("options", [["model.conditioning=[]"], ['model.conditioning=["first"]']], ids=" ".join)
def test_places_are_looked_at(tmp_path: Path, options: list[str]) -> None:
    file = places(tmp_path)
    model = trained(tmp_path, file, *USUAL, *options)
    assert model.evaluate(file).values["exact_match"] == 1


def test_a_picture_is_looked_at_and_weights_are_of_its_places(tmp_path: Path) -> None:
    file = pixels(tmp_path)
    model = trained(tmp_path, file, *USUAL, *PICTURES, 'model.conditioning=["first"]')
    answers = list(model.predict([picture(number) for number in range(8)]))
    assert [answer.output for answer in answers] == SHAPES
    assert answers[0].alignment is not None
    np.testing.assert_allclose(answers[0].alignment.sum(1), 1, atol=1e-5)
