"""The ways to train on sequences of unequal length, and the time that each needs for a sequence.

One function shape: `Training -> Times`. Times are in rows of padding: the time in which a device computes one row of
max_length; padding itself needs 1 for each sequence, and its share of what a step takes anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from brimful.plans import PackPlan
from brimful.simulate.costs import CostModel, FloatArray
from brimful.simulate.waiting import BatchCost, batch_cost, expected_groups, slowest_of
from brimful.validation import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """What every method is given.

    Args:
        plan: the packs, and in its histogram the sequences; at least one.
        batch_size: rows of a device in a step, ≥ 1.
        devices: how many devices, ≥ 1 each; a time is wanted for every one of these numbers.
        costs: what a step takes.
        mega_batch_mult: steps whose sequences are sorted together by length grouping, ≥ 1.
    """

    plan: PackPlan
    batch_size: int
    devices: tuple[int, ...]
    costs: CostModel
    mega_batch_mult: int

    @property
    def n_sequences(self) -> int:
        """How many sequences an epoch has."""
        return self.plan.histogram.n_sequences

    @property
    def rows(self) -> FloatArray:
        """(distinct,) what a sequence of each length costs."""
        return self.costs.of_lengths(self.plan.histogram.lengths, self.plan.max_length)

    @property
    def shares(self) -> FloatArray:
        """(distinct,) how likely each length is."""
        return self.plan.histogram.counts / self.n_sequences

    @property
    def cells(self) -> int | None:
        """A grid on which costs that are linear in tokens lie exactly."""
        return None if self.costs.quadratic_share else self.plan.max_length

    def compiling(self, shapes: float, devices: int) -> float:
        """A sequence's share of the time in which all devices wait for the shapes after the first, in an epoch."""
        return self.costs.recompilation * max(shapes - 1, 0) * self.batch_size * devices / self.n_sequences


@dataclass(frozen=True, slots=True)
class Times:
    """What a sequence takes, in rows of padding.

    Args:
        per_sequence: one for each number of devices.
        error: by how much each may be off at most, as a share of itself.
    """

    per_sequence: tuple[float, ...]
    error: float = 0.0


def padding(training: Training) -> Times:
    """Every sequence in a row of max_length: the measure of all others."""
    return Times((1 + training.costs.step_overhead,) * len(training.devices))


def packing(training: Training) -> Times:
    """Rows of several sequences, all of max_length: no device waits for another, however many there are.

    Attention is computed for the whole row and masked.
    """
    costs = training.costs
    row = 1 + costs.packing_overhead + costs.step_overhead
    return Times((row / training.plan.packing_factor,) * len(training.devices))


def packing_varlen(training: Training) -> Times:
    """Packing with attention computed apart for each sequence: less work, but packs of unequal cost, so devices wait.

    A pack costs its slots in all that is linear, and the squares of its sequences in attention.
    """
    costs, patterns = training.costs, training.plan.patterns
    squares = patterns.copies * (patterns.lengths / training.plan.max_length) ** 2
    packs = 1 - costs.quadratic_share + costs.quadratic_share * np.add.reduceat(squares, patterns.offsets[:-1])
    batch = batch_cost(packs, patterns.counts / training.plan.packs, training.batch_size, 1 if training.cells else None)
    return _waiting(training, batch, costs.packing_overhead, float(packs.min()), training.plan.packing_factor)


def unpadding(training: Training) -> Times:
    """Kernels that compute tokens and no padding: a step ends when the device with the costliest batch is done.

    With batch_size sequences on every device, drawn at random. More of them even batches out, more devices make an
    unlucky one among them likely.
    """
    batch = batch_cost(training.rows, training.shares, training.batch_size, training.cells)
    least = float(training.rows @ training.shares)
    return _waiting(training, batch, training.costs.unpadding_overhead, least, 1.0)


def sorting(training: Training) -> Times:
    """The whole epoch sorted by length, and each step padded to its longest.

    A last step that is not full counts by its share.
    """

    def times(devices: int) -> float:
        size = training.batch_size * devices
        reached = np.minimum(-(-_longer(training) // size) * size, training.n_sequences) / training.n_sequences
        shapes = float(np.count_nonzero(np.diff(reached)))
        return _longest(training, reached) + training.compiling(shapes, devices)

    return Times(tuple(map(times, training.devices)))


def length_grouping(training: Training) -> Times:
    """Sorted by length within megabatches of mega_batch_mult steps, and each step padded to its longest.

    Megabatches are drawn at random; one of a single step is plain padding to the longest. As samplers do, an epoch is
    at least four megabatches, where it has the sequences for that. Its shapes are estimated, as if steps were
    independent.
    """

    def times(devices: int) -> float:
        size = training.batch_size * devices
        steps = max(1, min(training.mega_batch_mult, training.n_sequences // (4 * size)))
        longer = _longer(training) / training.n_sequences
        reached = np.array([expected_groups(steps * size, size, chance) for chance in longer.tolist()]) / steps
        of_each_length = -np.diff(reached) * training.n_sequences / size  # steps in an epoch
        shapes = float(-np.expm1(-of_each_length).sum())
        return _longest(training, reached) + training.compiling(shapes, devices)

    return Times(tuple(map(times, training.devices)))


def token_budget(training: Training) -> Times:
    """Batches of as many sequences of like length as fill batch_size × max_length slots; each device takes one a step.

    The whole epoch is sorted and cut into batches, which come in random order. The devices of a step may have different
    shapes, which they compile side by side, each for all.
    """
    histogram, max_length = training.plan.histogram, training.plan.max_length
    lengths, sizes, counts = _budget_batches(histogram.lengths, histogram.counts, training.batch_size * max_length)
    costs = sizes * training.costs.of_lengths(lengths, max_length)
    n_batches = int(counts.sum())
    n_shapes = len(np.unique(np.stack([lengths, sizes]), axis=1)[0])
    overhead = training.costs.step_overhead * training.batch_size

    def times(devices: int) -> float:
        step = slowest_of(costs, counts / n_batches, devices) + overhead
        shapes = min(n_shapes, n_batches / devices)
        return step * n_batches / training.n_sequences + training.compiling(shapes, devices)

    return Times(tuple(map(times, training.devices)))


METHODS: Mapping[str, Callable[[Training], Times]] = MappingProxyType(
    {
        "packing": packing,
        "packing_varlen": packing_varlen,
        "unpadding": unpadding,
        "sorting": sorting,
        "length_grouping": length_grouping,
        "token_budget": token_budget,
    }
)
"""Every way to train without padding each row to max_length, by name."""


def _waiting(training: Training, batch: BatchCost, overhead: float, least: float, sequences_per_row: float) -> Times:
    """Times where a step takes as long as its costliest batch; `least` is what a row costs at least, on average."""
    size = training.batch_size
    steps = (batch.slowest_of(devices) / size * (1 + overhead) for devices in training.devices)
    times = tuple((step + training.costs.step_overhead) / sequences_per_row for step in steps)
    return Times(times, batch.error(max(training.devices)) / (size * least))


def _longer(training: Training) -> IntArray:
    """(distinct + 1,) how many sequences are longer than nothing, than the shortest length, …, than the longest."""
    counts = training.plan.histogram.counts
    return np.append(np.cumsum(counts[::-1])[::-1], 0)


def _longest(training: Training, reached: FloatArray) -> float:
    """What a sequence takes where each step is padded to its longest; `reached` is the share of steps that have one
    longer than each length, as `_longer` counts them.
    """
    return float(np.diff(training.rows, prepend=0.0) @ reached[:-1]) + training.costs.step_overhead


def _budget_batches(lengths: IntArray, counts: IntArray, max_tokens: int) -> tuple[IntArray, IntArray, IntArray]:
    """The longest sequence, the sequences and the number of batches that are alike, cut longest first."""
    batches: list[tuple[int, int, int]] = []
    room = 0  # for shorter sequences, in the batch that is open
    for length, count in zip(lengths[::-1].tolist(), counts[::-1].tolist(), strict=True):
        room, count = max(room - count, 0), max(count - room, 0)
        full, rest = divmod(count, max_tokens // length)
        if full:
            batches.append((length, max_tokens // length, full))
        if rest:
            batches.append((length, max_tokens // length, 1))
            room = max_tokens // length - rest
    if room:
        length, size, _ = batches[-1]
        batches[-1] = (length, size - room, 1)
    longest, sizes, alike = np.array(batches, np.int64).T
    return longest, sizes, alike
