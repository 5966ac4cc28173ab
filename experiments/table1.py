"""Table 1: every algorithm at every limit on real lengths: packs, efficiency, proof, seconds.

`make table1` (or `python -m experiments.table1`) prints the tables. With --write they go into docs/results.md,
docs/table1.json and docs/table1.svg as well; --picture draws table1.svg from table1.json and computes nothing.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import brimful
from brimful.planning import ALGORITHMS, DATA_ORDER, LEAST_SQUARES
from experiments.data import load

DOCS = Path(__file__).resolve().parents[1] / "docs"
MARK = "<!-- Everything below is printed by `make table1`. -->\n"
RUNS = 3
LIMITS = (1, 2, 3, 4, 8, 16, None)
WHOLE = (("wikipedia_bert_512", 512), ("squad_1_1_bert_384", 384))
ELSEWHERE = (
    ("azure_llm2023_conv_total", 16_384),
    ("chitchat_conversations_bert", 32_768),
    ("chitchat_utterances_bert", 512),
    ("gsm8k_train_bert", 512),
    ("moses_zinc_train_smiles_chars", 64),
    ("sotu_speeches_bert", 65_536),
)
TIME_LIMIT = 20.0  # seconds for a plan: it cuts short only ennlshp at many sequences a pack


def rows() -> Iterator[dict[str, Any]]:
    """The figures of each dataset, algorithm and limit; the bound is the best that any algorithm proved."""
    for name, max_length in (*WHOLE, *ELSEWHERE):
        for limit in LIMITS if (name, max_length) in WHOLE else (None,):
            plans = []
            for algorithm in ALGORITHMS:
                if algorithm in DATA_ORDER or (algorithm == "none" and limit not in {1, None}):
                    continue
                if algorithm in LEAST_SQUARES and limit not in {2, 3, 4, 8}:
                    continue
                histogram = load(name)
                made = [
                    brimful.plan(histogram, max_length, limit, algorithm, time_limit=TIME_LIMIT)
                    for _ in range(RUNS if algorithm in {"lpfhp", "spfhp", "none"} else 1)
                ]
                seconds = statistics.median(plan.seconds for plan in made)
                plans.append({"data": name, **made[0].figures(), "seconds": seconds})
            bound = max(figures["lower_bound"] for figures in plans)
            for figures in plans:
                yield figures | {"lower_bound": bound, "gap": figures["packs"] / bound - 1}


def tables(figures: list[dict[str, Any]]) -> list[str]:
    """Markdown, a table for each dataset."""
    lines: list[str] = []
    for name in dict.fromkeys(row["data"] for row in figures):
        of_data = [row for row in figures if row["data"] == name]
        lines += [f"## {name}, max_length {of_data[0]['max_length']:,}", ""]
        lines.append(f"{of_data[0]['sequences']:,} sequences, {of_data[0]['tokens']:,} tokens.\n")
        lines.append(
            "| max_sequences | algorithm | packs | efficiency | packing factor | lower bound | gap | seconds |"
        )
        lines.append("|---:|---|---:|---:|---:|---:|---:|---:|")
        lines += [
            f"| {row['max_sequences'] or 'any'} | {row['algorithm']} | {row['packs']:,} | {row['efficiency']:.2%} "
            f"| {row['packing_factor']:.3f} | {row['lower_bound']:,} | {row['gap']:.3%} | {row['seconds']:.3f} |"
            for row in of_data
        ]
        lines.append("")
    return lines


def main() -> None:
    """Compute, print, and write if asked to; or draw."""
    if "--picture" in sys.argv:
        _draw(json.loads((DOCS / "table1.json").read_text(encoding="utf-8")))
        return
    figures = list(rows())
    lines = tables(figures)
    print("\n".join(lines))
    if "--write" in sys.argv:
        page = DOCS / "results.md"
        above, _, _ = page.read_text(encoding="utf-8").partition(MARK)
        page.write_text(above + MARK + "\n" + "\n".join(lines).rstrip() + "\n", encoding="utf-8")
        (DOCS / "table1.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        _draw(figures)


def _draw(figures: list[dict[str, Any]]) -> None:
    from experiments.table1_picture import draw

    draw(figures, DOCS / "table1.svg")


if __name__ == "__main__":
    main()
