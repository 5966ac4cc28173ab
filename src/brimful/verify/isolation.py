"""Change one sequence, or the padding, and see what else changes: nothing must."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from brimful.verify.calls import Batch, Outcome, Subject
from brimful.verify.cases import Case, other_token
from brimful.verify.equality import difference, dtype_name, sequence_name
from brimful.verify.places import Places
from brimful.verify.report import Leak

PADDING = "padding"


@dataclass(frozen=True, slots=True)
class Isolation:
    """What changing a case's sequences and padding did to the others.

    Args:
        changes: how many sequences were changed.
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
        before = subject.run_packed(batch)
        if not before.outputs:
            return Isolation(0, 0, False, 0.0, [])

        def reached(after: Outcome, places_after: Places, changed: str, spared: int | None) -> None:
            nonlocal worst
            for name, output in before.outputs.items():
                for number, (row, place, _) in enumerate(case.sequences()):
                    if number == spared or places.kind(output) == "row":
                        continue
                    now = places_after.of(after.outputs[name], number)
                    amount = difference(now, places.of(output, number))
                    worst = max(worst, amount)
                    if not amount <= tolerance:
                        leaks.append(Leak(changed, sequence_name(row, place), name, dtype, str(case), amount))

        for number, (row, place, _) in enumerate(case.sequences()):
            other = case.changed(row, place, vocabulary)
            changed = subject.packed(other)
            moved = subject.places(other, changed)
            reached(subject.run_packed(changed), moved, sequence_name(row, place), number)
        padding = _with_other_padding(batch, places, vocabulary)
        if padding is not None:
            reached(subject.run_packed(padding), places, PADDING, None)
    lengths = [len(sequence["input_ids"]) for _, _, sequence in case.sequences()]
    return Isolation(len(lengths), max(lengths), padding is not None, worst, leaks)


def _with_other_padding(batch: Batch, places: Places, vocabulary: Sequence[int]) -> Batch | None:
    """The batch with other tokens on its padding, or None if it has none."""
    tokens: Tensor = batch["input_ids"]
    free = places.padding().to(tokens.device)
    if not free.any():
        return None
    others = [other_token(token, vocabulary) for token in tokens[free].tolist()]
    changed = tokens.clone()
    changed[free] = torch.tensor(others, dtype=tokens.dtype, device=tokens.device)
    return {**batch, "input_ids": changed}
