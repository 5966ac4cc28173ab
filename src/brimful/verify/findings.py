"""What the runs of verify found, gathered and put into words."""

from __future__ import annotations

from dataclasses import dataclass, field

from brimful.verify.equality import Comparison
from brimful.verify.isolation import Isolation
from brimful.verify.report import Check, Diagnosis, VerifyReport


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
        checks = (
            self._equality("outputs", "output"),
            self._equality("loss", "loss"),
            self._equality("gradients", "gradient"),
            self._isolation(),
        )
        return VerifyReport(
            self.model,
            self.attention,
            tuple(check for check in checks if check is not None),
            tuple(sorted(leaks, key=lambda leak: -leak.amount)),
            tuple(sorted(differences, key=lambda each: -each.amount)),
            self.diagnosis,
            tuple(dict.fromkeys(self.notes)),
        )

    def _equality(self, name: str, what: str) -> Check | None:
        words, passed = [], True
        for dtype, runs in self.comparisons.items():
            amounts = [run.worst[what] for run in runs if what in run.worst]
            passed &= not any(each.what == what for run in runs for each in run.differences)
            if amounts:
                allowed = max(run.allowed[what] for run in runs if what in run.allowed)
                words.append(f"{max(amounts):.1e} in {dtype} ({allowed:.0e} allowed)")
        if not words:
            if what == "loss":
                self.notes.append("loss: not compared, for the model computed none")
            return None
        per_row = what == "output" and any(run.per_row for runs in self.comparisons.values() for run in runs)
        where = " where there is one per sequence" if per_row and not passed else ""
        return Check(name, passed, f"largest difference{where} {', '.join(words)}")

    def _isolation(self) -> Check | None:
        changes = sum(each.changes for each in self.isolations)
        paddings = sum(each.padding for each in self.isolations)
        leaks = [leak for each in self.isolations for leak in each.leaks]
        worst = max((each.worst for each in self.isolations), default=0.0)
        if not changes:
            self.notes.append("isolation: not tested, for the model gives a loss and no outputs")
            return None
        longest = max(each.longest for each in self.isolations)
        what = (
            f"{changes} sequences of up to {longest} token{'s' * (longest != 1)} changed one by one, "
            f"and the padding of {paddings} batch{'es' * (paddings != 1)}"
        )
        if leaks:
            reached = len({(leak.case, leak.changed) for leak in leaks})
            return Check("isolation", False, f"{what}: {reached} changes reached other sequences, by up to {worst:.1e}")
        same = "the same to the last bit" if not worst else f"within {worst:.1e} of what it was"
        return Check("isolation", True, f"{what}: all else stayed {same}")
