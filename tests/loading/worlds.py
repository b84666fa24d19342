"""Small traces written by hand, for the tests of loading."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rtrace_analytics import database, loading


def line(t: float, run: str, event: str, **fields: Any) -> bytes:
    """One line of a trace."""
    return json.dumps({"t": t, "run": run, "event": event, **fields}).encode() + b"\n"


def dispatches(run: str, first: int, count: int) -> list[bytes]:
    """So many lines of a run, a second apart, each the dispatch of its own prompt."""
    return [
        line(1000.0 + i, run, "attempt_dispatched", prompt_id=str(i), generation_index=0, attempt=0)
        for i in range(first, first + count)
    ]


def write(path: Path, *parts: bytes) -> Path:
    """Write a file, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(parts))
    return path


def contents(con: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """What the events say, in order, whatever files and ids they came from."""
    query = "SELECT * EXCLUDE (file_id, line, seq, extra), extra::VARCHAR FROM events ORDER BY experiment, run, seq"
    return con.execute(query).fetchall()


def fresh(*paths: Path, **options: Any) -> list[tuple[Any, ...]]:
    """What these paths give when loaded at once into an empty database."""
    with tables_only() as con:
        loading.load(con, paths, **options)
        return contents(con)


def one(con: duckdb.DuckDBPyConnection, query: str) -> Any:
    """The single value of a query."""
    row = con.execute(query).fetchone()
    assert row is not None
    return row[0]


@contextmanager
def tables_only() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory without views and derived tables: a load into it is fast, what it loads is the same."""
    with pytest.MonkeyPatch.context() as patch, duckdb.connect(config={"threads": 1}) as con:
        patch.setattr(database, "derive", lambda con, experiments: None)
        for name in ("00_tables.sql", "01_loading.sql"):
            database.run_file(con, database.sql_folder() / name)
        yield con
