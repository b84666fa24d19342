"""Many experiments on a real Ray: the same files as one machine's, worker deaths, failures, only what changed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import rtrace_analytics as rta
from rtrace_analytics import fleet as fleets
from rtrace_analytics.export import parquet
from tests.export.conftest import exact, small_trace

TRACES = Path(__file__).parent / "data" / "traces"
NAMED = r"exps/([^/]+)/"

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"
)


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray")
    ray.init("local", num_cpus=2, object_store_memory=100 * 2**20, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def make(folder: Path, count: int) -> Path:
    """A folder of experiments: the traces of tests/data, then small ones."""
    traces = sorted(TRACES.glob("*.jsonl"))[:3]
    for i in range(count):
        path = folder / "exps" / f"{i:04d}" / "t.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(exact(traces[i].read_text()) if i < len(traces) else small_trace(f"r{i}"))
    return folder / "exps"


def cells(folder: Path) -> dict[str, list]:
    """Every cell of an export, and the schemas."""
    files = sorted(folder.rglob("*.parquet"))
    return {
        file.relative_to(folder).as_posix(): [pq.read_schema(file).remove_metadata(), pq.read_table(file).to_pylist()]
        for file in files
    }


def on_one_machine(source: Path, out: Path) -> None:
    with rta.load(source, experiment_from=NAMED) as traces:
        traces.export_parquet(out)


def states(report) -> tuple[list[str], list[str], list[str], list[str]]:
    return report.written, report.unchanged, report.removed, sorted(report.failed)


def test_as_one_machine_and_only_what_changed(ray, tmp_path):
    source, out = make(tmp_path, 6), tmp_path / "out"
    names = [f"{i:04d}" for i in range(6)]
    report = fleets.fleet(source, out, experiment_from=NAMED)
    assert states(report) == (names, [], [], [])
    on_one_machine(source, tmp_path / "one")
    assert cells(out) == cells(tmp_path / "one")
    views = [json.loads((folder / "manifest.json").read_text())["views"] for folder in (out, tmp_path / "one")]
    assert views[0] == views[1]

    with open(source / "0004/t.jsonl", "a") as file:
        file.write('N-9"}\n{"t": 1800000020, "run": "r4-2", "event": "heartbeat"}\n')
    (source / "0005/t.jsonl").unlink()
    (source / "0005").rmdir()
    (source / "bad").mkdir()
    (source / "bad/t.jsonl").write_text('{"of": "another kind"}\n')
    (source / "twin").mkdir()
    (source / "twin/t.jsonl").write_bytes((source / "0003/t.jsonl").read_bytes())
    report = fleets.fleet(source, out, experiment_from=NAMED)
    assert states(report) == (["0004"], names[:4], ["0005"], ["bad", "twin"])
    assert "no rollout trace" in report.failed["bad"] and "of experiment '0003'" in report.failed["twin"]
    assert sorted(path.name for path in (out / "runs").iterdir()) == [
        f"experiment_key=exp-{name}" for name in names[:5]
    ]
    on_one_machine(source / "0004", tmp_path / "four")
    assert cells(tmp_path / "four").items() <= cells(out).items()
    assert not list(out.glob(".partial-*"))


def test_a_worker_that_dies_is_replaced(ray, tmp_path):
    source, out, mark = make(tmp_path, 4), tmp_path / "out", tmp_path / "died"

    def dies_once(task):
        if task.experiment == "0003" and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return fleets.export_one(task)

    report = fleets.fleet(source, out, experiment_from=NAMED, work=dies_once)
    assert mark.exists() and states(report) == (["0000", "0001", "0002", "0003"], [], [], [])


def test_a_worker_that_always_dies_does_not_spoil_the_others(ray, tmp_path, monkeypatch):
    monkeypatch.setattr(fleets, "RETRIES", 1)
    source, out = make(tmp_path, 2), tmp_path / "out"

    def dies(task):
        if task.experiment == "0001":
            os.kill(os.getpid(), signal.SIGKILL)
        return fleets.export_one(task)

    report = fleets.fleet(source, out, experiment_from=NAMED, work=dies)
    assert states(report) == (["0000"], [], [], ["0001"]) and "gave up after 1 more" in report.failed["0001"]


def test_command_line(tmp_path):
    pytest.importorskip("ray")
    source = make(tmp_path, 2)
    (source / "bad").mkdir()
    (source / "bad/t.jsonl").write_text("nothing\n")
    command = [Path(sys.executable).with_name("rtrace"), "fleet", source, "--out", tmp_path / "out", "--cpus", "2"]
    done = subprocess.run([*command, "--format", "json"], capture_output=True, text=True)
    rows = [(row["experiment"], row["state"]) for row in json.loads(done.stdout)]
    assert rows == [("0000", "written"), ("0001", "written"), ("bad", "failed")] and done.returncode == 1
    assert "rtrace: experiment 'bad' failed: " in done.stderr
    done = subprocess.run(
        [command[0], "fleet", "s3://bucket/x", "--out", tmp_path / "x"], capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "httpfs, which is not installed" in done.stderr


def test_files_behind_a_url(tmp_path):
    source = make(tmp_path, 4)
    url = f"file://{source}/0003/t.jsonl"
    task = fleets.Task("x", (url,), "print", str(tmp_path / "out"), "1GB")
    entry = fleets.export_one(task)
    assert entry["sources"][0]["path"] == url and entry["sources"][0]["events"] == 7
    with pytest.raises(rta.InputError, match="no trace at 'file:///"):
        fleets.fleet(f"file://{tmp_path}/no/*.jsonl", tmp_path / "out2")
    assert fleets.experiment_of("s3://b/exps/e1/t.jsonl", NAMED) == "e1"
    assert fleets.experiment_of("s3://b/exps/e1/exp_002/t.jsonl", None) == "e1"


def test_without_ray(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(rta.InputError, match=r"Ray is not installed: pip install 'rtrace_analytics\[ray\]'"):
        fleets.fleet(make(tmp_path, 4), tmp_path / "out")


@pytest.mark.slow
def test_two_hundred_experiments(ray, tmp_path):
    source = make(tmp_path, 200)
    report = fleets.fleet(source, tmp_path / "out", experiment_from=NAMED)
    assert report.failed == {} and len(report.written) == 200
    on_one_machine(source, tmp_path / "one")
    assert cells(tmp_path / "out") == cells(tmp_path / "one")
    with rta.load(source, experiment_from=NAMED) as traces, traces.opened() as con:
        assert parquet.update(con, tmp_path / "one").written == []
