"""What the runs of verify found, gathered and put into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from brimful.checks import Check
from brimful.verify.equality import Comparison
from brimful.verify.isolation import Isolation
from brimful.verify.report import Diagnosis, Leak, VerifyReport


@dataclass(slots=True)
class Findings:
    """What came up so far, in every dtype and case."""

    model: str
    attention: str
    comparisons: dict[str, list[Comparison]] = field(default_factory=dict)
    isolations: list[Isolation] = field(default_factory=list)
    diagnosis: Diagnosis | None = None
    notes: list[str] = field(default_factory=list)

    def report(self) -> VerifyReport:
        """The report of it all."""
        differences = [each for runs in self.comparisons.values() for run in runs for each in run.differences]
        leaks = [leak for each in self.isolations for leak in each.leaks]
        loss, isolation = self._equality("loss", "loss"), self._isolation(leaks)
        checks = (self._equality("outputs", "output"), loss, self._equality("gradients", "gradient"), isolation)
        notes = list(self.notes)
        if loss is None:
            notes.append("loss: not compared, for the model computed none")
        if isolation is None:
            notes.append("isolation: not tested, for the model gives no output per token or per sequence")
        return VerifyReport(
            self.model,
            self.attention,
            tuple(check for check in checks if check is not None),
            tuple(sorted(leaks, key=lambda leak: -leak.amount)),
            tuple(sorted(differences, key=lambda each: -each.amount)),
            self.diagnosis,
            tuple(dict.fromkeys(notes)),
        )

    def _equality(self, name: str, what: str) -> Check | None:
        words, passed = [], True
        for dtype, runs in self.comparisons.items():
            amounts = [run.worst[what] for run in runs if what in run.worst]
            passed &= not any(run.differs(what) for run in runs)
            if amounts:
                allowed = max(run.allowed[what] for run in runs if what in run.allowed)
                words.append(f"{max(amounts):.1e} in {dtype} ({allowed:.0e} allowed)")
        per_row = what == "output" and any(run.per_row for runs in self.comparisons.values() for run in runs)
        if not words:
            return Check(name, passed, "one value per row, not one per sequence") if per_row else None
        where = " where there is one per sequence" if per_row and not passed else ""
        return Check(name, passed, f"largest difference{where} {', '.join(words)}")

    def _isolation(self, leaks: Sequence[Leak]) -> Check | None:
        changes = sum(each.changes for each in self.isolations)
        if not changes:
            return None
        paddings = sum(each.padding for each in self.isolations)
        longest = max(each.longest for each in self.isolations)
        worst = max(each.worst for each in self.isolations)
        what = (
            f"{changes} sequence{'s' * (changes != 1)} of up to {longest} token{'s' * (longest != 1)} changed one "
            f"by one, and the padding of {paddings} batch{'es' * (paddings != 1)}"
        )
        if leaks:
            reached = len({(leak.case, leak.changed) for leak in leaks})
            return Check("isolation", False, f"{what}: {reached} changes reached other sequences, by up to {worst:.1e}")
        same = "the same to the last bit" if not worst else f"within {worst:.1e} of what it was"
        return Check("isolation", True, f"{what}: all else stayed {same}")
