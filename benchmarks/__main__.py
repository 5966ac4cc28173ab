"""`python -m benchmarks`: print every table; `--write` also puts them into docs/benchmarks.md."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path

from benchmarks import batching, nonnegative, packing, planning, training

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
MARK = "<!-- Everything below is printed by `make bench`. -->\n"
PEERS = ("brimful", "numpy", "pyarrow", "lightbinpack", "trl", "datasets", "torch", "transformers")
SECTIONS = {
    "Planning": planning,
    "Packing": packing,
    "Non-negative least squares": nonnegative,
    "Batching": batching,
    "Training": training,
}


def main() -> None:
    """Measure, print, and write if asked to."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PEERS)
    lines = [f"Python {platform.python_version()}, {versions}; {os.cpu_count()} CPU cores.", ""]
    print("\n".join(lines))
    for title, module in SECTIONS.items():
        lines += [f"## {title}", ""]
        for section in module.sections():
            print("\n".join(section), flush=True)
            lines += section
    if "--write" in sys.argv:
        above, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
        PAGE.write_text(above + MARK + "\n" + "\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
