"""restart_reports and restart_abandonment: a verdict for each report; what is counted is counted once."""

from lines import attempt, example, published, report, restore
from worlds import world


def found(lines, view, columns):
    return world(lines).execute(f"SELECT {columns} FROM {view} ORDER BY ALL").fetchall()


def test_the_example():
    columns = "run, t, group_key, generation_index, attempt, span_id, verdict, times_reported"
    assert found(example(), "restart_reports", columns) == [("b2", 60, "7", 2, 0, "a1:2", "counted", 1)]
    assert found(example(), "restart_abandonment", "* EXCLUDE experiment") == [
        ("b2", 60, 1, "a1:2", "a1", "7", 2, 0, 12, 40, 28, 3)
    ]


def test_verdicts():
    lines = [
        attempt(10, "a", "dispatched", 0),
        attempt(11, "a", "dispatched", 1),
        attempt(20, "a", "abandoned", 1, reason="failed"),
        published(43, "a", 4, 40),
        restore(60, "b"),
        report(60, "b", 0),
        report(61, "b", 0),
        report(60, "b", 1),
        report(60, "b", 2),
        report(60, "b", 3, None),
    ]
    assert found(lines, "restart_reports", "generation_index, verdict, times_reported, span_id") == [
        (0, "counted", 2, "a:0"),
        (1, "repeated", 1, "a:1"),
        (2, "never_dispatched", 1, None),
        (3, "unresolved", 1, None),
    ]
    assert len(found(lines, "restart_abandonment", "*")) == 1


def test_a_parent_that_goes_on_was_not_stopped():
    lines = [
        attempt(10, "a", "dispatched", 0),
        published(43, "a", 4, 40),
        restore(60, "b"),
        report(60, "b", 0),
        attempt(62, "b", "dispatched", 0, 1),
        attempt(70, "a", "dispatched", 0, prompt="8"),
    ]
    assert found(lines, "restart_reports", "verdict, span_id") == [("not_stopped", "a:0")]
    assert found(lines, "attempt_spans", "DISTINCT fate") == [("open",)]


def test_reports_of_a_run_without_a_restore_are_unresolved():
    lines = [attempt(10, "a", "dispatched", 0), report(60, "b", 0)]
    assert found(lines, "restart_reports", "run, verdict, span_id") == [("b", "unresolved", None)]
