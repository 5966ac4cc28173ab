"""Sizes in several resources: the one place where their names and numbers are validated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.errors import LengthError, SettingError, shown
from brimful.validation import IntArray, Lengths, validate_capacity, whole_numbers

_NAME = re.compile(r"[^\W\d][\w.-]{0,99}")


def validate_names(names: Iterable[Any]) -> tuple[str, ...]:
    """The names of resources as a tuple, or a LengthError that names the first which is none.

    Example:
        >>> validate_names(["tokens", "count"])
        Traceback (most recent call last):
        brimful.errors.LengthError: a resource has a plain name, up to 100 letters, digits and . _ -, not 'count'
    """
    checked: list[str] = []
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name == "count":
            raise LengthError(f"a resource has a plain name, up to 100 letters, digits and . _ -, not {shown(name)}")
        if name in checked:
            raise LengthError(f"a resource is named once, but {name!r} stands twice")
        checked.append(name)
    if not checked:
        raise LengthError("a size has at least one resource, such as tokens; none is named")
    return tuple(checked)


def validate_rows(names: tuple[str, ...], columns: Iterable[Any]) -> IntArray:
    """Sizes as (sequences, resources) int64, each ≥ 0, one of each sequence above 0; or a LengthError."""
    checked: list[npt.NDArray[np.integer[Any]]] = []
    for name, values in zip(names, columns, strict=True):
        column = whole_numbers(values, f"the sizes in {name}")
        if len(column) and column.min() < 0:
            at = int(np.argmax(column < 0))
            raise LengthError(f"the sizes in {name} are at least 0, but item {at} is {column[at]}")
        if checked and len(column) != len(checked[0]):
            raise LengthError(
                f"a sequence has a size in every resource, but there are {len(checked[0])} in {names[0]} "
                f"and {len(column)} in {name}"
            )
        checked.append(column)
    rows = np.column_stack(checked).astype(np.int64)
    empty = rows.max(axis=1, initial=0) == 0
    if empty.any():
        at = int(np.argmax(empty))
        raise LengthError(f"a sequence has a size above 0 in some resource, but item {at} has none; leave it out")
    return rows


def size_rows(sizes: Mapping[str, Lengths]) -> tuple[tuple[str, ...], IntArray]:
    """The names and the (sequences, resources) sizes of columns by name, validated."""
    if not isinstance(sizes, Mapping):
        raise LengthError(f"sizes are given by resource, such as {{'tokens': [7, 2]}}, not as {shown(sizes)}")
    names = validate_names(sizes)
    return names, validate_rows(names, sizes.values())


def distinct_rows(rows: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The distinct rows in increasing order, for each row which of them it is, and how often each occurs.

    Example:
        >>> distinct, places, counts = distinct_rows(np.array([[7, 1], [2, 0], [7, 1]]))
        >>> distinct.tolist(), places.tolist(), counts.tolist()
        ([[2, 0], [7, 1]], [1, 0, 1], [1, 2])

    Cost: one sort for each resource.
    """
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    first = np.ones(len(rows), bool)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = first.nonzero()[0]
    places = np.empty(len(rows), np.int64)
    places[order] = np.cumsum(first) - 1
    return ordered[starts], places, np.diff(np.append(starts, len(rows)))


def validate_capacities(names: tuple[str, ...], capacities: Mapping[str, int]) -> tuple[int, ...]:
    """A capacity for each of these resources, in their order, and for no other.

    Raises:
        SettingError: a resource without a capacity, or a capacity of a resource that there is not.
        LengthError: a capacity is no whole number ≥ 1.

    Example:
        >>> validate_capacities(("tokens", "images"), {"images": 8, "tokens": 2048})
        (2048, 8)
    """
    if not isinstance(capacities, Mapping):
        raise SettingError(f"capacities are given by resource, such as {{'tokens': 2048}}, not as {shown(capacities)}")
    for name in capacities:
        if name not in names:
            raise SettingError(f"there is no resource {shown(name)}; there are {', '.join(names)}")
    for name in names:
        if name not in capacities:
            raise SettingError(f"every resource has a capacity, but {name} has none; say how much of it a pack holds")
    return tuple(validate_capacity(capacities[name], f"the capacity of {name}") for name in names)
