"""brimful: pack variable-length sequences so that a transformer trains on tokens instead of padding."""

from typing import TYPE_CHECKING, Any

from brimful.assignment import PackAssignment, assign
from brimful.errors import BrimfulError, CapacityError, DataError, LengthError, OutputError, PlanError, SettingError
from brimful.groups import SequenceGroups
from brimful.lengths import LengthHistogram
from brimful.planning import plan
from brimful.plans import PackPlan

if TYPE_CHECKING:
    from brimful.tables.pack import pack_dataset, packing_report

__version__ = "0.1.0"

__all__ = [
    "BrimfulError",
    "CapacityError",
    "DataError",
    "LengthError",
    "LengthHistogram",
    "OutputError",
    "PackAssignment",
    "PackPlan",
    "PlanError",
    "SequenceGroups",
    "SettingError",
    "__version__",
    "assign",
    "pack_dataset",
    "packing_report",
    "plan",
]


def __getattr__(name: str) -> Any:
    """What needs pyarrow is imported when it is first asked for: importing brimful imports NumPy only."""
    if name in {"pack_dataset", "packing_report"}:
        from brimful.tables import pack

        return getattr(pack, name)
    raise AttributeError(f"module 'brimful' has no attribute {name!r}")
