"""Where an overflow policy cuts a row, by the plain words of the documentation."""

from __future__ import annotations


def pieces(row: int, max_length: int, kind: str, min_fragment: int) -> list[tuple[int, int]]:
    """The sequences that a row of so many tokens becomes, as (start, length); a row that fits stays whole."""
    if row == 0 or (kind == "drop" and row > max_length):
        return []
    if kind == "truncate":
        return [(0, min(row, max_length))]
    if row <= max_length:
        return [(0, row)]
    chunks = [(start, min(max_length, row - start)) for start in range(0, row, max_length)]
    return [(start, size) for start, size in chunks if size >= min_fragment]
