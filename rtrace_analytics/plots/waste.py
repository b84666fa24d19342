"""What each restore threw away, and where all rollout time went: bars whose lengths are the views' figures."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rtrace_analytics.plots import _source, style
from rtrace_analytics.text import length, share, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 60  # bars in one picture
_WASTE = (
    *("experiment", "run", "parent_run", "restore_t", "cut_t"),
    *("thrown_away_s", "never_saved_s", "lost_s", "naive_s"),
)
_FATE_LOOKS = {
    "kept": style.LOOKS["kept"],
    "restart": style.LOST,
    "failed": replace(style.LOOKS["failed"], label="failed"),
    "cancelled": style.Look("cancelled", "#a3a3a3", "#5c5c5c", "xxxx"),
    "superseded": style.Look("superseded", "#f2a33a", "#9c5f00", ".."),
    "discarded": replace(style.LOOKS["dropped"], label="discarded"),
    "open": style.LOOKS["open"],
}
_OTHER = style.Look("other reasons", "#4d4d4d", "#9a9a9a", "++++")


def plot_waste(
    source: Any,
    *,
    ax: "Axes | None" = None,
    experiment: str | list[str] | None = None,
    totals: Any = None,
    legend: bool = True,
) -> "Axes":
    """Draw a bar per restore: what ran before the cut and was thrown away, and what ran after it, never saved.

    The share beside it is that of all rollout time of its experiment. The mark is `naive_s`: what would be said to be
    thrown away if every report counted. Of more than 60 restores those are shown that lost most.

    Args:
        source: Traces, or a frame of `cut_time_waste`.
        ax: Axes to draw on; new ones by default.
        experiment: Only these (a name or several).
        totals: A frame of `rollout_seconds`, for the shares where `source` is a frame.
        legend: Whether to explain the colours below.

    Returns:
        The axes; x is in attempt-seconds.

    Raises:
        InputError: an experiment or a column that is not there.
    """
    frame = _source.rows(source, "cut_time_waste", _WASTE, experiment=experiment, order="experiment, restore_t, run")
    if totals is None and not _source.is_frame(source):
        totals = _source.rows(source, "rollout_seconds", ("experiment", "seconds"))
    whole = {} if totals is None else totals.groupby("experiment")["seconds"].sum().to_dict()
    heading = "Lost per restore (attempt-seconds)"
    if frame.empty:
        ax = style.new_axes(ax, 9, 2.4)
        said = "no run restored a snapshot: nothing was lost to a restore"
        return style.empty(ax, heading, said, xlabel="attempt-seconds (s)", ylabel="restores")
    if len(frame) > _MOST:
        heading = f"Lost per restore (attempt-seconds): the {_MOST} of {len(frame):,} that lost most"
        frame = frame.loc[sorted(frame["lost_s"].fillna(0).nlargest(_MOST).index)].reset_index(drop=True)
    ax = style.new_axes(ax, 9, 1.6 + 0.32 * len(frame))
    places = list(range(len(frame)))
    thrown, unsaved = frame["thrown_away_s"].fillna(0).astype(float), frame["never_saved_s"].fillna(0).astype(float)
    _bars(ax, places, thrown, 0 * thrown, style.LOOKS["thrown_away"])
    _bars(ax, places, unsaved, thrown, style.LOOKS["never_saved"])
    known = frame["naive_s"].notna()
    (marks,) = ax.plot(
        frame.loc[known, "naive_s"],
        frame.index[known],
        "D",
        color=style.ink(),
        markerfacecolor="white",
        markersize=5.5,
        label="thrown away if every report counted",
        zorder=4,
        gid="naive",
    )
    most = max(float((thrown + unsaved).max()), float(frame["naive_s"].max(skipna=True) or 0), 0.0)
    most = most if most > 0 else 1.0
    ax.set_xlim(0, most * 1.25)
    for place, row in zip(places, frame.itertuples(), strict=True):
        if row.lost_s != row.lost_s:
            text, end = "unknown: the cut is not known", 0.0
        else:
            part = f" · {share(row.lost_s, whole[row.experiment])}" if whole.get(row.experiment) else ""
            text, end = f"{length(row.lost_s)}{part}", max(row.lost_s, row.naive_s)
        ax.annotate(text, (end, place), xytext=(7, 0), textcoords="offset points", va="center", fontsize=8.5)
    many = frame["experiment"].nunique() > 1
    style.row_names(ax, [_restore_name(row, many) for row in frame.itertuples()])
    ax.set_ylim(len(frame) - 0.4, -0.6)
    style.title(ax, heading + (" · share of its experiment's rollout time" if whole else ""))
    style.time_axis(ax, "lost, attempts added up")
    style.bare(ax)
    if legend:
        style.legend_below(
            ax, [style.patch(style.LOOKS["thrown_away"]), style.patch(style.LOOKS["never_saved"]), marks], columns=2
        )
    return ax


def _restore_name(row: Any, many: bool) -> str:
    parent = "?" if not isinstance(row.parent_run, str) else short(row.parent_run, 14)
    return (f"{short(row.experiment, 18)} · " if many else "") + f"{short(row.run, 14)} from {parent}"


def _bars(ax: "Axes", places: Any, lengths: Any, left: Any, look: style.Look) -> None:
    ax.barh(
        places,
        lengths,
        left=left,
        height=0.68,
        color=look.face,
        edgecolor=look.edge,
        hatch=look.hatch,
        linewidth=0.6,
        label=f"_{look.label}",
    )


def plot_fates(
    source: Any,
    *,
    ax: "Axes | None" = None,
    experiment: str | list[str] | None = None,
    legend: bool = True,
) -> "Axes":
    """Draw a bar per experiment, cut by fate: where every rollout second went. All parts add up to the whole bar.

    Of more than 60 experiments those are shown that lost the greatest share to restores.

    Args:
        source: Traces, or a frame of `rollout_seconds`.
        ax: Axes to draw on; new ones by default.
        experiment: Only these (a name or several).
        legend: Whether to explain the colours below.

    Returns:
        The axes; x is the share of the experiment's attempt-seconds in per cent.

    Raises:
        InputError: an experiment or a column that is not there.
    """
    columns = ("experiment", "fate", "seconds", "share")
    frame = _source.rows(source, "rollout_seconds", columns, experiment=experiment, order="experiment, fate")
    heading = "Where all rollout time went (share of attempt-seconds)"
    xlabel = "share of the experiment's attempt-seconds (%)"
    if frame.empty:
        ax = style.new_axes(ax, 9, 2.4)
        return style.empty(
            ax, heading, "no attempt was dispatched: no time went anywhere", xlabel=xlabel, ylabel="experiments"
        )
    shares = frame.pivot_table(index="experiment", columns="fate", values="share", aggfunc="sum", dropna=False).fillna(
        0.0
    )
    seconds = frame.groupby("experiment")["seconds"].sum()
    if len(shares) > _MOST:
        heading += f": the {_MOST} of {len(shares):,} experiments that lost most"
        lost = shares["restart"] if "restart" in shares else shares.sum(axis=1)
        shares = shares.loc[sorted(lost.nlargest(_MOST).index)]
    ax = style.new_axes(ax, 9, 1.75 + 0.34 * len(shares))
    left, handles, places = 0.0 * shares.iloc[:, 0].to_numpy(), [], list(range(len(shares)))
    others = sorted(set(shares.columns) - set(_FATE_LOOKS))
    for fate in (*(fate for fate in _FATE_LOOKS if fate in shares), *others):
        look = _FATE_LOOKS.get(fate, _OTHER)
        part = 100 * shares[fate].to_numpy(float)
        _bars(ax, places, part, left, look)
        if fate not in others or fate == others[0]:
            handles.append(style.patch(look))
        if fate == "restart":
            _percents(ax, left, part)
        left = left + part
    for place, name in enumerate(shares.index):
        said = length(float(seconds[name])) if seconds[name] > 0 else "no time"
        ax.annotate(
            said,
            (100 if seconds[name] > 0 else 0, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
        )
    ax.set(xlim=(0, 110), ylim=(len(shares) - 0.4, -0.6), xticks=range(0, 101, 20), xlabel=xlabel)
    style.row_names(ax, [short(name) for name in shares.index])
    style.title(ax, heading)
    style.bare(ax)
    if legend:
        style.legend_below(ax, handles, columns=4)
    return ax


def _percents(ax: "Axes", left: Any, part: Any) -> None:
    look = _FATE_LOOKS["restart"]
    for place, (start, wide) in enumerate(zip(left, part, strict=True)):
        if wide >= 5:
            box = {"boxstyle": "square,pad=0.1", "facecolor": look.face, "edgecolor": "none"}
            ax.text(
                start + wide / 2, place, f"{wide:.0f} %", ha="center", va="center", fontsize=8, color="white", bbox=box
            )
