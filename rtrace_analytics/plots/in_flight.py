"""Rollouts running over time, with what interrupted them."""

from typing import TYPE_CHECKING, Any

from rtrace_analytics.plots import _source, style

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes

_STEPS = 4000  # changes of a run that are drawn one by one
_FACES = (("#c3dbef", "#4f81ad"), ("#dedede", "#6f6f6f"))  # runs in turn


def plot_in_flight(
    source: Any, *, ax: "Axes | None" = None, experiment: str | None = None, legend: bool = True
) -> "Axes":
    """Draw how many rollouts ran at each moment, run by run, with snapshots, restored cuts, stops and restores.

    Of a run with more than 4,000 changes the highest number of each of 4,000 equal stretches of time is drawn.

    Args:
        source: Traces, or a frame of `in_flight` (then without snapshots and lines).
        ax: Axes to draw on; new ones by default.
        experiment: The one to show; by default the one that lost most.
        legend: Whether to explain the marks below.

    Returns:
        The axes; x in wall-seconds from the experiment's first event, y in rollouts.

    Raises:
        InputError: an experiment or a column that is not there.
    """
    name, of = _source.one_experiment(source, experiment)
    columns = ("experiment", "run", "t", "in_flight")
    frame = _source.rows(source, "in_flight", columns, experiment=name, order="experiment, run, t")
    heading = f"Rollouts running over time (wall-seconds){_source.told_of(name, of)}"
    ax = style.new_axes(ax, 9, 3.6 if len(frame) else 2.4)
    if not (frame["in_flight"] > 0).any():
        said = "no attempt ran for any length of time" if len(frame) else "no attempt was dispatched"
        return style.empty(ax, heading, said, xlabel="time (s)", ylabel="rollouts running")
    first_t, last_t = _source.extent(source, name, frame["t"], frame["t"])
    moments: dict[str, Any] = {}
    if not _source.is_frame(source):
        restores = _source.rows(source, "restores", ("cut_t", "stop_t", "restore_t"), experiment=name)
        moments = {style.CUT: restores["cut_t"], style.STOP: restores["stop_t"], style.RESTORE: restores["restore_t"]}
        moments[style.SNAPSHOT] = _source.rows(source, "snapshots", ("cut_t",), experiment=name)["cut_t"]
    zero, axis_name = _source.origin(first_t, last_t)
    ordered = sorted(frame.groupby("run"), key=lambda pair: pair[1]["t"].iloc[0])
    for i, (_, own) in enumerate(ordered):
        own = own.sort_values("t")
        t, running = thinned(own["t"].to_numpy(float) - zero, own["in_flight"].to_numpy(float))
        face, edge = _FACES[i % 2]
        ax.fill_between(t, running, step="post", facecolor=face, alpha=0.8, linewidth=0, gid="fill", label=f"_{i}")
        ax.plot(t, running, drawstyle="steps-post", color=edge, linewidth=0.9, gid="running", label=f"_run {i}")
    handles = _marks(ax, moments, zero)
    margin = (last_t - first_t) * 0.015 or 1.0
    ax.set_xlim(first_t - zero - margin, last_t - zero + margin)
    ax.set_ylim(0, max(1.0, float(frame["in_flight"].max())) * 1.08)
    style.whole_numbers(ax)
    ax.set_ylabel("rollouts running")
    style.title(ax, heading)
    style.time_axis(ax, axis_name)
    style.bare(ax)
    if legend:
        style.legend_below(ax, handles, columns=4)
    return ax


def thinned(t: "np.ndarray", running: "np.ndarray", most: int = _STEPS) -> tuple["np.ndarray", "np.ndarray"]:
    """Steps as they are; of more than `most` the highest in each of `most` equal stretches of time, and the last."""
    import numpy as np

    if len(t) <= most:
        return t, running
    stretch = np.minimum(((t - t[0]) / (t[-1] - t[0]) * most).astype(int), most - 1)
    begins = np.flatnonzero(np.r_[True, stretch[1:] != stretch[:-1]])
    highest = np.maximum.reduceat(running, begins)
    return np.r_[t[begins], t[-1]], np.r_[highest, running[-1]]


def _marks(ax: "Axes", moments: dict[str, Any], zero: float) -> list[Any]:
    handles = []
    for kind in style.LINES:
        found = sorted(moments[kind].dropna().unique()) if kind in moments else []
        for t in found:
            ax.axvline(t - zero, **style.line_look(kind))
        handles += [style.line(kind)] if found else []
    if style.SNAPSHOT in moments and len(taken := moments[style.SNAPSHOT].dropna()):
        handles += ax.plot(
            taken - zero,
            [0.0] * len(taken),
            "^",
            color=style.ink(),
            markersize=5,
            clip_on=False,
            linestyle="none",
            transform=ax.get_xaxis_transform(),
            label="snapshot (its cut)",
            gid="snapshots",
            zorder=5,
        )
    return handles
