"""brimful demo: the whole path on a corpus that every Python has."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from brimful.cli import options, printing
from brimful.cli.pack import check_command, loading_line
from brimful.report.figures import figures_table, ledger_table
from brimful.report.picture import RowsPicture

if TYPE_CHECKING:
    from brimful.cli.whole_path import Demo

Output = Annotated[
    Path,
    typer.Option("-o", "--output", metavar="DIR", help="The folder to write; an earlier demo in it is replaced."),
]
DemoMaxLength = Annotated[
    int, typer.Option("--max-length", metavar="N", parser=options.capacity("max_length"), help="Token slots in a pack.")
]
DemoTokenizer = Annotated[
    str, typer.Option("--tokenizer", metavar="FILE|bytes", help="A tokenizer.json, or 'bytes' for the bytes in UTF-8.")
]


def command(
    output: Output = Path("brimful-demo"),
    max_length: DemoMaxLength = 2048,
    tokenizer: DemoTokenizer = "bytes",
    json: options.Json = False,
) -> Callable[[], int]:
    """The whole path on a corpus that every Python has: the docstrings of its standard library."""

    def run() -> int:
        from brimful.cli.whole_path import run_demo

        with printing.status("demo") as now:
            demo = run_demo(output, max_length, tokenizer, now)
        if json:
            printing.print_json(_to_json(demo))
        else:
            _print(printing.output(), demo, tokenizer)
        return 0 if all(check.passed for check in demo.checks) else 1

    return run


def _to_json(demo: Demo) -> dict[str, Any]:
    return {
        **demo.report.figures,
        "lower_bound_kind": demo.report.bound_kind,
        "padding_fraction": demo.padding_fraction,
        "ledger": asdict(demo.report.ledger),
        "documents": len(demo.corpus.texts),
        "checks": [asdict(check) for check in demo.checks],
        "tokens_file": str(demo.tokens_file),
        "output": str(demo.packed_folder),
        "demo_seconds": demo.seconds,
    }


def _print(console: Console, demo: Demo, tokenizer: str) -> None:
    figures, ledger = demo.report.figures, demo.report.ledger
    max_length = figures["max_length"]
    what = "one a byte" if tokenizer == "bytes" else f"by {tokenizer}"
    from brimful.cli.inputs import InputOptions

    console.print("The docstrings of this Python's standard library", style="bold")
    console.print(
        f"  {len(demo.corpus.texts):,} documents from {demo.corpus.files - demo.corpus.skipped:,} files, "
        f"{ledger.tokens_read:,} tokens, {what}"
    )
    console.print(f"\nBefore: one to a pack of {max_length:,}, the rest is padding", style="bold")
    console.print(RowsPicture([[min(length, max_length)] for length in demo.first_lengths], max_length))
    console.print(f"  {figures['sequences']:,} packs, of which {demo.padding_fraction:.1%} is padding")
    console.print("\nAfter: several whole sequences to a pack", style="bold")
    console.print(RowsPicture(demo.first_packs, max_length))
    console.print(f"  {figures['packs']:,} packs, of which {1 - figures['efficiency']:.1%} is padding\n")
    console.print(figures_table(figures, demo.report.bound_kind))
    console.print(ledger_table(ledger))
    if ledger.rows_split:
        console.print(f"  Documents longer than {max_length:,} tokens were split (--overflow split).", style="dim")
    console.print("\nRead back and checked", style="bold")
    printing.print_checks(console, demo.checks)
    console.print(f"\nDone in {demo.seconds:.1f} s. The tokens are in {demo.tokens_file}.", soft_wrap=True)
    given = InputOptions((demo.tokens_file,))
    printing.print_command(console, "Packed into", str(demo.packed_folder))
    printing.print_command(console, "To check it:", check_command(demo.packed_folder, given))
    printing.print_command(console, "To load it:", f"import datasets; {loading_line(demo.packed_folder, 'parquet')}")
    words = ["brimful", "analyze", *given.words(), "--max-length", str(max_length), "--overflow", "split"]
    printing.print_command(console, "Next:", shlex.join(words))
