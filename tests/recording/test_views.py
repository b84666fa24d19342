"""The views against the ground truth of simulated worlds, and against themselves where processes were really killed."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from simulated import RESTORE_KEYS, SPAN_KEYS, told, worlds
from worlds import rows

import rtrace_analytics as rta
from rtrace_analytics import database
from rtrace_analytics.recording.options import WorldOptions
from rtrace_analytics.recording.real import run_real
from rtrace_analytics.recording.simulate import simulate

RARE = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def con() -> Any:
    with database.connect() as con:
        yield con


def put(con: Any, events: list[dict[str, Any]]) -> None:
    """Make these events, in their order, all that is in the database."""
    lines = [{"experiment": "x", "seq": n, "file_id": 1, "line": n + 1, **event} for n, event in enumerate(events)]
    names = [row["column_name"] for row in rows(con, "DESCRIBE events")]
    told_lines = pa.Table.from_pylist([{name: line.get(name) for name in names} for line in lines])
    con.execute("BEGIN")
    con.execute("DELETE FROM events")
    con.register("told_lines", told_lines)
    con.execute("INSERT INTO events BY NAME SELECT * FROM told_lines")
    database.derive(con, ["x"])
    con.execute("COMMIT")


def near(value: Any) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value


def assert_rows(got: list[dict[str, Any]], truth: list[dict[str, Any]], keys: tuple[str, ...]) -> None:
    assert [{key: row[key] for key in keys} for row in got] == [{key: near(row[key]) for key in keys} for row in truth]


def assert_views(con: Any, truth: dict[str, list[dict[str, Any]]]) -> None:
    """Check every figure the world knows, row by row."""
    spans = rows(con, "SELECT * FROM attempt_spans ORDER BY start_t, run, split_part(span_id, ':', -1)::BIGINT")
    attempts = truth["attempts"]
    assert_rows(spans, attempts, SPAN_KEYS)
    for span, attempt in zip(spans, attempts, strict=True):
        if attempt["fate"] == "restart":
            assert span["never_saved_s"] <= attempt["never_saved_true_s"] <= span["never_saved_max_s"]
    restores = rows(
        con, "SELECT w.*, r.restore_t FROM cut_time_waste w JOIN restores r USING (run) ORDER BY r.restore_t"
    )
    assert_rows(restores, truth["restores"], RESTORE_KEYS)
    assert all(row["lost_s"] == near(row["thrown_away_s"] + row["never_saved_s"]) for row in restores)
    fates = rows(con, "SELECT fate, spans, seconds FROM rollout_seconds ORDER BY fate")
    assert_rows(fates, truth["rollout_seconds"], ("fate", "spans", "seconds"))
    counted = rows(con, "SELECT run, count(*) AS n FROM restart_abandonment GROUP BY run ORDER BY run")
    assert counted == [
        {"run": row["run"], "n": row["counted"]}
        for row in sorted(truth["restores"], key=lambda row: row["run"])
        if row["counted"]
    ]
    assert_conserved(con)


def assert_conserved(con: Any) -> None:
    """Check that nothing is unaccounted, from the views alone."""
    assert rows(con, """SELECT * FROM quality WHERE "check" = 'conservation' AND count > 0""") == []
    sums = """
        SELECT (SELECT coalesce(sum(duration_s), 0) FROM attempt_spans) AS all_s,
               (SELECT coalesce(sum(seconds), 0) FROM rollout_seconds) AS by_fate_s,
               (SELECT count(*) FROM attempt_spans) AS spans,
               (SELECT count(*) FROM events WHERE event = 'attempt_dispatched') AS dispatches,
               (SELECT coalesce(sum(reported - counted - repeated - never_dispatched - unresolved - not_stopped), 0)
                FROM cut_time_waste) AS unaccounted,
               (SELECT count(*) FROM restart_reports) AS reports,
               (SELECT coalesce(sum(reported), 0) FROM cut_time_waste) AS reported
    """
    [row] = rows(con, sums)
    assert float(row["by_fate_s"]) == near(float(row["all_s"]))
    assert row["spans"] == row["dispatches"]
    assert row["unaccounted"] == 0
    assert row["reports"] == row["reported"]


def check(con: Any, options: WorldOptions) -> None:
    events, truth = told(options)
    put(con, events)
    assert_views(con, truth)


@settings(RARE, max_examples=25)
@given(worlds(max_groups=15, max_kills=4))
def test_views_equal_the_truth(con: Any, options: WorldOptions) -> None:
    check(con, options)


@pytest.mark.slow
@settings(RARE, max_examples=200)
@given(worlds())
def test_views_equal_the_truth_in_200_worlds(con: Any, options: WorldOptions) -> None:
    check(con, options)


def test_a_larger_world_from_its_file(tmp_path: Path) -> None:
    options = WorldOptions(groups=400, kills=5, seed=5, stale_rate=0.1, snapshot_interval_s=30.0, report_again=True)
    truth = simulate(tmp_path, options)
    with rta.load(str(tmp_path)) as traces, traces.opened() as con:
        assert_views(con, truth)


def assert_really_killed(folder: Path, kills: int) -> None:
    lines = (folder / "rollout_trace.jsonl").read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert sum(not line.endswith(b"}") for line in lines) <= kills
    published = [json.loads(path.read_text())["cut_time"] for path in folder.glob("ckpt/**/snapshot.json")]
    with rta.load(str(folder)) as traces, traces.opened() as con:
        assert_conserved(con)
        assert rows(con, "SELECT count(*) AS n FROM runs") == [{"n": kills + 1}]
        restores = rows(con, "SELECT * FROM restores ORDER BY restore_t")
        assert len(restores) == kills
        cuts = {row["cut_t"] for row in restores} - {None}
        assert cuts <= set(published)
        [last] = rows(con, "SELECT arg_max(event, t) AS event FROM events")
        assert last["event"] == "train_step_finished"
        if rows(con, "SELECT count(*) AS n FROM snapshots") == [{"n": len(published)}]:
            assert all(row["parent_run"] is not None for row in restores)
            assert rows(con, "SELECT count(*) AS n FROM attempt_spans WHERE fate = 'open'") == [{"n": 0}]
        # else: killed between a publication and its line; that cut is not known, and what it lost is told as unknown


REAL = {"groups": 60, "siblings": 4, "concurrency": 32, "snapshot_interval_s": 30.0, "stale_rate": 0.1}


def test_real_kills(tmp_path: Path) -> None:
    assert run_real(tmp_path, WorldOptions(kills=2, **REAL), speed=200.0) == 2
    assert_really_killed(tmp_path, 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_five_rounds_of_real_kills(tmp_path: Path, seed: int) -> None:
    options = WorldOptions(kills=3, seed=seed, report_again=bool(seed % 2), failure_rate=0.2, **REAL)
    run_real(tmp_path, options, speed=200.0)
    assert_really_killed(tmp_path, 3)
