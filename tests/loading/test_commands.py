"""The commands load, check and follow, as a user calls them."""

import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rtrace_analytics import database, loading
from rtrace_analytics.cli import rtrace
from rtrace_analytics.errors import DatabaseError
from rtrace_analytics.loading.check import check
from rtrace_analytics.loading.follow import follow
from tests.loading.worlds import dispatches, line, one, write

FAULTS = Path(__file__).parent.parent / "data" / "faults"
RTRACE = (sys.executable, "-c", "from rtrace_analytics.cli import main; main()")
BASE = (FAULTS / "base" / "t.jsonl").read_bytes().splitlines(keepends=True)


def run(*args: object) -> Result:
    return CliRunner().invoke(rtrace, list(map(str, args)), standalone_mode=False)


def test_load_prints_files_and_sums(tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    options = ("--db", db, "--experiment", "a", "--label", "interval_s=120", "--format", "json")
    done = run("load", FAULTS / "torn-line-glued", *options)
    told = json.loads(done.stdout)
    assert {key: told[key] for key in ("events", "rejects", "pending", "warnings")} == {
        "events": 11, "rejects": 1, "pending": 0, "warnings": []
    }  # fmt: skip
    assert [(file["experiment"], file["events"]) for file in told["files"]] == [("a", 11)]
    again = json.loads(run("load", FAULTS / "torn-line-glued", *options).stdout)
    assert (again["events"], again["rejects"]) == (0, 0)
    table = run("load", FAULTS / "torn-line-glued", "--db", db).stdout
    assert "0 new events, 0 rejects, 0 pending" in table
    with database.connect(db) as con:
        assert con.execute("SELECT * FROM labels").fetchall() == [("a", "interval_s", "120")]


def test_strict(tmp_path: Path) -> None:
    for options, code in (((), 0), (("--strict",), 1)):
        done = subprocess.run(
            [*RTRACE, "load", FAULTS / "torn-line-glued", "--db", tmp_path / f"{code}.duckdb", *options],
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        assert bool(done.stderr) == bool(code)


def test_rename_is_for_what_is_loaded_and_what_comes(tmp_path: Path) -> None:
    path = write(tmp_path / "e/t.jsonl", line(1, "a", "rollout.start", prompt_id="1", generation_index=0, attempt=0))
    db = tmp_path / "t.duckdb"
    run("load", path, "--db", db)
    run("load", path, "--db", db, "--rename", "rollout.start=attempt_dispatched")
    with open(path, "ab") as file:
        file.write(line(2, "a", "rollout.start", prompt_id="2", generation_index=0, attempt=0, other=1))
    run("load", path, "--db", db)
    with database.connect(db) as con:
        assert con.execute("SELECT DISTINCT event FROM events").fetchall() == [("attempt_dispatched",)]
        assert one(con, "SELECT count(*) FROM attempt_spans") == 2


def test_experiments_of_files(tmp_path: Path) -> None:
    for number, folder in enumerate(("x/exp_001", "x/exp_002", "y")):
        write(tmp_path / folder / "rollout_trace.jsonl", *dispatches(f"r{number}", 0, 1))
    with database.connect() as con:
        report = loading.load(con, tmp_path)
        assert [file.experiment for file in report.files] == ["x", "x", "y"]
    with database.connect() as con:
        report = loading.load(con, f"{tmp_path}/**/*.jsonl", experiment_from=r"/(?P<experiment>\w+)/rollout")
        assert [file.experiment for file in report.files] == ["exp_001", "exp_002", "y"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["missing.jsonl"], "no file or folder"),
        (["empty"], "no trace in folder"),
        (["*.nothing"], "no file matches"),
        (["good.jsonl", "--experiment", "a", "--experiment-from", "(b)"], "both an experiment and a pattern"),
        (["good.jsonl", "--experiment-from", "b"], "has no group"),
        (["good.jsonl", "--experiment-from", "("], "is not one"),
        (["good.jsonl", "--experiment-from", "(zzz)"], "finds no experiment"),
        (["good.jsonl", "--label", "a"], "NAME=VALUE"),
        (["binary.jsonl"], "no event in it"),
        (["other.jsonl"], "no event in it"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(tmp_path: Path, args: list[str], said: str) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path / "good.jsonl", *dispatches("a", 0, 1))
    write(tmp_path / "binary.jsonl", bytes(range(256)) * 40)
    write(tmp_path / "other.jsonl", b'{"loss": 1}\n' * 9)
    done = subprocess.run(
        [*RTRACE, "load", *args, "--db", "t.duckdb"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert not (tmp_path / "t.duckdb").exists()


def test_disk_full_is_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "e/t.jsonl", *dispatches("a", 0, 30_000))
    db = tmp_path / "t.duckdb"
    with database.connect(db):
        pass

    def small_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (db.stat().st_size + 200_000,) * 2)

    done = subprocess.run(
        [*RTRACE, "load", path, "--db", db],
        capture_output=True,
        text=True,
        preexec_fn=small_disk,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "could not be written" in done.stderr
    with database.connect(db) as con:
        assert one(con, "SELECT count(*) FROM events") == 0
        assert loading.load(con, path).events == 30_000


def test_locked_says_by_whom(tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    with database.connect(db):
        done = subprocess.run(
            [*RTRACE, "load", FAULTS / "base", "--db", db],
            capture_output=True,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "locked" in done.stderr


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (BASE, set()),
        (BASE[:5], set()),
        ([*BASE, b'{"t": 91, "ru'], set()),
        ([*BASE, line(91, "b2", "gpu_lost")], set()),
        ([*BASE, b'{"t": 91, "ru\n'], {"rejects", "reject: torn record"}),
        ([*BASE, b'{"t": 91, "run": "b2", "event": "x", "run": "b2"}\n'], {"duplicate_keys"}),
        ([*BASE, b'{"t": 91, "run": "b2", "event": "x", "y": {"z": 1, "z": 2}}\n'], {"duplicate_keys"}),
        ([*BASE, b'{"t": 91, "run": "b2", "event": "x", "y": [NaN]}\n'], {"non_finite_values"}),
        ([*BASE, line(1764000000000, "ms", "x")], {"time_unit_suspect"}),
    ],
)
def test_check(tmp_path: Path, lines: list[bytes], wrong: set[str]) -> None:
    path = write(tmp_path / "e/t.jsonl", *lines)
    found = check(path)
    assert {finding.check for finding in found if finding.wrong} == wrong
    done = run("check", path) if not wrong else None
    assert done is None or done.exit_code == 0
    if "duplicate_keys" in wrong:
        (finding,) = found[-1:]
        assert finding.example is not None
        assert f"line {len(BASE) + 1}" in finding.example


def test_check_exits_1_when_anything_is_wrong(tmp_path: Path) -> None:
    path = write(tmp_path / "e/t.jsonl", *BASE, b"junk\n")
    done = subprocess.run([*RTRACE, "check", path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert "junk" in done.stdout


def test_follow_takes_up_what_comes_and_tells_each_restore_once(tmp_path: Path) -> None:
    path, db = tmp_path / "e/t.jsonl", tmp_path / "t.duckdb"
    write(path, *BASE[:6])
    waits: list[float] = []
    takes = follow(db, path, every_s=0.5, wait=lambda every_s: waits.append(every_s))
    take = next(takes)
    assert (take.events, take.new_events, take.in_flight, take.lost_s, take.restores) == (6, 6, 1, None, [])
    assert take.snapshot_age_s == 0
    with database.connect(db, read_only=True) as con:  # free between takes
        assert one(con, "SELECT count(*) FROM events") == 6
    write(path, *BASE[:9], BASE[9][:10])
    take = next(takes)
    assert (take.new_events, take.rejects, take.in_flight) == (3, 0, 1)
    (restore,) = take.restores
    assert (restore.run, restore.parent_run, restore.lost_attempts) == ("b2", "a1", 1)
    assert (restore.thrown_away_s, restore.never_saved_s) == (28, 3)
    write(path, *BASE)
    take = next(takes)
    assert (take.events, take.new_events, take.in_flight, take.lost_s, take.restores) == (11, 2, 0, 31, [])
    assert waits == [0.5] * 2
    path.unlink()
    assert "no file" in (next(takes).trouble or "")


def test_follow_stops_on_ctrl_c(tmp_path: Path) -> None:
    path, db = tmp_path / "e/t.jsonl", tmp_path / "t.duckdb"
    write(path, *BASE[:6])
    process = subprocess.Popen(
        [*RTRACE, "follow", path, "--db", db, "--every", "0.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert "1 rollouts in flight" in process.stdout.readline()
    write(path, *BASE)
    assert process.stdout.readline().startswith("RESTORE b2 (e) of a1, snapshot step 4: 1 rollouts lost")
    assert "11 events" in process.stdout.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=20)
    assert (process.returncode, rest, errors) == (0, "", "")
    with database.connect(db) as con:
        assert one(con, "SELECT count(*) FROM events") == 11


def test_follow_needs_something_to_follow(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="no folder"):
        next(follow(tmp_path / "nowhere/t.duckdb", shutil.copy(FAULTS / "base/t.jsonl", tmp_path)))
