"""What every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# On models this small, threads of torch only wait for one another; also in processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A slow machine is no fault of the code: no example has a deadline.
settings.register_profile("brimful", deadline=None, print_blob=True)
settings.load_profile("brimful")


@pytest.fixture(scope="session")
def histograms() -> Path:
    """The folder of real length histograms, which lies beside the repository and is no part of it."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "histograms"
    if not folder.is_dir():
        pytest.skip(f"the real length histograms are not beside the repository ({folder})")
    return folder
