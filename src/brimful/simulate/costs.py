"""What a sequence costs, and what each way of training costs beside it, measured by the row that padding computes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.errors import SettingError, shown
from brimful.validation import is_number

_MOST = 10**9

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CostModel:
    """Costs as shares of padding's: 1 is a row of max_length, or a step of batch_size such rows on every device.

        quadratic_share 0.25, max_length 512    ->    a sequence of 256 costs 0.75 · 1/2 + 0.25 · 1/4 of a row

    All are 0 in theory. What they are on your hardware is quickly measured: time a padded step at two lengths, and a
    step of the other kind.

    Args:
        quadratic_share: the share of a full row's time that grows with length² (attention) and not with length, from 0
            to 1. Of a transformer of plain layers about max_length / (max_length + 6 · hidden size): 0.08 for
            BERT-large at 512.
        step_overhead: what every step takes whatever it computes (launching, waiting for gradients), in padded steps.
        packing_overhead: by how much a packed row takes longer than a padded one: mask, positions, loss by sequence.
        unpadding_overhead: by how much un-padded tokens take longer than as many tokens of a padded row.
        recompilation: what a step of a new shape takes more, in padded steps, where a compiler wants fixed shapes. It
            counts once in an epoch for each shape beyond the first; where compiled shapes are kept from epoch to epoch,
            divide by the epochs.

    Raises:
        SettingError: a quadratic_share that is no number from 0 to 1, another that is none from 0 to 10^9.

    Example:
        >>> CostModel(quadratic_share=0.25).of_lengths(np.array([256, 512]), max_length=512)
        array([0.4375, 1.    ])

    Source: un-padding, sorting and their costs: arXiv 2107.02027, section 2 and 4.4; the layer's multiplications: 24 h²
    for a token, 4 h for a pair of tokens.
    """

    quadratic_share: float = 0.0
    step_overhead: float = 0.0
    packing_overhead: float = 0.0
    unpadding_overhead: float = 0.0
    recompilation: float = 0.0

    def __post_init__(self) -> None:
        for part in fields(self):
            value, most = getattr(self, part.name), 1 if part.name == "quadratic_share" else _MOST
            if not is_number(value) or not 0 <= value <= most:
                raise SettingError(f"{part.name} is a number from 0 to {most:,}, such as 0.05, not {shown(value)}")
            object.__setattr__(self, part.name, float(value))

    def of_lengths(self, lengths: npt.NDArray[np.integer[Any]], max_length: int) -> FloatArray:
        """(lengths,) what a sequence of each length costs, as a share of a row of max_length."""
        share = lengths / max_length
        return (1 - self.quadratic_share) * share + self.quadratic_share * share**2
