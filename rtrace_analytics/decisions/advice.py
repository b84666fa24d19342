"""Advice with its evidence: at most three sentences, none without the stops behind it, none where they are too few."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rtrace_analytics.decisions import recorded
from rtrace_analytics.decisions.options import one_experiment
from rtrace_analytics.decisions.whatif import whatif_interval
from rtrace_analytics.errors import InputError
from rtrace_analytics.text import length

if TYPE_CHECKING:
    import duckdb

LEAST_STOPS = 3
_WORTH = 0.02  # part of the loss that a change must save to be worth a sentence


def advice(
    con: "duckdb.DuckDBPyConnection",
    *,
    experiment: str | None = None,
    intervals: Sequence[float] | None = None,
    publish_lag_s: float | None = None,
    save_cost_s: float | None = None,
) -> list[str]:
    """At most three sentences on what would have saved rollout time, each with the number of stops it rests on.

    The stops of the trace are replayed with other intervals (those given; by default parts and multiples of the
    interval seen) and held against a replay with the cuts really taken. With `save_cost_s` the best is what saves most
    after the time of saving is paid, else the one that saves most, and the snapshots it takes are told. Empty where the
    trace has fewer than three stops with a known cut, or nothing would have saved two parts in a hundred.

    Raises:
        InputError: as `whatif_interval`.
    """
    name = one_experiment(con, experiment)
    said = [
        _on_interval(con, name, intervals, publish_lag_s, save_cost_s),
        _on_older(con, name),
        _on_silence(con, name),
    ]
    return [sentence for sentence in said if sentence]


def _stops(con: "duckdb.DuckDBPyConnection", name: str) -> int:
    """Restores of known cut."""
    found = con.execute("SELECT count(*) FROM _restores WHERE experiment = ? AND parent_run IS NOT NULL", [name])
    return int(found.fetchall()[0][0])


def _on_interval(
    con: "duckdb.DuckDBPyConnection",
    name: str,
    intervals: Sequence[float] | None,
    publish_lag_s: float | None,
    save_cost_s: float | None,
) -> str | None:
    if _stops(con, name) < LEAST_STOPS:
        return None
    _, gap, _ = recorded.snapshots(con, name)
    if not gap:
        return None
    tried = [gap / 4, gap / 2, gap * 2, gap * 4] if intervals is None else list(intervals)
    if intervals is None and save_cost_s is None:
        tried = [gap / 2]
    try:
        frame = whatif_interval(con, tried, experiment=name, stops="actual", publish_lag_s=publish_lag_s)
    except InputError:
        if intervals is not None:
            raise
        return None  # stops without a place on a time line, or an interval as long as the trace
    rows = frame.to_dict("records")
    seen, stops = rows.pop(), int(rows[0]["stops"])
    if stops < LEAST_STOPS:
        return None

    def net(row: dict[Any, Any]) -> float:
        """Attempt-seconds won over the stops, after the saving is paid."""
        paid = (row["snapshots"] - seen["snapshots"]) * (save_cost_s or 0.0) * row["mean_in_flight"]
        return float((seen["lost_s_per_stop"] - row["lost_s_per_stop"]) * stops - paid)

    best = max(rows, key=net)
    saved = float(seen["lost_s_per_stop"] - best["lost_s_per_stop"]) * stops
    more = int(best["snapshots"] - seen["snapshots"])
    if net(best) < _WORTH * seen["lost_s_per_stop"] * stops or (saved <= 0 and save_cost_s is None):
        return None
    return _sentence(best["interval_s"], gap, saved, stops, more, save_cost_s)


def _sentence(interval: float, gap: float, saved: float, stops: int, more: int, save_cost_s: float | None) -> str:
    won = f"saved {length(saved)}" if saved >= 0 else f"cost {length(-saved)} more"
    paid = f"{abs(more)} snapshots {'more' if more >= 0 else 'fewer'}"
    if save_cost_s:
        paid = f"{length(abs(more) * save_cost_s)} {'of' if more >= 0 else 'less'} saving ({paid})"
    joint = "for" if more >= 0 or saved < 0 else "with"
    return (
        f"Snapshots every {length(interval)} instead of about {length(gap)} would have {won} of rollout time over the "
        f"{stops} stops seen, {joint} {paid}."
    )


def _on_older(con: "duckdb.DuckDBPyConnection", name: str) -> str | None:
    stops, older, cost = con.execute(
        "SELECT count(*), count(*) FILTER (older_s > 0), sum(older_s) FROM lag WHERE experiment = ?", [name]
    ).fetchall()[0]
    if stops < LEAST_STOPS or not older:
        return None
    return (
        f"At {older} of {stops} stops a snapshot was restored that was older than the newest one published: "
        f"{length(cost)} of finished rollouts went with it."
    )


def _on_silence(con: "duckdb.DuckDBPyConnection", name: str) -> str | None:
    restores, groups, cost = con.execute(
        "SELECT count(DISTINCT run), count(*), sum(lost_s) FROM lost_in_silence WHERE experiment = ? AND reported = 0 "
        "AND lost_attempts > 0",
        [name],
    ).fetchall()[0]
    stops = _stops(con, name)
    if stops < LEAST_STOPS or not groups:
        return None
    return (
        f"After {restores} of {stops} stops {groups} groups that the restored snapshot held were never taken up again, "
        f"in silence: {length(cost)} of rollout time."
    )
