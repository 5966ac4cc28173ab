"""Where each sequence of a case lies in its batch, and in what a model makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brimful.errors import DataError
from brimful.verify.cases import Case, sequence_name


@dataclass(frozen=True, slots=True)
class Places:
    """Where the sequences of a case lie in its batch.

    Args:
        shape: (rows, slots) of input_ids.
        spans: for each sequence in order: the row of the batch, its first slot, and the slot after its last.
        index: for each sequence the row of the batch, and its place among those of the row.
        segments: as many values has a row of an output with one per sequence; None if there are no such outputs.
    """

    shape: tuple[int, int]
    spans: list[tuple[int, int, int]]
    index: list[tuple[int, int]]
    segments: int | None

    def kind(self, output: Tensor) -> str:
        """What an output has a value for.

        "token": (rows, slots, …); "flat": the same as (rows · slots, …); "sequence": (rows, segments, …); or "row".
        """
        if tuple(output.shape[:2]) == self.shape:
            return "token"
        if output.shape[0] == self.shape[0] * self.shape[1]:
            return "flat"
        return "sequence" if tuple(output.shape[:2]) == (self.shape[0], self.segments) else "row"

    def of(self, output: Tensor, number: int) -> Tensor:
        """What a packed output that is not per row holds for one sequence: (tokens, …), or (1, …) if per sequence."""
        row, first, end = self.spans[number]
        kind = self.kind(output)
        if kind == "token":
            return output[row, first:end]
        if kind == "flat":
            return output[row * self.shape[1] + first : row * self.shape[1] + end]
        row, place = self.index[number]
        return output[row, place : place + 1]

    def of_alone(self, alone: Tensor | None, packed: Tensor) -> Tensor:
        """The same of what the sequence gave alone, of which the packed output is the counterpart."""
        if alone is None:
            return torch.empty(0)
        return alone if self.kind(packed) == "flat" or alone.ndim < packed.ndim else alone[0]

    def only(self, output: Tensor) -> Tensor:
        """An output of a batch of one sequence without its padding."""
        kind = self.kind(output)
        if kind == "row":
            return output
        return self.of(output, 0) if kind == "flat" else self.of(output, 0)[None]

    def padding(self) -> Tensor:
        """(rows, slots) True where no sequence lies."""
        free = torch.ones(self.shape, dtype=torch.bool)
        for row, first, end in self.spans:
            free[row, first:end] = False
        return free


def find_places(case: Case, tokens: Tensor, segments: int | None) -> Places:
    """Find each sequence by its tokens, trusting nothing that the collator says about boundaries.

    Raises:
        DataError: a sequence is not there as a whole, after those before it.
    """
    rows, slots = tokens.shape
    flat = tokens.flatten().tolist()
    spans: list[tuple[int, int, int]] = []
    index: list[tuple[int, int]] = []
    at = 0
    for row, place, sequence in case.sequences():
        length = len(sequence["input_ids"])
        while flat[at : at + length] != sequence["input_ids"] or at % slots + length > slots:
            at += 1
            if at + length > len(flat):
                raise DataError(
                    f"in the batch that collate makes of {case}, {sequence_name(row, place)} is missing; input_ids "
                    "hold the tokens of every sequence, unchanged and in order"
                )
        spans.append((at // slots, at % slots, at % slots + length))
        index.append((row, place) if len(case.rows) == rows else (0, len(index)))
        at += length
    return Places((rows, slots), spans, index, segments)
