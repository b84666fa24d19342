"""A database attached to another session: its views work there, they name no catalog; two databases side by side."""

import csv
import io
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import rtrace_analytics as rta
from rtrace_analytics import views

TRACES = Path(__file__).parent / "data" / "traces"
DUCKDB = Path(sys.executable).with_name("duckdb")
EVERY = sorted(views.VIEWS | views.TABLES)
MIX = """
SELECT 'one' AS source, experiment, run, lost_s FROM one.cut_time_waste
UNION ALL SELECT 'two', experiment, run, lost_s FROM two.cut_time_waste ORDER BY ALL
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attach")
    for name, trace in (("one", "two-kills"), ("two", "stale-drops")):
        with rta.connect(folder / f"{name}.duckdb") as traces:
            traces.load(TRACES / f"{trace}.jsonl", experiment=trace)
    return folder


@pytest.fixture
def session(folder):
    with duckdb.connect() as con:
        for name in ("one", "two"):
            con.execute(f"ATTACH '{folder}/{name}.duckdb' AS {name} (READ_ONLY)")
        yield con


@pytest.mark.parametrize("view", EVERY)
def test_a_view_gives_the_same_rows_attached(view, folder, session):
    query = f"SELECT COLUMNS(*)::VARCHAR FROM {{}}{view} ORDER BY ALL"
    attached = session.sql(query.format("one.")).fetchall()
    with duckdb.connect(folder / "one.duckdb", read_only=True, config={}) as con:
        assert len(attached) == len(con.sql(query.format("")).fetchall())


def test_two_databases_side_by_side(folder, session):
    rows = session.sql(MIX).fetchall()
    assert {row[:2] for row in rows} == {("one", "two-kills"), ("two", "stale-drops")}
    assert all(row[3] > 0 for row in rows)


def test_with_the_command_line(folder):
    counts = " UNION ALL ".join(f"SELECT '{view}' AS view, count(*) AS rows FROM two.{view}" for view in EVERY)
    attach = f"ATTACH '{folder}/one.duckdb' AS one (READ_ONLY); ATTACH '{folder}/two.duckdb' AS two (READ_ONLY);"

    def run(query):
        done = subprocess.run(
            [DUCKDB, "-no-init", "-csv", "-c", attach + query], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        return list(csv.DictReader(io.StringIO(done.stdout)))

    with rta.connect(folder / "two.duckdb") as traces:
        assert {row["view"]: int(row["rows"]) for row in run(counts)} == {
            view: len(traces.view(view)) for view in EVERY
        }
    assert {row["source"] for row in run(MIX)} == {"one", "two"}


def test_an_export_beside_a_database(folder, session, tmp_path):
    with rta.connect(folder / "two.duckdb") as traces:
        traces.export_parquet(tmp_path / "out")
    query = "SELECT experiment FROM one.cut_time_waste UNION SELECT experiment FROM read_parquet($1)"
    rows = session.sql(query, params=[f"{tmp_path}/out/cut_time_waste/*/*.parquet"]).fetchall()
    assert sorted(rows) == [("stale-drops",), ("two-kills",)]
