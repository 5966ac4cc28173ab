"""Types meet only where no value changes."""

import itertools

import pyarrow as pa
import pytest

from brimful.errors import DataError
from brimful.tables.schemas import common_schema, common_type

KINDS = [
    pa.null(),
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()),
    *(pa.list_(pa.null()), pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.list_(pa.list_(pa.int8()))),
    *(pa.dictionary(pa.int32(), pa.string()), pa.struct({"a": pa.int8()}), pa.struct({"a": pa.int64()})),
    *(pa.timestamp("s"), pa.date32()),
]
EXTREMES = {
    **{kind: [-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1] for kind in KINDS[2:6]},
    **{kind: [0, 2**kind.bit_width - 1] for kind in KINDS[6:10]},
}


@pytest.mark.parametrize(("one", "other"), list(itertools.product(KINDS, KINDS)), ids=str)
def test_the_order_of_files_decides_nothing_and_every_cast_exists(one, other):
    common = common_type(one, other)
    assert common == common_type(other, one)
    if common is not None:
        assert pa.nulls(2, one).cast(common).type == common
        assert common_type(common, one) == common


@pytest.mark.parametrize(("one", "other"), list(itertools.product(EXTREMES, EXTREMES)), ids=str)
def test_integers_meet_in_a_type_that_holds_both_ends_or_not_at_all(one, other):
    common = common_type(one, other)
    values = EXTREMES[one] + EXTREMES[other]
    holders = [kind for kind, (low, high) in EXTREMES.items() if low <= min(values) and max(values) <= high]
    if not holders:
        assert common is None
    else:
        assert common is not None
        assert common in holders
        assert common.bit_width == min(kind.bit_width for kind in holders)


def test_what_would_have_to_be_converted_does_not_meet():
    for one, other in [
        (pa.int64(), pa.float64()),
        (pa.int64(), pa.string()),
        (pa.string(), pa.binary()),
        (pa.uint64(), pa.int8()),
        (pa.bool_(), pa.int8()),
        (pa.list_(pa.int64()), pa.int64()),
        (pa.struct({"a": pa.int8()}), pa.struct({"b": pa.int8()})),
    ]:
        assert common_type(one, other) is None


def test_the_name_of_the_items_of_a_list_is_no_difference():
    """Other writers say element where Arrow says item."""
    one = pa.schema({"ids": pa.list_(pa.field("element", pa.int32()))})
    other = pa.schema({"ids": pa.list_(pa.int64())})
    assert common_schema([("a", one), ("b", other)]) == other


def test_the_error_names_the_file_that_settled_the_type():
    schemas = [
        (name, pa.schema({"x": kind})) for name, kind in [("a", pa.null()), ("b", pa.string()), ("c", pa.int8())]
    ]
    with pytest.raises(DataError, match="'x' is string in b and int8 in c; convert one of them"):
        common_schema(schemas)
