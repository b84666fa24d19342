"""Groups of experiments side by side: each experiment's figure, the mean of its group and its interval."""

from typing import TYPE_CHECKING, Any

from rtrace_analytics.compare import METRICS, compare, group_means
from rtrace_analytics.errors import InputError
from rtrace_analytics.plots import _source, style
from rtrace_analytics.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 40


def plot_compare(
    source: Any,
    by: str = "experiment",
    metric: str = "lost_s_per_restore",
    *,
    ax: "Axes | None" = None,
    legend: bool = True,
) -> "Axes":
    """Draw a mark per experiment over its label, and per label the mean with its bootstrap 95 % interval.

    Below each label stands how many experiments and restores are behind it. Of more than 40 labels the first 40 are
    drawn.

    Args:
        source: Traces, or a result of `compare`.
        by: Key of a label, or `experiment`.
        metric: As in `compare`.
        ax: Axes to draw on; new ones by default.
        legend: Whether to explain the marks below.

    Returns:
        The axes; y is the metric, in its unit.

    Raises:
        InputError: a metric or label that is not there, or an experiment without the label.
    """
    if metric not in METRICS:
        raise InputError(f"no metric {metric!r}: there are {', '.join(METRICS)}")
    if _source.is_frame(source):
        frame = source
        columns = ("experiment", by, metric, "known_restores", "group_mean", "group_low", "group_high")
        missing = [name for name in columns if name not in frame]
        if missing:
            raise InputError(
                f"the frame has no column {missing[0]!r}: give a result of compare(by={by!r}), or the traces"
            )
        wanted = ("group_experiments", "group_restores", "group_mean", "group_low", "group_high")
        groups = frame.drop_duplicates(by).sort_values(by)[[by, *wanted]].reset_index(drop=True)
    else:
        frame = compare(source, by, metric)
        groups = group_means(frame, by, metric)
    heading = f"{METRICS[metric][0].upper()}{METRICS[metric][1:]}, by {short(by)}"
    ax = style.new_axes(ax, 9, 4.2 if len(groups) else 2.4)
    if groups.empty:
        return style.empty(ax, heading, "there is no experiment", xlabel=short(by), ylabel=METRICS[metric])
    if len(groups) > _MOST:
        heading += f": the first {_MOST} of {len(groups):,}"
        groups = groups.head(_MOST)
    if groups["group_mean"].isna().all():
        said = "no restore of known cut: no experiment has this figure"
        return style.empty(ax, heading, said, xlabel=short(by), ylabel=METRICS[metric])
    scale = 100.0 if metric == "lost_share" else 1.0
    handles = _experiments(ax, frame, groups, by, metric, scale)
    handles = [] if by == "experiment" else handles + _means(ax, groups, scale)
    _names(ax, groups, by)
    ax.set_xlim(-0.6, len(groups) - 0.4)
    ax.set_ylim(bottom=0)
    if metric == "lost_share":
        ax.set_ylabel("share lost (%)")
    else:
        style.time_axis(ax, METRICS[metric].replace("attempt-seconds ", ""), which="y")
    style.title(ax, heading)
    style.bare(ax)
    if legend:
        longest = max(len(label.get_text()) for label in ax.get_xticklabels())
        style.legend_below(ax, handles, under=0.65 + 0.04 * longest if _slanted(groups, by) else 0.85)
    return ax


def _experiments(ax: "Axes", frame: Any, groups: Any, by: str, metric: str, scale: float) -> list[Any]:
    x, y = [], []
    for place, value in enumerate(groups[by]):
        own = frame.loc[(frame[by] == value) & frame[metric].notna(), metric].astype(float).to_numpy() * scale
        spread = [0.0] if len(own) == 1 else [0.3 * (i / (len(own) - 1) - 0.5) for i in range(len(own))]
        x += [place + shift for shift in spread]
        y += own.tolist()
    (marks,) = ax.plot(
        x,
        y,
        "o",
        color=style.LOOKS["kept"].edge,
        markeredgecolor="#4f81ad",
        markersize=5,
        linestyle="none",
        label="one experiment",
        gid="experiments",
    )
    return [marks] if len(y) else []


def _means(ax: "Axes", groups: Any, scale: float) -> list[Any]:
    known = groups[groups["group_mean"].notna()]
    mean = known["group_mean"].to_numpy(float) * scale
    (marks,) = ax.plot(
        known.index,
        mean,
        "D",
        color=style.ink(),
        markersize=7,
        linestyle="none",
        label="mean of the group",
        gid="means",
        zorder=4,
    )
    sure = known[known["group_low"].notna()]
    bars = [marks]
    if len(sure):
        ax.vlines(
            sure.index,
            sure["group_low"].to_numpy(float) * scale,
            sure["group_high"].to_numpy(float) * scale,
            color=style.ink(),
            linewidth=2,
            zorder=3,
            gid="intervals",
        )
        (stroke,) = ax.plot([], [], color=style.ink(), linewidth=2, label="bootstrap 95 % interval of the mean")
        bars.append(stroke)
    return bars


def _slanted(groups: Any, by: str) -> bool:
    names = [short(value, 22) for value in groups[by]]
    return sum(map(len, names)) > 90 or len(names) > 9


def _names(ax: "Axes", groups: Any, by: str) -> None:
    slanted = _slanted(groups, by)
    names = []
    for row in groups.itertuples(index=False):
        own = row[0]
        name = f"{own:g}" if isinstance(own, float) else short(own, 22)
        counts = f"{row.group_experiments} exp., {row.group_restores} restores"
        if by == "experiment":
            counts = f"{row.group_restores} restore{'' if row.group_restores == 1 else 's'}"
        names.append(f"{name} ({counts})" if slanted else f"{name}\n{counts}")
    turn: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    ax.set_xticks(range(len(names)), labels=names, parse_math=False, fontsize=8.5, **turn)
    ax.set_xlabel(short(by), parse_math=False)
