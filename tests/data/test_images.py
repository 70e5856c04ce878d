import re
import struct
import sys
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from PIL import Image

from recurra.data.images import array_image, packed_picture, read_image, unpacked, with_channels
from recurra.errors import DataError
from recurra.views.pixels import write_png

RED_AND_BLUE = np.array([[[255, 0, 0], [0, 0, 255]]], np.uint8)


def smooth(height: int = 40, width: int = 60) -> NDArray[np.uint8]:
    """Soft waves of colour, which JPEG keeps nearly as they are."""
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / 9), np.cos(y / 7), np.sin((x + y) / 11)]
    return (np.stack(waves, 2) * 100 + 128).astype(np.uint8)


def test_a_png_in_colours_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(write_png(smooth()))
    np.testing.assert_array_equal(read_image(tmp_path / "a.png", "here", channels=3), smooth())


def test_colours_become_gray_by_their_brightness_in_files_as_in_arrays(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(write_png(RED_AND_BLUE))
    assert read_image(tmp_path / "a.png", "here").tolist() == [[[76], [29]]]
    assert array_image(RED_AND_BLUE, "here").tolist() == [[[76], [29]]]
    assert with_channels(RED_AND_BLUE, 1).tolist() == [[[76], [29]]]


def test_gray_becomes_three_equal_colours(tmp_path: Path) -> None:
    gray = np.array([[7, 200]], np.uint8)
    (tmp_path / "a.png").write_bytes(write_png(gray))
    expected = [[[7, 7, 7], [200, 200, 200]]]
    assert read_image(tmp_path / "a.png", "here", channels=3).tolist() == expected
    assert array_image(gray, "here", channels=3).tolist() == expected
    assert with_channels(gray, 3).tolist() == expected


def test_a_jpeg_is_read_nearly_as_it_was(tmp_path: Path) -> None:
    Image.fromarray(smooth()).save(tmp_path / "a.jpg", quality=95)
    found = read_image(tmp_path / "a.jpg", "here", channels=3)
    assert np.abs(found.astype(int) - smooth()).mean() < 3


def test_a_jpeg_of_printing_colours_is_read_nearly_as_it_was(tmp_path: Path) -> None:
    Image.fromarray(smooth()).convert("CMYK").save(tmp_path / "a.jpg", quality=95)
    found = read_image(tmp_path / "a.jpg", "here", channels=3)
    assert np.abs(found.astype(int) - smooth()).mean() < 3


def test_what_is_transparent_shows_white_paper(tmp_path: Path) -> None:
    palette = Image.new("P", (2, 1))
    palette.putpalette([0, 0, 0, 10, 20, 30])
    palette.putpixel((1, 0), 1)
    palette.save(tmp_path / "palette.png", transparency=0)
    assert read_image("palette.png", "here", folder=tmp_path, channels=3).tolist() == [[[255] * 3, [10, 20, 30]]]
    Image.fromarray(np.array([[[0, 0], [0, 255]]], np.uint8), "LA").save(tmp_path / "la.png")
    assert read_image("la.png", "here", folder=tmp_path).tolist() == [[[255], [0]]]


def test_gray_of_sixteen_bits_keeps_its_brightness(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 257 * 100, 65535]], np.uint16)).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png", "here").tolist() == [[[0], [100], [255]]]


def test_black_and_white_of_one_bit_is_read(tmp_path: Path) -> None:
    Image.fromarray(np.array([[True, False]])).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png", "here").tolist() == [[[255], [0]]]


def test_a_photo_is_turned_as_its_camera_says(tmp_path: Path) -> None:
    how = Image.Exif()
    how[0x0112] = 6  # to be turned right by a quarter
    Image.fromarray(smooth(16, 32)).save(tmp_path / "a.jpg", exif=how)
    assert read_image(tmp_path / "a.jpg", "here").shape == (32, 16, 1)


def test_a_large_picture_is_made_to_fit_with_its_aspect_kept_in_files_as_in_arrays(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(write_png(smooth()))
    from_file = read_image(tmp_path / "a.png", "here", channels=3, max_height=13, max_width=30)
    from_array = array_image(smooth(), "here", channels=3, max_height=13, max_width=30)
    assert from_file.shape == (13, 20, 3)
    np.testing.assert_allclose(from_array, from_file.astype(int), atol=1)


def test_a_picture_of_one_colour_keeps_it_at_every_size() -> None:
    for height in range(1, 12):
        assert (array_image(np.full((11, 23), 93), "here", max_height=height) == 93).all()


def test_halving_takes_the_mean_of_neighbours() -> None:
    stripes = np.tile([[0, 0, 200, 200]], (4, 2))
    found = array_image(stripes, "here", max_width=4)[1, :, 0]
    # The weights of the four nearest pixels are 1/8, 3/8, 3/8 and 1/8; at the edge 3/7, 3/7 and 1/7.
    np.testing.assert_array_equal(found, np.rint([200 / 7, 150, 50, 200 * 6 / 7]))


def test_pixels_are_a_share_of_white_unless_one_is_above_1() -> None:
    assert array_image([[0, 1]], "here").tolist() == [[[0], [255]]]
    assert array_image([[0.0, 0.2]], "here").tolist() == [[[0], [51]]]
    assert array_image([[0, 1, 2]], "here").tolist() == [[[0], [1], [2]]]
    assert array_image(np.array([[True, False]]), "here").tolist() == [[[255], [0]]]


def test_dark_ink_on_bright_paper_is_inverted_and_bright_ink_stays() -> None:
    paper = np.full((5, 5), 250)
    paper[2, 1:4] = 10
    assert array_image(paper, "here", invert="auto")[:, :, 0].tolist() == (255 - paper).tolist()
    assert array_image(255 - paper, "here", invert="auto")[:, :, 0].tolist() == (255 - paper).tolist()
    assert array_image(paper, "here", invert=True)[:, :, 0].tolist() == (255 - paper).tolist()
    assert array_image(paper, "here", invert=False)[:, :, 0].tolist() == paper.tolist()
    assert array_image([[9]], "here", invert="auto").tolist() == [[[9]]]


def test_a_relative_path_starts_from_the_folder_of_the_data(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(write_png(RED_AND_BLUE))
    assert read_image("pictures/a.png", "here", folder=tmp_path).shape == (1, 2, 1)
    assert read_image(str(tmp_path / "pictures" / "a.png"), "here", folder="/elsewhere").shape == (1, 2, 1)


@given(arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3]))))
def test_a_packed_picture_comes_back(picture: NDArray[np.uint8]) -> None:
    fields = packed_picture(picture)
    assert [field.ndim for field in fields.values()] == [1, 1]
    np.testing.assert_array_equal(unpacked(fields["picture"], fields["shape"]), picture)


def claims_to_be_huge(side: int) -> bytes:
    """A PNG of a few bytes that says it has side x side pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    bodies = [header, b"IDAT" + zlib.compress(b"\0" * 9), b"IEND"]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body)) for body in bodies
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a PNG or JPEG picture. Save it as one of them."),
        (b"hello", "is not a PNG or JPEG picture. Save it as one of them."),
        (write_png(smooth())[:60], "is broken ("),
        (write_png(smooth())[:-900], "is broken ("),
        (claims_to_be_huge(9_000), "has more than 67,108,864 pixels. Make it smaller first."),
        (claims_to_be_huge(10_000), "has more than 67,108,864 pixels. Make it smaller first."),
        (claims_to_be_huge(50_000), "has more than 67,108,864 pixels. Make it smaller first."),
    ],
)
def test_a_file_that_is_no_whole_picture_is_said_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(DataError, match=re.escape(message)) as found:
        read_image("a.png", "data.jsonl:7", folder=tmp_path)
    assert str(found.value).startswith("data.jsonl:7: ")
    assert str(tmp_path / "a.png") in str(found.value)


@given(st.integers(0, 2000), st.integers(0, 255))
def test_a_file_with_a_wrong_byte_is_read_or_refused(where: int, byte: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        content = bytearray(write_png(smooth()))
        content[where % len(content)] = byte
        (Path(folder) / "a.png").write_bytes(content)
        try:
            assert read_image("a.png", "here", folder=folder).ndim == 3
        except DataError:
            return


def test_a_file_that_is_not_there_is_said_with_its_place_and_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(write_png(RED_AND_BLUE))
    with pytest.raises(DataError, match=r"data.jsonl:7: there is no file '.*ona.png'. Did you mean '.*one.png'\?"):
        read_image("ona.png", "data.jsonl:7", folder=tmp_path)
    with pytest.raises(DataError, match=r"data.jsonl:7: '.*' is a folder; name a file in it\."):
        read_image(".", "data.jsonl:7", folder=tmp_path)


def test_a_path_that_starts_from_here_and_not_from_its_file_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one.png").write_bytes(write_png(RED_AND_BLUE))
    said = "'data/one.png' is there, but a path starts from the folder of the file that names it."
    with pytest.raises(DataError) as caught:
        read_image("data/one.png", "data/a.tsv:2", folder="data")
    assert str(caught.value).startswith("data/a.tsv:2: there is no file 'data/data/one.png'.")
    assert str(caught.value).endswith(said)
    for path in ("none/such.png", f"data/{'long' * 100}.png", "data/a\0b.png"):
        with pytest.raises(DataError) as caught:
            read_image(path, "data/a.tsv:2", folder="data")
        assert "starts from" not in str(caught.value)


@pytest.mark.parametrize("path", [None, 5, "", " ", ["a.png"]])
def test_what_names_no_file_is_refused(path: object) -> None:
    with pytest.raises(DataError, match=re.escape(f"here: a picture must be given as a path, but found {path!r}.")):
        read_image(path, "here")


def test_without_pillow_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(
        DataError, match=r"here: reading picture files needs the package Pillow: pip install 'recurra\[image\]'"
    ):
        read_image("a.png", "here")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a.png", "here: a picture must be an array of pixels, but found 'a.png'."),
        (None, "here: a picture must be an array of pixels, but found None."),
        ([], "here: the picture has no pixels: its shape is (0,)."),
        ([[], []], "here: the picture has no pixels: its shape is (2, 0)."),
        (np.zeros((0, 4)), "here: the picture has no pixels: its shape is (0, 4)."),
        ([[1, 2], [3]], "here: the rows of the picture have different lengths. Make them equal."),
        ([["1"]], "here: the pixels of a picture must be numbers, but other values were found."),
        ([[None, 1]], "here: the pixels of a picture must be numbers, but other values were found."),
        ([1, 2], "with 1 or 3 channels, but this one has (2,)."),
        (np.zeros((3, 8, 9)), "but this one has (3, 8, 9). Put channels last: np.moveaxis(picture, 0, -1)."),
        (np.zeros((8, 9, 4)), "with 1 or 3 channels, but this one has (8, 9, 4)."),
        (np.zeros((1, 2, 3, 3)), "with 1 or 3 channels, but this one has (1, 2, 3, 3)."),
        (np.broadcast_to(np.uint8(0), (9000, 9000)), "here: the picture has more than 67,108,864 pixels."),
        ([[1, 2], [3, np.nan]], "here: the pixel in row 2 and column 2 of the picture is nan. Pixels must be between"),
        ([[1, np.inf], [3, 4]], "here: the pixel in row 1 and column 2 of the picture is inf. Pixels must be between"),
        ([[1, 2], [-3, 4]], "here: the pixel in row 2 and column 1 of the picture is -3. Pixels must be between"),
        ([[256]], "here: the pixel in row 1 and column 1 of the picture is 256. Pixels must be between 0 and 1, or"),
    ],
)
def test_an_array_that_is_no_picture_is_refused(value: object, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        array_image(value, "here")


@given(
    arrays(np.float64, st.tuples(st.integers(1, 20), st.integers(1, 20)), elements=st.floats(0, 255)),
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from([1, 3]),
)
def test_any_array_of_pixels_is_made_to_fit(
    value: NDArray[np.float64], max_height: int, max_width: int, channels: int
) -> None:
    picture = array_image(value, "here", channels=channels, max_height=max_height, max_width=max_width, invert="auto")
    assert picture.dtype == np.uint8
    assert 1 <= picture.shape[0] <= max_height
    assert 1 <= picture.shape[1] <= max_width
    assert picture.shape[2] == channels


def mean_of_neighbours(size: int, smaller: int) -> NDArray[np.float64]:
    """(smaller, size): the weights by which a row of pixels is made smaller, as one matrix."""
    factor = size / smaller
    away = np.abs(np.arange(size) + 0.5 - (np.arange(smaller) + 0.5)[:, None] * factor) / factor
    weights = np.maximum(1 - away, 0)
    return weights / weights.sum(1, keepdims=True)


@pytest.mark.parametrize(("height", "width", "most"), [(40, 60, 25), (1500, 3, 1101), (2, 1801, 1200), (2, 5001, 1)])
def test_a_picture_is_made_smaller_by_means_of_neighbours(height: int, width: int, most: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width)).astype(np.float64)
    found = array_image(pixels, "here", max_height=most, max_width=most)[:, :, 0]
    rows, columns = found.shape
    expected = mean_of_neighbours(height, rows) @ pixels @ mean_of_neighbours(width, columns).T
    assert max(rows, columns) == most
    assert np.abs(found - expected).max() < 0.5001


def test_a_long_thin_picture_is_made_smaller_in_little_memory() -> None:
    # A matrix of new by old columns would have 40,000 x 39,000 numbers, which is 12 GiB in float64.
    tracemalloc.start()
    try:
        found = array_image(np.ones((1, 40_000)), "here", max_width=39_000)
        assert tracemalloc.get_traced_memory()[1] < 60e6
    finally:
        tracemalloc.stop()
    assert found.shape == (1, 39_000, 1)
    assert found.min() == 255
