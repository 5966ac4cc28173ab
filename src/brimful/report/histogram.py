"""A histogram of lengths that fits into a terminal: at most sixteen bars, and the quantiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console, ConsoleOptions
from rich.text import Text

from brimful.lengths import LengthHistogram

MOST_BINS = 16
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

_EIGHTHS = "▏▎▍▌▋▊▉█"
_LONGEST_BAR = 48


@dataclass(frozen=True, slots=True)
class Bin:
    """How many sequences have `first` to `last` tokens, both included."""

    first: int
    last: int
    count: int


def bins(histogram: LengthHistogram) -> list[Bin]:
    """Equal bins from 1 to the longest; where half of the sequences would share the first, bins that double.

        lengths up to 512      1–32  33–64  65–96 …
        median 70, longest 12,000      1–1  2–2  3–4  5–8 …  8,193–16,384

    Args:
        histogram: the lengths.

    Returns:
        At most MOST_BINS bins (doubling bins may be more, one for each bit) without gaps, empty ones included;
        none for an empty histogram.

    Example:
        >>> bins(LengthHistogram.from_lengths([2, 19, 20]))[:2]
        [Bin(first=1, last=2, count=1), Bin(first=3, last=4, count=0)]
    """
    if not len(histogram.lengths):
        return []
    longest, shortest = histogram.longest, int(histogram.lengths[0])
    step = 1 << max(0, (longest - 1) // MOST_BINS).bit_length()
    if quantiles(histogram, [0.5])[0] > step or longest <= MOST_BINS:
        edges = np.arange(0, longest + step, step)
    else:
        edges = np.array([0, *(1 << bit for bit in range((longest - 1).bit_length() + 1))])
    edges = edges[max(0, int(np.searchsorted(edges, shortest)) - 1) :]
    before = np.concatenate([[0], np.cumsum(histogram.counts)])
    counts = np.diff(before[np.searchsorted(histogram.lengths, edges, side="right")])
    return [Bin(int(a) + 1, int(b), int(n)) for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)]


def quantiles(histogram: LengthHistogram, shares: Sequence[float]) -> list[int]:
    """For each share q, the least length that at least q of the sequences do not exceed.

    Example:
        >>> quantiles(LengthHistogram.from_lengths([2, 3, 5, 7]), [0.25, 0.5, 1.0])
        [2, 3, 7]
    """
    if not len(histogram.lengths):
        return [0 for _ in shares]
    up_to = np.cumsum(histogram.counts)
    places = np.searchsorted(up_to, [share * float(up_to[-1]) for share in shares])
    return [int(length) for length in histogram.lengths[np.minimum(places, len(up_to) - 1)]]


def summary(histogram: LengthHistogram) -> dict[str, object]:
    """The histogram in a few numbers, ready for JSON."""
    lengths = quantiles(histogram, QUANTILES)
    shares = {f"p{share * 100:g}": length for share, length in zip(QUANTILES, lengths, strict=True)}
    return {
        "sequences": histogram.n_sequences,
        "tokens": histogram.n_tokens,
        "distinct_lengths": len(histogram.lengths),
        "shortest": int(histogram.lengths[0]) if len(histogram.lengths) else 0,
        "longest": histogram.longest,
        "mean": histogram.n_tokens / histogram.n_sequences if histogram.n_sequences else 0.0,
        "quantiles": shares,
        "bins": [[part.first, part.last, part.count] for part in bins(histogram)],
    }


@dataclass(frozen=True, slots=True)
class HistogramChart:
    """Bars for the terminal, as wide as it allows; only ASCII where the terminal has no more."""

    histogram: LengthHistogram

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        parts = bins(self.histogram)
        if not parts:
            return
        dash = "-" if options.ascii_only else "–"
        labels = [f"{part.first:,}" + (f"{dash}{part.last:,}" if part.last > part.first else "") for part in parts]
        counts = [f"{part.count:,}" for part in parts]
        label_width, count_width = max(map(len, labels)), max(map(len, counts))
        room = max(8, min(_LONGEST_BAR, options.max_width - label_width - count_width - 14))
        most = max(part.count for part in parts)
        for part, label, count in zip(parts, labels, counts, strict=True):
            share = part.count / self.histogram.n_sequences
            line = Text(f"  {label:>{label_width}}  ", no_wrap=True)
            line.append(f"{_bar(part.count / most, room, options.ascii_only):<{room}}", style="cyan")
            line.append(f"  {share:6.1%}  ")
            line.append(f"{count:>{count_width}}", style="dim")
            yield line
        shares = QUANTILES[:5]  # more would not fit into a line
        lengths = quantiles(self.histogram, shares)
        marks = (f"{share * 100:g}% {length:,}" for share, length in zip(shares, lengths, strict=True))
        yield Text("  quantiles: " + ("  " if options.ascii_only else " · ").join(marks), style="dim")


def _bar(share: float, room: int, ascii_only: bool) -> str:
    """A bar of share × room cells; what is not zero is never invisible."""
    eighths = min(room * 8, max(round(share * room * 8), 1 if share else 0))
    if ascii_only:
        return "#" * -(-eighths // 8)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8 - 1] if eighths % 8 else "")
