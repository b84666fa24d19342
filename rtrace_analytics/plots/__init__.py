"""Pictures of a rollout trace: one function each, taking loaded traces or a frame of a view, returning matplotlib axes.

Nothing is shown and no backend is set: in a notebook the figure appears by itself, elsewhere `ax.figure.savefig(...)`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rtrace_analytics.plots.compare import plot_compare
from rtrace_analytics.plots.durations import plot_durations
from rtrace_analytics.plots.in_flight import plot_in_flight
from rtrace_analytics.plots.lineage import plot_lineage
from rtrace_analytics.plots.timeline import plot_timeline
from rtrace_analytics.plots.waste import plot_fates, plot_waste
from rtrace_analytics.plots.whatif import plot_whatif

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rtrace_analytics.traces import Traces

__all__ = [
    "Pictures",
    "plot_compare",
    "plot_durations",
    "plot_fates",
    "plot_in_flight",
    "plot_lineage",
    "plot_timeline",
    "plot_waste",
    "plot_whatif",
]


class Pictures:
    """The pictures of loaded traces: `traces.plot.timeline()` is `plot_timeline(traces)`, with the same options."""

    def __init__(self, traces: "Traces") -> None:
        self._traces = traces

    def timeline(self, **options: Any) -> "Axes":
        """A bar per attempt over time: `experiment=`, `group=`, `siblings=`, `window=`; see `plot_timeline`."""
        return plot_timeline(self._traces, **options)

    def waste(self, **options: Any) -> "Axes":
        """A bar per restore, what it threw away: `experiment=`; see `plot_waste`."""
        return plot_waste(self._traces, **options)

    def fates(self, **options: Any) -> "Axes":
        """A bar per experiment, where its rollout time went: `experiment=`; see `plot_fates`."""
        return plot_fates(self._traces, **options)

    def in_flight(self, **options: Any) -> "Axes":
        """Rollouts running over time: `experiment=`; see `plot_in_flight`."""
        return plot_in_flight(self._traces, **options)

    def durations(self, **options: Any) -> "Axes":
        """How long attempts ran, by fate: `experiment=`, `bins=`; see `plot_durations`."""
        return plot_durations(self._traces, **options)

    def lineage(self, **options: Any) -> "Axes":
        """Who restored what: `experiment=`; see `plot_lineage`."""
        return plot_lineage(self._traces, **options)

    def compare(self, by: str = "experiment", metric: str = "lost_s_per_restore", **options: Any) -> "Axes":
        """Groups of experiments side by side, by a label; see `plot_compare`."""
        return plot_compare(self._traces, by, metric, **options)

    def whatif(self, intervals: Sequence[float], *, ax: "Axes | None" = None, **options: Any) -> "Axes":
        """What a stop would have cost with other snapshot intervals; options of `traces.whatif_interval`."""
        return plot_whatif(self._traces.whatif_interval(intervals, **options), ax=ax)
