"""The columns of an export: those of each public view, in its order, as plain types, with their comments.

Text, 32 and 64 bit integers, doubles, booleans: no ENUM, HUGEINT or nested type leaves the database. After each moment
(`t`, `*_t`, `cut_time`: seconds since the epoch) stands the same as a UTC timestamp (`ts`, `*_ts`, `cut_ts`), NULL
where the value is no plausible epoch time. `file_id` counts within the experiment, in the order of the paths, and
`rejects` has `experiment` in front: so every row stands for itself, whichever database it came from.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rtrace_analytics import views
from rtrace_analytics.views import quoted

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

EARLIEST, LATEST = 1e9, 9e9
"""What counts as seconds since the epoch: 2001 to 2255, which every reader's timestamps hold."""

_TIMESTAMP = "TIMESTAMP WITH TIME ZONE"
_WHOLE = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
_SMALL = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT")
_ORDERED = ("attempt_spans", "events", "in_flight", "staleness")  # the big ones, whose order leaves no ties
_LEFT_OUT = "modified_ns"  # when a file was last touched: of use to the next load only
_FILE_ID = "number of the file within its experiment, in the order of paths"
_FILE_EXPERIMENT = "label given at load to runs that may restore one another"

_FILES = """(SELECT experiment AS file_experiment, file_id AS its_id,
        row_number() OVER (PARTITION BY experiment ORDER BY path, file_id)::INTEGER AS file_number FROM trace_files)"""


@dataclass(frozen=True)
class Column:
    """An exported column: its DuckDB type, its comment, and the expression over the view that gives it."""

    name: str
    type: str
    comment: str
    expression: str


@dataclass(frozen=True)
class View:
    """An exported view or table: its columns in their order, and its comment."""

    name: str
    comment: str
    columns: tuple[Column, ...]

    def select(self) -> str:
        """The SELECT of its rows for a list of experiments (one parameter), in their order, experiment first."""
        listed = ", ".join(f"{column.expression} AS {quoted(column.name)}" for column in self.columns)
        order = views.ORDER.get(self.name, "experiment")
        if not order.startswith("experiment"):
            order = f"experiment, {order}"
        if self.name not in _ORDERED:
            order += "".join(f", {quoted(column.name)}" for column in self.columns)
        return (
            f"SELECT * FROM (SELECT {listed} FROM {quoted(self.name)} {self._join()}) "
            f"WHERE list_contains($1::VARCHAR[], experiment) ORDER BY {order}"
        )

    def _join(self) -> str:
        if not any(column.name == "file_id" for column in self.columns):
            return ""
        return f"LEFT JOIN {_FILES} ON its_id = file_id"

    @cached_property
    def arrow(self) -> "pa.Schema":
        """The Arrow schema of its files: every field bears its comment."""
        import pyarrow as pa

        types = {
            "VARCHAR": pa.string(),
            "INTEGER": pa.int32(),
            "BIGINT": pa.int64(),
            "DOUBLE": pa.float64(),
            "BOOLEAN": pa.bool_(),
            _TIMESTAMP: pa.timestamp("us", "UTC"),
        }
        return pa.schema(
            [pa.field(column.name, types[column.type], metadata={"comment": column.comment}) for column in self.columns]
        )


def exported(con: "duckdb.DuckDBPyConnection", wanted: list[str] | None = None) -> list[View]:
    """The public views and tables of a database as they are exported; all, or the `wanted` ones.

    Raises `InputError` for a view that is not there.
    """
    views.check_names(con, wanted or [])
    comments = dict(
        con.execute(
            "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal AND database_name = current_database() "
            "UNION SELECT table_name, comment FROM duckdb_tables() WHERE database_name = current_database()"
        ).fetchall()
    )
    found = con.execute(
        "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() "
        "WHERE NOT internal AND database_name = current_database() AND list_contains(?, table_name) "
        "ORDER BY table_name, column_index",
        [sorted(set(wanted)) if wanted else views.names(con)],
    ).fetchall()
    columns: dict[str, list[Column]] = {}
    for table, name, kind, comment in found:
        if name == _LEFT_OUT:
            continue
        columns.setdefault(table, []).extend(_columns(name, kind, comment or ""))
    for table in columns.values():
        if all(column.name != "experiment" for column in table):
            table.insert(0, Column("experiment", "VARCHAR", _FILE_EXPERIMENT, "file_experiment"))
    return [View(name, comments.get(name) or "", tuple(columns[name])) for name in sorted(columns)]


def _columns(name: str, kind: str, comment: str) -> list[Column]:
    if name == "file_id":
        return [Column(name, "INTEGER", _FILE_ID, "file_number")]
    plain = _plain(kind)
    column = Column(name, plain, comment, f"{quoted(name)}::{plain}")
    if plain == "DOUBLE" and (name in ("t", "cut_time") or name.endswith("_t")):
        moment = f"{quoted(name)} >= {EARLIEST} AND {quoted(name)} < {LATEST}"
        stamp = f"CASE WHEN {moment} THEN make_timestamp(round({quoted(name)} * 1e6)::BIGINT) END"
        beside = f"{comment}: as UTC timestamp, NULL where that is no time from 2001 to 2255"
        return [column, Column(timestamp_of(name), _TIMESTAMP, beside, stamp)]
    return [column]


def timestamp_of(moment: str) -> str:
    """The name of the timestamp beside a moment: `start_t` has `start_ts`, `t` has `ts`, `cut_time` has `cut_ts`."""
    return "cut_ts" if moment == "cut_time" else f"{moment.removesuffix('t')}ts"


def _plain(kind: str) -> str:
    if kind in ("BOOLEAN", "BIGINT", "DOUBLE", "VARCHAR"):
        return kind
    if _WHOLE.fullmatch(kind):
        return "INTEGER" if kind in _SMALL else "BIGINT"
    return "DOUBLE" if kind == "FLOAT" or kind.startswith("DECIMAL") else "VARCHAR"
