"""The example runs as a reader would run it; it checks itself that packed and unpacked losses agree."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pure_pytorch_loop.py"


def test_packed_and_unpacked_losses_agree_and_fall():
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False)  # noqa: S603
    assert run.returncode == 0, run.stderr
    lines = re.findall(r"packed loss ([\d.]+) on +(\d+) slots +unpacked loss ([\d.]+) on +(\d+) slots", run.stdout)
    assert len(lines) == run.stdout.count("\n")
    for packed, slots, unpacked, unpacked_slots in lines:
        assert packed == unpacked
        assert int(slots) < int(unpacked_slots)
    assert float(lines[-1][0]) < 0.7 * float(lines[0][0])
