"""The picture of fine-tuning: every seed after each pre-training, with mean and interval, for each measure."""

from __future__ import annotations

import altair as alt

from experiments.commands import Figures
from experiments.curves_picture import arranged, titled
from experiments.fine_tuning_report import MEASURES, NONE, PACKED, PRETRAININGS, UNPACKED, headline, values
from experiments.seeds import estimate

_COLOURS = {UNPACKED: "#777777", PACKED: "#4477aa", NONE: "#ccbb44"}


def picture(figures: Figures) -> alt.HConcatChart:
    """A panel for each measure."""
    return arranged([_panel(figures, measure) for measure in MEASURES], headline(figures))


def _panel(figures: Figures, measure: str) -> alt.LayerChart:
    seeds, means = [], []
    for name in PRETRAININGS:
        of_seeds = [100 * value for value in values(figures, name, measure)]
        mean = estimate(of_seeds)
        seeds += [{"pretraining": name, "points": value} for value in of_seeds]
        low, high = mean.mean - mean.half_width, mean.mean + mean.half_width
        means.append({"pretraining": name, "points": mean.mean, "low": low, "high": high})
    x = alt.X("pretraining:N", sort=list(PRETRAININGS), title="pre-training", axis=alt.Axis(labelAngle=0))
    scale = alt.Scale(zero=False)
    colour = alt.Color(
        "pretraining:N", legend=None, scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    )
    y = alt.Y("points:Q", title=f"{MEASURES[measure]}, points out of 100", scale=scale)
    dots: alt.Chart = (
        alt.Chart(alt.InlineData(values=seeds))
        .mark_point(size=45, xOffset=-14, opacity=0.9)
        .encode(x=x, y=y, color=colour)
    )
    base = alt.Chart(alt.InlineData(values=means)).encode(x=x, color=colour)
    bar = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    tick = base.mark_point(filled=True, size=110, opacity=1).encode(y=y)
    title = titled(MEASURES[measure], 14)
    return alt.LayerChart(layer=[dots, bar, tick]).properties(width=250, height=280, title=title)
