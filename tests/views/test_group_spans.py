"""group_spans: literal lines in, literal rows out; every dispatch is in one group span."""

import pytest
from hypothesis import HealthCheck, given, settings
from random_traces import traces
from worlds import put, rows, world

QUERY = """
    SELECT group_key, occurrence, first_dispatch_t, sealed_t, duration_s, siblings, sealed_siblings, attempts,
           lost_attempts, attempt_s, straggler_s, straggler, seals
    FROM group_spans ORDER BY group_key, occurrence
"""


def line(t, run, event, index=None, attempt=0, prompt="7", **fields):
    ids = {} if index is None else {"generation_index": index, "attempt": attempt}
    return {"t": t, "run": run, "event": event, "prompt_id": prompt, **ids, **fields}


def found(events):
    return world(events).execute(QUERY).fetchall()


def test_dispatch_to_seal_and_the_straggler():
    events = [
        line(10, "a", "attempt_dispatched", 0),
        line(10, "a", "attempt_dispatched", 1),
        line(12, "a", "attempt_abandoned", 0, reason="failed"),
        line(13, "a", "attempt_dispatched", 0, attempt=1),
        line(15, "a", "attempt_sealed", 0, attempt=1),
        line(27, "a", "attempt_sealed", 1),
        line(28, "a", "group_sealed"),
    ]
    assert found(events) == [("7", 1, 10, 28, 18, 2, 2, 3, 0, 21, 12, 1, 1)]


def test_an_open_group_has_no_end_and_one_sibling_makes_nobody_wait():
    events = [
        line(10, "a", "attempt_dispatched", 0),
        line(14, "a", "attempt_sealed", 0),
        line(14, "a", "group_sealed"),
        line(11, "a", "attempt_dispatched", 0, prompt="8"),
        line(15, "a", "attempt_dispatched", 1, prompt="8"),
    ]
    assert found(events) == [
        ("7", 1, 10, 14, 4, 1, 1, 1, 0, 4, None, None, 1),
        ("8", 1, 11, None, None, 2, 0, 2, 0, 4, None, None, 0),
    ]


def test_sealed_at_one_moment_cannot_tell_the_straggler():
    events = [line(10, "a", "attempt_dispatched", i) for i in (0, 1)] + [line(20, "a", "group_sealed")]
    assert found(events) == [("7", 1, 10, 20, 10, 2, 2, 2, 0, 20, None, None, 1)]


EPOCHS = [
    line(10, "a", "attempt_dispatched", 0),
    line(14, "a", "attempt_sealed", 0),
    line(14, "a", "group_sealed"),
    line(50, "a", "attempt_dispatched", 0),
    line(55, "a", "attempt_sealed", 0),
    line(55, "a", "group_sealed"),
]


def test_a_prompt_comes_again_in_a_later_epoch():
    assert found(EPOCHS) == [
        ("7", 1, 10, 14, 4, 1, 1, 1, 0, 4, None, None, 1),
        ("7", 2, 50, 55, 5, 1, 1, 1, 0, 5, None, None, 1),
    ]


def test_with_a_group_id_a_group_is_one():
    events = [event | {"group_id": "g"} for event in EPOCHS]
    assert found(events) == [("g", 1, 10, 55, 45, 1, 1, 2, 0, 9, None, None, 2)]


def test_a_seal_that_was_rolled_back_begins_no_epoch():
    cut = line(12, "a", "snapshot_published", step=1, cut_time=11, path="/c/snapshot_1")
    events = [
        EPOCHS[0],
        cut,
        *EPOCHS[1:3],
        line(30, "b", "restore_started", path="/c/snapshot_1"),
        line(31, "b", "attempt_abandoned", 0, reason="restart"),
        line(32, "b", "attempt_dispatched", 0, attempt=1),
        line(40, "b", "attempt_sealed", 0, attempt=1),
        line(41, "b", "group_sealed"),
    ]
    assert found(events) == [("7", 1, 10, 41, 31, 1, 1, 2, 1, 12, None, None, 2)]


def test_a_seal_in_the_restored_history_does():
    events = [
        *EPOCHS[:3],
        line(16, "a", "snapshot_published", step=1, cut_time=15, path="/c/snapshot_1"),
        line(30, "b", "restore_started", path="/c/snapshot_1"),
        line(32, "b", "attempt_dispatched", 0),
        line(40, "b", "attempt_sealed", 0),
        line(41, "b", "group_sealed"),
    ]
    assert [(row[1], row[2], row[3]) for row in found(events)] == [(1, 10, 14), (2, 32, 41)]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(traces())
def test_conservation(con, events):
    con.execute("DELETE FROM events")
    put(con, events)
    sums = "sum(attempts)::BIGINT AS n, sum(lost_attempts)::BIGINT AS lost, sum(attempt_s) AS s"
    (mine,) = rows(con, f"SELECT {sums} FROM group_spans")
    spans = "count(*) AS n, count(*) FILTER (fate = 'restart') AS lost, sum(duration_s) AS s"
    (all_,) = rows(con, f"SELECT {spans} FROM attempt_spans HAVING count(*) > 0") or (
        {"n": None, "lost": None, "s": None},
    )
    assert mine == {**all_, "s": pytest.approx(all_["s"]) if all_["s"] is not None else None}
    keys = con.execute(
        "SELECT count(*) - count(DISTINCT (experiment, group_key, occurrence)) FROM group_spans"
    ).fetchone()
    assert keys == (0,)
