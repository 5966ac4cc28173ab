"""Packing problems with several capacities: sizes that repeat, zeros, and capacities at which something may change."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from brimful.resources import ALGORITHMS, PRIORITIES

LIMITS = (None, 1, 2, 3, 8)
"""The values of max_sequences that everything is tried with."""

WAYS = tuple(itertools.product(ALGORITHMS, PRIORITIES))
"""Every algorithm with every priority."""

NAMES = ("tokens", "images", "edges", "bytes")


@st.composite
def problems(draw: st.DrawFn, max_size: int = 50) -> tuple[list[tuple[int, ...]], tuple[int, ...]]:
    """(sizes, capacities); few distinct sizes often, so that equal packs and ties are common."""
    resources = draw(st.integers(1, 3))
    capacities = tuple(draw(st.sampled_from((1, 2, 3, 6, 7, 10, 16, 100, 1023))) for _ in range(resources))
    size = st.tuples(*(st.integers(0, capacity) for capacity in capacities)).filter(any)
    if draw(st.booleans()):
        size = st.sampled_from(draw(st.lists(size, min_size=1, max_size=5)))
    return draw(st.lists(size, max_size=max_size)), capacities


@st.composite
def planted(draw: st.DrawFn, max_sequences: int | None) -> tuple[list[tuple[int, ...]], tuple[int, ...], int]:
    """(sizes, capacities, packs): packs full in every resource cut into pieces, so that the optimum is known."""
    resources = draw(st.integers(1, 3))
    capacities = tuple(draw(st.sampled_from((2, 7, 10, 64, 512))) for _ in range(resources))
    packs = draw(st.integers(1, 10))
    sizes: list[tuple[int, ...]] = []
    for _ in range(packs):
        n_pieces = draw(st.integers(1, min(max_sequences or 5, 5)))
        columns = []
        for capacity in capacities:
            cuts = sorted(draw(st.lists(st.integers(0, capacity), min_size=n_pieces - 1, max_size=n_pieces - 1)))
            columns.append([end - start for start, end in itertools.pairwise([0, *cuts, capacity])])
        sizes += [size for size in zip(*columns, strict=True) if any(size)]
    return draw(st.permutations(sizes)), capacities, packs


def columns(sizes: list[tuple[int, ...]], resources: int) -> dict[str, list[int]]:
    """The sizes by resource, as plan_resources takes them."""
    return {NAMES[at]: [size[at] for size in sizes] for at in range(resources)}


def limits(capacities: tuple[int, ...]) -> dict[str, int]:
    """The capacities by resource."""
    return dict(zip(NAMES, capacities, strict=False))
