"""Is packed training the same training on *your* model? Run it both ways and compare, part by part."""

import brimful.torch  # noqa: F401 - first of all: it says what to install if torch is missing
from brimful.checks import Check
from brimful.verify.report import Diagnosis, Difference, Leak, VerifyReport
from brimful.verify.run import verify

__all__ = ["Check", "Diagnosis", "Difference", "Leak", "VerifyReport", "verify"]
