"""Packed rows slot by slot: who is where, by walking along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def slots_of(lengths: Sequence[int], align: int = 1) -> Iterator[tuple[int, int, bool]]:
    """(number of the sequence from 1, place in it from 0, is it a token?) for each slot up to the tail."""
    for number, length in enumerate(lengths, 1):
        place = 0
        while place < length or place % align:
            yield number, place, place < length
            place += 1


def ids_and_positions(lengths: Sequence[int], row_length: int, align: int = 1) -> tuple[list[int], list[int]]:
    """segment_ids and position_ids of one row."""
    ids, positions = [], []
    for number, place, is_token in slots_of(lengths, align):
        ids.append(number if is_token else 0)
        positions.append(place)
    tail = row_length - len(ids)
    return ids + [0] * tail, positions + list(range(tail))


def boundaries(lengths: Sequence[int], total: int, align: int = 1) -> tuple[list[int], list[int]]:
    """Running sums from 0 over all sequences and then the tail: of tokens, and of slots."""
    tokens, slots = [0], [0]
    for number, length in enumerate(lengths, 1):
        tokens.append(tokens[-1] + length)
        slots.append(slots[-1] + sum(1 for owner, _, _ in slots_of(lengths, align) if owner == number))
    if slots[-1] < total:
        tokens.append(tokens[-1] + total - slots[-1])
        slots.append(total)
    return tokens, slots
