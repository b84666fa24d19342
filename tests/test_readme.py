"""The README's commands, Python and SQL are real and run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import rtrace_analytics as rta
from rtrace_analytics.cli import rtrace

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.S)


def _blocks(language: str) -> list[str]:
    return [text for found, text in BLOCKS if found == language]


def test_is_short_and_names_the_two_commands():
    assert len(README.splitlines()) < 250
    assert "make demo" in README and "make test" in README


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"make (\w[\w-]*)", " ".join(re.findall(r"`[^`]*`|^make .*", README, re.M)))):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_commands_and_options_exist():
    for line in re.findall(r"^(rtrace .*?)(?:\s+#.*)?$", "\n".join(_blocks("")), re.M):
        _, name, *arguments = shlex.split(line)
        command = rtrace.get_command(None, name)
        assert command is not None, line
        options = {option for parameter in command.params for option in parameter.opts}
        assert {argument for argument in arguments if argument.startswith("--")} <= options, line


def test_sql_runs(tmp_path):
    db = tmp_path / "traces.duckdb"
    with rta.connect(db) as traces:
        traces.load(ROOT / "data/samples")
        for statement in "".join(_blocks("sql")).split(";"):
            if statement.strip():
                assert traces.sql(statement).fetchall()


def test_python_runs(tmp_path, monkeypatch):
    folder = tmp_path / "logs/pr-example"
    folder.mkdir(parents=True)
    sample = ROOT / "data/samples/pr-example/rollout_trace.jsonl"
    (folder / "rollout_trace.jsonl").write_bytes(sample.read_bytes())
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(_blocks("python")[0], names)
    assert names["waste"]["thrown_away_s"].tolist() == [28.0]
    assert names["lost"]["start_t"].tolist() == [12.0]


@pytest.mark.parametrize("folder", ["rtrace_analytics", "sql", "data", "notebooks", "tests", ".ci"])
def test_no_path_of_this_machine(folder):
    files = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True).stdout.split()
    forbidden = ["/".join(("", "work", "")), "../" + "shared", str(Path(sys.prefix).parent) + "/"]
    for name in files:
        text = (ROOT / name).read_bytes().decode("utf-8", "replace")
        assert not [word for word in forbidden if word in text], name


def test_parquet_queries_run(tmp_path):
    with rta.load(ROOT / "data/samples/two-kills") as traces:
        traces.export_parquet(tmp_path / "lake")
    queries = re.findall(r"^SELECT .*lake/.*$", "\n".join(_blocks("")), re.M)
    assert len(queries) == 2
    with rta.load(ROOT / "data/samples/pr-example") as traces:
        for query in queries:
            assert traces.sql(query.replace("lake/", f"{tmp_path}/lake/")).fetchall()
