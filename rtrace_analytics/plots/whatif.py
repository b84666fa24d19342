"""How often to snapshot: what stops and snapshots cost against the interval between cuts."""

from typing import TYPE_CHECKING, Any

from rtrace_analytics.errors import InputError
from rtrace_analytics.plots import style
from rtrace_analytics.text import length, short

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_COLUMNS = ("experiment", "granularity", "cadence", "interval_s", "lost_s_per_stop", "thrown_away_s", "usual_gap_s")
_HOUR = 3600
_GREY = style.LOOKS["failed"].face


def plot_whatif(frame: "pd.DataFrame", *, ax: "Axes | None" = None, legend: bool = True) -> "Axes":
    """Draw what a stop costs against the snapshot interval; with costs, what stops and saving cost an hour.

    Without costs: the loss per stop, and the part of it that ran before the cut. With costs: what stops cost (the
    stops of `mtbf_s`), what saving costs, both together, a mark at the best interval, and Young/Daly's as a dashed
    line. The diamond is the trace as it was: its own cuts and stops.

    Args:
        frame: Rows of `traces.whatif_interval`, of one granularity.
        ax: Axes to draw on; new ones by default.
        legend: Whether to explain the lines below.

    Returns:
        The axes; x in wall-seconds, y in attempt-seconds per stop, or in attempt-seconds per wall-hour.

    Raises:
        InputError: a column that is not there, or rows of none or several granularities.
    """
    missing = [name for name in _COLUMNS if name not in frame.columns]
    if missing:
        raise InputError(f"the frame has no column {missing[0]!r}: give the rows of traces.whatif_interval")
    if (kinds := frame["granularity"].nunique()) != 1:
        raise InputError(f"the frame has rows of {kinds} granularities: give those of one")
    rows = frame[frame["cadence"] == "replayed"].sort_values("interval_s")
    seen = frame[frame["cadence"] == "recorded"]
    costs = "total_s_per_hour" in frame.columns
    ax = style.new_axes(ax, 9, 3.8)
    handles = _costs(ax, rows) if costs else _losses(ax, rows)
    handles += _seen(ax, seen, "total_s_per_hour" if costs else "lost_s_per_stop")
    _axes(ax, rows)
    name = short(frame["experiment"].iloc[0])
    style.title(ax, f"{'What stops and snapshots cost' if costs else 'What a stop costs'} (attempt-seconds) · {name}")
    ax.set_ylabel("attempt-seconds per wall-hour" if costs else "attempt-seconds per stop")
    if legend:
        style.legend_below(ax, handles)
    return ax


def _losses(ax: "Axes", rows: "pd.DataFrame") -> list[Any]:
    thrown, unsaved = style.LOOKS["thrown_away"], style.LOOKS["never_saved"]
    x, lost, before = (rows[name].astype(float) for name in ("interval_s", "lost_s_per_stop", "thrown_away_s"))
    ax.fill_between(x, 0, before, facecolor=thrown.face, edgecolor=thrown.edge, hatch=thrown.hatch, linewidth=0.6)
    ax.fill_between(x, before, lost, facecolor=unsaved.face, edgecolor=unsaved.edge, hatch=unsaved.hatch, linewidth=0.6)
    ax.plot(x, lost, color=style.ink(), linewidth=1.2)
    return [style.patch(thrown), style.patch(unsaved)]


def _costs(ax: "Axes", rows: "pd.DataFrame") -> list[Any]:
    x = rows["interval_s"].astype(float)
    lost = rows["lost_s_per_stop"].astype(float) * _HOUR / rows["mtbf_s"].astype(float)
    saving, total = (rows[name].astype(float) for name in ("overhead_s_per_hour", "total_s_per_hour"))
    mtbf, cost = float(rows["mtbf_s"].iloc[0]), float(rows["save_cost_s"].iloc[0])
    handles = [
        *ax.plot(x, lost, color=style.LOST.face, marker=".", label=f"lost to stops, one every {length(mtbf)}"),
        *ax.plot(x, saving, color=_GREY, linestyle="-.", marker=".", label=f"saving, {length(cost)} each time"),
        *ax.plot(x, total, color=style.ink(), linewidth=2, label="both together"),
    ]
    best = rows[rows["is_best"].astype(bool)].iloc[0]
    said = f"best of these: {length(best['interval_s'])}"
    at = (best["interval_s"], best["total_s_per_hour"])
    handles += ax.plot(*at, "o", color=style.ink(), markersize=9, fillstyle="none", label=said)
    young = float(best["young_daly_s"])
    if young > 0:
        said = f"Young/Daly: {length(young)}"
        handles.append(ax.axvline(young, color=style.ink(), linestyle="--", linewidth=1, label=said))
    return handles


def _seen(ax: "Axes", seen: "pd.DataFrame", value: str) -> list[Any]:
    """The trace's own cadence: its usual gap, with the stops that came where there were any."""
    if seen.empty or seen["usual_gap_s"].isna().all():
        return []
    row = seen.iloc[0]
    gap, stops = float(row["usual_gap_s"]), int(row["stops"])
    handles = [ax.axvline(gap, color=_GREY, linestyle=":", linewidth=1.2, label=f"as it was: {length(gap)}")]
    if stops:
        said = f"its own {stops} stop{'s' if stops > 1 else ''}"
        handles += ax.plot(gap, float(row[value]), "D", color=_GREY, markersize=7, label=said)
    return handles


def _axes(ax: "Axes", rows: "pd.DataFrame") -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    x = rows["interval_s"].astype(float)
    ax.set_xscale("log")
    ticks = x.tolist() if len(x) <= 12 else x.iloc[:: -(-len(x) // 12)].tolist()
    ax.set_xticks(ticks, labels=[length(value) for value in ticks], fontsize=8.5)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.set_ylim(bottom=0)
    ax.set_xlabel("interval between snapshot cuts (wall-seconds)")
    style.bare(ax)
