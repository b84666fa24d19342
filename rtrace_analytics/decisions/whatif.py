"""What snapshots at another interval, or another recovery granularity, would have cost: a replay of the real spans."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rtrace_analytics.decisions import options, recorded, time_line
from rtrace_analytics.decisions.options import Settings
from rtrace_analytics.decisions.recorded import run_step
from rtrace_analytics.errors import InputError

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import pandas as pd

LONGEST = 1e12  # wall-seconds of an experiment: 30,000 years
MOMENTS = 100_000  # evenly spaced stops from which p50 and p95 are taken
COLUMNS = (
    *("experiment", "granularity", "cadence", "interval_s", "publish_lag_s", "stops", "lost_s_per_stop"),
    *("thrown_away_s", "never_saved_s", "p50", "p95", "lost_share", "snapshots", "wall_s", "mean_in_flight"),
    *("usual_gap_s", "agrees", "note"),
)
COST_COLUMNS = ("save_cost_s", "mtbf_s", "overhead_s_per_hour", "total_s_per_hour", "is_best", "young_daly_s")
Row = dict[str, Any]


def whatif_interval(
    con: "duckdb.DuckDBPyConnection",
    intervals: Sequence[float],
    *,
    experiment: str | None = None,
    stops: str | Sequence[float] = "uniform",
    publish_lag_s: float | None = None,
    save_cost_s: float | None = None,
    mtbf: float | None = None,
    granularity: str | None = None,
) -> "pd.DataFrame":
    """What stops would have cost, had snapshots been cut every so many seconds: the real spans, replayed.

    Snapshots are cut at multiples of the interval from the first event on and published `publish_lag_s` later. A stop
    at s, with c the last cut published by s (the first event, where none is), costs for every span that overlaps
    (c, s) what it has run by s, except spans that had failed, were cancelled, superseded or discarded by then. Down
    time is left out of the time line, a span cut short by a real stop counts as long as it ran, and forks are replayed
    each on its own line.

    Args:
        con: The database.
        intervals: Wall-seconds between cuts.
        experiment: Which one; may be left away where there is only one.
        stops: `uniform`: spread evenly over the trace, the means integrated exactly, p50 and p95 from 100,000 evenly
            spaced moments; `actual`: where the trace has them; or moments, in seconds as the trace has them.
        publish_lag_s: Wall-seconds from cut to publication; by default the median of the trace's own.
        save_cost_s: Wall-seconds for which a snapshot holds up all rollouts; adds the columns of cost.
        mtbf: Wall-seconds of work between stops, with `save_cost_s`; by default what the trace shows.
        granularity: `sibling`, `prompt_group` (all sealed siblings of a group not complete at the cut are lost too),
            or `both`; by default as the trace is.

    Returns:
        A row per interval (`cadence` replayed) and one for the cuts and stops of the trace (`cadence` recorded):
        `lost_s_per_stop` = `thrown_away_s` (before the cut) + `never_saved_s` (after it), attempt-seconds, means over
        the stops; `p50` and `p95` of what a stop costs; `lost_share`, what one stop costs as part of all
        attempt-seconds; `stops` behind the row (NULL: uniform); `snapshots` that were, or would have been, cut in
        `wall_s` of work. Of the recorded row `interval_s` is NULL, `agrees` says whether the replay gives back the
        measured loss, `note` where it does not, and `usual_gap_s` is the median time between cuts. With `save_cost_s`:
        `overhead_s_per_hour` and `total_s_per_hour` = overhead + what stops every `mtbf_s` cost, attempt-seconds per
        wall-hour; `is_best`, the interval with the least total; `young_daly_s` = sqrt(2 save_cost_s mtbf_s), Young's
        first-order optimum, to which Daly's comes down where saving takes far less than the time between stops.

    Raises:
        InputError: an interval, lag, stop or name that cannot be used, or a trace that cannot tell.
    """
    import pandas as pd

    name = options.one_experiment(con, experiment)
    lines = time_line.read(con, name)
    longest = max((line.length_s for line in lines), default=0.0)
    if longest <= 0:
        raise InputError(f"experiment {name!r} has no time in it: nothing to replay")
    if not longest < LONGEST:
        raise InputError(f"experiment {name!r} lasts {longest:g} s: no replay of clocks that cannot be right")
    wanted = options.intervals_of(intervals, longest, name)
    lag = options.lag_of(con, name, publish_lag_s)
    at = options.stops_of(stops, lines, name)
    costs = options.costs_of(save_cost_s, mtbf, lines, name)
    rows: list[Row] = []
    for kind, whole_groups in options.granularities_of(con, name, granularity):
        settings = Settings(name, wanted, lag, at, kind, whole_groups)
        with _tables(con, lines, settings):
            rows += _with_costs(_replay(con, lines, settings), costs)
    frame = pd.DataFrame(rows, columns=[*COLUMNS, *(COST_COLUMNS if costs else ())])
    types = {"stops": "Int64", "snapshots": "Int64", "agrees": "boolean", "is_best": "boolean"}
    return frame.astype({column: kind for column, kind in types.items() if column in frame})


@contextmanager
def _tables(con: "duckdb.DuckDBPyConnection", lines: list[time_line.Line], settings: Settings) -> Iterator[None]:
    """Temporary tables of the time lines and the spans on them; gone afterwards."""
    try:
        run_step(con, "tables")
        con.executemany(
            "INSERT INTO _whatif_runs VALUES (?, ?, ?, ?, ?, ?)",
            [
                [s.run.run, i, place, s.start_s, s.begin_t, s.length_s]
                for i, line in enumerate(lines)
                for place, s in enumerate(line.stretches)
            ],
        )
        run_step(con, "spans_of_groups" if settings.whole_groups else "spans", experiment=settings.experiment)
        yield
    finally:
        run_step(con, "drop")


def _replay(con: "duckdb.DuckDBPyConnection", lines: list[time_line.Line], settings: Settings) -> list[Row]:
    length = sum(line.length_s for line in lines)
    seconds = con.execute("SELECT coalesce(sum(b - a), 0) FROM _whatif_spans").fetchall()[0][0]
    same: Row = {"experiment": settings.experiment, "granularity": settings.granularity}
    same |= {"wall_s": length, "mean_in_flight": seconds / length}
    figures = _uniform(con, lines, settings) if settings.stops is None else _at_stops(con, settings)
    rows: list[Row] = []
    for interval in settings.intervals:
        row = same | {"cadence": "replayed", "interval_s": interval, "publish_lag_s": settings.lag}
        row |= {"stops": None if settings.stops is None else len(settings.stops)}
        row |= {"snapshots": sum(math.floor(line.length_s / interval) for line in lines)}
        rows.append(row | figures[interval])
    rows.append(same | {"cadence": "recorded"} | _recorded(con, lines, settings))
    for row in rows:
        lost = row["lost_s_per_stop"]
        row["lost_share"] = lost / seconds if lost is not None and seconds else None
    return rows


def _uniform(con: "duckdb.DuckDBPyConnection", lines: list[time_line.Line], settings: Settings) -> dict[float, Row]:
    length = sum(line.length_s for line in lines)
    asked = {"intervals": settings.intervals, "lag": settings.lag}
    found = run_step(con, "integrals", **asked).fetchall()
    extra = dict(run_step(con, "integrals_of_groups", **asked).fetchall()) if settings.whole_groups else {}
    means = {
        d: ((lost + extra.get(d, 0.0)) / length, (thrown_away + extra.get(d, 0.0)) / length)
        for d, lost, thrown_away in found
    }
    costs = _costs(con, lines, settings)
    return {d: _figures(*means.get(d, (0.0, 0.0)), costs[d]) for d in settings.intervals}


def _figures(lost: float, thrown_away: float, costs: "np.ndarray") -> Row:
    """Means, and the quantiles of what each stop costs."""
    import numpy as np

    p50, p95 = map(float, np.quantile(costs, [0.5, 0.95]))
    parts = {"thrown_away_s": thrown_away, "never_saved_s": max(0.0, lost - thrown_away)}
    return {"lost_s_per_stop": lost, **parts, "p50": p50, "p95": p95}


def _costs(
    con: "duckdb.DuckDBPyConnection", lines: list[time_line.Line], settings: Settings
) -> dict[float, "np.ndarray"]:
    """What a stop costs, per interval, at each of an even grid of stops.

    A stop at s costs what all spans begun by s would have cost without any snapshot (which is the same for all
    intervals), less what the last cut had saved: a sum over spans in the order in which cuts save them. The look-up of
    many cuts in one sorted column is numpy's; as an ASOF join it took three times as long.
    """
    import numpy as np

    h = sum(line.length_s for line in lines) / MOMENTS
    costs: dict[float, list[Any]] = {d: [] for d in settings.intervals}
    for number, line in enumerate(lines):
        moments = (np.arange(round(line.length_s / h)) + 0.5) * h
        if not len(moments):
            continue
        unsaved = _unsaved(con, number, moments, h)
        ends = run_step(con, "ends", line=number).fetchnumpy()
        saved = np.concatenate([[0.0], np.cumsum(ends["dur"])])
        for d in settings.intervals:
            cuts = np.maximum(0.0, np.floor((moments - settings.lag) / d) * d)
            by_cut = saved[np.searchsorted(ends["saved_s"], cuts, side="right")]
            costs[d].append(np.maximum(0.0, unsaved - by_cut))
    return {d: np.concatenate(found) for d, found in costs.items()}


def _unsaved(con: "duckdb.DuckDBPyConnection", line: int, moments: "np.ndarray", h: float) -> "np.ndarray":
    """What a stop at each moment would cost had no cut ever saved anything, attempt-seconds."""
    import numpy as np

    levels = run_step(con, "levels", line=line, h=h).fetchnumpy()
    if not len(levels["k"]):
        return np.zeros(len(moments))
    at = np.searchsorted(levels["k"], np.arange(len(moments)), side="right") - 1
    running, started, ended = (np.where(at < 0, 0.0, levels[name][at]) for name in ("running", "started", "ended"))
    unsaved: np.ndarray = moments * running.astype(float) - started + ended
    return unsaved


def _at_stops(con: "duckdb.DuckDBPyConnection", settings: Settings) -> dict[float, Row]:
    import numpy as np

    assert settings.stops is not None
    stops = [[line, i, s, d, None] for i, (line, s) in enumerate(settings.stops) for d in settings.intervals]
    con.executemany("INSERT INTO _whatif_stops VALUES (?, ?, ?, ?, ?)", stops)
    found = []
    for line in sorted({line for line, _ in settings.stops}):
        found += run_step(con, "moments", line=line, lag=settings.lag).fetchall()
    con.execute("DELETE FROM _whatif_stops")
    figures = {}
    for d in settings.intervals:
        lost, thrown_away = np.array([(row[2], row[3]) for row in found if row[1] == d]).T
        figures[d] = _figures(float(lost.mean()), float(thrown_away.mean()), lost)
    return figures


def _recorded(con: "duckdb.DuckDBPyConnection", lines: list[time_line.Line], settings: Settings) -> Row:
    """The row of the cuts and stops of the trace, held against what was measured."""
    import numpy as np

    restores = recorded.replay(con, lines, settings.experiment)
    snapshots, gap, lag = recorded.snapshots(con, settings.experiment)
    note = recorded.note(restores, gap)
    row: Row = {"interval_s": None, "publish_lag_s": lag, "snapshots": snapshots}
    row |= {"stops": len(restores.stops), "usual_gap_s": gap, "agrees": restores.agrees, "note": note}
    if not restores.stops:
        return row | dict.fromkeys(("lost_s_per_stop", "thrown_away_s", "never_saved_s", "p50", "p95"))
    lost = np.array([stop.lost_s for stop in restores.stops])
    thrown_away = float(np.mean([stop.thrown_away_s for stop in restores.stops]))
    return row | _figures(float(lost.mean()), thrown_away, lost)


def _with_costs(rows: list[Row], costs: Row | None) -> list[Row]:
    """Adds overhead and total per hour, the best interval and Young/Daly's."""
    if costs is None:
        return rows
    cost, mtbf = costs["save_cost_s"], costs["mtbf_s"]
    for row in rows:
        lost = row["lost_s_per_stop"]
        per_hour = 3600 / row["interval_s"] if row["interval_s"] else row["snapshots"] * 3600 / row["wall_s"]
        row |= costs
        row["overhead_s_per_hour"] = per_hour * cost * row["mean_in_flight"]
        row["total_s_per_hour"] = None if lost is None else row["overhead_s_per_hour"] + lost * 3600 / mtbf
        row["young_daly_s"] = math.sqrt(2 * cost * mtbf)
        row["is_best"] = False
    best = min((row for row in rows if row["interval_s"] is not None), key=lambda row: row["total_s_per_hour"])
    best["is_best"] = True
    return rows
