"""Speed-up over padding by the number of devices: a table for the terminal, and a picture."""

from __future__ import annotations

import io
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from brimful.errors import OutputError, SettingError
from brimful.simulate import Simulation

if TYPE_CHECKING:
    import altair as alt

FORMATS = (".svg", ".png", ".html")

_NAMES = {
    "packing": "packing",
    "packing_varlen": "packing, varlen",
    "unpadding": "un-padding",
    "sorting": "sorting",
    "length_grouping": "length grouping",
    "token_budget": "token budget",
}
_STYLES = {  # colours that the colour-blind tell apart; the widest is drawn first
    "packing": ("#4477aa", 5.0),
    "packing_varlen": ("#66ccee", 2.0),
    "unpadding": ("#ee6677", 3.0),
    "sorting": ("#ccbb44", 2.0),
    "length_grouping": ("#228833", 2.0),
    "token_budget": ("#aa3377", 2.0),
}
_INK, _GRID, _FONT = "#444444", "#e3e3e3", "Arial, Helvetica, sans-serif"
_PADDING = {"left": 14, "top": 14, "right": 34, "bottom": 14}
_WIDTH, _HEIGHT, _LABEL_HEIGHT = 640, 340, 17  # pixels


def shown_methods(simulation: Simulation) -> list[str]:
    """The methods worth a column: packing with varlen attention only where attention costs something."""
    linear = not simulation.costs.quadratic_share
    return [name for name in simulation.speedups if not (linear and name == "packing_varlen")]


def simulation_table(simulation: Simulation) -> Table:
    """A row for each number of devices, a column for each method, in at most 80 columns."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 2))
    table.add_column("devices", justify="right", no_wrap=True)
    methods = shown_methods(simulation)
    for name in methods:
        title = _NAMES[name].replace(" ", "\n")
        table.add_column(title, justify="right", no_wrap=True, style="bold green" if name == "packing" else "")
    for row, devices in enumerate(simulation.devices):
        table.add_row(f"{devices:,}", *(f"{simulation.speedups[name][row]:.2f}" for name in methods))
    return table


def headline(simulation: Simulation) -> str:
    """What packing and un-padding do from the fewest devices to the most."""
    fewest, most = min(simulation.devices), max(simulation.devices)
    first, last = (simulation.devices.index(devices) for devices in (fewest, most))
    packing = f"{simulation.speedups['packing'][last]:.2f}"
    start, end = (f"{simulation.speedups['unpadding'][place]:.2f}" for place in (first, last))
    if fewest == most:
        devices = "1 device" if most == 1 else f"{most:,} devices"
        return f"On {devices} packing is {packing} times as fast as padding, and un-padding {end} times"
    change = f"stays at {end}" if start == end else f"falls from {start} to {end}"
    return f"From {fewest:,} to {most:,} devices packing stays {packing} times as fast as padding; un-padding {change}"


def notes(simulation: Simulation) -> list[str]:
    """What to know beside the figures: of steps that no epoch fills, of the two kinds of packing, of the grid."""
    plan, most = simulation.plan, simulation.most_devices
    found = []
    if max(simulation.devices) > most:
        found.append(
            f"An epoch has {plan.packs:,} packs, so no whole step of {simulation.batch_size:,} on more than {most:,} "
            f"device{'' if most == 1 else 's'}: what stands there for more is theory."
        )
    if "packing_varlen" in shown_methods(simulation):
        found.append("Packing attends to whole rows and masks; packing, varlen attends within each sequence alone.")
    if simulation.error >= 0.001:
        found.append(f"Costs are rounded to a grid: figures may be up to {simulation.error:.1%} too low.")
    return found


def assumptions(simulation: Simulation) -> list[str]:
    """The batch, and the costs that the figures hold for: two lines."""
    costs = simulation.costs
    parts = {
        "attention {:.1%} of a full row": costs.quadratic_share,
        "step overhead {:.1%}": costs.step_overhead,
        "packing overhead {:.1%}": costs.packing_overhead,
        "un-padding overhead {:.1%}": costs.unpadding_overhead,
        "a new shape {:g} × a padded step": costs.recompilation,
    }
    said = [text.format(value) for text, value in parts.items() if value]
    return [
        f"Rows of {simulation.plan.max_length:,} tokens, {simulation.batch_size:,} on each device in a step",
        f"Assumed: {', '.join(said)}" if said else "Theory: costs linear in tokens, and nothing beside",
    ]


def require_drawable(path: Path) -> None:
    """Nothing, if a picture can be drawn there; otherwise an error that says what is wrong.

    Raises:
        SettingError: the ending is not one of FORMATS.
        OutputError: the path exists, or the libraries that draw are not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise SettingError(f"{path}: a picture ends in one of {', '.join(FORMATS)}, not {path.suffix!r}")
    if path.exists() or path.is_symlink():
        raise OutputError(f"{path}: exists already; choose another output file, or remove this one")
    for library in ("altair", "vl_convert"):
        try:
            import_module(library)
        except ModuleNotFoundError:
            raise OutputError(f"{path}: drawing needs {library}: pip install 'brimful[report]'") from None


def draw(simulation: Simulation, path: Path) -> None:
    """Write the picture; the ending of the path says how: .svg, .png, or .html that needs no network.

    Raises:
        SettingError: another ending.
        OutputError: the path exists or cannot be written, or altair or vl-convert are not installed.
    """
    require_drawable(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("xb")
    except OSError as fault:
        raise OutputError(f"{path}: cannot be written ({fault.strerror or fault})") from None
    try:
        with file:
            file.write(_rendered(picture(simulation), path.suffix.lower()))
    except BaseException:
        path.unlink()
        raise


def picture(simulation: Simulation) -> alt.LayerChart:
    """A line for each method over the devices, with its name and last figure where it ends."""
    import altair as alt

    methods = shown_methods(simulation)
    points: list[dict[str, Any]] = [
        {"method": name, "devices": devices, "speedup": speedup}
        for name in methods
        for devices, speedup in zip(simulation.devices, simulation.speedups[name], strict=True)
    ]
    speedups = [point["speedup"] for point in points]
    bottom, top = min(0.9, min(speedups) - 0.1), max(speedups) + 0.1
    last = max(simulation.devices)
    ends = {point["method"]: point["speedup"] for point in points if point["devices"] == last}
    places = _apart(ends, (top - bottom) * _LABEL_HEIGHT / _HEIGHT)
    labels = [
        {"devices": last, "at": places[name], "method": name, "text": f"{_NAMES[name]} {speedup:.2f}"}
        for name, speedup in ends.items()
    ]
    colour = alt.Color(
        "method:N", legend=None, scale=alt.Scale(domain=methods, range=[_STYLES[name][0] for name in methods])
    )
    x = alt.X(
        "devices:Q",
        title="devices",
        scale=alt.Scale(type="log", base=2, nice=False),
        axis=alt.Axis(values=sorted(simulation.devices), format=",d", grid=False, labelOverlap=True, labelFlush=False),
    )
    y = alt.Y(
        "speedup:Q",
        title="times as fast as padding",
        scale=alt.Scale(domain=[bottom, top], nice=False, zero=False),
        axis=alt.Axis(format=".1f" if top - bottom > 0.7 else ".2f", tickCount=7),
    )
    base = alt.Chart(alt.InlineData(values=points)).encode(x=x, y=y, color=colour)
    lines = [
        base.transform_filter(alt.datum.method == name).mark_line(
            strokeWidth=width, strokeCap="round", point={"filled": True, "size": 14 * width, "opacity": 1}
        )
        for name, (_, width) in _STYLES.items()
        if name in methods
    ]
    padding = alt.Chart(alt.InlineData(values=[{"speedup": 1}])).encode(y=y)
    rule = padding.mark_rule(color=_INK, strokeDash=[4, 3])
    says = padding.mark_text(align="left", dx=6, dy=-8, color=_INK, fontSize=12, text="padding").encode(x=alt.value(0))
    names = (
        alt.Chart(alt.InlineData(values=labels))
        .mark_text(align="left", dx=12, fontSize=13, fontWeight="bold")
        .encode(x="devices:Q", y="at:Q", text="text:N", color=colour)
    )
    title = alt.TitleParams(
        headline(simulation).replace("; ", ";\n").split("\n"),  # two lines, for fonts that are wide
        subtitle=assumptions(simulation),
        anchor="start",
        fontSize=17,
        subtitleFontSize=13,
        color=_INK,
        subtitleColor="#777777",
        offset=14,
    )
    chart: alt.LayerChart = (
        alt.layer(rule, says, *lines, names)
        .properties(width=_WIDTH, height=_HEIGHT, title=title)
        .configure(background="white", font=_FONT, padding=_PADDING, aria=False)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=13, labelColor=_INK, titleColor=_INK, gridColor=_GRID)
    )
    return chart


def _apart(ends: dict[str, float], least: float) -> dict[str, float]:
    """Places for labels, lowest first as their lines end, no two nearer than `least`, and moved evenly to get there."""
    order = sorted(ends, key=lambda name: ends[name])
    groups: list[tuple[list[str], float]] = []  # neighbours that touch, and the middle of what they are labels of
    for name in order:
        group, middle = [name], ends[name]
        while groups and middle - groups[-1][1] < least * (len(group) + len(groups[-1][0])) / 2:
            before, _ = groups.pop()
            group = before + group
            middle = sum(ends[each] for each in group) / len(group)
        groups.append((group, middle))
    return {
        name: middle + (place - (len(group) - 1) / 2) * least
        for group, middle in groups
        for place, name in enumerate(group)
    }


def _rendered(chart: alt.LayerChart, suffix: str) -> bytes:
    if suffix == ".png":
        image = io.BytesIO()
        chart.save(image, format="png", scale_factor=2)
        return image.getvalue()
    text = io.StringIO()
    if suffix == ".svg":
        chart.save(text, format="svg")
    else:
        chart.save(text, format="html", inline=True)  # the libraries that draw it come with it
    return text.getvalue().encode()
