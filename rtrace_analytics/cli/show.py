"""`rtrace show`: any view or table."""

import click

from rtrace_analytics import database, views
from rtrace_analytics.cli import output


@click.command("show")
@click.argument("view")
@output.db_option()
@click.option("--experiment", multiple=True, metavar="NAME", help="Only this experiment; may be given again.")
@click.option("--run", multiple=True, metavar="ID", help="Only this run; may be given again.")
@output.format_option
def command(view: str, db: str, experiment: tuple[str, ...], run: tuple[str, ...], form: str) -> None:
    """Print the rows of a VIEW or table.

    For example cut_time_waste, restores, attempt_spans, quality or events; a name that is not there lists them all.
    """
    con = database.connect(db, read_only=True)
    try:
        query, parameters = views.query(con, view, experiment=experiment or None, run=run or None)
        output.print_query(con, query, form, parameters, count=f"SELECT count(*) FROM ({query})")
    finally:
        con.close()
