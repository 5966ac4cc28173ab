"""The options that commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from brimful.errors import BrimfulError, shown
from brimful.planning import ALGORITHMS
from brimful.resources import ALGORITHMS as RESOURCE_ALGORITHMS
from brimful.resources import PRIORITIES
from brimful.validation import validate_capacity, whole_number


def capacity(name: str, most: int = 2**31 - 1) -> Callable[[str | int], int]:
    """A parser of whole numbers that a pack can hold; typer gives it defaults as well."""
    return lambda text: _number(text, name, lambda value, what: validate_capacity(value, what, most))


def whole(name: str) -> Callable[[str | int], int]:
    """A parser of whole numbers from 0."""
    return lambda text: _number(text, name, whole_number)


def number(name: str) -> Callable[[str | float], float]:
    """A parser of numbers; their range is the library's to check."""

    def parsed(text: str | float) -> float:
        try:
            return float(text if str(text).isascii() and "_" not in str(text) else "")
        except ValueError:
            raise typer.BadParameter(f"{name} is a number, such as 0.5, not {shown(text)}") from None

    return parsed


def named_capacity(text: str) -> tuple[str, int]:
    """A parser of NAME=N."""
    name, sign, number = text.partition("=")
    if not name or not sign:
        raise typer.BadParameter(f"a capacity is written NAME=N, such as tokens=2048, not {shown(text)}")
    return name, _number(number, f"the capacity of {name}", validate_capacity)


def _number(text: str | int, name: str, validate: Callable[[object, str], int]) -> int:
    """What the library's own check makes of a text; its error becomes one of usage."""
    try:
        return validate(int(text) if _is_whole(text) else text, name)
    except BrimfulError as fault:
        raise typer.BadParameter(str(fault)) from None


def _is_whole(text: str | int) -> bool:
    written = str(text)
    return written.isascii() and written.removeprefix("-").isdigit() and len(written) < 20


INPUT_HELP = "INPUT: Parquet, Arrow or JSONL files (also .gz, .zst), or folders of them."
"""Stands below the options: typer would put a Python type beside the name of an argument that it lists itself."""

Inputs: TypeAlias = Annotated[list[Path], typer.Argument(metavar="INPUT", hidden=True)]
OptionalInputs: TypeAlias = Annotated[list[Path] | None, typer.Argument(metavar="INPUT", hidden=True)]
Histogram: TypeAlias = Annotated[
    Path | None,
    typer.Option("--histogram", metavar="FILE.csv", help="In place of INPUT: a file with the header length,count."),
]
MaxLength: TypeAlias = Annotated[
    int,
    typer.Option(
        "--max-length", metavar="N", parser=capacity("max_length"), show_default=False, help="Token slots in a pack."
    ),
]
MaxLengthOrCapacities: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--max-length", metavar="N", parser=capacity("max_length"), help="Token slots in a pack; or use --capacity."
    ),
]
Capacities: TypeAlias = Annotated[
    list[Any] | None,
    typer.Option(
        "--capacity",
        metavar="NAME=N",
        parser=named_capacity,
        help="In place of --max-length, once for each resource: how much of it a pack holds. NAME is a column of INPUT "
        "(whole numbers, or lists that count with their lengths) or of the histogram.",
    ),
]
Priority: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--priority",
        metavar="P",
        help=f"With --capacity: place first what has the greatest {', '.join(PRIORITIES)} of its shares of the "
        "capacities; sum if left out.",
    ),
]
Align: TypeAlias = Annotated[
    int,
    typer.Option(
        "--align",
        metavar="N",
        parser=capacity("align"),
        help="Every sequence takes token slots up to a multiple of N, of which max_length is one.",
    ),
]
TimeLimit: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="S",
        parser=number("time_limit"),
        help="Seconds for a plan (pack: of each window), after which optimal, nnlshp and ennlshp give the best so far.",
    ),
]
MaxSequences: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--max-sequences",
        metavar="K",
        parser=capacity("max_sequences"),
        help="Most sequences in a pack; no limit if left out.",
    ),
]
Algorithm: TypeAlias = Annotated[
    str, typer.Option("--algorithm", metavar="A", help=f"How to plan: auto, {', '.join(ALGORITHMS)}.")
]
AnyAlgorithm: TypeAlias = Annotated[
    str,
    typer.Option(
        "--algorithm",
        metavar="A",
        help=f"How to plan: auto, {', '.join(ALGORITHMS)}; with --capacity auto, {', '.join(RESOURCE_ALGORITHMS)}.",
    ),
]
OverflowKind: TypeAlias = Annotated[
    str,
    typer.Option(
        "--overflow", metavar="KIND", help="What to do with longer sequences: error, drop, truncate or split."
    ),
]
MinFragment: TypeAlias = Annotated[
    int,
    typer.Option(
        "--min-fragment",
        metavar="N",
        parser=capacity("min_fragment"),
        help="Shortest remainder, in tokens, that --overflow split keeps.",
    ),
]
TokenColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--token-column", metavar="NAME", help="The column with the lists of token ids; input_ids if left out."
    ),
]
TextColumn: TypeAlias = Annotated[
    str | None,
    typer.Option("--text-column", metavar="NAME", help="Tokenize this column of text; needs --tokenizer."),
]
Tokenizer: TypeAlias = Annotated[
    str | None,
    typer.Option("--tokenizer", metavar="FILE|bytes", help="A tokenizer.json, or 'bytes' for the bytes in UTF-8."),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]
