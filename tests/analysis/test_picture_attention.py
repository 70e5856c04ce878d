"""Attention over a picture: the right place gets the colour, whatever the picture is and whatever was written."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra.analysis.alignment import alignment_of
from recurra.analysis.picture_attention import edges, picture_attention, picture_attention_of
from recurra.config import ImageModel
from recurra.encoders.image import ImageEncoder
from recurra.errors import DataError
from recurra.padding import Grid
from recurra.tasks.task import Prediction
from recurra.views.scene import Box


def inked() -> NDArray[np.uint8]:
    """A bright line on dark paper, 10 × 20 pixels."""
    picture = np.zeros((10, 20, 1), np.uint8)
    picture[4, 2:18] = 255
    return picture


def test_an_answer_has_its_maps_if_the_model_looked_at_a_picture() -> None:
    detail = {"tokens": ["x"], "alignment": [[0.1, 0.2, 0.3, 0.4], [0, 0, 0, 1.0]], "columns": 2}
    answer = Prediction("a.png", "x", -0.1, 1, detail)
    found = picture_attention_of(answer, inked(), "a title")
    assert (found.tokens, found.caption, found.maps.shape) == (("x", "</s>"), "a title", (2, 2, 2))
    assert found.maps[0].tolist() == [[0.1, 0.2], [0.3, 0.4]]
    with pytest.raises(DataError, match=r"has no attention weights: call predict\(\.\.\., detail=True\)"):
        picture_attention_of(answer._replace(detail={"tokens": ["x"]}))
    with pytest.raises(DataError, match=r"not a picture but a sequence: use alignment_of\(answer\)"):
        picture_attention_of(answer._replace(detail={**detail, "columns": None}))
    with pytest.raises(DataError, match=r"is over a picture, not over words: `recurra explain RUN INPUT"):
        alignment_of(answer)


@pytest.mark.parametrize(
    ("tokens", "weights", "columns", "said"),
    [
        (["x"], np.ones((3, 4)), 2, r"1 tokens need one row of weights.* weights have shape \(3, 4\)"),
        ([], np.ones((0, 4)), 2, "0 tokens need one row"),
        (["x"], np.ones(4), 2, r"have shape \(4,\)"),
        (["x"], np.ones((1, 5)), 2, "5 places cannot be arranged in rows of 2"),
        (["x"], np.ones((1, 0)), 2, "0 places cannot be arranged in rows of 2"),
        (["x"], np.ones((1, 4)), 0, "4 places cannot be arranged in rows of 0"),
        (["x"], [[0.5, -0.5]], 1, "a negative value"),
        (["x"], [[0.5, np.nan]], 1, "or NaN was found"),
    ],
)
def test_what_does_not_fit_is_refused(tokens: list[str], weights: NDArray[np.float64], columns: int, said: str) -> None:
    with pytest.raises(DataError, match=said):
        picture_attention(None, tokens, weights, columns)


@settings(max_examples=40)
@given(st.integers(1, 50), st.integers(1, 50), st.sampled_from([4, 8, 16]))
def test_places_cover_the_picture_and_nothing_else(height: int, width: int, stride: int) -> None:
    rows, columns = -(-height // stride), -(-width // stride)
    even = np.full((1, rows * columns), 1 / (rows * columns))
    found = picture_attention(np.zeros((height, width), np.uint8), ["x"], even, columns)
    scene = found.scene()
    boxes = [shape for shape in scene.shapes if isinstance(shape, Box)]
    [back], cells = [box for box in boxes if box.colour == "panel"], [box for box in boxes if box.colour == "look"]
    assert len(cells) == rows * columns
    assert sum(box.width * box.height for box in cells) == pytest.approx(back.width * back.height)
    # A larger square than that of the convolutions is found only where it covers the picture just as well.
    for places, size, each in zip(
        (rows, columns), (height, width), edges((height, width), (rows, columns)), strict=True
    ):
        assert (each[0], each[-1], len(each)) == (0, size, places + 1)
        assert (np.diff(each) > 0).all()
        assert np.diff(each).max() <= 1.5 * max(stride, np.diff(each).min())


def test_a_place_is_drawn_around_what_the_encoder_sees_there() -> None:
    torch.manual_seed(1)
    network = ImageEncoder(ImageModel(widths=[32, 32, 32], layers=0, norm="layer", positions=False), 1).eval()
    pixels = torch.rand(1, 1, 72, 88, requires_grad=True)
    features = network(Grid(pixels, torch.tensor([[72, 88]]))).values
    rows, columns = features.shape[2:]
    down, across = edges((72, 88), (rows, columns))
    for row, column in ((3, 4), (5, 6)):
        [seen] = torch.autograd.grad(features[0, :, row, column].square().sum(), pixels, retain_graph=True)
        for axis, at, each in ((0, row, down), (1, column, across)):
            pixel = seen[0, 0].abs().sum(1 - axis).nonzero()
            middle = (float(pixel.min()) + float(pixel.max()) + 1) / 2
            assert abs(middle - (each[at] + each[at + 1]) / 2) <= 0.5
