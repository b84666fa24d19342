"""lag: literal lines in, literal rows out; the parts add up to what the restore lost."""

import pytest
from hypothesis import HealthCheck, given, settings
from random_traces import traces
from worlds import put, world

COLUMNS = (
    "run, stop_t, cut_t, newest_published_cut_t, newest_cut_t, due_cut_t, lost_s, older_s, unpublished_s, rest_s, due_s"
)


def line(t, run, event, prompt, **fields):
    return {"t": t, "run": run, "event": event, "prompt_id": prompt, "generation_index": 0, "attempt": 0, **fields}


def cut(t, run, step, cut_time):
    return {
        "t": t,
        "run": run,
        "event": "snapshot_published",
        "step": step,
        "cut_time": cut_time,
        "path": f"/c/s_{step}",
    }


def events(restored, *more):
    return [
        line(20, "a", "attempt_dispatched", "7"),  # sealed between the two cuts
        line(30, "a", "attempt_dispatched", "8"),  # still running at the stop
        line(35, "a", "attempt_dispatched", "9"),  # sealed after both
        cut(42, "a", 1, 40),
        line(60, "a", "attempt_sealed", "7"),
        {"t": 60, "run": "a", "event": "group_sealed", "prompt_id": "7"},
        *more,
        line(75, "a", "attempt_sealed", "9"),
        {"t": 90, "run": "a", "event": "weights_synced", "weight_version": 1},
        {"t": 100, "run": "b", "event": "restore_started", "path": f"/c/s_{restored}"},
        {"t": 101, "run": "b", "event": "restore_finished"},
    ]


def found(lines):
    return world(lines).execute(f"SELECT {COLUMNS} FROM lag ORDER BY ALL").fetchall()


def test_an_older_one_was_restored():
    assert found(events(1, cut(71, "a", 2, 70))) == [("b", 90, 40, 70, 70, None, 40 + 60 + 40, 40, 0, 100, 0)]


def test_the_newest_was_restored():
    assert found(events(2, cut(71, "a", 2, 70))) == [("b", 90, 70, 70, 70, None, 60 + 40, 0, 0, 100, 0)]


def test_cut_but_published_only_after_the_restore_started():
    late = events(1)
    late.insert(-2, cut(105, "a", 2, 70))  # the old process goes down while the new one restores
    late.append(line(110, "b", "attempt_dispatched", "10"))
    (row,) = found(late)
    assert row[1] == 105
    assert row[3:5] == (40, 70)
    assert row[6:10] == (40 + 75 + 40, 0, 40, 75 + 40)


def test_one_more_was_due_before_the_stop():
    more = [cut(52, "a", 2, 50), cut(62, "a", 3, 61)]
    (row,) = found(events(3, *more))
    assert row[2:6] == (61, 61, 61, 71.5)  # gaps of 10 and 11 s: the next was due 10.5 s after the last
    assert row[6:] == (60 + 40, 0, 0, 100, 0)
    lines = [
        event | {"t": 71} if event["event"] == "attempt_sealed" and event["t"] == 75 else event
        for event in events(3, *more)
    ]
    assert found(lines)[0][-1] == 36  # sealed at 71, by the time it was due


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(traces())
def test_conservation(con, events):
    con.execute("DELETE FROM events")
    put(con, events)
    for lost, older, unpublished, rest, due, waste in con.execute("""
        SELECT g.lost_s, older_s, unpublished_s, rest_s, due_s, w.lost_s
        FROM lag g FULL JOIN (FROM cut_time_waste WHERE cut_t IS NOT NULL) w ON g.run = w.run
    """).fetchall():
        assert lost == pytest.approx(waste or 0)
        assert older + unpublished + rest == pytest.approx(lost)
        assert min(older, unpublished, due) >= 0
        assert due <= rest + 1e-9
