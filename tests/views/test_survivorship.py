"""survivorship: literal lines in, literal rows out; the deciles hold every dispatch once."""

import pytest
from hypothesis import HealthCheck, given, settings
from random_traces import traces
from worlds import put, world


def rollouts(lengths, lost=()):
    """Sealed rollouts of these lengths; those in `lost` still run when the run stops, at 100."""
    events = []
    for i, length in enumerate(lengths):
        ids = {"prompt_id": str(i), "generation_index": 0, "attempt": 0}
        start = 100 - length if length in lost else 0
        events.append({"t": start, "run": "a", "event": "attempt_dispatched", **ids})
        if length in lost:
            report = {"event": "attempt_abandoned", "reason": "restart", **ids}
            events.append({"t": 120, "run": "b", **report})
        else:
            events.append({"t": length, "run": "a", "event": "attempt_sealed", **ids})
    events.append({"t": 100, "run": "a", "event": "snapshot_published", "step": 1, "cut_time": 100, "path": "/c/s_1"})
    events.insert(0, {"t": 110, "run": "b", "event": "restore_started", "path": "/c/s_1"})
    return events


def test_ten_rollouts_the_longest_lost():
    found = world(rollouts(range(1, 11), lost={10})).execute("SELECT * FROM survivorship ORDER BY decile").fetchall()
    assert found == [
        *(("x", n, n, n, 1, 0, 0, n, 0, 0) for n in range(1, 10)),
        ("x", 10, 10, 10, 1, 1, 1, 10, 10, 1),
    ]


def test_equal_lengths_share_a_decile():
    found = world(rollouts([5] * 7 + [9] * 3)).execute("SELECT decile, spans, seconds FROM survivorship ORDER BY ALL")
    assert found.fetchall() == [(1, 7, 35), (8, 3, 27)]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(traces())
def test_conservation(con, events):
    con.execute("DELETE FROM events")
    put(con, events)
    mine = con.execute(
        "SELECT sum(spans)::BIGINT, sum(lost)::BIGINT, sum(seconds), sum(lost_s) FROM survivorship"
    ).fetchone()
    spans = con.execute("""
        SELECT nullif(count(*), 0), CASE WHEN count(*) > 0 THEN count(*) FILTER (fate = 'restart') END, sum(duration_s),
               CASE WHEN count(*) > 0 THEN coalesce(sum(duration_s) FILTER (fate = 'restart'), 0) END
        FROM attempt_spans
    """).fetchone()
    assert mine == tuple(None if value is None else pytest.approx(value) for value in spans)
    assert con.execute("SELECT count(*) FROM survivorship WHERE decile NOT BETWEEN 1 AND 10").fetchone() == (0,)
