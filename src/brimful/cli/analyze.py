"""brimful analyze: how much is padding, what each algorithm would give, and the proven best."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console

from brimful.cli import options, printing
from brimful.cli.comparison import SECONDS, Comparison, best, compare
from brimful.overflow import Overflow, OverflowPolicy
from brimful.planning import ALGORITHMS, DATA_ORDER
from brimful.report.comparison import comparison_table, explain_bound, explain_collapse
from brimful.report.figures import ledger_table
from brimful.report.histogram import HistogramChart, summary

if TYPE_CHECKING:
    from brimful.cli.inputs import InputOptions, Measured

_WORTHWHILE = 1.05


def command(
    max_length: options.MaxLength,
    inputs: options.OptionalInputs = None,
    histogram: options.Histogram = None,
    max_sequences: options.MaxSequences = None,
    overflow: options.OverflowKind = "error",
    min_fragment: options.MinFragment = 1,
    token_column: options.TokenColumn = None,
    text_column: options.TextColumn = None,
    tokenizer: options.Tokenizer = None,
    json: options.Json = False,
) -> Callable[[], int]:
    """How much is padding, what each algorithm would give, and the proven best."""

    def run() -> int:
        from brimful.cli.inputs import InputOptions, columns_beside, measure

        policy = OverflowPolicy(cast(Overflow, overflow), max_length, min_fragment)
        given = InputOptions(tuple(inputs or ()), histogram, token_column, text_column, tokenizer)
        with printing.row_progress("reading lengths", None) as progress:
            measured = measure(given, policy, progress)
        with printing.status("planning") as now:
            compared = compare(measured.histogram, measured.lengths, max_length, max_sequences, now)
        advice = next_command(given, policy, max_sequences, columns_beside(given), best(compared.plans))
        if json:
            printing.print_json(_to_json(measured, compared, max_length, max_sequences, advice))
        else:
            _print(printing.output(), measured, compared, max_length, advice)
        return 0

    return run


def next_command(
    given: InputOptions, policy: OverflowPolicy, max_sequences: int | None, beside: Sequence[str], top: dict[str, Any]
) -> str:
    """The command that does with this input what was found to be best, ready to be typed."""
    words = ["brimful", "plan" if given.histogram else "pack", *given.words()]
    words += [word for name in beside for word in ("--keep-columns", name)]
    words += ["--max-length", str(policy.max_length)]
    limit = max_sequences or top["max_sequences"]  # none was asked for, but one did better
    if limit is not None:
        words += ["--max-sequences", str(limit)]
    if top["algorithm"] != next(iter(ALGORITHMS)):  # what auto never does worse than
        words += ["--algorithm", top["algorithm"]]
    if top["seconds"] > SECONDS / 2:  # without a limit it might go on for minutes
        words += ["--time-limit", f"{SECONDS:g}"]
    if policy.kind != "error":
        words += ["--overflow", policy.kind]
    if policy.min_fragment > 1:
        words += ["--min-fragment", str(policy.min_fragment)]
    return shlex.join([*words, "-o", "plan.json" if given.histogram else "packed"])


def _to_json(
    measured: Measured,
    compared: Comparison,
    max_length: int,
    max_sequences: int | None,
    advice: str,
) -> dict[str, Any]:
    return {
        "input": measured.name,
        "max_length": max_length,
        "max_sequences": max_sequences,
        "padding_fraction": measured.histogram.padding_fraction(max_length),
        "speedup_limit": measured.histogram.speedup_limit(max_length),
        "lower_bound": compared.bound.packs,
        "lower_bound_kind": compared.bound.kind,
        "best": best(compared.plans),
        "plans": compared.plans,
        "histogram": summary(measured.histogram),
        "ledger": asdict(measured.ledger),
        "next": advice,
    }


def _print(
    console: Console,
    measured: Measured,
    compared: Comparison,
    max_length: int,
    advice: str,
) -> None:
    histogram = measured.histogram
    if not histogram.n_sequences:
        console.print(f"{measured.name}: no sequences to pack", soft_wrap=True)
        console.print(ledger_table(measured.ledger))
        return
    mean = histogram.n_tokens / histogram.n_sequences
    console.print(f"{measured.name}", style="bold", soft_wrap=True)
    console.print(
        f"  {histogram.n_sequences:,} sequences of {histogram.n_tokens:,} tokens, {mean:.1f} on average, "
        f"{histogram.lengths[0]:,} to {histogram.longest:,}"
    )
    console.print(ledger_table(measured.ledger))
    console.print("\nLengths in tokens", style="bold")
    console.print(HistogramChart(histogram))
    console.print(f"\nPadded to {max_length:,}", style="bold")
    limit = histogram.speedup_limit(max_length)
    console.print(
        f"  {histogram.padding_fraction(max_length):.2%} of the token slots are padding: "
        f"{limit:.2f} times fewer would do."
    )
    if limit < _WORTHWHILE:
        console.print("  So there is little to gain by packing.")
    console.print("\nPacked\n", style="bold")
    plans = compared.plans
    planned = {figures["algorithm"] for figures in plans}
    printing.print_table(console, comparison_table(plans, best(plans), left_out=sorted(DATA_ORDER - planned)))
    console.print("* best.  gap: above the proven least for that limit.  seconds: planning.", style="dim")
    if reason := explain_collapse(plans, histogram, max_length):
        console.print(f"\n{reason}")
    console.print(f"\n{explain_bound(compared.bound)}")
    printing.print_command(console, "Next:", advice)
