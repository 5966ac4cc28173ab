"""Packs dealt to ranks, so that in each step all ranks have about as much attention to compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.assignment import PackAssignment
from brimful.batching.batches import Batches
from brimful.batching.length_grouped import Draw
from brimful.errors import LengthError
from brimful.validation import Lengths, validate_capacity, validate_lengths


@dataclass(frozen=True, slots=True, eq=False)
class EvenSteps:
    """Batches of packs in the order of training: step s of rank r of w is batch s × w + r.

    Args:
        batches: ids are packs. The batches of full steps hold batch_size packs each; of a last step that is not full,
            some are missing, or one holds fewer.
        imbalance_before: time that ranks wait for the costliest one, as a share of what they compute, over all full
            steps, if the packs came in random order; 0 is even.
        imbalance: the same as the packs come now.
    """

    batches: Batches
    imbalance_before: float
    imbalance: float


def pack_costs(assignment: PackAssignment, lengths: Lengths) -> npt.NDArray[np.int64]:
    """(packs,) Σ length² over the sequences of each pack: how much attention it is.

    Full packs have equally many tokens, so that what differs between them is attention.

    Raises:
        LengthError: there is not one length for each sequence.

    Example:
        >>> pack_costs(PackAssignment(np.array([0, 1, 2]), np.array([0, 2, 3])), [3, 4, 5])
        array([25, 25])

    Cost: one pass over the sequences.
    """
    array = validate_lengths(lengths).astype(np.int64)
    if len(array) != len(assignment.sequence_ids):
        raise LengthError(
            f"an assignment of {len(assignment.sequence_ids)} sequences has as many lengths, not {len(array)}"
        )
    if not assignment.packs:
        return np.zeros(0, np.int64)
    return np.add.reduceat(array[assignment.sequence_ids] ** 2, assignment.pack_offsets[:-1])


def even_steps(
    costs: npt.NDArray[Any], draw: Draw, world: int, batch_size: int = 1, window: int | None = 128
) -> EvenSteps:
    """Shuffle packs; within each window of steps, put packs of about equal cost into one step; shuffle the steps.

        2 ranks, window of 2 steps, packs cost 9 1 8 2    ->    steps [9 8] and [1 2], in random order, ranks at random

    Args:
        costs: (packs,) such as `pack_costs`, each ≥ 0.
        draw: chance, as permutations: of the packs, of the full steps, and of the ranks in them, in this order, so that
            the packs of a step depend on world × batch_size, but not on how many ranks share them.
        world: ranks, ≥ 1.
        batch_size: packs that a rank takes in a step, ≥ 1.
        window: steps whose packs may be exchanged, ≥ 1: more of them are more even, fewer give more varied company; 1
            only deals out what chance put into a step. None for all.

    Returns:
        Each pack once. Those that do not fill a step come last, whatever they cost.

    Raises:
        LengthError: world, batch_size or window is no whole number ≥ 1.

    Example:
        >>> steps = even_steps(np.array([9, 1, 8, 2, 5]), np.arange, world=2, window=2)
        >>> steps.batches.to_lists()
        [[0], [2], [3], [1], [4]]
        >>> round(steps.imbalance_before, 3), round(steps.imbalance, 3)   # (9 + 8) / (5 + 5) and (9 + 2) / (8.5 + 1.5)
        (0.7, 0.1)

    Cost: three permutations and a sort; a million packs take about 0.2 s.
    """
    world = validate_capacity(world, "the number of ranks")
    batch_size = validate_capacity(batch_size, "batch_size")
    size = world * batch_size
    packs = draw(len(costs))
    n_steps = len(packs) // size
    shuffled, rest = packs[: n_steps * size].reshape(n_steps, size), packs[n_steps * size :]
    window = max(n_steps, 1) if window is None else validate_capacity(window, "window")
    # Which packs share a step, and when it comes, is drawn before anything that the number of ranks changes.
    steps = _alike(shuffled, costs, window)[draw(n_steps)]
    # The costliest pack of a step to the first rank, the next to the second, and at the end back again.
    dealt = steps.reshape(n_steps, batch_size, world)
    dealt[:, 1::2] = dealt[:, 1::2, ::-1].copy()
    ranks = np.argsort(draw(n_steps * world).reshape(n_steps, world), axis=1)
    dealt = np.take_along_axis(dealt, ranks[:, None, :], axis=2).transpose(0, 2, 1)
    before = shuffled.reshape(n_steps, world, batch_size)
    batches = Batches.cut(np.concatenate([dealt.ravel(), rest]), batch_size)
    return EvenSteps(batches, _imbalance(costs[before].sum(axis=2)), _imbalance(costs[dealt].sum(axis=2)))


def _alike(steps: npt.NDArray[np.int64], costs: npt.NDArray[Any], window: int) -> npt.NDArray[np.int64]:
    """Steps of packs of similar cost, costliest first in each: every window sorted, and cut into steps again."""
    n_steps, size = steps.shape
    full = n_steps - n_steps % window
    sorted_windows = [
        np.take_along_axis(part, np.argsort(-costs[part], axis=1, kind="stable"), axis=1).ravel()
        for part in (steps[:full].reshape(-1, window * size), steps[full:].reshape(1, -1))
    ]
    return np.concatenate(sorted_windows).reshape(n_steps, size)


def _imbalance(costs: npt.NDArray[Any]) -> float:
    """(steps, ranks) costs: how much more the costliest rank of each step computes than the mean."""
    mean = costs.mean(axis=1).sum() if costs.size else 0
    return float(costs.max(axis=1).sum() / mean - 1) if mean else 0.0
