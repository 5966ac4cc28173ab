"""ResourcePlan: which sizes share a pack, how often, and how near to the optimum that is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from brimful.errors import BrimfulError, PlanError, shown
from brimful.lower_bounds import LowerBound
from brimful.patterns import Patterns
from brimful.resources.bounds import combined_bound, resource_bounds
from brimful.resources.histogram import ResourceHistogram
from brimful.resources.plan_json import FORMAT, VERSION, fields_from_json
from brimful.resources.sizes import validate_capacities
from brimful.untrusted import read_plan
from brimful.validation import IntArray, validate_capacity


@dataclass(frozen=True)
class ResourcePlan:
    """A plan for several resources: patterns with counts that cover a histogram exactly, none over a capacity.

    A plan that exists is valid: covering, capacities and max_sequences are checked when it is made.

    Args:
        histogram: the sequences that it packs.
        capacities: (resources,) what a pack holds of each, ≥ 1, in the order of histogram.names.
        max_sequences: most sequences in a pack, or None for no limit.
        algorithm: the name of what made it, up to 100 letters, digits and . _ + -.
        priority: the name of the order in which it placed the sequences, likewise.
        patterns: which sizes share a pack, and how many packs look like that; the lengths of these patterns stand for
            rows of histogram.sizes, counted from 1.
        seconds: how long planning took; not part of the plan's value (ignored by ==).

    Raises:
        PlanError: a pack is too full, or the patterns do not cover the histogram.
        LengthError: a capacity or max_sequences is no whole number ≥ 1.

    Example:
        >>> from brimful.resources import plan_resources
        >>> plan = plan_resources({"tokens": [9, 2, 3, 7], "images": [0, 2, 1, 0]}, {"tokens": 10, "images": 2})
        >>> list(plan.contents())
        [(((3, 1),), 1), (((9, 0),), 1), (((7, 0), (2, 2)), 1)]
        >>> plan.packs, plan.lower_bound, plan.efficiency
        (3, 3, {'tokens': 0.7, 'images': 0.5})
    """

    histogram: ResourceHistogram
    capacities: tuple[int, ...]
    max_sequences: int | None
    algorithm: str
    priority: str
    patterns: Patterns
    seconds: float = field(default=0.0, compare=False)

    def __post_init__(self) -> None:
        names = self.histogram.names
        if not isinstance(self.capacities, tuple) or len(self.capacities) != len(names):
            raise PlanError(f"a plan has a capacity for each of {', '.join(names)}, not {shown(self.capacities)}")
        capacities = validate_capacities(names, dict(zip(names, self.capacities, strict=True)))
        object.__setattr__(self, "capacities", capacities)
        if self.max_sequences is not None:
            object.__setattr__(self, "max_sequences", validate_capacity(self.max_sequences, "max_sequences"))
        for what in ("algorithm", "priority"):
            name = getattr(self, what)
            if not isinstance(name, str) or not re.fullmatch(r"[\w.+-]{1,100}", name, re.ASCII):
                raise PlanError(f"the {what} of a plan is a plain name, not {shown(name)}")
        self._require_cover()
        self._require_space()

    def _require_cover(self) -> None:
        """Nothing, if the patterns hold just what the histogram does; otherwise a PlanError."""
        covered = self.patterns.histogram()
        counts = np.zeros(len(self.histogram.counts), np.int64)
        if covered.longest > len(counts):
            raise PlanError(f"a pattern names size {covered.longest} of a histogram that has {len(counts)}")
        counts[covered.lengths - 1] = covered.counts
        wrong = np.flatnonzero(counts != self.histogram.counts)
        if len(wrong):
            row = int(wrong[0])
            raise PlanError(
                "patterns and histogram of the plan hold different sequences: of size "
                f"{','.join(map(str, self.histogram.sizes[row].tolist()))} there are {counts[row]:,} in the one "
                f"and {self.histogram.counts[row]:,} in the other"
            )

    def _require_space(self) -> None:
        """Nothing, if no pattern, known to cover the histogram, is above a limit; otherwise a PlanError."""
        for name, column, capacity in zip(self.histogram.names, self._held().T, self.capacities, strict=True):
            if len(column) and column.max() > capacity:
                at = int(np.argmax(column > capacity))
                raise PlanError(f"pattern {at} holds {column[at]} {name}, more than the capacity {capacity}")
        sequences = self.patterns.sequences()
        if self.max_sequences is not None and len(sequences) and sequences.max() > self.max_sequences:
            at = int(np.argmax(sequences > self.max_sequences))
            raise PlanError(
                f"pattern {at} holds {sequences[at]} sequences, more than max_sequences {self.max_sequences}"
            )

    def _held(self) -> IntArray:
        """(patterns, resources) what one pack of each pattern holds."""
        held = self.histogram.sizes[self.patterns.lengths - 1] * self.patterns.copies[:, None]
        before = np.concatenate([np.zeros((1, held.shape[1]), np.int64), np.cumsum(held, axis=0)])
        return np.diff(before[self.patterns.offsets], axis=0)

    @property
    def packs(self) -> int:
        """How many packs the plan makes."""
        return self.patterns.packs

    @property
    def efficiency(self) -> dict[str, float]:
        """For each resource the share of all packs' capacity that is used, from 0 to 1 (1 if there are no packs)."""
        return {
            name: total / (self.packs * capacity) if self.packs else 1.0
            for (name, total), capacity in zip(self.histogram.totals.items(), self.capacities, strict=True)
        }

    @property
    def packing_factor(self) -> float:
        """Sequences per pack, the mean; 0 when there is nothing to pack."""
        return self.histogram.n_sequences / self.packs if self.packs else 0.0

    @cached_property
    def bounds(self) -> dict[str, LowerBound]:
        """For each resource the packs that it alone makes necessary, with the argument that proves it."""
        return resource_bounds(self.histogram, self.capacities)

    @cached_property
    def bound(self) -> LowerBound:
        """The least number of packs that any plan needs for this histogram, with the argument that proves it."""
        return combined_bound(self.histogram, self.capacities, self.max_sequences, self.bounds)

    @property
    def lower_bound(self) -> int:
        """The proven least number of packs."""
        return self.bound.packs

    @property
    def gap(self) -> float:
        """How far above the proven bound the plan may be: (packs − bound) / bound."""
        return (self.packs - self.lower_bound) / self.lower_bound if self.lower_bound else 0.0

    def contents(self) -> Iterator[tuple[tuple[tuple[int, ...], ...], int]]:
        """Each pattern as the sizes of its sequences, greatest first, with its count of packs."""
        sizes = list(map(tuple, self.histogram.sizes.tolist()))
        for rows, count in self.patterns:
            yield tuple(sizes[row - 1] for row in rows), count

    def figures(self) -> dict[str, Any]:
        """The figures of the plan under their standard names, ready for JSON.

        Returns:
            algorithm, priority, max_sequences, sequences, packs, packing_factor, speedup_limit (packs of one sequence
            each for every pack that full packs would be), lower_bound, gap and seconds as plain numbers; capacities,
            totals, efficiency and lower_bounds by resource.
        """
        names, totals, sequences = self.histogram.names, self.histogram.totals, self.histogram.n_sequences
        limits = [
            sequences * capacity / total
            for total, capacity in zip(totals.values(), self.capacities, strict=True)
            if total
        ]
        return {
            "algorithm": self.algorithm,
            "priority": self.priority,
            "capacities": dict(zip(names, self.capacities, strict=True)),
            "max_sequences": self.max_sequences,
            "sequences": sequences,
            "totals": totals,
            "packs": self.packs,
            "efficiency": self.efficiency,
            "packing_factor": self.packing_factor,
            "speedup_limit": min(limits, default=1.0),
            "lower_bounds": {name: bound.packs for name, bound in self.bounds.items()},
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "seconds": self.seconds,
        }

    def to_json(self) -> dict[str, Any]:
        """The plan as plain lists and numbers, patterns as rows of the sizes, from 0; `from_json` makes it again."""
        patterns = self.patterns
        return {
            "format": FORMAT,
            "version": VERSION,
            "algorithm": self.algorithm,
            "priority": self.priority,
            "capacities": list(self.capacities),
            "max_sequences": self.max_sequences,
            "seconds": self.seconds,
            "histogram": {
                "names": list(self.histogram.names),
                "sizes": self.histogram.sizes.ravel().tolist(),
                "counts": self.histogram.counts.tolist(),
            },
            "patterns": {
                "rows": (patterns.lengths - 1).tolist(),
                **{name: getattr(patterns, name).tolist() for name in ("copies", "offsets", "counts")},
            },
        }

    @classmethod
    def from_json(cls, value: Any) -> ResourcePlan:
        """A plan from what `to_json` gave, trusting none of it: every promise of a plan is checked again.

        Raises:
            PlanError: what is missing, of a wrong type, out of range, or does not hold.
        """
        fields = fields_from_json(value)
        try:
            return cls(**fields)
        except PlanError:
            raise
        except BrimfulError as fault:
            raise PlanError(f"not a valid plan: {fault}") from None

    def save(self, path: str | Path) -> None:
        """Write the plan as a JSON file, in place of what the path held before; `load` reads it back equal."""
        Path(path).write_text(json.dumps(self.to_json(), separators=(",", ":")) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> ResourcePlan:
        """Read a plan file. It is untrusted input: bounded in size, no code in it can run, every promise is checked.

        Raises:
            PlanError: the file is too large, no JSON, or not a valid plan; names the file.
            OSError: the file cannot be read.
        """
        return read_plan(path, cls.from_json)

    def __repr__(self) -> str:
        used = ", ".join(f"{share:.2%} of {name}" for name, share in self.efficiency.items())
        return (
            f"ResourcePlan({self.algorithm}, {self.histogram.n_sequences:,} sequences in {self.packs:,} packs, "
            f"efficiency {used}, at most {self.gap:.2%} above the optimum)"
        )
