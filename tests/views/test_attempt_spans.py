"""attempt_spans: literal lines in, literal rows out."""

import pytest
from lines import attempt, example, group, published, report, restore
from worlds import world

COLUMNS = "run, generation_index, attempt, start_t, end_t, duration_s, end_kind, end_is_bound, fate"
LOSS = "lost_by_run, lost_how, cut_t, thrown_away_s, never_saved_s, never_saved_max_s"


def found(lines, columns=COLUMNS):
    return (
        world(lines).execute(f"SELECT {columns} FROM attempt_spans ORDER BY start_t, run, generation_index").fetchall()
    )


def test_the_example():
    assert found(example()) == [
        ("a1", 0, 0, 10, 25, 15, "sealed", False, "kept"),
        ("a1", 1, 0, 11, 27, 16, "sealed", False, "kept"),
        ("a1", 2, 0, 12, 43, 31, None, True, "restart"),
        ("b2", 2, 1, 63, 89, 26, "sealed", False, "kept"),
    ]
    none = (None,) * 6
    assert found(example(), LOSS) == [none, none, ("b2", "reported", 40, 28, 3, 20), none]
    assert found(example(), "span_id, group_key, prompt_id, weight_version")[2] == ("a1:2", "7", "7", 3)


def test_the_first_end_counts_and_every_fate_is_one():
    lines = [
        attempt(0, "a", "dispatched", 0),
        attempt(1, "a", "dispatched", 1),
        attempt(2, "a", "dispatched", 2),
        attempt(3, "a", "dispatched", 3),
        attempt(4, "a", "dispatched", 4),
        attempt(5, "a", "abandoned", 0, reason="failed"),
        attempt(6, "a", "abandoned", 1, reason="cancelled"),
        attempt(7, "a", "abandoned", 2),
        attempt(8, "a", "dispatched", 3, 1),
        attempt(9, "a", "sealed", 3, 1),
        attempt(10, "a", "abandoned", 3, 1, reason="failed"),  # it is over
        group(11, "a", "discarded"),
        attempt(12, "a", "dispatched", 0, 1),
    ]
    assert found(lines, "generation_index, attempt, duration_s, end_kind, fate") == [
        (0, 0, 5, "failed", "failed"),
        (1, 0, 5, "cancelled", "cancelled"),
        (2, 0, 5, "abandoned", "abandoned"),
        (3, 0, 5, "superseded", "superseded"),
        (4, 0, 7, "discarded", "discarded"),
        (3, 1, 1, "sealed", "discarded"),
        (0, 1, 0, None, "open"),
    ]


def test_an_end_without_attempt_is_that_of_the_open_one():
    lines = [
        attempt(0, "a", "dispatched", 0, 0),
        attempt(2, "a", "abandoned", 0, None, reason="failed"),
        attempt(3, "a", "dispatched", 0, 1),
        attempt(7, "a", "sealed", 0, None),
        attempt(8, "a", "sealed", 0, None),
    ]
    assert found(lines, "attempt, end_t, fate") == [(0, 2, "failed"), (1, 7, "kept")]


def test_a_group_sealed_at_one_moment_ends_what_is_open():
    lines = [
        attempt(0, "a", "dispatched", 0),
        attempt(1, "a", "dispatched", 1),
        attempt(4, "a", "sealed", 0),
        group(9, "a", "sealed"),
        attempt(10, "a", "dispatched", 0),  # the prompt again, in a later epoch
        group(15, "a", "sealed"),
    ]
    assert found(lines, "start_t, end_t, end_kind") == [(0, 4, "sealed"), (1, 9, "sealed"), (10, 15, "sealed")]


def test_order_is_that_of_the_lines_not_of_t():
    lines = [
        attempt(10, "a", "dispatched", 0),
        attempt(4, "a", "sealed", 0),
        attempt(4, "a", "dispatched", 1),
        {"t": 3, "run": "a", "event": "weights_synced", "weight_version": 1},
    ]
    assert found(lines, "generation_index, start_t, end_t, duration_s, fate") == [
        (1, 4, 4, 0, "open"),  # the greatest t from its own line on, not the 10 before it
        (0, 10, 4, 0, "kept"),
    ]


@pytest.mark.parametrize(
    "more, how, thrown, never, sealed",
    [
        ([report(60, "b", 0), attempt(62, "b", "dispatched", 0, 1)], "reported", 30, 3, False),
        ([attempt(62, "b", "dispatched", 0, 1)], "silent", 30, 3, False),
        ([attempt(62, "b", "dispatched", 0, 1, prompt="other")], "silent", 30, 3, False),
    ],
)
def test_how_a_running_attempt_is_lost(more, how, thrown, never, sealed):
    lines = [attempt(10, "a", "dispatched", 0), published(43, "a", 4, 40), restore(60, "b"), *more]
    assert found(lines, LOSS)[0] == ("b", how, 40, thrown, never, 20)


def test_a_restore_that_has_not_acted_loses_nothing_in_silence():
    lines = [attempt(10, "a", "dispatched", 0), published(43, "a", 4, 40), restore(60, "b")]
    assert found(lines, "fate, lost_how") == [("open", None)]
    lines.append({"t": 61, "run": "b", "event": "restore_finished"})
    assert found(lines, "fate, lost_how") == [("restart", "silent")]


def test_sealed_siblings_redone_or_dropped_and_work_after_the_cut():
    lines = [
        attempt(10, "a", "dispatched", 0),
        attempt(11, "a", "dispatched", 0, prompt="8"),
        attempt(20, "a", "sealed", 0),
        attempt(30, "a", "sealed", 0, prompt="8"),
        attempt(41, "a", "dispatched", 0, prompt="9"),
        published(43, "a", 4, 40),
        attempt(50, "a", "sealed", 0, prompt="9"),
        restore(60, "b"),
        attempt(62, "b", "dispatched", 0, 1),
        group(70, "b", "sealed"),
    ]
    assert found(lines, "prompt_id, lost_how, thrown_away_s, never_saved_s")[:3] == [
        ("7", "redone", 10, 0),
        ("8", "dropped", 19, 0),
        ("9", "after_cut", 0, 9),
    ]


def test_what_the_restoring_run_gives_up_or_seals():
    lines = [
        attempt(10, "a", "dispatched", 0),
        attempt(11, "a", "dispatched", 1),
        published(43, "a", 4, 40),
        restore(60, "b"),
        attempt(61, "b", "abandoned", 0, reason="cancelled"),
        attempt(62, "b", "sealed", 1),
        attempt(63, "b", "dispatched", 0, 1),
    ]
    assert found(lines, "attempt, fate, lost_by_run, duration_s") == [
        (0, "cancelled", None, 33),
        (0, "kept", None, 32),
        (1, "open", None, 0),
    ]


def test_the_same_snapshot_restored_again_loses_the_branch_between():
    lines = [
        *example(),
        restore(100, "c3"),
        report(100, "c3", 2),
        attempt(104, "c3", "dispatched", 2, 1),
        attempt(120, "c3", "sealed", 2, 1),
    ]
    assert found(lines, "run, fate, lost_by_run, lost_how, thrown_away_s, never_saved_s")[2:] == [
        ("a1", "restart", "b2", "reported", 28, 3),
        ("b2", "restart", "c3", "discarded_branch", 0, 26),
        ("c3", "kept", None, None, None, None),
    ]


def test_reported_where_the_cut_is_unknown():
    lines = [attempt(10, "a", "dispatched", 0), attempt(20, "a", "dispatched", 1), restore(60, "b"), report(60, "b", 0)]
    assert found(lines, "generation_index, fate, lost_by_run, cut_t, thrown_away_s, never_saved_s") == [
        (0, "restart", "b", None, None, None),
        (1, "open", None, None, None, None),
    ]


def test_the_moment_of_the_cut_is_in_the_snapshot():
    lines = [
        attempt(40, "a", "dispatched", 0),  # with the cut, not after it
        attempt(40, "a", "dispatched", 1),
        published(43, "a", 4, 40),
        restore(60, "b"),
        attempt(61, "b", "sealed", 0),
        report(60, "b", 1),
        attempt(63, "b", "dispatched", 1, 1),
    ]
    assert found(lines, "generation_index, fate, lost_how, thrown_away_s, never_saved_s")[:2] == [
        (0, "kept", None, None, None),
        (1, "restart", "reported", 0, 3),
    ]


def test_discarded_after_the_restore_and_only_in_its_own_experiment():
    from worlds import put

    lines = [
        attempt(10, "a", "dispatched", 0),
        attempt(20, "a", "sealed", 0),
        group(30, "a", "sealed"),
        published(43, "a", 4, 40),
        restore(60, "b"),
        attempt(62, "b", "dispatched", 0, prompt="8"),
        group(70, "b", "discarded"),
    ]
    con = world(lines)
    put(con, lines[:-1], "y")
    query = "SELECT experiment, fate FROM attempt_spans WHERE prompt_id = '7' ORDER BY experiment"
    assert con.execute(query).fetchall() == [("x", "discarded"), ("y", "kept")]
