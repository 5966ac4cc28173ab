"""Packing problems for the property tests: lengths that repeat, and capacities at which something may change."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from brimful.planning import ALGORITHMS, LEAST_SQUARES

LIMITS = (None, 1, 2, 3, 8)
"""The values of max_sequences that every algorithm is tried with."""

QUICK = tuple(name for name in ALGORITHMS if name not in LEAST_SQUARES)

# Around one and two words of 512 bits, around powers of two, prime, tiny.
_CAPACITIES = (1, 2, 3, 7, 10, 16, 31, 64, 100, 511, 512, 513, 1023, 1024, 1025, 1601)


@st.composite
def problems(draw: st.DrawFn, max_size: int = 60, most: int = _CAPACITIES[-1]) -> tuple[list[int], int]:
    """(lengths in data order, max_length); few distinct lengths often, so that equal packs and ties are common."""
    max_length = draw(st.sampled_from([capacity for capacity in _CAPACITIES if capacity <= most]))
    length = st.integers(1, max_length)
    if draw(st.booleans()):
        few = draw(st.lists(st.integers(1, max_length), min_size=1, max_size=5))
        length = st.sampled_from(few)
    return draw(st.lists(length, max_size=max_size)), max_length


@st.composite
def planted(draw: st.DrawFn, max_sequences: int | None) -> tuple[list[int], int, int]:
    """(lengths, max_length, packs): full packs cut into pieces and shuffled, so that the optimum is known."""
    max_length = draw(st.sampled_from((1, 2, 7, 10, 64, 512, 1601)))
    most_pieces = min(max_sequences or 6, max_length)
    packs = draw(st.integers(1, 12))
    pieces: list[int] = []
    for _ in range(packs):
        n_cuts = draw(st.integers(0, most_pieces - 1))
        cuts = draw(st.sets(st.integers(1, max_length - 1), min_size=n_cuts, max_size=n_cuts)) if n_cuts else set()
        edges = [0, *sorted(cuts), max_length]
        pieces += [end - start for start, end in itertools.pairwise(edges)]
    return draw(st.permutations(pieces)), max_length, packs
