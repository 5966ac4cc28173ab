"""What packing did, added up over windows in memory that does not grow with the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from brimful.lengths import LengthHistogram
from brimful.lower_bounds import DualPrices, LowerBound, lower_bound
from brimful.overflow import Ledger
from brimful.patterns import Patterns
from brimful.plans import PackPlan, packing_figures
from brimful.tables.settings import PackSettings
from brimful.tables.windows import PackedWindow

_MOST_PATTERNS = 10**5


@dataclass(frozen=True, slots=True)
class PackReport:
    """What packing did: the figures with their proof, and the account of every token.

    Args:
        figures: algorithm, seconds (of planning), and those of `brimful.plans.packing_figures`.
        bound_kind: the argument that proves figures["lower_bound"].
        ledger: rows and tokens read, packed, truncated and dropped.
        windows: how many windows were planned.
        plan: of all windows together; covers exactly the sequences that were packed. None when it has more than
            100,000 patterns, or when groups were packed: seq_lengths of the packs tell the same.
    """

    figures: dict[str, Any]
    bound_kind: str
    ledger: Ledger
    windows: int
    plan: PackPlan | None

    def to_json(self) -> dict[str, Any]:
        """All but the plan, as plain values."""
        return {
            "figures": self.figures,
            "lower_bound_kind": self.bound_kind,
            "ledger": asdict(self.ledger),
            "windows": self.windows,
        }


class ReportBuilder:
    """Adds up windows as they pass."""

    def __init__(self, settings: PackSettings) -> None:
        self._settings = settings
        self._histogram = LengthHistogram.from_lengths([])
        self._slots = LengthHistogram.from_lengths([])
        self._packs = self._windows = 0
        self._ledger = Ledger()
        self._seconds = 0.0
        self._algorithms: set[str] = set()
        self._prices: DualPrices | None = None
        self._patterns: list[Patterns] | None = []

    def batches(self, windows: Iterable[PackedWindow]) -> Iterator[pa.RecordBatch]:
        """The packs of the windows, which are accounted for on the way."""
        for window in windows:
            self._histogram += window.histogram
            self._slots += window.patterns.histogram()
            self._packs += window.patterns.packs
            self._ledger += window.ledger
            if window.plan is not None:
                self._seconds += window.plan.seconds
                self._algorithms.add(window.plan.algorithm)
                self._prices = window.plan.prices  # they prove a bound for this window alone
            self._windows += 1
            self._keep(window.patterns)
            yield from window.batches

    def report(self) -> PackReport:
        """The report of all windows that have passed."""
        settings, histogram = self._settings, self._histogram
        if histogram.n_tokens != self._ledger.tokens_packed:
            raise ValueError(f"packed {histogram.n_tokens} tokens, but the ledger says {self._ledger}")
        algorithm = "+".join(sorted(self._algorithms)) or settings.algorithm
        patterns = None if self._patterns is None else _together(self._patterns)
        if patterns is None or len(patterns) > _MOST_PATTERNS or settings.group_column is not None:
            bound = bound_of(settings, self._slots)
            figures = packing_figures(
                histogram, self._packs, settings.max_length, settings.max_sequences, bound, settings.align
            )
            figures = {"algorithm": algorithm, **figures, "seconds": self._seconds}
            return PackReport(figures, bound.kind, self._ledger, self._windows, None)
        plan = PackPlan(
            histogram,
            settings.max_length,
            settings.max_sequences,
            algorithm,
            patterns,
            self._prices if self._windows == 1 else None,
            self._seconds,
            align=settings.align,
        )
        return PackReport(plan.figures(), plan.bound.kind, self._ledger, self._windows, plan)

    def _keep(self, patterns: Patterns) -> None:
        """Remember the patterns, unless there are too many; merge when what came since is as much as what is merged."""
        if self._patterns is None:
            return
        self._patterns.append(patterns)
        if sum(map(len, self._patterns[1:])) > len(self._patterns[0]):
            self._patterns = [_together(self._patterns)]
        if sum(map(len, self._patterns)) > 2 * _MOST_PATTERNS:
            self._patterns = None


def bound_of(settings: PackSettings, slots: LengthHistogram) -> LowerBound:
    """The least number of packs for units (sequences or groups) that take so many token slots."""
    return lower_bound(slots.in_units(settings.align), settings.max_length // settings.align, settings.max_sequences)


def _together(parts: list[Patterns]) -> Patterns:
    """The patterns of all parts, equal ones counted together."""
    if len(parts) < 2:
        return parts[0] if parts else Patterns.empty()
    return Patterns.merged(
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.copies for part in parts]),
        np.concatenate([np.diff(part.offsets) for part in parts]),
        np.concatenate([part.counts for part in parts]),
    )
