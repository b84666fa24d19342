"""repeat_losers: literal lines in, literal rows out; over all prompts it is what restores cost."""

import pytest
from hypothesis import HealthCheck, given, settings
from random_traces import traces
from worlds import put, world


def line(t, run, event, prompt="7", attempt=0, **fields):
    return {
        "t": t,
        "run": run,
        "event": event,
        "prompt_id": prompt,
        "generation_index": 0,
        "attempt": attempt,
        **fields,
    }


def test_a_prompt_lost_twice_and_one_lost_once():
    events = [
        line(12, "a", "attempt_dispatched"),
        line(38, "a", "attempt_dispatched", prompt="8"),
        {"t": 43, "run": "a", "event": "snapshot_published", "step": 1, "cut_time": 40, "path": "/c/s_1"},
        {"t": 60, "run": "b", "event": "restore_started", "path": "/c/s_1"},
        line(60, "b", "attempt_abandoned", reason="restart"),
        line(60, "b", "attempt_abandoned", prompt="8", reason="restart"),
        line(62, "b", "attempt_dispatched", prompt="8", attempt=1),
        line(63, "b", "attempt_dispatched", attempt=1),
        line(64, "b", "attempt_sealed", prompt="8", attempt=1),
        {"t": 65, "run": "b", "event": "group_sealed", "prompt_id": "8"},
        {"t": 70, "run": "b", "event": "snapshot_published", "step": 2, "cut_time": 68, "path": "/c/s_2"},
        {"t": 80, "run": "c", "event": "restore_started", "path": "/c/s_2"},
        line(80, "c", "attempt_abandoned", attempt=1, reason="restart"),
        line(81, "c", "attempt_dispatched", attempt=2),
        line(90, "c", "attempt_sealed", attempt=2),
    ]
    found = world(events).execute("SELECT * FROM repeat_losers ORDER BY prompt_id").fetchall()
    assert found == [
        ("x", "7", 2, 2, 31 + 7, 28 + 5, 3 + 2, 9, "b", "c"),
        ("x", "8", 1, 1, 5, 2, 3, 2, "b", "b"),
    ]


def test_nothing_lost_no_row():
    events = [line(1, "a", "attempt_dispatched"), line(2, "a", "attempt_abandoned", reason="failed")]
    assert world(events).execute("SELECT count(*) FROM repeat_losers").fetchone() == (0,)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(traces())
def test_conservation(con, events):
    con.execute("DELETE FROM events")
    put(con, events)
    mine = con.execute(
        "SELECT coalesce(sum(lost_attempts), 0)::BIGINT, coalesce(sum(lost_s), 0) FROM repeat_losers"
    ).fetchone()
    restart = con.execute(
        "SELECT coalesce(sum(spans), 0)::BIGINT, coalesce(sum(seconds), 0) FROM rollout_seconds WHERE fate = 'restart'"
    ).fetchone()
    assert mine == pytest.approx(restart)
    parts = con.execute(
        "SELECT coalesce(sum(thrown_away_s), 0), coalesce(sum(never_saved_s), 0) FROM repeat_losers"
    ).fetchone()
    waste = con.execute(
        "SELECT coalesce(sum(thrown_away_s), 0), coalesce(sum(never_saved_s), 0) FROM cut_time_waste"
    ).fetchone()
    assert parts == pytest.approx(waste)
