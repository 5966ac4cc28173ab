"""The lengths of a dataset's sequences: a property of it, a column, or counted."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor
from torch.utils.data import ConcatDataset

from brimful.errors import DataError, LengthError, SettingError, shown
from brimful.validation import whole_numbers


def dataset_lengths(
    dataset: Any, length_property: str = "length", column: str = "input_ids"
) -> npt.NDArray[np.integer[Any]]:
    """(sequences,) the lengths of a dataset, in tokens as it counts them; a sign is left as it is.

    Args:
        dataset: has a property or column of that name: a list, tuple, array, tensor or Arrow column; or its rows have
            tokens, which are counted, with a progress bar on standard error if that is a terminal. Those of a
            ConcatDataset are its parts', one after another.
        length_property: what the property is called.
        column: what the tokens of a row are called.

    Raises:
        DataError: there is no such property, and the rows have no such column.
        LengthError: not one whole number for each row.
        SettingError: the dataset has no length or cannot be indexed.

    Example:
        >>> dataset_lengths([{"input_ids": [7, 8, 9]}, {"input_ids": [7]}])
        array([3, 1])

    Cost: that of the property; or of reading every row once.
    """
    if isinstance(dataset, ConcatDataset):
        return np.concatenate([dataset_lengths(part, length_property, column) for part in dataset.datasets])
    if not isinstance(dataset, Sized) or not hasattr(dataset, "__getitem__"):
        raise SettingError(f"a dataset that is sampled has a length and rows by index, not {shown(dataset)}")
    values = getattr(dataset, length_property, None)
    if values is None and length_property in (getattr(dataset, "column_names", None) or ()):
        values = dataset[length_property]
    if values is None:
        return np.fromiter(_counted(dataset, length_property, column), np.int64, len(dataset))
    lengths = as_lengths(values)
    if len(lengths) != len(dataset):
        raise LengthError(f"{length_property} of the dataset has {len(lengths)} items for {len(dataset)} rows")
    return lengths


def as_lengths(values: Any) -> npt.NDArray[np.integer[Any]]:
    """Whole numbers in a list, tuple, array, tensor or Arrow column, as an array."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    elif isinstance(values, Sequence) and not isinstance(values, str | bytes):
        values = values[:]  # a column of Hugging Face datasets is read at once, not item by item
    return whole_numbers(values, "lengths")


def _counted(dataset: Any, length_property: str, column: str) -> Iterator[int]:
    for index in _shown(range(len(dataset))):
        row = dataset[index]
        if not isinstance(row, Mapping) or not hasattr(row.get(column), "__len__"):
            raise DataError(
                f"the dataset has no property or column {length_property!r}, and row {index} no {column} to count; "
                "give it one: a list of the tokens of each row"
            )
        yield len(row[column])


def _shown(indices: Sequence[int]) -> Iterable[int]:
    """The indices, with a progress bar if somebody watches standard error."""
    return _with_bar(indices) if sys.stderr.isatty() else indices


def _with_bar(indices: Sequence[int]) -> Iterator[int]:
    from rich.console import Console
    from rich.progress import track

    yield from track(indices, "counting tokens", console=Console(stderr=True))
