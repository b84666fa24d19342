"""What seldom comes: experiments of the same names, a branch that comes back, clocks set back, lines without names."""

from lines import attempt, group, published, report, restore
from worlds import put, world


def fates(con):
    return con.execute("SELECT prompt_id, run, fate, lost_by_run FROM attempt_spans ORDER BY start_t").fetchall()


def test_a_report_is_of_no_attempt_of_another_experiment():
    con = world([attempt(10, "a", "dispatched", 0), restore(60, "b", "/ckpt/snapshot_9"), report(60, "b", 0)])
    put(con, [attempt(50, "a", "dispatched", 0), attempt(55, "a", "sealed", 0)], "other")
    put(con, [attempt(10, "a", "dispatched", 0), restore(60, "b", "/ckpt/snapshot_9"), report(60, "b", 0)], "third")
    found = con.execute("SELECT experiment, fate, lost_by_run FROM attempt_spans ORDER BY 1").fetchall()
    assert found == [("other", "kept", None), ("third", "restart", "b"), ("x", "restart", "b")]


def test_a_branch_that_came_back_is_lost_to_the_next_restore_that_leaves_it():
    lines = [
        *(attempt(10, "a", "dispatched", 0), published(21, "a", 1, 20)),
        *(restore(30, "b", "/ckpt/snapshot_1"), attempt(31, "b", "dispatched", 0, prompt="8")),
        *(attempt(35, "b", "sealed", 0, prompt="8"), group(36, "b", "sealed", "8"), published(41, "b", 2, 40)),
        *(restore(50, "c", "/ckpt/snapshot_1"), attempt(51, "c", "dispatched", 0, prompt="9")),
        *(restore(60, "d", "/ckpt/snapshot_2"), attempt(61, "d", "dispatched", 0, prompt="10")),
        *(restore(70, "e", "/ckpt/snapshot_1"), attempt(71, "e", "dispatched", 0, prompt="11")),
    ]
    assert ("8", "b", "restart", "e") in fates(world(lines))
    assert ("8", "b", "kept", None) in fates(world(lines[:-2]))
    assert ("8", "b", "restart", "c") in fates(world(lines[:-4]))


def test_the_earlier_restore_has_it_whatever_the_runs_are_called():
    lines = [attempt(10, "a", "dispatched", 0), published(43, "a", 4, 40)]
    lines += [restore(60, "z"), report(60, "z", 0), restore(80, "b"), report(80, "b", 0)]
    assert fates(world(lines)) == [("7", "a", "restart", "z")]


def test_a_nameless_dispatch_does_not_make_up_for_a_seal_told_twice():
    lines = [
        attempt(1, "a", "dispatched", 0, group_id="g"),
        attempt(1, "a", "dispatched", 0, group_id="h"),
        {"t": 2, "run": "a", "event": "attempt_dispatched", "generation_index": 0, "attempt": 0},
        attempt(5, "a", "sealed", 0, group_id="g"),
        attempt(6, "a", "sealed", 0, group_id="g"),
    ]
    found = world(lines).execute("SELECT group_key, start_t, end_t, fate FROM attempt_spans ORDER BY 1").fetchall()
    assert found == [("g", 1, 5, "kept"), ("h", 1, 6, "open")]


def test_an_end_that_a_clock_set_back_puts_before_its_dispatch_is_heard_by_the_next_restore():
    lines = [
        *(attempt(10, "a", "dispatched", 0), published(43, "a", 4, 40)),
        *(restore(60, "b"), attempt(65, "b", "dispatched", 0), attempt(61, "b", "abandoned", 0, reason="failed")),
        *(
            published(66, "b", 5, 63),
            restore(80, "c", "/ckpt/snapshot_5"),
            attempt(81, "c", "dispatched", 0, prompt="8"),
        ),
    ]
    assert world(lines).execute("SELECT run, group_key FROM lost_in_silence").fetchall() == []
