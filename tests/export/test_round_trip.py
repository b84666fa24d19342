"""What was exported is what the database has, cell by cell, for every view, every name and every reader."""

import csv
import io
import json
import math
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import rtrace_analytics as rta
from rtrace_analytics import views
from rtrace_analytics.export.layout import partition_key
from rtrace_analytics.export.reading import open_parquet
from rtrace_analytics.export.schema import exported as exported_views
from tests.export.conftest import MORE_NAMES, NAMES

DUCKDB = Path(sys.executable).with_name("duckdb")
EVERY = sorted(views.VIEWS | views.TABLES)


@pytest.fixture(scope="module")
def schema(nasty):
    with nasty.opened() as con:
        return {view.name: view for view in exported_views(con)}


@pytest.fixture(scope="module")
def expected(nasty, schema):
    """View to its rows, as texts, in any order, of the database itself."""
    with nasty.opened() as con:
        names = sorted([*NAMES, *MORE_NAMES])
        tables = {name: con.sql(view.select(), params=[names]).to_arrow_table() for name, view in schema.items()}
    return {name: as_texts(table.cast(schema[name].arrow).to_pylist()) for name, table in tables.items()}


def as_texts(rows) -> list[str]:
    """The rows as sorted texts; moments as microseconds."""
    return sorted(json.dumps({name: plain(value) for name, value in row.items()}, sort_keys=True) for row in rows)


def plain(value):
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    if hasattr(value, "timestamp"):
        return (
            round(pd.Timestamp(value).tz_convert(None).value / 1000) if value.tzinfo else str(value) + " without zone"
        )
    if hasattr(value, "item"):
        value = value.item()
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def glob_of(folder: Path, view: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(folder)) + f"/{view}/*/*.parquet"


def with_key(rows: list[dict]) -> list[dict]:
    """The rows without the column of the path, which must be the key of the row's experiment, as text."""
    for row in rows:
        assert str(row.pop("experiment_key")) == partition_key(row["experiment"])
        row.pop("k", None)  # the reader took a folder above for a partition
    return rows


def test_every_view_is_there(expected, exported):
    assert sorted(expected) == EVERY == sorted(p.name for p in exported.iterdir() if p.is_dir())
    assert all(expected[name] for name in EVERY if name != "lost_in_silence")


@pytest.mark.parametrize("view", EVERY)
def test_duckdb(view, exported, expected):
    table = duckdb.connect().sql("SELECT * FROM read_parquet($1)", params=[glob_of(exported, view)]).to_arrow_table()
    assert as_texts(with_key(table.to_pylist())) == expected[view]


@pytest.mark.parametrize("view", EVERY)
def test_pyarrow_dataset(view, exported, expected, schema):
    table = ds.dataset(exported / view, partitioning="hive").to_table()
    assert table.schema.names[:-1] == schema[view].arrow.names
    assert as_texts(with_key(table.to_pylist())) == expected[view]


@pytest.mark.parametrize("view", EVERY)
def test_pandas(view, exported, expected):
    frame = pd.read_parquet(exported / view)
    assert as_texts(with_key(frame.astype(object).to_dict("records"))) == expected[view]


@pytest.mark.parametrize("view", EVERY)
def test_polars(view, exported, expected):
    frame = pl.read_parquet(glob_of(exported, view), hive_partitioning=True)
    assert as_texts(with_key(frame.to_dicts())) == expected[view]


def test_duckdb_command_line(exported, expected, schema):
    for view, columns in ((name, schema[name].columns) for name in EVERY):
        listed = ", ".join(f'epoch_us("{c.name}")' if c.type.startswith("TIME") else f'"{c.name}"' for c in columns)
        listed = f"SELECT to_json([{', '.join(f'({part})::VARCHAR' for part in listed.split(', '))}]) AS row, "
        query = listed + "experiment, experiment_key FROM read_parquet('{}')"
        text = glob_of(exported, view).replace("'", "''")
        done = subprocess.run(
            [DUCKDB, "-no-init", "-csv", "-c", query.format(text)], capture_output=True, text=True, check=True
        )
        rows = list(csv.DictReader(io.StringIO(done.stdout, newline="")))
        ours = duckdb.connect().sql(query.format(text)).fetchall()
        assert done.stderr == "" and len(rows) == len(expected[view])
        assert sorted(tuple(row.values()) for row in rows) == sorted(ours)


def test_moments_are_utc_timestamps_too(exported):
    con = duckdb.connect()
    rows = con.sql(
        "SELECT t, epoch(ts), epoch(cut_ts), cut_time FROM read_parquet($1) WHERE experiment = 'nan' ORDER BY t",
        params=[glob_of(exported, "events")],
    ).fetchall()
    assert rows[0] == (1.8e9, 1.8e9, None, None) and rows[1] == (
        1800000003.25,
        1800000003.25,
        1800000002.5,
        1800000002.5,
    )
    count = con.sql(
        "SELECT count(ts) FROM read_parquet($1) WHERE experiment = '0042'", params=[glob_of(exported, "events")]
    )
    assert count.fetchall() == [(0,)]  # its clock starts near 0: no seconds since the epoch


def test_comments_go_along(exported):
    (file, *_) = sorted((exported / "attempt_spans").glob("*/*.parquet"))
    schema = pq.read_schema(file)
    assert schema.field("start_t").metadata == {b"comment": b"moment of the dispatch"}
    assert schema.metadata[b"rtrace:comment"].startswith(b"one row per dispatch")
    comments = json.loads(schema.metadata[b"rtrace:column_comments"])
    assert list(comments) == schema.names and all(comments.values())


@pytest.mark.parametrize("view", EVERY)
def test_open_parquet_gives_the_same_frames(view, nasty, exported):
    with open_parquet(exported) as export:
        ours, theirs = nasty.view(view), export.view(view)
        for experiment in ("", "Ünï", "a"):
            assert len(export.view(view, experiment=experiment)) == len(nasty.view(view, experiment=experiment))
    ours, theirs = (frame.drop(columns=["file_id", "modified_ns"], errors="ignore") for frame in (ours, theirs))
    assert list(ours) == list(theirs)
    by = [name for name in ours if ours[name].dtype != float] or list(ours)
    pd.testing.assert_frame_equal(
        ours.sort_values(by, ignore_index=True, key=lambda c: c.astype(str)),
        theirs.sort_values(by, ignore_index=True, key=lambda c: c.astype(str)),
        check_exact=True,
    )


def test_open_parquet_numbers_files_as_a_database_does(nasty, exported):
    query = "SELECT f.path, x.line, count(*) FROM {} x JOIN trace_files f USING (file_id) GROUP BY ALL ORDER BY ALL"
    with open_parquet(exported) as export:
        assert export.trace_files()["file_id"].is_unique
        for table in ("events", "rejects"):
            assert export.sql(query.format(table)).fetchall() == nasty.sql(query.format(table)).fetchall()


def test_open_parquet_has_comments_and_refuses_to_write(exported, tmp_path):
    with open_parquet(exported) as export:
        comments = export.sql(
            "SELECT comment FROM duckdb_columns() WHERE table_name = 'runs' AND column_name = 'first_t'"
        )
        assert comments.fetchall() == [("moment of its first line",)]
        assert "experiments: 15" in repr(export) and "experiments: 15" in export._repr_html_()
        for call in (
            lambda: export.load("x"),
            lambda: export.label({"a": {"k": 1}}),
            lambda: export.forget("a"),
            lambda: export.export_parquet(tmp_path),
        ):
            with pytest.raises(rta.InputError, match="an export only reads"):
                call()
    with pytest.raises(rta.InputError, match="no export in"):
        open_parquet(tmp_path)


def test_an_export_mixes_with_others(nasty, exported):
    with open_parquet(exported) as export, rta.mix({"one": export, "two": nasty}, prefix=True) as mixed:
        waste = mixed.cut_time_waste()
        assert len(waste) == 2 * len(nasty.cut_time_waste())
        assert waste["thrown_away_s"].sum() == pytest.approx(2 * nasty.cut_time_waste()["thrown_away_s"].sum())
