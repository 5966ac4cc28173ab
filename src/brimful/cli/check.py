"""brimful check: does a packed folder keep every promise, and does it hold the sequences of its input?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from brimful.cli import options, printing
from brimful.errors import DataError

Packed = Annotated[Path, typer.Argument(metavar="PACKED", hidden=True)]


def command(
    packed: Packed,
    inputs: options.OptionalInputs = None,
    text_column: options.TextColumn = None,
    tokenizer: options.Tokenizer = None,
    json: options.Json = False,
) -> Callable[[], int]:
    """Check the packed folder PACKED pack by pack; with INPUT, also that it holds the same sequences as its input.

    If the input was text, give --text-column and --tokenizer as for packing. Exit status 1 if a check fails.
    """

    def run() -> int:
        from brimful.cli.inputs import InputOptions, open_rows
        from brimful.tables.check import check_packed
        from brimful.tables.manifest import MANIFEST
        from brimful.tables.same_sequences import same_sequences

        if not (packed / MANIFEST).exists():
            raise DataError(f"{packed}: there is no {MANIFEST}; give a folder that brimful pack has written")
        given = InputOptions(tuple(inputs or ()), None, None, text_column, tokenizer)
        if not given.inputs and (text_column or tokenizer):
            raise DataError("--text-column and --tokenizer are for INPUT; name the input that was packed as well")
        source = open_rows(given) if given.inputs else None
        with printing.status("checking") as now:
            checks = check_packed(packed)
            if source is not None and checks[0].passed:
                now("comparing sequences")
                checks.append(same_sequences(source, packed))
        passed = all(check.passed for check in checks)
        if json:
            printing.print_json(
                {"packed": str(packed), "passed": passed, "checks": [asdict(check) for check in checks]}
            )
        else:
            console = printing.output()
            console.print(str(packed), style="bold", soft_wrap=True)
            printing.print_checks(console, checks)
        return 0 if passed else 1

    return run
