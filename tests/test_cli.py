"""The command line: words and figures of the main job, the three forms, errors of one line, hostile ids, pipes."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import rtrace_analytics as rta
from rtrace_analytics import cli
from rtrace_analytics.cli import output

SAMPLES = Path(__file__).parent.parent / "data/samples"
EXAMPLE = SAMPLES / "pr-example"
RTRACE = Path(sys.executable).with_name("rtrace")
HOSTILE = "\x1b]0;pwned\x07\x1b[31m\u202eevil\n'; DROP TABLE events; --<script>"


@pytest.fixture
def rtrace(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["rtrace", *map(str, arguments)])
        with pytest.raises(SystemExit) as done:
            cli.main()
        out, err = capsys.readouterr()
        return done.value.code, out, err

    return run


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    path = tmp_path_factory.mktemp("db") / "traces.duckdb"
    with rta.connect(path) as traces:
        traces.load([SAMPLES / name for name in ("names-say-nothing", "pr-example", "stale-drops", "two-kills")])
    return path


def test_waste_tells_the_example(rtrace):
    code, out, err = rtrace("waste", EXAMPLE)
    assert (code, err) == (0, "")
    assert (
        out
        == """\
EXPERIMENT pr-example: 2 runs, 1 restore

Chain of runs
  a1  10 to 43, 6 events
      restored nothing
  b2  60 to 90, 5 events
      restored the snapshot of step 4 of a1, cut at 40 (path /ckpt/snapshot_000004)
      found by the number in its path

Restore by b2 at 60
  rollouts lost          1: 0 finished, 0 started after the cut
  thrown away            28 s ran before the cut
  never saved            3 s ran after the cut, at most 20 s
  together               31 s, 35.2% of all rollout time
  not deduplicated       28 s thrown away, if every report counted
  reported as abandoned  1: 1 counted

Where all rollout time went (1 min 28 s (88 s), concurrent rollouts added up)
  kept              3 attempts  57 s  64.8%
  lost to restores  1 attempt   31 s  35.2%

Quality
  nothing was rejected, unresolved or contradicted
"""
    )


def test_waste_tells_what_is_contradicted_and_unreported(rtrace):
    code, out, _ = rtrace("waste", SAMPLES / "stale-drops")
    assert code == 0
    assert "found by the step and number in its path; 3 things speak against it" in out
    assert "rollouts lost          47: 24 finished, 16 started after the cut, 8 never reported" in out
    assert "thrown away            12 min 53 s (772.907 s) ran before the cut" in out
    assert "lost_in_silence       20  run " in out


def test_waste_of_an_unknown_snapshot(rtrace, tmp_path):
    lines = (EXAMPLE / "rollout_trace.jsonl").read_text().splitlines(keepends=True)
    trace = tmp_path / "lost" / "rollout_trace.jsonl"
    trace.parent.mkdir()
    trace.write_text("".join(line for line in lines if "snapshot_published" not in line))
    code, out, _ = rtrace("waste", trace)
    assert code == 0
    assert "restored a snapshot that is not in these traces (path /ckpt/snapshot_000004)" in out
    assert "reported as abandoned  1: 0 counted, 1 unresolved" in out
    assert "lost                   unknown: its cut is not known" in out
    assert "restore_without_cut" in out
    code, out, _ = rtrace("waste", trace, "--format", "json")
    (restore,) = json.loads(out)["restores"]
    assert (restore["reported"], restore["unresolved"], restore["thrown_away_s"], restore["match"]) == (
        1,
        1,
        None,
        None,
    )


def test_waste_json_is_one_object(rtrace, db):
    code, out, err = rtrace("waste", EXAMPLE, "--format", "json")
    told = json.loads(out)
    assert (code, err, list(told)) == (0, "", ["restores", "totals", "quality"])
    assert [(row["run"], row["thrown_away_s"], row["naive_s"]) for row in told["restores"]] == [("b2", 28.0, 28.0)]
    assert [(row["fate"], row["spans"], row["seconds"]) for row in told["totals"]] == [
        ("kept", 3, 57),
        ("restart", 1, 31),
    ]
    assert {row["check"]: row["count"] for row in told["quality"]}["conservation"] == 0


def test_waste_into_and_from_a_database(rtrace, tmp_path):
    db = tmp_path / "x.duckdb"
    code, first, _ = rtrace("waste", EXAMPLE, "--db", db)
    assert code == 0
    assert rtrace("waste", EXAMPLE, "--db", db)[1] == first  # nothing twice
    assert rtrace("waste", "--db", db)[1] == first
    rtrace("waste", SAMPLES / "two-kills", "--db", db, "--experiment", "other")
    assert rtrace("waste", EXAMPLE, "--db", db)[1] == first  # told is what was named
    assert rtrace("waste", "--db", db, "--experiment", "pr-example")[1] == first
    assert rtrace("waste", "--db", db)[1].count("EXPERIMENT") == 2


def test_waste_strict_fails_on_rejects(rtrace, tmp_path):
    trace = tmp_path / "x" / "rollout_trace.jsonl"
    trace.parent.mkdir()
    trace.write_text((EXAMPLE / "rollout_trace.jsonl").read_text() + "not an event\n")
    code, out, err = rtrace("waste", trace)
    assert (code, err) == (0, "")
    assert "rejects  1  " in out
    code, out, err = rtrace("waste", trace, "--strict")
    assert (code, err) == (1, "rtrace: 1 reject (--strict)\n")


def test_waste_labels_and_renames(rtrace, tmp_path):
    trace = tmp_path / "x" / "rollout_trace.jsonl"
    trace.parent.mkdir()
    trace.write_text((EXAMPLE / "rollout_trace.jsonl").read_text().replace("attempt_dispatched", "started"))
    db = tmp_path / "x.duckdb"
    code, out, _ = rtrace(
        "waste", trace, "--db", db, "--label", "interval_s=30", "--rename", "started=attempt_dispatched"
    )
    assert code == 0 and "28 s ran before the cut" in out
    assert rtrace("show", "labels", "--db", db, "--format", "csv")[1] == "experiment,key,value\nx,interval_s,30\n"


def test_show_json_is_an_array_of_rows(rtrace, db):
    code, out, err = rtrace("show", "cut_time_waste", "--db", db, "--format", "json", "--experiment", "pr-example")
    assert (code, err) == (0, "")
    (row,) = json.loads(out)
    assert (row["experiment"], row["cut_t"], row["thrown_away_s"], row["never_saved_s"]) == ("pr-example", 40, 28, 3)
    assert json.loads(rtrace("show", "rejects", "--db", db, "--format", "json")[1]) == []


def test_show_csv_and_json_print_every_row_a_table_fifty(rtrace, db):
    out = rtrace("show", "events", "--db", db, "--format", "csv")[1]
    assert len(list(csv.DictReader(io.StringIO(out)))) == 11 + 517 + 766 + 813
    assert len(json.loads(rtrace("show", "events", "--db", db, "--format", "json")[1])) == 2107
    lines = rtrace("show", "events", "--db", db)[1].splitlines()
    assert len(lines) == 2 + 50 + 1
    assert lines[-1] == "(50 rows of 2,107: --format csv or json prints all)"
    assert rtrace("sql", "SELECT * FROM events; -- all", "--db", db)[1].splitlines()[-1] == lines[-1]


def test_table_of_a_few_rows(rtrace, db):
    query = "SELECT run, fate, duration_s FROM attempt_spans WHERE experiment = 'pr-example' ORDER BY start_t"
    assert (
        rtrace("sql", query, "--db", db)[1]
        == """\
run  fate     duration_s
---  -------  ----------
a1   kept             15
a1   kept             16
a1   restart          31
b2   kept             26
(4 rows)
"""
    )


def test_sql_json_has_no_nan_and_takes_any_type(rtrace, db):
    query = (
        "SELECT 'nan'::DOUBLE AS a, 'inf'::FLOAT AS b, NULL AS c, 1::HUGEINT AS d, [1.5, 'nan'::DOUBLE] AS e, "
        "{'x': DATE '2026-01-02'} AS f, 1.25::DECIMAL(5,2) AS g, true AS h, 'a'::BLOB AS i"
    )
    (row,) = json.loads(rtrace("sql", query, "--db", db, "--format", "json")[1])
    assert row == {
        "a": None, "b": None, "c": None, "d": 1, "e": [1.5, None], "f": {"x": "2026-01-02"},
        "g": "1.25", "h": True, "i": "b'a'",
    }  # fmt: skip
    assert rtrace("sql", "SELECT NULL AS a, true AS b, 'x,\"y' AS c", "--db", db, "--format", "csv")[1] == (
        'a,b,c\n,true,"x,""y"\n'
    )


def test_sql_may_describe(rtrace, db):
    assert "thrown_away_s" in rtrace("sql", "DESCRIBE cut_time_waste", "--db", db)[1]
    assert "cut_time_waste" in rtrace("sql", "SHOW TABLES", "--db", db, "--format", "csv")[1]


def test_forget(rtrace, tmp_path):
    db = tmp_path / "x.duckdb"
    rtrace("waste", EXAMPLE, "--db", db)
    code, out, err = rtrace("forget", "pr-example", "--db", db, "--format", "json")
    assert (code, json.loads(out), err) == (0, [{"experiment": "pr-example", "events_forgotten": 11}], "")
    assert rtrace("waste", "--db", db)[1] == "no traces are loaded\n"


def test_every_command_has_help(rtrace):
    code, out, _ = rtrace("--help")
    names = [line.split()[0] for line in out.split("Commands:")[1].splitlines() if line.strip()]
    assert code == 0 and {"waste", "load", "show", "sql", "forget", "export"} <= set(names)
    assert rtrace()[1] == out
    for name in names:
        code, out, _ = rtrace(name, "--help")
        assert code == 0 and out.startswith(f"Usage: rtrace {name}") and len(out.splitlines()) > 4


@pytest.fixture
def bad(tmp_path, db):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/readme.txt").write_text("no trace here\n")
    (tmp_path / "binary.jsonl").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "other.jsonl").write_text('{"name": "x", "value": 1}\n' * 5)
    (tmp_path / "text.duckdb").write_text("not a database\n" * 300)
    duckdb.connect(tmp_path / "foreign.duckdb").execute("CREATE TABLE x(i INT)").close()
    version = tmp_path / "version.duckdb"
    rta.connect(version).close()
    duckdb.connect(version).execute("UPDATE _about SET value = '0' WHERE name = 'format'").close()
    return {"tmp": tmp_path, "db": db}


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("waste {tmp}/missing", "missing"),
        ("waste {tmp}/empty", "empty"),
        ("waste {tmp}/notes", "notes"),
        ("waste {tmp}/binary.jsonl", "binary.jsonl"),
        ("waste {tmp}/other.jsonl", "other.jsonl"),
        ("waste {tmp}/missing --db {tmp}/new.duckdb", "missing"),
        ("waste", "give PATH... or --db FILE"),
        ("waste --db {tmp}/no.duckdb", "no database"),
        ("waste {tmp} --label x", "--label 'x' is not of the form NAME=VALUE"),
        ("waste {tmp} --rename =y", "--rename '=y' is not of the form FROM=TO"),
        ("waste {tmp} --format csv", "csv"),
        ("waste --db {db} --experiment nope", "no experiment 'nope': there are 'names-say-nothing', 'pr-example'"),
        ("show runz --db {db}", "no view or table 'runz': there are attempt_spans, cut_time_waste"),
        ("show _spans --db {db}", "no view or table '_spans'"),
        ("show runs", "--db"),
        ("show runs --db {tmp}/no.duckdb", "no database"),
        ("show runs --db {tmp}", "Is a directory"),
        ("show runs --db {tmp}/text.duckdb", "is not a DuckDB database"),
        ("show runs --db {tmp}/foreign.duckdb", "not of rtrace"),
        ("show runs --db {tmp}/version.duckdb", "has database format 0, this rtrace reads 2"),
        ("show runs --db {db} --experiment nope", "no experiment 'nope'"),
        ("show runs --db {db} --run nope", "no run 'nope'"),
        ("sql SELEC --db {db}", "Parser Error"),
        ("sql SELECT_1 --db {db}", "Binder Error"),
        ("sql 'SELECT 1; SELECT 2' --db {db}", "one query at a time: 2 were given"),
        ("sql '' --db {db}", "one query at a time: 0 were given"),
        ("sql 'DELETE FROM events' --db {db}", "DELETE is not a query that only reads"),
        ("sql 'COPY runs TO x' --db {db}", "COPY is not a query that only reads"),
        ("sql \"ATTACH 'x'\" --db {db}", "ATTACH is not a query that only reads"),
        ("sql 'SELECT CAST(run AS INT) FROM runs' --db {db}", "Conversion Error"),
        ("forget nope --db {db}", "no experiment 'nope'"),
        ("forget nope --db {tmp}/no.duckdb", "no database"),
        ("nonsense", "No such command 'nonsense'"),
        ("show", "Missing argument"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(rtrace, bad, command, told):
    import shlex

    arguments = [argument.format(**bad) for argument in shlex.split(command)]
    code, out, err = rtrace(*[a if a != "SELECT_1" else "SELECT nope" for a in arguments])
    assert (code, out) == (2, "")
    assert err.startswith("rtrace: ") and err.count("\n") == 1 and told in err
    assert not (bad["tmp"] / "no.duckdb").exists() and not (bad["tmp"] / "new.duckdb").exists()


def test_hostile_ids_do_not_reach_the_terminal(rtrace, tmp_path):
    text = (EXAMPLE / "rollout_trace.jsonl").read_text()
    trace = tmp_path / "x" / "rollout_trace.jsonl"
    trace.parent.mkdir()
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        line["run"] = line["run"].replace("a1", HOSTILE)
        if "prompt_id" in line:
            line["prompt_id"] = line["group_id"] = HOSTILE
        if "path" in line:
            line["path"] = HOSTILE + line["path"]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    db = tmp_path / "x.duckdb"
    told = [rtrace("waste", trace, "--db", db, "--experiment", HOSTILE)]
    told += [rtrace("show", view, "--db", db) for view in ("runs", "restores", "attempt_spans", "events", "quality")]
    told += [
        rtrace("sql", f'SELECT 1 AS "{HOSTILE.replace(chr(34), "")}"', "--db", db),
        rtrace("show", HOSTILE, "--db", db),
    ]
    for _, out, err in told:
        assert (out + err).replace("\n", "").isprintable()
    assert "28 s ran before the cut" in told[0][1]
    rows = json.loads(rtrace("show", "runs", "--db", db, "--format", "json")[1])
    assert {row["run"] for row in rows} == {HOSTILE, "b2"}  # programs get the id as it is
    rows = csv.DictReader(io.StringIO(rtrace("show", "runs", "--db", db, "--format", "csv")[1]))
    assert {row["run"] for row in rows} == {HOSTILE, "b2"}


def test_a_closed_pipe_is_no_error(db):
    command = f"'{RTRACE}' show events --db '{db}' --format csv | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("experiment,run,seq,t,event")


def test_no_progress_bar_in_piped_output():
    done = subprocess.run([RTRACE, "waste", SAMPLES], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\r" not in done.stdout and "%|" not in done.stdout


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (float("nan"), "unknown"),
        (0.0, "0 s"),
        (28.0, "28 s"),
        (0.0123456, "0.01235 s"),
        (59.9996, "60 s"),
        (60, "1 min 0 s (60 s)"),
        (723.25, "12 min 3 s (723.25 s)"),
        (3599.9, "1 h 0 min (3599.9 s)"),
        (7322.5, "2 h 2 min (7322.5 s)"),
    ],
)
def test_lengths_are_readable_and_exact(value, text):
    assert output.seconds(value) == text


def test_moments_are_as_in_the_trace_and_dates_where_they_can_be():
    assert output.moment(40.0) == "40"
    assert output.moment(1_795_984_652.125) == "2026-11-29 20:37:32 UTC (1795984652.125)"
    assert output.moment(None) == "unknown"
    assert output.moment(1e300).startswith("1")


def test_doctor_in_ten_lines(rtrace):
    code, out, err = rtrace("doctor")
    lines = out.splitlines()
    assert (code, err, len(lines)) == (0, "", 10)
    assert lines[0].startswith("rtrace 0.1.0, Python 3.")
    assert lines[1].startswith("database format 2, SQL in ")
    assert [line.split()[0] for line in lines[2:7]] == ["duckdb", "pyarrow", "pandas", "matplotlib", "scipy"]
    assert [line.split()[1] for line in lines[7:]] == ["notebook:", "fast:", "ray:"]
