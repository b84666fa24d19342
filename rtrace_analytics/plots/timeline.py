"""The timeline: a bar per attempt, in colours that say what became of its seconds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rtrace_analytics.errors import InputError
from rtrace_analytics.plots import _source, bars, style
from rtrace_analytics.plots._source import known
from rtrace_analytics.text import length, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    *("experiment", "run", "group_key", "prompt_id", "generation_index", "attempt", "start_t", "end_t", "duration_s"),
    *("fate", "cut_t", "thrown_away_s", "never_saved_s", "end_is_bound", "lost_by_run"),
)
_NAMED_ROWS = 40  # more attempts than this share rows
_APART = 2000  # up to this many attempts each has a bar of its own
_RASTER = 3000  # more bars than this are drawn as an image in an SVG
_DRAWN = ("kept", "open", "dropped", "failed", "lost", "never_saved", "thrown_away")  # the lost ones on top


def plot_timeline(
    source: Any,
    *,
    ax: "Axes | None" = None,
    experiment: str | None = None,
    group: str | None = None,
    siblings: Sequence[int] | None = None,
    window: tuple[float, float] | None = None,
    legend: bool = True,
) -> "Axes":
    """Draw a bar per attempt from dispatch to end, cut, stop and restore as lines, run ids at the top.

    Up to 40 attempts have a row each, by group, sibling and number. More of them share rows: a row is then one rollout
    at a time, and of more than 2,000 what is narrower than a pixel is drawn as one bar (lost over kept).

    Args:
        source: Traces, or a frame of `attempt_spans`.
        ax: Axes to draw on; new ones by default.
        experiment: The one to show; by default the one that lost most.
        group: Only this group: its `group_key`, or where no group has that name the groups of this `prompt_id`.
        siblings: Only siblings of these indices.
        window: Only what runs within these two times, in seconds as on the axis of the whole.
        legend: Whether to explain the colours below.

    Returns:
        The axes; x is in wall-seconds, from the experiment's first event (from 0 where its moments are no dates).

    Raises:
        InputError: an experiment or group that is not there, or a window that ends before it begins.
    """
    name, of = _source.one_experiment(source, experiment)
    spans = _spans(source, name, group, siblings)
    first_t, last_t = _source.extent(source, name, spans["start_t"], spans["end_t"])
    zero, axis_name = _source.origin(first_t, last_t)
    if window is not None:
        low, high = window
        if not low < high:
            raise InputError(f"window {window} ends before it begins: give (from, to) in seconds")
        spans = spans[(spans["end_t"] >= zero + low) & (spans["start_t"] <= zero + high)].reset_index(drop=True)
    heading = "Attempts over time (wall-seconds)" + (f" · {_group_name(group, spans)}" if group is not None else "")
    heading += _source.told_of(name, of)
    if spans.empty:
        ax = style.new_axes(ax, 9, 2.4)
        said = "no attempt runs in this window" if window is not None else "no attempt was dispatched"
        return style.empty(ax, heading, said, xlabel=f"{axis_name} (s)", ylabel="attempts")
    own_rows = len(spans) <= _NAMED_ROWS
    if own_rows:
        spans, names = _by_attempt(spans)
        lanes = list(range(len(spans)))
    else:
        lanes, names = bars.shared_rows(spans), []
    rows = max(lanes) + 1
    ax = style.new_axes(ax, 9, 1.75 + (0.3 * rows if own_rows else min(4.0, 0.02 * rows + 2)))
    _window(ax, spans, zero, window)
    kinds = _bars(ax, spans, lanes, rows, zero)
    if own_rows:
        _say_lost(ax, spans, zero)
        style.row_names(ax, names)
    else:
        ax.set_ylabel("rollouts at once")
        every = style.round_step(rows / 5)
        ax.set_yticks(range(0, rows, every))
    moments = _lines(source, name, spans)
    head = _draw_lines(ax, moments, zero, rows)
    ax.set_ylim(rows - 0.4, -0.6 - head * (0.75 if own_rows else rows * 0.08))
    _run_names(ax, spans, zero, window)
    style.title(ax, heading, pad=20)
    style.time_axis(ax, axis_name)
    style.bare(ax)
    if legend:
        handles = [style.patch(style.LOOKS[kind]) for kind in style.LOOKS if kind in kinds]
        style.legend_below(ax, handles + [style.line(kind) for kind in style.LINES if moments.get(kind)])
    return ax


def _spans(source: Any, experiment: str | None, group: str | None, siblings: Sequence[int] | None) -> Any:
    where, parameters = ["true"], []
    if group is not None and not _source.is_frame(source):
        where.append("(group_key = ? OR prompt_id = ?)")
        parameters += [group, group]
    spans = _source.rows(
        source,
        "attempt_spans",
        COLUMNS,
        experiment=experiment,
        where=" AND ".join(where),
        parameters=parameters,
        order="start_t, run, group_key, generation_index",
    )
    if group is not None:
        by_key = spans[spans["group_key"] == group]
        spans = by_key if len(by_key) else spans[spans["prompt_id"] == group]
        if spans.empty:
            raise InputError(
                f"no group or prompt {group!r} was dispatched in {experiment!r}: attempt_spans has their names"
            )
    if siblings is not None:
        spans = spans[spans["generation_index"].isin(list(siblings))]
    return spans.sort_values(["start_t", "run"], kind="stable").reset_index(drop=True)


def _group_name(group: str, spans: Any) -> str:
    prompts = spans["prompt_id"].dropna().unique()
    return f"prompt {short(prompts[0])}" if len(prompts) == 1 else f"group {short(group)}"


def _by_attempt(spans: Any) -> tuple[Any, list[str]]:
    """The spans in the order of their rows, and the rows' names."""
    first = spans.groupby("group_key")["start_t"].transform("min")
    spans = (
        spans.assign(_first=first)
        .sort_values(["_first", "group_key", "generation_index", "start_t"], kind="stable")
        .reset_index(drop=True)
    )
    many_groups, many_runs = spans["group_key"].nunique() > 1, spans["run"].nunique() > 1
    names = []
    for row in spans.itertuples():
        prompt = row.prompt_id if known(row.prompt_id) else row.group_key
        parts = [f"prompt {short(prompt, 16)}"] if many_groups else []
        parts.append(f"sibling {int(row.generation_index)}" if known(row.generation_index) else "sibling ?")
        if known(row.attempt) and row.attempt > 0:
            parts.append(f"attempt {int(row.attempt)}")
        if many_runs:
            parts.append(f"run {short(row.run, 12)}")
        names.append(" · ".join(parts))
    return spans, names


def _window(ax: "Axes", spans: Any, zero: float, window: tuple[float, float] | None) -> None:
    if window is not None:
        ax.set_xlim(*window)
        return
    low, high = float(spans["start_t"].min()) - zero, float(spans["end_t"].max()) - zero
    cuts = spans["cut_t"].dropna()
    if len(cuts):
        low, high = min(low, float(cuts.min()) - zero), max(high, float(cuts.max()) - zero)
    margin = (high - low) * 0.02 or 1.0
    ax.set_xlim(0 if zero == 0 else low - margin, high + margin)


def _bars(ax: "Axes", spans: Any, lanes: list[int], rows: int, zero: float) -> set[str]:
    """Draw the bars, one collection per kind; returns the kinds there are."""
    import numpy as np
    from matplotlib.collections import PolyCollection

    low, high = ax.get_xlim()
    pixel = (high - low) / max(1.0, style.width_px(ax))
    fold = max(1, int(np.ceil(rows / max(1.0, style.height_px(ax)))))
    drawn = bars.pieces(spans)
    lane = np.asarray(lanes)[drawn["span"].to_numpy()] // fold
    apart = len(spans) <= _APART
    found = set()
    for order, kind in enumerate(_DRAWN):
        of_kind = (drawn["kind"] == kind).to_numpy()
        if not of_kind.any():
            continue
        found.add(kind)
        y, start, end = (
            lane[of_kind],
            drawn["start_t"].to_numpy()[of_kind] - zero,
            drawn["end_t"].to_numpy()[of_kind] - zero,
        )
        if not apart:
            y, start, end = bars.merge(y, start, end, pixel)
        look, half = style.LOOKS[kind], fold * (0.5 if not apart else 0.36 if rows <= _NAMED_ROWS else 0.43)
        middle = y * fold + (fold - 1) / 2
        corners = np.stack([start, middle - half, start, middle + half, end, middle + half, end, middle - half], axis=1)
        ax.add_collection(
            PolyCollection(
                list(corners.reshape(-1, 4, 2)),
                facecolors=look.face,
                edgecolors=look.edge,
                linewidths=0.7 if rows <= _NAMED_ROWS else 0.3 if apart else 0.0,
                hatch=look.hatch if len(y) <= _APART else None,
                zorder=2 + order / 10,
                rasterized=len(y) > _RASTER,
                gid=f"bars-{kind}",
                label=f"_{kind}",
            ),
            autolim=False,
        )
    return found


def _say_lost(ax: "Axes", spans: Any, zero: float) -> None:
    """Write what was thrown away on the bars that are wide enough."""
    low, high = ax.get_xlim()
    per_letter = style.letter(ax) * 8.5
    look = style.LOOKS["thrown_away"]
    for y, row in enumerate(spans.itertuples()):
        if not known(row.thrown_away_s) or not row.thrown_away_s > 0:
            continue
        left, right = row.start_t - zero, row.start_t - zero + row.thrown_away_s
        sum_ = f"thrown away: {right:.6g} - {left:.6g} = {row.thrown_away_s:.6g} s"
        texts = (
            *([sum_] if style.unit_of(high - low)[1] == "s" else []),
            f"thrown away: {length(row.thrown_away_s)}",
            length(row.thrown_away_s),
        )
        visible = min(right, high) - max(left, low)
        text = next((text for text in texts if len(text) * per_letter < visible), None)
        if text is not None:
            box = {"boxstyle": "square,pad=0.15", "facecolor": look.face, "edgecolor": "none"}
            middle = max(left, low) + visible / 2
            ax.text(
                middle, y, text, ha="center", va="center", fontsize=8.5, color="white", bbox=box, zorder=4, clip_on=True
            )


def _lines(source: Any, experiment: str | None, spans: Any) -> dict[str, list[float]]:
    """Moments of cut, stop and restore: of the restores that lost one of these spans, or restored between them."""
    if _source.is_frame(source):
        stops = (
            spans.loc[spans["lost_by_run"].notna() & spans["end_is_bound"].astype(bool)].groupby("run")["end_t"].max()
        )
        return {style.CUT: sorted(spans["cut_t"].dropna().unique()), style.STOP: sorted(stops.unique())}
    restores = _source.rows(source, "restores", ("run", "restore_t", "cut_t", "stop_t"), experiment=experiment)
    within = restores["restore_t"].between(spans["start_t"].min(), spans["end_t"].max())
    restores = restores[within | restores["run"].isin(spans["lost_by_run"].dropna())]
    found = {style.CUT: "cut_t", style.STOP: "stop_t", style.RESTORE: "restore_t"}
    return {kind: sorted(restores[column].dropna().unique()) for kind, column in found.items()}


def _draw_lines(ax: "Axes", moments: dict[str, list[float]], zero: float, rows: int) -> int:
    """Draw the vertical lines; where they are few each is named. Returns the lines of names at the top."""
    low, high = ax.get_xlim()
    inside = [(kind, t - zero) for kind, found in moments.items() for t in found if low <= t - zero <= high]
    if len(inside) > 3 or len({kind for kind, _ in inside}) < len(inside):
        for kind, x in inside:
            _line(ax, kind, x)
        return 0
    per_letter = style.letter(ax) * 8.5
    step, level, next_x = 0.75 if rows <= _NAMED_ROWS else rows * 0.08, 1, high
    for kind, x in sorted(inside, key=lambda pair: -pair[1]):  # each line ends at its name, below those to its left
        text = f"{kind} {length(x)}"
        left = kind == style.CUT and x - len(text) * per_letter > low
        if not left and x + len(text) * per_letter > next_x:
            level += 1
        next_x = x
        y = -0.45 - step * (level - 0.5)
        _line(ax, kind, x, y - step / 3, rows)
        ax.annotate(
            text,
            (x, y),
            xytext=(-4 if left else 4, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            fontsize=8.5,
        )
    return level if inside else 0


def _line(ax: "Axes", kind: str, x: float, top: float | None = None, bottom: float = 0) -> None:
    if top is None:
        ax.axvline(x, **style.line_look(kind))
    else:
        ax.plot([x, x], [top, bottom], **style.line_look(kind))


def _run_names(ax: "Axes", spans: Any, zero: float, window: tuple[float, float] | None) -> None:
    """Name the runs above the picture, each over the time it runs; those too narrow for it go unnamed."""
    low, high = ax.get_xlim()
    per_letter = style.letter(ax) * 9
    taken = low
    for run, own in sorted(spans.groupby("run"), key=lambda pair: pair[1]["start_t"].min()):
        left, right = max(low, own["start_t"].min() - zero), min(high, own["end_t"].max() - zero)
        text = f"run {short(run, 20)}"
        wide = len(text) * per_letter
        middle = min(max((left + right) / 2, low + wide / 2), high - wide / 2)
        ax.plot(
            [left, right],
            [1.012, 1.012],
            color=style.ink(),
            linewidth=2,
            clip_on=False,
            transform=ax.get_xaxis_transform(),
        )
        if middle - wide / 2 >= taken and wide < (right - left) * 2.5:
            ax.text(
                middle,
                1.025,
                text,
                ha="center",
                va="bottom",
                fontsize=9,
                transform=ax.get_xaxis_transform(),
                parse_math=False,
            )
            taken = middle + wide / 2 + per_letter
