"""staleness: literal lines in, literal rows out; a row for every sealed dispatch."""

from hypothesis import HealthCheck, given, settings
from random_traces import traces
from worlds import put, world


def line(t, event, prompt="7", run="a", **fields):
    return {"t": t, "run": run, "event": event, "prompt_id": prompt, "generation_index": 0, "attempt": 0, **fields}


def sync(t, version, run="a"):
    return {"t": t, "run": run, "event": "weights_synced", "weight_version": version}


def found(events):
    columns = "span_id, start_t, sealed_t, dispatch_version, seal_version, versions"
    return world(events).execute(f"SELECT {columns} FROM staleness ORDER BY start_t").fetchall()


def test_versions_of_the_lines_or_of_the_last_sync():
    events = [
        line(1, "attempt_dispatched"),  # before any sync: not known
        sync(2, 3),
        line(3, "attempt_dispatched", "8"),
        line(4, "attempt_dispatched", "9", weight_version=2),  # the line's own word counts
        line(5, "attempt_sealed"),
        sync(6, 4),
        sync(7, 5),
        line(8, "attempt_sealed", "8"),
        line(9, "attempt_sealed", "9", weight_version=6),
        line(10, "attempt_dispatched", "10"),  # never sealed
    ]
    assert found(events) == [
        ("a:0", 1, 5, None, 3, None),
        ("a:2", 3, 8, 3, 5, 2),
        ("a:3", 4, 9, 2, 6, 4),
    ]


def test_syncs_of_another_run_do_not_count_and_order_is_that_of_lines():
    events = [
        sync(1, 7, run="b"),
        line(5, "attempt_dispatched"),
        sync(4, 1),  # the clock stepped back: still after the dispatch
        line(6, "attempt_sealed"),
    ]
    assert found(events) == [("a:1", 5, 6, None, 1, None)]


def test_a_group_seal_seals_too():
    events = [
        sync(0, 1),
        line(1, "attempt_dispatched"),
        sync(2, 2),
        {"t": 3, "run": "a", "event": "group_sealed", "prompt_id": "7"},
    ]
    assert found(events) == [("a:1", 1, 3, 1, 2, 1)]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(traces())
def test_conservation(con, events):
    con.execute("DELETE FROM events")
    put(con, events)
    mine = con.execute("SELECT count(*), count(DISTINCT span_id) FROM staleness").fetchone()
    sealed = con.execute("SELECT count(*) FROM attempt_spans WHERE end_kind = 'sealed'").fetchone()
    assert mine == sealed * 2
