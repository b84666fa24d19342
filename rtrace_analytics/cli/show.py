"""`rtrace show`: any view or table."""

from contextlib import closing

import click

from rtrace_analytics import database, views
from rtrace_analytics.cli import options, output


@click.command("show")
@click.argument("view")
@options.db()
@options.experiments
@click.option("--run", multiple=True, metavar="ID", help="Only this run; may be given again.")
@options.form
def command(view: str, db: str, experiments: tuple[str, ...], run: tuple[str, ...], form: str) -> None:
    """Print the rows of a VIEW or table.

    For example cut_time_waste, restores, attempt_spans, quality or events; a name that is not there lists them all.
    """
    with closing(database.connect(db, read_only=True)) as con:
        query, parameters = views.query(con, view, experiment=experiments or None, run=run or None)
        output.print_query(con, query, form, parameters, count=f"SELECT count(*) FROM ({query})")
