"""What verify found, as a value that prints readably."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from brimful.checks import Check


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same packed as it is separately.

    Args:
        what: "output", "loss" or "gradient".
        name: which output, or which parameter.
        dtype: what the model computed in.
        case: the lengths that were packed.
        where: the sequence, the first of a row being 1; empty where it is about the whole batch.
        amount: the largest difference, as a share of the largest value or of 1, whichever is more; inf for NaN.
        tolerance: what was allowed.
    """

    what: str
    name: str
    dtype: str
    case: str
    where: str
    amount: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class Leak:
    """A sequence whose outputs change with what is none of its own.

    Args:
        changed: what was changed: a sequence, or the padding.
        reached: the sequence whose output changed with it.
        output: which output.
        dtype: what the model computed in.
        case: the lengths that were packed.
        amount: how much it changed, measured as in `Difference`.
    """

    changed: str
    reached: str
    output: str
    dtype: str
    case: str
    amount: float


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Where it starts, and what to do.

    Args:
        cause: the likely cause.
        remedy: what to change.
        tried: whether the remedy was applied to the packed inputs here, and made all equal.
        part: the first module whose output is another although its inputs are the same; None if none was found.
        part_class: its class.
        amount: how far its output is off.
    """

    cause: str
    remedy: str
    tried: bool = False
    part: str | None = None
    part_class: str | None = None
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Whether a model does the same to packed rows as to the sequences one by one.

    Args:
        model: the class of the model.
        attention: how sequences were kept apart; "collate" for the user's own function.
        checks: what was compared, in order.
        leaks: pairs of sequences of which one reached the other, the largest change first.
        differences: what was not the same, the largest first.
        diagnosis: where it starts; None if all is well.
        notes: what could not be checked, and why.
    """

    model: str
    attention: str
    checks: tuple[Check, ...]
    leaks: tuple[Leak, ...]
    differences: tuple[Difference, ...]
    diagnosis: Diagnosis | None
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether everything that was compared is the same, and no sequence reached another."""
        return not self.leaks and not self.differences

    def __str__(self) -> str:
        lines = [self.verdict()]
        lines += [f"  {'ok' if check.passed else 'FAILED'} {check.name}: {check.detail}" for check in self.checks]
        lines += [f"  {line}" for line in (*self.examples(), *self.explained())]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def verdict(self) -> str:
        """The result in one line."""
        how = "a collate function" if self.attention == "collate" else f"attention {self.attention!r}"
        what = "packed equals separate" if self.passed else "packed is NOT the same as separate"
        return f"{self.model} with {how}: {what}"

    def examples(self) -> list[str]:
        """The largest leak and the largest difference, one line each."""
        lines = [
            f"changing {leak.changed} changed {leak.output} of {leak.reached} by {leak.amount:.1e}, "
            f"packed {leak.case} in {leak.dtype}"
            for leak in self.leaks[:1]
        ]
        for each in self.differences[:1]:
            where = f" of {each.where}" if each.where else ""
            amount = f"differs by {each.amount:.1e}" if each.amount < math.inf else "differs, or is no number"
            lines.append(f"{each.what} {each.name}{where} {amount}, packed {each.case} in {each.dtype}")
        return lines

    def explained(self) -> list[str]:
        """Where it starts, the likely cause and the remedy, one line each; no lines if all is well."""
        found = self.diagnosis
        if found is None:
            return []
        lines = (
            [] if found.part is None else [f"starts in {found.part} ({found.part_class}), off by {found.amount:.1e}"]
        )
        lines.append(f"likely cause: {found.cause}")
        lines.append(f"remedy: {found.remedy}{' (tried here: then it is the same)' if found.tried else ''}")
        return lines

    def to_json(self) -> dict[str, Any]:
        """The report as what JSON can hold; an amount that is no number becomes None."""
        return {"passed": self.passed, **{name: _finite(value) for name, value in asdict(self).items()}}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
