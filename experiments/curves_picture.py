"""Pictures of learning curves: a line for the mean over seeds, in the band from the least to the greatest of them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import altair as alt

from experiments import ablations_report as ablated
from experiments import learning_curves_report as learned
from experiments.learning_curves_report import Curves, curves_of
from experiments.pages import Figures

Rows: TypeAlias = list[dict[str, Any]]
Style: TypeAlias = tuple[str, float]  # colour and width; of lines in one place, the wide one is drawn first

_INK, _GRID = "#444444", "#e3e3e3"
_WIDTH, _HEIGHT = 380, 300
_LEARNED: Mapping[str, Style] = {
    learned.UNPACKED: ("#bbbbbb", 7.0),
    learned.SAME: ("#4477aa", 2.0),
    learned.EFFECTIVE: ("#228833", 2.0),
    learned.COMPUTE: ("#ee6677", 2.5),
    learned.BETAS_STAY: ("#ccbb44", 2.5),
    learned.RATE_SCALED: ("#aa3377", 2.0),
}
_PANELS = (
    ("Same effective batch", "sequences", (learned.UNPACKED, learned.SAME, learned.EFFECTIVE)),
    ("Same compute batch", "sequences", (learned.UNPACKED, learned.COMPUTE, learned.BETAS_STAY, learned.RATE_SCALED)),
    ("Time", "seconds", (learned.UNPACKED, learned.EFFECTIVE, learned.COMPUTE)),
)
_ABLATED: Mapping[str, Style] = dict(
    zip(
        ablated.PARTS,
        (("#bbbbbb", 7.0), ("#ee6677", 2.5), ("#4477aa", 2.0), ("#228833", 2.0), ("#aa3377", 2.0)),
        strict=True,
    )
)
_TITLES = {
    "sequences": "sequences learned from",
    "seconds": "seconds of one processor, spent on training",
    "word_loss": "loss on held-out words",
    "pair_accuracy": "held-out pairs told right",
}


def learning_curves(figures: Figures) -> alt.HConcatChart:
    """The three panels of figure 3."""
    curves = curves_of(figures)
    panels = [
        panel(title, curves, {name: _LEARNED[name] for name in names}, x, "word_loss") for title, x, names in _PANELS
    ]
    return _beside(panels, learned_headline(curves, figures["plan"]["packing_factor"]), _LEARNED)


def learned_headline(curves: Curves, factor: float) -> str:
    """What the picture shows, in its figures."""
    return (
        f"The same sequences in each step: curves at most {learned.apart(curves):.0e} apart; "
        f"{learned.faster(curves, learned.EFFECTIVE).mean:.2f} times as fast with packing factor {factor:.2f}"
    )


def ablations(figures: Figures) -> alt.HConcatChart:
    """Loss on words, and pairs told right, without each part."""
    curves = curves_of(figures, "without")
    panels = [
        panel("Hidden words", curves, _ABLATED, "sequences", "word_loss"),
        panel("Next sentence", curves, _ABLATED, "sequences", "pair_accuracy"),
    ]
    return _beside(panels, ablated.headline(curves), _ABLATED)


def band_rows(curves: Curves, names: Sequence[str], x: str, y: str) -> Rows:
    """For each training and point the mean over seeds, and from where to where they go."""
    rows = []
    for name in names:
        for points in zip(*curves[name], strict=True):
            values = [point[y] for point in points]
            at = statistics.fmean(point[x] for point in points)
            mean, low, high = statistics.fmean(values), min(values), max(values)
            rows.append({"training": name, "x": at, "mean": mean, "low": low, "high": high})
    return rows


def panel(title: str, curves: Curves, styles: Mapping[str, Style], x: str, y: str) -> Any:
    """One pair of axes, with a band and a line for each training that has a style."""
    base = alt.Chart(alt.InlineData(values=band_rows(curves, list(styles), x, y))).encode(
        x=alt.X("x:Q", title=_TITLES[x], axis=alt.Axis(format="~s", tickCount=6)),
        color=_colour(_LEARNED if styles.keys() <= _LEARNED.keys() else _ABLATED),
    )
    scale = alt.Scale(zero=False, nice=True)
    axis = alt.Axis(format="%" if y.endswith("accuracy") else ".1f")
    layers: list[alt.Chart] = []
    for name, (_, width) in styles.items():
        one = base.transform_filter(alt.datum.training == name)
        layers.append(one.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"))
        line = one.mark_line(strokeWidth=width)
        layers.append(line.encode(y=alt.Y("mean:Q", title=_TITLES[y], scale=scale, axis=axis)))
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, title=_title(title, 14))


def _colour(styles: Mapping[str, Style]) -> alt.Color:
    colours = [colour for colour, _ in styles.values()]
    return alt.Color("training:N", title=None, scale=alt.Scale(domain=list(styles), range=colours))


def _beside(panels: Sequence[Any], headline: str, styles: Mapping[str, Style]) -> alt.HConcatChart:
    chart: alt.HConcatChart = (
        alt.hconcat(*panels, spacing=30)
        .properties(title=_title(headline, 17))
        .configure(background="white", font="sans-serif", padding=14, aria=False)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, labelColor=_INK, titleColor=_INK, gridColor=_GRID)
        .configure_legend(
            orient="top",
            labelFontSize=13,
            symbolSize=110,
            symbolOpacity=1,
            labelLimit=500,
            labelColor=_INK,
            columns=min(3, len(styles)),
        )
    )
    return chart


def _title(text: str, size: int) -> alt.TitleParams:
    return alt.TitleParams(text, anchor="start", fontSize=size, color=_INK, offset=10)
