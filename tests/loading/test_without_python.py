"""sql/load.sql alone, in the duckdb command line: the same events, nothing dropped; and `rtrace load` after it."""

import subprocess
import sys
from pathlib import Path

import pytest

from rtrace_analytics import database, loading
from tests.loading.worlds import contents, dispatches, line, one, write

DUCKDB = Path(sys.executable).with_name("duckdb")


def run_alone(folder: Path, files: str) -> "subprocess.CompletedProcess[str]":
    """The SQL files alone, over a database in this folder."""
    sql = database.sql_folder()
    text = "".join(path.read_text() for path in [*sorted(sql.glob("[0-9]*.sql")), sql / "load.sql"])
    return subprocess.run(
        [DUCKDB, "-no-init", "-bail", "alone.duckdb"],
        input=f"SET VARIABLE trace_files = '{files}';\n{text}",
        capture_output=True,
        text=True,
        cwd=folder,
    )


def load_alone(folder: Path, files: str) -> Path:
    """A database made in this folder by the SQL files alone."""
    done = run_alone(folder, files)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "alone.duckdb"


def test_intact_lines_are_read_alike(tmp_path: Path) -> None:
    odd = b'{"t": 5, "run": 7, "event": "x", "attempt": "2", "step": null, "y": {"z": [1, "\xe2\x80\xa8"]}}\n'
    lines = dispatches("a", 0, 30_000)
    write(tmp_path / "e/1.jsonl", *lines[:20_000])
    write(tmp_path / "e/0.jsonl", *lines[20_000:], odd, b"\n")
    with database.connect(load_alone(tmp_path, "*/*.jsonl"), read_only=True) as alone, database.connect() as ours:
        loading.load(ours, tmp_path / "e")
        assert contents(alone) == contents(ours)
        query = "SELECT experiment, identity, events, rejects FROM trace_files ORDER BY ALL"
        assert alone.execute(query).fetchall() == ours.execute(query).fetchall()


def test_nothing_is_dropped(tmp_path: Path) -> None:
    good = dispatches("a", 0, 3)
    bad = [b'torn{"t": 3, "run": "a", "event": "x"}\n', line(4, "a", "y", z=float("nan")), b'{"t": 5, "run": "\xff"}\n']
    write(tmp_path / "e/t.jsonl", good[0], *bad, b"\x00\x00", good[1], b"\r\n\n", good[2])
    with database.connect(load_alone(tmp_path, "e/t.jsonl"), read_only=True) as alone:
        assert one(alone, "SELECT count(*) FROM events") == 2
        assert one(alone, "SELECT count(*) FROM rejects") == 4


def test_a_second_time_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "e/t.jsonl", *dispatches("a", 0, 3))
    db = load_alone(tmp_path, "e/t.jsonl")
    again = run_alone(tmp_path, "e/t.jsonl")
    assert again.returncode != 0
    assert "this database holds traces already" in again.stderr
    with database.connect(db, read_only=True) as con:
        assert one(con, "SELECT count(*) FROM events") == 3
        assert one(con, "SELECT count(*) FROM attempt_spans") == 3
        assert one(con, "SELECT count(*) FROM _touched") == 0


@pytest.mark.parametrize("moved", [False, True])
def test_rtrace_load_goes_on_from_it_and_doubles_nothing(tmp_path: Path, moved: bool) -> None:
    path = write(tmp_path / "e/t.jsonl", *dispatches("a", 0, 5))
    db = load_alone(tmp_path, "e/t.jsonl" if moved else str(path))
    write(path, *dispatches("a", 0, 7))
    with database.connect(db) as con:
        assert loading.load(con, path).events == 7
        assert one(con, "SELECT count(*) FROM events") == 7
        assert one(con, "SELECT count(*) FROM trace_files") == 1
        assert loading.load(con, path).events == 0
