"""Draw docs/before_after.svg from what `brimful demo` wrote: `make demo`, then `python docs/draw_before_after.py`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

DEMO = Path("brimful-demo")
PICTURE = Path(__file__).with_name("before_after.svg")
ROWS, WIDTH, HEIGHT, GAP, TOP = 10, 430, 16, 5, 58
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
PADDING = "#e3e3e3"


def rows(lengths: list[list[int]], max_length: int, left: int) -> list[str]:
    """Rectangles: one for each sequence of each row, and one below for the whole row."""
    parts = []
    for number, row in enumerate(lengths):
        y = TOP + number * (HEIGHT + GAP)
        parts.append(f'<rect x="{left}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="{PADDING}"/>')
        start = 0
        for index, length in enumerate(row):
            x, width = left + start * WIDTH / max_length, length * WIDTH / max_length
            colour = COLOURS[index % len(COLOURS)]
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{max(width - 1, 0.7):.1f}" height="{HEIGHT}" fill="{colour}"/>'
            )
            start += length
    return parts


def main() -> None:
    """The first rows before packing on the left, after packing on the right."""
    manifest = json.loads((DEMO / "packed" / "brimful.json").read_text(encoding="utf-8"))
    figures = manifest["figures"]
    max_length = figures["max_length"]
    documents = pq.read_table(DEMO / "tokens.parquet", columns=["input_ids"])["input_ids"].slice(0, ROWS)
    before = [[min(len(document), max_length)] for document in documents]
    shard = pq.read_table(DEMO / "packed" / manifest["shards"][0]["path"], columns=["seq_lengths"])
    after = shard["seq_lengths"].slice(0, ROWS).to_pylist()
    padding = 1 - figures["tokens"] / (figures["sequences"] * max_length)
    right = WIDTH + 40
    height = TOP + ROWS * (HEIGHT + GAP) + 4
    text = 'font-family="sans-serif" fill="#555555"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH + 40} {height}" role="img">',
        "<title>Rows of token slots before and after packing</title>",
        f'<rect width="100%" height="{height}" fill="white"/>',
        f'<text x="0" y="22" font-size="17" font-weight="bold" {text}>Before: {figures["sequences"]:,} rows</text>',
        f'<text x="0" y="44" font-size="14" {text}>one sequence a row, {padding:.1%} is padding (grey)</text>',
        f'<text x="{right}" y="22" font-size="17" font-weight="bold" {text}>After: {figures["packs"]:,} rows</text>',
        f'<text x="{right}" y="44" font-size="14" {text}>several whole sequences a row, '
        f"{1 - figures['efficiency']:.1%} is padding</text>",
        *rows(before, max_length, 0),
        *rows(after, max_length, right),
        "</svg>",
    ]
    PICTURE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
