"""Read a packed folder back and check every promise that it makes, trusting nothing in it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from brimful.checks import Check
from brimful.errors import BrimfulError, DataError, shown
from brimful.overflow import Ledger
from brimful.plans import PackPlan, packing_figures
from brimful.tables.batches import Source
from brimful.tables.manifest import MANIFEST, Manifest, Shard
from brimful.tables.report import bound_of
from brimful.tables.row_rules import RULES, Found, check_rows, wrong_columns
from brimful.tables.settings import PackSettings
from brimful.tables.sources import open_source

__all__ = ["check_packed", "open_shard"]


def check_packed(folder: str | Path) -> list[Check]:
    """Check that a packed folder holds what its manifest says, pack by pack.

        manifest         it is there and says how the data was packed
        shards           every listed file is there with its packs and tokens, and no other data file
        columns          all shards have the same columns: lists, and seq_lengths
        boundaries       in every pack, seq_lengths add up to the length of each packed column
        max_length, max_sequences, nothing empty, kept columns, no nulls      in every pack
        ledger           tokens read = packed + truncated + dropped; what was packed is what is there
        figures          packs, efficiency, lower bound, gap …: computed anew from the packs
        plan             it covers exactly the sequences that are there, in as many packs

    Args:
        folder: what `pack_to_folder` wrote.

    Returns:
        The checks in this order. Without a manifest it is the only one.

    Example:
        >>> [(check.name, check.passed) for check in check_packed("there/is/no/such/folder")]
        [('manifest', False)]

    Cost: one pass over the packs, a batch at a time.
    """
    folder = Path(folder)
    try:
        manifest = Manifest.load(folder)
    except DataError as fault:
        return [Check("manifest", False, str(fault))]
    found = Found()
    shards = _check_shards(folder, manifest, found)
    plan, plan_check = _check_plan(manifest, found)
    return [
        Check("manifest", True, f"{MANIFEST}, for packs of {manifest.settings.max_length:,}"),
        shards,
        found.check("columns", f"seq_lengths, and {manifest.settings.token_column!r} to be packed"),
        *(found.check(rule, f"in all {found.packs:,} packs") for rule in RULES),
        _check_ledger(manifest, found),
        _check_figures(manifest, found, plan),
        plan_check,
    ]


def open_shard(folder: Path, shard: Shard) -> Source:
    """The packs of one shard.

    Raises:
        DataError: it is no file, or cannot be read; names the file by its path within the folder.
    """
    path = folder / shard.path
    if path.is_dir():
        raise DataError(f"{shard.path}: must be a file, but is a folder")
    try:
        return open_source([path])
    except BrimfulError as fault:
        raise DataError(str(fault).removeprefix(f"{folder}/")) from None


def _check_shards(folder: Path, manifest: Manifest, found: Found) -> Check:
    """Read every shard, pack by pack; what is found goes into `found`."""
    faults = []
    schema: pa.Schema | None = None
    for shard in manifest.shards:
        packs, tokens = found.packs, found.tokens
        try:
            source = open_shard(folder, shard)
            if schema is not None and source.schema != schema:
                found.blame("columns", f"{shard.path} has other columns than the shards before it")
            schema = source.schema
            _read_shard(shard.path, source, manifest.settings, found)
        except BrimfulError as fault:
            faults.append(str(fault).removeprefix(f"{folder}/"))
            continue
        packs, tokens = found.packs - packs, found.tokens - tokens
        if (packs, tokens) != (shard.rows, shard.tokens):
            faults.append(
                f"{shard.path} is listed with {shard.rows:,} packs and {shard.tokens:,} tokens, "
                f"but holds {packs:,} and {tokens:,}"
            )
    listed = [shard.path for shard in manifest.shards]
    faults += [f"{path} is listed twice" for path, times in Counter(listed).items() if times > 1]
    faults += [f"{path} is not listed" for path in _data_files(folder) if path not in listed]
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
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return []


def _read_shard(path: str, source: Source, settings: PackSettings, found: Found) -> None:
    if wrong := wrong_columns(source.schema, settings):
        found.blame("columns", f"{path}: {wrong}")
        return
    first_pack = 0
    for batch in source.read(None):
        check_rows(path, first_pack, batch, settings, found)
        first_pack += batch.num_rows


def _check_ledger(manifest: Manifest, found: Found) -> Check:
    """Does every token that was read have its place, and is what was packed what the packs hold?"""
    try:
        ledger = Ledger(**manifest.ledger)
    except ValueError as fault:
        return Check("ledger", False, str(fault))
    said = (ledger.sequences_packed, ledger.tokens_packed)
    there = (sum(found.counts.values()), found.tokens)
    if said != there:
        return Check(
            "ledger",
            False,
            f"{said[0]:,} sequences and {said[1]:,} tokens packed, but the packs hold {there[0]:,} and {there[1]:,}",
        )
    return Check(
        "ledger",
        True,
        f"{ledger.tokens_read:,} tokens read = {ledger.tokens_packed:,} packed "
        f"+ {ledger.tokens_truncated:,} truncated + {ledger.tokens_dropped:,} dropped",
    )


def _check_figures(manifest: Manifest, found: Found, plan: PackPlan | None) -> Check:
    """Are the figures those of the packs? Who planned, and how long it took, cannot be told from them.

    The bound is proven anew: with the prices of the plan, where it is one for these packs.
    """
    settings = manifest.settings
    try:
        histogram = found.histogram()
        bound = plan.bound if plan else bound_of(settings, found.slots_histogram())
        right = packing_figures(
            histogram, found.packs, settings.max_length, settings.max_sequences, bound, settings.align
        )
    except BrimfulError as fault:
        return Check("figures", False, str(fault))
    for name, value in right.items():
        said = manifest.figures.get(name)
        close = isinstance(value, float) and isinstance(said, float) and math.isclose(said, value)
        if said != value and not close:
            return Check("figures", False, f"{name} is said to be {shown(said)}, but is {value}")
    return Check("figures", True, f"{found.packs:,} packs, computed anew")


def _check_plan(manifest: Manifest, found: Found) -> tuple[PackPlan | None, Check]:
    """Does the plan cover the sequences that are there, in as many packs? And the plan, if it does."""
    if manifest.plan is None:
        return None, Check("plan", True, "left out, for it has too many patterns, or packs groups")
    try:
        plan = PackPlan.from_json(manifest.plan)
        histogram = found.histogram()
    except BrimfulError as fault:
        return None, Check("plan", False, str(fault))
    except RecursionError:
        return None, Check("plan", False, "nested too deeply to be a plan")
    if plan.histogram != histogram:
        return None, Check("plan", False, f"it is for {plan.histogram}, but the packs hold {histogram}")
    said = (plan.packs, plan.max_length, plan.max_sequences, plan.align)
    there = (found.packs, manifest.settings.max_length, manifest.settings.max_sequences, manifest.settings.align)
    if said != there:
        return None, Check("plan", False, f"packs, max_length, max_sequences and align are {said}, not {there}")
    return plan, Check("plan", True, f"{len(plan.patterns):,} patterns cover the sequences exactly")
