"""`rtrace simulate`: files, rows and errors."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rtrace_analytics.cli.simulate import command
from rtrace_analytics.errors import RtraceError


def test_it_writes_trace_and_truth_and_prints_the_restores(tmp_path: Path) -> None:
    out = str(tmp_path / "new")
    done = CliRunner().invoke(command, ["--out", out, "--groups", "30", "--kills", "2", "--format", "json"])
    assert done.exit_code == 0, done.output
    truth = json.loads((tmp_path / "new" / "ground_truth.json").read_text())
    rows = json.loads(done.stdout)
    assert [row["run"] for row in rows] == [row["run"] for row in truth["restores"]]
    assert [row["thrown_away_s"] for row in rows] == [row["thrown_away_s"] for row in truth["restores"]]
    assert truth["options"]["groups"] == 30
    assert (tmp_path / "new" / "rollout_trace.jsonl").stat().st_size > 0


def test_no_kills_is_a_table_without_rows(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["--out", str(tmp_path), "--groups", "5", "--kills", "0"])
    assert done.exit_code == 0, done.output
    assert "(0 rows)" in done.stdout
    assert "rtrace waste" in done.stdout


def test_every_option_has_help() -> None:
    assert all(getattr(option, "help", None) for option in command.params)


def test_a_bad_option_is_one_line_and_exit_2(tmp_path: Path) -> None:
    with pytest.raises(RtraceError, match=r"--kills is -1: give 0 or more"):
        CliRunner().invoke(command, ["--out", str(tmp_path), "--kills", "-1"], catch_exceptions=False)
    code = "from rtrace_analytics.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "simulate", "--out", str(tmp_path), "--real", "--speed", "0"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == "rtrace: --speed is 0.0: give more than 0 and at most 100000\n"


def test_out_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RtraceError, match="cannot be made"):
        CliRunner().invoke(command, ["--out", str(tmp_path / "file")], catch_exceptions=False)
