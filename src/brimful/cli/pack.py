"""brimful pack: a packed dataset from files, with its figures and the account of every token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from brimful.cli import options, printing
from brimful.cli.measuring import InputOptions, open_tokens
from brimful.errors import OutputError
from brimful.overflow import Overflow
from brimful.report.figures import figures_table, ledger_table
from brimful.tables.batches import Source
from brimful.tables.output import Format, pack_to_folder
from brimful.tables.pack import PackReport
from brimful.tables.windows import PackSettings

Output = Annotated[
    Path,
    typer.Option("-o", "--output", metavar="DIR", show_default=False, help="The folder to write; it must not exist."),
]
KeepColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--keep-columns", metavar="A,B", help="Collect these columns into lists, one value per sequence; repeatable."
    ),
]
DropColumns = Annotated[
    list[str] | None,
    typer.Option("--drop-columns", metavar="A,B", help="Leave these columns out; repeatable."),
]
Seed = Annotated[
    int,
    typer.Option("--seed", metavar="S", parser=options.seed, help="Which of equally long sequences goes where."),
]
FileFormat = Annotated[
    str, typer.Option("--format", metavar="FORMAT", help="parquet, or arrow for datasets.load_from_disk.")
]
WindowTokens = Annotated[
    int | None,
    typer.Option(
        "--window-tokens",
        metavar="N",
        parser=options.capacity("window_tokens"),
        help="Tokens planned and packed together; what weighs 128 MiB if left out.",
    ),
]


def command(
    inputs: options.Inputs,
    output: Output,
    max_length: options.MaxLength,
    max_sequences: options.MaxSequences = None,
    algorithm: options.Algorithm = "auto",
    seed: Seed = 0,
    overflow: options.OverflowKind = "error",
    min_fragment: options.MinFragment = 1,
    column: options.Column = None,
    text_column: options.TextColumn = None,
    tokenizer: options.Tokenizer = None,
    keep_columns: KeepColumns = None,
    drop_columns: DropColumns = None,
    file_format: FileFormat = "parquet",
    window_tokens: WindowTokens = None,
    json: options.Json = False,
) -> Callable[[], int]:
    """Pack files into a folder of full rows, which datasets loads."""

    def run() -> int:
        if file_format not in get_args(Format):
            raise OutputError(f"format is one of {', '.join(get_args(Format))}, not {file_format!r}")
        if output.exists() or output.is_symlink():
            raise OutputError(f"{output}: exists already; choose another output folder, or remove this one")
        source, tokens = open_tokens(InputOptions(tuple(inputs), None, column, text_column, tokenizer))
        settings = PackSettings(
            max_length,
            max_sequences,
            algorithm,
            seed,
            cast(Overflow, overflow),
            min_fragment,
            tokens,
            split_names(source, keep_columns or ()),
            split_names(source, drop_columns or ()),
            window_tokens,
        )
        with printing.row_progress("packing rows", source.n_rows) as progress:
            report = pack_to_folder(source, settings, output, cast(Format, file_format), progress=progress)
        if json:
            printing.print_json(
                {
                    **report.plan.figures(),
                    "lower_bound_kind": report.plan.bound.kind,
                    "windows": report.windows,
                    "ledger": asdict(report.ledger),
                    "input": source.name,
                    "output": str(output),
                    "format": file_format,
                }
            )
        else:
            _print(source.name, report, output, file_format)
        return 0

    return run


def split_names(source: Source, texts: Sequence[str]) -> tuple[str, ...]:
    """Column names from texts like "a,b"; a column whose name has a comma is meant when it is there."""
    names = []
    for text in texts:
        names += [text] if text in source.schema.names else [name.strip() for name in text.split(",") if name.strip()]
    return tuple(dict.fromkeys(names))


def loading_line(folder: Path, file_format: str) -> str:
    """The line of Python that loads a packed folder."""
    if file_format == "arrow":
        return f"rows = datasets.load_from_disk({str(folder)!r})"
    return f"rows = datasets.load_dataset({str(folder)!r}, split='train')"


def _print(name: str, report: PackReport, output: Path, file_format: str) -> None:
    console = printing.output()
    console.print(name, style="bold", soft_wrap=True)
    console.print(figures_table(report.plan.figures(), report.plan.bound.kind))
    console.print(ledger_table(report.ledger))
    printing.print_command(console, "\nPacked into", str(output))
    printing.print_command(console, "To load it:", f"import datasets; {loading_line(output, file_format)}")
