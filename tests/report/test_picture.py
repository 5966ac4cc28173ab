"""The picture is to scale, aligned, and readable without colour."""

from hypothesis import given
from hypothesis import strategies as st

from brimful.report.picture import RowsPicture, cells
from tests.report.drawing import draw


@given(st.lists(st.lists(st.integers(1, 20), max_size=5), min_size=1, max_size=4))
def test_lines_are_aligned_and_show_how_full_they_are(rows):
    lines = draw(RowsPicture(rows, 100))
    assert {len(line.rstrip()) for line in lines} == {76}
    for row, line in zip(rows, lines, strict=True):
        assert line.rstrip().endswith(f"{sum(row)}.0%")
        drawn = line[2:68]
        assert abs(sum(sign != "·" for sign in drawn) - sum(row) * 66 / 100) <= 1


def test_neighbours_are_told_apart_without_colour():
    (line,) = draw(RowsPicture([[50, 24]], 100))
    assert line[2:68] == "█" * 32 + "▊" + "█" * 15 + "▊" + "·" * 17


def test_neighbours_differ_in_colour():
    (text,) = draw(RowsPicture([[50, 50]], 100), colour=True)
    assert "\x1b[36m" in text
    assert "\x1b[35m" in text


def test_cells_belong_to_the_sequence_in_their_middle():
    assert cells([4, 3, 3], 10, 10) == [0] * 4 + [1] * 3 + [2] * 3
    assert cells([], 10, 4) == [-1] * 4
    assert cells([1], 1000, 4) == [0, -1, -1, -1]
