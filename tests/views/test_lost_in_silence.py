"""lost_in_silence: literal lines in, literal rows out; it holds only what no later run of the line takes up."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from random_traces import traces
from worlds import put, world

DATA = Path(__file__).parents[1] / "data"


def line(t, run, event, prompt="9", index=0, attempt=0, **fields):
    ids = {"prompt_id": prompt, "generation_index": index, "attempt": attempt}
    return {"t": t, "run": run, "event": event, **ids, **fields}


HELD = [
    line(10, "a", "attempt_dispatched"),
    line(10, "a", "attempt_dispatched", index=1),
    line(30, "a", "attempt_sealed"),
    line(31, "a", "attempt_dispatched", prompt="8"),
    {"t": 36, "run": "a", "event": "snapshot_published", "step": 1, "cut_time": 35, "path": "/c/s_1"},
    {"t": 60, "run": "b", "event": "restore_started", "path": "/c/s_1"},
    line(60, "b", "attempt_abandoned", prompt="8", reason="restart"),
    line(61, "b", "attempt_dispatched", prompt="8", attempt=1),
]


def found(events):
    return world(events).execute("SELECT * FROM lost_in_silence ORDER BY ALL").fetchall()


def test_a_group_nobody_speaks_of_again():
    assert found(HELD) == [("x", "b", 60, "9", "9", 1, 1, 0, 2, 20 + 26)]


def test_a_group_given_up_openly_and_not_tried_again():
    report = line(60.5, "b", "attempt_abandoned", index=1, reason="restart")
    ((*_, reported, lost, seconds),) = found([*HELD[:-1], report, HELD[-1]])
    assert (reported, lost, seconds) == (1, 1, 26)  # the sealed one was mentioned with its group: not dropped


@pytest.mark.parametrize("event", ["attempt_dispatched", "attempt_sealed", "group_sealed", "group_discarded"])
def test_taken_up_by_the_restoring_run(event):
    assert found([*HELD, line(70, "b", event, index=1)]) == []


def test_taken_up_by_a_run_after_it():
    events = [
        *HELD,
        {"t": 72, "run": "b", "event": "snapshot_published", "step": 2, "cut_time": 71, "path": "/c/s_2"},
        {"t": 80, "run": "c", "event": "restore_started", "path": "/c/s_2"},
        line(81, "c", "attempt_abandoned", prompt="8", attempt=1, reason="restart"),
        line(82, "c", "attempt_dispatched", prompt="8", attempt=2),
    ]
    assert [row[:4] for row in found(events)] == [("x", "b", 60, "9")]  # told once, of the first that left it
    assert found([*events, line(90, "c", "attempt_dispatched", index=1, attempt=1)]) == []


def test_a_restore_that_has_not_done_anything_yet():
    assert found(HELD[:-1]) == []


def test_the_real_drops():
    lines = (DATA / "traces" / "stale-drops.jsonl").read_text().splitlines()
    con = world(map(json.loads, lines))
    dropped = con.execute(
        "SELECT sum(duration_s) FROM attempt_spans WHERE lost_how IN ('silent', 'dropped')"
    ).fetchone()
    mine = con.execute("SELECT sum(lost_s) FROM lost_in_silence WHERE reported = 0").fetchone()
    assert mine == pytest.approx(dropped)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(traces())
def test_conservation(con, events):
    con.execute("DELETE FROM events")
    put(con, events)
    wrong = con.execute("""
        SELECT l.run, l.group_key, l.lost_attempts, l.lost_s, count(s.span_id), coalesce(sum(s.duration_s), 0)
        FROM lost_in_silence l
        LEFT JOIN attempt_spans s ON s.lost_by_run = l.run AND s.group_key = l.group_key
        GROUP BY ALL
        HAVING l.lost_attempts <> count(s.span_id) OR abs(l.lost_s - coalesce(sum(s.duration_s), 0)) > 1e-9
    """).fetchall()
    assert wrong == []
    redispatched = con.execute("""
        SELECT l.run, l.group_key
        FROM lost_in_silence l JOIN attempt_spans s ON s.run = l.run AND s.group_key = l.group_key
    """).fetchall()
    assert redispatched == []
