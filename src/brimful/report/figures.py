"""The figures of one plan and the account of its tokens, as a few aligned lines."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from brimful.overflow import Ledger


def figures_table(figures: dict[str, Any], bound_kind: str | None = None) -> Table:
    """The figures under their names, one a line.

    Args:
        figures: what `PackPlan.figures` gives.
        bound_kind: the argument that proves the lower bound, None to leave it out.
    """
    kind = f" ({bound_kind})" if bound_kind else ""
    limit, align = figures["max_sequences"], figures["align"]
    lines = {
        "sequences": f"{figures['sequences']:,} of {figures['tokens']:,} tokens",
        "packs": f"{figures['packs']:,} of {figures['max_length']:,} token slots",
        "max_sequences": "no limit" if limit is None else f"{limit:,} in a pack",
        "align": f"to {align:,} token slots: {figures['aligned_tokens'] - figures['tokens']:,} slots of padding",
        "algorithm": f"{figures['algorithm']}, {figures['seconds']:.3f} s",
        "efficiency": f"{figures['efficiency']:.2%} of the token slots hold tokens",
        "packing factor": f"{figures['packing_factor']:.2f} sequences in a pack",
        "speed-up limit": f"at best {figures['speedup_limit']:.2f} times fewer token slots than padding",
        "lower bound": f"{figures['lower_bound']:,} packs{kind}: no packing needs fewer",
        "gap": f"{figures['gap']:.2%} above that bound at most",
    }
    if align == 1:
        del lines["align"]
    return lines_table(lines)


def ledger_table(ledger: Ledger) -> Table:
    """What became of every row and token; what did not happen is left out."""
    tokens = f"{ledger.tokens_read:,} read = {ledger.tokens_packed:,} packed"
    lost = {"truncated": ledger.tokens_truncated, "dropped": ledger.tokens_dropped}
    tokens += "".join(f" + {count:,} {how}" for how, count in lost.items() if count) or "; none lost"
    happened = {
        "rows without tokens, skipped": ledger.rows_empty,
        "rows dropped": ledger.rows_dropped,
        "rows truncated": ledger.rows_truncated,
        "rows split": ledger.rows_split,
        "fragments dropped": ledger.fragments_dropped,
    }
    rows = [f"{ledger.rows_read:,} read, {ledger.sequences_packed:,} sequences packed"]
    rows += [f"{count:,} {what}" for what, count in happened.items() if count]
    return lines_table({"tokens": tokens, "rows": "; ".join(rows)})


def lines_table(lines: dict[str, str]) -> Table:
    """Each line under its name."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True, min_width=14)
    table.add_column()
    for name, value in lines.items():
        table.add_row(f"  {name}", value)
    return table
