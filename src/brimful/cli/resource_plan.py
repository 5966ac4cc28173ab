"""brimful plan --capacity: decide which sizes share a pack when packs have several capacities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from brimful.cli import printing
from brimful.cli.plan import require_free, write_plan
from brimful.cli.resource_inputs import measure_sizes
from brimful.errors import DataError, SettingError
from brimful.report.resources import resources_table
from brimful.resources import ResourceHistogram, plan_resources
from brimful.resources.planning import require_known


def plan_capacities(
    inputs: Sequence[Path],
    capacities: Sequence[tuple[str, int]],
    histogram: Path | None,
    max_sequences: int | None,
    algorithm: str,
    priority: str | None,
    output: Path | None,
    json: bool,
) -> int:
    """Plan for several capacities, print the figures, and write the plan if an output is named.

    Args:
        inputs: files whose columns are the sizes: whole numbers, or lists that count with their lengths.
        capacities: the name and the capacity of each resource, as often as given.
        histogram: in place of inputs, a CSV file with a column for each resource and one named count.
        max_sequences: most sequences in a pack, or None.
        algorithm: one for several resources, or "auto" for the best.
        priority: which sequences to place first, or None for the usual one.
        output: where to write the plan; None for nowhere.
        json: print one JSON object in place of the table.

    Returns:
        The exit status.

    Raises:
        DataError: neither inputs nor a histogram, or both, or an input that cannot be read.
        SettingError: a capacity twice, or of a resource that there is not; an unknown algorithm or priority.
        OutputError: the output exists already, or cannot be written.
    """
    limits = dict(capacities)
    if len(limits) < len(capacities):
        name = next(name for at, (name, _) in enumerate(capacities) if name in dict(capacities[:at]))
        raise SettingError(f"--capacity {name} is given twice; give each resource one capacity")
    algorithm, priority = "best_fit" if algorithm == "auto" else algorithm, priority or "sum"
    require_known(algorithm, priority)
    if not inputs and histogram is None:
        raise DataError("nothing to read: name input files, or a histogram with --histogram FILE.csv")
    if inputs and histogram is not None:
        raise DataError("either input files or --histogram, not both")
    if output is not None:
        require_free(output)
    if histogram is not None:
        name, data, rows_empty = str(histogram), ResourceHistogram.from_csv(histogram), 0
    else:
        with printing.row_progress("reading sizes", None) as progress:
            name, data, rows_empty = measure_sizes(inputs, tuple(limits), progress)
    with printing.status("planning"):
        made = plan_resources(data, limits, max_sequences, algorithm, priority)
    if output is not None:
        write_plan(made, output)
    if json:
        extra = {
            "lower_bound_kind": made.bound.kind,
            "patterns": len(made.patterns),
            "rows_empty": rows_empty,
            "output": None if output is None else str(output),
        }
        printing.print_json({**made.figures(), **extra})
        return 0
    console = printing.output()
    console.print(name, style="bold", soft_wrap=True)
    console.print(resources_table(made.figures(), made.bound.kind))
    if rows_empty:
        console.print(f"  {rows_empty:,} rows without any size, skipped", style="dim")
    if output is not None:
        printing.print_command(
            console,
            f"\n{output}: {len(made.patterns):,} patterns. To load it:",
            f"brimful.resources.ResourcePlan.load({str(output)!r})",
        )
    return 0
