"""`rtrace sql`: one query that only reads."""

from typing import TYPE_CHECKING

import click

from rtrace_analytics import database
from rtrace_analytics.cli import output
from rtrace_analytics.errors import DatabaseError, InputError

if TYPE_CHECKING:
    import duckdb


@click.command("sql")
@click.argument("query")
@output.db_option()
@output.format_option
def command(query: str, db: str, form: str) -> None:
    """Run one QUERY that only reads.

    For example "SELECT * FROM cut_time_waste", "DESCRIBE attempt_spans" or "SHOW TABLES".
    """
    con = database.connect(db, read_only=True)
    try:
        output.print_query(con, _one_select(con, query), form)
    finally:
        con.close()


def _one_select(con: "duckdb.DuckDBPyConnection", query: str) -> str:
    import duckdb

    try:
        statements = con.extract_statements(query)
    except duckdb.Error as error:
        raise DatabaseError(f"SQL: {' '.join(str(error).split())}") from error
    if len(statements) != 1:
        raise InputError(f"one query at a time: {len(statements)} were given")
    if statements[0].type != duckdb.StatementType.SELECT:
        kind = statements[0].type.name
        raise InputError(f"{kind} is not a query that only reads: give a SELECT, or use the duckdb command line")
    return query
