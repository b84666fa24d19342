"""Literal events into a database: rows in, views out."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from rtrace_analytics import database

COLUMNS = (
    *("experiment", "run", "seq", "t", "event", "group_id", "prompt_id", "generation_index", "attempt", "reason"),
    *("step", "cut_time", "path", "weight_version", "tokens", "reward", "extra", "file_id", "line"),
)


def put(con: Any, events: Iterable[dict[str, Any]], experiment: str = "x") -> None:
    """Put events (as decoded lines, in the order of their lines) in as one experiment, and derive."""
    rows = [
        {"experiment": experiment, "seq": place, "file_id": 1, "line": place + 1, **event}
        for place, event in enumerate(events)
    ]
    con.execute("BEGIN")
    if rows:
        marks = ", ".join("?" * len(COLUMNS))
        con.executemany(f"INSERT INTO events VALUES ({marks})", [[row.get(c) for c in COLUMNS] for row in rows])
    database.derive(con, [experiment])
    con.execute("COMMIT")


@cache
def _con() -> Any:
    return database.connect()


def world(events: Iterable[dict[str, Any]]) -> Any:
    """A database in memory that holds these events as experiment `x` and nothing else: the same one each time."""
    con = _con()
    before = [name for (name,) in con.execute("SELECT DISTINCT experiment FROM events").fetchall()]
    con.execute("DELETE FROM events")
    database.derive(con, before)
    put(con, events)
    return con


def rows(con: Any, query: str, parameters: Any = None) -> list[dict[str, Any]]:
    """The rows of a query as dicts."""
    found = con.execute(query, parameters)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
