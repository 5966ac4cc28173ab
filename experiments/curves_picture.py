"""Pictures of learning curves: a line for the mean over seeds, in the band from the least to the greatest of them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import altair as alt

from experiments import ablations_report as ablated
from experiments import learning_curves_report as learned
from experiments.commands import Figures
from experiments.learning_curves_report import Curves, curves_of
from experiments.seeds import rounded_up

Rows: TypeAlias = list[dict[str, Any]]
Style: TypeAlias = tuple[str, float]  # colour and width; of lines in one place, the wide one is drawn first

_INK, _GRID = "#444444", "#e3e3e3"
_WIDTH, _HEIGHT = 380, 300
_LEARNED: Mapping[str, Style] = {
    learned.UNPACKED: ("#bbbbbb", 7.0),
    learned.UNPACKED_SCALED: ("#777777", 1.5),
    learned.SAME: ("#4477aa", 2.0),
    learned.EFFECTIVE: ("#228833", 2.0),
    learned.COMPUTE: ("#ee6677", 2.5),
    learned.BETAS_STAY: ("#ccbb44", 2.5),
    learned.RATE_SCALED: ("#aa3377", 2.0),
}
_PANELS = (
    ("Same effective batch", "sequences", (learned.UNPACKED, learned.SAME, learned.EFFECTIVE)),
    (
        "Same compute batch",
        "sequences",
        (learned.UNPACKED, learned.UNPACKED_SCALED, learned.COMPUTE, learned.BETAS_STAY, learned.RATE_SCALED),
    ),
    ("Time", "seconds", (learned.UNPACKED, learned.EFFECTIVE, learned.COMPUTE)),
)
_ABLATED: Mapping[str, Style] = {
    ablated.MASK: ("#ee6677", 2.5),
    ablated.POSITIONS: ("#4477aa", 2.0),
    ablated.SEQUENCE_LOSS: ("#228833", 2.0),
    ablated.NEXT_SENTENCE: ("#aa3377", 2.0),
}
_TITLES = {"sequences": "sequences learned from", "seconds": "seconds of one processor, spent on training"}


def learning_curves(figures: Figures) -> alt.HConcatChart:
    """The three panels of figure 3."""
    curves = curves_of(figures)
    panels = [
        panel(title, curves, _LEARNED, names, x, "word_loss", alt.Y("mean:Q", title="loss on held-out words"))
        for title, x, names in _PANELS
    ]
    return arranged(panels, learned_headline(curves, figures["plan"]["packing_factor"]))


def learned_headline(curves: Curves, factor: float) -> str:
    """What the picture shows, in its figures."""
    return (
        f"The same sequences in each step: curves at most {rounded_up(learned.apart(curves))} apart; "
        f"{learned.faster(curves, learned.EFFECTIVE).mean:.2f} times as fast with packing factor {factor:.2f}"
    )


def ablations(figures: Figures) -> alt.HConcatChart:
    """What loss on words and pairs told right are without each part, less what they are with all."""
    curves = curves_of(figures, "without")
    words = alt.Y("mean:Q", title="loss without the part − with all")
    pairs = alt.Y("mean:Q", title="told right without the part − with all", axis=alt.Axis(format="+.0%"))
    panels = [
        panel("Hidden words", ablated.differences(curves), _ABLATED, tuple(_ABLATED), "sequences", "word_loss", words),
        panel("Pairs", ablated.differences(curves), _ABLATED, tuple(_ABLATED), "sequences", "pair_accuracy", pairs),
    ]
    return arranged(panels, ablated.headline(curves))


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


def panel(
    title: str, curves: Curves, styles: Mapping[str, Style], names: Sequence[str], x: str, figure: str, y: alt.Y
) -> alt.LayerChart:
    """One pair of axes, with a band and a line for each of the names."""
    colours = [colour for colour, _ in styles.values()]
    base = alt.Chart(alt.InlineData(values=band_rows(curves, names, x, figure))).encode(
        x=alt.X("x:Q", title=_TITLES[x], axis=alt.Axis(format="~s", tickCount=6)),
        color=alt.Color("training:N", title=None, scale=alt.Scale(domain=list(styles), range=colours)),
    )
    scale = alt.Scale(zero=False)
    layers: list[alt.Chart] = []
    for name in names:
        one = base.transform_filter(alt.datum.training == name)
        layers.append(one.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"))
        layers.append(one.mark_line(strokeWidth=styles[name][1]).encode(y=y.scale(zero=False)))
    return alt.LayerChart(layer=layers).properties(width=_WIDTH, height=_HEIGHT, title=titled(title, 14))


def arranged(panels: Sequence[alt.LayerChart], headline: str) -> alt.HConcatChart:
    """Panels side by side under a headline."""
    chart: alt.HConcatChart = (
        alt.hconcat(*panels, spacing=30)
        .properties(title=titled(headline, 17))
        .configure(background="white", font="sans-serif", padding=14, aria=False)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, labelColor=_INK, titleColor=_INK, gridColor=_GRID)
        .configure_legend(
            orient="top", labelFontSize=13, symbolSize=110, symbolOpacity=1, labelLimit=500, labelColor=_INK, columns=3
        )
    )
    return chart


def titled(text: str, size: int) -> alt.TitleParams:
    """A title at the left."""
    return alt.TitleParams(text, anchor="start", fontSize=size, color=_INK, offset=10)
