"""What commands print: tables for people, csv and json for programs. Views make figures; here they get a form."""

import csv
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rtrace_analytics import text
from rtrace_analytics.errors import DatabaseError

if TYPE_CHECKING:
    import duckdb

FORMATS = ("table", "csv", "json")
TABLE_ROWS = 50
_CELL = 100  # characters of a cell that a table shows; csv and json show all
_BATCH = 10_000


def seconds(value: float | None) -> str:
    """A length a person can read, its exact seconds beside it where they are not the same: `12 min 3 s (723.25 s)`."""
    if value is None or not math.isfinite(value):
        return "unknown"
    exact = f"{number(value)} s"
    if abs(value) < 60:
        return exact
    whole = round(value)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    parts = [f"{hours:,} h"] * (hours > 0) + [f"{minutes} min"] + [f"{rest} s"] * (hours == 0)
    return f"{' '.join(parts)} ({exact})"


def number(value: float) -> str:
    """A number to a thousandth, or to four digits where it is smaller than one."""
    if not math.isfinite(value):
        return str(value)
    if 0 < abs(value) < 1:
        return f"{value:.4g}"
    return text.number(value)


def moment(t: float | None) -> str:
    """A moment as the trace has it, and as a date where it is seconds since the epoch."""
    if t is None or math.isnan(t):
        return "unknown"
    as_date = text.date(t)
    return f"{as_date} ({text.number(t)})" if as_date else text.number(t)


def rows_of(
    con: "duckdb.DuckDBPyConnection", query: str, parameters: Any = None
) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Column names and rows of a query, fetched bit by bit. Raises `DatabaseError`, of one line."""
    import duckdb

    try:
        cursor = con.execute(query, parameters)
        description = cursor.description or []
    except duckdb.Error as error:
        raise sql_error(error) from error

    def rows() -> Iterator[tuple[Any, ...]]:
        try:
            while batch := cursor.fetchmany(_BATCH):
                yield from batch
        except duckdb.Error as error:
            raise sql_error(error) from error

    return [column[0] for column in description], rows()


def sql_error(error: Exception) -> DatabaseError:
    """A mistake in a query, as one line."""
    return DatabaseError(f"SQL: {text.one_line(error)}")


def print_query(
    con: "duckdb.DuckDBPyConnection", query: str, form: str, parameters: Any = None, *, count: str | None = None
) -> None:
    """Print the rows of a query: a table shows the first 50 and how many there are, csv and json all of them.

    `count`: the query that tells how many there are; without it they are fetched and counted.
    """
    columns, rows = rows_of(con, query, parameters)
    if form == "csv":
        print_csv(columns, rows)
    elif form == "json":
        print_json(columns, rows)
    else:
        first = list(islice(rows, TABLE_ROWS + 1))
        total = len(first)
        if total > TABLE_ROWS:
            total = con.execute(count, parameters).fetchall()[0][0] if count else total + sum(1 for _ in rows)
        print_table(columns, first, total=total)


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], form: str) -> None:
    """Print rows that are at hand, in one of the three forms."""
    {"csv": print_csv, "json": print_json, "table": print_table}[form](columns, rows)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, total: int | None = None) -> None:
    """Print a table for people, at most its first 50 rows; `total` is how many there are."""
    kept = list(rows)
    total = len(kept) if total is None else total
    cells = [[_cell(value) for value in row] for row in kept[:TABLE_ROWS]]
    head = [text.clean(name) for name in columns]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    right = [all(isinstance(row[i], (int, float, type(None))) for row in kept[:TABLE_ROWS]) for i in range(len(head))]
    for line in [head, ["-" * width for width in widths], *cells]:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True))
        print("  ".join(padded).rstrip())
    more = f" of {total:,}: --format csv or json prints all" if total > TABLE_ROWS else ""
    print(f"({min(total, TABLE_ROWS):,} row{'s' if total != 1 else ''}{more})")


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return number(value)
    whole = text.clean(value)
    return whole if len(whole) <= _CELL else whole[: _CELL - 1] + "…"


def print_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print all rows as csv; NULL is an empty field. On a terminal control characters are made visible."""
    on_terminal = sys.stdout.isatty()

    def field(value: Any) -> Any:
        if isinstance(value, bool):
            return "true" if value else "false"
        return text.clean(value) if on_terminal and isinstance(value, str) else value

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([field(name) for name in columns])
    writer.writerows([field(value) for value in row] for row in rows)


def print_json(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print all rows as an array of objects, one a line; NULL, NaN and infinities are null."""
    begin = "["
    for row in rows:
        print(f"{begin}{to_json(dict(zip(columns, row, strict=True)))}", end="")
        begin = ",\n "
    print("[]" if begin == "[" else "]")


def to_json(value: Any, **options: Any) -> str:
    """JSON of what a query gives; what is not finite is null, a moment or a decimal its text."""
    return json.dumps(_finite(value), default=str, **options)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value
