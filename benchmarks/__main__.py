"""`python -m benchmarks [NAME…]`: print every table, or those named; `--write` puts them into docs/benchmarks.md."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from types import ModuleType

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
    """Measure, print, and write if asked to: the sections that are named, or all."""
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    wanted = {title: module for title, module in SECTIONS.items() if not named or _name(module) in named}
    if unknown := set(named) - {_name(module) for module in SECTIONS.values()}:
        sys.exit(f"there is no benchmark {min(unknown)!r}; there are {', '.join(map(_name, SECTIONS.values()))}")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PEERS if _installed(name))
    measured = {}
    for title, module in wanted.items():
        lines = [f"## {title}", "", f"Python {platform.python_version()}, {versions}; {os.cpu_count()} CPU cores.", ""]
        print("\n".join(lines))
        for section in module.sections():
            print("\n".join(section), flush=True)
            lines += section
        measured[title] = "\n".join(lines).rstrip() + "\n"
    if "--write" in sys.argv:
        above, _, below = PAGE.read_text(encoding="utf-8").partition(MARK)
        before = {part.partition("\n")[0]: f"## {part.rstrip()}\n" for part in below.split("\n## ")[1:]}
        sections = [measured.get(title) or before[title] for title in SECTIONS if title in {*measured, *before}]
        PAGE.write_text(above + MARK + "\n" + "\n".join(sections), encoding="utf-8")


def _name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def _installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
