"""Exporting again: what is rewritten, what goes, what is refused, and what readers see meanwhile."""

import hashlib
import json
import os
import threading

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest

import rtrace_analytics as rta
from rtrace_analytics.export import layout, parquet
from rtrace_analytics.export.reading import open_parquet
from rtrace_analytics.export.schema import exported
from tests.export.conftest import small_trace


def load(folder, **texts: str) -> rta.Traces:
    """Traces in memory, an experiment per text."""
    traces = None
    for name, text in texts.items():
        path = folder / name / "t.jsonl"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8")
        traces = traces or rta.load(path)
        traces.load(path)
    return traces


def update(traces, folder, **options) -> parquet.Report:
    with traces.opened() as con:
        return parquet.update(con, folder, **options)


def told(report) -> tuple[list[str], list[str], list[str]]:
    return report.written, report.unchanged, report.removed


def identities(folder) -> dict[str, int]:
    return {path.relative_to(folder).as_posix(): path.stat().st_ino for path in folder.rglob("*.parquet")}


@pytest.fixture
def traces(tmp_path):
    return load(tmp_path / "in", one=small_trace("p"), two=small_trace("q"))


def test_only_what_changed_is_written_again(traces, tmp_path):
    out = tmp_path / "out"
    assert told(update(traces, out)) == (["one", "two"], [], [])
    before = identities(out)
    assert told(update(traces, out)) == ([], ["one", "two"], [])
    assert identities(out) == before
    path = tmp_path / "in/two/t.jsonl"
    path.write_text(path.read_text() + 'N-9"}\n{"t": 1800000020, "run": "q-2", "event": "heartbeat"}\n')
    traces.load(path)
    assert told(update(traces, out)) == (["two"], ["one"], [])
    after = identities(out)
    assert after.keys() == before.keys()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {name for name in before if "exp-two" in name}


def test_what_is_gone_goes_and_labels_count(traces, tmp_path):
    out = tmp_path / "out"
    update(traces, out)
    traces.load(tmp_path / "in/two", labels={"interval_s": 60})
    assert told(update(traces, out)) == (["two"], ["one"], [])
    traces.forget("one")
    assert told(update(traces, out)) == ([], ["two"], ["one"])
    assert not [name for name in identities(out) if "exp-one" in name]
    assert not list(out.glob("*/experiment_key=exp-one"))
    traces.forget("two")
    update(traces, out)
    with open_parquet(out) as export:  # none left: views without rows
        assert len(export.cut_time_waste()) == 0 and list(export.runs()) == list(traces.runs())


def test_the_manifest_tells_all(traces, tmp_path):
    update(traces, tmp_path / "out")
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert (manifest["schema_version"], manifest["package_version"]) == (layout.SCHEMA_VERSION, rta.__version__)
    one, two = manifest["experiments"]
    assert (one["experiment"], two["experiment"], one["key"]) == ("one", "two", "exp-one")
    assert one["sources"][0]["path"] == str(tmp_path / "in/one/t.jsonl") and one["sources"][0]["events"] == 7
    assert one["quality"]["rejects"] == 1 and one["quality"]["conservation"] == 0
    for entry in (one, two):
        for file in entry["files"]:
            data = (tmp_path / "out" / file["path"]).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file["bytes"], file["sha256"])
            assert duckdb.read_parquet(str(tmp_path / "out" / file["path"])).shape[0] == file["rows"]
    for name, view in manifest["views"].items():
        assert view["rows"] == len(traces.view(name)) and view["comment"]


def test_damaged_and_missing_files_are_written_again(traces, tmp_path):
    out = tmp_path / "out"
    update(traces, out)
    before = identities(out)
    (out / layout.relative_path("runs", "one")).unlink()
    assert told(update(traces, out)) == (["one"], ["two"], [])
    target = out / layout.relative_path("restores", "two")
    target.write_bytes(b"x" * target.stat().st_size)
    assert told(update(traces, out)) == (["two"], ["one"], [])
    (out / "manifest.json").unlink()  # an export killed before its end leaves files without a manifest
    stray = out / layout.relative_path("runs", "stray")
    stray.parent.mkdir()
    stray.write_bytes(b"")
    assert told(update(traces, out)) == (["one", "two"], [], [])
    assert identities(out).keys() == before.keys()


def test_a_failed_export_leaves_all_as_it_was(traces, tmp_path, monkeypatch):
    out = tmp_path / "out"
    update(traces, out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    traces.load(tmp_path / "in", labels={"a": "b"})
    write = parquet.write_view

    def fail(con, folder, beside, view, wanted):
        if view.name == "runs":
            raise OSError(28, "No space left on device")
        return write(con, folder, beside, view, wanted)

    monkeypatch.setattr(parquet, "write_view", fail)
    with pytest.raises(rta.InputError, match="cannot be written to: No space left"):
        update(traces, out)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_views_and_experiments_can_be_chosen(traces, tmp_path):
    out = tmp_path / "out"
    update(traces, out)
    assert told(update(traces, out, views=["cut_time_waste"])) == (["one", "two"], [], [])
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["cut_time_waste", "runs", "trace_files"]
    with open_parquet(out) as export:
        assert len(export.cut_time_waste(experiment="one", run="p-2")) == 1
        with pytest.raises(rta.InputError, match="no view or table 'snapshots'"):
            export.snapshots()
    with pytest.raises(rta.InputError, match="exported with other views"):
        update(traces, out, experiment="one")
    other = tmp_path / "other"
    assert told(update(traces, other, experiment="one")) == (["one"], [], [])
    assert told(update(traces, other, experiment=["two"])) == (["two"], [], [])
    with open_parquet(other) as export:
        assert list(export.experiment_waste()["experiment"]) == ["one", "two"]
    for options, message in (({"views": ["x"]}, "no view or table 'x'"), ({"experiment": "x"}, "no experiment 'x'")):
        with pytest.raises(rta.InputError, match=message):
            update(traces, other, **options)


def test_a_folder_of_something_else_is_left_alone(traces, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/thesis.tex").write_text("x")
    with pytest.raises(rta.InputError, match=r"holds 'thesis.tex' and no manifest.json"):
        update(traces, tmp_path / "other")
    with pytest.raises(rta.InputError, match="is not a folder"):
        update(traces, tmp_path / "other/thesis.tex")
    (tmp_path / "other/manifest.json").write_text("{}")
    with pytest.raises(rta.InputError, match="is not the manifest of an rtrace export"):
        update(traces, tmp_path / "other")
    assert (tmp_path / "other/thesis.tex").read_text() == "x"


def test_another_schema_version_is_not_read(traces, tmp_path):
    update(traces, tmp_path / "out")
    path = tmp_path / "out/manifest.json"
    path.write_text(path.read_text().replace('"schema_version": ', '"schema_version": 9'))
    with pytest.raises(rta.InputError, match="schema version 9"):
        open_parquet(tmp_path / "out")


def test_names_share_no_key():
    names = [
        "",
        "a",
        "A",
        "ä",
        "a~",
        "a/b",
        "a\\b",
        "..",
        ".",
        "x" * 300,
        "x" * 301,
        "X" * 300,
        "ü" * 300,
        "~61",
        "exp-a",
    ]
    keys = [layout.partition_key(name) for name in names]
    assert len({key.lower() for key in keys}) == len(names)
    assert all(len(f"{layout.PARTITION}={key}") < 200 and key.isascii() and key.startswith("exp-") for key in keys)


def test_the_schema_is_the_one_of_its_version(traces):
    """A change of the exported columns: raise SCHEMA_VERSION, say so in CHANGELOG.md, write the file anew (below)."""
    path = os.path.join(os.path.dirname(__file__), f"schema_{layout.SCHEMA_VERSION}.txt")
    with traces.opened() as con:
        lines = [f"{view.name} {c.name} {c.type}\n" for view in exported(con) for c in view.columns]
    if os.environ.get("RTRACE_WRITE_SCHEMA"):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines)
    with open(path, encoding="utf-8") as file:
        assert file.readlines() == lines


READERS = {
    "duckdb": lambda view: duckdb.connect().sql(f"SELECT * FROM read_parquet('{view}/*/*.parquet')").df(),
    "pyarrow": lambda view: ds.dataset(view, partitioning="hive").to_table().to_pandas(),
    "pandas": lambda view: pd.read_parquet(view),
    "polars": lambda view: pl.read_parquet(f"{view}/*/*.parquet").to_pandas(),
}


def test_readers_in_a_loop_see_old_or_new_and_never_fail(tmp_path):
    """50 exports to and fro between two states of two experiments."""
    long = small_trace("p") + "".join(
        f'\n{{"t": {1800000030 + i}, "run": "p-2", "event": "attempt_dispatched", "group_id": "h{i}", '
        '"generation_index": 0, "attempt": 0}' for i in range(3000)
    )  # fmt: skip
    states = [
        load(tmp_path / "a", one=small_trace("p"), two=small_trace("q")),
        load(tmp_path / "b", one=long, two=small_trace("q") + "\n" + small_trace("r")),
    ]
    out, views = tmp_path / "out", ["attempt_spans"]
    update(states[0], out, views=views)
    seen = {name: set() for name in READERS}
    failures, done = [], threading.Event()

    def read(name):
        try:
            while not done.is_set():
                frame = READERS[name](str(out / "attempt_spans"))
                ones, twos = (frame[frame["experiment"] == experiment] for experiment in ("one", "two"))
                seen[name].add(("one", len(ones), ones["start_t"].sum()))
                seen[name].add(("two", len(twos), twos["start_t"].sum()))
                done.wait(0.05)
        except Exception as error:
            failures.append((name, error))

    threads = [threading.Thread(target=read, args=(name,)) for name in READERS]
    for thread in threads:
        thread.start()
    try:
        for i in range(50):
            update(states[(i + 1) % 2], out, views=views)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failures == []
    allowed = {
        (name, len(frame), frame["start_t"].sum())
        for state in states for name, frame in state.attempt_spans().groupby("experiment")
    }  # fmt: skip
    assert len(allowed) == 4
    for name in READERS:
        assert seen[name] <= allowed and len(seen[name]) > 2
    size = {file["path"]: file["bytes"] for entry in update(states[0], out, views=views).manifest["experiments"]
            for file in entry["files"]}  # fmt: skip
    fresh = update(states[1], tmp_path / "fresh", views=views).manifest["experiments"][0]["files"][0]
    assert size[fresh["path"]] < 3 * fresh["bytes"] + 20_000
