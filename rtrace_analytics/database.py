"""The database: opened or made, its SQL files run in order, its derived tables built anew after a load."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrace_analytics.errors import DatabaseError
from rtrace_analytics.text import is_text

if TYPE_CHECKING:
    import duckdb

FORMAT = 2
_STORAGE = "v1.5.0"  # what the duckdb command line that people can install opens
PORTION = 8_000_000  # events that are derived together, where they are of several experiments or families of runs
_STEP = re.compile(r"^-- step: (\w+)$", re.M)


def sql_folder() -> Path:
    """The folder of SQL files: beside the package in a checkout, inside it in a wheel."""
    package = Path(__file__).parent
    inside = package / "sql"
    return inside if inside.is_dir() else package.parent / "sql"


def run_file(con: "duckdb.DuckDBPyConnection", path: Path) -> None:
    """Run one SQL file; a failure names the file and the statement."""
    for statement in con.extract_statements(path.read_text(encoding="utf-8")):
        run_statement(con, statement.query, path.name)


def run_statement(con: "duckdb.DuckDBPyConnection", statement: str, source: str, parameters: Any = None) -> Any:
    """Run one statement of ours; a failure bears the statement and the name of its source."""
    import duckdb

    try:
        return con.execute(statement, parameters)
    except duckdb.Error as error:
        if isinstance(error, (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.InterruptException)):
            raise
        raise DatabaseError(f"{source}: {error}\nin: {statement.strip()}") from error


@cache
def steps(name: str) -> dict[str, str]:
    """The named steps of an SQL file (`-- step: name` begins one), name to text."""
    parts = _STEP.split((sql_folder() / name).read_text(encoding="utf-8"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def run_step(con: "duckdb.DuckDBPyConnection", name: str, step: str, parameters: Any = None) -> Any:
    """Run a named step of an SQL file; the result of its last statement."""
    result = None
    for statement in con.extract_statements(steps(name)[step]):
        result = run_statement(con, statement.query, f"{name}, step {step}", parameters)
    return result


def connect(path: str | Path | None = None, *, read_only: bool = False) -> "duckdb.DuckDBPyConnection":
    """Open (or make) a database, in memory where `path` is None; errors are one line with the way out."""
    import duckdb

    where = ":memory:" if path is None else str(path)
    if path is not None:
        _check_file(where)
    config: dict[str, Any] = {} if path is None or read_only else {"storage_compatibility_version": _STORAGE}
    if path is not None and not read_only and not Path(path).absolute().parent.is_dir():
        raise DatabaseError(f"no folder {str(Path(path).absolute().parent)!r} for the database: make it first")
    if read_only and path is not None and not Path(path).exists():
        raise DatabaseError(f"no database {where!r}: make it with `rtrace load PATH... --db {where}`")
    try:
        con = duckdb.connect(where, read_only=read_only, config=config)
    except duckdb.IOException as error:
        raise DatabaseError(_why_not_open(where, str(error))) from error
    except duckdb.Error as error:
        raise DatabaseError(f"{where!r} cannot be opened: {str(error).splitlines()[0]}") from error
    try:
        # DuckDB's bar can land in piped output; in Jupyter without ipywidgets it is off, and setting it is an error
        if con.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
            con.execute("SET enable_progress_bar = false")
        _check_or_make(con, where, read_only)
    except BaseException:
        con.close()
        raise
    return con


def _check_file(where: str) -> None:
    """What is surely no database, before DuckDB waits for it or takes it for a file of another kind."""
    if not is_text(where):
        raise DatabaseError(f"the name {where!r} is not UTF-8: name another file")
    file = Path(where)
    if file.exists() and not file.is_dir():
        if not file.is_file():
            raise DatabaseError(f"{where!r} is a device or pipe: name a file")
        with suppress(OSError), open(file, "rb") as data:  # DuckDB says why it cannot be read
            if data.read(12)[8:] != b"DUCK":
                raise DatabaseError(f"{where!r} is not a DuckDB database: name another file, or a new one")


def _why_not_open(where: str, error: str) -> str:
    if "set lock" in error:  # not "lock": a damaged block, a folder of that name
        holder = re.search(r"held in (.+?)(?: by user [^.]*)?\. ", error + " ")
        by = f" by {holder[1]}" if holder else " by another process"
        return f"database {where!r} is locked{by}: close it there (`traces.close()`, or end that process) and try again"
    return f"{where!r} is not a DuckDB database that can be opened here: {error.splitlines()[0]}"


def _check_or_make(con: "duckdb.DuckDBPyConnection", where: str, read_only: bool) -> None:
    tables = {name for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    if "_about" not in tables:
        if tables or read_only:
            raise DatabaseError(f"{where!r} is a DuckDB database, but not of rtrace: name another file")
        make(con)
        return
    found = con.execute("SELECT value FROM _about WHERE name = 'format'").fetchall()
    if found != [(str(FORMAT),)]:
        seen = found[0][0] if found else "none"
        raise DatabaseError(f"{where!r} has database format {seen}, this rtrace reads {FORMAT}: load the traces anew")


def make(con: "duckdb.DuckDBPyConnection") -> None:
    """Make tables and views in an empty database, all or nothing."""
    con.execute("BEGIN")
    for path in sorted(sql_folder().glob("[0-9]*.sql")):
        run_file(con, path)
    con.execute("INSERT INTO _about VALUES ('format', ?)", [str(FORMAT)])
    con.execute("COMMIT")


def derive(con: "duckdb.DuckDBPyConnection", experiments: Sequence[str]) -> None:
    """Build the derived tables of these experiments anew from `events`; the caller holds the transaction."""
    query = """
        SELECT name, count(experiment) FROM (SELECT unnest(?::VARCHAR[]) AS name) LEFT JOIN events ON experiment = name
        GROUP BY name ORDER BY name"""
    for portion in _portions(con.execute(query, [list(experiments)]).fetchall()):
        _derive(con, portion)


def _derive(con: "duckdb.DuckDBPyConnection", experiments: list[str]) -> None:
    con.execute("DELETE FROM _touched")
    con.execute("INSERT INTO _touched SELECT unnest(?::VARCHAR[])", [experiments])
    for step in ("derive_clear", "derive_lines", "derive_spans", "derive_lineage"):
        run_step(con, "load.sql", step)
    families = "SELECT root_no, sum(events) FROM _families_now GROUP BY root_no ORDER BY root_no"
    for roots in _portions(con.execute(families).fetchall()):
        con.execute("DELETE FROM _portion")
        limits = [roots[0], roots[-1]]
        con.execute("INSERT INTO _portion SELECT run_no FROM _families_now WHERE root_no BETWEEN ? AND ?", limits)
        run_step(con, "load.sql", "derive_fates")
    con.execute("DELETE FROM _portion")
    con.execute("DELETE FROM _touched")


def _portions(sizes: Iterable[tuple[Any, int]]) -> Iterator[list[Any]]:
    """Names to derive together, so many as have not more events than are good for the memory; one at least."""
    portion: list[Any] = []
    size = 0
    for name, events in sizes:
        if portion and size + events > PORTION:
            yield portion
            portion, size = [], 0
        portion.append(name)
        size += events
    if portion:
        yield portion
