"""`rtrace sql`: one query that only reads."""

from contextlib import closing
from typing import TYPE_CHECKING

import click

from rtrace_analytics import database
from rtrace_analytics.cli import options, output
from rtrace_analytics.errors import InputError

if TYPE_CHECKING:
    import duckdb


@click.command("sql")
@click.argument("query")
@options.db()
@options.form
def command(query: str, db: str, form: str) -> None:
    """Run one QUERY that only reads.

    For example "SELECT * FROM cut_time_waste", "DESCRIBE attempt_spans" or "SHOW TABLES".
    """
    with closing(database.connect(db, read_only=True)) as con:
        output.print_query(con, _one_select(con, query), form)


def _one_select(con: "duckdb.DuckDBPyConnection", query: str) -> str:
    import duckdb

    try:
        statements = con.extract_statements(query)
    except duckdb.Error as error:
        raise output.sql_error(error) from error
    if len(statements) != 1:
        raise InputError(f"one query at a time: {len(statements)} were given")
    if statements[0].type != duckdb.StatementType.SELECT:
        kind = statements[0].type.name
        raise InputError(f"{kind} is not a query that only reads: give a SELECT, or use the duckdb command line")
    return query
