"""Reading packed tables the slow way: as Python lists."""

from collections import Counter


def sequences_of(packed, tokens="input_ids"):
    """Every sequence of every pack, as (tokens, values of the other packed columns …), cut by seq_lengths alone."""
    others = [name for name in packed.column_names if name not in {tokens, "seq_lengths"}]
    found = []
    for row in packed.to_pylist():
        at = 0
        for number, length in enumerate(row["seq_lengths"]):
            piece = [tuple(row[tokens][at : at + length])]
            for name in others:
                per_token = len(row[name]) == len(row[tokens]) and len(row[name]) != len(row["seq_lengths"])
                piece.append(tuple(row[name][at : at + length]) if per_token else row[name][number])
            found.append(tuple(piece))
            at += length
        assert at == len(row[tokens])
    return found


def check_rows(packed, max_length, max_sequences=None):
    """No pack is empty, too full, or holds too many sequences."""
    for row in packed.to_pylist():
        assert 1 <= len(row["input_ids"]) == sum(row["seq_lengths"]) <= max_length
        assert min(row["seq_lengths"]) >= 1
        assert max_sequences is None or len(row["seq_lengths"]) <= max_sequences


def same_multiset(one, other):
    """Do both hold the same sequences equally often, in whatever order?"""
    return Counter(one) == Counter(other)
