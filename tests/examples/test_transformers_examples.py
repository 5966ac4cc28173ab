"""The examples with transformers run as a reader would run them, and learn."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name):
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_masked_lm_and_next_sentence_loss_falls():
    printed = run("bert_masked_lm.py")
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", printed)]
    assert losses[-1] < losses[0] - 1.5
    assert float(re.findall(r"efficiency ([\d.]+)%", printed)[0]) > 90


def test_packed_and_padded_fine_tuning_stay_the_same():
    lines = re.findall(r"packed loss ([\d.]+) on \d+ slots +padded loss ([\d.]+) on", printed := run("causal_sft.py"))
    assert len(lines) == printed.count("\n")
    assert all(packed == padded for packed, padded in lines)
    assert float(lines[-1][0]) < float(lines[0][0]) - 0.2
