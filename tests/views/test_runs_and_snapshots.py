"""runs, snapshots and rollout_seconds: literal lines in, literal rows out."""

import math

from lines import attempt, example, published
from worlds import world


def test_runs():
    con = world(example())
    columns = "run, parent_run, first_t, last_t, events, restored_step, cut_t"
    assert con.execute(f"SELECT {columns} FROM runs ORDER BY run").fetchall() == [
        ("a1", None, 10, 43, 6, None, None),
        ("b2", "a1", 60, 90, 5, 4, 40),
    ]
    [(a1,), (b2,)] = con.execute("SELECT mean_in_flight FROM runs ORDER BY run").fetchall()
    assert math.isclose(a1, (15 + 16 + 31) / 33)
    assert math.isclose(b2, 26 / 30)


def test_a_run_of_one_moment_has_no_mean():
    assert world([attempt(1, "a", "dispatched", 0)]).execute("SELECT mean_in_flight FROM runs").fetchall() == [(None,)]


def test_snapshots():
    con = world([*example(), published(95, "b2", 5, None)])
    columns = "run, step, cut_t, published_t, publish_lag_s, restores"
    assert con.execute(f"SELECT {columns} FROM snapshots ORDER BY published_t").fetchall() == [
        ("a1", 4, 40, 43, 3, 1),
        ("b2", 5, None, 95, None, 0),
    ]


def test_rollout_seconds_add_up():
    con = world(example())
    rows = con.execute("SELECT experiment, fate, spans, seconds, share FROM rollout_seconds ORDER BY fate").fetchall()
    assert rows == [("x", "kept", 3, 57, 57 / 88), ("x", "restart", 1, 31, 31 / 88)]


def test_no_seconds_no_share():
    con = world([attempt(1, "a", "dispatched", 0)])
    assert con.execute("SELECT spans, seconds, share FROM rollout_seconds").fetchall() == [(1, 0, None)]
