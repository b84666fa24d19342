"""`Traces`: a DataFrame per view, filters, SQL, files and their locks, what it looks like."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import rtrace_analytics as rta
from rtrace_analytics import views

SAMPLES = Path(__file__).parent.parent / "data/samples"
RTRACE = Path(sys.executable).with_name("rtrace")


@pytest.fixture
def traces():
    with rta.load([SAMPLES / "pr-example", SAMPLES / "two-kills"]) as traces:
        yield traces


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "traces.duckdb"
    with rta.connect(path) as traces:
        traces.load(SAMPLES / "pr-example")
    return path


def rtrace(*arguments):
    return subprocess.run([RTRACE, *arguments], capture_output=True, text=True)


def test_runs(traces):
    frame = traces.runs(experiment="pr-example")
    pd.testing.assert_frame_equal(
        frame,
        pd.DataFrame(
            {
                "experiment": ["pr-example"] * 2,
                "run": ["a1", "b2"],
                "parent_run": [None, "a1"],
                "first_t": [10.0, 60.0],
                "last_t": [43.0, 90.0],
                "events": pd.array([6, 5], "Int64"),
                "restored_step": pd.array([None, 4], "Int64"),
                "cut_t": [None, 40.0],
                "mean_in_flight": [62 / 33, 26 / 30],
            }
        ),
        check_column_type=False,
        check_index_type=False,
    )


def test_restart_abandonment(traces):
    row = traces.restart_abandonment(experiment="pr-example").iloc[0]
    assert row["cut_t"] - row["start_t"] == row["thrown_away_s"] == 28
    assert (row["dispatched_run"], row["run"], row["times_reported"]) == ("a1", "b2", 1)


def test_every_view_and_table_has_a_method_an_order_and_a_frame(traces):
    with traces.opened() as con:
        assert set(views.names(con)) == set(views.VIEWS) | set(views.TABLES)
    for name in [*views.VIEWS, *views.TABLES]:
        method = getattr(rta.Traces, name)
        assert method.__name__ == name and method.__doc__
        frame = method(traces)
        pd.testing.assert_frame_equal(frame, traces.view(name))
        order = (views.VIEWS.get(name) or views.TABLES[name]).split(", ")
        assert {column.split()[0].strip('"') for column in order} <= set(frame.columns)
        assert frame[order[0]].is_monotonic_increasing


def test_filters_by_experiment_and_run(traces):
    assert set(traces.attempt_spans()["experiment"]) == {"pr-example", "two-kills"}
    assert len(traces.attempt_spans(experiment="pr-example")) == 4
    assert len(traces.attempt_spans(experiment=["pr-example", "two-kills"])) == 4 + 228
    assert len(traces.attempt_spans(run="b2")) == 1
    assert len(traces.attempt_spans(experiment="pr-example", run=["a1", "b2"])) == 4
    assert len(traces.cut_time_waste(run="a1")) == 0  # it restored nothing
    assert len(traces.rejects(experiment="pr-example")) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.view("runz"), "no view or table 'runz': there are attempt_spans, cut_time_waste, "),
        (lambda t: t.runs(experiment="x"), "no experiment 'x': there are 'pr-example', 'two-kills'"),
        (lambda t: t.runs(run="x"), "no run 'x': there are '7492728a', 'a1', 'b2', 'f4bea973'"),
        (lambda t: t.runs(experiment="'; DROP TABLE events; --"), 'no experiment "\'; DROP TABLE events; --"'),
        (lambda t: t.rollout_seconds(run="b2"), "rollout_seconds has no column 'run': leave run='b2' away"),
        (lambda t: t.forget("x"), "no experiment 'x': there are"),
        (lambda t: t.sql("SELEC 1"), 'SQL: Parser Error: syntax error at or near "SELEC"'),
        (lambda t: t.sql("SELECT * FROM runz"), "SQL: Catalog Error: Table with name runz does not exist!"),
    ],
)
def test_errors_are_one_line_with_the_way_out(traces, call, message):
    with pytest.raises(rta.RtraceError) as error:
        call(traces)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_sql_is_a_relation(traces):
    relation = traces.sql("SELECT sum(thrown_away_s) AS s FROM cut_time_waste WHERE experiment = ?", ["pr-example"])
    assert isinstance(relation, duckdb.DuckDBPyRelation)
    assert relation.df()["s"].tolist() == [28.0]
    assert traces.sql("SELECT 1 AS one").to_arrow_table().to_pydict() == {"one": [1]}


def test_load_again_adds_nothing(traces):
    before = traces.events()
    traces.load(SAMPLES / "pr-example")
    pd.testing.assert_frame_equal(traces.events(), before)


def test_forget_lets_one_experiment_go_and_leaves_the_other(traces):
    before = {name: traces.view(name, experiment="two-kills") for name in [*views.VIEWS, *views.TABLES]}
    assert traces.forget("pr-example") == 11
    for name, frame in before.items():
        pd.testing.assert_frame_equal(traces.view(name), frame)
    with traces.opened() as con:
        tables = con.execute(
            "SELECT table_name FROM duckdb_columns() WHERE column_name = 'experiment' AND table_name IN "
            "(SELECT table_name FROM duckdb_tables())"
        ).fetchall()
        for (table,) in tables:
            assert con.execute(f"SELECT count(*) FROM {table} WHERE experiment = 'pr-example'").fetchall() == [(0,)]
    traces.load(SAMPLES / "pr-example")
    assert traces.cut_time_waste(experiment="pr-example")["thrown_away_s"].tolist() == [28.0]


def test_empty_traces_have_every_view(tmp_path):
    with rta.connect(tmp_path / "new.duckdb") as traces:
        for name in [*views.VIEWS, *views.TABLES]:
            assert len(traces.view(name)) == 0 and len(traces.view(name).columns) > 1
        assert repr(traces) == (
            "<Traces: experiments: 0, runs: 0, restores: 0, lost to restores: no rollouts, rejects: 0>"
        )
        with pytest.raises(rta.InputError, match="no experiment 'a': load a trace first"):
            traces.runs(experiment="a")


def test_whole_numbers_are_whole_and_can_be_missing(traces):
    frame = traces.restores(experiment="pr-example")
    assert str(frame["snapshot_step"].dtype) == "Int64"
    assert str(traces.attempt_spans()["end_is_bound"].dtype) == "boolean"
    assert str(traces.attempt_spans()["duration_s"].dtype) == "float64"


def test_repr_and_card(file):
    traces = rta.connect(file)
    assert repr(traces) == (
        "<Traces: experiments: 1, runs: 2, restores: 1, lost to restores: 35.2% of all rollout seconds, rejects: 0>"
    )
    page = traces._repr_html_()
    assert page.startswith("<table>") and page.endswith("</table>")
    for told in (">experiments<", ">runs<", ">restores<", ">35.2% of all rollout seconds<", ">rejects<"):
        assert told in page
    traces.close()
    assert repr(traces) == "<Traces: closed>"
    assert "closed" in traces._repr_html_()


def test_closed_traces_say_so(file):
    traces = rta.connect(file)
    traces.close()
    traces.close()
    with pytest.raises(rta.InputError, match="these traces are closed: load or connect again"):
        traces.runs()
    with pytest.raises(rta.InputError, match="closed"):
        traces.sql("SELECT 1")
    with rta.load(SAMPLES / "pr-example") as memory:
        pass
    with pytest.raises(rta.InputError, match="closed"):
        memory.runs()


def test_a_file_is_free_between_calls(file):
    with rta.connect(file) as traces:
        assert len(traces.runs()) == 2
        done = rtrace("forget", "pr-example", "--db", file)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(traces.runs()) == 0


def test_a_file_in_use_says_by_whom_and_the_way_out(file):
    with rta.connect(file) as traces:
        result = traces.sql("SELECT * FROM runs")
        done = rtrace("forget", "pr-example", "--db", file)
        assert done.returncode == 2
        assert "is locked by" in done.stderr and "(PID " in done.stderr and "close it there" in done.stderr
        assert done.stderr.count("\n") == 1
        with pytest.raises(rta.DatabaseError, match="is open in this process: let go of the results"):
            traces.forget("pr-example")
        assert len(result.fetchall()) == 2
        del result
        assert traces.forget("pr-example") == 11


def test_sql_over_a_file_only_reads(file):
    with rta.connect(file) as traces, pytest.raises(rta.DatabaseError, match="read-only"):
        traces.sql("DELETE FROM events")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p.write_text("hello, not a database\n" * 200), "is not a DuckDB database: name another file"),
        (lambda p: duckdb.connect(p).execute("CREATE TABLE x(i INT)").close(), "but not of rtrace: name another file"),
        (lambda p: p.mkdir(), "traces.duckdb"),
    ],
)
def test_not_a_database_of_ours(tmp_path, make, message):
    path = tmp_path / "traces.duckdb"
    make(path)
    with pytest.raises(rta.DatabaseError) as error:
        rta.connect(path)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_database_of_another_version(file):
    con = duckdb.connect(file)
    con.execute("UPDATE _about SET value = '999' WHERE name = 'format'")
    con.close()
    with pytest.raises(rta.DatabaseError, match="has database format 999, this rtrace reads 2: load the traces anew"):
        rta.connect(file)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(rta.DatabaseError, match=r"no folder .*nowhere' for the database: make it first"):
        rta.connect(tmp_path / "nowhere/x.duckdb")


def test_a_failed_load_leaves_nothing(tmp_path):
    path = tmp_path / "x.duckdb"
    with rta.connect(path) as traces:
        with pytest.raises(rta.InputError):
            traces.load(tmp_path / "no-such-trace")
        assert len(traces.trace_files()) == 0
