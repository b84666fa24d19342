"""quality: each check that lines can tell, found and not found."""

import pytest
from lines import attempt, example, group, published, report, restore
from worlds import put, world


def found(lines):
    rows = world(lines).execute('SELECT "check", count FROM quality WHERE count > 0 ORDER BY ALL').fetchall()
    return dict(rows)


def test_the_example_is_in_order_and_every_check_has_a_row():
    con = world(example())
    rows = con.execute('SELECT "check", count, detail FROM quality').fetchall()
    assert len(rows) == len({check for check, _, _ in rows}) == 21
    assert {(count, detail) for _, count, detail in rows} == {(0, None)}


BUSY = [attempt(10, "a", "dispatched", 0), published(43, "a", 4, 40)]


@pytest.mark.parametrize(
    "lines, check, count",
    [
        ([{"t": 1, "run": "a", "event": "attempt_sealed", "attempt": 0}], "unresolved_lines", 1),
        ([{"t": 1, "run": "a", "event": "gpu_lost"}, {"t": 2, "run": "a", "event": "gpu_lost"}], "unknown_events", 2),
        (
            [attempt(9, "a", "dispatched", 0), attempt(4, "a", "sealed", 0), attempt(9, "a", "sealed", 0)],
            "clock_steps_back",
            1,
        ),
        ([attempt(1.7e12, "a", "dispatched", 0), attempt(1.7e12, "a", "sealed", 0)], "time_unit_suspect", 1),
        ([attempt(1, "a", "sealed", 0)], "seal_without_dispatch", 1),
        ([*BUSY, restore(60, "b", "/ckpt/snapshot_9")], "restore_without_cut", 1),
        ([*BUSY, restore(60, "b"), attempt(61, "b", "dispatched", 0, prompt="8")], "lineage_contradicted", 1),
        ([*BUSY, restore(60, "b"), published(70, "b", 4, 65)], "same_step_many_runs", 1),
        ([*BUSY, restore(60, "b"), restore(61, "b"), restore(62, "b")], "failed_restore_tries", 2),
        ([*BUSY, restore(60, "b"), published(65, "a", 5, 64)], "parent_went_on", 1),
        ([*BUSY, attempt(60, "b", "dispatched", 0, prompt="8")], "started_afresh", 1),
        (
            [*BUSY, restore(60, "b"), published(70, "b", 9, 65), restore(80, "c"), report(80, "c", 0)],
            "branch_or_fork",
            0,
        ),
        ([*BUSY, restore(60, "b"), attempt(61, "b", "dispatched", 0, prompt="8")], "lost_in_silence", 1),
        ([attempt(1, "a", "dispatched", 0), attempt(700, "a", "sealed", 0)], "no_snapshot_in_run", 1),
        ([attempt(1, "a", "dispatched", 0), attempt(1e300, "a", "sealed", 0)], "no_snapshot_in_run", 1),
        ([*BUSY], "open_at_end", 1),
    ],
)
def test_found(lines, check, count):
    assert found(lines).get(check, 0) == count


def test_what_the_files_say_of_their_bytes_is_told():
    con = world(example())
    con.execute(
        "INSERT INTO trace_files"
        "(file_id, path, experiment, rejects, pending, salvaged, non_finite_values, replaced_utf8) "
        "VALUES (1, 'a.jsonl', 'x', 1, 1, 2, 3, 4), (2, 'b.jsonl', 'x', 1, 0, 0, 0, 0)"
    )
    found = con.execute('SELECT "check", count, detail FROM quality WHERE count > 0 ORDER BY ALL').fetchall()
    con.execute("DELETE FROM trace_files")
    assert found == [
        ("non_finite_values", 3, "a.jsonl"),
        ("pending", 1, "a.jsonl"),
        ("rejects", 2, "a.jsonl; b.jsonl"),
        ("replaced_utf8", 4, "a.jsonl"),
        ("salvaged", 2, "a.jsonl"),
    ]


def test_a_discarded_branch_with_snapshots_may_be_a_fork():
    lines = [
        *example(),
        published(95, "b2", 9, 92),
        restore(100, "c3"),
        report(100, "c3", 2),
        attempt(104, "c3", "dispatched", 2, 1),
    ]
    assert found(lines)["branch_or_fork"] == 1


def test_a_seal_of_what_the_restored_run_dispatched_has_its_dispatch():
    lines = [*BUSY, restore(60, "b"), attempt(61, "b", "sealed", 0), group(62, "b", "sealed")]
    assert "seal_without_dispatch" not in found(lines)


def test_a_snapshot_in_another_experiment_is_named_with_the_way_out():
    con = world([restore(60, "b")])
    put(con, BUSY, "launch_1")
    [(detail,)] = con.execute(
        """SELECT detail FROM quality WHERE experiment = 'x' AND "check" = 'restore_without_cut'"""
    ).fetchall()
    assert detail == (
        "run b restored /ckpt/snapshot_000004: no snapshot of this experiment fits; "
        "experiment launch_1 has one: load both under one --experiment"
    )
