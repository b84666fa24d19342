"""What tells whether an experiment's files are up to date: a hash of all its rows come from."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rtrace_analytics import database, views
from rtrace_analytics.export.layout import SCHEMA_VERSION

if TYPE_CHECKING:
    import duckdb

# What a restore of unknown cut is told may lie in another experiment: the only row that looks across.
_HINTS = """(SELECT experiment, detail FROM quality WHERE "check" = 'restore_without_cut' AND count > 0)"""


def fingerprints(con: "duckdb.DuckDBPyConnection") -> dict[str, str]:
    """A hash per experiment of its events, files, rejects and labels, and of what makes rows of them (`making`).

    Equal hashes: equal files. Another hash may only mean that the traces were loaded in another order.
    """
    base = making()
    sources = {name: name for name in sorted(views.TABLES)} | {"hints": _HINTS}
    sources["trace_files"] = "(SELECT * EXCLUDE (modified_ns) FROM trace_files)"  # as exported
    sources["rejects"] = "(SELECT f.experiment, r.* FROM rejects r JOIN trace_files f USING (file_id))"
    parts: dict[str, list[str]] = {}
    for name, source in sources.items():
        for experiment, rows, both, added in _hashed(con, source):
            parts.setdefault(experiment, []).append(f"{name} {rows} {both} {added}")
    return {
        experiment: hashlib.sha256("\n".join([base, experiment, *told]).encode("utf-8", "surrogatepass")).hexdigest()
        for experiment, told in parts.items()
    }


def making() -> str:
    """A hash of what makes rows of traces: the SQL, the versions of the schema, of this package and of DuckDB."""
    import duckdb

    made_by = hashlib.sha256(f"{SCHEMA_VERSION}\n{version()}\n{duckdb.__version__}\n".encode())
    for path in sorted(database.sql_folder().glob("[0-9]*.sql")):
        made_by.update(path.read_bytes())
    return made_by.hexdigest()


def version() -> str:
    """The version of this package."""
    import rtrace_analytics

    return str(rtrace_analytics.__version__)


def _hashed(con: "duckdb.DuckDBPyConnection", source: str) -> Sequence[tuple[str, int, int, str]]:
    return con.execute(
        "SELECT experiment, count(*), bit_xor(hash(_row)), sum(hash(_row))::VARCHAR "
        f"FROM {source} _row GROUP BY experiment"
    ).fetchall()
