"""brimful pack: a packed dataset from files, with its figures and the account of every token."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from brimful.cli import options, printing
from brimful.overflow import Overflow
from brimful.report.figures import figures_table, ledger_table

if TYPE_CHECKING:
    from brimful.cli.inputs import InputOptions
    from brimful.tables.batches import Source
    from brimful.tables.output import Format
    from brimful.tables.report import PackReport

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
GroupColumn = Annotated[
    str | None,
    typer.Option(
        "--group-column", metavar="NAME", help="Consecutive rows with one value in this column stay in one pack."
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="S", parser=options.whole("seed"), help="Which of equally long sequences goes where."
    ),
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
        help="Tokens planned and packed together; what weighs 64 MiB if left out.",
    ),
]


def command(
    inputs: options.Inputs,
    output: Output,
    max_length: options.MaxLength,
    max_sequences: options.MaxSequences = None,
    align: options.Align = 1,
    algorithm: options.Algorithm = "auto",
    time_limit: options.TimeLimit = None,
    seed: Seed = 0,
    overflow: options.OverflowKind = "error",
    min_fragment: options.MinFragment = 1,
    token_column: options.TokenColumn = None,
    text_column: options.TextColumn = None,
    tokenizer: options.Tokenizer = None,
    keep_columns: KeepColumns = None,
    drop_columns: DropColumns = None,
    group_column: GroupColumn = None,
    file_format: FileFormat = "parquet",
    window_tokens: WindowTokens = None,
    json: options.Json = False,
) -> Callable[[], int]:
    """Pack files into a folder of full rows, which datasets loads."""

    def run() -> int:
        from brimful.cli.inputs import InputOptions, open_tokens
        from brimful.tables.output import pack_to_folder
        from brimful.tables.settings import PackSettings

        given = InputOptions(tuple(inputs), None, token_column, text_column, tokenizer)
        source, tokens = open_tokens(given)
        settings = PackSettings(
            max_length,
            max_sequences=max_sequences,
            align=align,
            algorithm=algorithm,
            time_limit=time_limit,
            seed=seed,
            overflow=cast(Overflow, overflow),
            min_fragment=min_fragment,
            token_column=tokens,
            keep_columns=split_names(source, keep_columns or ()),
            drop_columns=split_names(source, drop_columns or ()),
            group_column=group_column,
            window_tokens=window_tokens,
        )
        with printing.row_progress("packing rows", source.n_rows) as progress:
            report = pack_to_folder(source, settings, output, cast("Format", file_format), progress=progress)
        if json:
            printing.print_json(
                {
                    **report.figures,
                    "lower_bound_kind": report.bound_kind,
                    "windows": report.windows,
                    "ledger": asdict(report.ledger),
                    "input": source.name,
                    "output": str(output),
                    "format": file_format,
                }
            )
        else:
            _print(source.name, report, output, file_format, check_command(output, given))
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


def check_command(folder: Path, given: InputOptions) -> str:
    """The command that checks a packed folder against the input that it was packed from."""
    return shlex.join(["brimful", "check", *replace(given, inputs=(folder, *given.inputs), token_column=None).words()])


def _print(name: str, report: PackReport, output: Path, file_format: str, check: str) -> None:
    console = printing.output()
    console.print(name, style="bold", soft_wrap=True)
    console.print(figures_table(report.figures, report.bound_kind))
    console.print(ledger_table(report.ledger))
    printing.print_command(console, "\nPacked into", str(output))
    printing.print_command(console, "To check it:", check)
    if report.figures["packs"]:  # datasets refuses to load a split without rows
        printing.print_command(console, "To load it:", f"import datasets; {loading_line(output, file_format)}")
