"""Lengths, capacities and other numbers that come from outside: the one place where they are validated.

Each function gives back what it was asked about in the form that the library works with, or raises one error that
states the rule and shows the value.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from brimful.errors import LengthError, SettingError, shown

IntArray: TypeAlias = npt.NDArray[np.int64]
Lengths: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]]

MAX_TOKENS = 2**62
"""Most tokens that all sequences may have together, so that every sum stays exact in int64."""


def validate_lengths(lengths: Lengths, what: str = "lengths") -> npt.NDArray[np.integer[Any]]:
    """The lengths as a flat integer array of any width, each ≥ 1; or a LengthError that names the first fault."""
    array = whole_numbers(lengths, what)
    require_positive(array, what.removesuffix("s"))
    return array


def whole_numbers(values: Any, what: str) -> npt.NDArray[np.integer[Any]]:
    """A one-dimensional integer array of these values, or a LengthError that names the first which is none."""
    if np.ma.is_masked(values) or getattr(values, "null_count", False):
        raise LengthError(f"{what} are whole numbers, but some are null or masked; fill them or leave them out")
    if not hasattr(values, "__array__") and (isinstance(values, str | bytes) or not isinstance(values, Sequence)):
        raise LengthError(f"{what} are a list or an array of whole numbers, not {shown(values)}")
    if not hasattr(values, "__array__"):
        return _from_items(list(values), what)
    array = np.asarray(values)
    if array.ndim != 1:
        raise LengthError(f"{what} are a flat list of whole numbers, not an array of {array.ndim} dimensions")
    if array.dtype.kind not in "iu":
        return _from_items(list(array) if array.dtype.kind in "mM" else array.tolist(), what)
    if array.dtype == np.uint64:
        if len(array) and array.max() >= 2**63:
            at = int(np.argmax(array >= 2**63))
            raise LengthError(f"{what} are below 2^63, but item {at} is {array[at]}")
        return array.astype(np.int64)
    return array


def _from_items(items: list[Any], what: str) -> IntArray:
    """Item by item: NumPy alone would take True for 1, and read 2^63 beside a small number as a fraction."""
    for index, item in enumerate(items):
        if isinstance(item, list | tuple | np.ndarray):
            raise LengthError(f"{what} are a flat list of whole numbers, but item {index} is {shown(item)}")
        if isinstance(item, bool | np.timedelta64) or not isinstance(item, int | np.integer):
            raise LengthError(f"{what} are whole numbers, but item {index} is {shown(item)} ({type(item).__name__})")
        if not -(2**63) <= item < 2**63:
            raise LengthError(f"{what} are below 2^63, but item {index} is {shown(item)}")
    return np.array(items, np.int64)


def require_positive(array: npt.NDArray[np.integer[Any]], what: str) -> None:
    """Nothing, if every item is at least 1; otherwise a LengthError that names the first which is not."""
    if len(array) and array.min() < 1:
        index = int(np.argmax(array < 1))
        remedy = "; leave empty sequences out" if array[index] == 0 and what == "length" else ""
        raise LengthError(f"a {what} is at least 1, but item {index} is {array[index]}{remedy}")


def require_countable(lengths: npt.NDArray[Any], align: int = 1) -> None:
    """Nothing, if all of these lengths together, aligned, are fewer than 2^62 tokens; otherwise a LengthError."""
    tokens = lengths.astype(np.float64).sum() + float(align) * len(lengths)
    if tokens >= MAX_TOKENS:
        raise LengthError(f"all lengths together are fewer than 2^62 tokens, not about {tokens:.3g}")


def read_only(array: npt.NDArray[np.integer[Any]]) -> IntArray:
    """A copy as int64 that nobody can write to."""
    copy = array.astype(np.int64)
    copy.flags.writeable = False
    return copy


def validate_capacity(value: Any, name: str, most: int = 2**31 - 1) -> int:
    """A whole number ≥ 1 that a pack can hold (of tokens, or of sequences), as a Python int.

    Raises:
        LengthError: it is a bool, fractional, not a number, below 1 or above `most`.

    Example:
        >>> validate_capacity(0, "max_length")
        Traceback (most recent call last):
        brimful.errors.LengthError: max_length is a whole number from 1 to 2147483647, not 0
    """
    number = _index(value)
    if number is None or not 1 <= number <= most:
        raise LengthError(f"{name} is a whole number from 1 to {most}, not {shown(value)}")
    return number


def validate_align(value: Any, max_length: int) -> int:
    """A whole number ≥ 1 of which max_length is a multiple, as a Python int; or a LengthError.

    Example:
        >>> validate_align(16, max_length=100)
        Traceback (most recent call last):
        brimful.errors.LengthError: max_length 100 is not a multiple of align 16; make it 96 or 112
    """
    align = validate_capacity(value, "align")
    if max_length % align:
        below = max_length - max_length % align
        remedy = f"{below} or {below + align}" if below else f"{align}"
        raise LengthError(f"max_length {max_length} is not a multiple of align {align}; make it {remedy}")
    return align


def aligned(lengths: npt.NDArray[Any], align: int) -> npt.NDArray[Any]:
    """The token slots that sequences take when each is padded to a multiple of `align`.

    Example:
        >>> aligned(np.array([3, 8, 9]), 8)
        array([ 8,  8, 16])
    """
    return lengths if align == 1 else -(-lengths.astype(np.int64) // align) * align


def whole_number(value: Any, name: str, most: int = 2**63 - 1) -> int:
    """A whole number from 0 to `most` as a Python int, or a SettingError.

    Example:
        >>> whole_number(-1, "seed")
        Traceback (most recent call last):
        brimful.errors.SettingError: seed is a whole number from 0 to 2^63 − 1, not -1
    """
    number = _index(value)
    if number is None or not 0 <= number <= most:
        limit = "2^63 − 1" if most == 2**63 - 1 else str(most)
        raise SettingError(f"{name} is a whole number from 0 to {limit}, not {shown(value)}")
    return number


def is_number(value: object) -> bool:
    """Whether this is a finite real number, of Python or NumPy, that a float can hold; True and False are none."""
    try:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def one_of(value: str, name: str, choices: tuple[str, ...]) -> str:
    """The value, if it is one of the choices; otherwise a SettingError that lists them."""
    if value not in choices:
        raise SettingError(f"{name} is one of {', '.join(choices)}, not {shown(value)}")
    return value


def _index(value: Any) -> int | None:
    """A whole number of whatever type as a Python int; None for anything else, and for True and False."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
