"""The rows of one view, streamed in the order of the experiments, each experiment's into a Parquet file of its own."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrace_analytics.export import layout
from rtrace_analytics.export.fingerprint import version
from rtrace_analytics.export.replacing import keep_pages

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from rtrace_analytics.export.schema import View

ROW_GROUP = 122_880
"""Rows of a row group: what one thread of DuckDB reads at a time; some megabytes, enough for zstd and for skipping."""


def write_view(
    con: "duckdb.DuckDBPyConnection", folder: Path, beside: Path, view: "View", wanted: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Write the rows of a view to `beside`, a file per experiment (name to fingerprint), also where it has none.

    Each may replace the one that `folder` has before the eyes of its readers.

    Returns per experiment what the manifest says of the file: view, path, rows, bytes, sha256.
    """
    names = sorted(wanted)
    rows = dict.fromkeys(names, 0)
    for experiment, pieces in _by_experiment(con, view, names):
        rows[experiment] = _write_file(beside, view, experiment, wanted[experiment], pieces)
    for experiment in names:
        if not rows[experiment]:
            _write_file(beside, view, experiment, wanted[experiment], iter(()))
    told = {}
    for experiment in names:
        relative = layout.relative_path(view.name, experiment)
        keep_pages(beside / relative, folder / relative)
        with open(beside / relative, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = (beside / relative).stat().st_size
        told[experiment] = {
            "view": view.name,
            "path": relative,
            "rows": rows[experiment],
            "bytes": size,
            "sha256": digest,
        }
    return told


def _by_experiment(
    con: "duckdb.DuckDBPyConnection", view: "View", names: list[str]
) -> Iterator[tuple[str, Iterator["pa.Table"]]]:
    """The rows of each experiment that has any, as an iterator of tables that must be used up before the next."""
    from itertools import groupby
    from operator import itemgetter

    pieces = _pieces(con, view, names)
    for experiment, group in groupby(pieces, key=itemgetter(0)):
        yield experiment, (table for _, table in group)


def _pieces(con: "duckdb.DuckDBPyConnection", view: "View", names: list[str]) -> Iterator[tuple[str, "pa.Table"]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    place = view.arrow.get_field_index("experiment")
    for batch in con.sql(view.select(), params=[names]).to_arrow_reader(ROW_GROUP):
        table = pa.Table.from_batches([batch]).cast(view.arrow)
        begin = 0
        for ends in pc.run_end_encode(table.column(place)).chunks:
            for experiment, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
                yield experiment, table.slice(begin, end - begin)
                begin = end


def _write_file(beside: Path, view: "View", experiment: str, fingerprint: str, pieces: Iterator["pa.Table"]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = {
        "rtrace:view": view.name,
        "rtrace:experiment": experiment,
        "rtrace:fingerprint": fingerprint,
        "rtrace:schema_version": str(layout.SCHEMA_VERSION),
        "rtrace:package_version": version(),
        "rtrace:comment": view.comment,
        "rtrace:column_comments": json.dumps({c.name: c.comment for c in view.columns}, ensure_ascii=False),
    }
    schema = view.arrow.with_metadata(metadata)
    target = beside / layout.relative_path(view.name, experiment)
    target.parent.mkdir(parents=True, exist_ok=True)
    rows = waiting = 0
    kept: list[pa.Table] = []
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for piece in pieces:
            kept.append(piece)
            waiting += len(piece)
            rows += len(piece)
            if waiting >= ROW_GROUP:
                whole = pa.concat_tables(kept)
                writer.write_table(whole.slice(0, ROW_GROUP).replace_schema_metadata(metadata), ROW_GROUP)
                kept = [whole.slice(ROW_GROUP)]
                waiting -= ROW_GROUP
        if waiting or not rows:
            last = pa.concat_tables(kept) if kept else schema.empty_table()
            writer.write_table(last.replace_schema_metadata(metadata), ROW_GROUP)
    return rows
