"""Loading again: files that grew, moved, were copied, rewritten, rotated; nothing twice, nothing lost."""

import gzip
import os
import shutil
from pathlib import Path

import duckdb
import pytest

from rtrace_analytics import loading
from rtrace_analytics.errors import InputError
from rtrace_analytics.loading import compare
from tests.loading.worlds import contents, dispatches, fresh, line, one, write

Con = duckdb.DuckDBPyConnection


def test_repeated_adds_nothing(con: Con, tmp_path: Path) -> None:
    path = write(tmp_path / "e/t.jsonl", *dispatches("a", 0, 5))
    assert loading.load(con, path).events == 5
    before = contents(con)
    for _ in range(2):
        again = loading.load(con, path)
        assert (again.events, again.rejects, again.pending, again.warnings) == (0, 0, 0, [])
        os.utime(path)
    assert contents(con) == before


def test_grown_in_the_middle_of_lines(con: Con, tmp_path: Path) -> None:
    whole = b"".join(dispatches("a", 0, 6)) + b'{"t": 7, "ru\n' + line(1010, "a", "group_sealed", prompt_id="3", x=[1])
    path = tmp_path / "e/t.jsonl"
    for size in (0, 1, 50, 107, 108, 109, 300, 655, len(whole) - 1, len(whole)):
        write(path, whole[:size])
        loading.load(con, path)
        assert contents(con) == fresh(path)
        rows = con.execute("SELECT bytes, lines, pending, events, rejects FROM trace_files").fetchall()
        assert len(rows) == 1
        assert rows[0][3:] == (one(con, "SELECT count(*) FROM events"), one(con, "SELECT count(*) FROM rejects"))
    assert rows == [(len(whole), 8, 0, 7, 1)]
    assert con.execute("SELECT line FROM events ORDER BY seq").fetchall() == [(n,) for n in (1, 2, 3, 4, 5, 6, 8)]


def test_pending_is_no_reject_and_is_taken_up(con: Con, tmp_path: Path) -> None:
    first, second = dispatches("a", 0, 2)
    path = write(tmp_path / "e/t.jsonl", first, second[:30])
    report = loading.load(con, path)
    assert (report.events, report.rejects, report.pending) == (1, 0, 1)
    assert loading.load(con, path).pending == 1
    write(path, first, second)
    report = loading.load(con, path)
    assert (report.events, report.rejects, report.pending) == (1, 0, 0)


def test_tail_without_newline_that_is_complete_is_an_event(con: Con, tmp_path: Path) -> None:
    path = write(tmp_path / "e/t.jsonl", b"".join(dispatches("a", 0, 2)).rstrip(b"\n"))
    report = loading.load(con, path)
    assert (report.events, report.pending) == (2, 0)
    write(path, *dispatches("a", 0, 3))
    assert loading.load(con, path).events == 1
    assert con.execute("SELECT line FROM events ORDER BY seq").fetchall() == [(1,), (2,), (3,)]


def test_line_that_goes_on_after_an_event_was_taken_from_it(con: Con, tmp_path: Path) -> None:
    first, second, third = dispatches("a", 0, 3)
    path = write(tmp_path / "e/t.jsonl", first, second[:-1])
    loading.load(con, path)
    write(path, first, second[:-1], third)
    assert loading.load(con, path).events == 1
    assert contents(con) == fresh(path)
    assert con.execute("SELECT line FROM events ORDER BY seq").fetchall() == [(1,), (2,), (2,)]


@pytest.mark.parametrize("edit", ["shrunk", "middle", "emptied", "other"])
def test_rewritten_replaces_what_it_gave(con: Con, tmp_path: Path, edit: str) -> None:
    lines = dispatches("a", 0, 9)
    path = write(tmp_path / "e/t.jsonl", *lines)
    loading.load(con, path)
    changed = {
        "shrunk": lines[:4],
        "middle": [*lines[:4], lines[4].replace(b"attempt_dispatched", b"attempt_disqatched"), *lines[5:]],
        "emptied": [],
        "other": dispatches("b", 3, 9),
    }[edit]
    write(path, *changed)
    report = loading.load(con, path)
    assert report.events == len(changed)
    assert "rewritten" in report.warnings[0]
    assert contents(con) == fresh(path)
    assert one(con, "SELECT count(*) FROM trace_files") == 1


def test_renamed(con: Con, tmp_path: Path) -> None:
    path = write(tmp_path / "e/t.jsonl", *dispatches("a", 0, 5))
    loading.load(con, path)
    moved = path.rename(tmp_path / "e/old.jsonl")
    with open(moved, "ab") as file:
        file.writelines(dispatches("a", 5, 2))
    report = loading.load(con, moved)
    assert report.events == 2
    assert contents(con) == fresh(moved)
    assert one(con, "SELECT path FROM trace_files") == str(moved)
    assert loading.load(con, moved).events == 0


def test_renamed_unchanged(con: Con, tmp_path: Path) -> None:
    path = write(tmp_path / "e/t.jsonl", *dispatches("a", 0, 5))
    loading.load(con, path)
    moved = path.rename(tmp_path / "e/old.jsonl")
    report = loading.load(con, tmp_path)
    assert report.events == 0
    assert str(path) in report.warnings[0]
    assert con.execute("SELECT path, events FROM trace_files").fetchall() == [(str(moved), 5)]


@pytest.mark.parametrize("names", [("t.jsonl", "t.bak.jsonl"), ("a.jsonl", "z.jsonl"), ("z.jsonl", "a.jsonl")])
@pytest.mark.parametrize("together", [True, False])
def test_prefix_beside_it_adds_nothing(con: Con, tmp_path: Path, names: tuple[str, str], together: bool) -> None:
    lines = dispatches("a", 0, 8)
    whole = write(tmp_path / "e" / names[0], *lines)
    if not together:
        loading.load(con, whole)
    copy = write(tmp_path / "e" / names[1], *lines[:5], lines[5][:20])
    report = loading.load(con, tmp_path / "e")
    assert report.events == (8 if together else 0)
    assert report.warnings == [f"{copy}: copy of {str(whole)!r}: adds nothing"]
    assert contents(con) == fresh(whole)
    assert one(con, "SELECT count(*) FROM trace_files") == 1
    assert loading.load(con, tmp_path / "e").events == 0


def test_equal_copy_adds_nothing(con: Con, tmp_path: Path) -> None:
    path = write(tmp_path / "e/t.jsonl", *dispatches("a", 0, 8))
    shutil.copy(path, tmp_path / "e/u.jsonl")
    assert loading.load(con, tmp_path / "e").events == 8
    assert contents(con) == fresh(path)


def test_extension_adds_what_is_new(con: Con, tmp_path: Path) -> None:
    lines = dispatches("a", 0, 8)
    loading.load(con, write(tmp_path / "e/t.jsonl", *lines[:5], lines[5][:20]))
    longer = write(tmp_path / "e/t-full.jsonl", *lines)
    report = loading.load(con, longer)
    assert report.events == 3
    assert "t.jsonl" in report.warnings[0]
    assert contents(con) == fresh(longer)
    assert con.execute("SELECT path, events, pending FROM trace_files").fetchall() == [(str(longer), 8, 0)]
    assert loading.load(con, tmp_path / "e").events == 0


def test_compressed_copy_is_a_copy(con: Con, tmp_path: Path) -> None:
    path = write(tmp_path / "e/t.jsonl", *dispatches("a", 0, 8))
    loading.load(con, path)
    write(tmp_path / "e/t.jsonl.gz", gzip.compress(path.read_bytes()))
    path.unlink()
    assert loading.load(con, tmp_path / "e").events == 0
    assert one(con, "SELECT path FROM trace_files").endswith("t.jsonl.gz")


@pytest.mark.parametrize("size", [8, 3000])
def test_copy_that_differs_is_an_error_with_the_line(con: Con, tmp_path: Path, size: int) -> None:
    lines = dispatches("a", 0, size)
    path = write(tmp_path / "e/t.jsonl", *lines)
    loading.load(con, path)
    before = contents(con)
    for at in {2, size // 2, size - 2}:
        changed = [*lines[:at], lines[at].replace(b'"attempt": 0', b'"attempt": 1'), *lines[at + 1 :]]
        for end in {at + 1, size}:
            other = write(tmp_path / "e/u.jsonl", *changed[:end])
            with pytest.raises(InputError, match=f"differs from it at line {at + 1}:") as error:
                loading.load(con, other)
            assert str(path) in str(error.value)
            assert str(other) in str(error.value)
            assert "\n" not in str(error.value)
    assert contents(con) == before
    assert one(con, "SELECT count(*) FROM trace_files") == 1


def test_same_trace_under_a_second_experiment_names_both(con: Con, tmp_path: Path) -> None:
    path = write(tmp_path / "e/t.jsonl", *dispatches("a", 0, 4))
    loading.load(con, path, experiment="first")
    for given in (path, shutil.copy(path, tmp_path / "e/u.jsonl")):
        with pytest.raises(InputError, match="'first', not 'second'"):
            loading.load(con, given, experiment="second")
    copy = write(tmp_path / "f/t.jsonl", path.read_bytes())
    with pytest.raises(InputError, match="'first', not 'f'"):
        loading.load(con, copy)
    assert loading.load(con, path).events == 0  # keeps its experiment


def test_two_new_copies_in_two_folders(con: Con, tmp_path: Path) -> None:
    for name in "ef":
        write(tmp_path / name / "t.jsonl", *dispatches("a", 0, 4))
    with pytest.raises(InputError, match="experiment 'e', not 'f'"):
        loading.load(con, tmp_path)
    assert one(con, "SELECT count(*) FROM events") == 0


def test_rotated(con: Con, tmp_path: Path) -> None:
    lines = dispatches("a", 0, 9)
    path = write(tmp_path / "e/t.jsonl", *lines[:3])
    loading.load(con, path)
    with open(path, "ab") as file:
        file.writelines(lines[3:5])
    path.rename(tmp_path / "e/t.jsonl.1")
    write(path, *lines[5:7])
    report = loading.load(con, path)  # the folder is not named: what moved is found beside it
    assert report.events == 4
    write(path, *lines[5:])
    assert loading.load(con, tmp_path / "e").events == 2
    assert contents(con) == fresh(write(tmp_path / "one/e/t.jsonl", *lines))
    assert con.execute("SELECT prompt_id FROM events ORDER BY seq").fetchall() == [(str(i),) for i in range(9)]


def test_order_of_a_run_over_files_does_not_depend_on_loads(tmp_path: Path) -> None:
    from itertools import permutations

    from rtrace_analytics import database

    parts = [dispatches("a", first, 3) for first in (0, 3, 6)]
    paths = [write(tmp_path / "e" / f"{name}.jsonl", *part) for name, part in zip("zma", parts, strict=True)]
    for order in permutations(paths):
        with database.connect() as con:
            for path in order:
                loading.load(con, path)
            got = con.execute("SELECT prompt_id FROM events ORDER BY seq").fetchall()
            assert got == [(str(i),) for i in range(9)]


def test_grown_file_of_a_spread_run_keeps_its_rank(con: Con, tmp_path: Path) -> None:
    lines = dispatches("a", 0, 8)
    write(tmp_path / "e/1.jsonl", *lines[:3])
    second = write(tmp_path / "e/2.jsonl", *lines[3:5])
    loading.load(con, tmp_path)
    write(second, *lines[3:])
    loading.load(con, tmp_path)
    assert con.execute("SELECT prompt_id FROM events ORDER BY seq").fetchall() == [(str(i),) for i in range(8)]


def test_copies_that_begin_differently_never_double(con: Con, tmp_path: Path) -> None:
    lines = dispatches("a", 0, 8)
    whole = write(tmp_path / "e/t.jsonl", *lines)
    loading.load(con, whole)
    tail = write(tmp_path / "e/tail.jsonl", *lines[4:])
    with pytest.raises(InputError, match="count twice") as error:
        loading.load(con, tail)
    assert str(whole) in str(error.value)
    assert str(tail) in str(error.value)
    assert one(con, "SELECT count(*) FROM events") == 8


def test_large_file_that_grew_is_compared_in_samples(con: Con, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "_ALL", 0)
    lines = [line(i, "a", "note", reason="x" * 5000, step=i) for i in range(400)]
    path = write(tmp_path / "e/t.jsonl", *lines[:380])
    loading.load(con, path)
    write(path, *lines)
    report = loading.load(con, path)
    assert (report.events, report.warnings) == (20, [])
    write(path, lines[0], *lines[:0:-1], *lines)
    report = loading.load(con, path)
    assert report.events == 800
    assert "rewritten" in report.warnings[0]
    assert contents(con) == fresh(path)
