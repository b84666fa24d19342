"""Runs and snapshots as a graph: who restored what, what was forked, what was thrown away."""

from typing import TYPE_CHECKING, Any

from rtrace_analytics.plots import _source, style
from rtrace_analytics.plots._source import known
from rtrace_analytics.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RUNS = ("experiment", "run", "parent_run", "first_t", "last_t", "cut_t")
_NAMED = 150  # runs with a note each
_LIVED_ON, _LEFT = style.LOOKS["kept"].edge, style.LOST.face


def plot_lineage(
    source: Any,
    *,
    ax: "Axes | None" = None,
    experiment: str | list[str] | None = None,
    snapshots: Any = None,
    legend: bool = True,
) -> "Axes":
    """Draw a line per run from its first to its last event, a mark per snapshot, and from what it restored to each run.

    A run's line is whole as far as its work was restored or it ran to the end, and dashed after that: what a later run
    threw away. A run of a branch that was left is dashed from its start. Experiments stand one below the other, each
    from its own first event.

    Args:
        source: Traces, or a frame of `runs` (then branches that were left are not told apart).
        ax: Axes to draw on; new ones by default.
        experiment: Only these (a name or several).
        snapshots: A frame of `snapshots`, where `source` is a frame.
        legend: Whether to explain the marks below.

    Returns:
        The axes; x in wall-seconds, a row per run.

    Raises:
        InputError: an experiment or a column that is not there.
    """
    runs = _source.rows(source, "runs", _RUNS, experiment=experiment, order="experiment, first_t, run")
    left: set[tuple[str, str]] = set()
    tried: set[tuple[str, str]] = set()
    if not _source.is_frame(source):
        columns = ("experiment", "run", "cut_t", "restores")
        snapshots = _source.rows(source, "snapshots", columns, experiment=experiment)
        spans = _source.rows(
            source, "attempt_spans", ("experiment", "run"), experiment=experiment, where="lost_how = 'discarded_branch'"
        )
        left = set(spans.drop_duplicates().itertuples(index=False, name=None))
        tried = set(
            _source.rows(source, "restores", ("experiment", "run"), experiment=experiment).itertuples(
                index=False, name=None
            )
        )
    heading = "Who restored what (wall-seconds)"
    if runs.empty:
        ax = style.new_axes(ax, 9, 2.4)
        return style.empty(ax, heading, "there is no run", xlabel="time since the first event (s)", ylabel="runs")
    many = runs["experiment"].nunique() > 1
    runs = _placed(runs, many)
    ax = style.new_axes(ax, 9, min(30.0, 1.5 + 0.34 * len(runs)))
    rows = {(row.experiment, row.run): row for row in runs.itertuples()}
    _run_lines(ax, list(rows.values()), left)
    _snapshot_marks(ax, rows, snapshots)
    _origins(ax, rows)
    longest = float((runs["last_t"] - runs["zero"]).max()) or 1.0
    low = 0.0 if many else float((runs["first_t"] - runs["zero"]).min())
    ax.set_xlim(low - (longest - low) * 0.015, longest + (longest - low) * 0.2)
    if len(runs) <= _NAMED:
        _notes(ax, rows, left, tried)
    names = [(f"{short(row.experiment, 18)} · " if many else "") + short(row.run, 18) for row in rows.values()]
    ax.set_ylim(len(runs) - 0.4, -0.7)
    style.row_names(ax, names)
    style.title(ax, heading)
    style.time_axis(ax, "time since each experiment's first event" if many else runs["axis"].iloc[0])
    style.bare(ax)
    if legend:
        style.legend_below(ax, _handles(runs, snapshots, left), columns=3)
    return ax


def _placed(runs: Any, many: bool) -> Any:
    """The runs with their row `y`, the zero of their time axis and its name."""
    runs = runs.sort_values(["experiment", "first_t", "run"], kind="stable").reset_index(drop=True)
    runs["y"] = range(len(runs))
    first = runs.groupby("experiment")["first_t"].transform("min")
    zero, name = _source.origin(float(first.iloc[0]), float(runs["last_t"].max()))
    return runs.assign(zero=first if many else zero, axis=name)


def _kept_until(rows: list[Any], left: set[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Until when a run's work lives on: its latest cut restored after its end, its end if none was, or not at all."""
    until = {(row.experiment, row.run): row.last_t for row in rows}
    ends = dict(until)
    restored: dict[tuple[str, str], float] = {}
    for row in rows:
        parent = (row.experiment, row.parent_run)
        if (
            parent in ends
            and row.first_t >= ends[parent]
            and known(row.cut_t)
            and (row.experiment, row.run) not in left
        ):
            restored[parent] = max(restored.get(parent, row.cut_t), row.cut_t)
    until.update(restored)
    until.update({(row.experiment, row.run): row.first_t for row in rows if (row.experiment, row.run) in left})
    return until


def _run_lines(ax: "Axes", rows: list[Any], left: set[tuple[str, str]]) -> None:
    from matplotlib.collections import LineCollection

    until = _kept_until(rows, left)
    whole, thin = [], []
    for row in rows:
        turn = min(max(until[row.experiment, row.run], row.first_t), row.last_t)
        if turn > row.first_t or turn == row.last_t:
            whole.append([(row.first_t - row.zero, row.y), (turn - row.zero, row.y)])
        if turn < row.last_t:
            thin.append([(turn - row.zero, row.y), (row.last_t - row.zero, row.y)])
    ax.plot(
        [row.first_t - row.zero for row in rows],
        [row.y for row in rows],
        "|",
        color=_LIVED_ON,
        markersize=6,
        linestyle="none",
        gid="run-starts",
    )
    looks = ((whole, _LIVED_ON, 6.0, "-", "kept"), (thin, _LEFT, 2.0, (0, (2.5, 1.2)), "left"))
    for segments, color, width, dashes, name in looks:
        lines = LineCollection(
            segments, colors=color, linewidths=width, linestyles=[dashes], capstyle="butt", gid=f"runs-{name}"
        )
        ax.add_collection(lines, autolim=False)


def _snapshot_marks(ax: "Axes", rows: dict[tuple[str, str], Any], snapshots: Any) -> None:
    if snapshots is None:
        return
    for restored, face, size in ((False, "white", 5.0), (True, style.ink(), 6.5)):
        marks = [
            (row.cut_t - own.zero, own.y)
            for row in snapshots.itertuples()
            if (own := rows.get((row.experiment, row.run))) is not None
            and known(row.cut_t)
            and (row.restores > 0) == restored
        ]
        if marks:
            x, y = zip(*marks, strict=True)
            ax.plot(
                x,
                y,
                "o",
                markersize=size,
                markerfacecolor=face,
                markeredgecolor=style.ink(),
                markeredgewidth=0.8,
                zorder=4,
                gid="snapshots-restored" if restored else "snapshots",
                linestyle="none",
            )


def _origins(ax: "Axes", rows: dict[tuple[str, str], Any]) -> None:
    """From the restored cut down to the row of the run that took it, and along it to its start."""
    from matplotlib.collections import LineCollection

    ways, ends = [], []
    for row in rows.values():
        parent = rows.get((row.experiment, row.parent_run))
        if parent is None or not known(row.cut_t):
            continue
        cut, start = row.cut_t - row.zero, row.first_t - row.zero
        ways.append([(cut, parent.y), (cut, row.y), (start, row.y)])
        ends.append((start, row.y))
    if ways:
        ax.add_collection(
            LineCollection(ways, colors=style.ink(), linewidths=1.0, zorder=3, gid="origins"), autolim=False
        )
        x, y = zip(*ends, strict=True)
        ax.plot(x, y, ">", color=style.ink(), markersize=5, zorder=4, linestyle="none", gid="starts")


def _notes(
    ax: "Axes", rows: dict[tuple[str, str], Any], left: set[tuple[str, str]], tried: set[tuple[str, str]]
) -> None:
    for key, row in rows.items():
        parent = rows.get((row.experiment, row.parent_run))
        if key in left:
            note = "left: all of it lost"
        elif parent is not None and row.first_t < parent.last_t:
            note = f"forked from {short(parent.run, 14)}"
        elif parent is None and key in tried:
            note = "restored what is not known"
        else:
            continue
        ax.annotate(
            note,
            (row.last_t - row.zero, row.y),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            parse_math=False,
        )


def _handles(runs: Any, snapshots: Any, left: set[tuple[str, str]]) -> list[Any]:
    from matplotlib.lines import Line2D

    def mark(label: str, **look: Any) -> Any:
        return Line2D([], [], color=style.ink(), label=label, **look)

    handles = [
        Line2D([], [], color=_LIVED_ON, linewidth=6, label="run: work that lived on"),
        Line2D([], [], color=_LEFT, linewidth=2, linestyle=(0, (2.5, 1.2)), label="after the restored cut: lost"),
    ]
    if snapshots is not None and len(snapshots):
        handles.append(mark("snapshot (its cut)", marker="o", linestyle="none", markerfacecolor="white", markersize=5))
        handles.append(mark("snapshot that was restored", marker="o", linestyle="none", markersize=6.5))
    if runs["parent_run"].notna().any():
        handles.append(mark("restored by the run below", marker=">", linewidth=1.0, markersize=5))
    return handles
