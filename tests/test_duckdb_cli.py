"""The real `duckdb` command line: on a database we wrote, and without Python from the lines of a trace."""

import csv
import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rtrace_analytics as rta
from rtrace_analytics import views

ROOT = Path(__file__).parent.parent
SAMPLES = [ROOT / "data/samples" / name for name in ("names-say-nothing", "pr-example", "stale-drops", "two-kills")]
DUCKDB = Path(sys.executable).with_name("duckdb")


def duckdb(db: Path, query: str, *options: str) -> list[dict[str, str]]:
    done = subprocess.run(
        [DUCKDB, "-no-init", *options, "-csv", db, "-c", query], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return list(csv.DictReader(io.StringIO(done.stdout)))


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    path = tmp_path_factory.mktemp("db") / "traces.duckdb"
    with rta.connect(path) as traces:
        traces.load(SAMPLES)
    return path


def test_lists_the_views_and_tables(db):
    found = {row["name"] for row in duckdb(db, "SHOW TABLES", "-readonly") if not row["name"].startswith("_")}
    assert found >= set(views.VIEWS) | set(views.TABLES)


def test_shows_the_comments(db):
    query = "SELECT comment FROM duckdb_views() WHERE view_name = 'cut_time_waste'"
    assert duckdb(db, query, "-readonly") == [
        {"comment": "one row per restore: what it threw away, each dispatch counted once"}
    ]
    query = "SELECT comment FROM duckdb_columns() WHERE table_name = 'cut_time_waste' AND column_name = 'stop_t'"
    assert duckdb(db, query, "-readonly") == [{"comment": "last event of the parent"}]


def test_answers_cut_time_waste(db):
    rows = duckdb(db, "SELECT * FROM cut_time_waste ORDER BY experiment, restore_t", "-readonly")
    assert len(rows) == 8
    (example,) = [row for row in rows if row["experiment"] == "pr-example"]
    assert (example["run"], example["parent_run"], example["thrown_away_s"]) == ("b2", "a1", "28.0")


def test_a_reader_does_not_stand_in_the_way_of_idle_traces(db):
    with rta.connect(db) as traces:
        assert len(traces.runs()) == 12
        assert duckdb(db, "SELECT count(*) AS n FROM runs") == [{"n": "12"}]


def test_from_lines_without_python(tmp_path):
    """The SQL files alone give every public view the rows that `load` gives."""
    sql = "".join(path.read_text() for path in [*sorted((ROOT / "sql").glob("[0-9]*.sql")), ROOT / "sql/load.sql"])
    for sample in SAMPLES:
        shutil.copytree(sample, tmp_path / sample.name)
    variable = f"SET VARIABLE trace_files = '{tmp_path}/*/*.jsonl';\n"
    done = subprocess.run(
        [DUCKDB, "-no-init", "-bail", tmp_path / "x.duckdb"], input=variable + sql, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    with rta.load(SAMPLES) as ours:
        for view in views.VIEWS:
            query = f"SELECT * FROM {view} ORDER BY {views.VIEWS[view]}"
            theirs = duckdb(tmp_path / "x.duckdb", query, "-readonly")
            assert len(theirs) == len(ours.view(view)), view
        seconds = duckdb(tmp_path / "x.duckdb", "SELECT sum(thrown_away_s) AS s FROM cut_time_waste", "-readonly")
        assert float(seconds[0]["s"]) == pytest.approx(ours.cut_time_waste()["thrown_away_s"].sum(), rel=1e-9)
