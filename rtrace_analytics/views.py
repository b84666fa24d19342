"""The public views and tables: which there are, the order their rows are told in, how they are filtered."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rtrace_analytics.errors import InputError
from rtrace_analytics.text import listed

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
ORDER = {**TABLES, **VIEWS}
EXPERIMENTS = "SELECT experiment FROM trace_files UNION SELECT experiment FROM runs"

# How a restored snapshot was found, by the column `match`: "found ..."
FOUND = {
    "path": "by its path, the snapshot's own",
    "anchor": "by the step and number in its path",
    "step": "by the number in its path",
    "latest": "as the latest one: its path has no number",
    "evidence": "by the attempts it abandoned: its path does not tell, or misleads",
}


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
    check_names(con, [name])
    columns = [row[0] for row in con.execute(f"DESCRIBE {name}").fetchall()]
    wanted, parameters = [], []
    if experiment is not None:
        parameters.append(experiments(con, experiment))
        wanted.append(
            "list_contains(?, experiment)"
            if "experiment" in columns
            else "file_id IN (SELECT file_id FROM trace_files WHERE list_contains(?, experiment))"
        )
    if run is not None:
        if "run" not in columns:
            raise InputError(f"{name} has no column 'run': leave run={run!r} away")
        there = con.execute("SELECT DISTINCT run FROM runs ORDER BY run").fetchall()
        parameters.append(_those("run", run, [value for (value,) in there]))
        wanted.append("list_contains(?, run)")
    where = f" WHERE {' AND '.join(wanted)}" if wanted else ""
    return f"SELECT * FROM {name}{where} ORDER BY {ORDER.get(name, 'ALL')}", parameters


def check_names(con: "duckdb.DuckDBPyConnection", wanted: Iterable[str]) -> None:
    """Raise `InputError` for a view or table that is not there."""
    known = names(con)
    for name in wanted:
        if name not in known:
            raise InputError(f"no view or table {name!r}: there are {', '.join(known)}")


def experiments(con: "duckdb.DuckDBPyConnection", wanted: str | Sequence[str] | None = None) -> list[str]:
    """The experiments of this database, or the wanted ones (a name or several), sorted.

    Raises `InputError` for one that is not there.
    """
    there = sorted(name for (name,) in con.execute(EXPERIMENTS).fetchall())
    return there if wanted is None else _those("experiment", wanted, there)


def _those(word: str, wanted: str | Sequence[str], there: Sequence[str]) -> list[str]:
    those = [wanted] if isinstance(wanted, str) else list(wanted)
    for value in those:
        if value not in there:
            raise InputError(f"no {word} {value!r}: {listed(there) if there else 'load a trace first'}")
    return sorted(set(those))


def check_spans(con: "duckdb.DuckDBPyConnection") -> None:
    """Raise `InputError` where only the public views are there (a mix, an export), not what they are made from."""
    there = "SELECT 1 FROM duckdb_tables() WHERE database_name = current_database() AND table_name = '_runs'"
    if not con.execute(there).fetchall():  # a mix has the databases attached that it is made of
        raise InputError("a mix or an export has no lines to go back to: ask the database the traces were loaded into")


def rows(
    con: "duckdb.DuckDBPyConnection", name: str, *, experiment: str | Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """The rows of a view or table as dictionaries, in its order. Raises `InputError` as `query`."""
    found = con.execute(*query(con, name, experiment=experiment))
    columns = [column[0] for column in found.description or []]
    return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]


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


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL writes it, where no parameter may stand."""
    return "'" + text.replace("'", "''") + "'"
