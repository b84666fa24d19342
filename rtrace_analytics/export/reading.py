"""`open_parquet`: an export in Python, with the methods of loaded traces and no database."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rtrace_analytics.errors import InputError
from rtrace_analytics.export import layout
from rtrace_analytics.export.schema import literal, quoted
from rtrace_analytics.traces import Traces

if TYPE_CHECKING:
    import duckdb

_WAY = "an export only reads: load into a database, and export that again"


class ParquetTraces(Traces):
    """The traces of a Parquet export: `open_parquet` makes one.

    The views are read from the files at each call, so they follow an export that is brought up to date meanwhile: each
    file is wholly old or wholly new. `manifest` tells what was exported, as of the opening. Only `file_id` (it counts
    within the experiment) and `rejects` (it has `experiment` in front) differ from the database's rows.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any], con: "duckdb.DuckDBPyConnection") -> None:
        super().__init__(con)
        self.folder = folder
        self.manifest = manifest

    def load(self, *args: object, **options: object) -> NoReturn:
        """Raises `InputError`: an export is not loaded into."""
        raise InputError(_WAY)

    def forget(self, experiment: str) -> NoReturn:
        """Raises `InputError`: an export loses an experiment when the database does."""
        raise InputError(_WAY)

    def export_parquet(self, *args: object, **options: object) -> NoReturn:
        """Raises `InputError`: an export is copied, not exported."""
        raise InputError(_WAY)

    def __repr__(self) -> str:
        counts = f"experiments: {len(self.manifest['experiments'])}, views: {len(self.manifest['views'])}"
        return f"<ParquetTraces: {str(self.folder)!r}, {counts}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<code>{escape(repr(self))}</code>"


def open_parquet(folder: str | PathLike[str]) -> ParquetTraces:
    """The traces of the Parquet export in `folder`: the same methods over it, without the database.

    Raises `InputError` where there is no export, or one of another schema version.
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
    for name, view in manifest["views"].items():
        _make_view(con, where, name, view, any_files=bool(manifest["experiments"]))
    return ParquetTraces(where, manifest, con)


def _make_view(
    con: "duckdb.DuckDBPyConnection", folder: Path, name: str, view: Mapping[str, Any], *, any_files: bool
) -> None:
    columns = [column for column in view["columns"] if not column["type"].startswith("TIMESTAMP")]
    if any_files:
        files = f"{_escaped(str(folder))}/{name}/{layout.PARTITION}=*/{layout.DATA}"
        listed = ", ".join(quoted(column["name"]) for column in columns)
        query = f"SELECT {listed} FROM read_parquet({literal(files)}, hive_partitioning = false)"
    else:
        listed = ", ".join(f"NULL::{column['type']} AS {quoted(column['name'])}" for column in columns)
        query = f"SELECT {listed} WHERE false"
    con.execute(f"CREATE VIEW {quoted(name)} AS {query}")
    con.execute(f"COMMENT ON VIEW {quoted(name)} IS {literal(view['comment'])}")
    for column in columns:
        con.execute(f"COMMENT ON COLUMN {quoted(name)}.{quoted(column['name'])} IS {literal(column['comment'])}")


def _escaped(path: str) -> str:
    """A path in which no character is a pattern's."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)
