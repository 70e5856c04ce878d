import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from PIL import Image

from recurra.views.pixels import write_png


@given(arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=9)))
def test_a_gray_picture_comes_back_as_another_reader_sees_it(picture: NDArray[np.uint8]) -> None:
    found = Image.open(io.BytesIO(write_png(picture)))
    assert found.mode == "L"
    np.testing.assert_array_equal(np.asarray(found), picture)
    assert write_png(picture[:, :, None]) == write_png(picture)


@given(arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3))))
def test_a_picture_in_colours_comes_back_as_another_reader_sees_it(picture: NDArray[np.uint8]) -> None:
    found = Image.open(io.BytesIO(write_png(picture)))
    assert found.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(found), picture)


@pytest.mark.parametrize("shape", [(0, 3), (3,), (2, 2, 2)])
def test_what_is_no_picture_is_our_own_mistake(shape: tuple[int, ...]) -> None:
    with pytest.raises(AssertionError, match="no picture"):
        write_png(np.zeros(shape, np.uint8))
