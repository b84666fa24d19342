"""Loaded traces whose experiments bear names that folders, numbers and patterns do not like."""

import json
from pathlib import Path

import pytest

import rtrace_analytics as rta

DATA = Path(__file__).parent.parent / "data" / "traces"
EMPTY = "the one without a name"  # a load takes no empty name; a database may have one
NAMES = ("0042", "a/b", "../x", "Ünï", "a=b", "", "x" * 300)
MORE_NAMES = ("1e5", "2024-01-01", "A", "a", "nan", "null", 'it\'s "[so]" ~7e %41 *?', "a\nb")
SMALL = """
{"t": 1.8e9, "run": "RUN-1", "event": "attempt_dispatched", "group_id": "g", "generation_index": 0, "attempt": 0}
{"t": 1800000003.25, "run": "RUN-1", "event": "snapshot_published", "step": 1, "cut_time": 1800000002.5, "x": {"a": 1}}
{"t": 1800000004, "run": "RUN-1", "event": "heartbeat", "tokens": 7, "reward": 0.1}
{"t": 1800000009, "run": "RUN-2", "event": "restore_started", "path": "x/step_1/rollout_snapshots/snapshot_1"}
{"t": 1800000009.5, "run": "RUN-2", "event": "attempt_abandoned", "group_id": "g", "generation_index": 0, \
"attempt": 0, "reason": "restart"}
no event
{"t": 1800000010, "run": "RUN-2", "event": "attempt_dispatched", "group_id": "g", "generation_index": 0, "attempt": 1}
{"t": 1800000012, "run": "RUN-2", "event": "attempt_sealed", "group_id": "g", "generation_index": 0, "attempt": 1}
{"t": 1800000013, "run": "RU"""


def small_trace(name: str) -> str:
    """A trace of seconds since the epoch, one restore, a reject, a pending tail, an unknown event and field."""
    return SMALL.lstrip().replace("RUN", json.dumps(name)[1:-1])


def exact(text: str) -> str:
    """The trace with its moments in 1/1024 s: their sums are exact, in whatever order they are added up."""
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        for name in {"t", "cut_time"} & line.keys():
            line[name] = round(line[name] * 1024) / 1024
    return "".join(json.dumps(line) + "\n" for line in lines)


def rename(traces: rta.Traces, old: str, new: str) -> None:
    """Give an experiment a name that no load gives."""
    with traces.opened(write=True) as con:
        query = "SELECT table_name FROM duckdb_columns() JOIN duckdb_tables() USING (database_name, table_name)"
        tables = con.execute(f"{query} WHERE column_name = 'experiment'").fetchall()
        for (table,) in tables:
            con.execute(f"UPDATE {table} SET experiment = ? WHERE experiment = ?", [new, old])


@pytest.fixture(scope="session")
def nasty(tmp_path_factory) -> rta.Traces:
    """In memory: the traces of tests/data under the seven names, a small trace under each of some more."""
    folder = tmp_path_factory.mktemp("nasty")
    files = [folder / path.name for path in sorted(DATA.glob("*.jsonl"))]
    for file in files:
        file.write_text(exact((DATA / file.name).read_text()))
    traces = rta.load(files[0], experiment=NAMES[0], labels={"interval_s": 120})
    for name, file in zip(NAMES[1:], files[1:], strict=True):
        traces.load(file, experiment=name or EMPTY)
    rename(traces, EMPTY, "")
    for i, name in enumerate(MORE_NAMES):
        path = folder / f"{i}.jsonl"
        path.write_text(small_trace(name), encoding="utf-8")
        traces.load(path, experiment=name)
    return traces


@pytest.fixture(scope="session")
def exported(nasty, tmp_path_factory) -> Path:
    """Its export, in a folder whose name is a pattern and a partition too."""
    folder = tmp_path_factory.mktemp("out") / "we[ir]d *q?' d" / "k=1"
    nasty.export_parquet(folder)
    return folder
