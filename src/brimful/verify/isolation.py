"""Change one sequence, or the padding, and see what else changes: nothing must."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from brimful.verify.calls import Batch, Subject
from brimful.verify.cases import Case, other_token, sequence_name
from brimful.verify.equality import difference, dtype_name
from brimful.verify.places import Places
from brimful.verify.report import Leak


@dataclass(frozen=True, slots=True)
class Isolation:
    """What changing a case's sequences and padding did to the others.

    Args:
        changes: how many sequences were changed; none where no output is per token or per sequence.
        longest: tokens of the longest of them.
        padding: whether there was padding to change.
        worst: the largest change of an output that should have stayed as it is.
        leaks: the changes above the tolerance.
    """

    changes: int
    longest: int
    padding: bool
    worst: float
    leaks: list[Leak]


def isolate(subject: Subject, case: Case, vocabulary: Sequence[int], tolerance: float) -> Isolation:
    """Change every sequence in turn, and the padding, and compare all other sequences' outputs.

    Inputs are made anew for each change, so that a function that guesses boundaries from tokens is tested as well.

    Args:
        subject: the model.
        case: what to run.
        vocabulary: the tokens to draw others from.
        tolerance: the largest change that is allowed. The outputs of a mask that works stay the same to the last bit.

    Cost: a forward pass for each sequence, and two.
    """
    worst, leaks = 0.0, []
    dtype = dtype_name(subject.like.dtype)
    with torch.no_grad():
        batch = subject.packed(case)
        places = subject.places(case, batch)
        before = subject.run_packed(batch).outputs
        by_sequence = {name: output for name, output in before.items() if places.kind(output) != "row"}
        if not by_sequence:
            return Isolation(0, 0, False, 0.0, [])
        for changed, spared, other, moved in _changes(subject, case, batch, places, vocabulary):
            after = subject.run_packed(other).outputs
            for name, output in by_sequence.items():
                for number, (row, place, _) in enumerate(case.sequences()):
                    if number == spared:
                        continue
                    amount = difference(moved.of(after[name], number), places.of(output, number))
                    worst = max(worst, amount)
                    if not amount <= tolerance:
                        leaks.append(Leak(changed, sequence_name(row, place), name, dtype, str(case), amount))
    lengths = [len(sequence["input_ids"]) for _, _, sequence in case.sequences()]
    return Isolation(len(lengths), max(lengths), bool(places.padding().any()), worst, leaks)


def _changes(
    subject: Subject, case: Case, batch: Batch, places: Places, vocabulary: Sequence[int]
) -> Iterator[tuple[str, int | None, Batch, Places]]:
    """Each change: what is changed, which sequence that is (None: none), the batch, and where its sequences lie."""
    for number, (row, place, _) in enumerate(case.sequences()):
        other = case.changed(row, place, vocabulary)
        changed = subject.packed(other)
        yield sequence_name(row, place), number, changed, subject.places(other, changed)
    tokens: Tensor = batch["input_ids"]
    free = places.padding().to(tokens.device)
    if free.any():
        others = [other_token(token, vocabulary) for token in tokens[free].tolist()]
        repadded = tokens.clone()
        repadded[free] = torch.tensor(others, dtype=tokens.dtype, device=tokens.device)
        yield "padding", None, {**batch, "input_ids": repadded}, places
