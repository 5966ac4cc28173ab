"""Attention with nothing packed: every sequence alone, and who sees whom by definition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Sees = Callable[[int, int], bool]


def bidirectional(query: int, key: int) -> bool:
    """All of its sequence."""
    del query, key
    return True


def causal(query: int, key: int) -> bool:
    """Itself and what came before."""
    return key <= query


def window(size: int) -> Sees:
    """Itself and the size − 1 before."""
    return lambda query, key: key in range(query - size + 1, query + 1)


def window_both_ways(size: int) -> Sees:
    """At most size away."""
    return lambda query, key: key in range(query - size, query + size + 1)


def prefix(size: int) -> Sees:
    """What came before, and the first tokens whatever the order."""
    return lambda query, key: key <= query or key < size


def dense(slots: Sequence[tuple[int, int, bool]], sees: Sequence[Sees], row_length: int) -> list[list[bool]]:
    """Cell by cell: two tokens of one sequence, of which the one sees the other."""
    cells = [[False] * row_length for _ in range(row_length)]
    for query, (mine, i, i_is_token) in enumerate(slots):
        for key, (theirs, j, j_is_token) in enumerate(slots):
            cells[query][key] = mine == theirs and i_is_token and j_is_token and sees[mine - 1](i, j)
    return cells


def attention_alone(query: Tensor, key: Tensor, value: Tensor, sees: Sees) -> Tensor:
    """(tokens, head_dim) of one head and one sequence, query by query, over those keys only that it sees."""
    rows = []
    for i in range(len(query)):
        seen = [j for j in range(len(key)) if sees(i, j)]
        weights = torch.softmax(key[seen] @ query[i] / math.sqrt(query.shape[-1]), dim=0)
        rows.append(weights @ value[seen])
    return torch.stack(rows)
