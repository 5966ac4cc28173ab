"""Read a packed folder back and check every promise that it makes, trusting nothing in it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from brimful.errors import BrimfulError
from brimful.lengths import LengthHistogram
from brimful.lower_bounds import lower_bound
from brimful.overflow import Ledger
from brimful.plans import PackPlan
from brimful.tables.batches import Source
from brimful.tables.columns import SEQ_LENGTHS, is_list
from brimful.tables.manifest import Manifest
from brimful.tables.output import MANIFEST
from brimful.tables.row_rules import RULES, Check, Found, check_rows
from brimful.tables.sources import open_source
from brimful.tables.windows import PackSettings

__all__ = ["Check", "check_packed"]


def check_packed(folder: str | Path) -> list[Check]:
    """Check that a packed folder holds what its manifest says, row by row.

        manifest         it is there and says how the data was packed
        shards           every listed file is there with its rows and tokens, and no other data file
        columns          all shards have the same columns: lists, and seq_lengths
        boundaries       in every row, seq_lengths add up to the length of each packed column
        max_length, max_sequences, nothing empty, kept columns, no nulls      in every row
        ledger           tokens read = packed + truncated + dropped; what was packed is what is there
        figures          packs, efficiency, lower bound, gap …: computed anew from the rows
        plan             it covers exactly the sequences that are there, in as many packs

    Args:
        folder: what `pack_to_folder` wrote.

    Returns:
        The checks in this order. Without a manifest it is the only one.

    Example:
        >>> [(check.name, check.passed) for check in check_packed("there/is/no/such/folder")]
        [('manifest', False)]

    Cost: one pass over the rows, a batch at a time.
    """
    folder = Path(folder)
    try:
        manifest = Manifest.load(folder)
    except KeyError as fault:
        return [Check("manifest", False, f"{MANIFEST} does not say {fault}")]
    except (OSError, ValueError, TypeError, RecursionError) as fault:
        return [Check("manifest", False, f"{MANIFEST} cannot be read: {' '.join(str(fault).split())}")]
    found = Found()
    shards = _check_shards(folder, manifest, found)
    return [
        Check("manifest", True, f"{MANIFEST}, for packs of {manifest.settings.max_length:,}"),
        shards,
        found.check("columns", f"seq_lengths, and {manifest.settings.tokens!r} to be packed"),
        *(found.check(rule, f"in all {found.rows:,} rows") for rule in RULES),
        *_check_totals(manifest, found),
    ]


def _check_shards(folder: Path, manifest: Manifest, found: Found) -> Check:
    """Read every shard, row by row; what is found goes into `found`."""
    faults = []
    schema: pa.Schema | None = None
    for name, rows, tokens in manifest.shards:
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts:
            faults.append(f"{name} lies outside the folder")
            continue
        before_rows, before_tokens = found.rows, found.tokens
        try:
            source = open_source([folder / name])
            if schema is not None and source.schema != schema:
                found.blame("columns", f"{name} has other columns than the shards before it")
            schema = source.schema
            _read_shard(name, source, manifest.settings, found)
        except BrimfulError as fault:
            faults.append(str(fault).removeprefix(f"{folder}/"))
            continue
        if (found.rows - before_rows, found.tokens - before_tokens) != (rows, tokens):
            faults.append(
                f"{name} is listed with {rows:,} rows and {tokens:,} tokens, "
                f"but holds {found.rows - before_rows:,} and {found.tokens - before_tokens:,}"
            )
    listed = [name for name, _, _ in manifest.shards]
    faults += [f"{name} is listed twice" for name, times in Counter(listed).items() if times > 1]
    faults += [f"{name} is not listed" for name in _data_files(folder) if name not in listed]
    if not faults and (folder / "state.json").exists() and _listed_by_datasets(folder) != listed:
        faults.append("state.json, which datasets reads, lists other files than the manifest")
    return Check("shards", not faults, faults[0] if faults else f"{len(listed):,} as listed, and no others")


def _data_files(folder: Path) -> Iterator[str]:
    """Files that a reader of the folder would take for data; not what datasets caches beside them."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".parquet", ".arrow"} and not path.name.startswith("cache-"):
            yield path.relative_to(folder).as_posix()


def _listed_by_datasets(folder: Path) -> list[str]:
    try:
        state = json.loads((folder / "state.json").read_bytes())
        return [str(entry["filename"]) for entry in state["_data_files"]]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def _read_shard(name: str, source: Source, settings: PackSettings, found: Found) -> None:
    kinds = {column.name: column.type for column in source.schema}
    missing = [column for column in (settings.tokens, SEQ_LENGTHS, *settings.keep_columns) if column not in kinds]
    loose = [column for column, kind in kinds.items() if not is_list(kind)]
    if missing or loose or not pa.types.is_integer(kinds[SEQ_LENGTHS].value_type):
        found.blame("columns", f"{name}: missing {missing}, not lists {loose}, seq_lengths {kinds.get(SEQ_LENGTHS)}")
        return
    first_row = 0
    for batch in source.read(None):
        check_rows(name, first_row, batch, settings, found)
        first_row += batch.num_rows


def _check_totals(manifest: Manifest, found: Found) -> Iterator[Check]:
    """Ledger, figures and plan against what the rows hold."""
    histogram, settings = found.histogram(), manifest.settings
    try:
        ledger = Ledger(**manifest.ledger)
        said = (ledger.sequences_packed, ledger.tokens_packed)
        there = (sum(found.counts.values()), found.tokens)
        detail = f"{ledger.tokens_read:,} tokens read = {ledger.tokens_packed:,} packed "
        detail += f"+ {ledger.tokens_truncated:,} truncated + {ledger.tokens_dropped:,} dropped"
        if said != there:
            detail = f"{said[0]:,} sequences and {said[1]:,} tokens packed, "
            detail += f"but the rows hold {there[0]:,} and {there[1]:,}"
        yield Check("ledger", said == there, detail)
    except (TypeError, ValueError) as fault:
        yield Check("ledger", False, str(fault))
    wrong = _wrong_figures(manifest.figures, histogram, settings, found.rows)
    yield Check("figures", not wrong, wrong or f"{found.rows:,} packs, computed anew")
    if manifest.plan is None:
        yield Check("plan", True, "left out, for it has too many patterns")
        return
    try:
        plan = PackPlan.from_json(manifest.plan)
    except BrimfulError as fault:
        yield Check("plan", False, str(fault))
        return
    if plan.histogram != histogram:
        yield Check("plan", False, f"it is for {plan.histogram}, but the rows hold {histogram}")
    else:
        as_said = (plan.packs, plan.max_length, plan.max_sequences)
        there_is = (found.rows, settings.max_length, settings.max_sequences)
        detail = f"{len(plan.patterns):,} patterns cover the sequences exactly"
        yield Check("plan", as_said == there_is, detail if as_said == there_is else f"{as_said}, not {there_is}")


def _wrong_figures(figures: dict[str, Any], histogram: LengthHistogram, settings: PackSettings, packs: int) -> str:
    """The first figure that is not what the rows give, in words; nothing if all are right."""
    try:
        bound = lower_bound(histogram, settings.max_length, settings.max_sequences).packs
        limit = histogram.speedup_limit(settings.max_length)
    except BrimfulError as fault:
        return str(fault)
    slots = packs * settings.max_length
    right = {
        "max_length": settings.max_length,
        "max_sequences": settings.max_sequences,
        "sequences": histogram.n_sequences,
        "tokens": histogram.n_tokens,
        "packs": packs,
        "efficiency": histogram.n_tokens / slots if slots else 1.0,
        "packing_factor": histogram.n_sequences / packs if packs else 0.0,
        "speedup_limit": limit,
        "lower_bound": bound,
        "gap": (packs - bound) / bound if bound else 0.0,
    }
    for name, value in right.items():
        said = figures.get(name)
        if said != value and not (isinstance(value, float) and isinstance(said, float) and math.isclose(said, value)):
            return f"{name} is said to be {said}, but is {value}"
    return ""
