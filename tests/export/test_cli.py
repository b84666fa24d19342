"""`rtrace export`."""

import json

import pytest
from click.testing import CliRunner

import rtrace_analytics as rta
from rtrace_analytics.cli import rtrace
from tests.export.conftest import small_trace


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "x.duckdb"
    with rta.connect(path) as traces:
        for name in ("one", "two"):
            (tmp_path / f"{name}.jsonl").write_text(small_trace(name))
            traces.load(tmp_path / f"{name}.jsonl", experiment=name)
    return path


def run(*arguments):
    return CliRunner().invoke(rtrace, ["export", *map(str, arguments)])


def test_parquet_and_perfetto(db, tmp_path):
    out, trace = tmp_path / "out", tmp_path / "trace.json.gz"
    done = run("--db", db, "--parquet", out, "--perfetto", trace, "--format", "json")
    rows = json.loads(done.stdout)
    assert [(row["experiment"], row["state"]) for row in rows] == [
        ("one", "written"),
        ("two", "written"),
        (None, "written"),
    ]
    assert rows[2]["bytes"] == trace.stat().st_size and rows[0]["files"] == len(
        [p for p in out.iterdir() if p.is_dir()]
    )
    assert rows[0]["bytes"] == sum(path.stat().st_size for path in out.glob("*/experiment_key=exp-one/*"))
    again = json.loads(run("--db", db, "--parquet", out, "--format", "json").stdout)
    assert [row["state"] for row in again] == ["unchanged", "unchanged"]


def test_chosen_views_and_experiments(db, tmp_path):
    out = tmp_path / "out"
    done = run("--db", db, "--parquet", out, "--views", "quality, cut_time_waste", "--experiment", "two")
    assert done.exit_code == 0 and "two" in done.stdout and "one" not in done.stdout
    views = ["cut_time_waste", "quality", "runs", "trace_files"]
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == views


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to export to"),
        (("--parquet", "out", "--views", "x"), "no view or table 'x'"),
        (("--perfetto", "x.json", "--experiment", "x"), "no experiment 'x': there are 'one', 'two'"),
    ],
)
def test_mistakes(db, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = run("--db", db, *arguments)
    assert isinstance(done.exception, rta.InputError) and message in str(done.exception)
    assert not (tmp_path / "out").exists() and not (tmp_path / "x.json").exists()
