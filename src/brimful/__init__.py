"""brimful: pack variable-length sequences so that a transformer trains on tokens instead of padding."""

from brimful.assignment import PackAssignment, assign
from brimful.errors import BrimfulError, CapacityError, DataError, LengthError, OutputError, PlanError
from brimful.lengths import LengthHistogram
from brimful.planning import plan
from brimful.plans import PackPlan

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
    "__version__",
    "assign",
    "plan",
]
