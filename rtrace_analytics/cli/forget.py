"""`rtrace forget`: lets an experiment go."""

from pathlib import Path

import click

from rtrace_analytics import database
from rtrace_analytics.cli import output
from rtrace_analytics.traces import Traces


@click.command("forget")
@click.argument("experiment")
@output.db_option()
@output.format_option
def command(experiment: str, db: str, form: str) -> None:
    """Let an EXPERIMENT go: one loaded under a wrong name, say."""
    database.connect(db, read_only=True).close()  # a mistyped name of the file must not make one
    with Traces(path=Path(db)) as traces:
        events = traces.forget(experiment)
    output.print_rows(["experiment", "events_forgotten"], [[experiment, events]], form)
