"""An optimizer's averages, one step after another, in exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def averages(gradients: Sequence[Fraction], betas: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """Momentum and velocity after a step with each of these gradients, from 0."""
    momentum = velocity = Fraction(0)
    for gradient in gradients:
        momentum = betas[0] * momentum + (1 - betas[0]) * gradient
        velocity = betas[1] * velocity + (1 - betas[1]) * gradient * gradient
    return momentum, velocity


def steps_that_see(sequences: int, sequences_per_step: Fraction) -> int:
    """How many steps it takes until so many sequences have been seen, counting them."""
    steps, seen = 0, Fraction(0)
    while seen < sequences:
        steps, seen = steps + 1, seen + sequences_per_step
    return steps
