"""Files that are not trusted: plans in JSON and histograms in CSV, bounded in size, every type checked."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from brimful.errors import LengthError, PlanError, shown

_MAX_PLAN_BYTES = 2**29
_MAX_CSV_BYTES = 2**28

Made = TypeVar("Made")


def read_csv(path: str | Path, header: str, read: Callable[[Path, Any], Made]) -> Made:
    """What `read` makes of the rows of a CSV file.

    Args:
        path: the file, of at most 256 MiB.
        header: what its header says, for messages.
        read: given the path and the rows, as csv.reader gives them.

    Raises:
        LengthError: not a regular file, too large, or no CSV; and what `read` raises.
        OSError: the file cannot be read.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise LengthError(f"{path}: not a regular file; name a CSV file with {header}")
    if path.stat().st_size > _MAX_CSV_BYTES:
        raise LengthError(f"{path}: larger than {_MAX_CSV_BYTES >> 20} MiB; is this a histogram?")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return read(path, csv.reader(file))
    except (csv.Error, UnicodeDecodeError) as fault:
        raise LengthError(f"{path}: not a CSV text file ({fault})") from None


def read_plan(path: str | Path, make: Callable[[Any], Made]) -> Made:
    """What `make` makes of the value in a JSON file.

    Raises:
        PlanError: the file is too large or no JSON, or what `make` raises; names the file.
        OSError: the file cannot be read.
    """
    path = Path(path)
    if path.stat().st_size > _MAX_PLAN_BYTES:
        raise PlanError(f"{path}: larger than {_MAX_PLAN_BYTES >> 20} MiB; is this a plan?")
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as fault:
        raise PlanError(f"{path}: not a JSON file ({fault})") from None
    try:
        return make(value)
    except PlanError as fault:
        raise PlanError(f"{path}: {fault}") from None


def require_plan(value: Any, what: str, file_format: str, version: int, needed: tuple[str, ...]) -> None:
    """Nothing, if this is the JSON form of a plan of this format and version that says what is needed; or a PlanError.

    Seconds, which every plan has, are a number from 0 up.
    """
    if not isinstance(value, dict) or value.get("format") != file_format:
        raise PlanError(f'{what} is a JSON object with "format": "{file_format}"; this is something else')
    if type(found := value.get("version")) is not int or found != version:
        raise PlanError(f"plan version {shown(found)} is not known here (only {version}); plan again")
    for key in (*needed, "seconds"):
        if key not in value:
            raise PlanError(f"a plan says its {key}; this one does not")
    seconds = value["seconds"]
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 2**63:
        raise PlanError(f"the seconds of a plan are a number from 0 up, not {shown(seconds)}")


def integers(value: dict[str, Any], *keys: str) -> npt.NDArray[np.int64]:
    """The list value[key][key]… as int64, or a PlanError."""
    items: Any = value
    for key in keys:
        items = items.get(key) if isinstance(items, dict) else None
    if not isinstance(items, list) or not all(type(item) is int and -(2**62) < item < 2**62 for item in items):
        raise PlanError(f"{'.'.join(keys)} of a plan is a list of whole numbers below 2^62")
    return np.array(items, np.int64)
