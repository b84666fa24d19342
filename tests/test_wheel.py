"""The built wheel, installed with its dependencies into an empty environment elsewhere, does the main job."""

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*command, cwd=None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (path,) = folder.glob("*.whl")
    return path


def test_wheel_holds_the_sql_and_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    inside = {name.removeprefix("rtrace_analytics/sql/") for name in names if name.endswith(".sql")}
    assert inside == {path.name for path in (ROOT / "sql").glob("*.sql")}
    assert "rtrace_analytics/py.typed" in names
    assert {name.split("/")[0] for name in names} == {"rtrace_analytics", "rtrace_analytics-0.1.0.dist-info"}


def test_main_job_from_the_installed_wheel(wheel, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    bin_ = tmp_path / "venv/bin"
    run(bin_ / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    sample = ROOT / "data/samples/pr-example"
    told = json.loads(run(bin_ / "rtrace", "waste", sample, "--format", "json", cwd=tmp_path))
    assert [row["thrown_away_s"] for row in told["restores"]] == [28.0]
    code = "from rtrace_analytics import database; print(database.sql_folder())"
    where = Path(run(bin_ / "python", "-c", code, cwd=tmp_path).strip())
    assert where.is_relative_to(tmp_path / "venv")
