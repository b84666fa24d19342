"""The views against the oracle, a second reading of the rules, on random traces."""

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import reckon
from random_traces import traces
from worlds import put, rows

from rtrace_analytics import database

SPAN = (
    *("run", "seq", "group_key", "prompt_id", "generation_index", "attempt", "start_t", "end_t", "duration_s"),
    *("end_kind", "end_is_bound", "fate", "lost_by_run", "lost_how", "cut_t", "thrown_away_s", "never_saved_s"),
    "never_saved_max_s",
)
PORTIONS = st.sampled_from([10, 8_000_000])  # events of families of runs whose fates are derived together
REPORT = ("run", "group_key", "generation_index", "attempt", "verdict")


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return bool(a == b)


def _assert_rows(got: list[dict], expected: list[dict], keys: Any, key: Any) -> None:
    got, expected = sorted(got, key=key), sorted(expected, key=key)
    assert [key(row) for row in got] == [key(row) for row in expected]
    for g, e in zip(got, expected, strict=True):
        differing = {k: (g[k], e[k]) for k in keys if not _same(g[k], e[k])}
        assert not differing, (key(g), "view, oracle:", differing)


def compare(con: Any, events: list[dict], others: list[dict]) -> None:
    """Two experiments whose ids are the same words, side by side: each as if it were alone."""
    con.execute("DELETE FROM events")
    for experiment, lines in (("x", events), ("y", others)):
        put(con, lines, experiment)
    for experiment, lines in (("x", events), ("y", others)):
        _compare(con, experiment, lines)
    assert rows(con, "SELECT * FROM quality WHERE \"check\" = 'conservation' AND count > 0") == []


def _compare(con: Any, experiment: str, events: list[dict]) -> None:
    def of(view: str, columns: str = "*") -> list[dict]:
        return rows(con, f"SELECT {columns} FROM {view} WHERE experiment = ?", [experiment])

    figures = reckon(events)
    restores = of("cut_time_waste")
    keys = [k for k in figures.restores[0] if k in restores[0]] if figures.restores and restores else []
    _assert_rows(restores, figures.restores, keys, lambda row: row["run"])
    spans = of("attempt_spans", "*, split_part(span_id, ':', -1)::BIGINT AS seq")
    _assert_rows(spans, figures.spans, SPAN, lambda row: (row["run"], row["seq"]))
    _assert_rows(of("restart_reports"), figures.reports, REPORT, lambda row: str([row[k] for k in REPORT[:4]]))
    seconds = {row["fate"]: row["seconds"] for row in of("rollout_seconds")}
    assert seconds.keys() == figures.seconds.keys()
    assert all(_same(float(seconds[fate]), figures.seconds[fate]) for fate in seconds)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(traces(), traces(), PORTIONS)
def test_views_equal_the_oracle(con: Any, events: list[dict], others: list[dict], portion: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "PORTION", portion)
        compare(con, events, others)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(traces(), traces(), PORTIONS)
def test_views_equal_the_oracle_on_many_traces(con: Any, events: list[dict], others: list[dict], portion: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "PORTION", portion)
        compare(con, events, others)
