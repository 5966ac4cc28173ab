"""PackPlan: which lengths share a pack, how often, and how near to the optimum that is."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from brimful.errors import BrimfulError, PlanError, shown
from brimful.lengths import LengthHistogram
from brimful.lower_bounds import DualPrices, LowerBound, dual_price_bound, lower_bound, require_prices
from brimful.patterns import Patterns
from brimful.untrusted import integers, read_plan, require_plan
from brimful.validation import aligned, validate_align, validate_capacity

_FORMAT = "brimful-plan"
_VERSION = 1
_NEEDED = ("algorithm", "max_length", "max_sequences", "align", "prices")


@dataclass(frozen=True)
class PackPlan:
    """A plan: patterns with counts that cover a histogram exactly, no sequence more, none less.

    A plan that exists is valid: covering, max_length, max_sequences and align are checked when it is made.

    Args:
        histogram: the sequences that it packs.
        max_length: token slots in a pack, ≥ 1.
        max_sequences: most sequences in a pack, or None for no limit.
        algorithm: the name of what made it, up to 100 letters, digits and . _ + -.
        patterns: which lengths share a pack, and how many packs look like that; with align, the aligned lengths.
        prices: dual prices that prove a better bound than the histogram alone gives, or None.
        seconds: how long planning took; not part of the plan's value (ignored by ==).
        reason: why this algorithm was used; not part of the plan's value, nor of its JSON form.
        align: every sequence takes token slots up to a multiple of this, of which max_length is one, ≥ 1; the slots
            beyond its own tokens are padding.

    Raises:
        PlanError: a pack is too full, or the patterns do not cover the histogram.
        LengthError: max_length, max_sequences or align is no whole number ≥ 1, or max_length no multiple of align.

    Example:
        >>> import brimful
        >>> plan = brimful.plan([9, 2, 3, 7], max_length=10)
        >>> list(plan.patterns)
        [((7, 3), 1), ((9,), 1), ((2,), 1)]
        >>> plan.packs, plan.lower_bound, plan.efficiency, plan.packing_factor
        (3, 3, 0.7, 1.3333333333333333)

        The same with sequences that start at multiples of 5: 9 takes 10 slots, 7 takes 10, 2 and 3 take 5 each.

        >>> aligned = brimful.plan([9, 2, 3, 7], max_length=10, align=5)
        >>> list(aligned.patterns), aligned.efficiency
        ([((10,), 2), ((5, 5), 1)], 0.7)
        >>> aligned.histogram.n_tokens, aligned.aligned_tokens
        (21, 30)
    """

    histogram: LengthHistogram
    max_length: int
    max_sequences: int | None
    algorithm: str
    patterns: Patterns
    prices: DualPrices | None = None
    seconds: float = field(default=0.0, compare=False)
    reason: str = field(default="", compare=False)
    align: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_length", validate_capacity(self.max_length, "max_length"))
        if self.max_sequences is not None:
            object.__setattr__(self, "max_sequences", validate_capacity(self.max_sequences, "max_sequences"))
        object.__setattr__(self, "align", validate_align(self.align, self.max_length))
        if not isinstance(self.algorithm, str) or not re.fullmatch(r"[\w.+-]{1,100}", self.algorithm, re.ASCII):
            raise PlanError(f"the algorithm of a plan is a plain name, not {shown(self.algorithm)}")
        tokens, sequences = self.patterns.tokens(), self.patterns.sequences()
        if len(tokens) and tokens.max() > self.max_length:
            at = int(np.argmax(tokens > self.max_length))
            raise PlanError(f"pattern {at} holds {tokens[at]} tokens, more than max_length {self.max_length}")
        if self.max_sequences is not None and len(sequences) and sequences.max() > self.max_sequences:
            at = int(np.argmax(sequences > self.max_sequences))
            raise PlanError(
                f"pattern {at} holds {sequences[at]} sequences, more than max_sequences {self.max_sequences}"
            )
        covered, needed = self.patterns.histogram(), self._slots
        if covered != needed:
            raise PlanError(
                f"patterns and histogram of the plan hold different sequences: {covered.difference(needed)}"
            )
        if self.prices is not None:
            units, capacity = self.histogram.in_units(self.align), self.max_length // self.align
            require_prices(units, capacity, self.max_sequences, self.prices)

    @property
    def _slots(self) -> LengthHistogram:
        """What the patterns cover: the lengths, or with align the aligned lengths."""
        lengths = aligned(self.histogram.lengths, self.align)
        return self.histogram if self.align == 1 else LengthHistogram.from_counts(lengths, self.histogram.counts)

    @property
    def packs(self) -> int:
        """How many packs the plan makes."""
        return self.patterns.packs

    @property
    def efficiency(self) -> float:
        """Real tokens per token slot, a fraction from 0 to 1 (1 when there is nothing to pack)."""
        return efficiency(self.histogram, self.packs, self.max_length)

    @property
    def packing_factor(self) -> float:
        """Sequences per pack, the mean; 0 when there is nothing to pack."""
        return self.histogram.n_sequences / self.packs if self.packs else 0.0

    @property
    def aligned_tokens(self) -> int:
        """Real tokens, and the padding that aligns them; what is left of all token slots is padding at the end."""
        return self.histogram.in_units(self.align).n_tokens * self.align

    @cached_property
    def bound(self) -> LowerBound:
        """The least number of packs that any plan needs for this histogram, with the argument that proves it."""
        units, capacity = self.histogram.in_units(self.align), self.max_length // self.align
        bound = lower_bound(units, capacity, self.max_sequences)
        if self.prices is None:
            return bound
        priced = dual_price_bound(units, capacity, self.max_sequences, self.prices)
        return priced if priced.packs > bound.packs else bound

    @property
    def lower_bound(self) -> int:
        """The proven least number of packs."""
        return self.bound.packs

    @property
    def lower_bound_kind(self) -> str:
        """The argument that proves lower_bound, such as "token" or "dual prices"."""
        return self.bound.kind

    @property
    def gap(self) -> float:
        """How far above the proven bound the plan may be: (packs − bound) / bound."""
        return (self.packs - self.lower_bound) / self.lower_bound if self.lower_bound else 0.0

    def figures(self) -> dict[str, Any]:
        """The figures of the plan under their standard names, ready for JSON: see `packing_figures`."""
        figures = packing_figures(
            self.histogram, self.packs, self.max_length, self.max_sequences, self.bound, self.align
        )
        return {"algorithm": self.algorithm, **figures, "seconds": self.seconds}

    def to_json(self) -> dict[str, Any]:
        """The plan as plain lists and numbers; `from_json` makes an equal plan of it."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "algorithm": self.algorithm,
            "max_length": self.max_length,
            "max_sequences": self.max_sequences,
            "align": self.align,
            "seconds": self.seconds,
            "prices": self.prices and {"grid": self.prices.grid, "values": self.prices.prices.tolist()},
            "histogram": {name: getattr(self.histogram, name).tolist() for name in ("lengths", "counts")},
            "patterns": {
                name: getattr(self.patterns, name).tolist() for name in ("lengths", "copies", "offsets", "counts")
            },
        }

    @classmethod
    def from_json(cls, value: Any) -> PackPlan:
        """A plan from what `to_json` gave, trusting none of it: every promise of a plan is checked again.

        Bounds and gap are not read but proven anew, from the histogram and the prices.

        Raises:
            PlanError: what is missing, of a wrong type, out of range, or does not hold.
        """
        require_plan(value, "a plan", _FORMAT, _VERSION, _NEEDED)
        try:
            return cls(
                LengthHistogram(*(integers(value, "histogram", name) for name in ("lengths", "counts"))),
                value["max_length"],
                value["max_sequences"],
                value["algorithm"],
                Patterns(*(integers(value, "patterns", name) for name in ("lengths", "copies", "offsets", "counts"))),
                None if value["prices"] is None else _prices(value),
                float(value["seconds"]),
                align=value["align"],
            )
        except PlanError:
            raise
        except BrimfulError as fault:
            raise PlanError(f"not a valid plan: {fault}") from None

    def save(self, path: str | Path) -> None:
        """Write the plan as a JSON file, in place of what the path held before; `load` reads it back equal."""
        Path(path).write_text(json.dumps(self.to_json(), separators=(",", ":")) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> PackPlan:
        """Read a plan file. It is untrusted input: bounded in size, no code in it can run, every promise is checked.

        Raises:
            PlanError: the file is too large, no JSON, or not a valid plan; names the file.
            OSError: the file cannot be read.
        """
        return read_plan(path, cls.from_json)

    def __repr__(self) -> str:
        return (
            f"PackPlan({self.algorithm}, {self.histogram.n_sequences:,} sequences in {self.packs:,} packs of "
            f"{self.max_length}, efficiency {self.efficiency:.2%}, at most {self.gap:.2%} above the optimum)"
        )


def efficiency(histogram: LengthHistogram, packs: int, max_length: int) -> float:
    """Real tokens per token slot; 1 when there is nothing to pack."""
    return histogram.n_tokens / (packs * max_length) if packs else 1.0


def packing_figures(
    histogram: LengthHistogram,
    packs: int,
    max_length: int,
    max_sequences: int | None,
    bound: LowerBound,
    align: int = 1,
) -> dict[str, Any]:
    """What a number of packs means for these sequences.

    Returns:
        max_length, max_sequences, align, sequences, tokens, aligned_tokens, packs, efficiency, packing_factor,
        speedup_limit, lower_bound and gap, as plain numbers.
    """
    return {
        "max_length": max_length,
        "max_sequences": max_sequences,
        "align": align,
        "sequences": histogram.n_sequences,
        "tokens": histogram.n_tokens,
        "aligned_tokens": histogram.in_units(align).n_tokens * align,
        "packs": packs,
        "efficiency": efficiency(histogram, packs, max_length),
        "packing_factor": histogram.n_sequences / packs if packs else 0.0,
        "speedup_limit": histogram.speedup_limit(max_length),
        "lower_bound": bound.packs,
        "gap": (packs - bound.packs) / bound.packs if bound.packs else 0.0,
    }


def _prices(value: dict[str, Any]) -> DualPrices:
    grid = value["prices"].get("grid") if isinstance(value["prices"], dict) else None
    return DualPrices(validate_capacity(grid, "the grid of prices"), integers(value, "prices", "values"))
