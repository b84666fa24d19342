"""The cuts that were really taken and the stops that really came, replayed by the same rule as any others."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rtrace_analytics import database
from rtrace_analytics.decisions.time_line import Line

if TYPE_CHECKING:
    import duckdb

_MOST = 3  # differing stops that a note names


@dataclass
class RecordedStop:
    """A stop: what the replay says it cost and what was measured, attempt-seconds; `runs` restored after it."""

    runs: list[str]
    lost_s: float = 0.0
    thrown_away_s: float = 0.0
    measured_s: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether the replay gives what was measured."""
        return math.isclose(self.lost_s, self.measured_s, rel_tol=1e-9, abs_tol=1e-6)


@dataclass
class Recorded:
    """All stops of an experiment that have a place on a time line, and what restores are not among them."""

    stops: list[RecordedStop]
    unknown: int
    forks: int

    @property
    def agrees(self) -> bool | None:
        """Whether all stops agree; None where there is none."""
        return all(stop.agrees for stop in self.stops) if self.stops else None


def snapshots(con: "duckdb.DuckDBPyConnection", experiment: str) -> tuple[int, float | None, float | None]:
    """(How many were published, median wall-seconds between cuts of a run, median from cut to publication)."""
    ((count, gap, lag),) = con.execute(
        "SELECT count(*), median(gap), median(publish_lag_s) FROM (SELECT publish_lag_s, "
        "cut_t - lag(cut_t) OVER (PARTITION BY run ORDER BY cut_t) AS gap FROM snapshots WHERE experiment = ?)",
        [experiment],
    ).fetchall()
    return count, gap, lag


def run_step(con: "duckdb.DuckDBPyConnection", step: str, **parameters: Any) -> Any:
    """Run a step of `whatif.sql`; the result of its last statement."""
    return database.run_step(con, "whatif.sql", step, parameters or None)


def replay(con: "duckdb.DuckDBPyConnection", lines: Sequence[Line], experiment: str) -> Recorded:
    """Replay the stops of the trace with the cuts restored after them; each span counts at its first stop."""
    measured = dict(con.execute("SELECT run, lost_s FROM cut_time_waste WHERE experiment = ?", [experiment]).fetchall())
    stops: dict[tuple[int, float], RecordedStop] = {}
    places = []
    for number, line in enumerate(lines):
        for stop in line.stops():
            places.append((number, stop))
            there = stops.setdefault((number, stop.position_s), RecordedStop([]))
            there.runs.append(stop.run)
            there.measured_s += measured[stop.run] or 0.0
    if places:
        rows = [[number, i, stop.position_s, None, stop.cut_s] for i, (number, stop) in enumerate(places)]
        con.executemany("INSERT INTO _whatif_stops VALUES (?, ?, ?, ?, ?)", rows)
    for number in sorted({number for number, _ in places}):
        for i, lost, thrown_away in run_step(con, "recorded", line=number).fetchall():
            there = stops[number, places[i][1].position_s]
            there.lost_s += lost
            there.thrown_away_s += thrown_away
    con.execute("DELETE FROM _whatif_stops")
    placed = {stop.run for _, stop in places}
    left = {run: lost for run, lost in measured.items() if run not in placed}
    return Recorded(
        list(stops.values()), sum(lost is None for lost in left.values()), sum(x is not None for x in left.values())
    )


def note(recorded: Recorded, gap_s: float | None) -> str:
    """What a reader of the recorded row must know, in one line."""
    said = [] if gap_s is None else [f"snapshots were cut about every {gap_s:.4g} s"]
    if not recorded.stops:
        said.append("no stop with a known cut")
    differing = [stop for stop in recorded.stops if not stop.agrees]
    if differing:
        each = [
            f"before {', '.join(stop.runs)}: {stop.lost_s:.6g} s replayed, {stop.measured_s:.6g} s measured"
            for stop in sorted(differing, key=lambda stop: -abs(stop.lost_s - stop.measured_s))
        ]
        more = f" and {len(each) - _MOST} more" if len(each) > _MOST else ""
        said.append(f"{len(each)} of {len(recorded.stops)} stops differ ({'; '.join(each[:_MOST])}{more})")
    if recorded.unknown:
        said.append(f"{recorded.unknown} restores of unknown cut are left out")
    if recorded.forks:
        said.append(f"{recorded.forks} restores were forks: nothing stopped")
    return "; ".join(said)
