"""A plan file for several resources, read without trust: types and ranges here, the promises in ResourcePlan."""

from __future__ import annotations

from typing import Any

from brimful.errors import BrimfulError, PlanError
from brimful.patterns import Patterns
from brimful.resources.histogram import ResourceHistogram
from brimful.untrusted import integers, require_plan

FORMAT = "brimful-resource-plan"
VERSION = 1


def fields_from_json(value: Any) -> dict[str, Any]:
    """The fields of a ResourcePlan from the JSON form of one, each of the right type.

    Raises:
        PlanError: what is missing or of a wrong type, a histogram or patterns that are none.
    """
    plain = ("algorithm", "priority", "max_sequences")
    require_plan(value, "a plan for resources", FORMAT, VERSION, (*plain, "capacities"))
    return {
        **{key: value[key] for key in plain},
        "seconds": float(value["seconds"]),
        "capacities": tuple(integers(value, "capacities").tolist()),
        "histogram": _histogram(value),
        "patterns": Patterns(
            integers(value, "patterns", "rows") + 1,
            *(integers(value, "patterns", name) for name in ("copies", "offsets", "counts")),
        ),
    }


def _histogram(value: dict[str, Any]) -> ResourceHistogram:
    part = value.get("histogram")
    names = part.get("names") if isinstance(part, dict) else None
    if not isinstance(names, list) or not names:
        raise PlanError("histogram.names of a plan is a list of names")
    sizes, counts = (integers(value, "histogram", name) for name in ("sizes", "counts"))
    if len(sizes) != len(counts) * len(names):
        raise PlanError(f"histogram.sizes of a plan has {len(names)} numbers for each count, row after row")
    try:
        return ResourceHistogram(tuple(names), sizes.reshape(len(counts), len(names)), counts)
    except BrimfulError as fault:
        raise PlanError(f"not a valid plan: {fault}") from None
