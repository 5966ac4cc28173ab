"""Rows as a data set gives them, mappings of lists, checked and joined: what the collator lays out as tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from brimful.assignment import PackAssignment
from brimful.errors import DataError, LengthError, SettingError, shown
from brimful.validation import IntArray, require_positive, whole_numbers

Numbers: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.float32]
Row: TypeAlias = Mapping[str, Any]

_DERIVED = ("position_ids", "segment_ids", "seq_idx")


@dataclass(frozen=True, slots=True, eq=False)
class PackedRows:
    """The rows of one batch, each column joined into one array.

    Args:
        lengths: for each row, (sequences,) int64, tokens of its sequences in order.
        tokens: of each column with a value per token, (tokens,) of all rows one after another; input_ids is among them.
        sequences: of each column with a value per sequence, (sequences,) of all rows one after another.
    """

    lengths: list[IntArray]
    tokens: dict[str, Numbers]
    sequences: dict[str, Numbers]


def read_rows(rows: Sequence[Row], sequence_columns: Collection[str]) -> PackedRows:
    """Join the rows of a batch, and trust none of them.

    Args:
        rows: mappings with `input_ids` and `seq_lengths`; every other column has a value per token, or is one of
            sequence_columns.
        sequence_columns: columns with a value per sequence.

    Raises:
        DataError: no rows, a column that is missing, of another length, or no numbers; seq_lengths that do not sum to
            the tokens of their row; a column that would contradict seq_lengths. Names the row.

    Example:
        >>> rows = [{"input_ids": [7, 8, 9], "seq_lengths": [2, 1]}, {"input_ids": [5], "seq_lengths": [1]}]
        >>> read_rows(rows, ()).tokens["input_ids"]
        array([7, 8, 9, 5])
    """
    _require_batch(rows, "seq_lengths")
    lengths = [_lengths(row["seq_lengths"], number) for number, row in enumerate(rows)]
    n_sequences = [len(each) for each in lengths]
    n_tokens = [int(each.sum()) for each in lengths]
    tokens, sequences = {}, {}
    for name in sorted({name for row in rows for name in row}, key=lambda name: (name != "input_ids", name)):
        if name == "seq_lengths":
            continue
        require_everywhere(name, rows)
        if name in sequence_columns:
            sequences[name] = _joined(name, rows, n_sequences, "sequences")
            continue
        values = _joined(name, rows, n_tokens, "tokens")
        if name == "attention_mask":  # as tokenizers give it: that there is no padding
            if not values.all():
                raise DataError("attention_mask has 0s, but packed rows hold no padding; pack without it")
            continue
        if name in _DERIVED:
            raise DataError(f"{name} follows from seq_lengths, and is made from them; drop that column")
        tokens[name] = values
    for name in sequence_columns:
        require_everywhere(name, rows)
    return PackedRows(lengths, tokens, sequences)


def join_sequences(
    sequences: Sequence[Row], assignment: PackAssignment, sequence_columns: Collection[str]
) -> list[dict[str, Any]]:
    """Packed rows from single sequences: those of a pack follow one another, and seq_lengths says where they meet.

    Args:
        sequences: mappings with `input_ids`; a column of sequence_columns has one value, every other as many as tokens.
        assignment: which sequences share a row; holds each of these once.

    Raises:
        DataError: the assignment is for another number of sequences.
        SettingError: it is none.

    Example:
        >>> sequences = [{"input_ids": [1, 2]}, {"input_ids": [3]}, {"input_ids": [4, 5, 6]}]
        >>> packs = PackAssignment(np.array([2, 0, 1]), np.array([0, 1, 3]))
        >>> [row["input_ids"].tolist() for row in join_sequences(sequences, packs, ())]
        [[4, 5, 6], [1, 2, 3]]
    """
    if not isinstance(assignment, PackAssignment):
        raise SettingError(f"an assignment is what brimful.assign gives, or None to pack here, not {shown(assignment)}")
    if len(assignment.sequence_ids) != len(sequences):
        raise DataError(
            f"the assignment is for {len(assignment.sequence_ids)} sequences, but there are {len(sequences)}; "
            "assign these, or leave the assignment out"
        )
    lengths = sequence_lengths(sequences)
    columns: dict[str, list[npt.NDArray[Any]]] = {}
    values: npt.NDArray[Any]
    for name in sorted({name for row in sequences for name in row}):
        require_everywhere(name, sequences, "sequence")
        columns[name] = [as_array(row[name]) for row in sequences]
        for number, (values, length) in enumerate(zip(columns[name], lengths, strict=True)):
            if name in sequence_columns:
                fits, expected = values.ndim == 0, "one"
            else:
                fits, expected = values.shape == (length,), f"{length}, one per token"
            if not fits:
                raise DataError(
                    f"sequence {number} (the first is 0): {name} has a value of shape {values.shape}, not {expected}; "
                    f"columns of one value per sequence are named in sequence_columns"
                )
            if values.ndim and values.dtype.kind in "iufb":  # before NumPy might make fractions of them by joining
                where = f"sequence {number} (the first is 0)"
                columns[name][number] = _tokens_of(name, values, sequences[number][name], where)
    rows = []
    for number in range(assignment.packs):
        pack = assignment[number]
        row: dict[str, Any] = {"seq_lengths": lengths[pack]}
        for name, column in columns.items():
            join = np.stack if name in sequence_columns else np.concatenate
            row[name] = join([column[sequence] for sequence in pack])
        rows.append(row)
    return rows


def sequence_lengths(sequences: Sequence[Row]) -> IntArray:
    """(sequences,) how many tokens each has; a DataError names the first without any."""
    _require_batch(sequences, "input_ids", "sequence")
    for number, row in enumerate(sequences):
        ids = row["input_ids"]
        if isinstance(ids, str | bytes) or not hasattr(ids, "__len__") or getattr(ids, "ndim", 1) != 1:
            raise DataError(
                f"sequence {number} (the first is 0): input_ids is a flat list of token ids, not {shown(ids)}"
            )
    lengths = np.array([len(row["input_ids"]) for row in sequences], np.int64)
    if not lengths.all():
        raise DataError(f"sequence {np.argmin(lengths)} (the first is 0) has no tokens; leave it out")
    return lengths


def as_array(values: Any) -> npt.NDArray[Any]:
    """The values as NumPy sees them; lists of several lengths, which it refuses, as what is no number.

    Example:
        >>> as_array([[1, 2], [3]]).dtype
        dtype('O')
    """
    try:
        return np.asarray(values)
    except ValueError:
        return np.full((1, 1), None)


def int64_of(name: str, values: npt.NDArray[Any], given: Any, where: str) -> npt.NDArray[Any]:
    """Whole numbers as int64, and others as they are; token ids are whole and from 0 up.

    Args:
        name: of the column.
        values: (values,) numbers.
        given: what they were made of.
        where: the row, in messages.

    Raises:
        DataError: a number that int64 does not hold, or an input_ids that is a fraction; names the first.

    Example:
        >>> int64_of("input_ids", np.array([0.5]), [0.5], "row 0")
        Traceback (most recent call last):
        brimful.errors.DataError: row 0: input_ids are whole numbers, but item 0 is 0.5 (float)
    """
    is_ids = name == "input_ids"
    if values.dtype == np.uint64 or (is_ids and values.dtype.kind == "f"):
        try:  # NumPy reads 2^63 beside a small number as a fraction: what was given tells the two apart
            values = whole_numbers(given, name)
        except LengthError as fault:
            raise DataError(f"{where}: {fault}") from None
    return values if values.dtype.kind == "f" else values.astype(np.int64, copy=False)


def _tokens_of(name: str, values: npt.NDArray[Any], given: Any, where: str) -> npt.NDArray[Any]:
    """As `int64_of`; ids below 0, which no embedding has, are refused."""
    numbers = int64_of(name, values, given, where)
    if name == "input_ids" and numbers.size and numbers.min() < 0:
        at = int(np.argmax(numbers < 0))
        raise DataError(f"{where}: token ids are from 0 up, but item {at} of input_ids is {numbers[at]}")
    return numbers


def require_mappings(rows: Sequence[Row], what: str = "row") -> None:
    """Nothing, if every row is a mapping; otherwise a DataError that names the first which is none."""
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(f"{what} {number} (the first is 0) is a mapping of columns, not {shown(row)}")


def require_everywhere(name: str, rows: Sequence[Row], what: str = "row") -> None:
    """Nothing, if every row has this column; otherwise a DataError that names the first without it."""
    for number, row in enumerate(rows):
        if row.get(name) is None:
            remedy = f"all {what}s of a batch have the same columns"
            if name == "seq_lengths":
                remedy = "for single sequences there is from_sequences"
            raise DataError(f"{what} {number} (the first is 0) has no {name}; {remedy}")


def _require_batch(rows: Sequence[Row], column: str, what: str = "row") -> None:
    if isinstance(rows, Mapping) or not isinstance(rows, Sequence) or not len(rows):
        raise DataError(f"a batch is a list of at least one {what}, each a mapping of columns, not {shown(rows)}")
    require_mappings(rows, what)
    for name in dict.fromkeys(("input_ids", column)):
        require_everywhere(name, rows, what)


def _lengths(values: Any, row: int) -> IntArray:
    try:
        lengths = whole_numbers(values, "seq_lengths")
        require_positive(lengths, "length")
    except LengthError as fault:
        raise DataError(f"row {row} (the first is 0): {fault}") from None
    if not len(lengths):
        raise DataError(f"row {row} (the first is 0) has no sequences; leave it out")
    return lengths.astype(np.int64)


def _joined(name: str, rows: Sequence[Row], counts: list[int], unit: str) -> Numbers:
    """The values of a column in one array; a row has as many as counts says, one for each token or sequence."""
    arrays = []
    for number, (row, count) in enumerate(zip(rows, counts, strict=True)):
        where = f"row {number} (the first is 0)"
        values = as_array(row[name])
        if values.ndim != 1 or values.dtype.kind not in "iufb":
            raise DataError(f"{where}: {name} is a flat list of numbers, not {shown(row[name])}; drop other columns")
        if len(values) != count:
            raise DataError(f"{where}: {_of_another_length(name, len(values), row, count, unit)}")
        arrays.append(_tokens_of(name, values, row[name], where))
    joined = np.concatenate(arrays)
    return joined.astype(np.float32) if joined.dtype.kind == "f" else joined


def _of_another_length(name: str, found: int, row: Row, count: int, unit: str) -> str:
    if name == "input_ids":
        return (
            f"seq_lengths {shown(np.asarray(row['seq_lengths']).tolist())} sum to {count}, but input_ids has {found} "
            "tokens; they are the lengths of its sequences, in order and without padding"
        )
    if unit == "sequences":
        return f"{name} has {found} values for {count} sequences; a column of sequence_columns has one for each"
    return (
        f"{name} has {found} values for {count} tokens; give one per token, or name the column in sequence_columns "
        "if it has one per sequence"
    )
