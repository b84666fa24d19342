"""Every public view and table as Parquet: `folder/<view>/experiment=<name>/data.parquet`."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from rtrace_analytics import views
from rtrace_analytics.errors import InputError

if TYPE_CHECKING:
    import duckdb


def export(con: "duckdb.DuckDBPyConnection", folder: str | PathLike[str]) -> list[Path]:
    """Write each view of each experiment to a file of its own; returns the files.

    The rows bear `experiment` as it is; the folder's name has it percent-encoded, so that no name leaves `folder`.
    A file is written beside and renamed: a reader never meets half of one. Raises `InputError` where `folder` cannot be
    written.
    """
    import pyarrow.parquet as pq

    names = con.execute("SELECT experiment FROM trace_files UNION SELECT experiment FROM runs ORDER BY ALL").fetchall()
    written = []
    for view in views.names(con):
        for (experiment,) in names:
            text, parameters = views.query(con, view, experiment=experiment)
            target = Path(folder) / view / f"experiment={partition(experiment)}" / "data.parquet"
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                beside = target.with_suffix(".tmp")
                pq.write_table(con.sql(text, params=parameters).to_arrow_table(), beside, compression="zstd")
                beside.replace(target)
            except OSError as error:
                raise InputError(f"{str(folder)!r} cannot be written to: {error}") from error
            written.append(target)
    return written


def partition(experiment: str) -> str:
    """An experiment's name as a folder's: percent-encoded, the dot too, so that `..` is no way out."""
    return quote(experiment, safe="").replace(".", "%2E")
