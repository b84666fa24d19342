"""The group of a line (semantics, section 2), seen in attempt_spans."""

from lines import attempt, group, published, restore
from worlds import world


def groups(lines):
    query = "SELECT run, start_t, group_key FROM attempt_spans ORDER BY start_t"
    return [row[2] for row in world(lines).execute(query).fetchall()]


def nameless(t, run, event, sibling, number=0, **more):
    return {"t": t, "run": run, "event": f"attempt_{event}", "generation_index": sibling, "attempt": number, **more}


def test_its_group_id_before_its_prompt_id():
    assert groups([attempt(1, "a", "dispatched", 0, group_id="g"), attempt(2, "a", "dispatched", 1, prompt="8")]) == [
        "g",
        "8",
    ]


def test_the_group_its_prompt_last_bore_in_the_run():
    lines = [
        attempt(1, "a", "dispatched", 0, group_id="g1"),
        attempt(2, "a", "dispatched", 1),
        attempt(3, "a", "dispatched", 0, group_id="g2"),
        attempt(4, "a", "dispatched", 1),
        attempt(5, "b", "dispatched", 0),  # g1 or g2: its prompt then
    ]
    assert groups(lines) == ["g1", "g1", "g2", "g2", "7"]


def test_the_only_group_the_prompt_bears_in_the_experiment():
    assert groups([attempt(1, "b", "dispatched", 0), attempt(2, "a", "dispatched", 0, group_id="g")]) == ["g", "g"]


def test_without_ids_the_only_group_that_dispatched_the_sibling():
    lines = [
        attempt(1, "a", "dispatched", 2),
        published(43, "a", 4, 40),
        restore(60, "b"),
        nameless(63, "b", "dispatched", 2, 1),
    ]
    assert groups(lines) == ["7", "7"]
    assert groups([*lines, attempt(64, "b", "dispatched", 2, prompt="8")]) == ["7", "8"]  # no longer the only one


def test_a_seal_that_names_the_prompt_only_seals_its_group():
    lines = [attempt(1, "a", "dispatched", 0, group_id="g1"), group(5, "a", "sealed")]
    assert world(lines).execute("SELECT end_t, fate FROM attempt_spans").fetchall() == [(5, "kept")]


def test_files_hold_any_order_of_seq():
    lines = [attempt(5, "a", "sealed", 0), attempt(1, "a", "dispatched", 0)]
    placed = [{**line, "seq": seq} for line, seq in zip(lines, (9, 3), strict=True)]
    assert world(placed).execute("SELECT span_id, duration_s FROM attempt_spans").fetchall() == [("a:3", 4)]
