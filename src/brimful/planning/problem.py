"""What every planning algorithm is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.lengths import LengthHistogram


@dataclass(frozen=True, slots=True, eq=False)
class PackingProblem:
    """Sequences to pack, already validated: every one of them fits into a pack.

    Args:
        histogram: how many sequences there are of each length.
        max_length: token slots in a pack.
        max_sequences: most sequences in a pack, or None for no limit.
        lengths: (sequences,) tokens in data order; None when only the histogram is known.
    """

    histogram: LengthHistogram
    max_length: int
    max_sequences: int | None
    lengths: npt.NDArray[np.integer[Any]] | None
