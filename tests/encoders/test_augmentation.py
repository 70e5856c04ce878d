import math
from dataclasses import fields

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recurra.config import Augmentation
from recurra.encoders.augmentation import (
    Moves,
    augmented_pictures,
    augmented_series,
    kept_inside,
    moved,
    thickened,
    warped,
)
from recurra.padding import Grid, Padded, gridded, pad

EVERYTHING = Augmentation(shift=0.2, scale=0.2, rotate=20, shear=0.2, warp=2, ink=1.5, noise=0.1, mask=0.4)


def dot(row: int, column: int, height: int = 9, width: int = 11) -> Tensor:
    picture = torch.zeros(1, height, width)
    picture[:, row, column] = 1
    return picture


def pictures() -> Grid:
    torch.manual_seed(3)
    return gridded([torch.rand(2, 8, 13), torch.rand(2, 11, 5), torch.rand(2, 11, 5)])


def series() -> Padded:
    torch.manual_seed(4)
    return pad([torch.randn(30, 2), torch.randn(17, 2), torch.randn(1, 2)])


def test_without_augmentation_nothing_is_changed_and_nothing_is_drawn() -> None:
    given, heard = pictures(), series()
    before = torch.get_rng_state()
    assert augmented_pictures(given, Augmentation()).values is given.values
    assert augmented_series(heard, Augmentation()).values is heard.values
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("field", [field.name for field in fields(Augmentation)])
def test_each_change_does_something_to_what_it_is_for(field: str) -> None:
    how = Augmentation(**{field: 0.5})  # of pictures without an empty border, so that nothing holds them
    if field != "mask":
        assert not torch.equal(augmented_pictures(pictures(), how).values, pictures().values)
    if field not in ("rotate", "shear", "warp", "ink"):
        assert not torch.equal(augmented_series(series(), how).values, series().values)


def test_a_shift_moves_a_dot_by_so_many_pixels_down_and_to_the_right() -> None:
    moves = Moves.none(1)._replace(shift=torch.tensor([[2.0, -3.0]]))
    assert_close(moved(gridded([dot(4, 5)]), moves).values[0], dot(6, 2), atol=1e-5, rtol=0)


def test_half_a_pixel_is_shared_by_two() -> None:
    moves = Moves.none(1)._replace(shift=torch.tensor([[0.0, 0.5]]))
    assert_close(moved(gridded([dot(4, 5)]), moves).values[0], (dot(4, 5) + dot(4, 6)) / 2, atol=1e-5, rtol=0)


def test_a_quarter_turn_is_the_one_of_torch() -> None:
    square = torch.rand(3, 7, 7, generator=torch.Generator().manual_seed(1))
    moves = Moves.none(1)._replace(angle=torch.tensor([math.pi / 2]))
    # From the right downwards: clockwise, as seen.
    assert_close(moved(gridded([square]), moves).values[0], square.rot90(-1, (1, 2)), atol=1e-5, rtol=0)


def test_twice_as_large_is_twice_as_far_from_the_middle() -> None:
    found = moved(gridded([dot(3, 7)]), Moves.none(1)._replace(scale=torch.tensor([2.0]))).values[0, 0]
    row, column = divmod(int(found.argmax()), 11)
    assert (row, column) == (4 + 2 * (3 - 4), 5 + 2 * (7 - 5))
    assert_close(found.sum(), torch.tensor(4.0))


def test_a_shear_moves_rows_sideways_by_their_distance_from_the_middle() -> None:
    upright = torch.zeros(1, 9, 11)
    upright[:, :, 5] = 1
    expected = torch.zeros(1, 9, 11)
    expected[0, torch.arange(9), 5 + torch.arange(9) - 4] = 1
    found = moved(gridded([upright]), Moves.none(1)._replace(shear=torch.ones(1))).values[0]
    assert_close(found, expected, atol=1e-5, rtol=0)


def test_all_moves_together_are_as_the_equation_says() -> None:
    """A blurred dot's centre of mass goes where q = m + t + scale R S (p - m) puts it."""
    y, x = torch.meshgrid(torch.arange(41.0), torch.arange(61.0), indexing="ij")
    blob = torch.exp(-((y - 15) ** 2 + (x - 36) ** 2) / 18).unsqueeze(0)
    moves = Moves(torch.tensor([[3.0, -4.0]]), torch.tensor([0.9]), torch.tensor([0.3]), torch.tensor([0.2]))
    found = moved(gridded([blob]), moves).values[0, 0]
    centre = torch.stack([(found * x).sum(), (found * y).sum()]) / found.sum()
    away = torch.tensor([36.0 - 30 + 0.2 * (15 - 20), 15.0 - 20])
    turn = torch.tensor([[math.cos(0.3), -math.sin(0.3)], [math.sin(0.3), math.cos(0.3)]])
    expected = torch.tensor([30.0, 20.0]) + torch.tensor([-4.0, 3.0]) + 0.9 * turn @ away
    assert_close(centre, expected, atol=0.02, rtol=0)


def where_ink_goes(picture: Tensor, moves: Moves, row: int) -> Tensor:
    """Rows and columns of all ink after the moves, by the equation with matrices in float64."""
    height, width = picture.shape[1:]
    middle = torch.tensor([(width - 1) / 2, (height - 1) / 2]).double()
    places = picture[0].nonzero().flip(1).double() - middle  # x, y
    a, k = float(moves.angle[row]), float(moves.shear[row])
    turn = torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]).double()
    slant = torch.tensor([[1.0, k], [0.0, 1.0]]).double()
    return middle + moves.shift[row].flip(0) + float(moves.scale[row]) * places @ (turn @ slant).T


def test_no_ink_leaves_a_picture_with_an_empty_border() -> None:
    torch.manual_seed(5)
    drawings = []
    for height, width in [(9, 40), (30, 7), (12, 12), (20, 33)] * 5:
        drawing = torch.zeros(1, height, width)
        drawing[:, 1:-1, 1:-1] = (torch.rand(1, height - 2, width - 2) > 0.7).float()
        drawings.append(drawing)
    rows = len(drawings)
    wild = Moves(20 * torch.randn(rows, 2), 0.5 + 2 * torch.rand(rows), torch.randn(rows), torch.randn(rows) / 3)
    kept = kept_inside(gridded(drawings), wild)
    for row, drawing in enumerate(drawings):
        places = where_ink_goes(drawing, kept, row)
        assert float(places.min()) >= -1e-3
        assert bool((places <= torch.tensor([drawing.shape[2] - 1, drawing.shape[1] - 1]) + 1e-3).all())
    assert torch.equal(kept.angle, wild.angle)
    assert torch.equal(kept.shear, wild.shear)
    assert bool((kept.scale <= wild.scale).all())


def test_moves_that_lose_nothing_and_those_of_photos_stay_as_they_are() -> None:
    small, photo, empty = dot(4, 5), torch.rand(1, 9, 11), torch.zeros(1, 9, 11)
    moves = Moves(torch.full((3, 2), 3.0), torch.full((3,), 1.5), torch.ones(3), torch.ones(3))
    for kept, given in zip(kept_inside(gridded([small, photo, empty]), moves), moves, strict=True):
        assert torch.equal(kept, given)


@pytest.mark.parametrize("most", [1.0, 3.0, 8.0])
def test_a_warp_moves_a_dot_by_no_more_than_was_asked_for_and_loses_none(most: float) -> None:
    spots = [(0, 0), (0, 30), (59, 79), (2, 3), (20, 20), (31, 33), (30, 64), (57, 1)]
    given = gridded([sum((dot(r + a, c + b, 60, 80) for a in range(2) for b in range(2)
                          if r + a < 60 and c + b < 80), torch.zeros(1, 60, 80)) for r, c in spots])  # fmt: skip
    torch.manual_seed(int(most))
    found = warped(given, most).values[:, 0]
    distances = []
    for (r, c), picture in zip(spots, found, strict=True):
        assert picture.sum() > 0.2, "a dot of a few pixels may shrink, but it stays in its picture"
        rows, columns = torch.nonzero(picture > 0.1, as_tuple=True)
        distances += [(rows - r).abs().max().item(), (columns - c).abs().max().item()]
    assert max(distances) <= most + 2
    assert max(distances) > 1 or most == 1


def test_a_warp_leaves_the_border_of_a_picture_where_it_is() -> None:
    torch.manual_seed(1)
    given = gridded([torch.rand(1, 40, 70), torch.rand(1, 33, 50)])
    found = warped(given, 4.0)
    assert not torch.equal(found.values, given.values)
    for number, (height, width) in enumerate(given.sizes.tolist()):
        before, after = (each.values[number, 0, :height, :width] for each in (given, found))
        for edge in ((0, ...), (-1, ...), (..., 0), (..., -1)):
            assert_close(after[edge], before[edge], atol=1e-4, rtol=0)


def test_near_places_are_warped_alike() -> None:
    """What is read out of a picture of coordinates is where each pixel was taken from: its field is smooth."""
    row = torch.arange(96.0).unsqueeze(1).expand(96, 96)
    torch.manual_seed(2)
    moves = warped(gridded([row[None]]), 3.0).values[0, 0] - row
    inside = moves[8:-8, 8:-8]
    assert 0.5 < inside.abs().max() <= 3.0 + 1e-3
    assert (inside[1:] - inside[:-1]).abs().max() <= 6.0 / 32 + 1e-3  # from one knot to the next, at most from -3 to 3


def test_edges_of_lines_move_out_and_in() -> None:
    line = torch.zeros(1, 9, 11)
    line[:, 3:6] = 1
    rows = thickened(gridded([line] * 4), torch.tensor([1.0, 2.0, -1.0, 0.5]), most=2).values[:, 0, :, 5]
    assert rows.tolist() == [
        [0, 0, 1, 1, 1, 1, 1, 0, 0],
        [0, 1, 1, 1, 1, 1, 1, 1, 0],
        [0, 0, 0, 0, 1, 0, 0, 0, 0],
        [0, 0, 0.5, 1, 1, 1, 0.5, 0, 0],
    ]


def test_a_series_is_shifted_scaled_and_masked_in_place_of_its_steps() -> None:
    given = pad([torch.arange(1.0, 101).unsqueeze(1)])
    torch.manual_seed(1)
    later = augmented_series(given, Augmentation(shift=0.3)).values[0, :, 0]
    steps = int(given.values[0, later.nonzero()[0], 0] - later[later.nonzero()[0]])
    assert 0 < abs(steps) <= 30
    expected = torch.zeros(100)
    expected[max(steps, 0) : 100 + min(steps, 0)] = given.values[0, max(-steps, 0) : 100 - max(steps, 0), 0]
    assert later.tolist() == expected.tolist()
    louder = augmented_series(given, Augmentation(scale=0.3)).values[0, :, 0] / given.values[0, :, 0]
    assert_close(louder, louder[0].expand(100))
    assert 0.7 <= louder[0] <= 1.3
    masked = augmented_series(given, Augmentation(mask=0.3)).values[0, :, 0]
    gone = (masked == 0).nonzero().flatten()
    assert 0 < len(gone) <= 30
    assert gone.tolist() == list(range(int(gone[0]), int(gone[-1]) + 1))
    kept = masked != 0
    assert torch.equal(masked[kept], given.values[0, kept, 0])


def test_noise_has_the_deviation_that_was_asked_for() -> None:
    torch.manual_seed(1)
    heard = augmented_series(Padded.full(torch.zeros(4, 1000, 1)), Augmentation(noise=0.3)).values
    seen = augmented_pictures(gridded([torch.zeros(1, 60, 60)]), Augmentation(noise=0.3)).values
    assert float(heard.std()) == pytest.approx(0.3, rel=0.05)
    assert float(seen.std()) == pytest.approx(0.3, rel=0.05)


def test_the_same_seed_gives_the_same_and_rows_differ() -> None:
    rows = gridded([torch.rand(1, 9, 9, generator=torch.Generator().manual_seed(1))] * 3)
    heard = Padded.full(torch.ones(3, 20, 1))
    found: list[Tensor] = []
    for _ in range(2):
        torch.manual_seed(7)
        found += [augmented_pictures(rows, EVERYTHING).values, augmented_series(heard, EVERYTHING).values]
    assert torch.equal(found[0], found[2])
    assert torch.equal(found[1], found[3])
    for values in found[:2]:
        assert not torch.equal(values[0], values[1])
        assert not torch.equal(values[1], values[2])


def test_sizes_stay_and_padding_stays_zero_whatever_stood_there() -> None:
    given, heard = pictures(), series()
    given.values[~given.mask.unsqueeze(1).expand_as(given.values)] = torch.nan
    heard.values[~heard.mask] = torch.nan
    seen, listened = augmented_pictures(given, EVERYTHING), augmented_series(heard, EVERYTHING)
    assert torch.equal(seen.sizes, given.sizes)
    assert torch.equal(listened.lengths, heard.lengths)
    assert seen.values.isfinite().all()
    assert listened.values.isfinite().all()
    assert not seen.values[~given.mask.unsqueeze(1).expand_as(given.values)].any()
    assert not listened.values[~heard.mask].any()


def test_a_picture_is_moved_and_thickened_alone_as_in_a_batch() -> None:
    torch.manual_seed(2)
    small, large = torch.rand(1, 6, 9), torch.rand(1, 12, 20)
    moves = Moves(torch.rand(2, 2), torch.rand(2) + 0.5, torch.rand(2), torch.rand(2))
    by = torch.tensor([-1.3, 0.6])
    together = thickened(moved(gridded([small, large]), moves), by, most=1.3)
    alone = thickened(moved(gridded([small]), Moves(*(move[:1] for move in moves))), by[:1], most=1.3)
    assert_close(together.values[:1, :, :6, :9], alone.values)


def test_a_series_without_steps_stays_one() -> None:
    empty = Padded(torch.zeros(2, 0, 3), torch.zeros(2, dtype=torch.long))
    assert augmented_series(empty, Augmentation(shift=0.1, scale=0.1, noise=0.1, mask=0.5)).values.shape == (2, 0, 3)
