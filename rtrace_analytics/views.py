"""The public views and tables: which there are, the order their rows are told in, how they are filtered."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rtrace_analytics.errors import InputError

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

TABLES = {
    "events": "experiment, run, seq",
    "labels": "experiment, key",
    "rejects": "file_id, byte_offset",
    "trace_files": "file_id",
}
VIEWS = {
    "attempt_spans": "experiment, start_t, run, span_id",
    "cut_time_waste": "experiment, restore_t, run",
    "experiment_waste": "experiment",
    "group_spans": "experiment, first_dispatch_t, group_key, occurrence",
    "in_flight": "experiment, t, run",
    "lag": "experiment, stop_t, run",
    "lost_in_silence": "experiment, restore_t, run, group_key",
    "progress": "experiment, t, run, event",
    "quality": 'experiment, "check"',
    "repeat_losers": "experiment, lost_s DESC, prompt_id",
    "restart_abandonment": "experiment, first_reported_t, run, group_key, generation_index, attempt",
    "restart_reports": "experiment, t, run, group_key, generation_index, attempt",
    "restores": "experiment, restore_t, run",
    "rollout_seconds": "experiment, seconds DESC, fate",
    "runs": "experiment, first_t, run",
    "snapshots": "experiment, published_t, run, cut_t",
    "staleness": "experiment, start_t, run, span_id",
    "survivorship": "experiment, decile",
}
_ORDER = {**TABLES, **VIEWS}


def names(con: "duckdb.DuckDBPyConnection") -> list[str]:
    """The public views and tables of this database, sorted."""
    found = con.execute(
        "SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT starts_with(view_name, '_') "
        "UNION SELECT table_name FROM duckdb_tables() WHERE NOT internal AND NOT starts_with(table_name, '_')"
    ).fetchall()
    return sorted(name for (name,) in found)


def query(
    con: "duckdb.DuckDBPyConnection",
    name: str,
    *,
    experiment: str | Sequence[str] | None = None,
    run: str | Sequence[str] | None = None,
) -> tuple[str, list[list[str]]]:
    """The SELECT, with its parameters, of a view's or table's rows, in its order.

    `experiment` and `run`: only these (one name or several). Raises `InputError` for a view, an experiment or a run
    that is not there, and for `run` where the view has no such column.
    """
    known = names(con)
    if name not in known:
        raise InputError(f"no view or table {name!r}: there are {', '.join(known)}")
    columns = [row[0] for row in con.execute(f"DESCRIBE {name}").fetchall()]
    wanted, parameters = [], []
    if experiment is not None:
        parameters.append(_known(con, "experiment", experiment))
        wanted.append(
            "list_contains(?, experiment)"
            if "experiment" in columns
            else "file_id IN (SELECT file_id FROM trace_files WHERE list_contains(?, experiment))"
        )
    if run is not None:
        if "run" not in columns:
            raise InputError(f"{name} has no column 'run': leave run={run!r} away")
        parameters.append(_known(con, "run", run))
        wanted.append("list_contains(?, run)")
    where = f" WHERE {' AND '.join(wanted)}" if wanted else ""
    return f"SELECT * FROM {name}{where} ORDER BY {_ORDER.get(name, 'ALL')}", parameters


def _known(con: "duckdb.DuckDBPyConnection", column: str, values: str | Sequence[str]) -> list[str]:
    wanted = [values] if isinstance(values, str) else list(values)
    source = "SELECT experiment FROM trace_files UNION SELECT experiment FROM runs"
    found = con.execute(source if column == "experiment" else "SELECT DISTINCT run FROM runs").fetchall()
    there = sorted(value for (value,) in found if value is not None)
    for value in wanted:
        if value not in there:
            some = ", ".join(repr(name) for name in there[:10]) + (f" and {len(there) - 10} more" if there[10:] else "")
            raise InputError(f"no {column} {value!r}: " + (f"there are {some}" if there else "load a trace first"))
    return wanted


def frame(relation: "duckdb.DuckDBPyRelation") -> "pd.DataFrame":
    """A relation's rows as a DataFrame: whole numbers and booleans in pandas' types that can be NULL."""
    import pandas as pd
    import pyarrow as pa

    nullable = {
        pa.bool_(): pd.BooleanDtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
    }
    table: pd.DataFrame = relation.to_arrow_table().to_pandas(types_mapper=nullable.get)
    return table
