"""`open_parquet`: an export in Python: what loaded traces show, without the database."""

import glob
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rtrace_analytics.errors import InputError
from rtrace_analytics.export import layout
from rtrace_analytics.traces import Traces
from rtrace_analytics.views import literal, quoted

if TYPE_CHECKING:
    import duckdb


class ParquetTraces(Traces):
    """The traces of a Parquet export: `open_parquet` makes one.

    The views are read from the files at each call, so they follow an export that is brought up to date meanwhile: each
    file is wholly old or wholly new. `manifest` tells what was exported, as of the opening. The rows are the
    database's, but for the numbers `file_id` (in the order of experiments and paths).
    """

    _only_reads = "an export only reads: load into a database, and export that again"

    def __init__(self, folder: Path, manifest: Mapping[str, Any], con: "duckdb.DuckDBPyConnection") -> None:
        super().__init__(con)
        self.folder = folder
        self.manifest = manifest

    def export_parquet(self, *args: object, **options: object) -> NoReturn:
        """Raises `InputError`: an export is copied, not exported."""
        raise InputError(self._only_reads)

    def __repr__(self) -> str:
        counts = f"experiments: {len(self.manifest['experiments'])}, views: {len(self.manifest['views'])}"
        return f"<ParquetTraces: {str(self.folder)!r}, {counts}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<code>{escape(repr(self))}</code>"


def open_parquet(folder: str | PathLike[str]) -> ParquetTraces:
    """The traces of the Parquet export in `folder`: the same views, pictures and comparisons, without the database.

    What goes back to the lines (`explain`, `whatif_interval`, `advice`) needs the database, and raises `InputError`.
    So does what writes into it. Raises `InputError` where there is no export, or one of another schema version.
    """
    import duckdb

    where = Path(folder).absolute()
    manifest = layout.read_manifest(where)
    if manifest is None:
        raise InputError(f"no export in {str(folder)!r}: make one with `rtrace export --db FILE --parquet {folder}`")
    if manifest["schema_version"] != layout.SCHEMA_VERSION:
        seen, ours = manifest["schema_version"], layout.SCHEMA_VERSION
        raise InputError(f"{str(folder)!r} has schema version {seen}, this rtrace reads {ours}: export it again")
    con = duckdb.connect()
    con.execute("SET enable_progress_bar = false")
    _make_views(con, where, manifest)
    return ParquetTraces(where, manifest, con)


def _make_views(con: "duckdb.DuckDBPyConnection", folder: Path, manifest: Mapping[str, Any]) -> None:
    """Make the views of an export over its files, with their comments.

    `file_id` counts over all experiments there, as in a database, and `rejects` has no `experiment`.
    """
    files = _files(folder, "trace_files", manifest)
    offsets = (
        f"SELECT experiment, sum(max(file_id)) OVER (ORDER BY experiment) - max(file_id) AS files_before FROM {files}"
    )
    con.execute(f"CREATE VIEW _file_offsets AS {offsets} GROUP BY experiment")
    for name, view in manifest["views"].items():
        columns = {c["name"]: c["comment"] for c in view["columns"] if not c["type"].startswith("TIMESTAMP")}
        if name == "rejects":
            del columns["experiment"]
        source, target = _files(folder, name, manifest), quoted(name)
        listed = ", ".join(map(quoted, columns))
        if "file_id" in columns:
            source += " LEFT JOIN _file_offsets USING (experiment)"
            listed = listed.replace('"file_id"', "(file_id + files_before)::INTEGER AS file_id")
        con.execute(f"CREATE VIEW {target} AS SELECT {listed} FROM {source}")
        con.execute(f"COMMENT ON VIEW {target} IS {literal(view['comment'])}")
        for column, comment in columns.items():
            con.execute(f"COMMENT ON COLUMN {target}.{quoted(column)} IS {literal(comment)}")


def _files(folder: Path, view: str, manifest: Mapping[str, Any]) -> str:
    """The rows of a view's files; none, of the right types, where there is no file."""
    if manifest["experiments"]:
        path = f"{glob.escape(str(folder))}/{view}/{layout.PARTITION}=*/{layout.DATA}"
        return f"read_parquet({literal(path)}, hive_partitioning = false)"
    columns = manifest["views"][view]["columns"]
    listed = ", ".join(f"NULL::{column['type']} AS {quoted(column['name'])}" for column in columns)
    return f"(SELECT {listed} WHERE false)"
