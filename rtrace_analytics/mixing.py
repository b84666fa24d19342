"""Several databases read as one: every public view over all of them."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrace_analytics import views
from rtrace_analytics.errors import InputError
from rtrace_analytics.traces import Traces
from rtrace_analytics.views import literal, quoted

if TYPE_CHECKING:
    import duckdb

Source = Traces | str | PathLike[str]


class MixedTraces(Traces):
    """Traces of several databases, for reading only; `mix` makes them."""

    _only_reads = "a mix only reads: load, label or forget in one of its databases, then mix again"


def mix(sources: Mapping[str, Source], *, prefix: bool = False) -> Traces:
    """Read several databases as one: views, pictures, comparisons and exports over all their experiments.

    Only what goes back to the lines (`explain`, `whatif_interval`, `advice`) is asked of the databases themselves.

    A database file is read where it lies, nothing is copied; it stays open for reading until the mix is closed. Traces
    in memory are copied as they are now. Every experiment bears the label `source`: the name its database has here
    (unless it has a label of that key already).

    Args:
        sources: Name to database: traces, or the path of a database file.
        prefix: Name the experiments `source/experiment`, for databases that use the same names.

    Returns:
        The mixed traces.

    Raises:
        InputError: no source, or an experiment that two of them have.
        DatabaseError: a file that is not a database of ours, or is locked.
    """
    import duckdb

    if not sources:
        raise InputError("nothing to mix: give {'name': traces or path, ...}")
    con = duckdb.connect(":memory:", config={})
    try:
        con.execute("SET enable_progress_bar = false")
        held = [_bring(con, f"source_{i}", name, source) for i, (name, source) in enumerate(sources.items())]
        _check_names(con, list(sources), prefix)
        names = [name for name in held[0] if all(name in other for other in held)]
        for name in names:
            _unite(con, name, list(sources), prefix)
    except BaseException:
        con.close()
        raise
    return MixedTraces(con)


def _bring(con: "duckdb.DuckDBPyConnection", catalog: str, name: str, source: Source) -> list[str]:
    """Attach a file, or copy what is in memory, as `catalog`; the public views and tables there are."""
    path = source if isinstance(source, (str, PathLike)) else getattr(source, "_path", None)
    if path is not None:
        with Traces(path=Path(path)).opened() as own:  # a database of ours, or an error that says what it is
            there = views.names(own)
        con.execute(f"ATTACH {literal(str(path))} AS {catalog} (READ_ONLY)")
        return there
    if not isinstance(source, Traces):
        raise InputError(f"{name!r} is a {type(source).__name__}: give traces or the path of a database")
    con.execute(f"ATTACH ':memory:' AS {catalog}")
    with source.opened() as own:
        there = views.names(own)
        for view in there:
            rows = own.sql(f"SELECT * FROM {view}").to_arrow_table()  # noqa: F841  found by its name in the next line
            con.execute(f"CREATE TABLE {catalog}.{view} AS SELECT * FROM rows")
    return there


def _check_names(con: "duckdb.DuckDBPyConnection", names: list[str], prefix: bool) -> None:
    if prefix:
        return
    seen: dict[str, str] = {}
    for i, name in enumerate(names):
        for (experiment,) in con.execute(_experiments(f"source_{i}")).fetchall():
            if experiment in seen:
                raise InputError(
                    f"experiment {experiment!r} is in {seen[experiment]!r} and in {name!r}: "
                    "mix with prefix=True, or load one of them under another name"
                )
            seen[experiment] = name


def _experiments(catalog: str) -> str:
    return f"SELECT experiment FROM {catalog}.trace_files UNION SELECT experiment FROM {catalog}.runs ORDER BY 1"


def _unite(con: "duckdb.DuckDBPyConnection", view: str, names: list[str], prefix: bool) -> None:
    """Make the view over all sources, with the comments it has in the first."""
    columns = con.execute(
        "SELECT column_name, comment FROM duckdb_columns() WHERE database_name = 'source_0' AND table_name = ?", [view]
    ).fetchall()
    has = {column for column, _ in columns}
    parts, files = [], 0
    for i, name in enumerate(names):
        changed = []
        if prefix and "experiment" in has:
            changed.append(f"{literal(name + '/')} || experiment AS experiment")
        if "file_id" in has:
            changed.append(f"(file_id + {files})::INTEGER AS file_id")
            files += _one(con, f"SELECT coalesce(max(file_id), -1) + 1 FROM source_{i}.trace_files")
        replaced = f" REPLACE ({', '.join(changed)})" if changed else ""
        parts.append(f"SELECT *{replaced} FROM source_{i}.{view}")
        if view == "labels":
            own = f"{literal(name + '/')} || experiment" if prefix else "experiment"
            parts.append(
                f"SELECT {own} AS experiment, 'source' AS key, {literal(name)} AS value "
                f"FROM ({_experiments(f'source_{i}')}) "
                f"WHERE experiment NOT IN (SELECT experiment FROM source_{i}.labels WHERE key = 'source')"
            )
    con.execute(f"CREATE VIEW memory.main.{view} AS {' UNION ALL BY NAME '.join(parts)}")
    for column, comment in columns:
        if comment is not None:
            con.execute(f"COMMENT ON COLUMN memory.main.{view}.{quoted(column)} IS {literal(comment)}")


def _one(con: "duckdb.DuckDBPyConnection", query: str) -> Any:
    row = con.execute(query).fetchone()
    assert row is not None
    return row[0]
