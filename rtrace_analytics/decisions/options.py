"""What a replay is asked for, checked: whatever cannot be used is one line with the way out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rtrace_analytics import views
from rtrace_analytics.decisions import recorded, time_line
from rtrace_analytics.errors import InputError
from rtrace_analytics.text import listed

if TYPE_CHECKING:
    import duckdb

GRANULARITIES = ("sibling", "prompt_group")
_SHORTEST = 1e-6


@dataclass(frozen=True)
class Settings:
    """What is replayed: intervals and lag in wall-seconds; stops None (spread evenly) or (line, position) each."""

    experiment: str
    intervals: list[float]
    lag: float
    stops: list[tuple[int, float]] | None
    granularity: str
    whole_groups: bool


def one_experiment(con: "duckdb.DuckDBPyConnection", experiment: str | None) -> str:
    """The experiment meant: the one named, or the only one. Raises `InputError`."""
    views.check_spans(con)
    there = views.experiments(con, experiment)
    if not there:
        raise InputError("there is no experiment yet: load a trace first")
    if len(there) > 1:
        raise InputError(f"{len(there)} experiments: {listed(there)}; name one")
    return there[0]


def _number(name: str, value: Any, *, least: str) -> float:
    """A finite number that is positive, or not negative. Raises `InputError`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} {value!r} is not a number of seconds") from None
    if not math.isfinite(number) or number < 0 or (number == 0 and least == "positive"):
        raise InputError(f"{name} {value!r} must be a {least} number of seconds")
    return number


def intervals_of(intervals: Sequence[float], longest: float, name: str) -> list[float]:
    """Intervals in wall-seconds, each once, none longer than `longest`. Raises `InputError`."""
    given = [intervals] if isinstance(intervals, (int, float, str)) else list(intervals)
    wanted = list(dict.fromkeys(_number("interval", value, least="positive") for value in given))
    if not wanted:
        raise InputError("no interval: give at least one, in seconds")
    for value in wanted:
        if value < _SHORTEST:
            raise InputError(f"interval {value:g} s: give {_SHORTEST:g} s or more, less than clocks tell")
        if value > longest:
            raise InputError(
                f"interval {value:g} s is longer than experiment {name!r}, {longest:g} s: give a shorter one"
            )
    return wanted


def lag_of(con: "duckdb.DuckDBPyConnection", name: str, given: float | None) -> float:
    """From cut to publication, wall-seconds: as given, or the trace's median. Raises `InputError`."""
    if given is not None:
        return _number("publish lag", given, least="not negative")
    _, _, found = recorded.snapshots(con, name)
    if found is None:
        raise InputError(f"experiment {name!r} has no snapshot that tells a publish lag: give one, 0 if there is none")
    return max(0.0, found)


def stops_of(stops: str | Sequence[float], lines: list[time_line.Line], name: str) -> list[tuple[int, float]] | None:
    """(Line, position) of each stop, None where they are spread evenly. Raises `InputError`."""
    if isinstance(stops, str):
        if stops == "uniform":
            return None
        if stops != "actual":
            raise InputError(f"stops {stops!r}: give 'uniform', 'actual' or moments in seconds")
        found = [
            (i, s) for i, line in enumerate(lines) for s in dict.fromkeys(stop.position_s for stop in line.stops())
        ]
        if not found:
            raise InputError(f"experiment {name!r} has no stop with a known cut: use stops 'uniform', or give moments")
        return found
    given = [_number("stop", value, least="not negative") for value in stops]
    if not given:
        raise InputError("no stop at all: give moments in seconds, or 'uniform'")
    at = []
    for t in given:
        there = time_line.positions(lines, t)
        if not there:
            first = min(line.stretches[0].begin_t for line in lines)
            last = max(s.begin_t + s.length_s for line in lines for s in line.stretches)
            raise InputError(f"stop {t!r} is not within experiment {name!r}, {first!r} to {last!r}")
        at += there
    return at


def costs_of(
    save_cost_s: float | None, mtbf: float | None, lines: list[time_line.Line], name: str
) -> dict[str, float] | None:
    """The columns `save_cost_s` and `mtbf_s`, wall-seconds; None without a save cost. Raises `InputError`."""
    if save_cost_s is None:
        if mtbf is not None:
            raise InputError(f"mtbf {mtbf!r} tells a cost only together with a save cost: give both")
        return None
    cost = _number("save cost", save_cost_s, least="not negative")
    if mtbf is None:
        stops = sum(len({stop.position_s for stop in line.stops()}) for line in lines)
        if not stops:
            raise InputError(f"experiment {name!r} has no stop to tell the time between stops: give mtbf, in seconds")
        mtbf = sum(line.length_s for line in lines) / stops
    return {"save_cost_s": cost, "mtbf_s": _number("mtbf", mtbf, least="positive")}


def granularities_of(con: "duckdb.DuckDBPyConnection", name: str, given: str | None) -> list[tuple[str, bool]]:
    """(granularity, whether sealed spans are saved only with their group) for each that is asked for."""
    at_once, closings = con.execute(
        "SELECT (SELECT count(*) FROM (SELECT run, end_seq FROM _named_spans WHERE experiment = $1 AND by_group "
        "AND end_kind = 'sealed' GROUP BY ALL HAVING count(*) > 1)), "
        "(SELECT count(*) FROM _named_spans WHERE experiment = $1 AND close_t IS NOT NULL)",
        [name],
    ).fetchall()[0]
    if given is None:
        return [("prompt_group" if at_once else "sibling", False)]
    if given not in (*GRANULARITIES, "both"):
        raise InputError(f"granularity {given!r}: give 'sibling', 'prompt_group' or 'both'")
    if at_once:
        raise InputError(
            f"experiment {name!r} seals {at_once:,} groups all at one moment and cannot tell when each sibling "
            f"finished: granularity {given!r} has no figure"
        )
    if given != "sibling" and not closings:
        raise InputError(f"experiment {name!r} never says that a group is sealed: granularity {given!r} has no figure")
    return [(kind, kind == "prompt_group") for kind in (GRANULARITIES if given == "both" else (given,))]
