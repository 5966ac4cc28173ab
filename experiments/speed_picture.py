"""How many times as fast as padding: what a way of making rows promises, and what was reached, a line for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt

Rows = list[dict[str, Any]]

_REACHED, _PROMISED, _LIMIT = "reached", "promised: fewer token slots", "theory: no padding at all"
_COLOURS = {_REACHED: "#4477aa", _PROMISED: "#ee6677", _LIMIT: "#777777"}  # that the colour-blind tell apart
_SHAPES = {_REACHED: "circle", _PROMISED: "diamond", _LIMIT: "cross"}
_SIZES = {_LIMIT: 60, _PROMISED: 200, _REACHED: 70}  # the last is drawn on top: a promise kept shows around it
_INK, _GRID, _FONT = "#444444", "#e3e3e3", "Arial, Helvetica, sans-serif"
_TICKS = (0.8, 0.9, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 6, 8, 12, 16)
_WIDTH, _ROW = 560, 30  # pixels


def draw(rows: Rows, title: str, subtitle: str, path: Path) -> None:
    """Write the picture; the ending of the path tells the format: .svg or .png.

    Args:
        rows: from top to bottom, each with its name, and as multiples of the speed of padding sample_limit,
            sample_factor (both in theory), median, least and most (measured).
        title: what the picture shows.
        subtitle: on what it was measured.
        path: the file to write.
    """
    picture(rows, title, subtitle).save(path)


def picture(rows: Rows, title: str, subtitle: str) -> alt.LayerChart:
    """A line for each row: the limit, the promise, and the median reached with the least and most of its turns."""
    figures = [
        value for row in rows for value in (row["sample_limit"], row["sample_factor"], row["least"], row["most"])
    ]
    low, high = min(0.95, *figures) * 0.97, max(figures) * 1.12
    points = [
        {"name": row["name"], "what": what, "speedup": row[key]}
        for row in rows
        for what, key in ((_LIMIT, "sample_limit"), (_PROMISED, "sample_factor"), (_REACHED, "median"))
    ]
    y = alt.Y("name:N", sort=[row["name"] for row in rows], title=None, axis=alt.Axis(labelLimit=320, grid=True))
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    x = alt.X(
        "speedup:Q",
        title="times as fast as padding",
        scale=scale,
        axis=alt.Axis(values=[tick for tick in _TICKS if low <= tick <= high], format="~g"),
    )
    colour = alt.Color("what:N", title=None, scale=_scale(_COLOURS))
    shape = alt.Shape("what:N", title=None, scale=_scale(_SHAPES))
    padding = alt.Chart(alt.InlineData(values=[{"speedup": 1}])).mark_rule(color=_INK, strokeDash=[4, 3]).encode(x=x)
    ranges = alt.Chart(alt.InlineData(values=rows)).mark_rule(color=_COLOURS[_REACHED], strokeWidth=2)
    base = alt.Chart(alt.InlineData(values=points)).encode(x=x, y=y)
    says = (
        alt.Chart(alt.InlineData(values=[row | {"text": f"{row['median']:.2f}"} for row in rows]))
        .mark_text(align="left", color=_COLOURS[_REACHED], fontSize=12, fontWeight="bold")
        .encode(x=alt.value(_WIDTH + 8), y=y, text="text:N")
    )
    marks = [
        base.transform_filter(alt.datum.what == what)
        .mark_point(filled=True, opacity=1, size=size)
        .encode(color=colour, shape=shape)
        for what, size in _SIZES.items()
    ]
    chart: alt.LayerChart = (
        alt.layer(padding, ranges.encode(x=alt.X("least:Q", scale=scale), x2="most:Q", y=y), *marks, says)
        .properties(width=_WIDTH, height=_ROW * len(rows), title=_title(title, subtitle))
        .configure(
            background="white", font=_FONT, padding={"left": 14, "top": 14, "right": 44, "bottom": 14}, aria=False
        )
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=13, labelColor=_INK, titleColor=_INK, gridColor=_GRID)
        .configure_legend(orient="top", labelFontSize=12, symbolSize=90, labelColor=_INK, labelLimit=300)
    )
    return chart


def _scale(by_name: dict[str, str]) -> alt.Scale:
    return alt.Scale(domain=list(by_name), range=list(by_name.values()))


def _title(title: str, subtitle: str) -> alt.TitleParams:
    return alt.TitleParams(
        title.split("\n"),
        subtitle=subtitle.split("\n"),
        anchor="start",
        fontSize=17,
        subtitleFontSize=13,
        color=_INK,
        subtitleColor="#777777",
        offset=14,
    )
