"""Runs over several seeds, spread over the processors, and what such runs say: means, and how sure they are."""

from __future__ import annotations

import math
import multiprocessing
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import torch

from brimful.errors import SettingError

Job = TypeVar("Job")
Result = TypeVar("Result")

_T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""The 97.5 % quantile of Student's t for 1 to 10 degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds, with its 95 % interval: mean ± half_width.

    Args:
        mean: of the seeds.
        half_width: from Student's t, so for values that are about normal; infinite for a single seed.
        deviation: the standard deviation between seeds; 0 for a single seed.
    """

    mean: float
    half_width: float
    deviation: float

    @property
    def verdict(self) -> str:
        """Of a difference: whether none at all is within the interval."""
        return "within seed noise" if abs(self.mean) <= self.half_width else "beyond seed noise"

    def text(self, digits: int, sign: str = "") -> str:
        """Mean and interval in so many decimal places, with sign "+" of a difference.

        Example:
            >>> Estimate(0.5, 0.25, 0.1).text(2, sign="+")
            '+0.50 ± 0.25'
        """
        return f"{self.mean:{sign}.{digits}f} ± {self.half_width:.{digits}f}"


def estimate(values: Sequence[float]) -> Estimate:
    """What the values of independent seeds say about their mean; of a difference, give the differences seed by seed.

    Args:
        values: one for each seed, 1 to 11 of them.

    Raises:
        SettingError: fewer or more values.

    Example:
        >>> estimate([1.0, 2.0, 3.0]).text(3)
        '2.000 ± 2.484'
    """
    if not 1 <= len(values) <= len(_T_975) + 1:
        raise SettingError(f"an estimate is made of 1 to {len(_T_975) + 1} seeds, not {len(values)}")
    if len(values) == 1:
        return Estimate(values[0], math.inf, 0.0)
    deviation = statistics.stdev(values)
    half_width = _T_975[len(values) - 2] * deviation / math.sqrt(len(values))
    return Estimate(statistics.fmean(values), half_width, deviation)


def difference(ones: Sequence[float], others: Sequence[float]) -> Estimate:
    """By how much the ones are above the others, seed by seed.

    Example:
        >>> difference([2.0, 3.0], [1.0, 2.0]).text(1, sign="+")
        '+1.0 ± 0.0'
    """
    return estimate([one - other for one, other in zip(ones, others, strict=True)])


def rounded_up(number: float) -> str:
    """A bound with one digit that the number, ≥ 0, is not above.

    Example:
        >>> rounded_up(1.2e-5), rounded_up(0.0)
        ('2e-05', '0')
    """
    if not number:
        return "0"
    unit = 10.0 ** math.floor(math.log10(number))
    return f"{math.ceil(number / unit) * unit:.0e}"


def run_all(function: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
    """The results of the jobs, in their order: a process for each processor, with one thread.

    On models this small, more threads in a process only wait for one another. A dot on standard error is a job done.

    Args:
        function: at the top of a module, so that other processes find it.
        jobs: what can be sent to them.
    """
    processes = min(len(jobs), len(os.sched_getaffinity(0)))
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        results = []
        for result in pool.map(function, jobs):
            results.append(result)
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return results
