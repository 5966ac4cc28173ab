"""Rows of token slots as a picture: a brick for each sequence, dots for padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from rich.console import Console, ConsoleOptions
from rich.text import Text

_COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")
_MOST_CELLS = 66


@dataclass(frozen=True, slots=True)
class RowsPicture:
    """Rows drawn to scale, with the share of each that is tokens.

        ████████████▊███▊████▊··      97%

    A brick ends with a narrower cell, so that neighbours are told apart without colour too. Sequences shorter than
    half a cell may not be seen.

    Args:
        rows: for each row the lengths of its sequences in order, in tokens, at most max_length together.
        max_length: token slots in a row.
    """

    rows: Sequence[Sequence[int]]
    max_length: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        body, end, padding = ("#", "|", ".") if options.ascii_only else ("█", "▊", "·")
        n_cells = max(10, min(_MOST_CELLS, options.max_width - 10))
        for lengths in self.rows:
            line = Text("  ", no_wrap=True)
            drawn = cells(lengths, self.max_length, n_cells)
            colours = cycle(_COLOURS)
            start = 0
            while start < n_cells:
                stop = start
                while stop < n_cells and drawn[stop] == drawn[start]:
                    stop += 1
                if drawn[start] < 0:
                    line.append(padding * (stop - start), style="dim")
                else:
                    line.append(body * (stop - start - 1) + end, style=next(colours))
                start = stop
            line.append(f"  {sum(lengths) / self.max_length:5.1%}".rjust(8))
            yield line


def cells(lengths: Sequence[int], max_length: int, n_cells: int) -> list[int]:
    """Which sequence stands at the middle of each cell of a row; −1 for padding. The first cell is never padding.

    Example:
        >>> cells([4, 3], max_length=10, n_cells=5)
        [0, 0, 1, -1, -1]
    """
    middles = (np.arange(n_cells) + 0.5) * max_length / n_cells
    sequence = np.searchsorted(np.cumsum(lengths), middles, side="right")
    drawn = [int(number) if number < len(lengths) else -1 for number in sequence]
    return [max(drawn[0], 0), *drawn[1:]] if lengths else drawn
