"""From input files to sizes: a column of whole numbers counts as it is, a column of lists with their lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brimful.errors import DataError
from brimful.resources import ResourceHistogram
from brimful.resources.sizes import distinct_rows, validate_names
from brimful.tables.sources import open_source
from brimful.tables.types import is_list
from brimful.validation import IntArray


def measure_sizes(
    inputs: Sequence[Path], names: tuple[str, ...], progress: Callable[[int], None]
) -> tuple[str, ResourceHistogram, int]:
    """How many rows there are of each size.

    Args:
        inputs: files and folders of rows.
        names: the columns that are the resources.
        progress: called with the number of rows of each batch.

    Returns:
        What to call the input, its histogram, and how many rows had no size above 0 and were skipped.

    Raises:
        DataError: an input that cannot be read; a column that there is not, or of another type; a null or a size below
            0, with the number of its row.

    Cost: one pass over these columns; kept are the distinct sizes of each batch.
    """
    validate_names(names)
    source = open_source(inputs)
    for name in names:
        source.require(name)
        kind = source.schema.field(name).type
        if not is_list(kind) and not pa.types.is_integer(kind):
            raise DataError(
                f"{source.name}: column {name!r} holds {kind}; the sizes of a resource are whole numbers, or lists "
                "that count with their lengths"
            )
    parts = [np.zeros((0, len(names) + 1), np.int64)]
    first_row = rows_empty = 0
    for batch in source.read(list(names)):
        rows = np.column_stack([_sizes(source.name, name, batch.column(name), first_row) for name in names])
        some = rows.max(axis=1) > 0
        distinct, _, counts = distinct_rows(rows[some])
        parts.append(np.column_stack([distinct, counts]))
        first_row += batch.num_rows
        rows_empty += batch.num_rows - int(some.sum())
        progress(batch.num_rows)
    counted = np.concatenate(parts)
    distinct, places, _ = distinct_rows(counted[:, :-1])
    counts = np.zeros(len(distinct), np.int64)
    np.add.at(counts, places, counted[:, -1])
    return source.name, ResourceHistogram(names, distinct, counts), rows_empty


def _sizes(source: str, name: str, column: pa.Array, first_row: int) -> IntArray:
    """(rows,) int64: the numbers of a column, or the lengths of its lists."""
    where = f"{source}: column {name!r}: row"
    if column.null_count:
        row = first_row + pc.index(column.is_null(), True).as_py()
        raise DataError(f"{where} {row} is null; give it a size, or leave the row out")
    numbers = pc.list_value_length(column) if is_list(column.type) else column
    sizes: IntArray = numbers.to_numpy(zero_copy_only=False).astype(np.int64)
    if len(sizes) and sizes.min() < 0:
        row = int(np.argmax(sizes < 0))
        raise DataError(f"{where} {first_row + row} is {numbers[row]}; a size is at least 0 and below 2^63")
    return sizes
