"""One promise of brimful, and whether it holds: what `check` says of packed data, and `verify` of a model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One promise, whether it holds, and in words what was found."""

    name: str
    passed: bool
    detail: str
