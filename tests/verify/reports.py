"""Reading reports in tests."""

from __future__ import annotations

from dataclasses import dataclass

from brimful.verify import VerifyReport


@dataclass(frozen=True)
class Found:
    """A diagnosis that is there, with a part that was found; "" if none was."""

    cause: str
    remedy: str
    tried: bool
    part: str
    amount: float


def diagnosis(report: VerifyReport) -> Found:
    assert not report.passed
    found = report.diagnosis
    assert found is not None
    return Found(found.cause, found.remedy, found.tried, found.part or "", found.amount)


def detail(report: VerifyReport, name: str) -> str:
    """What a check says."""
    return next(check.detail for check in report.checks if check.name == name)
