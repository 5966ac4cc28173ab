"""A plan file for several resources, read without trust: types and ranges here, the promises in ResourcePlan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from brimful.errors import BrimfulError, PlanError, shown
from brimful.lengths import IntArray
from brimful.patterns import Patterns
from brimful.resources.histogram import ResourceHistogram

FORMAT = "brimful-resource-plan"
VERSION = 1

_MAX_FILE_BYTES = 2**29


def read_json(path: Path) -> Any:
    """What a JSON file of bounded size holds.

    Raises:
        PlanError: the file is too large or no JSON; names the file.
        OSError: the file cannot be read.
    """
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise PlanError(f"{path}: larger than {_MAX_FILE_BYTES >> 20} MiB; is this a plan?")
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as fault:
        raise PlanError(f"{path}: not a JSON file ({fault})") from None


def fields_from_json(value: Any) -> dict[str, Any]:
    """The fields of a ResourcePlan from the JSON form of one, each of the right type.

    Raises:
        PlanError: what is missing or of a wrong type, a histogram or patterns that are none.
    """
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise PlanError(f'a plan for resources is a JSON object with "format": "{FORMAT}"; this is something else')
    if type(version := value.get("version")) is not int or version != VERSION:
        raise PlanError(f"plan version {shown(version)} is not known here (only {VERSION}); plan again")
    plain = ("algorithm", "priority", "max_sequences", "seconds")
    for key in (*plain, "capacities"):
        if key not in value:
            raise PlanError(f"a plan says its {key}; this one does not")
    seconds = value["seconds"]
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 2**63:
        raise PlanError(f"the seconds of a plan are a number from 0 up, not {shown(seconds)}")
    return {
        **{key: value[key] for key in plain},
        "seconds": float(seconds),
        "capacities": tuple(_integers(value, "capacities").tolist()),
        "histogram": _histogram(value),
        "patterns": Patterns(
            _integers(value, "patterns", "rows") + 1,
            *(_integers(value, "patterns", name) for name in ("copies", "offsets", "counts")),
        ),
    }


def _histogram(value: dict[str, Any]) -> ResourceHistogram:
    part = value.get("histogram")
    names = part.get("names") if isinstance(part, dict) else None
    if not isinstance(names, list) or not names:
        raise PlanError("histogram.names of a plan is a list of names")
    sizes, counts = (_integers(value, "histogram", name) for name in ("sizes", "counts"))
    if len(sizes) != len(counts) * len(names):
        raise PlanError(f"histogram.sizes of a plan has {len(names)} numbers for each count, row after row")
    try:
        return ResourceHistogram(tuple(names), sizes.reshape(len(counts), len(names)), counts)
    except BrimfulError as fault:
        raise PlanError(f"not a valid plan: {fault}") from None


def _integers(value: dict[str, Any], *keys: str) -> IntArray:
    """The list value[key][key]… as int64, or a PlanError."""
    items: Any = value
    for key in keys:
        items = items.get(key) if isinstance(items, dict) else None
    if not isinstance(items, list) or not all(type(item) is int and -(2**62) < item < 2**62 for item in items):
        raise PlanError(f"{'.'.join(keys)} of a plan is a list of whole numbers below 2^62")
    return np.array(items, np.int64)
