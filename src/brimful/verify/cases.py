"""What is run: rows whose lengths have caught mistakes before, or rows of the user's own sequences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from brimful.errors import DataError, shown
from brimful.torch.rows import as_array

Columns: TypeAlias = Mapping[str, Any]
"""One sequence: its tokens under "input_ids", and other columns of one value per token, or one for the sequence."""

Label: TypeAlias = Callable[[list[int], np.random.Generator], Mapping[str, Any]]
"""Columns of labels for the tokens of one sequence."""

AWKWARD = (
    (((1,),), 1),  # one token, and nothing else
    (((1, 1, 1),), 3),  # a full row of single tokens
    (((3, 1, 2),), 6),
    (((3, 1, 2), (1, 4), (5, 3), (1, 1, 1), (1,), (5, 2)), 8),  # full, one token of padding, mostly padding
)
"""Lengths of the sequences in each row of a batch, and the token slots of a row."""


@dataclass(frozen=True, slots=True)
class Case:
    """Rows that go through the model in one batch.

    Args:
        rows: for each row its sequences in order.
        max_length: token slots of a row.

    Example:
        >>> case = Case((({"input_ids": [7, 8, 9]}, {"input_ids": [5]}), ({"input_ids": [6]},)), max_length=6)
        >>> str(case)
        '[3 1] [1] in rows of 6'
        >>> case.packed()[0]
        {'seq_lengths': [3, 1], 'input_ids': [7, 8, 9, 5]}
    """

    rows: tuple[tuple[Columns, ...], ...]
    max_length: int

    def __str__(self) -> str:
        lengths = (" ".join(str(len(sequence["input_ids"])) for sequence in row) for row in self.rows)
        return " ".join(f"[{row}]" for row in lengths) + f" in rows of {self.max_length}"

    def sequences(self) -> Iterator[tuple[int, int, Columns]]:
        """Every sequence, with its row and its place there."""
        for row, sequences in enumerate(self.rows):
            for place, sequence in enumerate(sequences):
                yield row, place, sequence

    def packed(self) -> list[dict[str, list[int]]]:
        """The rows as a packed data set holds them, which is what a collator takes."""
        packed = []
        for sequences in self.rows:
            columns: dict[str, list[int]] = {"seq_lengths": [len(sequence["input_ids"]) for sequence in sequences]}
            for name, value in sequences[0].items():
                values = [sequence[name] for sequence in sequences]
                columns[name] = values if isinstance(value, int) else [each for some in values for each in some]
            packed.append(columns)
        return packed

    def sequence_columns(self) -> tuple[str, ...]:
        """The columns that have one value per sequence."""
        return tuple(name for name, value in self.rows[0][0].items() if isinstance(value, int))

    def alone(self, row: int, place: int) -> Case:
        """The case of one sequence in a row of its own, without padding."""
        sequence = self.rows[row][place]
        return Case(((sequence,),), len(sequence["input_ids"]))

    def only(self, row: int) -> Case:
        """The case of one of these rows."""
        return Case((self.rows[row],), self.max_length)

    def changed(self, row: int, place: int, vocabulary: Sequence[int]) -> Case:
        """The case with every token of one sequence replaced by another of the vocabulary."""
        sequence = self.rows[row][place]
        other = {**sequence, "input_ids": [other_token(token, vocabulary) for token in sequence["input_ids"]]}
        if sequence.get("labels") == sequence["input_ids"]:  # as for a causal model, which predicts its tokens
            other["labels"] = other["input_ids"]
        sequences = tuple(other if at == place else given for at, given in enumerate(self.rows[row]))
        rows = tuple(sequences if at == row else given for at, given in enumerate(self.rows))
        return Case(rows, self.max_length)


def sequence_name(row: int, place: int) -> str:
    """A sequence as reports and errors name it, counting from 1."""
    return f"sequence {place + 1} of row {row + 1}"


def other_token(token: int, vocabulary: Sequence[int]) -> int:
    """A token of the vocabulary, which has at least 2, that is not this one; always the same."""
    at = (token * 7 + 3) % len(vocabulary)
    return vocabulary[at] if vocabulary[at] != token else vocabulary[(at + 1) % len(vocabulary)]


def awkward_cases(
    vocabulary: Sequence[int], label: Label, window: int | None, widths: Collection[int] = ()
) -> list[Case]:
    """The cases of `AWKWARD`, and with a sliding window one of sequences that are longer than it.

    Args:
        vocabulary: the tokens to draw from, at least 2; all different within a case, if there are enough.
        label: what the labels of a sequence are.
        window: tokens; None for none.
        widths: numbers that no row has as its slots or sequences; outputs of that width would look like one value for
            each of those.
    """
    rng = np.random.default_rng(0)
    lengths = list(AWKWARD)
    if window is not None:
        lengths.append((((window + 3, 2, 2 * window + 1),), 3 * window + 7))
    return [_draw(*_told_apart(rows, max_length, widths), vocabulary, label, rng) for rows, max_length in lengths]


def long_case(vocabulary: Sequence[int], label: Label, longest: int, widths: Collection[int] = ()) -> Case:
    """Two sequences far longer than the awkward ones, for what reaches beyond a few tokens, and padding.

    Args:
        vocabulary, label, widths: as for `awkward_cases`.
        longest: tokens of the longer one.

    Example:
        >>> str(long_case(range(99), lambda *_: {}, 40))
        '[40 30] in rows of 72'
    """
    lengths = (longest, 3 * longest // 4)
    rows, max_length = _told_apart((lengths,), sum(lengths) + 2, widths)
    return _draw(rows, max_length, vocabulary, label, np.random.default_rng(1))


def _told_apart(
    rows: Sequence[Sequence[int]], max_length: int, widths: Collection[int]
) -> tuple[Sequence[Sequence[int]], int]:
    """The same with so many slots, and sequences in a row, that they are none of these widths; full rows stay full."""
    widths = set(widths) - {0, 1}  # one token alone is the same either way
    while (most := max(map(len, rows), default=0)) in widths or max_length in widths:
        rows = [(*row, 1) if sum(row) == max_length or len(row) == most else row for row in rows]
        max_length += 1
    return rows, max_length


def given_case(sequences: Sequence[Any], label: Label = lambda *_: {}, widths: Collection[int] = ()) -> Case:
    """The user's own sequences in one row, with a little padding behind them.

    Args:
        sequences: lists of tokens, or mappings of columns with one whole number per token or one per sequence, among
            them input_ids.
        label: what the labels of a sequence are that brings none.
        widths: as for `awkward_cases`.

    Raises:
        DataError: there are none, one has no tokens, a column of another length, or other columns than the first.

    Example:
        >>> str(given_case([[5, 6, 7], [8]]))
        '[3 1] in rows of 5'
    """
    if isinstance(sequences, str | Mapping) or not isinstance(sequences, Sequence) or not len(sequences):
        raise DataError(f"sequences are a list of at least one list of tokens, not {shown(sequences)}")
    columns = [_columns(sequence, number) for number, sequence in enumerate(sequences)]
    for number, sequence in enumerate(columns):
        if _kinds(sequence) != _kinds(columns[0]):
            raise DataError(f"sequence {number} (the first is 0) has other columns than sequence 0; give all the same")
    rng = np.random.default_rng(0)
    columns = [{**label(sequence["input_ids"], rng), **sequence} for sequence in columns]
    tokens = sum(len(sequence["input_ids"]) for sequence in columns)
    _, max_length = _told_apart((), tokens + 1, widths)
    return Case((tuple(columns),), max_length)


def _kinds(columns: Columns) -> dict[str, type]:
    """Of each column whether it has one value, or a list of them."""
    return {name: type(value) for name, value in columns.items()}


def _columns(sequence: Any, number: int) -> dict[str, Any]:
    where = f"sequence {number} (the first is 0)"
    columns = sequence if isinstance(sequence, Mapping) else {"input_ids": sequence}
    if "input_ids" not in columns:
        raise DataError(f"{where} has no input_ids")
    read: dict[str, Any] = {}
    for name, values in columns.items():
        array = as_array(values)
        of_sequence = array.ndim == 0 and name != "input_ids"
        if array.dtype.kind not in "iub" or not array.size or not (array.ndim == 1 or of_sequence):
            or_one = "" if name == "input_ids" else ", or one for the sequence"
            raise DataError(f"{where}: {name} is a list of at least one whole number{or_one}, not {shown(values)}")
        read[name] = array.astype(np.int64).tolist()
        if array.ndim and len(read[name]) != len(columns["input_ids"]):
            raise DataError(f"{where}: {name} has {len(read[name])} values for {len(columns['input_ids'])} tokens")
    return read


def _draw(
    rows: Sequence[Sequence[int]],
    max_length: int,
    vocabulary: Sequence[int],
    label: Label,
    rng: np.random.Generator,
) -> Case:
    total = sum(sum(row) for row in rows)
    drawn = iter(rng.choice(np.asarray(vocabulary), size=total, replace=total > len(vocabulary)).tolist())

    def sequence(length: int) -> Columns:
        tokens = [next(drawn) for _ in range(length)]
        return {"input_ids": tokens, **label(tokens, rng)}

    return Case(tuple(tuple(sequence(length) for length in row) for row in rows), max_length)
