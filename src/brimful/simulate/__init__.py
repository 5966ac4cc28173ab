"""What packing gains over padding on many devices, beside un-padding, sorting, length grouping and token budgets.

Every step of data-parallel training ends when the slowest device is done. Where batches differ in cost, more devices
mean a longer wait; where all rows are full, they do not. `simulate` computes by how much, from a histogram of lengths:
expectations, exact or with a bound on their error, not averages of random runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from brimful.errors import LengthError, SettingError, shown
from brimful.plans import PackPlan
from brimful.simulate.costs import CostModel
from brimful.simulate.methods import METHODS, Training, padding
from brimful.validation import validate_capacity

__all__ = ["DEVICES", "METHODS", "CostModel", "Simulation", "simulate"]

DEVICES = tuple(2**power for power in range(12))
"""1, 2, 4 … 2048 devices, as in the paper's figure 5."""

MOST_DEVICES = 2**20
MOST_ROWS = 2**13


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """How many times as fast as padding each method trains, in sequences by time.

    Args:
        plan: the packs, and the sequences that they hold.
        batch_size: rows of a device in a step.
        devices: how many devices.
        costs: what was assumed.
        mega_batch_mult: steps that length grouping sorts together at most.
        speedups: for each method, in the order of METHODS, one for each number of devices.
        error: by how much any speed-up may be too low at most, as a share of itself: what a grid of costs does. Beside
            it only how many shapes length grouping has to compile is an estimate.
    """

    plan: PackPlan
    batch_size: int
    devices: tuple[int, ...]
    costs: CostModel
    mega_batch_mult: int
    speedups: Mapping[str, tuple[float, ...]]
    error: float

    @property
    def most_devices(self) -> int:
        """The most devices for which an epoch has a whole step of packs; figures for more are in theory only."""
        return self.plan.packs // self.batch_size

    def figures(self) -> dict[str, Any]:
        """All of it under standard names, ready for JSON."""
        return {
            "max_length": self.plan.max_length,
            "batch_size": self.batch_size,
            "mega_batch_mult": self.mega_batch_mult,
            "costs": asdict(self.costs),
            "devices": list(self.devices),
            "most_devices": self.most_devices,
            "speedups": {method: list(speedups) for method, speedups in self.speedups.items()},
            "error": self.error,
            "speedup_limit": self.plan.histogram.speedup_limit(self.plan.max_length),
            "plan": self.plan.figures(),
        }


def simulate(
    plan: PackPlan,
    devices: Sequence[int] = DEVICES,
    batch_size: int = 16,
    costs: CostModel | None = None,
    *,
    mega_batch_mult: int = 50,
) -> Simulation:
    """Compute the expected speed-up over padding of every method, for each number of devices.

        un-padding, batches of 2 sequences of 1 or 3 tokens, 2 devices      [3 1 .][1 1 .]: both wait for 4 tokens
        packing, rows of 3 tokens                                           [3 3 3][1 1 1]: all rows cost the same

    Sequences are drawn independently, as from a dataset that is much larger than a step. A step is what is computed
    between two exchanges of gradients: with gradient accumulation, batch_size is the rows of all its passes.

    On the lengths of BERT's Wikipedia data at 512, with costs linear in tokens and a batch_size of 21, un-padding falls
    from 2.00 on one device to 1.30 on 2048, as in the paper's figure 5, and packing stays at 2.00. (That batch size is
    found, not read.) The smaller the batches, the steeper the fall: to 1.24 with 16, to 1.39 with 32.

    What it does not know: un-padded batches may hold more sequences in the same memory, and may be dealt out so that
    devices have equal work, which both lessen the wait; packing and token budgets change how many sequences a step has
    (see `brimful.tuning`); communication is in step_overhead, the same for all.

    Args:
        plan: from `brimful.plan`: the packs that are trained on, and with its histogram the lengths of all sequences.
        devices: numbers of devices, each from 1 to 2^20.
        batch_size: rows of a device in a step, from 1 to 2^13: of padding, packs, or un-padded sequences. A token
            budget has as many slots as such a batch.
        costs: linear in tokens, and nothing beside, if left out.
        mega_batch_mult: steps that length grouping sorts together at most, ≥ 1.

    Returns:
        For each name in METHODS a speed-up for each number of devices.

    Raises:
        LengthError: a plan of no sequences; devices, batch_size or mega_batch_mult out of range or no whole numbers.
        SettingError: no devices; a plan or costs that are something else.

    Example: two lengths, so that it can be done by hand; see the drawing above.
        >>> import brimful
        >>> lengths = brimful.LengthHistogram.from_lengths([1, 3] * 3000)
        >>> result = simulate(brimful.plan(lengths, max_length=3), devices=[1, 2], batch_size=2)
        >>> {name: [round(each, 3) for each in both] for name, both in result.speedups.items()}["unpadding"]
        [1.5, 1.263]
        >>> result.speedups["packing"]
        (1.5, 1.5)

    Cost: some tenths of a second for the lengths of Wikipedia and twelve numbers of devices; length grouping takes some
    tens of microseconds for each distinct length and number of devices.
    Source: arXiv 2107.02027, section 4.4 and figure 5.
    """
    if not isinstance(plan, PackPlan):
        raise SettingError(f"a plan is what brimful.plan gives, not {shown(plan)}")
    if not isinstance(costs, CostModel | None):
        raise SettingError(f"costs are a CostModel, such as CostModel(quadratic_share=0.1), not {shown(costs)}")
    if not plan.packs:
        raise LengthError("there are no sequences, so there is nothing to train on")
    if not isinstance(devices, Iterable) or not (devices := tuple(devices)):
        raise SettingError(f"devices are one number or more, such as [1, 8, 64], not {shown(devices)}")
    numbers = tuple(validate_capacity(each, "the number of devices", MOST_DEVICES) for each in devices)
    training = Training(
        plan,
        validate_capacity(batch_size, "batch_size", MOST_ROWS),
        numbers,
        CostModel() if costs is None else costs,
        validate_capacity(mega_batch_mult, "mega_batch_mult"),
    )
    base = padding(training).per_sequence
    times = {name: method(training) for name, method in METHODS.items()}
    speedups = {
        name: tuple(padded / time for padded, time in zip(base, each.per_sequence, strict=True))
        for name, each in times.items()
    }
    error = max(each.error for each in times.values())
    return Simulation(plan, training.batch_size, numbers, training.costs, training.mega_batch_mult, speedups, error)
