"""How long attempts ran, by what became of them."""

from typing import TYPE_CHECKING, Any

from rtrace_analytics.errors import InputError
from rtrace_analytics.plots import _source, style
from rtrace_analytics.text import share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS = {
    "kept": style.LOOKS["kept"],
    "lost": style.LOST,
    "failed": style.LOOKS["failed"],
    "dropped": style.LOOKS["dropped"],
    "open": style.LOOKS["open"],
}


def plot_durations(
    source: Any,
    *,
    ax: "Axes | None" = None,
    experiment: str | list[str] | None = None,
    bins: int | None = None,
    legend: bool = True,
) -> "Axes":
    """Draw how many attempts ran how long, by fate; above each bar the share of it that was lost to a restore.

    So it shows whether long rollouts are lost more often than short ones. A lost attempt that nothing ended is as long
    as its run is known to have run. The stretches of time are equal on a logarithmic scale; an attempt of no length
    counts in the first.

    Args:
        source: Traces, or a frame of `attempt_spans`.
        ax: Axes to draw on; new ones by default.
        experiment: Only these (a name or several); all together by default.
        bins: How many stretches; by default up to 12, fewer for few attempts.
        legend: Whether to explain the colours below.

    Returns:
        The axes; x in attempt-seconds, y in attempts.

    Raises:
        InputError: an experiment or a column that is not there, or fewer than 1 bins.
    """
    import numpy as np

    if bins is not None and bins < 1:
        raise InputError(f"bins {bins}: give 1 or more")
    frame = _source.rows(source, "attempt_spans", ("experiment", "fate", "duration_s"), experiment=experiment)
    heading = "How long attempts ran (attempt-seconds) · per cent: lost to a restore"
    ax = style.new_axes(ax, 9, 3.8 if len(frame) else 2.4)
    if not (frame["duration_s"] > 0).any():
        said = f"{len(frame):,} attempts, none of any length" if len(frame) else "no attempt was dispatched"
        return style.empty(ax, heading, said, xlabel="length of the attempt (s)", ylabel="attempts")
    lengths = frame["duration_s"].to_numpy(float)
    edges = _edges(lengths, bins or min(12, max(4, int(len(lengths) ** 0.5))))
    kind = frame["fate"].map(style.kind_of_fate).to_numpy(object)
    counts = {name: np.histogram(np.clip(lengths[kind == name], edges[0], None), edges)[0] for name in _LOOKS}
    bottom, handles = np.zeros(len(edges) - 1), []
    for name, count in counts.items():
        if not count.any():
            continue
        look = _LOOKS[name]
        ax.bar(
            edges[:-1],
            count,
            width=np.diff(edges),
            bottom=bottom,
            align="edge",
            color=look.face,
            edgecolor=look.edge,
            hatch=look.hatch,
            linewidth=0.6,
            label=f"_{name}",
        )
        bottom = bottom + count
        handles.append(style.patch(look))
    for left, right, lost, total in zip(edges[:-1], edges[1:], counts["lost"], bottom, strict=True):
        if total:
            said = share(lost, total)
            ax.annotate(
                said,
                ((left * right) ** 0.5, total),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=8.5,
            )
    ax.set(xscale="log", xlim=(edges[0], edges[-1]), ylim=(0, bottom.max() * 1.12), ylabel="attempts")
    style.whole_numbers(ax)
    _ticks(ax, edges)
    ax.set_xlabel("length of the attempt, from dispatch to its end or the last that is known")
    style.title(ax, heading)
    style.bare(ax)
    if legend:
        style.legend_below(ax, handles, columns=4)
    return ax


def _edges(lengths: Any, bins: int) -> Any:
    import numpy as np

    positive = lengths[lengths > 0]
    low, high = float(positive.min()), float(positive.max())
    if high <= low * 1.01:
        return np.array([low / 1.5, low * 1.5])
    edges = np.geomspace(low, high, bins + 1)
    edges[0], edges[-1] = low, high  # exactly: the shortest and the longest are inside
    return edges


def _ticks(ax: "Axes", edges: Any) -> None:
    """Ticks at lengths people say: 1 s, 10 s, 1 min, 10 min, 1 h; at the edges where none of them is inside."""
    from matplotlib.ticker import NullLocator

    minutes = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1440, 14_400)
    said = [1e-3, 1e-2, 0.1, 1, 2, 5, 10, 20, 30, *(60 * m for m in minutes)]
    inside = [s for s in said if edges[0] <= s <= edges[-1]]
    inside = inside[:: -(-len(inside) // 10)] if len(inside) > 1 else [float(edges[0]), float(edges[-1])]
    ax.set_xticks(inside, labels=[_said(s) for s in inside])
    ax.xaxis.set_minor_locator(NullLocator())


def _said(seconds: float) -> str:
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"
