"""The picture of table 1: how far each algorithm stays above the proven least, and its seconds, at every limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt

Rows = list[dict[str, Any]]

_LIMITS = ["1", "2", "3", "4", "8", "16", "any"]
_DATASETS = {"wikipedia_bert_512": "Wikipedia, packs of 512", "squad_1_1_bert_384": "SQuAD 1.1, packs of 384"}
_STYLES = {  # colours that the colour-blind tell apart; of lines in one place, the wide one is drawn first
    "spfhp": ("#ccbb44", "square", 5.0),
    "lpfhp": ("#ee6677", "circle", 2.0),
    "nnlshp": ("#228833", "triangle-up", 3.5),
    "ennlshp": ("#aa3377", "triangle-down", 1.5),
    "optimal": ("#4477aa", "diamond", 2.5),
    "none": ("#777777", "cross", 0.0),
}
_INK, _GRID = "#444444", "#e3e3e3"
_WIDTH, _SPACING = 430, 30


def draw(figures: Rows, path: Path) -> None:
    """Write the picture of the rows of table1.json; the ending of the path tells the format: .svg or .png."""
    picture(drawn(figures)).save(path)


def drawn(figures: Rows) -> Rows:
    """The rows of the two datasets that were planned at every limit, each with the name of its limit."""
    return [row | {"limit": str(row["max_sequences"] or "any")} for row in figures if row["data"] in _DATASETS]


def headline(rows: Rows) -> str:
    """What the picture shows, in the figures of these rows."""
    above = max(row["packs"] - row["lower_bound"] for row in rows if row["algorithm"] == "optimal")
    gap = max(row["gap"] for row in rows if row["algorithm"] == "lpfhp")
    return f"At every limit, optimal is within {above:,} packs of the proven least; lpfhp is up to {gap:.1%} above it"


def picture(rows: Rows) -> alt.VConcatChart:
    """A column for each dataset: above how far it is from the proven least, below the seconds it took."""
    gap = alt.Y(
        "gap:Q",
        title="packs above the proven least",
        scale=alt.Scale(type="symlog", constant=1e-7, domain=[-3e-7, 2], nice=False),
        axis=alt.Axis(values=[0, *_powers(-6, 0)], labelExpr="format(datum.value, '~%')", minExtent=60),
    )
    seconds = alt.Y(
        "seconds:Q",
        title="seconds for a plan",
        scale=alt.Scale(type="log", domain=[3e-5, 40], nice=False),
        axis=alt.Axis(values=_powers(-4, 1), format="~g", minExtent=60),
    )
    least = alt.Chart(alt.InlineData(values=[{"gap": 0}])).encode(y=gap)
    line = least.mark_rule(color=_INK, strokeDash=[4, 3])
    says = least.mark_text(align="right", dx=-4, dy=11, color=_INK, fontSize=12, text="the proven least")
    limit = alt.X("limit:O", sort=_LIMITS, title=None, axis=alt.Axis(labelAngle=0))
    above, below = [], []
    for name, title in _DATASETS.items():
        of_one = [row for row in rows if row["data"] == name]
        panel = alt.layer(line, says.encode(x=alt.value(_WIDTH)), *_marks(of_one, limit, gap))
        above.append(panel.properties(width=_WIDTH, height=300, title=_title(title, 14)))
        panel = alt.layer(*_marks(of_one, limit.title("max_sequences: most sequences in a pack"), seconds))
        below.append(panel.properties(width=_WIDTH, height=160))
    chart: alt.VConcatChart = (
        alt.vconcat(alt.hconcat(*above, spacing=_SPACING), alt.hconcat(*below, spacing=_SPACING), spacing=12)
        .properties(title=_title(headline(rows), 17))
        .configure(background="white", font="sans-serif", padding=14, aria=False)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, labelColor=_INK, titleColor=_INK, gridColor=_GRID)
        .configure_legend(orient="top", labelFontSize=13, symbolSize=110, labelColor=_INK, columns=len(_STYLES))
    )
    return chart


def _marks(rows: Rows, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A line for each algorithm, and the points above them all."""
    names = list(_STYLES)
    colours, shapes, _ = zip(*_STYLES.values(), strict=True)
    colour = alt.Color("algorithm:N", title=None, scale=alt.Scale(domain=names, range=colours))
    shape = alt.Shape("algorithm:N", title=None, scale=alt.Scale(domain=names, range=shapes))
    ordered = sorted(rows, key=lambda row: names.index(row["algorithm"]))
    base = alt.Chart(alt.InlineData(values=ordered)).encode(x=x, y=y, color=colour)
    lines = [
        base.transform_filter(alt.datum.algorithm == algorithm).mark_line(strokeWidth=width)
        for algorithm, (_, _, width) in _STYLES.items()
        if width
    ]
    return [*lines, base.mark_point(filled=True, size=70, opacity=1).encode(shape=shape)]


def _powers(first: int, last: int) -> list[float]:
    return [10.0**power for power in range(first, last + 1)]


def _title(text: str, size: int) -> alt.TitleParams:
    return alt.TitleParams(text, anchor="start", fontSize=size, color=_INK, offset=10)
