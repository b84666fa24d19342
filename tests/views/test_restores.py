"""restores: literal lines in, literal rows out; the lineage by name and by evidence."""

import pytest
from lines import attempt, example, published, report, restore
from worlds import world


def found(lines, columns):
    return world(lines).execute(f"SELECT {columns} FROM restores ORDER BY restore_t, run").fetchall()


def test_the_example():
    columns = "run, restore_t, path, parent_run, snapshot_step, match, contradictions, cut_t, published_t"
    assert found(example(), columns) == [("b2", 60, "/ckpt/snapshot_000004", "a1", 4, "step", 0, 40, 43)]
    columns = "stop_t, down_s, first_dispatch_t, first_train_step_t"
    assert found(example(), columns) == [(43, 20, 63, None)]
    trained = [*example(), {"t": 95, "run": "b2", "event": "train_step_started", "step": 5}]
    assert found(trained, columns) == [(43, 20, 63, 95)]


SNAPSHOTS = [
    published(1, "a", 0, 0.5),
    published(5, "a", 1, 4, path="/c/step_1/very/path_9"),
    published(8, "a", 1, 7),
    published(12, "a", 2, 11),
    published(15, "a", 4, None),
    published(99, "a", 7, 98),
]


@pytest.mark.parametrize(
    "path, match, cut",
    [
        ("/c/step_1/very/path_9", "path", 4),
        ("/c/step_1/rollout_snapshots/snapshot_000001", "anchor", 4),
        ("/c/step_1/rollout_snapshots/snapshot_2/", "anchor", 7),
        ("/c/step_9/x/step_1/rollout_snapshots/snapshot_2", "anchor", 7),
        ("/c/bootstrap/rollout_snapshots/snapshot_1", "anchor", 0.5),
        ("/c/rollout_snapshots/snapshot_000001", "step", 7),
        ("snapshot_2", "step", 11),
        ("/c/latest", "latest", 11),
        (None, "latest", 11),
        ("", "latest", 11),
        ("/c/step_1/rollout_snapshots/snapshot_3", None, None),  # there are two
        ("/c/step_4/rollout_snapshots/snapshot_1", None, None),  # it has no cut
        ("/c/step_7/rollout_snapshots/snapshot_1", None, None),  # published after the restore
        ("/c/step_2", None, None),  # a trainer checkpoint
        ("/c/snapshot_9", None, None),
        ("/c/snapshot_99999999999999999999999", None, None),
    ],
)
def test_what_the_path_names(path, match, cut):
    assert found([*SNAPSHOTS, restore(50, "b", path)], "match, cut_t") == [(match, cut)]


def test_evidence_against_the_name():
    lines = [
        attempt(2, "a", "dispatched", 0),
        published(5, "a", 1, 4),
        attempt(6, "a", "dispatched", 1),
        published(12, "a", 2, 11),
        restore(50, "b", "/c/snapshot_1"),
        report(50, "b", 0),
        report(50, "b", 1),
    ]
    columns = "match, cut_t, contradictions"
    assert found(lines, columns) == [("evidence", 11, 0)]
    assert found(lines[:-1], columns) == [("step", 4, 0)]  # all is explained by the one named
    named = [*lines[:4], restore(50, "b", "/c/step_2"), *lines[5:]]
    assert found(named, columns) == [("evidence", 11, 0)]  # no name, but one that nothing speaks against
    unheard = [*named, attempt(60, "b", "dispatched", 5, prompt="5")]
    assert found(unheard, columns) == [("evidence", 11, 0)]


def test_what_speaks_against_the_snapshot():
    lines = [
        attempt(2, "a", "dispatched", 0),
        attempt(3, "a", "dispatched", 1),
        published(5, "a", 4, 4),
        attempt(6, "a", "dispatched", 2),
        restore(50, "b"),
        report(50, "b", 1),
        report(50, "b", 2),  # dispatched after the cut
    ]
    assert found(lines, "contradictions") == [(1,)]
    acted = [*lines, attempt(55, "b", "dispatched", 1, 1)]
    assert found(acted, "contradictions") == [(2,)]  # nor does b ever say what became of sibling 0


def test_a_path_that_names_nothing_needs_evidence_without_contradiction():
    lines = [
        attempt(2, "a", "dispatched", 0),
        published(5, "a", 4, 4),
        attempt(6, "a", "dispatched", 0, prompt="8"),
        restore(50, "b", "/c/step_3"),
    ]
    assert found(lines, "match") == [(None,)]  # nothing explained
    assert found([*lines, report(50, "b", 0)], "match") == [
        (None,)
    ]  # prompt 8 came after the cut and is not done again
    again = [*lines, report(50, "b", 0), attempt(52, "b", "dispatched", 0, prompt="8")]
    assert found([*again, attempt(53, "b", "dispatched", 0, 1)], "match, cut_t") == [("evidence", 4)]


def test_of_several_tries_the_last_before_the_first_dispatch_counts():
    lines = [
        published(5, "a", 4, 4),
        restore(20, "b", "/c/snapshot_9"),
        restore(30, "b"),
        attempt(40, "b", "dispatched", 0),
    ]
    assert found([*lines, restore(50, "b", "/c/snapshot_9")], "restore_t, match, cut_t") == [(30, "step", 4)]
    assert found([attempt(1, "b", "dispatched", 0), restore(2, "b")], "*") == []


def test_other_experiments_are_not_looked_at():
    from worlds import put

    con = world([published(5, "a", 4, 4)])
    put(con, [restore(50, "b")], "y")
    assert con.execute("SELECT experiment, match FROM restores").fetchall() == [("y", None)]
