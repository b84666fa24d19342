"""cut_time_waste: literal lines in, literal rows out; NeMo-RL's own ledger, restore by restore."""

import json
import math
from pathlib import Path

import pytest
from lines import attempt, example, published, report, restore
from worlds import rows, world

import rtrace_analytics as rta

TRACES = Path(__file__).parents[1] / "data" / "traces"
COUNTS = "reported, counted, repeated, never_dispatched, unresolved, not_stopped, unreported"
LOST = "lost_attempts, lost_sealed, lost_after_cut, thrown_away_s, never_saved_s, never_saved_max_s, lost_s, naive_s"


def found(lines, columns):
    return world(lines).execute(f"SELECT {columns} FROM cut_time_waste ORDER BY restore_t").fetchall()


def test_the_example():
    assert found(example(), COUNTS) == [(1, 1, 0, 0, 0, 0, 0)]
    assert found(example(), LOST) == [(1, 0, 0, 28, 3, 20, 31, 28)]
    assert found(example(), "run, parent_run, stop_t, match") == [("b2", "a1", 43, "step")]


def test_the_fleet_worked_so_long_for_nothing():
    """a1 ran 15 + 16 + 31 attempt-seconds in 33 s of wall time."""
    [(fleet_s,)] = found(example(), "lost_fleet_s")
    assert math.isclose(fleet_s, 31 / (62 / 33))


def test_each_dispatch_is_lost_once_and_the_literal_rule_counts_twice():
    lines = [
        *example(),
        restore(100, "c3"),
        report(100, "c3", 2),
        report(101, "c3", 2),
        attempt(104, "c3", "dispatched", 2, 1),
    ]
    assert found(lines, COUNTS) == [(1, 1, 0, 0, 0, 0, 0), (1, 0, 1, 0, 0, 0, 0)]
    assert found(lines, LOST) == [(1, 0, 0, 28, 3, 20, 31, 28), (1, 1, 1, 0, 26, 26, 26, 28)]


def test_an_unknown_cut_is_null_not_zero():
    lines = [attempt(10, "a", "dispatched", 0), restore(60, "b"), report(60, "b", 0), report(60, "b", 1)]
    assert found(lines, COUNTS) == [(2, 0, 0, 0, 2, 0, None)]
    assert found(lines, f"{LOST}, lost_fleet_s, cut_t, match, contradictions") == [(None,) * 12]


def test_a_known_cut_and_nothing_lost_is_zero():
    lines = [attempt(1, "a", "dispatched", 0), attempt(2, "a", "sealed", 0), published(5, "a", 4, 4), restore(9, "b")]
    assert found(lines, f"{COUNTS}, {LOST}, lost_fleet_s") == [(0,) * 16]


def test_every_verdict():
    lines = [
        attempt(10, "a", "dispatched", 0),
        attempt(11, "a", "dispatched", 1),
        attempt(20, "a", "abandoned", 1, reason="failed"),
        published(43, "a", 4, 40),
        restore(60, "b"),
        *(report(60, "b", sibling) for sibling in (0, 1, 2)),
        {"t": 60, "run": "b", "event": "attempt_abandoned", "reason": "restart"},
    ]
    assert found(lines, COUNTS) == [(4, 1, 1, 1, 1, 0, 0)]
    assert found(lines, LOST) == [(1, 0, 0, 30, 3, 20, 33, 30 + 29)]


@pytest.mark.parametrize("path", sorted(TRACES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_real_traces(path):
    expected = json.loads(path.with_suffix(".expected.json").read_text())
    with rta.load(path, experiment="x") as traces:
        con = traces.sql("SELECT * FROM cut_time_waste ORDER BY restore_t").df().to_dict("records")
        fates = {row["fate"]: row for row in traces.rollout_seconds().reset_index().to_dict("records")}
    names = {"cut": "cut_t", "parent": "parent_run"}
    assert len(con) == len(expected["restores"])
    for row, wanted in zip(con, expected["restores"], strict=True):
        for key, value in wanted.items():
            got = row[names.get(key, key)]
            assert got == value or math.isclose(got, value, rel_tol=1e-9), (row["run"], key)
    assert {fate: row["spans"] for fate, row in fates.items()} == expected["spans"]
    total = expected["seconds"].pop("total")
    assert math.isclose(sum(row["seconds"] for row in fates.values()), total, rel_tol=1e-9)
    for fate, seconds in expected["seconds"].items():
        assert math.isclose(fates[fate]["seconds"], seconds, rel_tol=1e-9)


def test_two_experiments_never_touch():
    from worlds import put

    con = world(example())
    alone = rows(con, "SELECT * FROM cut_time_waste")
    put(con, example(), "y")
    both = rows(con, "SELECT * FROM cut_time_waste ORDER BY experiment")
    assert both == [*alone, {**alone[0], "experiment": "y"}]
