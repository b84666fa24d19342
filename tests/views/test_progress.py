"""progress: literal lines in, literal rows out; the net of a run is its history's seals and its own."""

from hypothesis import HealthCheck, given, settings
from random_traces import traces
from worlds import put, world


def seal(t, run, prompt):
    return {"t": t, "run": run, "event": "group_sealed", "prompt_id": prompt}


def found(events):
    return world(events).execute("SELECT * FROM progress ORDER BY t, run, event").fetchall()


EVENTS = [
    seal(10, "a", "1"),
    seal(20, "a", "2"),
    seal(20, "a", "3"),
    {"t": 32, "run": "a", "event": "snapshot_published", "step": 1, "cut_time": 30, "path": "/c/s_1"},
    seal(40, "a", "4"),
    seal(50, "a", "5"),
    {"t": 60, "run": "b", "event": "restore_started", "path": "/c/s_1"},
    seal(70, "b", "4"),
]


def test_sealed_and_net():
    assert found(EVENTS) == [
        ("x", "a", 10, "group_sealed", 1, 1, 1, 0),
        ("x", "a", 20, "group_sealed", 2, 3, 3, 0),
        ("x", "a", 40, "group_sealed", 1, 4, 4, 0),
        ("x", "a", 50, "group_sealed", 1, 5, 5, 0),
        ("x", "b", 60, "restore", 0, 5, 3, 2),
        ("x", "b", 70, "group_sealed", 1, 6, 4, 0),
    ]


def test_the_same_snapshot_again_rolls_back_what_came_of_it():
    again = [*EVENTS, {"t": 80, "run": "c", "event": "restore_started", "path": "/c/s_1"}]
    # its parent is a, which had two more; that b's one is gone too shows in the net
    assert found(again)[-1] == ("x", "c", 80, "restore", 0, 6, 3, 2)


def test_an_unknown_cut_leaves_the_net_unknown():
    events = [{"t": 5, "run": "b", "event": "restore_started", "path": "/c/step_9"}, seal(7, "b", "1")]
    assert found(events) == [
        ("x", "b", 5, "restore", 0, 0, None, None),
        ("x", "b", 7, "group_sealed", 1, 1, None, 0),
    ]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(traces())
def test_conservation(con, events):
    con.execute("DELETE FROM events")
    put(con, events)
    seals = con.execute("SELECT count(*) FROM events WHERE event = 'group_sealed'").fetchone()
    assert con.execute("SELECT coalesce(sum(seals), 0)::BIGINT FROM progress").fetchone() == seals
    assert con.execute("SELECT coalesce(max(sealed), 0) FROM progress").fetchone() == seals
    wrong = con.execute("""
        WITH history AS (
            SELECT run, run AS ancestor, 'infinity'::DOUBLE AS upto FROM _runs
            UNION ALL SELECT run, ancestor, upto FROM _history
        ), stood AS (
            SELECT h.run, count(*) AS seals FROM history h JOIN events e ON e.run = h.ancestor AND e.t <= h.upto
            WHERE e.event = 'group_sealed' GROUP BY h.run
        ), last AS (
            SELECT run, arg_max(net, t) AS net FROM progress WHERE event = 'group_sealed' GROUP BY run
        )
        SELECT l.run, l.net, s.seals FROM last l JOIN stood s USING (run)
        WHERE l.net <> s.seals
    """).fetchall()
    assert wrong == []
